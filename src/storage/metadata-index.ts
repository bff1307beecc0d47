/**
 * Entries of metadata in an index of equalities: one for each text, number, truth and null at its top.
 *
 * An entry is a short hash of name and value, so that all that pass are among those under one, and few others: rows are compared as well.
 * Longer texts are in it by their beginning. A memory with more members than are indexed is in a list that every search by this index
 * looks at.
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { hashOf } from "./keys.ts";

const MEMBERS_MAX = 32;
const TEXT_LENGTH_MAX = 128;
/** Characters of a hash: of a million different values about one pair in ten million shares one. */
const HASH_LENGTH = 11;
/** Prefix of memories with too many members; not in the alphabet of hashes. */
const TOO_MANY = "*";

type Scalar = string | number | boolean | null;

/** Prefixes of the entries of metadata. */
export function metadataPrefixes(metadata: JsonObject): string[] {
  const members = indexedMembers(metadata);
  return members.length > MEMBERS_MAX ? [TOO_MANY] : members.map(([name, value]) => prefixOf(name, value));
}

/** Prefixes under which everything is that has one of these values; undefined where the index does not tell. */
export function equalityPrefixes(name: string, values: readonly JsonValue[]): string[] | undefined {
  if (name.includes(".") || !values.every(isScalar)) return undefined;
  return [...values.map((value) => prefixOf(name, value)), TOO_MANY];
}

/** The part of metadata that decides its entries. */
export function indexedPart(metadata: JsonObject): JsonObject {
  return Object.fromEntries(indexedMembers(metadata).slice(0, MEMBERS_MAX + 1));
}

/** A name with a dot is left out: no path leads to it. */
function indexedMembers(metadata: JsonObject): [name: string, value: Scalar][] {
  return Object.entries(metadata).flatMap(([name, value]): [string, Scalar][] =>
    isScalar(value) && !name.includes(".") ? [[name, beginningOf(value)]] : [],
  );
}

function prefixOf(name: string, value: Scalar): string {
  return hashOf(JSON.stringify(["metadata", name, beginningOf(value)])).slice(0, HASH_LENGTH);
}

function beginningOf(value: Scalar): Scalar {
  return typeof value === "string" ? value.slice(0, TEXT_LENGTH_MAX) : value;
}

function isScalar(value: JsonValue | undefined): value is Scalar {
  return value !== undefined && (typeof value !== "object" || value === null);
}
