/**
 * Documents on the wire, and what each operation takes.
 *
 * All operations of a request have one schema, so that an error names the field and not a list of alternatives; which fields belong to
 * which operation is in a table here.
 *
 * @module
 */
import { Type, type Static, type TObject } from "@sinclair/typebox";
import { Default, EXPECTED, OneOf, Text, Timestamp, UserId, UserObject } from "../http/types.ts";
import { ApiError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Change, Query } from "./documents.ts";
import { isPath, type Index } from "./embedded-text.ts";
import { compileFilter } from "./filter.ts";

const NAMESPACE_EXAMPLE = ["orders", "ada"];
const VALUE_EXAMPLE = { status: "open", total: 12.5 };

const Parts = (minItems: number, description: string) =>
  Type.Array(Text(1, undefined), { minItems, maxItems: LIMITS.namespaceDepthMax, description });
const Namespace = {
  ...Parts(1, `1 to ${LIMITS.namespaceDepthMax} texts, from the general to the particular.`),
  examples: [NAMESPACE_EXAMPLE],
};
const Key = (description: string) => Text(1, undefined, { description, examples: ["A-17"] });
const Value = (description: string) => UserObject({ description, examples: [VALUE_EXAMPLE] });
const Order = Type.Optional(OneOf(["asc", "desc"], { description: "By key: `asc` begins with the first." }));

/** What a document is found by. */
const IndexOf = (description: string) =>
  Type.Optional(
    Type.Unsafe<boolean | string[]>({
      ...Type.Union([
        Type.Boolean(),
        Type.Array(Text(1, LIMITS.documentIndexPathLengthMax), { minItems: 1, maxItems: LIMITS.documentIndexPathsMax }),
      ]),
      [EXPECTED]: `true, false or an array of 1 to ${LIMITS.documentIndexPathsMax} paths`,
      description,
      examples: [["status", "lines[*].article"]],
    }),
  );

const DocumentMembers = {
  object: Type.Literal("document"),
  namespace: Namespace,
  key: Key("Its key in the namespace."),
  value: Value("The JSON object."),
  version: Type.Integer({ description: "Counts the changes since it was created: 1, 2, 3 …", examples: [1] }),
  created_at: Timestamp("When the document was created."),
  updated_at: Timestamp("When it was last changed."),
  index: IndexOf("What of the value `search` finds it by, if anything: all of it, or what these paths lead to."),
};
const Document = Type.Object(DocumentMembers, { title: "Document", description: "A document." });
const DocumentMatch = Type.Object(
  {
    ...DocumentMembers,
    score: Type.Number({ description: "0 to 1, as of memories: 0.7 and more is about the query.", examples: [0.83] }),
  },
  { title: "DocumentMatch", description: "A document that was found by meaning." },
);
const DOCUMENT_EXAMPLE = {
  object: "document",
  namespace: NAMESPACE_EXAMPLE,
  key: "A-17",
  value: VALUE_EXAMPLE,
  version: 1,
  created_at: "2026-05-07T08:00:00.000Z",
  updated_at: "2026-05-07T08:00:00.000Z",
};

const Written = Type.Object(
  { key: Type.String(), version: Type.Integer() },
  { title: "DocumentWritten", description: "What `put` has written." },
);
const Removed = Type.Object({ deleted: Type.Integer() }, { title: "DocumentsDeleted", description: "How many documents were deleted." });
const Counted = Type.Object({ count: Type.Integer() }, { title: "DocumentCount", description: "How many documents there are." });
const Paged = {
  object: Type.Literal("list"),
  has_more: Type.Boolean({ description: "Whether there may be more after this page, which can be short or empty." }),
  next_cursor: Type.Unsafe<string | null>({
    type: "string",
    nullable: true,
    description: "The next page's `cursor`; null on the last page.",
  }),
};
const DocumentPage = Type.Object({ ...Paged, data: Type.Array(Document) }, { title: "DocumentPage", description: "A page of documents." });
const SearchPage = Type.Object(
  {
    object: Type.Literal("list"),
    has_more: Type.Boolean({
      description:
        "Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among " +
        "documents that were not looked at.",
    }),
    data: Type.Array(DocumentMatch),
  },
  { title: "DocumentSearchPage", description: "The best documents first; of equal ones those that were put last." },
);
const NamespacePage = Type.Object(
  { ...Paged, data: Type.Array(Type.Array(Type.String())) },
  { title: "NamespacePage", description: "A page of namespaces." },
);

const Nothing = Type.Unsafe<null>({ type: "object", nullable: true, enum: [null], description: "There is no such document." });

/** One of several kinds of result, or null. */
const AnyOf = (kinds: TObject[], description: string) => Type.Unsafe<unknown>({ ...Type.Union([...kinds, Nothing]), description });
const Results = (title: string, description: string, kinds: TObject[], each: string, example: unknown[]) =>
  Type.Object(
    {
      object: Type.Literal("list"),
      data: Type.Array(AnyOf(kinds, each), { description: "The result of each operation, in their order." }),
    },
    { title, description, examples: [{ object: "list", data: example }] },
  );

