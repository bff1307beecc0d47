/**
 * Deletes the memories that pass a filter, whatever their status: so no older fact comes back by it.
 *
 * A dry run deletes nothing and answers with a token: the number of memories that it counted, the newest id of them, and a digest of what
 * they said. With that token exactly these go. Memories that were added since have later ids and stay; where one was changed or is gone,
 * nothing goes.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { ApiError } from "../lib/errors.ts";
import { homeOfUser, withPrefix, type BareId } from "../lib/ids.ts";
import { jsonArray, jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { hashKey, hashOf, successor } from "../storage/keys.ts";
import { memories } from "../storage/tables.ts";
import { commitFor, type Caller } from "../traces/record.ts";
import type { MemoryDeps } from "./deps.ts";
import { rowFilterOf, type RowFilter } from "./filter.ts";
import { newestFiltered } from "./filtered.ts";
import { forgetToken, type Counted } from "./forget-token.ts";
import { memoryScope, removeMemory } from "./memories.ts";
import { memoryJson, type FoundMemory } from "./record.ts";
import { shownMemories } from "./validity.ts";

export interface Forgetting {
  readonly filter: RecordFilter;
  readonly dryRun: boolean;
  readonly limit: number;
  readonly reason?: string | undefined;
  readonly token?: Counted | undefined;
}

/** Memories that pass, newest first. */
interface Passing {
  readonly keys: readonly BareId[];
  readonly hasMore: boolean;
  readonly isPartial: boolean;
  readonly rowFilter: RowFilter;
}

/** @throws {ApiError} `version_conflict` with the token of a dry run where the memories that it counted are not the same any more */
export async function forgetMemories(deps: MemoryDeps, caller: Caller, forgetting: Forgetting): Promise<JsonText> {
  const { dryRun, token: counted, reason } = forgetting;
  if (counted !== undefined) refuseOtherRun(counted, forgetting);
  const passing = await passingOf(deps, caller, forgetting);
  if (dryRun && caller.once === undefined) return deps.store.read((reader) => dryRunJson(reader, passing));
  const json = await commitFor(deps, caller, homeOfUser(caller.owner.userId ?? null), (tx) => {
    const found = foundOf(tx, passing);
    const users = Array.from(new Set(found.flatMap(({ row }) => row.userId ?? [])), hashKey);
    if (dryRun) return { json: dryRunJson(tx, passing), users, asksForRoom: "always" as const };
    if (counted !== undefined && digestOf(found) !== counted.digest) throw changedSince();
    eachFetched(found, (memory) => removeMemory(tx, caller, memory, reason));
    return { json: resultJson(passing, { dry_run: false, count: found.length }), users, asksForRoom: "never" as const };
  });
  if (!dryRun) deps.vectors.changed();
  return json;
}

async function passingOf({ store }: MemoryDeps, { owner }: Caller, { filter, limit, token: counted }: Forgetting): Promise<Passing> {
  const rowFilter = rowFilterOf({ filter })!;
  const scope = await store.read((reader) => memoryScope(reader, owner, { filter }));
  if (scope === undefined) return { keys: [], hasMore: false, isPartial: false, rowFilter };
  const before = counted && successor(counted.newest);
  const wanted = counted?.count ?? limit;
  const filtered = { postings: scope.filter, shown: { status: "all" as const, rowFilter }, before };
  const { keys, isPartial } = await newestFiltered(store, filtered, wanted + 1);
  return { keys: keys.slice(0, wanted), hasMore: isPartial || keys.length > wanted, isPartial, rowFilter };
}

/** The memories that pass still. */
function foundOf(reader: Reader, { keys, rowFilter }: Passing): FoundMemory[] {
  reader.ahead(memories, keys);
  const find = shownMemories(reader, { status: "all", rowFilter });
  return eachFetched(keys, (key) => {
    const row = find(key);
    return row === undefined ? [] : [{ id: withPrefix("mem", key), key, row }];
  }).flat();
}

function dryRunJson(reader: Reader, passing: Passing): JsonText {
  const found = foundOf(reader, passing);
  const examples = found.slice(0, LIMITS.forgottenShown).map(({ id, row }) => memoryJson(reader, id, row));
  const [newest] = found;
  const token = newest && toJson(forgetToken({ newest: newest.key, count: found.length, digest: digestOf(found) }));
  return resultJson(passing, { dry_run: true, count: found.length }, { examples: jsonArray(examples), token });
}

function resultJson(
  { hasMore, isPartial }: Passing,
  members: { dry_run: boolean; count: number },
  ofDryRun: { examples?: JsonText; token?: JsonText | undefined } = {},
): JsonText {
  const partial = isPartial ? toJson(true) : undefined;
  return jsonWith({ object: "forget_result", ...members }, { ...ofDryRun, has_more: toJson(hasMore), partial });
}

/** A vector that is made meanwhile changes no memory. */
function digestOf(found: readonly FoundMemory[]): string {
  const said = found.map(({ id, row }) => {
    const { embedding: _, ...rest } = row;
    return id + hashOf(JSON.stringify(rest));
  });
  return hashOf(said.join());
}

/** @throws {ApiError} `invalid_request` where the token of a dry run is sent with what cannot be that request */
function refuseOtherRun({ count }: Counted, { dryRun, limit }: Forgetting): void {
  if (dryRun) throw new ApiError("invalid_request", "token must be left out of a dry run: it is for dry_run: false.", { param: "token" });
  if (count <= limit) return;
  throw new ApiError("invalid_request", `limit must be at least the count of the dry run, ${count}; got ${limit}.`, { param: "limit" });
}

function changedSince(): ApiError {
  const message = "The memories that the dry run counted have changed since, or its filter was another one. Nothing was deleted.";
  return new ApiError("version_conflict", message, { param: "token" });
}
