/**
 * The kinds of values the API takes and gives, as TypeBox schemas: one schema validates, explains an error, and is the
 * documentation with its example.
 *
 * TypeBox counts UTF-16 units and knows no limit of depth, so the kinds that need more say so here.
 *
 * @module
 */
import {
  Kind,
  OptionalKind,
  Type,
  TypeRegistry,
  type Static,
  type TLiteral,
  type TObject,
  type TOptional,
  type TSchema,
  type TUnsafe,
} from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { isId, type Id, type IdPrefix } from "../lib/ids.ts";
import { toJson, type JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength, pascalCase, userIdProblem } from "../lib/text.ts";
import { parseInstant, parseInstantUp } from "../lib/time.ts";

export const TEXT_KIND = "Cairn:Text";
export const OBJECT_KIND = "Cairn:Object";
const OR_NULL_KIND = "Cairn:OrNull";
const INNER = Symbol("what it is unless null");
const PROBLEM_OF = Symbol("what is wrong with a text");

export const PARSE = Symbol("parse");
export const EXPECTED = Symbol("expected");
export const NOT_NULL = Symbol("what to do instead of sending null");
/** Set on an array whose items an error names by their place in brackets: `turns[3].input`. */
export const IN_BRACKETS = Symbol("items are named in brackets");

/** A text that operations get in another form. */
export interface ParsedSchema extends TSchema {
  /** Returns what operations get; undefined for a text that is not valid. */
  [PARSE]?: (text: string) => unknown;
  /** Expectation that an error names. */
  [EXPECTED]?: string;
}

interface TextSchema extends ParsedSchema {
  minLength: number;
  maxLength?: number;
  [PROBLEM_OF]?: (text: string) => string | undefined;
}

interface ObjectSchema extends TSchema {
  "x-max-bytes"?: number;
}

interface OrNullSchema extends TSchema {
  [INNER]: TSchema;
}