export const BatchResults = Results(
  "DocumentChangeResults",
  "What the operations have done.",
  [Written, Removed, Document],
  "Of `put` the key and version, of `delete` and `delete_all` how many, of `pop` the document that was removed, or null.",
  [{ key: "A-17", version: 1 }],
);
export const QueryResults = Results(
  "DocumentQueryResults",
  "What the operations have found.",
  [Document, DocumentPage, SearchPage, Counted, NamespacePage],
  "Of `get` the document or null, of `count` how many, of `list`, `search` and `namespaces` a page.",
  [DOCUMENT_EXAMPLE],
);

/** Whose documents are meant; the same texts are other documents for somebody else. */
const OF_WHOM = {
  user_id: Type.Optional(
    UserId({
      description: "Use the documents of this user instead of those that belong to nobody. A bound key has its own.",
    }),
  ),
  agent_id: Type.Optional(
    Text(1, LIMITS.agentIdLengthMax, { description: "Use the documents of this agent, or of this agent for the user." }),
  ),
};

const Operations = <Item extends TObject>(item: Item, example: object) =>
  Type.Array(item, { minItems: 1, maxItems: LIMITS.documentOperationsMax, description: "In their order.", examples: [[example]] });

const CHANGES = ["put", "delete", "delete_all", "pop"] as const;
const ChangeOperation = Type.Object(
  {
    op: OneOf(CHANGES, {
      description:
        "`put` creates or replaces a document, `delete` removes one, `delete_all` all of a namespace and below it, `pop` gives back the last one of a namespace and removes it.",
    }),
    namespace: Namespace,
    key: Type.Optional(
      Key("For `put` and `delete`. Without one `put` gives the document a key that is greater than all given before: it appends."),
    ),
    value: Type.Optional(Value("For `put`, which needs it.")),
    index: IndexOf(
      "For `put`: what `search` finds the document by: `true` for all texts and numbers of the value, each after the name of its member, or paths to some " +
        "of them, such as `title`, `author.name`, `lines[0].text`, `lines[*].text` or `$` for all. By default it is not found. What they lead to has at " +
        `most ${LIMITS.documentTextLengthMax.toLocaleString("en")} characters.`,
    ),
    if_version: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "For `put` and `delete`: change nothing unless this is the document's version, 0 for none (409 `version_conflict` otherwise).",
      }),
    ),
    session_id: Type.Optional(Text(1, undefined, { description: "For `put`: the document goes when this session does." })),
    ttl_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: LIMITS.ttlSecondsMax, description: "For `put`: seconds until the document expires." }),
    ),
    order: Order,
  },
  { title: "DocumentChange", description: "A change of documents." },
);
export const DocumentBatch = Type.Object(
  { ...OF_WHOM, operations: Operations(ChangeOperation, { op: "put", namespace: NAMESPACE_EXAMPLE, key: "A-17", value: VALUE_EXAMPLE }) },
  { title: "DocumentBatch", description: "Changes that are made together." },
);

const QUERIES = ["get", "list", "search", "count", "namespaces"] as const;
const QueryOperation = Type.Object(
  {
    op: OneOf(QUERIES, {
      description:
        "`get` gives one document, `list` those of a namespace, `search` those of a namespace and below it that a query is about, `count` how many there are, `namespaces` those that have documents.",
    }),
    namespace: Type.Optional(Namespace),
    key: Type.Optional(Key("For `get`.")),
    deep: Type.Optional(Type.Boolean({ description: "For `list` and `count`: also all namespaces below." })),
    order: Order,
    after: Type.Optional(Text(1, undefined, { description: "For `list` that is not `deep`: only keys after this one." })),
    before: Type.Optional(Text(1, undefined, { description: "For `list` that is not `deep`: only keys before this one." })),
    filter: Type.Optional(
      UserObject({
        description:
          "For `list` and `search`: dotted paths in the value, each with a value that it must equal, or with `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`.",
      }),
    ),
    query: Type.Optional(
      Text(0, LIMITS.queryLengthMax, { description: "For `search`: what the documents are to be about.", examples: ["an open order"] }),
    ),
    threshold: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: "For `search`: the lowest score of a document that is found; default 0." }),
    ),
    prefix: Type.Optional(Parts(0, "For `namespaces`: how they begin; `*` is any text.")),
    suffix: Type.Optional(Parts(0, "For `namespaces`: how they end; `*` is any text.")),
    max_depth: Type.Optional(
      Type.Integer({ minimum: 1, maximum: LIMITS.namespaceDepthMax, description: "For `namespaces`: longer ones are cut to this length." }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.documentListMax,
        description:
          `How many at most; default ${LIMITS.documentListDefault}, for \`search\` ${LIMITS.searchDefault}. Of a search limit and offset together are at most ` +
          `${LIMITS.documentSearchDepthMax}.`,
      }),
    ),
    offset: Default(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.documentRowsMax,
        description: `How many to leave out first; default 0. None on further pages: what is left of it is in the \`cursor\`.`,
      }),
      0,
    ),
    cursor: Type.Optional(Text(1, undefined, { description: "The `next_cursor` of the page before." })),
  },
  { title: "DocumentQueryOperation", description: "What to look for." },
);
export const DocumentQuery = Type.Object(
  { ...OF_WHOM, operations: Operations(QueryOperation, { op: "get", namespace: NAMESPACE_EXAMPLE, key: "A-17" }) },
  { title: "DocumentQuery", description: "What to look for." },
);

