/**
 * Newest sessions and memories of a user, a few of each; the lists have the rest.
 *
 * @module
 */
import { api, type Memory, type Session } from "../api.ts";
import { useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { Loaded } from "./list.tsx";
import { LongText } from "./long-text.tsx";
import { MemoryFacts } from "./memory-facts.tsx";
import { SessionTitle } from "./session-title.tsx";
import { Time } from "./time.tsx";

const SHOWN = 5;

export function LatestOfUser({ id }: { id: string }) {
  const asked = { user_id: id };
  const sessions = useQuery({
    queryKey: ["sessions", asked, "latest"],
    queryFn: ({ signal }) => api.sessions({ ...asked, include: "first_input,rollback_count" }, signal, SHOWN),
  });
  const memories = useQuery({ queryKey: ["memories", asked, "latest"], queryFn: ({ signal }) => api.memories(asked, signal, SHOWN) });
  return (
    <>
      <h2>Latest sessions</h2>
      <Loaded result={sessions}>
        {({ data, has_more }) => (
          <>
            {data.length === 0 && <p class="quiet">None.</p>}
            <ul class="rows" aria-label="Latest sessions">
              {data.map((session) => (
                <SessionRow key={session.id} session={session} />
              ))}
            </ul>
            {has_more && <All screen="sessions" id={id} />}
          </>
        )}
      </Loaded>
      <h2>Latest memories</h2>
      <Loaded result={memories}>
        {({ data, has_more }) => (
          <>
            {data.length === 0 && <p class="quiet">None.</p>}
            <ul class="rows" aria-label="Latest memories">
              {data.map((memory) => (
                <MemoryRow key={memory.id} memory={memory} />
              ))}
            </ul>
            {has_more && <All screen="memories" id={id} />}
          </>
        )}
      </Loaded>
    </>
  );
}

function All({ screen, id }: { screen: "sessions" | "memories"; id: string }) {
  return (
    <p>
      <a href={`/dashboard/${screen}?${new URLSearchParams({ user_id: id })}`}>All {screen} of this user</a>
    </p>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { agent_id: agent, turn_count: turns, memory_count: memories, updated_at } = session;
  return (
    <li data-row tabIndex={-1}>
      <SessionTitle session={session} />
      <p class="row meta">
        <span>{agent}</span>
        <span>{counted(turns, "turns")}</span>
        <span>{counted(memories, "memories")}</span>
        <Time at={updated_at} />
      </p>
    </li>
  );
}

function MemoryRow({ memory }: { memory: Memory }) {
  return (
    <li data-row tabIndex={-1}>
      <LongText text={memory.content} />
      <MemoryFacts memory={memory} />
    </li>
  );
}
