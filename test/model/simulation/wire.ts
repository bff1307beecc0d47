/**
 * What passes between the simulation and its model, and what answers are made of.
 *
 * @module
 */
export const DAY_MS = 86_400_000;

export type Json = any;
export type Fields = Record<string, Json>;

export interface Key {
  id: string;
  secret: string;
  scopes: string[];
  tier: string;
  expiresAt: number | null;
  /** When requests came with it. */
  uses: number[];
  /** As it is answered, without the secret and what changes. */
  shown: Json;
  rolledTo?: string;
}

export interface Caller {
  key: Key;
  requestId: string;
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly param?: string,
  ) {
    super(code);
  }
}

/** One request, and how the model answers it. */
export interface Step {
  name: string;
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  scope: string;
  /** Of a success. */
  status: number;
  body?: Fields;
  /** @throws {Refusal} */
  answer(caller: Caller, given: Json): Json;
}

export interface Expected {
  status: number;
  body: Json;
  isReplay: boolean;
}

export interface ListFilter {
  limit?: number | undefined;
  starting_after?: string | undefined;
}

export const iso = (ms: number) => new Date(ms).toISOString();
export const isoOrNull = (ms: number | null | undefined) => (ms === null || ms === undefined ? null : iso(ms));
export const timeOf = (instant: string | null | undefined) => (instant === null || instant === undefined ? null : Date.parse(instant));

/** As JSON carries it: without what is undefined. */
export const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value));

/** One page of records that are given oldest first. */
export function page(records: readonly Json[], { limit = 20, starting_after: cursor }: ListFilter, order = "desc"): Json {
  const inOrder = order === "desc" ? records.toReversed() : records;
  const after = inOrder.filter(({ id }) => cursor === undefined || (order === "desc" ? id < cursor : id > cursor));
  const data = after.slice(0, limit);
  return { object: "list", data, has_more: after.length > limit, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

/** A null removes its key. */
export function merged(before: Fields, changes: Fields): Fields {
  return Object.fromEntries(
    Object.entries({ ...before, ...changes }).filter(([key, value]) => value !== null || !Object.hasOwn(changes, key)),
  );
}

export function diff(before: Fields, after: Fields): Json {
  const only = (object: Fields, other: Fields) => Object.fromEntries(Object.entries(object).filter(([key]) => !Object.hasOwn(other, key)));
  const both = Object.keys(after).filter((key) => Object.hasOwn(before, key));
  const changed = both.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  return {
    added: only(after, before),
    removed: only(before, after),
    modified: Object.fromEntries(changed.map((key) => [key, { from: before[key], to: after[key] }])),
  };
}
