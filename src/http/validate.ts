/**
 * Checks input against its schema, and reads from it the fields that an operation gets. An error names the first field that is
 * wrong, what was expected and what came.
 *
 * A null for an optional field counts as left out, unless the schema says otherwise. Unknown fields are ignored unless the schema refuses
 * them, or they are nearly a field of it. Types are strict: `"5"` is no integer.
 *
 * @module
 */
import { Kind, OptionalKind, type Static, type TObject, type TOptional, type TProperties, type TSchema } from "@sinclair/typebox";
import { TypeCompiler, ValueErrorType, type TypeCheck, type ValueError } from "@sinclair/typebox/compiler";
import { ApiError } from "../lib/errors.ts";
import { toJson } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { camelCase, codePointLength, firstCodePoints, type CamelCase } from "../lib/text.ts";
import { fieldNamesOf, nearMiss, refuseNearMiss, type FieldNames } from "./near-misses.ts";
import { EXPECTED, IN_BRACKETS, NOT_NULL, OBJECT_KIND, ONE_OF, PARSE, textProblem, type ParsedSchema } from "./types.ts";

export type Validate = (input: Record<string, unknown>) => Record<string, unknown>;

/**
 * Returns what checks input: it returns that without its nulls, or throws `invalid_request`. The schema is compiled for the first input:
 * to compile all of them would take a third of the start.
 *
 * @param isKnown - whether an unknown name means something elsewhere, so that it is no near miss; without this none is
 */
export function validator(schema: TObject, isKnown?: (name: string) => boolean): Validate {
  const members = membersOf(schema);
  let check: TypeCheck<TObject> | undefined;
  return (input) => {
    check ??= TypeCompiler.Compile(schema);
    if (isKnown !== undefined) refuseNearMisses(members, input, "", isKnown);
    const value = withoutNulls(members, input);
    if (!check.Check(value)) throw explain(check, value);
    return value;
  };
}

/** Fields as operations get them: names in camelCase; those with a default are always there. */
export type Fields<Properties extends TProperties> = {
  [Name in Exclude<keyof Properties, Open<Properties>> as Camel<Name>]: Static<Properties[Name]>;
} & { [Name in Open<Properties> as Camel<Name>]?: Static<Properties[Name]> };
type Camel<Name> = Name extends string ? CamelCase<Name> : never;
/** The names of fields that may be missing. */
type Open<Properties extends TProperties> = {
  [Name in keyof Properties]: Properties[Name] extends { default: unknown }
    ? never
    : Properties[Name] extends TOptional<TSchema>
      ? Name
      : never;
}[keyof Properties];

/** Returns what reads the fields of a schema from input that has passed its validator. */
export function fieldReader(schema: TObject): Validate {
  const properties = Object.entries<TSchema>(schema.properties).map(([name, property]) => ({
    name,
    field: camelCase(name),
    fallback: OptionalKind in property ? (property.default as unknown) : undefined,
    parse: (property as ParsedSchema)[PARSE],
  }));
  return (input) => {
    const fields: Record<string, unknown> = {};
    for (const { name, field, fallback, parse } of properties) {
      const sent = Object.hasOwn(input, name) ? input[name] : undefined;
      const value = sent === undefined ? fallback : sent;
      if (value !== undefined) fields[field] = parse === undefined || value === null ? value : parse(value as string);
    }
    return fields;
  };
}

/** The members of an object that a schema describes. */
interface Members {
  /** Undefined for an object that refuses all other names. */
  readonly names: FieldNames | undefined;
  readonly all: readonly Member[];
}

interface Member {
  name: string;
  /** True if it is optional, so that a null means the same as leaving it out. */
  mayBeLeftOut: boolean;
  /** The members of an object that the schema describes, or of the objects in an array. */
  inner: Members | undefined;
  /** True if items of an array are named in brackets. */
  isInBrackets: boolean;
}

