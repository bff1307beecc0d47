/**
 * The kinds of values the API takes, as TypeBox schemas: one schema validates, explains an error, and is the documentation.
 *
 * TypeBox counts UTF-16 units and knows no limit of depth, so the kinds that need more say so here.
 *
 * @module
 */
import { Kind, Type, TypeRegistry, type Static, type TSchema, type TUnsafe } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { toJson, type JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength, pascalCase } from "../lib/text.ts";

export const TEXT_KIND = "Cairn:Text";
export const OBJECT_KIND = "Cairn:Object";
const OR_NULL_KIND = "Cairn:OrNull";
const INNER = Symbol("what it is unless null");

interface TextSchema extends TSchema {
  minLength: number;
  maxLength?: number;
}

interface ObjectSchema extends TSchema {
  "x-max-bytes"?: number;
}

interface OrNullSchema extends TSchema {
  [INNER]: TSchema;
}

TypeRegistry.Set<TextSchema>(TEXT_KIND, ({ minLength, maxLength }, value) => {
  if (typeof value !== "string" || value.length < minLength) return false;
  return maxLength === undefined || value.length <= maxLength || codePointLength(value) <= maxLength;
});

TypeRegistry.Set<ObjectSchema>(OBJECT_KIND, (schema, value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const max = schema["x-max-bytes"];
  return max === undefined || Buffer.byteLength(toJson(value)) <= max;
});

TypeRegistry.Set<OrNullSchema>(OR_NULL_KIND, (schema, value) => value === null || Value.Check(schema[INNER], value));

type Options = { description?: string; examples?: unknown[]; default?: unknown };

/** Text of `min` to `max` code points. */
export function Text(min: number, max: number | undefined, options: Options = {}): TUnsafe<string> {
  return Type.Unsafe<string>({
    [Kind]: TEXT_KIND,
    type: "string",
    minLength: min,
    ...(max === undefined ? {} : { maxLength: max }),
    ...options,
  });
}

/** A JSON object of the caller's own, at most 64 levels deep: `body.ts` has refused a deeper one. */
export function UserObject(options: Options & { maxBytes?: number } = {}): TUnsafe<JsonObject> {
  const { maxBytes, ...rest } = options;
  return Type.Unsafe<JsonObject>({
    [Kind]: OBJECT_KIND,
    type: "object",
    additionalProperties: true,
    ...(maxBytes === undefined ? {} : { "x-max-bytes": maxBytes }),
    ...rest,
  });
}

export function Metadata(description: string): TUnsafe<JsonObject> {
  return UserObject({ maxBytes: LIMITS.metadataBytesMax, description, examples: [{ channel: "chat" }] });
}

/** A value, or a null that says something other than leaving it out. */
export function OrNull<Inner extends TSchema>(inner: Inner): TUnsafe<Static<Inner> | null> {
  return Type.Unsafe<Static<Inner> | null>({ ...inner, [Kind]: OR_NULL_KIND, [INNER]: inner, nullable: true });
}

/** One of a few texts. */
export function OneOf<const Value extends string>(values: readonly Value[], options: Options = {}): TUnsafe<Value> {
  return Type.Unsafe<Value>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { ...options, [ONE_OF]: values },
    ),
  );
}
export const ONE_OF = "x-one-of";

export function Timestamp(description: string): TUnsafe<string> {
  return Type.Unsafe<string>({
    [Kind]: TEXT_KIND,
    type: "string",
    format: "date-time",
    minLength: 1,
    description,
    examples: ["2026-05-07T08:00:00.000Z"],
  });
}

/** An id in an answer. */
export function RecordId(prefix: string, description: string): TUnsafe<string> {
  return Type.Unsafe<string>({
    [Kind]: TEXT_KIND,
    type: "string",
    minLength: 1,
    description,
    examples: [`${prefix}_0VQk3aB4x1Zq`],
  });
}

/** Filters of a list by the times of its records; routes read both with `createdOf`. */
export function CreatedAfter(records: string) {
  return Type.Optional(Timestamp(`Only ${records} after this time (ISO 8601; without an offset it is UTC).`));
}

export function CreatedBefore(records: string) {
  return Type.Optional(Timestamp(`Only ${records} before this time.`));
}

/** `limit` of a list. */
export function Limit(max: number = LIMITS.listMax, fallback: number = LIMITS.listDefault) {
  return Type.Optional(
    Type.Integer({ minimum: 1, maximum: max, default: fallback, description: `How many at most; default ${fallback}.` }),
  );
}

export function Cursor(prefix: string) {
  return Type.Optional(
    Type.Unsafe<string>({
      [Kind]: TEXT_KIND,
      type: "string",
      minLength: 1,
      description: `The last id of the page before (\`${prefix}_…\`); its record need not exist any more.`,
    }),
  );
}

export function ListOf(item: TSchema, description: string) {
  return Type.Object(
    {
      object: Type.Literal("list"),
      data: Type.Array(item),
      has_more: Type.Boolean({ description: "Whether there may be more after this page, which can be short or empty." }),
      first_id: Type.Unsafe<string | null>({
        ...Type.String(),
        nullable: true,
        description: "The id of the first record; null on a page without one.",
      }),
      last_id: Type.Unsafe<string | null>({
        ...Type.String(),
        nullable: true,
        description:
          "The next page's `starting_after`: the id of the last record, or an older one up to which everything was looked at. Null at the end of an empty list.",
      }),
    },
    { ...(item.title === undefined ? {} : { title: `${item.title}List` }), description },
  );
}

export function Deleted(object: string) {
  return Type.Object(
    { object: Type.Literal(object), id: Type.String(), deleted: Type.Literal(true) },
    { title: `Deleted${pascalCase(object)}`, description: "What was deleted." },
  );
}

/** `reason` of a DELETE. */
export const Reason = Type.Object({
  reason: Type.Optional(Text(0, LIMITS.reasonLengthMax, { description: "Why; kept in the trace." })),
});
