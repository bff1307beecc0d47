/**
 * Filters on the wire: one schema for every request that takes one.
 *
 * @module
 */
import { Kind, Type, type TUnsafe } from "@sinclair/typebox";
import { OBJECT_KIND } from "../http/types.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";

const REFERENCE = { $ref: "#/components/schemas/Filter" };

const one = (description: string) => ({ description, anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }] });
const values = (description: string, minItems = 0) => ({
  type: "array",
  items: {},
  minItems,
  maxItems: LIMITS.filterValuesMax,
  description,
});

const Operators = {
  title: "FilterOperators",
  type: "object",
  description: "Operators, all of which must pass.",
  additionalProperties: false,
  minProperties: 1,
  properties: {
    $eq: { description: "Equal, whatever it is: a text, a number, an array or an object as a whole." },
    $ne: { description: "Not equal, or missing." },
    $gt: one("Greater: numbers are compared with numbers, texts and times with their like."),
    $gte: one("Greater or equal."),
    $lt: one("Less."),
    $lte: one("Less or equal."),
    $in: values("Equal to one of them; `tags`: has one of them."),
    $nin: values("Equal to none of them, or missing."),
    $exists: { type: "boolean", description: "Whether there is such a member." },
    $all: values("An array that has all of them.", 1),
    $contains: one("A text that has this one in it, or an array that has this item."),
    $starts_with: { type: "string", maxLength: LIMITS.filterPartLengthMax, description: "A text that begins with this one." },
  },
};

const several = (description: string) => ({ type: "array", minItems: 1, items: REFERENCE, description });

/** The form of every filter, whatever records it is of. */
const GRAMMAR = {
  [Kind]: OBJECT_KIND,
  title: "Filter",
  description:
    `Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. \`$and\`, \`$or\` and \`$not\` combine filters, up to ` +
    `${LIMITS.filterDepthMax} deep; ${LIMITS.filterPathsMax} paths at most.`,
  type: "object",
  properties: {
    $and: several("All of these filters pass."),
    $or: several("At least one of these filters passes."),
    $not: { ...REFERENCE },
  },
  additionalProperties: {
    description: "What the member at this path must be.",
    anyOf: [
      Operators,
      { type: "string", nullable: true },
      { type: "number" },
      { type: "boolean" },
      { type: "array", items: {} },
      { type: "object", additionalProperties: true, description: "An object that the member equals as a whole." },
    ],
  },
};

/** @param example - of the records of a request */
export function Filter(example: JsonObject): TUnsafe<JsonObject> {
  return Type.Unsafe<JsonObject>({ ...GRAMMAR, examples: [example] });
}
