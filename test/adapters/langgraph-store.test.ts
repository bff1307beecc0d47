/**
 * LangGraph's store on Cairn beside LangGraph's own in memory: batches by chance give the same on both.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Embeddings } from "@langchain/core/embeddings";
import { InMemoryStore, type Operation } from "@langchain/langgraph-checkpoint";
import { CairnStore } from "../../src/adapters/langgraph.ts";
import { startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const storeOf = (...namespace: string[]) => new CairnStore(client.cairn.documents, { namespace: ["store", ...namespace] });

const NAMES = ["users", "docs", "a b", "é/ü", "*"];
const KEYS = ["k1", "k2", "k/3"];
const FILTERS = [
  undefined,
  {},
  { kind: "x" },
  { n: { $gte: 2 } },
  { n: { $ne: 1 }, kind: "y" },
  { n: { $in: [1, 3] } },
  { n: { $nin: [1, 3] } },
  { n: { $gt: 1, $lte: 3 } },
  { "dotted.key": true },
  { nested: { a: 1 } },
  { missing: { $ne: 1 } },
  { kind: { $eq: "x" }, n: {} },
];
const MATCHES: Extract<Operation, { limit: number; offset: number }>["matchConditions"][] = [
  undefined,
  [],
  [{ matchType: "prefix", path: ["users"] }],
  [{ matchType: "suffix", path: ["docs"] }],
  [{ matchType: "prefix", path: ["*", "docs"] }],
  [{ matchType: "suffix", path: ["*", "docs"] }],
  [
    { matchType: "prefix", path: ["docs"] },
    { matchType: "suffix", path: ["users"] },
  ],
  [
    { matchType: "prefix", path: ["*", "a b"] },
    { matchType: "prefix", path: ["users"] },
  ],
];

/** What InMemoryStore does otherwise is left out: it goes on listing namespaces without items. */
function operation(chance: Chance, isWrite: boolean, deletes: boolean): Operation {
  const namespace = () => Array.from({ length: 1 + chance.below(3) }, () => pick(chance, NAMES));
  const act = isWrite ? 0 : 1 + chance.below(5);
  if (act === 0) {
    const value = {
      kind: pick(chance, ["x", "y"]),
      n: chance.below(5),
      "dotted.key": chance.below(2) === 0,
      nested: { a: [1, null, "é😀"] },
    };
    const index = pick(chance, [undefined, false, ["kind"]] as const);
    const put = { namespace: namespace(), key: pick(chance, KEYS), value: deletes && chance.below(5) === 0 ? null : value };
    return index === undefined ? put : { ...put, index: index && [...index] };
  }
  if (act <= 2) return { namespace: namespace(), key: pick(chance, KEYS) };
  if (act <= 4 || deletes) {
    const filter = pick(chance, FILTERS);
    const query = pick(chance, [undefined, "", "x", "What is é?"]);
    const page = { limit: 1000, offset: 0 };
    return {
      namespacePrefix: namespace().slice(chance.below(3)),
      ...page,
      ...(filter && { filter }),
      ...(query !== undefined && { query }),
    };
  }
  const [matchConditions, maxDepth] = [pick(chance, MATCHES), pick(chance, [undefined, 1, 2])];
  // InMemoryStore knows the operation by its conditions.
  return { matchConditions: matchConditions ?? [], limit: 1000, offset: 0, ...(maxDepth === undefined ? {} : { maxDepth }) };
}

/** Results as they can be compared: lists have another order there, and times are those of this process. */
const comparable = (results: readonly unknown[]) =>
  results.map((result) => (Array.isArray(result) ? result.map((one) => JSON.stringify(plain(one))).toSorted() : plain(result)));
const plain = (result: unknown): unknown => {
  if (typeof result !== "object" || result === null) return result ?? null;
  if (Array.isArray(result)) return result;
  const { namespace, key, value } = result as Record<string, unknown>;
  return { namespace, key, value };
};

