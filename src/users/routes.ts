/**
 * Users and agents: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type ApiCaller, type Endpoint } from "../http/endpoint.ts";
import { ListOf } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import { refuseBound } from "../storage/owner.ts";
import type { Deps } from "../traces/record.ts";
import { eraseUser, getErasure } from "./erasure.ts";
import { Agent, Erasure, NameCursor, User, USER_FILTER, UserDetails } from "./schema.ts";
import { getUser, listAgents, listUsers } from "./users.ts";

const users = endpointGroup({ name: "Users", description: "The users and agents that sessions, memories and documents name." });
const path = "/v1/users/{user_id}";
const NOT_BOUND = "Not for a key that is bound to a user or an agent.";

export function userEndpoints(deps: Deps): Endpoint[] {
  return [
    users.list("/v1/users", {
      summary: "List users",
      description: `By name, or those with the newest session first, with counts, which stop at ${LIMITS.listedUserRecordsCountedMax}: all who have a session, a memory or a document. ${NOT_BOUND}`,
      filter: USER_FILTER,
      cursor: NameCursor(LIMITS.userIdLengthMax),
      response: ListOf(User, "A page of users."),
      run: ({ page, filter, caller }) => forAll(caller, () => listUsers(deps, { ...page, ...filter })),
    }),
    users.get(path, {
      summary: "Get a user",
      description:
        `With counts, which stop at ${LIMITS.userRecordsCountedMax}. Found is any user with something that an erasure would remove, also ` +
        `traces or answers kept for an Idempotency-Key alone, who are not in the list. ${NOT_BOUND}`,
      response: UserDetails,
      run: ({ params, caller }) => forAll(caller, () => getUser(deps, params.user_id)),
    }),
    users.erase(path, {
      summary: "Erase a user",
      description:
        "Removes the user's sessions with their states, turns and retrievals, memories with their vectors, documents (also those kept with an agent), events and deliveries of webhooks, and answers " +
        "kept for an Idempotency-Key. Traces stay without their content. From this answer on nothing of it is shown. If there is much, the " +
        "answer says `running`, and the rest is removed in the background, also after a restart. Records that the user gets later are not affected. " +
        "At the end a trace `user.erased` has the counts.\n\n" +
        "`done` says that the store holds none of it, and `freed_space` what of it its files hold: a data file none, free pages included, as they " +
        "are overwritten; while a backup is made or another process reads the store, that waits for its end. On PostgreSQL the database's " +
        "vacuum takes it from its files, and its write-ahead log has it as long as that is kept. Files of the search index have no texts, " +
        "and lose what was removed when they are written next. In a data file that an earlier Cairn has written, free space inside a page is " +
        "overwritten only when the page changes; a `cairn backup` restored has none.\n\n" +
        "Applications that were connected for the user by OAuth are disconnected first.\n\n" +
        "Caches in memory that may have texts of the user are emptied with `done`, and within seconds on other servers of the same database.\n\n" +
        "Kept are, besides the user's name with its traces, API keys that are bound to the user, with their names, and the request ids that " +
        "clients have chosen, in traces.\n\n" +
        "Out of reach are: backups and exports made earlier, what receivers of webhooks and an embedding provider were sent, and spans at an " +
        "OpenTelemetry collector and lines of the log, which have ids of sessions and no content.",
      scope: "admin",
      response: Erasure,
      run: ({ params, caller }) => eraseUser(deps, caller, params.user_id),
    }),
    users.get(`${path}/erasure`, {
      summary: "Get the erasure of a user",
      description: "The progress of a running erasure, or what the last one removed, for as long as its trace `user.erased` is kept.",
      scope: "admin",
      response: Erasure,
      run: ({ params }) => getErasure(deps, params.user_id),
    }),
    users.list("/v1/agents", {
      summary: "List agents",
      description: `In an arbitrary but stable order. ${NOT_BOUND}`,
      cursor: NameCursor(LIMITS.agentIdLengthMax),
      response: ListOf(Agent, "A page of agents."),
      run: ({ page, caller }) => forAll(caller, () => listAgents(deps, page)),
    }),
  ];
}

function forAll<Answer>({ owner }: ApiCaller, answer: () => Answer): Answer {
  refuseBound(owner);
  return answer();
}
