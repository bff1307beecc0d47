/**
 * All sessions, newest first, by agent, user and time.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { api, type Session } from "../api.ts";
import { Filters, TextFilter, TimeFilter, useFilters } from "../parts/filters.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Time } from "../parts/time.tsx";
import { usePages } from "../query.ts";

const FILTERS = ["agent_id", "user_id", "created_after", "created_before"];

export function Sessions() {
  const filters = useFilters("sessions", FILTERS);
  const pages = usePages(["sessions", filters.values], (after, signal) =>
    api.sessions({ ...filters.values, starting_after: after }, signal),
  );
  return (
    <Page title="Sessions">
      <Filters filters={filters}>
        <TextFilter label="Agent" name="agent_id" filters={filters} />
        <TextFilter label="User" name="user_id" filters={filters} />
        <TimeFilter label="Created after" name="created_after" filters={filters} />
        <TimeFilter label="Created before" name="created_before" filters={filters} />
      </Filters>
      <Listed
        pages={pages}
        noun="sessions"
        empty={
          <p>
            No session {filters.isSet ? "matches" : "yet"}. An agent makes one with <code>POST /v1/sessions</code>.
          </p>
        }
        frame={(rows) => (
          <div class="table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Session</th>
                  <th scope="col">Agent</th>
                  <th scope="col">User</th>
                  <th scope="col" class="number">
                    Version
                  </th>
                  <th scope="col" class="number">
                    Turns
                  </th>
                  <th scope="col" class="number">
                    Memories
                  </th>
                  <th scope="col">Last change</th>
                  <th scope="col">Expires</th>
                </tr>
              </thead>
              <tbody>{rows}</tbody>
            </table>
          </div>
        )}
      >
        {(sessions) => sessions.map((session) => <Row key={session.id} session={session} />)}
      </Listed>
    </Page>
  );
}

function Row({ session }: { session: Session }) {
  const { route } = useLocation();
  const href = `/dashboard/sessions/${session.id}`;
  return (
    <tr data-row tabIndex={-1} onDblClick={() => route(href)}>
      <td>
        <a href={href}>
          <code>{session.id}</code>
        </a>
      </td>
      <td>{session.agent_id}</td>
      <td>{session.user_id ?? <span class="quiet">none</span>}</td>
      <td class="number">{session.state_version}</td>
      <td class="number">{session.turn_count}</td>
      <td class="number">{session.memory_count}</td>
      <td>
        <Time at={session.updated_at} />
      </td>
      <td>
        <Time at={session.ttl_expires_at} />
      </td>
    </tr>
  );
}
