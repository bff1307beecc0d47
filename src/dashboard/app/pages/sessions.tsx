/**
 * All sessions as stories: what the user said first in each, newest first, by agent, user, name, time and what they were forked from.
 * With words it shows the turns that have them instead. Enter looks into a session without leaving the list.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { boundTo, useMe } from "../access.ts";
import { api, type Session } from "../api.ts";
import { Choices } from "../parts/choices.tsx";
import { Filters, NameFilter, TextFilter, TimeFilter, useFilters, type FiltersInUrl } from "../parts/filters.tsx";
import { FoundTurn } from "../parts/found-turn.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Preview } from "../parts/preview.tsx";
import { SearchField } from "../parts/search-field.tsx";
import { SessionTitle } from "../parts/session-title.tsx";
import { Cell, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { usePages } from "../query.ts";
import { number } from "../words.ts";

const COLUMNS = [
  "Said first",
  "Agent",
  "User",
  "Last change",
  { name: "Turns", kind: "number" },
  { name: "States", kind: "number" },
  { name: "Memories", kind: "number" },
] as const;
const FILTERS = ["agent_id", "user_id", "external_id", "forked_from", "created_after", "created_before", "since", "q"];

const PRESETS = { "": "Any time", "1h": "1 h", "24h": "24 h", "7d": "7 d" };
const HOURS: Readonly<Record<string, number>> = { "1h": 1, "24h": 24, "7d": 7 * 24 };
const MINUTE_MS = 60_000;

/** The beginning of a preset: by the minute, so that a list that is drawn again is the same one. */
function startOf(since: string | undefined): string | undefined {
  const hours = HOURS[since ?? ""];
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  return hours === undefined ? undefined : new Date(now - hours * 60 * MINUTE_MS).toISOString();
}

export function Sessions() {
  const { query } = useLocation();
  const filters = useFilters("sessions", FILTERS);
  const text = filters.values["q"] ?? "";
  const peek = (id: string) => filters.set({ peek: id });
  return (
    <Page title="Sessions">
      <SearchField text={text} label="Search what was said" onSearch={(q) => filters.set({ q })} />
      <Filters filters={filters}>
        <NameFilter label="Agent" name="agent_id" kind="agents" filters={filters} />
        <NameFilter label="User" name="user_id" kind="users" filters={filters} />
        {text === "" && <OfSessions filters={filters} />}
      </Filters>
      {text === "" ? <SessionList filters={filters} onPeek={peek} /> : <TurnList filters={filters} text={text} />}
      {query["peek"] && <Preview id={query["peek"]} onClose={() => peek("")} />}
    </Page>
  );
}

/** Filters that a search in turns does not take. */
function OfSessions({ filters }: { filters: FiltersInUrl }) {
  return (
    <>
      <TextFilter label="External id" name="external_id" filters={filters} />
      <TextFilter label="Forks of" name="forked_from" placeholder="sess_…" filters={filters} />
      <Choices
        label="Created within"
        value={filters.values["since"] ?? ""}
        choices={PRESETS}
        onChoice={(since) => filters.set({ since, created_after: "", created_before: "" })}
      />
      <details class="exact">
        <summary>Exact times</summary>
        <div class="row">
          <TimeFilter label="Created after" name="created_after" filters={filters} />
          <TimeFilter label="Created before" name="created_before" filters={filters} />
        </div>
      </details>
    </>
  );
}

function SessionList({ filters, onPeek }: { filters: FiltersInUrl; onPeek: (id: string) => void }) {
  const { since, q: _, ...asked } = filters.values;
  const wanted = { created_after: startOf(since), ...asked, include: "first_input,rollback_count" };
  const pages = usePages(["sessions", wanted], (after, signal) => api.sessions({ ...wanted, starting_after: after }, signal));
  const me = useMe();
  const seesUsers = me !== undefined && boundTo(me) === null;
  return (
    <Listed
      pages={pages}
      noun="sessions"
      dependsOn={[seesUsers]}
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
        <Table columns={COLUMNS} class="stories" stacked>
          {pages}
        </Table>
      )}
    >
      {(sessions) => sessions.map((session) => <Row key={session.id} session={session} seesUsers={seesUsers} onPeek={onPeek} />)}
    </Listed>
  );
}

interface RowProps {
  session: Session;
  /** False for a key that is bound to one: there is no page of users for it. */
  seesUsers: boolean;
  onPeek: (id: string) => void;
}

function Row({ session, seesUsers, onPeek }: RowProps) {
  const { id, agent_id: agent, user_id: user } = session;
  return (
    <tr role="row" data-row tabIndex={-1}>
      <Cell class="story">
        <div>
          <button class="small icon" aria-label={`Preview ${id}`} title="Preview" onClick={() => onPeek(id)}>
            ▸
          </button>
          <SessionTitle session={session} />
        </div>
      </Cell>
      <Cell name="Agent" title={agent}>
        <a class="plain" href={`/dashboard/sessions?${new URLSearchParams({ agent_id: agent })}`}>
          {agent}
        </a>
      </Cell>
      <Cell name="User" title={user ?? undefined}>
        {user === null && <span class="quiet">none</span>}
        {user !== null && !seesUsers && user}
        {user !== null && seesUsers && (
          <a class="plain" href={`/dashboard/users/${encodeURIComponent(user)}`}>
            {user}
          </a>
        )}
      </Cell>
      <Cell name="Last change">
        <Time at={session.updated_at} />
      </Cell>
      <Cell name="Turns" class="number">
        {number(session.turn_count)}
      </Cell>
      <Cell name="States" class="number">
        {number(session.state_version + 1)}
      </Cell>
      <Cell name="Memories" class="number">
        {number(session.memory_count)}
      </Cell>
    </tr>
  );
}

/** Turns that have all the words, newest first. */
function TurnList({ filters, text }: { filters: FiltersInUrl; text: string }) {
  const { agent_id, user_id } = filters.values;
  const asked = { q: text, agent_id, user_id };
  const pages = usePages(["turns", asked], (after, signal) => api.turns({ ...asked, starting_after: after }, signal));
  return (
    <Listed
      pages={pages}
      noun="turns"
      dependsOn={[text]}
      empty={
        <p>
          No turn has all of these words. Turns of sessions whose <code>index_turns</code> is <code>off</code> are not searched.
        </p>
      }
      element="ul"
      class="rows"
    >
      {(turns) => turns.map((turn) => <FoundTurn key={turn.id} turn={turn} words={text} />)}
    </Listed>
  );
}
