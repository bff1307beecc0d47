/**
 * A filter or condition must have a value once it is named. As of a variable that was not set it would be no filter and no condition:
 * the records of all users instead of those of one, a change whatever the version.
 *
 * @module
 */

/** Fields that have a default or say where a page begins. Undefined, they let nothing more through. */
export const OPEN = [
  "limit",
  "starting_after",
  "offset",
  "cursor",
  "order",
  "order_by",
  "deep",
  "values",
  "fields",
  "threshold",
  "explain",
  "history",
] as const;

/**
 * Arguments of a method, where TypeScript refuses a filter that may be undefined, as well as a field that is not known.
 *
 * @example list({ user_id: user?.id }); // Type 'string | undefined' is not assignable to type 'never'.
 */
export type Filters<Known, Given extends Known> = Given & {
  [Name in keyof Given]: Name extends keyof Known
    ? Name extends (typeof OPEN)[number]
      ? Known[Name] | undefined
      : undefined extends Given[Name]
        ? object extends Pick<Given, Name>
          ? Given[Name]
          : never
        : Given[Name]
    : never;
};

/** @throws {TypeError} for a filter that is undefined or null */
export function checkFilters(given: object): void {
  checkGiven(
    given,
    Object.keys(given).filter((name) => !(OPEN as readonly string[]).includes(name)),
  );
}

/** @throws {TypeError} for one of these fields that is there, and undefined or null */
export function checkGiven(given: object, names: readonly string[]): void {
  const fields = given as Readonly<Record<string, unknown>>;
  for (const name of names) {
    if (Object.hasOwn(fields, name) && (fields[name] ?? null) === null)
      throw new TypeError(`${name} must not be ${String(fields[name])}, which would be none at all: leave it out where that is meant.`);
  }
}
