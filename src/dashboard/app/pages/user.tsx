/**
 * One user: how much there is, where it is, and its erasure.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useRoute } from "preact-iso";
import { api, type Erasure } from "../api.ts";
import { useCan } from "../access.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { changed, useQuery } from "../query.ts";
import { number } from "../words.ts";

const LOOK_MS = 500;

export default function User() {
  const { params } = useRoute();
  const id = params["id"] ?? "";
  const result = useQuery({ queryKey: ["user", id], queryFn: ({ signal }) => api.user(id, signal) });
  const erasure = useSignal<Erasure | null>(null);
  const isErasing = useSignal(false);
  const mayErase = useCan("admin");
  const all = (screen: string) => `/dashboard/${screen}?${new URLSearchParams({ user_id: id })}`;
  return (
    <Page
      title={id}
      within={["/dashboard/users", "Users"]}
      actions={
        mayErase &&
        result.data !== undefined &&
        erasure.value === null && (
          <button class="danger" onClick={() => (isErasing.value = true)}>
            Erase
          </button>
        )
      }
    >
      {erasure.value === null ? (
        <Loaded result={result}>
          {({ sessions, memories, traces, documents, more }) => (
            <dl class="counts">
              {Object.entries({ sessions, memories, traces }).map(([name, count]) => (
                <div key={name}>
                  <dt>
                    <a href={all(name)}>{name}</a>
                  </dt>
                  <dd>
                    {number(count)}
                    {more && <span class="quiet"> or more</span>}
                  </dd>
                </div>
              ))}
              {documents > 0 && (
                <div>
                  <dt>documents</dt>
                  <dd>{number(documents)}</dd>
                </div>
              )}
            </dl>
          )}
        </Loaded>
      ) : (
        <Report id={id} begun={erasure.value} />
      )}
      {isErasing.value && <EraseUser id={id} onErased={(begun) => (erasure.value = begun)} onClose={() => (isErasing.value = false)} />}
    </Page>
  );
}

function EraseUser({ id, onErased, onClose }: { id: string; onErased: (erasure: Erasure) => void; onClose: () => void }) {
  const typed = useSignal("");
  const submit = async () => {
    onErased(await api.eraseUser(id));
    onClose();
    await changed(["users"], ["sessions"], ["memories"], ["stats"]);
  };
  return (
    <Dialog title="Erase this user" onClose={onClose}>
      <Form submit="Erase" danger onSubmit={submit} disabled={typed.value !== id}>
        <p>
          All sessions, states, turns, memories and documents of <b>{id}</b> are removed, with what waits to be delivered. Traces stay
          without their content. This cannot be undone, and backups that were made before still hold everything.
        </p>
        <TextField label="Type the id of the user" name="user_id" value={typed} />
      </Form>
    </Dialog>
  );
}

/** Name on other screens, and text that nobody sees. */
const WORDS: Readonly<Record<string, string>> = { versions: "states", answers: "idempotent answers" };

/** Records that are removed, during and after. */
function Report({ id, begun }: { id: string; begun: Erasure }) {
  const result = useQuery<Erasure>({
    queryKey: ["user", id, "erasure", begun.started_at],
    initialData: begun,
    refetchInterval: ({ state }) => (state.data?.status === "running" ? LOOK_MS : false),
    queryFn: ({ signal }) => api.erasure(id, signal),
  });
  return (
    <Loaded result={result}>
      {({ status, object: _object, user_id: _user, started_at: _started, freed_space: freed, ...counts }) => (
        <>
          <p class="note" role="status">
            {status === "done" ? "Everything is removed." : "Nothing is shown any more; the rest is being removed …"}
            {status === "done" && freed === "vacuum" && " The database’s files hold it until it has vacuumed them."}
          </p>
          <dl class="counts">
            {Object.entries(counts).map(([name, count]) => (
              <div key={name}>
                <dt>{WORDS[name] ?? name}</dt>
                <dd>{number(count)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Loaded>
  );
}
