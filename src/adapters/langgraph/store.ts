/**
 * LangGraph's store as documents: an item is one document.
 *
 * As with LangGraph's own stores the reads of a batch see what was there before its writes, and of several writes to one item the last
 * counts.
 *
 * @module
 */
import {
  BaseStore,
  validateNamespace,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Document, DocumentChange, DocumentMatch, Documents, JsonObject } from "../../client/index.ts";
import { change, getAll, rootOf, taken } from "../shared/documents.ts";
import { isScalar } from "../shared/stored-json.ts";

export interface CairnStoreOptions {
  /** Namespace of items; `["langgraph-store"]` unless given. */
  namespace?: string[];
  /**
   * Lets `search` order items by a `query`: `true` by all of an item, or by the fields of these paths, such as `text` or `lines[*].text`.
   * Cairn makes the vectors itself. What an item is found by has at most 10,000 characters. Without it a `query` changes nothing, as in
   * LangGraph's own stores.
   */
  index?: boolean | { fields?: string[] };
}

const LIMIT = 10;
const PAGE = 100;
/** Number of items that a search by meaning ranks; the items behind come without a score. */
const MATCHES_MAX = 200;

export class CairnStore extends BaseStore {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  /** Fields that items are found by unless a put says otherwise. */
  readonly #index: boolean | string[];

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })` */
  constructor(documents: Documents, { namespace = ["langgraph-store"], index = false }: CairnStoreOptions = {}) {
    super();
    this.#index = typeof index === "boolean" ? index : (index.fields ?? true);
    this.#documents = documents;
    this.#root = rootOf(namespace);
  }

  async batch<Operations extends Operation[]>(operations: Operations): Promise<OperationResults<Operations>> {
    for (const operation of operations) {
      if ("namespace" in operation) validateNamespace(operation.namespace, { allowReservedRoot: true });
      if ("namespacePrefix" in operation) validateNamespace(operation.namespacePrefix, { allowEmpty: true, allowReservedRoot: true });
    }
    const gets = operations.filter(isGet);
    const [found, lists] = await Promise.all([this.#get(gets), Promise.all(operations.map((operation) => this.#list(operation)))]);
    const items = found.values();
    const results = operations.map((operation, i) => (isGet(operation) ? items.next().value : lists[i]));
    const puts = operations.filter((operation): operation is PutOperation => "value" in operation);
    const last = new Map(puts.map((put) => [JSON.stringify([put.namespace, put.key]), put]));
    await change(
      this.#documents,
      Array.from(last.values(), (put) => this.#change(put)),
    );
    return results as OperationResults<Operations>;
  }

  async #list(operation: Operation): Promise<SearchItem[] | string[][] | undefined> {
    if ("key" in operation) return undefined;
    return "namespacePrefix" in operation ? this.#search(operation) : this.#namespaces(operation);
  }

  #change({ namespace, key, value, index = this.#index }: Omit<PutOperation, "index"> & { index?: boolean | string[] }): DocumentChange {
    const at = { namespace: this.#under(namespace), key };
    if (value === null) return { op: "delete", ...at };
    const isIndexed = Array.isArray(index) ? index.length > 0 : index;
    return { op: "put", ...at, value, ...(isIndexed ? { index } : {}) };
  }

  async #get(gets: readonly GetOperation[]): Promise<(Item | null)[]> {
    const found = await getAll(
      this.#documents,
      gets.map(({ namespace, key }) => ({ namespace: this.#under(namespace), key })),
    );
    return found.map((document) => (document === null ? null : this.#item(document)));
  }

  async #search({ namespacePrefix, filter = {}, limit = LIMIT, offset = 0, query }: SearchOperation): Promise<SearchItem[]> {
    const conditions = Object.entries(filter);
    const [ofServer, ofClient] = [conditions.filter(isOfServer), conditions.filter((condition) => !isOfServer(condition))];
    const namespace = this.#under(namespacePrefix);
    const filtered = ofServer.length === 0 ? {} : { filter: Object.fromEntries(ofServer) };
    const isWanted = ({ value }: Document) => ofClient.every(([name, wanted]) => passes(value[name], wanted));
    if (limit <= 0) return [];
    const count = query && this.#index !== false ? Math.min(MATCHES_MAX, ofClient.length === 0 ? offset + limit : MATCHES_MAX) : 0;
    const found = await this.#matches(namespace, query ?? "", filtered, count);
    const matches = Array.from(found.values()).filter(isWanted);
    const page = matches.slice(offset, offset + limit).map((match): SearchItem => ({ ...this.#item(match), score: match.score }));
    if (page.length === limit) return page;
    // Items without a score come behind those that have one.
    const rest = { offset: Math.max(0, offset - matches.length), limit: limit - page.length };
    const list = this.#documents.list(namespace, { ...filtered, deep: true, limit: Math.min(PAGE, offset + limit) });
    const isLeft = (document: Document) => isWanted(document) && !found.has(placeOf(document));
    return [...page, ...(await taken(list, rest, isLeft)).map((document) => this.#item(document))];
  }

  /** Returns the documents that a query is about, best first. One page has less than was asked for where they are large. */
  async #matches(namespace: string[], query: string, filtered: object, count: number): Promise<Map<string, DocumentMatch>> {
    const found = new Map<string, DocumentMatch>();
    for (let offset = 0; offset < count;) {
      const { data, has_more } = await this.#documents.search(namespace, query, { ...filtered, limit: count - offset, offset });
      for (const match of data) found.set(placeOf(match), match);
      if (!has_more || data.length === 0) break;
      offset += data.length;
    }
    return found;
  }

  async #namespaces({ matchConditions = [], maxDepth = Infinity, limit, offset }: ListNamespacesOperation): Promise<string[][]> {
    const root = this.#root.length;
    const prefixes = matchConditions.filter(({ matchType }) => matchType === "prefix").map(({ path }) => path);
    const found = this.#documents.namespaces({ prefix: this.#under(prefixes[0] ?? []), limit: PAGE });
    const isWanted = (namespace: string[]) =>
      matchConditions.every(({ matchType, path }) => {
        const part = matchType === "prefix" ? namespace.slice(0, path.length) : namespace.slice(-path.length);
        return part.length === path.length && path.every((wanted, i) => wanted === "*" || wanted === part[i]);
      });
    const seen = new Set<string>();
    const isNew = (namespace: string[]) => seen.size < seen.add(JSON.stringify(namespace.slice(0, maxDepth))).size;
    // To the server a part that is a star is any, in the root of this store too.
    const isOwn = (namespace: string[]) => this.#root.every((part, i) => part === namespace[i]);
    const page = await taken(
      found,
      { offset, limit },
      (namespace) => isOwn(namespace) && isWanted(namespace.slice(root)) && isNew(namespace.slice(root)),
    );
    return page.map((namespace) => namespace.slice(root).slice(0, maxDepth));
  }

  #under(namespace: string[]): string[] {
    return [...this.#root, ...namespace];
  }

  #item({ namespace, key, value, created_at, updated_at }: Document): Item {
    return { namespace: namespace.slice(this.#root.length), key, value, createdAt: new Date(created_at), updatedAt: new Date(updated_at) };
  }
}

function isGet(operation: Operation): operation is GetOperation {
  return "key" in operation && !("value" in operation);
}

function placeOf({ namespace, key }: Document): string {
  return JSON.stringify([namespace, key]);
}

/**
 * Checks whether the server compares as LangGraph does: it reads dots as paths, knows no `$nin`, and compares arrays and objects by
 * what they contain. Numbers it compares with numbers only, which is what is meant.
 */
function isOfServer([name, wanted]: [string, unknown]): boolean {
  if (name === "" || name.startsWith("$") || name.includes(".")) return false;
  if (!isObject(wanted)) return isScalar(wanted);
  const operators = Object.entries(wanted);
  return (
    operators.length > 0 &&
    operators.every(([operator, operand]) => {
      return ["$eq", "$ne"].includes(operator)
        ? isScalar(operand)
        : ["$gt", "$gte", "$lt", "$lte"].includes(operator) && typeof operand === "number";
    })
  );
}

/** Compares as LangGraph's stores do. */
function passes(value: unknown, wanted: unknown): boolean {
  if (!isObject(wanted) || !Object.keys(wanted).every((name) => name in COMPARISONS)) return value === wanted;
  return Object.entries(wanted).every(([name, operand]) => COMPARISONS[name]?.(value, operand));
}

const COMPARISONS: Readonly<Record<string, (value: unknown, operand: unknown) => boolean>> = {
  $eq: (value, operand) => value === operand,
  $ne: (value, operand) => value !== operand,
  $gt: (value, operand) => Number(value) > Number(operand),
  $gte: (value, operand) => Number(value) >= Number(operand),
  $lt: (value, operand) => Number(value) < Number(operand),
  $lte: (value, operand) => Number(value) <= Number(operand),
  $in: (value, operand) => Array.isArray(operand) && operand.includes(value),
  $nin: (value, operand) => !Array.isArray(operand) || !operand.includes(value),
};

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
