/**
 * Documents on the wire.
 *
 * All operations of a request have one schema, so that an error names the field and not a list of alternatives; `operations.ts` has which
 * fields belong to which operation.
 *
 * @module
 */
import { Type, type Static, type TObject, type TProperties } from "@sinclair/typebox";
import { Filter } from "../filters/schema.ts";
import { Default, EXPECTED, OneOf, OrNull, Redacted, Text, Timestamp, UserId, UserObject } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import type { TimeToLive } from "./lifetime.ts";

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
const Order = Type.Optional(
  OneOf(["asc", "desc"], { description: "`asc` begins with the first, by key unless `order_by` says otherwise." }),
);

const TTL_SECONDS_MIN = 0.001;
/** Lifetime of a document. */
const TtlSeconds = (description: string) =>
  Type.Optional(
    Type.Unsafe<TimeToLive>({
      ...Type.Union([Type.Number({ minimum: TTL_SECONDS_MIN }), Type.Literal("never")]),
      [EXPECTED]: `a number of at least ${TTL_SECONDS_MIN}, or "never"`,
      description,
      examples: [86_400],
    }),
  );

/** Text that a document is found by. */
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

const HeadMembers = {
  object: Type.Literal("document"),
  namespace: Namespace,
  key: Key("Its key in the namespace."),
  version: Type.Integer({ description: "Counts the changes since it was created: 1, 2, 3 …", examples: [1] }),
  created_at: Timestamp("When the document was created."),
  updated_at: Timestamp("When it was last put; `touch` leaves that as it is."),
  expires_at: Type.Optional(Timestamp("When the document expires, by the year 9999 at the latest; left out of one that does not.")),
  index: IndexOf("What of the value `search` finds it by, if anything: all of it, or what these paths lead to."),
};
const DocumentMembers = { ...HeadMembers, value: Value("The JSON object, or the `fields` of it that were asked for.") };
const Document = Type.Object(DocumentMembers, { title: "Document", description: "A document." });
const Head = Type.Object(HeadMembers, { title: "DocumentHead", description: "A document without its value (`values: false`)." });
const Score = { score: Type.Number({ description: "0 to 1, as of memories: 0.7 and more is about the query.", examples: [0.83] }) };
const DocumentMatch = Type.Object(
  { ...DocumentMembers, ...Score },
  { title: "DocumentMatch", description: "A document that was found by meaning." },
);
const MatchHead = Type.Object(
  { ...HeadMembers, ...Score },
  { title: "DocumentMatchHead", description: "A document that was found by meaning, without its value (`values: false`)." },
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
  {
    key: Type.String(),
    version: Type.Integer(),
    kept: Type.Optional(
      Type.Literal(true, { description: "Set where `if_exists` kept the document that was there: this is its version." }),
    ),
  },
  { title: "DocumentWritten", description: "What `put` has written." },
);
const Touched = Type.Object(
  {
    key: Type.String(),
    version: Type.Integer(),
    expires_at: OrNull(Timestamp("When the document expires now; null if it does not.")),
  },
  { title: "DocumentTouched", description: "What `touch` has renewed." },
);
const Continued = (description: string) => OrNull(Type.String({ description }));
const Removed = Type.Object(
  {
    deleted: Type.Integer(),
    next_cursor: Type.Optional(
      Continued("The `cursor` of the operation that continues here, of a `delete_all` with a `filter`; null once all is looked at."),
    ),
  },
  { title: "DocumentsDeleted", description: "How many documents were deleted." },
);
const Copied = Type.Object(
  { copied: Type.Integer(), next_cursor: Continued("The `cursor` of the operation that continues here; null once all is copied.") },
  { title: "DocumentsCopied", description: "How many documents were copied." },
);
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
const HeadPage = Type.Object(
  { ...Paged, data: Type.Array(Head) },
  { title: "DocumentHeadPage", description: "A page of documents without their values." },
);
const Searched = {
  object: Type.Literal("list"),
  has_more: Type.Boolean({
    description:
      "Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among " +
      "documents that were not looked at.",
  }),
};
const SearchPage = Type.Object(
  { ...Searched, data: Type.Array(DocumentMatch) },
  { title: "DocumentSearchPage", description: "The best documents first; of equal ones those that were put last." },
);
const SearchHeadPage = Type.Object(
  { ...Searched, data: Type.Array(MatchHead) },
  { title: "DocumentSearchHeadPage", description: "The best documents first, without their values." },
);
const NamespacePage = Type.Object(
  { ...Paged, data: Type.Array(Type.Array(Type.String())) },
  { title: "NamespacePage", description: "A page of namespaces." },
);

const Nothing = Type.Unsafe<null>({ type: "object", nullable: true, enum: [null], description: "There is no such document." });

/** One of several kinds of result, or null. */
const AnyOf = (kinds: TObject[], description: string) => Type.Unsafe<unknown>({ ...Type.Union([...kinds, Nothing]), description });
const Results = (title: string, description: string, kinds: TObject[], each: string, example: unknown[], more: TProperties = {}) =>
  Type.Object(
    {
      object: Type.Literal("list"),
      data: Type.Array(AnyOf(kinds, each), { description: "The result of each operation, in their order." }),
      ...more,
    },
    { title, description, examples: [{ object: "list", data: example }] },
  );

