/**
 * One user: how much there is and what came last, a key for them, an export of everything, and its erasure.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useRoute } from "preact-iso";
import { api, type Erasure, type UserDetails } from "../api.ts";
import { useCan } from "../access.ts";
import { Dialog } from "../parts/dialog.tsx";
import { ExportUser } from "../parts/export-user.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { CreateKey } from "../parts/key-dialogs.tsx";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { LatestOfUser } from "../parts/user-latest.tsx";
import { changed, useQuery } from "../query.ts";
import { number } from "../words.ts";

const LOOK_MS = 500;

type Opened = "key" | "erase" | null;

export default function User() {
  const { params } = useRoute();
  const id = params["id"] ?? "";
  const result = useQuery({ queryKey: ["user", id], queryFn: ({ signal }) => api.user(id, signal) });
  const erasure = useSignal<Erasure | null>(null);
  const opened = useSignal<Opened>(null);
  const close = () => (opened.value = null);
  return (
    <Page
      title={id}
      within={["/dashboard/users", "Users"]}
      actions={result.data !== undefined && erasure.value === null && <Actions user={result.data} opened={opened} />}
    >
      {erasure.value === null ? (
        <Loaded result={result}>
          {(user) => (
            <>
              <Counts user={user} />
              <LatestOfUser id={id} />
            </>
          )}
        </Loaded>
      ) : (
        <Report id={id} begun={erasure.value} />
      )}
      {opened.value === "key" && <CreateKey userId={id} onClose={close} />}
      {opened.value === "erase" && <EraseUser id={id} onErased={(begun) => (erasure.value = begun)} onClose={close} />}
    </Page>
  );
}

function Actions({ user, opened }: { user: UserDetails; opened: Signal<Opened> }) {
  const mayAdmin = useCan("admin");
  return (
    <>
      <ExportUser user={user} />
      {mayAdmin && (
        <>
          <button onClick={() => (opened.value = "key")}>Create a key</button>
          <button class="danger" onClick={() => (opened.value = "erase")}>
            Erase
          </button>
        </>
      )}
    </>
  );
}

function Counts({ user: { id, sessions, memories, traces, documents, more } }: { user: UserDetails }) {
  const all = (screen: string) => `/dashboard/${screen}?${new URLSearchParams({ user_id: id })}`;
  return (
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
const WORDS: Readonly<Record<string, string>> = {
  versions: "states",
  answers: "idempotent answers",
  traces: "traces kept without content",
};

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