TypeRegistry.Set<TextSchema>(TEXT_KIND, (schema, value) => {
  const { minLength, maxLength, [PARSE]: parse } = schema;
  if (typeof value !== "string" || value.length < minLength) return false;
  if (parse !== undefined) return parse(value) !== undefined;
  if (maxLength !== undefined && value.length > maxLength && codePointLength(value) > maxLength) return false;
  return textProblem(schema, value) === undefined;
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

/**
 * Text that is empty, or with which a function finds nothing wrong.
 *
 * @param problemOf - what is wrong, in words that follow the name of the field
 */
export function CheckedText(max: number, problemOf: (text: string) => string | undefined): TUnsafe<string> {
  return Type.Unsafe<string>({ ...Text(0, max), [PROBLEM_OF]: problemOf });
}

/** The user whom new records belong to. */
export function UserId({ description = "The user.", ...options }: Options = {}): TUnsafe<string> {
  const text = Text(1, LIMITS.userIdLengthMax, {
    description: `${description} Not \`.\` or \`..\`, which a path cannot name.`,
    ...options,
  });
  return Type.Unsafe<string>({ ...text, pattern: NO_DOTS, [PROBLEM_OF]: userIdProblem });
}
/** Rule of `userIdProblem`, for readers of the document. */
const NO_DOTS = String.raw`^(?!\.{1,2}$)`;

/** Problem that the function of a `CheckedText` finds in a value. */
export function textProblem(schema: TSchema, value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? (schema as TextSchema)[PROBLEM_OF]?.(value) : undefined;
}

/** A text of which operations get a `Value`. */
export function Parsed<Value>(
  expected: string,
  parse: (text: string) => Value | undefined,
  options: Options & { format?: string },
): TUnsafe<Value> {
  return Type.Unsafe<Value>({ [Kind]: TEXT_KIND, [PARSE]: parse, [EXPECTED]: expected, type: "string", minLength: 1, ...options });
}

/** Some of a few texts, with commas between them, of which operations get an array without repetitions. */
export function SomeOf<const Value extends string>(values: readonly Value[], options: Options = {}): TUnsafe<Value[]> {
  const isValue = (text: string): text is Value => (values as readonly string[]).includes(text);
  const parse = (text: string) => {
    const found = [...new Set(text.split(","))];
    return found.every(isValue) ? found : undefined;
  };
  return Parsed(`one or more of ${values.join(", ")}, with commas between them`, parse, options);
}

/** A field that may be left out: operations then get `value`, all the same one, so that it must not change. */
export function Default<Inner extends TSchema>(inner: Inner, value: Static<Inner>): TOptional<Inner> & { default: Static<Inner> } {
  return { ...Type.Optional<TSchema>(inner), default: Object.freeze(value) } as TOptional<Inner> & { default: Static<Inner> };
}

/** A JSON object of the caller's own; `body.ts` has limited its depth. */
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

/** A value, or a null that means something other than leaving it out. */
export function OrNull<Inner extends TSchema>(inner: Inner): TUnsafe<Static<Inner> | null> {
  return Type.Unsafe<Static<Inner> | null>({ ...inner, [Kind]: OR_NULL_KIND, [INNER]: inner, nullable: true });
}

/**
 * An optional field that a null does not leave out: the caller may have meant a value.
 *
 * @param instead - what to do instead, for the error
 */
export function NeverNull<Inner extends TSchema>(inner: Inner, instead: string): TOptional<Inner> {
  return { ...Type.Optional<TSchema>(inner), [NOT_NULL]: instead } as unknown as TOptional<Inner>;
}

/** A whole number, or one of a few words. */
export function IntegerOr<const Word extends string>(
  words: readonly Word[],
  range: { minimum: number; maximum: number },
  options: Options = {},
): TUnsafe<number | Word> {
  const union = Type.Union([Type.Integer(range), ...words.map((word) => Type.Literal(word))]);
  const named = words.map((word) => `"${word}"`).join(" or ");
  return Type.Unsafe<number | Word>({
    ...union,
    [EXPECTED]: `an integer from ${range.minimum} to ${range.maximum}, or ${named}`,
    ...options,
  });
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

const EXAMPLE_TIME = "2026-05-07T08:00:00.000Z";

/** A time in an answer. */
export function Timestamp(description: string, example: string | null = EXAMPLE_TIME): TUnsafe<string> {
  return Type.Unsafe<string>({ ...Text(1, undefined, { description, examples: [example] }), format: "date-time" });
}

/** Time in an answer. */
export function OccurredAt(description: string): TUnsafe<string> {
  return Timestamp(description, "2025-11-03T16:20:00.000Z");
}

/** The same in a request. `refuseFuture` bounds it. */
export function NewOccurredAt(description: string): TUnsafe<number> {
  return Instant(`${description} At most a day in the future.`, { example: "2025-11-03T16:20:00.000Z" });
}

/**
 * A time in a request, which operations get in milliseconds.
 *
 * @param example - null where the example of the request is to leave it out
 */
export function Instant(
  description: string,
  { parse = parseInstant, example = EXAMPLE_TIME }: { parse?: typeof parseInstant; example?: string | null } = {},
): TUnsafe<number> {
  const expected = "an ISO 8601 time such as 2026-05-07T08:00:00Z";
  return Parsed(expected, parse, { format: "date-time", description, ...(example === null ? {} : { examples: [example] }) });
}

/** An id in an answer. */
export function RecordId(prefix: string, description: string): TUnsafe<string> {
  return Text(1, undefined, { description, examples: [`${prefix}_0VQk3aB4x1Zq`] });
}

/** Filters of a list by the times of its records. */
export function Created(records: string) {
  return {
    created_after: Type.Optional(Instant(`Only ${records} after this time (ISO 8601; without an offset it is UTC).`)),
    created_before: Type.Optional(Instant(`Only ${records} before this time.`, { parse: parseInstantUp })),
  };
}

/** `limit` of a list. */
export function Limit(max: number = LIMITS.listMax, fallback: number = LIMITS.listDefault) {
  return Default(Type.Integer({ minimum: 1, maximum: max, description: `How many at most; default ${fallback}.` }), fallback);
}

/** `starting_after` of a list whose records have ids. */
export function Cursor<Prefix extends IdPrefix>(prefix: Prefix): TUnsafe<Id<Prefix>> {
  return Parsed(`an id (${prefix}_ and 12 characters)`, (text) => (isId(prefix, text) ? text : undefined), {
    description: `The last id of the previous page (\`${prefix}_…\`); its record may be gone.`,
  });
}

/** Returns the example of a schema: its own, or one of those of its members; an optional member needs one of its own. */
export function exampleOf(schema: TSchema): unknown {
  const [own] = (schema.examples as unknown[] | undefined) ?? [];
  if (own !== undefined) return own;
  if (schema["nullable"] === true) return null;
  if (schema["type"] === "array") return [exampleOf(schema["items"] as TSchema)];
  if (schema["type"] !== "object") return "const" in schema ? schema["const"] : (schema[ONE_OF] as string[] | undefined)?.[0];
  const members = Object.entries<TSchema>((schema as TObject).properties);
  const shown = members.filter(([, member]) => !(OptionalKind in member) || member.examples !== undefined);
  return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(member)]));
}

