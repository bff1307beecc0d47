/**
 * Reads of a request that a store fetches with the first of them.
 *
 * @module
 */
import { bare, isId } from "../lib/ids.ts";
import type { Reader } from "./access.ts";
import { isFilled } from "./fills.ts";
import { MAX_KEY } from "./keys.ts";
import {
  erasures,
  memories,
  meta,
  provider,
  PROVIDER_KEY,
  removals,
  sessions,
  TURN_INDEXING_KEY,
  turnIndexing,
  turns,
  TURNS_SEARCHED,
  versions,
} from "./tables.ts";

type Read = (reader: Reader) => unknown;

/** Parts of what there is of a session, of what every search reads, and of how turns are found. */
export type Ahead = "state" | "turns" | "search" | "index of turns";

const ofSearches: readonly Read[] = [
  (reader) => reader.isEmpty(erasures),
  (reader) => reader.isEmpty(removals),
  (reader) => reader.get(provider, PROVIDER_KEY),
  (reader) => isFilled(reader, memories.index.byMetadata),
];

const indexOfTurns: readonly Read[] = [
  (reader) => reader.has(meta, TURNS_SEARCHED),
  (reader) => reader.get(turnIndexing, TURN_INDEXING_KEY),
  (reader) => reader.get(provider, PROVIDER_KEY),
];

/** @param turnsMax - how many turns a context shows unless it is asked for more */
export function readsAhead(sessionId: unknown, parts: readonly Ahead[], turnsMax: number): Read[] {
  const reads: Read[] = parts.includes("search") ? [...ofSearches] : [];
  if (parts.includes("index of turns")) reads.push(...indexOfTurns);
  if (typeof sessionId !== "string" || !isId("sess", sessionId)) return reads;
  const key = bare(sessionId);
  reads.push(
    (reader) => reader.get(sessions, key),
    (reader) => reader.isEmpty(erasures),
  );
  const newest = (limit: number) => ({ from: key, to: key + MAX_KEY, limit, descending: true });
  if (parts.includes("state")) reads.push((reader) => reader.rows(versions, newest(1)));
  if (parts.includes("turns")) reads.push((reader) => reader.rows(turns, newest(turnsMax)));
  return reads;
}
