/**
 * A context of before, as the agent got it, and what of it has changed since.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type ContextReplay } from "../api.ts";
import { useQuery } from "../query.ts";
import { Json } from "./json.tsx";
import { Loaded } from "./list.tsx";

/** Read once it is opened. */
export function Replay({ retrievalId }: { retrievalId: string }) {
  const isOpen = useSignal(false);
  return (
    <details class="replay" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary>As the agent got it</summary>
      {isOpen.value && <Replayed retrievalId={retrievalId} />}
    </details>
  );
}

function Replayed({ retrievalId }: { retrievalId: string }) {
  const result = useQuery({
    queryKey: ["replay", retrievalId],
    queryFn: ({ signal }) => api.replay(retrievalId, signal),
  });
  return (
    <Loaded result={result}>
      {({ exact, changes, context }) => (
        <>
          <p class="quiet">{exact ? "Exactly what it got." : "Not all of it is as it was:"}</p>
          {changes.length > 0 && (
            <ul>
              {changes.map(({ kind, id, change }) => (
                <li key={`${kind} ${id}`}>
                  {kind === "memory" && id !== null && change !== "gone" ? (
                    <a href={`/dashboard/go/${id}`}>
                      memory <code>{id}</code>
                    </a>
                  ) : (
                    <>
                      {kind} {id !== null && <code>{id}</code>}
                    </>
                  )}{" "}
                  {SAYS[change]}
                </li>
              ))}
            </ul>
          )}
          <Given context={context} />
        </>
      )}
    </Loaded>
  );
}

const SAYS = {
  edited: "was edited since; this is what it said then",
  rewritten: "was edited since, and what it said then is no longer kept; this is what it says now",
  rolled_back: "was hidden by a rollback since",
  gone: "is gone, or no longer kept",
  hidden: "of others was there, too, which this key may not see",
};

/** The block or the messages that were asked for, or else all of it. */
function Given({ context }: Pick<ContextReplay, "context">) {
  const { text, messages } = context;
  if (text === undefined) return <Json value={messages ?? context} label="Context" />;
  return (
    <pre tabIndex={0} role="region" aria-label="Context">
      {text}
    </pre>
  );
}
