/**
 * Types of the members of stored rows. Each type says in its `description` what is expected, for a message about a wrong row.
 *
 * @module
 */
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";
import type { Id, IdPrefix } from "../lib/ids.ts";
import type { JsonObject, JsonText } from "../lib/json.ts";
import { memoizeWeak } from "../lib/memoize.ts";

export const Text = Type.String({ description: "text" });
export const Truth = Type.Boolean({ description: "true or false" });
/** Range of numbers in keys of the store: times until 2081, and any count or limit. */
export const Whole = Type.Integer({ minimum: 0, maximum: 62 ** 7 - 1, description: "a whole number from 0 to 3.5e12" });
export const Positive = Type.Integer({ minimum: 1, maximum: 1e9, description: "a whole number from 1 to 1e9" });
/** Unix milliseconds that a date can be made of. */
export const Instant = Type.Integer({ minimum: -8.64e15, maximum: 8.64e15, description: "a time in milliseconds" });
export const Finite = Type.Number({ description: "a finite number" });
export const Fraction = Type.Number({ minimum: 0, maximum: 1, description: "a number from 0 to 1" });
export const Uint32 = Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1, description: "a whole number below 2^32" });
export const IsoTime = Type.String({ pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, description: "a time" });
/** JSON of a caller's, kept as it came. */
export const AnyObject = Type.Unsafe<JsonObject>(Type.Object({}, { description: "an object" }));
/** The same where the row holds it as text, and an export as an object. */
export const ObjectText = Type.Unsafe<JsonText>(Type.Object({}, { description: "an object" }));
export const BareIdText = Type.String({ pattern: "^[0-9A-Za-z]{12}$", description: "an id without its prefix" });

export function IdText<Prefix extends IdPrefix>(prefix: Prefix) {
  return Type.Unsafe<Id<Prefix>>(Type.String({ pattern: `^${prefix}_[0-9A-Za-z]{12}$`, description: `an id (${prefix}_…)` }));
}

export function EitherIdText<Prefix extends IdPrefix>(...prefixes: Prefix[]) {
  const described = `an id (${prefixes.map((prefix) => `${prefix}_…`).join(" or ")})`;
  return Type.Unsafe<Id<Prefix>>(Type.String({ pattern: `^(${prefixes.join("|")})_[0-9A-Za-z]{12}$`, description: described }));
}

export function OneOf<const Values extends readonly string[]>(values: Values) {
  return Type.Unsafe<Values[number]>(
    Type.String({ enum: values, pattern: `^(${values.join("|")})$`, description: `one of ${values.join(", ")}` }),
  );
}

export function OrNull<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>(
    Type.Union([Type.Null(), schema], { description: `${schema.description ?? "an object"} or null` }),
  );
}

const checkOf = memoizeWeak<TSchema, TypeCheck<TSchema>>((schema) => TypeCompiler.Compile(schema));

/** Member of a value that is wrong, and what it should be; undefined when none is. */
export function problemOf(schema: TSchema, value: unknown): string | undefined {
  const check = checkOf(schema);
  if (check.Check(value)) return undefined;
  const error = check.Errors(value).First();
  const path = (error?.path ?? "").split("/").slice(1);
  const name = path.map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`)).join("");
  return `row${name} is not ${error?.schema.description ?? (error?.schema["type"] === "array" ? "a list" : "an object")}`;
}
