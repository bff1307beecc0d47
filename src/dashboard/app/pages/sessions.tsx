/**
 * All sessions, newest first, by agent, user, time and what they were forked from. Enter looks into one without leaving the list.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { api, type Session } from "../api.ts";
import { Filters, NameFilter, TextFilter, TimeFilter, useFilters } from "../parts/filters.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Preview } from "../parts/preview.tsx";
import { Cell, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { usePages } from "../query.ts";
import { number } from "../words.ts";

const COLUMNS = [
  "Session",
  "Agent",
  "User",
  { name: "State", kind: "number" },
  { name: "Turns", kind: "number" },
  { name: "Memories", kind: "number" },
  "Last change",
  "Expires",
] as const;
const FILTERS = ["agent_id", "user_id", "forked_from", "created_after", "created_before"];

export function Sessions() {
  const { query } = useLocation();
  const filters = useFilters("sessions", FILTERS);
  const pages = usePages(["sessions", filters.values], (after, signal) =>
    api.sessions({ ...filters.values, starting_after: after }, signal),
  );
  const peek = (id: string) => filters.set({ peek: id });
  return (
    <Page title="Sessions">
      <Filters filters={filters}>
        <NameFilter label="Agent" name="agent_id" kind="agents" filters={filters} />
        <NameFilter label="User" name="user_id" kind="users" filters={filters} />
        <TextFilter label="Forks of" name="forked_from" placeholder="sess_…" filters={filters} />
        <TimeFilter label="Created after" name="created_after" filters={filters} />
        <TimeFilter label="Created before" name="created_before" filters={filters} />
      </Filters>
      <Listed
        pages={pages}
        noun="sessions"
        empty={
          filters.isSet ? (
            <p>No session matches these filters.</p>
          ) : (
            <p>
              No session yet. An agent makes one with <code>POST /v1/sessions</code>.
            </p>
          )
        }
        element="tbody"
        frame={(pages) => (
          <Table columns={COLUMNS} stacked>
            {pages}
          </Table>
        )}
      >
        {(sessions) => sessions.map((session) => <Row key={session.id} session={session} onPeek={peek} />)}
      </Listed>
      {query["peek"] && <Preview id={query["peek"]} onClose={() => peek("")} />}
    </Page>
  );
}

function Row({ session: { id, ...session }, onPeek }: { session: Session; onPeek: (id: string) => void }) {
  return (
    <tr role="row" data-row tabIndex={-1}>
      <Cell>
        <button class="small icon" aria-label={`Preview ${id}`} title="Preview" onClick={() => onPeek(id)}>
          ▸
        </button>{" "}
        <a href={`/dashboard/sessions/${id}`}>
          <code>{id}</code>
        </a>
      </Cell>
      <Cell name="Agent" title={session.agent_id}>
        {session.agent_id}
      </Cell>
      <Cell name="User" title={session.user_id ?? undefined}>
        {session.user_id ?? <span class="quiet">none</span>}
      </Cell>
      <Cell name="State" class="number">
        {number(session.state_version)}
      </Cell>
      <Cell name="Turns" class="number">
        {number(session.turn_count)}
      </Cell>
      <Cell name="Memories" class="number">
        {number(session.memory_count)}
      </Cell>
      <Cell name="Last change">
        <Time at={session.updated_at} />
      </Cell>
      <Cell name="Expires">{session.ttl_expires_at === null ? "never" : <Time at={session.ttl_expires_at} />}</Cell>
    </tr>
  );
}
