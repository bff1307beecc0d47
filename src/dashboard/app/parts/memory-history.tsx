/**
 * History of a memory: the contents that it had, and the memories before and after it, from one to the next.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type MemoryHistory as History } from "../api.ts";
import { useQuery } from "../query.ts";
import { Actor } from "./actor.tsx";
import { Dialog } from "./dialog.tsx";
import { Loaded } from "./list.tsx";
import { LongText } from "./long-text.tsx";
import { Time } from "./time.tsx";

/** @param id - the memory that it begins with; each neighbour is opened in its place */
export function MemoryHistory({ id, onClose }: { id: string; onClose: () => void }) {
  const shown = useSignal(id);
  const result = useQuery({
    queryKey: ["memories", "history", shown.value],
    queryFn: ({ signal }) => api.memoryHistory(shown.value, signal),
  });
  const open = (neighbour: string) => (shown.value = neighbour);
  return (
    <Dialog title="History of a memory" onClose={onClose} wide>
      <p>
        <a href={`/dashboard/go/${shown.value}`}>
          <code>{shown.value}</code>
        </a>
      </p>
      <Loaded result={result} missing={shown.value !== id && <Neighbours title="Back to" ids={[id]} onOpen={open} />}>
        {({ data, supersedes, superseded_by: by }) => (
          <>
            <Neighbours title="Superseded by" ids={by === null ? [] : [by]} onOpen={open} />
            <Contents contents={data} />
            <Neighbours title="Supersedes" ids={supersedes} onOpen={open} />
          </>
        )}
      </Loaded>
    </Dialog>
  );
}

function Neighbours({ title, ids, onOpen }: { title: string; ids: readonly string[]; onOpen: (id: string) => void }) {
  if (ids.length === 0) return null;
  return (
    <p class="row">
      {title}
      {ids.map((id) => (
        <button key={id} type="button" class="small" onClick={() => onOpen(id)}>
          <code>{id}</code>
        </button>
      ))}
    </p>
  );
}

/** Newest first: the present content, then those before. */
function Contents({ contents }: { contents: History["data"] }) {
  return (
    <ol class="cards">
      {contents.map(({ content, written_at: at, actor, reason }, i) => (
        <li key={i}>
          <LongText text={content} />
          <div class="row meta">
            <span class="kind">{i === 0 ? "now" : "before"}</span>
            <Time at={at} />
            {actor !== null && <Actor prefix={actor} />}
            {reason !== null && <span>{reason}</span>}
          </div>
        </li>
      ))}
    </ol>
  );
}
