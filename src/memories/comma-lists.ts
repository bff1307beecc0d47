/**
 * Lists with commas, as query strings have them. Pure.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";

/**
 * One value is a list with commas; of several each is a tag.
 *
 * @throws {ApiError} `invalid_request` for no tags, too many, and one that is too long
 */
export function tagsOf(values: readonly string[]): string[] {
  const isList = values.length === 1;
  const tags = itemsOf("tags", isList ? (values[0] ?? "").split(",") : values, LIMITS.tagsMax, LIMITS.tagLengthMax);
  // A tag may begin or end with spaces, and who lists several may put some between.
  return isList ? tags.flatMap((tag) => [tag, tag.trim()]) : tags;
}

/** Each value may be a list with commas. @throws {ApiError} as for tags */
export function typesOf(values: readonly string[]): string[] {
  const types = values.flatMap((value) => value.split(",")).map((type) => type.trim());
  return itemsOf("types", types, LIMITS.memoryTypesMax, LIMITS.memoryTypeLengthMax);
}

function itemsOf(param: "tags" | "types", parts: readonly string[], countMax: number, lengthMax: number): string[] {
  const items = parts.filter((part) => part.trim() !== "");
  const long = items.find((item) => codePointLength(item) > lengthMax);
  if (items.length === 0 || items.length > countMax || long !== undefined) {
    throw new ApiError(
      "invalid_request",
      `${param} must be 1 to ${countMax} ${param} of at most ${lengthMax} characters, separated by commas or in a parameter each; got ${items.length}${long === undefined ? "" : `, one of ${codePointLength(long)} characters`}.`,
      { param },
    );
  }
  return items;
}
