/**
 * Users and agents, as sessions and memories name them.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { api, type Named } from "../api.ts";
import { Choices } from "../parts/choices.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Time } from "../parts/time.tsx";
import { usePages } from "../query.ts";

const SHOWN = { "": "Users", agents: "Agents" };

export default function Users() {
  const { query, route } = useLocation();
  const shown = query["show"] === "agents" ? "agents" : "users";
  const pages = usePages<Named>([shown], (after, signal) => api.named(shown, { starting_after: after }, signal));
  return (
    <Page title="Users and agents">
      <div class="bar">
        <Choices
          label="Show"
          value={shown === "users" ? "" : shown}
          choices={SHOWN}
          onChoice={(show) => route(show === "" ? "/dashboard/users" : `/dashboard/users?show=${show}`, true)}
        />
      </div>
      <Listed
        pages={pages}
        noun={shown}
        dependsOn={[shown]}
        empty={
          <p>
            None yet. A session names its agent, and the user for whom that acts, when it is made with <code>POST /v1/sessions</code>.
          </p>
        }
        element="ul"
        class="rows"
      >
        {(found) => found.map((one) => <Row key={one.id} one={one} />)}
      </Listed>
    </Page>
  );
}

function Row({ one: { object, id, last_session_at } }: { one: Named }) {
  const href =
    object === "user"
      ? `/dashboard/users/${encodeURIComponent(id.toWellFormed())}`
      : `/dashboard/sessions?${new URLSearchParams({ agent_id: id })}`;
  return (
    <li data-row tabIndex={-1}>
      <a class="strong" href={href}>
        {id}
      </a>
      <span class="quiet nowrap">
        {last_session_at === null ? (
          "no session left"
        ) : (
          <>
            last session <Time at={last_session_at} />
          </>
        )}
      </span>
    </li>
  );
}
