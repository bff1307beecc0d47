/**
 * Filters: which records a request is about, by their members. One grammar for memories, turns and documents.
 *
 * @example { "type": "order", "metadata.total": { "$gte": 10 }, "$or": [{ "metadata.open": true }, { "tags": { "$contains": "late" } }] }
 *
 * All comparisons of an object must pass. A filter is bounded in depth and number, so that what a record costs grows with its length alone.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";
import { ANY, type MemberKind, type Operand, type Operator } from "./kinds.ts";
import { isObject, memberAt } from "./member.ts";
import { isOperator, OPERATORS } from "./operators.ts";

/** The members that a filter may name, by their paths; of an `object` all members below it. */
export type Members = Readonly<Record<string, MemberKind | "object">>;

/** A comparison of one member. */
export interface Comparison {
  /** The path with its dots. */
  readonly path: string;
  readonly operator: Operator;
  /** As records have it: times are milliseconds. */
  readonly operand: Operand;
}

/** A filter that has been checked. */
export interface RecordFilter {
  /** @param record - by the paths of the filter, with times in milliseconds; what is undefined is missing */
  passes(record: Readonly<Record<string, unknown>>): boolean;
  /** Comparisons that each record that passes has passed: an index may answer some of them. */
  readonly required: readonly Comparison[];
  /** All its comparisons, wherever they stand. */
  readonly comparisons: readonly Comparison[];
  /** The filter as it was sent. */
  readonly sent: JsonObject;
  /** Characters of its JSON: all of them may be compared with each record. */
  readonly length: number;
  /** Number of times that the whole of a record may be gone through. */
  readonly weight: number;
}

type Test = (record: JsonObject) => boolean;

interface Parsing {
  readonly members: Members | undefined;
  paths: number;
  readonly comparisons: Comparison[];
  weight: number;
}

/**
 * Checks a filter.
 *
 * @param param - where in the request it is, for errors: `filter`
 * @param members - what it may name; any path where that is left out
 * @throws {ApiError} `invalid_request`, naming path and operator
 */
export function parseFilter(sent: JsonObject, param: string, members?: Members): RecordFilter {
  const { length } = JSON.stringify(sent);
  if (members !== undefined && length > LIMITS.filterLengthMax)
    throw refused(param, `must be at most ${LIMITS.filterLengthMax} characters of JSON; got ${length}`);
  const parsing: Parsing = { members, paths: 0, comparisons: [], weight: 1 };
  const required: Comparison[] = [];
  const passes = allOf(sent, param, 0, parsing, required);
  const { comparisons, weight } = parsing;
  return { passes: (record) => passes(record as JsonObject), required, comparisons, sent, length, weight };
}

/** @param required - gets the comparisons that must pass; left out where one of several will do */
function allOf(sent: JsonObject, param: string, depth: number, parsing: Parsing, required?: Comparison[]): Test {
  const tests: Test[] = [];
  for (const [name, wanted] of Object.entries(sent)) {
    const at = `${param}.${firstCodePoints(name, SHOWN_LENGTH)}`;
    if (name === "$and" || name === "$or" || name === "$not") tests.push(combined(name, wanted, at, depth + 1, parsing, required));
    else if (name.startsWith("$")) throw refused(at, "is not known: besides paths there are $and, $or, $not");
    else tests.push(comparisonsOf(name, wanted, at, parsing, required));
  }
  return (record) => tests.every((test) => test(record));
}

const SHOWN_LENGTH = 80;

function combined(
  name: "$and" | "$or" | "$not",
  sent: JsonValue,
  at: string,
  depth: number,
  parsing: Parsing,
  required?: Comparison[],
): Test {
  if (depth > LIMITS.filterDepthMax) throw refused(at, `is nested too deep: $and, $or and $not may be ${LIMITS.filterDepthMax} deep`);
  const nested = (filter: JsonValue, place: string, needed?: Comparison[]) => {
    if (!isObject(filter) || Object.keys(filter).length === 0) throw refused(place, "must be a filter with at least one comparison");
    return allOf(filter, place, depth, parsing, needed);
  };
  if (name === "$not") {
    const test = nested(sent, at);
    return (record) => !test(record);
  }
  if (!Array.isArray(sent) || sent.length === 0) throw refused(at, "must be an array of at least one filter");
  const tests = sent.map((filter, i) => nested(filter, `${at}[${i}]`, name === "$and" ? required : undefined));
  return name === "$and" ? (record) => tests.every((test) => test(record)) : (record) => tests.some((test) => test(record));
}

/** All comparisons of one path. */
function comparisonsOf(path: string, sent: JsonValue, at: string, parsing: Parsing, required?: Comparison[]): Test {
  const kind = kindOf(path, at, parsing.members);
  const isComparison = isObject(sent) && Object.keys(sent).some((name) => name.startsWith("$"));
  const parts = path.split(".");
  if (++parsing.paths > LIMITS.filterPathsMax) throw refused(at, `is one too many: a filter has at most ${LIMITS.filterPathsMax} paths`);
  const tests = (isComparison ? Object.entries(sent) : [["$eq", sent] as const]).map(([operator, value]) => {
    const place = isComparison ? `${at}.${firstCodePoints(operator, SHOWN_LENGTH)}` : at;
    if (!isOperator(operator)) throw refused(place, `is not known; there are ${Object.keys(OPERATORS).join(", ")}`);
    if (!kind.operators.includes(operator)) throw refused(place, `is not for ${kind.name}, which takes ${kind.operators.join(", ")}`);
    const { operand, problem } = OPERATORS[operator].operandOf(value, kind);
    if (problem !== undefined) throw refused(place, problem);
    if (operator === "$contains" || operator === "$all") parsing.weight++;
    const comparison = { path, operator, operand };
    parsing.comparisons.push(comparison);
    required?.push(comparison);
    return OPERATORS[operator].test(operand, kind);
  });
  return (record) => {
    const value = memberAt(record, parts);
    return tests.every((test) => test(value));
  };
}

function kindOf(path: string, at: string, members: Members | undefined): MemberKind {
  if (members === undefined) return ANY;
  const own = Object.hasOwn(members, path) ? members[path] : undefined;
  if (own !== undefined && own !== "object") return own;
  const dot = path.indexOf(".");
  const [above, below] = [path.slice(0, dot), path.slice(dot + 1)];
  if (dot !== -1 && below !== "" && Object.hasOwn(members, above) && members[above] === "object") return ANY;
  const known = Object.entries(members).map(([name, kind]) => (kind === "object" ? `${name}.…` : name));
  throw refused(at, `is not a path of these records; there are ${known.join(", ")}`);
}

function refused(param: string, problem: string): ApiError {
  return new ApiError("invalid_request", `${param} ${problem}.`, { param });
}
