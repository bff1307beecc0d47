/**
 * Owner of a turn that is searched: its session's user and agent, as its row has them.
 *
 * @module
 */
import { hashKey } from "./keys.ts";
import type { IndexedTurnRow, SessionRow } from "./tables.ts";

export function ownerOfTurns({ userId, agentId }: Pick<SessionRow, "userId" | "agentId">): Pick<IndexedTurnRow, "user" | "agent"> {
  return { ...(userId === null ? {} : { user: hashKey(userId) }), agent: hashKey(agentId) };
}
