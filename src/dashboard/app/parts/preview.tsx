/**
 * A look into a session without leaving the list: its state and what happened last. Enter once more opens it.
 *
 * @module
 */
import { api, type Session, type TimelineEntry } from "../api.ts";
import { useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { Dialog } from "./dialog.tsx";
import { Json } from "./json.tsx";
import { Loaded } from "./list.tsx";
import { Time } from "./time.tsx";
import { anchorOf } from "./timeline-entry.tsx";

const LATEST = 6;
const KINDS = "turn,version,memory,fork";
const TEXT_LENGTH = 200;

export function Preview({ id, onClose }: { id: string; onClose: () => void }) {
  const session = useQuery({ queryKey: ["session", id], queryFn: ({ signal }) => api.session(id, signal) });
  return (
    <Dialog title={id} onClose={onClose} wide>
      <div class="stack">
        <p class="row">
          <a class="button primary" href={`/dashboard/sessions/${encodeURIComponent(id)}`}>
            Open
          </a>
        </p>
        <Loaded result={session}>{(session) => <Seen session={session} />}</Loaded>
      </div>
    </Dialog>
  );
}

function Seen({ session }: { session: Session }) {
  const { id, agent_id: agent, user_id: user, turn_count: turns, memory_count: memories, updated_at } = session;
  const latest = useQuery({
    queryKey: ["timeline", id, "latest", updated_at],
    queryFn: ({ signal }) => api.timeline(id, { kinds: KINDS, order: "desc", limit: LATEST }, signal),
  });
  return (
    <>
      <p class="row meta">
        <span>{agent}</span>
        {user !== null && <span>{user}</span>}
        <span>{counted(turns, "turns")}</span>
        <span>{counted(memories, "memories")}</span>
        <Time at={updated_at} />
      </p>
      <Loaded result={latest}>
        {({ data }) => (
          <ul class="peeked">
            {data.map((entry) => (
              <li key={entry.id}>
                <a href={`/dashboard/sessions/${id}#${anchorOf(entry)}`}>{nameOf(entry)}</a>
                <span>{textOf(entry).slice(0, TEXT_LENGTH)}</span>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <h2>State {session.state_version}</h2>
      <Json value={session.state} label="State" />
    </>
  );
}

function nameOf({ kind, turn, version }: TimelineEntry): string {
  if (turn !== undefined) return `Turn ${turn.turn_number}`;
  if (version !== undefined) return `State ${version.version}`;
  return kind === "memory" ? "Memory" : "Fork";
}

function textOf({ turn, version, memory, fork }: TimelineEntry): string {
  if (turn !== undefined) return `${turn.input.content} → ${turn.output.content}`;
  if (memory !== undefined) return memory.content;
  return version?.reasoning ?? version?.source ?? fork?.session_id ?? "";
}
