/**
 * All sessions as stories: what the user said first in each, newest first, by agent, user, name, time and what they were forked from.
 * With words it shows the turns that have them instead. Enter looks into a session without leaving the list.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { useMemo } from "preact/hooks";
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
import { useSorted } from "../parts/sorted.ts";
import { usePages } from "../query.ts";
import { number } from "../words.ts";

/** Columns, and by what each is sorted. */
const COLUMNS: Record<string, { name: string; kind?: "number"; of: (session: Session) => string | number }> = {
  said: { name: "Said first", of: ({ first_input, external_id, id }) => first_input ?? external_id ?? id },
  agent: { name: "Agent", of: ({ agent_id }) => agent_id },
  user: { name: "User", of: ({ user_id }) => user_id ?? "" },
  changed: { name: "Last change", of: ({ updated_at }) => Date.parse(updated_at) },
  turns: { name: "Turns", kind: "number", of: ({ turn_count }) => turn_count },
  states: { name: "States", kind: "number", of: ({ state_version }) => state_version },
  memories: { name: "Memories", kind: "number", of: ({ memory_count }) => memory_count },
};

/** The order that the address names: a column, with `-` before it from the greatest on. */
function useOrder(filters: FiltersInUrl) {
  const { query } = useLocation();
  const [, sign, name = ""] = /^(-?)([a-z]+)$/.exec(query["sort"] ?? "") ?? [];
  const column = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : undefined;
  const descending = sign === "-";
  const order = useMemo(() => column && { of: column.of, descending }, [column, descending]);
  const columns = Object.entries(COLUMNS).map(([id, { name, kind, of }]) => {
    const sorted = of !== order?.of ? ("none" as const) : descending ? ("descending" as const) : ("ascending" as const);
    // Of numbers and times the greatest are looked for.
    const isGreatestFirst = kind === "number" || id === "changed";
    const next = sorted === "none" ? isGreatestFirst : !descending;
    return { name, ...(kind && { kind }), sorted, onSort: () => filters.set({ sort: next ? `-${id}` : id }) };
  });
  return { order, columns, onReset: () => filters.set({ sort: "" }) };
}

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
  const { order, columns, onReset } = useOrder(filters);
  const read = usePages(["sessions", wanted], (after, signal) => api.sessions({ ...wanted, starting_after: after }, signal));
  const pages = useSorted(read, order);
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
      frame={(bodies) => (
        <>
          {order !== undefined && (
            <p class="row quiet">
              {read.hasNextPage ? `Sorted are the newest ${number(pages.data?.pages[0]?.data.length ?? 0)} sessions.` : "All are sorted."}
              <button class="small" onClick={onReset}>
                Newest first
              </button>
            </p>
          )}
          <Table columns={columns} class="stories" stacked>
            {bodies}
          </Table>
        </>
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