/** Vectors that mean nothing: what is found is compared, and not in which order. */
class Lengths extends Embeddings {
  embedQuery = async (text: string) => [1, text.length];
  embedDocuments = (texts: string[]) => Promise.all(texts.map(this.embedQuery));
}

test("it gives what InMemoryStore gives, whatever is asked of both", async () => {
  await withSeeds(async (chance, seed) => {
    const deletes = seed % 2 === 0;
    const hasIndex = chance.below(2) === 0;
    const ours = new CairnStore(client.cairn.documents, { namespace: ["store", String(seed)], index: hasIndex });
    const theirs = new InMemoryStore(hasIndex ? { index: { dims: 2, embeddings: new Lengths({}) } } : {});
    for (let i = 0; i < 40; i++) {
      // InMemoryStore gives out its own objects, which a put of the same batch then changes: a batch reads or writes.
      const isWrite = chance.below(2) === 0;
      const operations = Array.from({ length: 1 + chance.below(5) }, () => operation(chance, isWrite, deletes));
      const given = structuredClone(operations);
      expect([operations, comparable(await ours.batch(operations))]).toEqual([operations, comparable(await theirs.batch(given))]);
    }
  });
});

test("a page of a search and of namespaces begins at its offset and ends at its limit", async () => {
  const store = storeOf("pages");
  for (let i = 0; i < 25; i++) await store.put(["docs", `d${i % 3}`], `k${String(i).padStart(2, "0")}`, { n: i, odd: i % 2 === 1 });
  const keys = async (options: object) => (await store.search(["docs"], options)).map(({ key }) => key);
  const all = await keys({ limit: 100 });
  expect(new Set(all).size).toBe(25);
  expect(await keys({})).toEqual(all.slice(0, 10));
  expect(await keys({ limit: 7, offset: 20 })).toEqual(all.slice(20, 27));
  expect(await keys({ limit: 0 })).toEqual([]);
  const odd = await keys({ limit: 100, filter: { n: { $nin: [0, 2, 4] }, odd: true } });
  expect(odd).toHaveLength(12);
  expect(await keys({ limit: 5, offset: 5, filter: { n: { $nin: [0, 2, 4] }, odd: true } })).toEqual(odd.slice(5, 10));
  expect(await store.listNamespaces({ prefix: ["docs"], limit: 2, offset: 1 })).toEqual([
    ["docs", "d1"],
    ["docs", "d2"],
  ]);
  expect(await store.listNamespaces({ maxDepth: 1 })).toEqual([["docs"]]);
});

test("an item keeps when it was created, and its newer value when it was changed", async () => {
  const store = storeOf("times");
  await store.put(["docs"], "a", { n: 1 });
  const first = await store.get(["docs"], "a");
  client.server.cairn.clock.advance({ seconds: 5 });
  await store.put(["docs"], "a", { n: 2 });
  const second = await store.get(["docs"], "a");
  expect(second).toMatchObject({ value: { n: 2 }, createdAt: first!.createdAt });
  expect(second!.updatedAt.getTime() - first!.updatedAt.getTime()).toBe(5_000);
});

test("of a batch with more than a hundred writes all are there", async () => {
  const store = storeOf("many");
  await store.batch(Array.from({ length: 250 }, (_, i) => ({ namespace: ["docs"], key: `k${i}`, value: { i } })));
  expect(await store.search(["docs"], { limit: 300 })).toHaveLength(250);
});

test("a store whose own namespace is a star lists no namespaces of other stores", async () => {
  const [star, other] = [storeOf("*"), storeOf("other")];
  await other.put(["users", "ada"], "k", { secret: true });
  await star.put(["docs"], "k", { own: true });
  expect(await star.listNamespaces()).toEqual([["docs"]]);
  expect(await star.listNamespaces({ prefix: ["*"] })).toEqual([["docs"]]);
});

