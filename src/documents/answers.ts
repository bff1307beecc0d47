/**
 * Documents as the wire has them.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { jsonArray, jsonWith, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { toIso } from "../lib/time.ts";
import { DOCUMENT_SPACE_LENGTH, documentName, namespaceOfDocument, namespaceParts } from "../storage/keys.ts";
import type { DocumentRow } from "../storage/tables.ts";
import type { Projection } from "./projection.ts";

/** Part of its value that a document is shown with: all of it, nothing, or the members that some paths lead to. */
export type Shown = "all" | "nothing" | Projection;

/** @param more - further members, such as a score */
export function documentJson(
  key: string,
  { version, createdAt, updatedAt, expiresAt, index, body }: DocumentRow,
  { shown = "all", more = {} }: { shown?: Shown; more?: Readonly<Record<string, number>> } = {},
): JsonText {
  return jsonWith(
    { object: "document", namespace: namespaceParts(namespaceOfDocument(key)), key: documentName(key) },
    { value: shown === "all" ? body : shown === "nothing" ? undefined : shown.of(body) },
    {
      version,
      created_at: toIso(createdAt),
      updated_at: toIso(updatedAt),
      ...(expiresAt === undefined ? {} : { expires_at: toIso(expiresAt) }),
      ...(index === undefined ? {} : { index }),
      ...more,
    },
  );
}

/** @param next - where the next page begins, if there may be more; @param offset - how many of it are still to be left out */
export function pageJson(data: readonly JsonText[], next: string | undefined, offset: number): JsonText {
  const cursor = next === undefined ? null : next.slice(DOCUMENT_SPACE_LENGTH) + (offset > 0 ? `+${offset}` : "");
  return jsonWith({ object: "list" }, { data: jsonArray(data) }, { has_more: next !== undefined, next_cursor: cursor });
}

export function resultsJson(results: readonly JsonText[]): JsonText {
  return jsonWith({ object: "list" }, { data: jsonArray(results) });
}

export function tooLarge(param: string): ApiError {
  const mib = LIMITS.pageBytesMax / 1024 / 1024;
  return new ApiError(
    "payload_too_large",
    `The answer would have more than ${mib} MiB: ask for fewer documents at once. Nothing was changed.`,
    { param },
  );
}
