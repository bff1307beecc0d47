/**
 * Documents: JSON under a namespace and a key. Each method is one operation; `batch` and `query` make several in one request.
 *
 * @module
 */
import { checkFilters, checkGiven, type Filters } from "./filters.ts";
import type { CallOptions, Http } from "./http.ts";
import { listing, type Listing } from "./page.ts";
import type {
  Document,
  DocumentBatch,
  DocumentChange,
  DocumentCount,
  DocumentHead,
  DocumentHeadPage,
  DocumentPage,
  DocumentQueryOperation,
  DocumentSearchHeadPage,
  DocumentSearchPage,
  DocumentsCopied,
  DocumentsDeleted,
  DocumentTouched,
  DocumentWritten,
  JsonObject,
  NamespacePage,
} from "./types.ts";

/** Owner of the documents to use: those that belong to nobody unless given. A bound key has its own. */
export type DocumentOwner = Pick<DocumentBatch, "user_id" | "agent_id">;

type ChangeResult<Op> = Op extends "put"
  ? DocumentWritten
  : Op extends "touch"
    ? DocumentTouched | null
    : Op extends "pop"
      ? Document | null
      : Op extends "copy_all"
        ? DocumentsCopied
        : DocumentsDeleted;
type QueryResult<Operation extends DocumentQueryOperation, Op = Operation["op"]> = Op extends "get"
  ? Shown<Operation, Document, DocumentHead> | null
  : Op extends "list"
    ? Shown<Operation, DocumentPage, DocumentHeadPage>
    : Op extends "search"
      ? Shown<Operation, DocumentSearchPage, DocumentSearchHeadPage>
      : Op extends "count"
        ? DocumentCount
        : NamespacePage;
/** Types with the values of documents, and without them. */
type Shown<Given, Whole, Head> = Given extends { values: false } ? Head : Whole;

/** The fields of an operation that its method does not take by itself. */
type More<Operation, Names extends keyof Operation> = Pick<Operation, Names>;
type ShownMore = More<DocumentQueryOperation, "values" | "fields">;
type ListMore = ShownMore &
  More<DocumentQueryOperation, "deep" | "order" | "order_by" | "after" | "before" | "filter" | "limit" | "offset" | "cursor">;
type SearchMore = ShownMore & More<DocumentQueryOperation, "filter" | "threshold" | "limit" | "offset">;
type NamespacesMore = More<DocumentQueryOperation, "prefix" | "suffix" | "max_depth" | "limit" | "offset" | "cursor">;

/** Without one of these a change is another one: of another document, of whatever is there, for ever. */
const CONDITIONS = ["key", "if_version", "if_exists", "session_id", "ttl_seconds", "filter"];

export class Documents {
  /** Their owner, as far as that was said. */
  readonly owner: DocumentOwner;
  readonly #http: Http;
  readonly #sessionId: string | undefined;

  constructor(http: Http, owner: DocumentOwner = {}, sessionId?: string) {
    this.#http = http;
    this.owner = owner;
    this.#sessionId = sessionId;
  }