test("namespaces that LangGraph does not allow are refused", async () => {
  const store = storeOf("refused");
  for (const namespace of [[], ["a.b"], [""], ["a", 7 as never]])
    await expect(store.put(namespace, "k", { n: 1 })).rejects.toThrow(/[Nn]amespace/);
  for (const namespace of [[], ["a.b"], [""]])
    await expect(store.get(namespace, "k")).rejects.toMatchObject({ name: "InvalidNamespaceError" });
  await expect(store.search(["a.b"])).rejects.toMatchObject({ name: "InvalidNamespaceError" });
});

test("its limits are those that its README names, and refusals say what is too much", async () => {
  const store = new CairnStore(client.cairn.documents, { namespace: ["limits"], index: { fields: ["text"] } });
  const nested = (depth: number): object => (depth === 1 ? {} : { a: nested(depth - 1) });
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, i]));
  const put = (namespace: string[], key: string, value = {}) => store.put(namespace, key, value);
  await put(["a"], "k".repeat(900 - "limitsa".length));
  await expect(put(["a"], "k".repeat(901 - "limitsa".length))).rejects.toThrow("at most 900 bytes");
  await expect(put(["a"], "")).rejects.toThrow("key");
  await put(Array(15).fill("a"), "k");
  await expect(put(Array(16).fill("a"), "k")).rejects.toThrow("namespace");
  await put(["a"], "nested", nested(62));
  await expect(put(["a"], "nested", nested(63))).rejects.toThrow("64");
  await store.search([], { filter: fields(32) });
  await expect(store.search([], { filter: fields(33) })).rejects.toThrow("32");
  await put(["a"], "long", { text: "x".repeat(10_000) });
  await store.search([], { query: "x".repeat(10_000) });
  await expect(store.search([], { query: "x".repeat(10_001) })).rejects.toThrow("10000 characters");
  const both = [
    { namespace: ["a"], key: "short", value: { text: "x" } },
    { namespace: ["a"], key: "long", value: { text: "x".repeat(10_001) } },
  ];
  await expect(store.batch(both)).rejects.toThrow("more than 10000 characters");
  expect(await store.get(["a"], "short")).toBeNull();
  await store.batch(both.map((one) => ({ ...one, index: false as const })));
  await put(["a"], "text", { x: "5" });
  expect(await store.search([], { filter: { x: { $gt: 1 } } })).toEqual([]);
});

const NOTES = {
  tea: { text: "The customer drinks tea with milk in the morning.", kind: "habit", secret: "zebra" },
  invoice: { text: "The invoice goes to the office in Lisbon.", kind: "address", secret: "quokka" },
  coffee: { text: "The customer never drinks coffee after lunch.", kind: "habit", secret: "axolotl" },
};
const TEA = "What does the customer drink with milk?";

async function withNotes(name: string, index: boolean | { fields?: string[] }) {
  const store = new CairnStore(client.cairn.documents, { namespace: ["store", name], index });
  for (const [key, value] of Object.entries(NOTES)) await store.put(["users", "ada"], key, value);
  await store.put(["users", "bo"], "tea", { text: "Bo drinks tea with milk too.", kind: "habit" });
  return store;
}

test("a search with a query finds what it is about below a prefix, best first, with scores", async () => {
  const store = await withNotes("meaning", true);
  const found = await store.search(["users", "ada"], { query: TEA });
  expect(found[0]).toMatchObject({ namespace: ["users", "ada"], key: "tea", value: NOTES.tea });
  expect(found.map(({ score = 0 }) => score)).toEqual(found.map(({ score = 0 }) => score).toSorted((a, b) => b - a));
  expect(found[0]!.score).toBeGreaterThan(0.5);
  expect(new Set(found.map(({ namespace }) => namespace[1]))).toEqual(new Set(["ada"]));
  expect((await store.search([], { query: TEA, limit: 2 })).map(({ key }) => key)).toEqual(["tea", "tea"]);
  expect((await store.search(["users"], { query: TEA, limit: 1, offset: 1 })).map(({ key }) => key)).toEqual(["tea"]);
  expect(
    (await store.search(["users"], { query: "Where does the invoice go?", filter: { kind: "address" } })).map(({ key }) => key),
  ).toEqual(["invoice"]);
  expect((await store.search(["users"], { query: TEA, filter: { kind: { $nin: ["habit"] } } })).map(({ key }) => key)).not.toContain("tea");
  // As in LangGraph an empty query is none.
  expect(await store.search(["users"], { query: "" })).toHaveLength(4);
});