function membersOf(schema: TObject): Members {
  const all = Object.entries(schema.properties).map(([name, property]) => ({
    name,
    mayBeLeftOut: OptionalKind in property && property["nullable"] !== true && !(NOT_NULL in property),
    inner: innerOf(property[Kind] === "Array" ? (property["items"] as TSchema) : property),
    isInBrackets: IN_BRACKETS in property,
  }));
  return { names: schema.additionalProperties === false ? undefined : fieldNamesOf(schema), all };
}

function innerOf(schema: TSchema): Members | undefined {
  return schema[Kind] === "Object" ? membersOf(schema as TObject) : undefined;
}

/** Looks as deep as the schema describes: what is the caller's own is not looked at. */
function refuseNearMisses({ names, all }: Members, input: object, path: string, isKnown: (name: string) => boolean): void {
  if (names !== undefined) {
    const isThere = (name: string) => isGiven(all, input as Record<string, unknown>, name);
    for (const name of Object.keys(input)) refuseNearMiss(name, names, path, isThere, isKnown);
  }
  for (const { name, inner, isInBrackets } of all) {
    if (inner === undefined || !Object.hasOwn(input, name)) continue;
    const member = (input as Record<string, unknown>)[name];
    if (!Array.isArray(member)) {
      if (isObject(member)) refuseNearMisses(inner, member, `${path}${name}.`, isKnown);
      continue;
    }
    for (const [i, item] of member.entries()) {
      if (isObject(item)) refuseNearMisses(inner, item, `${path}${name}${isInBrackets ? `[${i}]` : `.${i}`}.`, isKnown);
    }
  }
}

/** Checks whether a member was sent, and not as a null that means the same as leaving it out. */
function isGiven(all: readonly Member[], input: Record<string, unknown>, name: string): boolean {
  if (!Object.hasOwn(input, name)) return false;
  return input[name] !== null || all.every((member) => member.name !== name || !member.mayBeLeftOut);
}

/** Returns the input without the nulls of optional members, as deep as the schema describes; the same object if there are none. */
function withoutNulls({ all }: Members, input: Record<string, unknown>): Record<string, unknown> {
  let changed: Record<string, unknown> | undefined;
  for (const { name, mayBeLeftOut, inner } of all) {
    const member = Object.hasOwn(input, name) ? input[name] : undefined;
    if (member === null) {
      if (mayBeLeftOut) delete (changed ??= { ...input })[name];
    } else if (inner !== undefined && typeof member === "object") {
      const cleaned = Array.isArray(member) ? itemsWithoutNulls(inner, member) : withoutNulls(inner, member as Record<string, unknown>);
      if (cleaned !== member) (changed ??= { ...input })[name] = cleaned;
    }
  }
  return changed ?? input;
}

function itemsWithoutNulls(members: Members, items: readonly unknown[]): readonly unknown[] {
  const cleaned = items.map((item) => (isObject(item) ? withoutNulls(members, item) : item));
  return cleaned.some((item, i) => item !== items[i]) ? cleaned : items;
}

function isObject(item: unknown): item is Record<string, unknown> {
  return typeof item === "object" && item !== null && !Array.isArray(item);
}

function explain(check: TypeCheck<TObject>, input: unknown): ApiError {
  const error = inForm(check.Errors(input).First());
  const param = placeOf(check.Schema(), error?.path ?? "");
  if (error === undefined) return new ApiError("invalid_request", "The request is not valid.");
  if (error.value === undefined) return new ApiError("invalid_request", `${param} is required: ${expected(error.schema)}.`, { param });
  if (error.type === ValueErrorType.ObjectAdditionalProperties) {
    const unknown = firstCodePoints(param, SHOWN_LENGTH);
    const near = fieldNamesOf(error.schema as TObject).nearest(decodePointer(error.path.slice(error.path.lastIndexOf("/") + 1)));
    if (near !== undefined) return nearMiss(unknown, near);
    const known = Object.keys((error.schema as TObject).properties).join(", ");
    return new ApiError("invalid_request", `${unknown} is not a field here; there are ${known}.`, { param: unknown });
  }
  const subject = param === "" ? "The body" : param;
  if (error.value === null && NOT_NULL in error.schema)
    return new ApiError("invalid_request", `${subject} must not be null: ${String(error.schema[NOT_NULL])}`, { param });
  const problem = textProblem(error.schema, error.value) ?? `must be ${expected(error.schema)}; got ${got(error.value, error.schema)}.`;
  return new ApiError("invalid_request", `${subject} ${problem}`, { param });
}

