/**
 * Records of the files of an export, each with its place.
 *
 * @module
 */
import { isObject } from "../hook/transcript.ts";
import type { JsonObject } from "../../lib/json.ts";
import { messageOf } from "../../lib/errors.ts";
import { OperationError } from "../../operations/report.ts";
import { exportFiles } from "./archive.ts";
import type { Found } from "./found.ts";
import { JsonRecords, type JsonRecord } from "./json-records.ts";

export type ReadRecord = { readonly place: string; readonly name: string } & (
  | { readonly record: JsonObject }
  | { readonly reason: string }
);

/** Strings of records pile up, since the collector is in no hurry. */
const COLLECTED_EACH_BYTES = 1_048_576;

/**
 * @param lists - keys of arrays of records in an object around them
 * @throws {OperationError} for a path that cannot be read
 */
export async function* recordsOf(
  paths: readonly string[],
  isWanted: (name: string) => boolean,
  lists: readonly string[],
): AsyncGenerator<ReadRecord> {
  let read = 0;
  for await (const { place, name, chunks } of exportFiles(paths, isWanted)) {
    const records = new JsonRecords(lists);
    const found = (one: JsonRecord): ReadRecord => {
      const at = { place: `${place}, record ${one.number}`, name };
      if ("reason" in one) return { ...at, reason: one.reason };
      return isObject(one.value) ? { ...at, record: one.value as JsonObject } : { ...at, reason: "is not an object" };
    };
    try {
      for await (const chunk of chunks) {
        for (const one of records.take(chunk)) yield found(one);
        read += chunk.length;
        if (read > COLLECTED_EACH_BYTES) [read] = [0, Bun.gc(true)];
      }
      for (const one of records.end()) yield found(one);
    } catch (error) {
      // A file of an archive is damaged from here on.
      yield { place, name, reason: `cannot be read to its end: ${messageOf(error)}` };
    }
  }
}

/** A record, or a part of one, with what it gives, or why it is none of the source's. */
export interface Placed {
  readonly place: string;
  readonly found: string | Iterable<Found>;
}

/**
 * Gives what records become; those that are none of the source's are skipped.
 *
 * @param nothing - says that none is one, with the first reason
 * @throws {OperationError} with that
 */
export async function* foundInRecords(
  records: AsyncIterable<ReadRecord>,
  placedIn: (record: JsonObject, place: string) => Iterable<Placed>,
  nothing: (first: string | undefined) => string,
): AsyncGenerator<Found> {
  let [first, isAnyKnown]: [string | undefined, boolean] = [undefined, false];
  for await (const read of records) {
    for (const { place, found } of "reason" in read ? [{ place: read.place, found: read.reason }] : placedIn(read.record, read.place)) {
      if (typeof found === "string") {
        first ??= `${place}: ${found}`;
        yield { kind: "skipped", place, reason: found };
      } else {
        isAnyKnown = true;
        yield* found;
      }
    }
  }
  if (!isAnyKnown) throw new OperationError(nothing(first));
}