test("items are found by the fields that the store or a put names, and by nothing when that says so", async () => {
  const store = await withNotes("fields", { fields: ["text"] });
  const best = async (query: string) => (await store.search(["users"], { query, limit: 1 }))[0];
  expect((await best(TEA))?.key).toBe("tea");
  expect((await best("quokka"))?.score ?? 0).toBeLessThan(0.5);
  await store.put(["users", "ada"], "invoice", NOTES.invoice, ["secret"]);
  expect(await best("quokka")).toMatchObject({ key: "invoice" });
  expect((await best("quokka"))?.score).toBeGreaterThan(0.5);
  for (const index of [false, []] as (false | string[])[]) {
    await store.put(["users", "ada"], "invoice", NOTES.invoice, index);
    const found = await store.search(["users"], { query: "quokka" });
    expect(found.map(({ key, score }) => [key, score !== undefined]).at(-1)).toEqual(["invoice", false]);
    expect(found).toHaveLength(4);
  }
});

test("without an index a query changes nothing: items do not vanish for graphs that always pass one", async () => {
  const store = await withNotes("without", false);
  for (const options of [{}, { limit: 2, offset: 1 }, { filter: { kind: "habit" } }])
    expect(await store.search(["users"], { query: TEA, ...options })).toEqual(await store.search(["users"], options));
});

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `k${String(from + i).padStart(3, "0")}`);

test("pages of a search with a query go on with the items that have no score, and beyond the 200 that have one", async () => {
  const store = new CairnStore(client.cairn.documents, { namespace: ["store", "deep"], index: { fields: ["text"] } });
  const keys = numbered(0, 250);
  const puts = keys.map((key) => ({ namespace: ["docs"], key, value: { text: `The parcel ${key} waits at the counter.`, n: 1 } }));
  await store.batch(puts);
  await store.put(["docs"], "none", { text: "The parcel waits." }, false);
  const search = (options: object) => store.search(["docs"], { query: "Which parcel waits at the counter?", ...options });
  const all = await search({ limit: 300 });
  expect(all.map(({ key }) => key).toSorted()).toEqual([...keys, "none"]);
  expect(all.map(({ score }) => score !== undefined)).toEqual(all.map((_, i) => i < 200));
  for (const [offset, limit] of [
    [0, 250],
    [195, 10],
    [200, 10],
    [245, 20],
    [300, 5],
  ] as const)
    expect(await search({ offset, limit })).toEqual(all.slice(offset, offset + limit));
  expect(await search({ offset: 190, limit: 100, filter: { n: { $nin: [2] } } })).toEqual(all.slice(190, 290));
});

test("a page of large items that a query finds is whole", async () => {
  const store = new CairnStore(client.cairn.documents, { namespace: ["store", "large"], index: { fields: ["text"] } });
  const keys = numbered(0, 12);
  for (const key of keys) await store.put(["docs"], key, { text: `The parcel ${key} waits.`, rest: "x".repeat(900_000) });
  const found = await store.search(["docs"], { query: "Which parcel waits?", limit: 12 });
  expect(found.map(({ key }) => key).toSorted()).toEqual(keys);
  expect(found.filter(({ score }) => score === undefined)).toEqual([]);
});