/** Returns the error in the item that is wrong of an array where other forms are possible too. */
function inForm(error: ValueError | undefined): ValueError | undefined {
  if (error?.type !== ValueErrorType.Union || !Array.isArray(error.value)) return error;
  const form = (error.schema["anyOf"] as readonly TSchema[]).findIndex(({ type }) => type === "array");
  const inner = error.errors[form]?.First();
  return inner === undefined || inner.path === error.path ? error : inner;
}

/** The name of a field, by its JSON pointer: `operations.3.key`, or `turns[3].input` in an array that says so. */
function placeOf(schema: TSchema, pointer: string): string {
  let place = "";
  let at: TSchema | undefined = schema;
  for (const part of pointer.split("/").slice(1).map(decodePointer)) {
    if (at !== undefined && IN_BRACKETS in at) place += `[${part}]`;
    else place += place === "" ? part : `.${part}`;
    at = (at?.[Kind] === "Array" ? at["items"] : (at?.["properties"] as TProperties | undefined)?.[part]) as TSchema | undefined;
  }
  return place;
}

function decodePointer(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function expected(schema: TSchema): string {
  const form = (schema as ParsedSchema)[EXPECTED];
  if (form !== undefined) return form;
  const oneOf = schema[ONE_OF] as readonly string[] | undefined;
  if (oneOf !== undefined) return `one of ${oneOf.join(", ")}`;
  if (schema[Kind] === OBJECT_KIND) {
    const bytes = schema["x-max-bytes"] as number | undefined;
    return `an object of at most ${LIMITS.jsonDepthMax} levels${bytes === undefined ? "" : ` and ${bytes} bytes`}`;
  }
  const { minimum, maximum, minLength, maxLength, minItems, maxItems } = schema as Record<string, number | undefined>;
  switch (schema["type"]) {
    case "string":
      return `a string${lengthBetween(minLength, maxLength, "character")}`;
    case "integer":
      return `an integer${between(minimum, maximum)}`;
    case "number":
      return `a number${between(minimum, maximum)}`;
    case "boolean":
      return "true or false";
    case "array":
      return `an array${lengthBetween(minItems, maxItems, "item")}`;
    default:
      return withMembers(schema as TObject);
  }
}

function withMembers({ required = [] }: TObject): string {
  return required.length === 0 ? "an object" : `an object with ${required.join(", ")}`;
}

function lengthBetween(from = 0, to: number | undefined, unit: string): string {
  if (to === undefined) return from === 0 ? "" : ` of at least ${counted(from, unit)}`;
  return from === 0 ? ` of at most ${counted(to, unit)}` : ` of ${from} to ${counted(to, unit)}`;
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

function between(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum === undefined) return maximum === undefined ? "" : ` of at most ${maximum}`;
  return maximum === undefined ? ` of at least ${minimum}` : ` from ${minimum} to ${maximum}`;
}

const SHOWN_LENGTH = 80;

function got(value: unknown, schema: TSchema): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `an array of ${counted(value.length, "item")}`;
  if (typeof value === "object") {
    if (schema[Kind] !== OBJECT_KIND) return "an object";
    return `one of ${Buffer.byteLength(toJson(value))} bytes`;
  }
  if (typeof value === "string") {
    const length = codePointLength(value);
    return length > SHOWN_LENGTH ? `a string of ${length} characters` : toJson(value);
  }
  return toJson(value);
}
