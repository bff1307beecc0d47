/**
 * Operations on documents as they are run, of those that were sent: which fields each needs and takes, and what they mean.
 *
 * @module
 */
import { parseFilter } from "../filters/filter.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Shown } from "./answers.ts";
import type { Change } from "./batch.ts";
import type { Query } from "./documents.ts";
import { isPath, type Index } from "./embedded-text.ts";
import { Projection } from "./projection.ts";
import { ChangeOperation, QueryOperation, type SentChange, type SentQuery } from "./schema.ts";

/** The fields of each operation: those it needs, and those it takes. */
const FIELDS: Record<string, { needs: readonly string[]; takes: readonly string[] }> = {
  put: { needs: ["namespace", "value"], takes: ["key", "index", "if_version", "if_exists", "session_id", "ttl_seconds"] },
  touch: { needs: ["namespace", "key"], takes: ["ttl_seconds"] },
  delete: { needs: ["namespace", "key"], takes: ["if_version"] },
  delete_all: { needs: ["namespace"], takes: ["filter", "cursor"] },
  copy_all: { needs: ["namespace", "to"], takes: ["cursor"] },
  pop: { needs: ["namespace"], takes: ["order"] },
  get: { needs: ["namespace", "key"], takes: ["values", "fields"] },
  list: {
    needs: ["namespace"],
    takes: ["deep", "order", "order_by", "after", "before", "filter", "limit", "offset", "cursor", "values", "fields"],
  },
  search: { needs: ["namespace", "query"], takes: ["filter", "threshold", "limit", "offset", "values", "fields"] },
  count: { needs: ["namespace"], takes: ["deep"] },
  namespaces: { needs: [], takes: ["prefix", "suffix", "max_depth", "limit", "offset", "cursor"] },
};

type SentOperation = { op: string } & Partial<Omit<SentChange, "op"> & Omit<SentQuery, "op">>;

/** @throws {ApiError} `invalid_request` for a field that the operation lacks or does not take: one ignored would change what is meant */
function checkOperation(sent: SentOperation, known: { readonly properties: object }, param: string): void {
  const { needs, takes } = FIELDS[sent.op]!;
  const refuse = (field: string, problem: string) => {
    throw new ApiError("invalid_request", `${param}.${field} ${problem}`, { param: `${param}.${field}` });
  };
  const { op, namespace, to, key, prefix, suffix, after, before } = sent;
  for (const field of needs) if (sent[field as keyof SentOperation] === undefined) refuse(field, `is required for ${op}.`);
  for (const field of Object.keys(known.properties)) {
    const isKnown = field === "op" || needs.includes(field) || takes.includes(field);
    if (!isKnown && sent[field as keyof SentOperation] !== undefined)
      refuse(field, `is not for ${op}, which takes ${[...needs, ...takes].join(", ")}.`);
  }
  for (const [field, parts] of Object.entries({ namespace, to, prefix, suffix })) {
    const odd = parts?.findIndex((part) => !part.isWellFormed()) ?? -1;
    if (odd !== -1) refuse(`${field}.${odd}`, "must be well-formed Unicode, without halves of surrogate pairs.");
  }
  for (const [field, parts] of Object.entries({ prefix, to })) {
    const bytes = (parts ?? []).reduce((sum, part) => sum + Buffer.byteLength(part), 0);
    if (bytes > LIMITS.documentNameBytesMax) refuse(field, `must be at most ${LIMITS.documentNameBytesMax} bytes of UTF-8; got ${bytes}.`);
  }
  for (const [field, name] of Object.entries({ key, after, before })) {
    if (name !== undefined && !name.isWellFormed()) refuse(field, "must be well-formed Unicode, without halves of surrogate pairs.");
    const bytes = [...(namespace ?? []), name ?? ""].reduce((sum, part) => sum + Buffer.byteLength(part), 0);
    if (bytes > LIMITS.documentNameBytesMax) {
      const most = `must be at most ${LIMITS.documentNameBytesMax} bytes of UTF-8`;
      if (name === undefined) refuse("namespace", `${most}; got ${bytes}.`);
      refuse(field, `${most} together with the namespace; got ${bytes}.`);
    }
  }
}

/** Not longer than the longest name, whose bytes are hex there; then how many are still to be left out. */
const CURSOR = /^([0-9A-Za-z!.~]{1,1850})(?:\+([1-9]\d{0,4}))?$/;

/** Changes as operations get them. */
export function changesOf(sent: readonly SentChange[]): Change[] {
  return sent.map((operation, i) => {
    const param = `operations.${i}`;
    checkOperation(operation, ChangeOperation, param);
    checkExisting(operation, param);
    checkBulk(operation, param);
    const { op, namespace, key, value, order = "desc", to, ...more } = operation;
    const { if_version: ifVersion, if_exists: ifExists = "replace", session_id: sessionId, ttl_seconds: ttl } = more;
    const [index, filter] = [indexOf(more.index, param), more.filter && parseFilter(more.filter, `${param}.filter`)];
    const { cursor } = more.cursor === undefined ? {} : cursorOf(more.cursor, param);
    return { op, namespace, key, value, index, ifVersion, ifExists, sessionId, ttl, order, to, filter, cursor } as Change;
  });
}

