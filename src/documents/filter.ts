/**
 * Filters of documents: dotted paths, each with a value or with comparisons.
 *
 * @example { "status": "open", "order.total": { "$gte": 10, "$lt": 20 } }
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";

/** Whether a value passes; undefined stands for a member that is missing. */
type Test = (value: JsonValue | undefined) => boolean;

interface Condition {
  readonly path: readonly string[];
  readonly tests: readonly Test[];
}

export interface DocumentFilter {
  passes(value: JsonObject): boolean;
  /** How many characters of JSON it has: all of them may be compared with each document. */
  readonly length: number;
}

/** Returns what tests a document's value, or what is wrong with a filter. */
export function compileFilter(filter: JsonObject): DocumentFilter | { problem: string } {
  const paths = Object.entries(filter);
  if (paths.length > LIMITS.documentFilterPathsMax)
    return { problem: `must have at most ${LIMITS.documentFilterPathsMax} paths; got ${paths.length}` };
  const conditions: Condition[] = [];
  for (const [path, wanted] of paths) {
    const tests = testsOf(wanted);
    if ("problem" in tests) return tests;
    conditions.push({ path: path.split("."), tests });
  }
  return {
    passes: (value) => conditions.every(({ path, tests }) => tests.every((test) => test(memberAt(value, path)))),
    length: JSON.stringify(filter).length,
  };
}

function testsOf(wanted: JsonValue): readonly Test[] | { problem: string } {
  const isComparison = isObject(wanted) && Object.keys(wanted).some((key) => key.startsWith("$"));
  if (!isComparison) return [(value) => isEqual(value, wanted)];
  const tests: Test[] = [];
  for (const [operator, operand] of Object.entries(wanted)) {
    const make = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (make === undefined) return { problem: `knows ${Object.keys(OPERATORS).join(", ")}; got ${JSON.stringify(operator.slice(0, 40))}` };
    const isList = Array.isArray(operand) && operand.length <= LIMITS.documentFilterValuesMax;
    if (operator === "$in" && !isList) return { problem: `must have an array of at most ${LIMITS.documentFilterValuesMax} values for $in` };
    tests.push(make(operand));
  }
  return tests;
}

/** Numbers are compared with numbers and texts with texts; nothing else is before or after another. */
const ordered =
  (isRight: (order: number) => boolean) =>
  (operand: JsonValue): Test =>
  (value) => {
    if (typeof value === "number" && typeof operand === "number") return isRight(value - operand);
    return typeof value === "string" && typeof operand === "string" && isRight(value < operand ? -1 : value > operand ? 1 : 0);
  };

const OPERATORS: Record<string, (operand: JsonValue) => Test> = {
  $eq: (operand) => (value) => isEqual(value, operand),
  $ne: (operand) => (value) => !isEqual(value, operand),
  $gt: ordered((order) => order > 0),
  $gte: ordered((order) => order >= 0),
  $lt: ordered((order) => order < 0),
  $lte: ordered((order) => order <= 0),
  $in: (operand) => (value) => (operand as JsonValue[]).some((one) => isEqual(value, one)),
};

/** A member that is missing equals nothing, not even null. */
function isEqual(value: JsonValue | undefined, wanted: JsonValue): boolean {
  return value !== undefined && (value === wanted || Bun.deepEquals(value, wanted));
}

function memberAt(value: JsonObject, path: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = value;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
