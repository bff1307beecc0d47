/**
 * Documents: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import { hasScope } from "../lib/scopes.ts";
import { changeDocuments, queryDocuments, type DocumentDeps } from "./documents.ts";
import { changesOf, queriesOf } from "./operations.ts";
import { BatchResults, DocumentBatch, DocumentQuery, QueryResults } from "./schema.ts";

const documents = endpointGroup({
  name: "Documents",
  description:
    "JSON objects under a namespace and a key of your own, in the order of keys: a log, a key-value store and a table in one. They leave no trace and no event.",
});

export function documentEndpoints(deps: DocumentDeps): Endpoint[] {
  return [
    documents.post("/v1/documents/batch", {
      summary: "Change documents",
      echoes: true,
      description:
        `Up to ${LIMITS.documentOperationsMax} operations in one transaction: all are done in their order, or none. A namespace and a key ` +
        `together have at most ${LIMITS.documentNameBytesMax} bytes of UTF-8. A field that only other operations take is refused. A \`pop\` shows a document, and a \`filter\` tells of values: they need a key with the scope \`read\` too. ` +
        "`copy_all`, and `delete_all` with a `filter`, do a piece of their work in one batch: its result has the `next_cursor` of the next.",
      body: DocumentBatch,
      response: BatchResults,
      errors: ["session_not_found", "version_conflict", "content_too_large"],
      run: ({ body: { operations, ...named }, caller }) => {
        if (!hasScope(caller.scopes, "read")) refuseReads(operations);
        return changeDocuments(deps, caller, named, changesOf(operations));
      },
    }),
    documents.post("/v1/documents/query", {
      summary: "Query documents",
      description:
        `Up to ${LIMITS.documentOperationsMax} operations, which together look at ${LIMITS.documentRowsMax.toLocaleString("en")} documents at most, or ` +
        "at fewer large ones where a filter is compared with them. A page that " +
        "ends there, or would be too large, has `has_more`, and the next one begins at its `next_cursor`. Changes can come between operations.",
      scope: "read",
      ahead: ["search"],
      body: DocumentQuery,
      response: QueryResults,
      run: ({ body: { operations, ...named }, caller }) => queryDocuments(deps, caller, named, queriesOf(operations)),
    }),
  ];
}

/** @throws {ApiError} `permission_denied` for a pop, which shows the document that it removes, and a filter, which tells of values */
function refuseReads(operations: readonly { op: string; filter?: unknown }[]): void {
  const i = operations.findIndex(({ op, filter }) => op === "pop" || filter !== undefined);
  if (i === -1) return;
  const [what, field] =
    operations[i]?.op === "pop" ? ["A pop shows the document that it removes", "op"] : ["A filter tells what values are", "filter"];
  throw new ApiError("permission_denied", `${what}: it needs a key with the scope read too.`, { param: `operations.${i}.${field}` });
}
