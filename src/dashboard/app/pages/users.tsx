/**
 * Users and agents, as sessions, memories and documents name them: users by name, of which a beginning can be looked for, or by
 * their newest session.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { api, type Named } from "../api.ts";
import { Choices } from "../parts/choices.tsx";
import { Filters, TextFilter, useFilters } from "../parts/filters.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Time } from "../parts/time.tsx";
import { usePages } from "../query.ts";
import { counted } from "../words.ts";

const SHOWN = { "": "Users", agents: "Agents" };
const ORDERS = { "": "By name", last_seen: "By newest session" };
const FILTERS = ["prefix"];

export default function Users() {
  const { query, route } = useLocation();
  const shown = query["show"] === "agents" ? "agents" : "users";
  const order = query["order"] === "last_seen" ? "last_seen" : "";
  const filters = useFilters("users", FILTERS);
  const asked = shown === "agents" ? {} : { order, ...(order === "" && filters.values) };
  const pages = usePages<Named>([shown, asked], (after, signal) => api.named(shown, { ...asked, starting_after: after }, signal));
  return (
    <Page title="Users and agents">
      <div class="bar">
        <Choices
          label="Show"
          value={shown === "users" ? "" : shown}
          choices={SHOWN}
          onChoice={(show) => route(show === "" ? "/dashboard/users" : `/dashboard/users?show=${show}`, true)}
        />
        {shown === "users" && (
          // By newest session, names that begin alike do not follow each other.
          <Choices label="Order" value={order} choices={ORDERS} onChoice={(order) => filters.set({ order, prefix: "" })} />
        )}
      </div>
      {shown === "users" && order === "" && (
        <Filters filters={filters} hasTexts={false}>
          <TextFilter label="Name begins with" name="prefix" filters={filters} />
        </Filters>
      )}
      <Listed
        pages={pages}
        noun={shown}
        dependsOn={[shown]}
        empty={
          filters.isSet ? (
            <p>No name begins so; upper and lower case differ.</p>
          ) : (
            <p>
              None yet. A session names its agent, and the user for whom that acts, when it is made with <code>POST /v1/sessions</code>.
            </p>
          )
        }
        element="ul"
        class="rows"
      >
        {(found) => found.map((one) => <Row key={one.id} one={one} />)}
      </Listed>
    </Page>
  );
}

function Row({ one }: { one: Named }) {
  const { object, id, last_session_at } = one;
  const href =
    object === "user" ? `/dashboard/users/${encodeURIComponent(id)}` : `/dashboard/sessions?${new URLSearchParams({ agent_id: id })}`;
  return (
    <li data-row tabIndex={-1}>
      <a class="strong" href={href}>
        {id}
      </a>
      <span class="quiet user-facts">
        {one.object === "user" && (
          <>
            <span>
              {counted(one.sessions, "sessions")}, {counted(one.memories, "memories")}
              {one.more && " or more"}
              {one.documents > 0 && `, ${counted(one.documents, "documents")}`}
            </span>
            {" · "}
          </>
        )}
        {last_session_at === null ? (
          "no session left"
        ) : (
          <span>
            last session <Time at={last_session_at} />
          </span>
        )}
      </span>
    </li>
  );
}