/** The fields of each operation: those it needs, and those it takes. */
const FIELDS: Record<string, { needs: readonly string[]; takes: readonly string[] }> = {
  put: { needs: ["namespace", "value"], takes: ["key", "index", "if_version", "session_id", "ttl_seconds"] },
  delete: { needs: ["namespace", "key"], takes: ["if_version"] },
  delete_all: { needs: ["namespace"], takes: [] },
  pop: { needs: ["namespace"], takes: ["order"] },
  get: { needs: ["namespace", "key"], takes: [] },
  list: { needs: ["namespace"], takes: ["deep", "order", "after", "before", "filter", "limit", "offset", "cursor"] },
  search: { needs: ["namespace", "query"], takes: ["filter", "threshold", "limit", "offset"] },
  count: { needs: ["namespace"], takes: ["deep"] },
  namespaces: { needs: [], takes: ["prefix", "suffix", "max_depth", "limit", "offset", "cursor"] },
};

type Sent = { op: string } & Partial<Omit<Static<typeof ChangeOperation>, "op"> & Omit<Static<typeof QueryOperation>, "op">>;

/** @throws {ApiError} `invalid_request` for a field that the operation lacks or does not take: one ignored would change what is meant */
function checkOperation(sent: Sent, known: TObject, param: string): void {
  const { needs, takes } = FIELDS[sent.op]!;
  const refuse = (field: string, problem: string) => {
    throw new ApiError("invalid_request", `${param}.${field} ${problem}`, { param: `${param}.${field}` });
  };
  const { op, namespace, key, prefix, suffix, after, before } = sent;
  for (const field of needs) if (sent[field as keyof Sent] === undefined) refuse(field, `is required for ${op}.`);
  for (const field of Object.keys(known.properties)) {
    const isKnown = field === "op" || needs.includes(field) || takes.includes(field);
    if (!isKnown && sent[field as keyof Sent] !== undefined)
      refuse(field, `is not for ${op}, which takes ${[...needs, ...takes].join(", ")}.`);
  }
  for (const [field, parts] of Object.entries({ namespace, prefix, suffix })) {
    const odd = parts?.findIndex((part) => !part.isWellFormed()) ?? -1;
    if (odd !== -1) refuse(`${field}.${odd}`, "must be well-formed Unicode, without halves of surrogate pairs.");
  }
  const prefixBytes = (prefix ?? []).reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  if (prefixBytes > LIMITS.documentNameBytesMax)
    refuse("prefix", `must be at most ${LIMITS.documentNameBytesMax} bytes of UTF-8; got ${prefixBytes}.`);
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
const CURSOR = /^([0-9a-f!.~]{1,1850})(?:\+([1-9]\d{0,4}))?$/;

/** Changes as operations get them. */
export function changesOf(sent: readonly Static<typeof ChangeOperation>[]): Change[] {
  return sent.map((operation, i) => {
    checkOperation(operation, ChangeOperation, `operations.${i}`);
    const index = indexOf(operation.index, `operations.${i}`);
    const { op, namespace, key, value, if_version: ifVersion, session_id: sessionId, ttl_seconds: ttlSeconds, order = "desc" } = operation;
    return { op, namespace, key, value, index, ifVersion, sessionId, ttlSeconds, order } as Change;
  });
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

export function queriesOf(sent: readonly Static<typeof QueryOperation>[]): Query[] {
  refuseManySearches(sent);
  return sent.map((operation, i) => {
    const param = `operations.${i}`;
    checkOperation(operation, QueryOperation, param);
    const {
      filter,
      max_depth: maxDepth,
      deep = false,
      order = "asc",
      prefix = [],
      suffix = [],
      after,
      before,
      cursor: sentCursor,
      ...rest
    } = operation;
    if (deep && (after ?? before) !== undefined) {
      const field = after === undefined ? "before" : "after";
      throw new ApiError("invalid_request", `${param}.${field} is a key of one namespace: a deep list continues with cursor.`, {
        param: `${param}.${field}`,
      });
    }
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
      prefix,
      suffix,
      after,
      before,
      cursor,
      maxDepth,
      filter: filterOf(filter, param),
    } as Query;
  });
}

/** Where a page begins, and how many of it are still to be left out. */
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

function filterOf(filter: JsonObject | undefined, param: string) {
  const compiled = filter === undefined ? undefined : compileFilter(filter);
  if (compiled === undefined || !("problem" in compiled)) return compiled;
  throw new ApiError("invalid_request", `${param}.filter ${compiled.problem}.`, { param: `${param}.filter` });
}
