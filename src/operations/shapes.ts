/**
 * What a row must look like for the code that reads it. Members that are not named are left alone.
 *
 * @module
 */
import { isId, type IdPrefix } from "../lib/ids.ts";

/** Says which member is wrong and what it should be; undefined when nothing is. */
export type Shape = (value: unknown, path: string) => string | undefined;

const simple =
  (expected: string, fits: (value: unknown) => boolean): Shape =>
  (value, path) =>
    fits(value) ? undefined : `${path} is not ${expected}`;

export const text = simple("text", (value) => typeof value === "string");
export const truth = simple("true or false", (value) => typeof value === "boolean");
/** What keys of the store can hold: times until 2081, and any count or limit. */
export const whole = simple("a whole number from 0 to 3.5e12", (value) => isWholeBelow(value, 62 ** 7));
export const positive = simple("a whole number from 1 to 1e9", (value) => isWholeBelow(value, 1e9 + 1) && value !== 0);
/** Unix milliseconds that a date can be made of. */
export const instant = simple("a time in milliseconds", (value) => Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15);
/** What a cosine is, as far as a rounding lets it be one. */
export const finite = simple("a finite number", (value) => Number.isFinite(value));
export const uint32 = simple("a whole number below 2^32", (value) => isWholeBelow(value, 2 ** 32));
/** One of those as text in the digits that `String` gives, as labels and versions of the schema stand in `meta`. */
export const uint32Text = simple(
  "the text of a whole number below 2^32",
  (value) => typeof value === "string" && isWholeBelow(Number(value), 2 ** 32) && value === String(Number(value)),
);
export const isoTime = simple("a time", (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)));

export function id(prefix: IdPrefix): Shape {
  return simple(`an id (${prefix}_…)`, (value) => typeof value === "string" && isId(prefix, value));
}

/** An id as keys of the store have it, without its prefix. */
export const bareId = simple("an id without its prefix", (value) => typeof value === "string" && /^[0-9A-Za-z]{12}$/.test(value));

/** Text of which somebody else says what is wrong with it. */
export function textThat(problemOf: (value: string) => string | undefined): Shape {
  return (value, path) => {
    const problem = typeof value === "string" ? problemOf(value) : "It must be text.";
    return problem === undefined ? undefined : `${path} cannot be used: ${problem}`;
  };
}

export function oneOf(...values: readonly string[]): Shape {
  return simple(`one of ${values.join(", ")}`, (value) => values.some((known) => known === value));
}

export function nullOr(shape: Shape): Shape {
  return (value, path) => (value === null ? undefined : shape(value, path));
}

/** A member that may be left out. */
export function maybe(shape: Shape): Shape {
  return (value, path) => (value === undefined ? undefined : shape(value, path));
}

export function listOf(shape: Shape): Shape {
  return (value, path) => {
    if (!Array.isArray(value)) return `${path} is not a list`;
    return firstOf(value.map((item, i) => shape(item, `${path}[${i}]`)));
  };
}

export function object(members: Record<string, Shape>): Shape {
  return (value, path) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return `${path} is not an object`;
    return firstOf(
      Object.entries(members).map(([name, shape]) =>
        shape(Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined, `${path}.${name}`),
      ),
    );
  };
}

function isWholeBelow(value: unknown, end: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < end;
}

function firstOf(problems: readonly (string | undefined)[]): string | undefined {
  return problems.find((problem) => problem !== undefined);
}