/** A page of records. Its example is a page with the example of one. */
export function ListOf(item: TSchema, description: string) {
  const example = exampleOf(item) as { id?: string };
  const page = { object: "list", data: [example], has_more: false, first_id: example.id, last_id: example.id };
  return Type.Object(
    {
      object: Type.Literal("list"),
      data: Type.Array(item),
      has_more: Type.Boolean({ description: "Whether there may be more after this page, which can be short or empty." }),
      first_id: OrNull(Type.String({ description: "The id of the first record; null on a page without one." })),
      last_id: OrNull(
        Type.String({
          description:
            "The next page's `starting_after`: the id of the last record, or an older one if the search came further. Null at the end of an empty list.",
        }),
      ),
    },
    { ...(item.title === undefined ? {} : { title: `${item.title}List` }), description, examples: [page] },
  );
}

/** A record as the wire has it, with an example. */
export type Resource = TSchema & { properties: { object: TLiteral<string> } };

/** Secrets that were taken out of a request, in its answer. */
export const Redacted = Type.Optional(
  Type.Array(
    Type.Object(
      {
        path: Type.String({ description: "Where in the request it was.", examples: ["content"] }),
        kind: Type.String({ description: "What it was.", examples: ["github_token"] }),
        count: Type.Integer({ minimum: 1, description: "How many of the kind were there.", examples: [1] }),
      },
      { title: "Redaction", description: "A kind of secret that was taken out at one place of a request." },
    ),
    {
      description:
        "In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.",
    },
  ),
);

/** Marks of a record. */
const Secrets = Type.Optional(
  Type.Array(Type.String(), {
    description: "Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none.",
  }),
);

/** Members that a record has of its secrets. */
export const SCREENED = { secrets: Secrets, redacted: Redacted };

/** The answer to the deletion of a record. */
export function Deleted(resource: Resource) {
  const object = resource.properties.object.const;
  return Type.Object(
    { object: Type.Literal(object), id: Type.String(), deleted: Type.Literal(true), redacted: Redacted },
    {
      title: `Deleted${pascalCase(object)}`,
      description: "What was deleted.",
      examples: [{ object, id: (exampleOf(resource) as { id?: string }).id, deleted: true }],
    },
  );
}

/** The body of a request that needs none. */
export const Nothing = Type.Object({}, { title: "Nothing", description: "No fields." });

/** `reason` of a DELETE. */
export const Reason = Type.Object({
  reason: Type.Optional(Text(0, LIMITS.reasonLengthMax, { description: "Why; kept in the trace." })),
});