/** @throws {ApiError} `invalid_request` for a put that says twice, or without a key, what becomes of a document that is there */
function checkExisting({ key, if_exists, if_version }: SentChange, param: string): void {
  if (if_exists === undefined) return;
  const refuse = (problem: string) => {
    throw new ApiError("invalid_request", `${param}.if_exists ${problem}`, { param: `${param}.if_exists` });
  };
  if (if_version !== undefined) refuse("cannot be with if_version: each says what becomes of a document that is there.");
  if (key === undefined) refuse("needs a key: without one no document is there.");
}

/** @throws {ApiError} `invalid_request` for a copy into itself, and for a cursor of what goes all at once */
function checkBulk({ op, namespace, to, filter, cursor }: SentChange, param: string): void {
  const refuse = (field: string, problem: string) => {
    throw new ApiError("invalid_request", `${param}.${field} ${problem}`, { param: `${param}.${field}` });
  };
  if (to !== undefined && Array.from({ length: Math.min(to.length, namespace.length) }, (_, i) => i).every((i) => to[i] === namespace[i]))
    refuse("to", "must be neither the namespace nor above or below it.");
  if (op === "delete_all" && filter === undefined && cursor !== undefined) refuse("cursor", "is of a delete_all with a filter.");
}

/** @throws {ApiError} `invalid_request` for what is no path */
function indexOf(sent: boolean | string[] | undefined, param: string): Index | undefined {
  if (sent === undefined || sent === false) return undefined;
  const wrong = sent === true ? -1 : sent.findIndex((path) => !isPath(path));
  if (sent === true || wrong === -1) return sent;
  throw new ApiError(
    "invalid_request",
    `${param}.index.${wrong} must be a path of names with dots between them, such as lines[*].text, or $; got ${JSON.stringify(sent[wrong])}.`,
    { param: `${param}.index.${wrong}` },
  );
}

export function queriesOf(sent: readonly SentQuery[]): Query[] {
  refuseManySearches(sent);
  return sent.map((operation, i) => {
    const param = `operations.${i}`;
    checkOperation(operation, QueryOperation, param);
    const {
      filter,
      max_depth: maxDepth,
      deep = false,
      order = "asc",
      order_by: orderBy = "key",
      prefix = [],
      suffix = [],
      after,
      before,
      cursor: sentCursor,
      values = true,
      fields,
      ...rest
    } = operation;
    if (!values && fields !== undefined) {
      throw new ApiError("invalid_request", `${param}.fields are of values: leave out values: false.`, { param: `${param}.fields` });
    }
    const shown: Shown = !values ? "nothing" : fields === undefined ? "all" : new Projection(fields);
    if (deep && (after ?? before) !== undefined) {
      const field = after === undefined ? "before" : "after";
      throw new ApiError("invalid_request", `${param}.${field} is a key of one namespace: a deep list continues with cursor.`, {
        param: `${param}.${field}`,
      });
    }
    if (orderBy === "updated_at") refuseBesides(operation, param);
    const { cursor, left } = sentCursor === undefined ? { left: 0 } : cursorOf(sentCursor, param);
    const { op, threshold = 0, limit = op === "search" ? LIMITS.searchDefault : LIMITS.documentListDefault, offset = 0 } = rest;
    if (op === "search" && limit + offset > LIMITS.documentSearchDepthMax) {
      throw new ApiError(
        "invalid_request",
        `${param}.limit and offset of a search must be at most ${LIMITS.documentSearchDepthMax} together; got ${limit} and ${offset}.`,
        { param: `${param}.limit` },
      );
    }
    return {
      ...rest,
      limit,
      offset: offset + left,
      threshold,
      deep,
      order,
      orderBy,
      prefix,
      suffix,
      after,
      before,
      cursor,
      maxDepth,
      shown,
      filter: filter && parseFilter(filter, `${param}.filter`),
    } as Query;
  });
}

/** @throws {ApiError} `invalid_request` for what a list in the order of changes cannot be, or begin with */
function refuseBesides(sent: SentQuery, param: string): void {
  const field = (["after", "before"] as const).find((name) => sent[name] !== undefined) ?? (sent.deep === true ? "deep" : undefined);
  if (field === undefined) return;
  const problem =
    field === "deep"
      ? "is not for order_by updated_at: changes are in order within a namespace"
      : "is a key: a list by updated_at continues with cursor";
  throw new ApiError("invalid_request", `${param}.${field} ${problem}.`, { param: `${param}.${field}` });
}

/** Start of a page, and number of its documents still to be left out. */
function cursorOf(text: string, param: string): { cursor: string; left: number } {
  const [, cursor, left = "0"] = CURSOR.exec(text) ?? [];
  if (cursor !== undefined) return { cursor, left: Number(left) };
  throw new ApiError("invalid_request", `${param}.cursor must be the next_cursor of a page.`, { param: `${param}.cursor` });
}

function refuseManySearches(sent: readonly { op: string }[]): void {
  const searches = sent.flatMap(({ op }, i) => (op === "search" ? [i] : []));
  const tooMany = searches[LIMITS.documentSearchesMax];
  if (tooMany === undefined) return;
  throw new ApiError("invalid_request", `operations must have at most ${LIMITS.documentSearchesMax} searches; got ${searches.length}.`, {
    param: `operations.${tooMany}.op`,
  });
}