  /**
   * The documents of a user, of an agent, or of an agent for a user.
   *
   * @throws {TypeError} for an id that is undefined or null, which JSON leaves out: they would be nobody's, which all share
   */
  of<Given extends DocumentOwner>(owner: Filters<DocumentOwner, Given>): Documents {
    checkFilters(owner);
    return new Documents(this.#http, owner, this.#sessionId);
  }

  /** The same documents; whatever is put belongs to a session and is deleted with it. */
  ofSession(sessionId: string): Documents {
    return new Documents(this.#http, this.owner, sessionId);
  }

  /** Makes up to 100 changes in one transaction, in their order: all of them or none. Returns the result of each. */
  async batch<Operations extends readonly [DocumentChange, ...DocumentChange[]] | readonly DocumentChange[]>(
    operations: Operations,
    options?: CallOptions,
  ): Promise<{ -readonly [I in keyof Operations]: ChangeResult<Operations[I]["op"]> }> {
    for (const operation of operations) checkGiven(operation, CONDITIONS);
    const session = this.#sessionId === undefined ? {} : { session_id: this.#sessionId };
    const owned = operations.map((operation) => (operation.op === "put" ? { ...session, ...operation } : operation));
    return this.#results("batch", owned, options);
  }

  /** Runs up to 100 reads in one request. Returns the result of each. */
  async query<Operations extends readonly [DocumentQueryOperation, ...DocumentQueryOperation[]] | readonly DocumentQueryOperation[]>(
    operations: Operations,
    options?: CallOptions,
  ): Promise<{ -readonly [I in keyof Operations]: QueryResult<Operations[I]> }> {
    for (const operation of operations) checkFilters(operation);
    return this.#results("query", operations, options);
  }

  async #results<Results>(kind: "batch" | "query", operations: readonly object[], options: CallOptions | undefined): Promise<Results> {
    const body = { ...this.owner, operations };
    return (await this.#http.call<{ data: Results }>({ method: "POST", path: `/v1/documents/${kind}`, body }, options)).data;
  }

  async get<Given extends ShownMore>(
    namespace: string[],
    key: string,
    more?: Given,
    options?: CallOptions,
  ): Promise<Shown<Given, Document, DocumentHead> | null> {
    return (await this.query([{ ...more, op: "get", namespace, key }], options))[0];
  }

  async put(
    namespace: string[],
    key: string,
    value: JsonObject,
    more: More<DocumentChange, "index" | "if_version" | "if_exists" | "session_id" | "ttl_seconds"> = {},
    options?: CallOptions,
  ): Promise<DocumentWritten> {
    return (await this.batch([{ ...more, op: "put", namespace, key, value }], options))[0];
  }

  /**
   * Gives a document another end, its time to live counted from now unless given. Its version and `updated_at` stay. Returns null where
   * there is none.
   */
  async touch(
    namespace: string[],
    key: string,
    more: More<DocumentChange, "ttl_seconds"> = {},
    options?: CallOptions,
  ): Promise<DocumentTouched | null> {
    return (await this.batch([{ ...more, op: "touch", namespace, key }], options))[0];
  }

  /** Puts a document under a new key, which is greater than all before it. */
  async append(
    namespace: string[],
    value: JsonObject,
    more: More<DocumentChange, "index" | "session_id" | "ttl_seconds"> = {},
    options?: CallOptions,
  ): Promise<DocumentWritten> {
    return (await this.batch([{ ...more, op: "put", namespace, value }], options))[0];
  }

  async delete(
    namespace: string[],
    key: string,
    more: More<DocumentChange, "if_version"> = {},
    options?: CallOptions,
  ): Promise<DocumentsDeleted> {
    return (await this.batch([{ ...more, op: "delete", namespace, key }], options))[0];
  }

  /**
   * Deletes all documents of a namespace and below it, or those that pass a filter: of them a piece, and the next one from `next_cursor`
   * on, until that is null.
   */
  async deleteAll(
    namespace: string[],
    more: More<DocumentChange, "filter" | "cursor"> = {},
    options?: CallOptions,
  ): Promise<DocumentsDeleted> {
    return (await this.batch([{ ...more, op: "delete_all", namespace }], options))[0];
  }

  /**
   * Copies a piece of the documents of a namespace, and below it, to the same keys under another one, and the next one from `next_cursor`
   * on, until that is null.
   */
  async copyAll(
    namespace: string[],
    to: string[],
    more: More<DocumentChange, "cursor"> = {},
    options?: CallOptions,
  ): Promise<DocumentsCopied> {
    return (await this.batch([{ ...more, op: "copy_all", namespace, to }], options))[0];
  }

  /** Removes the last document of a namespace, or the first, and returns it. */
  async pop(namespace: string[], more: More<DocumentChange, "order"> = {}, options?: CallOptions): Promise<Document | null> {
    return (await this.batch([{ ...more, op: "pop", namespace }], options))[0];
  }

  list<Given extends ListMore>(
    namespace: string[],
    more?: Filters<ListMore, Given>,
    options?: CallOptions,
  ): Listing<Shown<Given, DocumentPage, DocumentHeadPage>> {
    type Page = Shown<Given, DocumentPage, DocumentHeadPage>;
    const read = async (at: object) => (await this.query([{ ...more, ...at, op: "list", namespace }], options))[0] as Page;
    return listing(read({}), (page) => nextPage(page, read));
  }

  /** Searches the documents of a namespace and below it by meaning, among those that were put with `index`. */
  async search<Given extends SearchMore>(
    namespace: string[],
    query: string,
    more?: Filters<SearchMore, Given>,
    options?: CallOptions,
  ): Promise<Shown<Given, DocumentSearchPage, DocumentSearchHeadPage>> {
    return (await this.query([{ ...more, op: "search", namespace, query }], options))[0];
  }

  async count(namespace: string[], more: More<DocumentQueryOperation, "deep"> = {}, options?: CallOptions): Promise<number> {
    return (await this.query([{ ...more, op: "count", namespace }], options))[0].count;
  }

  /** The namespaces that have documents. */
  namespaces<Given extends NamespacesMore>(more?: Filters<NamespacesMore, Given>, options?: CallOptions): Listing<NamespacePage> {
    const read = async (at: object) => (await this.query([{ ...more, ...at, op: "namespaces" }], options))[0];
    return listing(read({}), (page) => nextPage(page, read));
  }
}

/** The rest of an offset that a page has not left out yet is in its cursor. */
function nextPage<Page extends { next_cursor: string | null }>(
  { next_cursor: cursor }: Page,
  read: (at: object) => Promise<Page>,
): Promise<Page> | undefined {
  return cursor === null ? undefined : read({ cursor, offset: 0 });
}
