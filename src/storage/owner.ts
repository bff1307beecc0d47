/**
 * Owner whose records an API key sees and changes: those of one user, of one agent, of one agent for one user, or everybody's.
 *
 * This is the one place that decides it. What belongs to somebody else is found in the same way as what does not exist: by a missing
 * index entry, before any row is read, so that neither the answer nor the time it takes tells the two apart. Lists and searches
 * walk the same entries; a key is never given a posting of others.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "./access.ts";
import { hashKey } from "./keys.ts";
import type { AnyTable } from "./tables.ts";
import { matches, posting, type Filter } from "./walk.ts";

/** Records of this user and this agent; of any where one is left out. */
export interface Owner {
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
}

/** No limit: the owner of an unbound key, of timers and of commands. */
export const EVERYBODY: Readonly<Owner> = {};

/** The indexes of a table whose records belong to somebody. */
interface OwnedIndexes {
  readonly byUser: AnyTable;
  readonly byAgent: AnyTable;
}

export function isBound({ userId, agentId }: Owner): boolean {
  return userId !== undefined || agentId !== undefined;
}

/** @throws {ApiError} `permission_denied` for a bound key, where an answer is of the records of all */
export function refuseBound(owner: Owner): void {
  if (isBound(owner))
    throw new ApiError("permission_denied", "This concerns all users and agents: it needs a key that is not bound to one.");
}

/** Posting of the records of an owner; no posting at all where these are everybody's. */
export function ownedPostings({ userId, agentId }: Owner, { byUser, byAgent }: OwnedIndexes): Filter {
  const postings = [];
  if (userId !== undefined) postings.push(posting(byUser, hashKey(userId)));
  if (agentId !== undefined) postings.push(posting(byAgent, hashKey(agentId)));
  return postings;
}

/** Checks whether a record is the owner's; false for one that does not exist, unless the owner is everybody. */
export function mayBeOwned(reader: Reader, owner: Owner, index: OwnedIndexes, id: BareId): boolean {
  if (!isBound(owner)) return true;
  // All of them are looked at: one that stopped at the first would tell records of the same user from those that are not there.
  const missing = ownedPostings(owner, index).filter((one) => !matches(reader, [one], id));
  return missing.length === 0;
}

/** Checks whether a row is one of an owner's records, for callers that are sent rows and ask for none. */
export function isOwned({ userId, agentId }: Owner, row: { userId?: string | undefined; agentId?: string | undefined }): boolean {
  return (userId === undefined || row.userId === userId) && (agentId === undefined || row.agentId === agentId);
}

/** Owner of the records that are asked for by naming a user or an agent; undefined where none of them can be the owner's. */
export function narrowed(owner: Owner, named: Owner): Owner | undefined {
  const isOther = (own: string | undefined, other: string | undefined) => own !== undefined && other !== undefined && own !== other;
  if (isOther(owner.userId, named.userId) || isOther(owner.agentId, named.agentId)) return undefined;
  return { userId: owner.userId ?? named.userId, agentId: owner.agentId ?? named.agentId };
}

/**
 * Owner of a new record: the owner's, who may name himself.
 *
 * @throws {ApiError} `permission_denied` for a user or an agent that the key is not bound to
 */
export function ownerOfNew(owner: Owner, named: Owner): Owner {
  const narrow = narrowed(owner, named);
  if (narrow !== undefined) return narrow;
  const field = narrowed({ userId: owner.userId }, named) === undefined ? "user_id" : "agent_id";
  throw new ApiError("permission_denied", `${field} is not the one that this key is bound to.`, { param: field });
}
