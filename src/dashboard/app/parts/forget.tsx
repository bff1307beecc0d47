/**
 * Deletes all memories that pass the filters of the screen: a dry run counts them, and exactly those go.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type ForgetResult } from "../api.ts";
import { changed, useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { Dialog } from "./dialog.tsx";
import type { FiltersInUrl } from "./filters.tsx";
import { Form, ReasonField } from "./form.tsx";
import { parsedObject } from "./json.tsx";
import { Loaded } from "./list.tsx";
import { toast } from "./toast.tsx";

/** Memories that one request deletes. */
const AT_ONCE = 1_000;

/** The filters as the API takes them; undefined where none is set that narrows. A status narrows nothing: what is past is forgotten too. */
export function forgetFilter({ tags, filter, ...more }: FiltersInUrl["values"]): object | undefined {
  const names = Object.entries(more).filter(([name]) => name !== "status");
  const own = filter === undefined ? undefined : parsedObject(filter).value;
  const all = [
    ...names.map(([name, value]) => ({ [name]: value })),
    ...(tags === undefined ? [] : [{ tags: { $in: tags.split(",").map((tag) => tag.trim()) } }]),
    ...(own === undefined || Object.keys(own).length === 0 ? [] : [own]),
  ];
  if (all.length === 0 || (filter !== undefined && own === undefined)) return undefined;
  return all.length === 1 ? all[0] : { $and: all };
}

export function Forget({ filter, onClose }: { filter: object; onClose: () => void }) {
  const run = useQuery({
    queryKey: ["forget", filter],
    staleTime: Infinity,
    gcTime: 0,
    queryFn: () => api.forget({ filter, dry_run: true, limit: AT_ONCE }),
  });
  return (
    <Dialog title="Forget memories" onClose={onClose} wide>
      <p class="quiet">
        All that pass <code>{JSON.stringify(filter)}</code>, past ones too.
      </p>
      <Loaded result={run}>
        {(dryRun) => <Counted dryRun={dryRun} filter={filter} onClose={onClose} onAgain={() => void run.refetch()} />}
      </Loaded>
    </Dialog>
  );
}

interface CountedProps {
  dryRun: ForgetResult;
  filter: object;
  onClose: () => void;
  onAgain: () => void;
}

function Counted({ dryRun: { count, examples = [], token, has_more: hasMore }, filter, onClose, onAgain }: CountedProps) {
  const reason = useSignal("");
  const forget = async () => {
    const body = { filter, dry_run: false, limit: AT_ONCE, token, ...(reason.value !== "" && { reason: reason.value }) };
    const { count: gone } = await api.forget(body);
    await changed(["memories"], ["sessions"], ["session"]);
    toast(`${counted(gone, "memories")} forgotten`);
    if (hasMore) onAgain();
    else onClose();
  };
  if (count === 0) return <p role="status">No memory passes.</p>;
  return (
    <Form
      submit={`Forget ${counted(count, "memories")}`}
      danger
      onSubmit={forget}
      more={
        <button type="button" onClick={onAgain}>
          Count again
        </button>
      }
    >
      <p role="status">
        {counted(count, "memories")}
        {hasMore && ", and more after these"}. Nothing is deleted yet.
      </p>
      <ul>
        {examples.map(({ id, content }) => (
          <li key={id} class="text">
            {content.slice(0, 200)}
          </li>
        ))}
      </ul>
      {count > examples.length && <p class="quiet">and {counted(count - examples.length, "others")}</p>}
      <ReasonField value={reason} />
    </Form>
  );
}