export const BatchResults = Results(
  "DocumentChangeResults",
  "What the operations have done.",
  [Written, Touched, Removed, Copied, Document],
  "Of `put` the key and version, of `touch` those and the end, or null, of `delete`, `delete_all` and `copy_all` how many, of `pop` the document that was removed, or null.",
  [{ key: "A-17", version: 1 }],
  { redacted: Redacted },
);
export const QueryResults = Results(
  "DocumentQueryResults",
  "What the operations have found.",
  [Document, Head, DocumentPage, HeadPage, SearchPage, SearchHeadPage, Counted, NamespacePage],
  "Of `get` the document or null, of `count` how many, of `list`, `search` and `namespaces` a page.",
  [DOCUMENT_EXAMPLE],
);

/** Owner of the documents; the same texts are other documents for somebody else. */
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

const CHANGES = ["put", "touch", "delete", "delete_all", "copy_all", "pop"] as const;
export const ChangeOperation = Type.Object(
  {
    op: OneOf(CHANGES, {
      description:
        "`put` creates or replaces a document, `touch` gives one another end, `delete` removes one, `delete_all` all of a namespace and below it, `copy_all` puts those under another namespace too, `pop` gives back the last one of a namespace and removes it.",
    }),
    namespace: Namespace,
    key: Type.Optional(
      Key("For `put`, `touch` and `delete`. Without one `put` gives the document a key that is greater than all given before: it appends."),
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
    if_exists: Type.Optional(
      OneOf(["replace", "keep"], {
        description:
          "For `put` with a key: `keep` leaves a document that is there as it is, and its result says `kept`. `replace` is the default.",
      }),
    ),
    session_id: Type.Optional(Text(1, undefined, { description: "For `put`: the document goes when this session does." })),
    ttl_seconds: TtlSeconds(
      "For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A `put` without it makes a " +
        "document that does not expire; a `touch` without it counts from now what the document was given last.",
    ),
    order: Order,
    to: Type.Optional(
      Parts(
        1,
        "For `copy_all`: the namespace that takes the place of `namespace` in the copies. A copy has the key, value, index, session and end of its " +
          "original, and replaces what is there. Neither namespace can be below the other.",
      ),
    ),
    filter: Type.Optional(Filter({ status: "done" })),
    cursor: Type.Optional(
      Text(1, undefined, {
        description:
          `For \`copy_all\` and \`delete_all\` with a \`filter\`: the \`next_cursor\` of the operation before. A batch looks at ${LIMITS.documentBulkRowsMax.toLocaleString("en")} documents at most for all of ` +
          `its operations, or at fewer large ones, and deletes or copies ${LIMITS.documentBulkChangesMax} of them.`,
      }),
    ),
  },
  { title: "DocumentChange", description: "A change of documents." },
);
export const DocumentBatch = Type.Object(
  { ...OF_WHOM, operations: Operations(ChangeOperation, { op: "put", namespace: NAMESPACE_EXAMPLE, key: "A-17", value: VALUE_EXAMPLE }) },
  { title: "DocumentBatch", description: "Changes that are made together." },
);

const QUERIES = ["get", "list", "search", "count", "namespaces"] as const;
export const QueryOperation = Type.Object(
  {
    op: OneOf(QUERIES, {
      description:
        "`get` gives one document, `list` those of a namespace, `search` those of a namespace and below it that a query is about, `count` how many there are, `namespaces` those that have documents.",
    }),
    namespace: Type.Optional(Namespace),
    key: Type.Optional(Key("For `get`.")),
    deep: Type.Optional(Type.Boolean({ description: "For `list` and `count`: also all namespaces below." })),
    order: Order,
    order_by: Type.Optional(
      OneOf(["key", "updated_at"], {
        description:
          "For `list` that is not `deep`: `updated_at` lists documents as they were put last, `key` is the default. One that is put again " +
          "between two pages comes at the end of the list.",
      }),
    ),
    after: Type.Optional(Text(1, undefined, { description: "For `list` that is not `deep`: only keys after this one." })),
    before: Type.Optional(Text(1, undefined, { description: "For `list` that is not `deep`: only keys before this one." })),
    filter: Type.Optional(Filter({ status: "open", total: { $gte: 10 } })),
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
    values: Type.Optional(Type.Boolean({ description: "For `get`, `list` and `search`: `false` leaves the values out; default true." })),
    fields: Type.Optional(
      Type.Array(Text(0, undefined), {
        minItems: 1,
        maxItems: LIMITS.documentFieldsMax,
        description:
          "For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far as they are there.",
        examples: [["status", "order.total"]],
      }),
    ),
  },
  { title: "DocumentQueryOperation", description: "What to look for." },
);
export const DocumentQuery = Type.Object(
  { ...OF_WHOM, operations: Operations(QueryOperation, { op: "get", namespace: NAMESPACE_EXAMPLE, key: "A-17" }) },
  { title: "DocumentQuery", description: "What to look for." },
);

/** An operation as it was sent. */
export type SentChange = Static<typeof ChangeOperation>;
export type SentQuery = Static<typeof QueryOperation>;
