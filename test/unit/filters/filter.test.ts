/**
 * Filters of records whose members are known: what each kind of member may be compared with.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { parseFilter } from "../../../src/filters/filter.ts";
import { NUMBER, TEXT, TEXTS, TIME, TRUTH } from "../../../src/filters/kinds.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { LIMITS } from "../../../src/lib/limits.ts";

const MEMBERS = { metadata: "object", type: TEXT, tags: TEXTS, weight: NUMBER, open: TRUTH, at: TIME } as const;
const AT = Date.UTC(2026, 4, 7, 8);
const RECORD = { type: "note", tags: ["a", "b"], weight: 0.5, open: true, at: AT, metadata: { plan: { level: 2 }, n: null } };

const passing: [filter: JsonObject, passes: boolean][] = [
  [{ type: "note", weight: { $gte: 0.5 }, open: true }, true],
  [{ at: { $gte: "2026-05-07T10:00:00+02:00", $lt: "2026-05-07T08:00:00.001Z" } }, true],
  [{ at: { $in: ["2026-05-07T08:00:00Z"] } }, true],
  [{ tags: { $contains: "a" } }, true],
  [{ tags: { $contains: "ab" } }, false],
  [{ tags: { $in: ["x", "b"] } }, true],
  [{ tags: { $nin: ["x", "b"] } }, false],
  [{ tags: { $all: ["b", "a"] } }, true],
  [{ tags: ["a", "b"] }, true],
  [{ tags: { $ne: ["b", "a"] } }, true],
  [{ "metadata.plan.level": { $gt: 1 } }, true],
  [{ "metadata.n": null, "metadata.m": { $exists: false } }, true],
];

test("members are compared by their kind", () => {
  for (const [filter, passes] of passing) expect([filter, parseFilter(filter, "filter", MEMBERS).passes(RECORD)]).toEqual([filter, passes]);
  const none = parseFilter({ weight: { $ne: 1 }, at: { $exists: false }, type: { $nin: ["note"] } }, "filter", MEMBERS);
  expect(none.passes({ metadata: {}, weight: undefined })).toBe(true);
});

const refused: [filter: JsonObject, param: string, says: string][] = [
  [{ content: "x" }, "filter.content", "is not a path of these records; there are metadata.…, type, tags, weight, open, at."],
  [{ metadata: { a: 1 } }, "filter.metadata", "is not a path of these records;"],
  [{ "metadata.": 1 }, "filter.metadata.", "is not a path of these records;"],
  [{ constructor: 1 }, "filter.constructor", "is not a path of these records;"],
  [{ "type.x": 1 }, "filter.type.x", "is not a path of these records;"],
  [{ type: null }, "filter.type", 'must be a text ({"$exists": false} for none).'],
  [{ type: { $in: ["a", 1] } }, "filter.type.$in", "must be an array of at most 100 values, each a text"],
  [{ type: { $all: ["a"] } }, "filter.type.$all", "is not for a text, which takes $eq, "],
  [{ type: { $contains: 1 } }, "filter.type.$contains", "must be a text of at most 256 characters."],
  [{ tags: "a" }, "filter.tags", "must be an array of texts; one of them is asked for with $contains."],
  [{ tags: { $eq: "a" } }, "filter.tags.$eq", "must be an array of texts;"],
  [{ tags: { $in: [["a"]] } }, "filter.tags.$in", "must be an array of at most 100 values, each a text."],
  [{ tags: { $all: [1] } }, "filter.tags.$all", "must be an array of 1 to 100 texts."],
  [{ tags: { $contains: 1 } }, "filter.tags.$contains", "must be a text."],
  [{ tags: { $gt: ["a"] } }, "filter.tags.$gt", "is not for an array of texts, which takes "],
  [{ weight: "0.5" }, "filter.weight", 'must be a number ({"$exists": false} for none).'],
  [{ open: 1 }, "filter.open", "must be true or false."],
  [{ open: { $gt: true } }, "filter.open.$gt", "is not for true or false, which takes $eq, $ne, $in, $nin, $exists."],
  [{ at: "yesterday" }, "filter.at", "must be an ISO 8601 time such as 2026-05-07T08:00:00Z"],
  [{ at: 1 }, "filter.at", "must be an ISO 8601 time"],
  [{ type: "x".repeat(LIMITS.filterLengthMax) }, "filter", "must be at most 32768 characters of JSON; got 32779."],
];

test("what a member cannot be compared with is refused, by path and operator", () => {
  for (const [filter, param, says] of refused) {
    const parse = () => parseFilter(filter, "filter", MEMBERS);
    expect(parse).toThrow(expect.objectContaining({ code: "invalid_request", detail: { param } }));
    expect(parse).toThrow(`${param} ${says}`);
  }
});

test("what every record must have passed is told, for indexes", () => {
  const filter = { type: "a", $and: [{ "metadata.n": { $in: [1, 2] } }], $or: [{ type: "b" }], $not: { type: "c" } };
  expect(parseFilter(filter, "filter", MEMBERS).required).toEqual([
    { path: "type", operator: "$eq", operand: "a" },
    { path: "metadata.n", operator: "$in", operand: [1, 2] },
  ]);
});
