/**
 * Kinds of members: which operators a filter may compare one with, and to what (pure).
 *
 * @module
 */
import type { JsonValue } from "../lib/json.ts";
import { parseInstant } from "../lib/time.ts";

export type Operator = "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" | "$in" | "$nin" | "$exists" | "$all" | "$contains" | "$starts_with";

/** The value that a member is compared with, in the form that records have it in. */
export type Operand = JsonValue;

export interface MemberKind {
  /** For errors: `a text`. */
  readonly name: string;
  readonly operators: readonly Operator[];
  /** Set where `$in` and `$nin` ask for one of its items. */
  readonly isList?: true;
  /** Returns a value as records have it; undefined for one that the member cannot have. */
  operandOf(value: JsonValue): Operand | undefined;
  /** The values that it can have, for errors. */
  readonly expected: string;
}

const EQUALITY = ["$eq", "$ne", "$in", "$nin", "$exists"] as const;
const ORDER = ["$gt", "$gte", "$lt", "$lte"] as const;

/** A member of the caller's own. */
export const ANY: MemberKind = {
  name: "a member",
  operators: [...EQUALITY, ...ORDER, "$all", "$contains", "$starts_with"],
  operandOf: (value) => value,
  expected: "a value",
};

const none = ' ({"$exists": false} for none)';

export const TEXT: MemberKind = {
  name: "a text",
  operators: [...EQUALITY, ...ORDER, "$contains", "$starts_with"],
  operandOf: (value) => (typeof value === "string" ? value : undefined),
  expected: `a text${none}`,
};

export const NUMBER: MemberKind = {
  name: "a number",
  operators: [...EQUALITY, ...ORDER],
  operandOf: (value) => (typeof value === "number" ? value : undefined),
  expected: `a number${none}`,
};

export const TRUTH: MemberKind = {
  name: "true or false",
  operators: EQUALITY,
  operandOf: (value) => (typeof value === "boolean" ? value : undefined),
  expected: "true or false",
};

export const TIME: MemberKind = {
  name: "a time",
  operators: [...EQUALITY, ...ORDER],
  operandOf: (value) => (typeof value === "string" ? parseInstant(value) : undefined),
  expected: `an ISO 8601 time such as 2026-05-07T08:00:00Z${none}`,
};

export const TEXTS: MemberKind = {
  name: "an array of texts",
  operators: [...EQUALITY, "$all", "$contains"],
  isList: true,
  operandOf: (value) => (Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined),
  expected: "an array of texts; one of them is asked for with $contains",
};
