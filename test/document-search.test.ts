/**
 * Documents by meaning: which are found, by what of them, and when they are found no more.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { documents, documentVectors, indexedDocuments, pendingEmbeddings } from "../src/storage/tables.ts";
import { errorOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { DOWN, findByWords, makeVectors, setProvider } from "./support/providers.ts";

const batch = async (cairn: Cairn, operations: object[], more: object = {}, options: RequestOptions = {}): Promise<any[]> =>
  (await cairn.ok(cairn.post("/v1/documents/batch", { operations, ...more }, options))).data;
const put = (namespace: string[], key: string | undefined, value: object, more: object = { index: true }) => ({
  op: "put",
  namespace,
  key,
  value,
  ...more,
});
const search = (namespace: string[], query: string, more: object = {}) => ({ op: "search", namespace, query, ...more });
interface Page {
  data: { key: string; score: number; namespace: string[] }[];
  has_more: boolean;
}
async function found(
  cairn: Cairn,
  namespace: string[],
  query: string,
  more: object = {},
  of: object = {},
  options: RequestOptions = {},
): Promise<Page> {
  const answer = await cairn.ok(cairn.post("/v1/documents/query", { operations: [search(namespace, query, more)], ...of }, options));
  return answer.data[0];
}
const keysOf = ({ data }: Page) => data.map(({ key }) => key);

/** What is stored for searches, whether or not anybody finds it. */
function stored(cairn: Cairn): Promise<object> {
  return cairn.countsByName([documents, indexedDocuments, indexedDocuments.index.inNamespace, documentVectors, pendingEmbeddings]);
}
const NOTHING = { documents: 0, indexed_documents: 0, "indexed_documents.inNamespace": 0, document_vectors: 0, pending_embeddings: 0 };

test("documents of a namespace and below it are found by meaning, best first, and no others", async () => {
  await using cairn = await startCairn();
  await batch(cairn, [
    put(["users", "ada"], "drink", { text: "Ada drinks green tea in the morning." }),
    put(["users", "ada", "work"], "job", { text: "She repairs bicycles in Lyon." }),
    put(["users", "bob"], "drink", { text: "Bob drinks green tea, too." }),
    put(["users", "ada"], "plain", { text: "Ada drinks green tea without anybody finding it." }, {}),
    put(["users", "ada"], "unfound", { text: "Ada drinks green tea, and says so nowhere." }, { index: false }),
  ]);
  const [first, ...others] = (await found(cairn, ["users", "ada"], "green tea")).data;
  expect(first).toMatchObject({ object: "document", namespace: ["users", "ada"], key: "drink", version: 1, index: true });
  expect(first!.score).toBeGreaterThan(0.7);
  expect(others.map(({ key }) => key)).toEqual(["job"]);
  expect(keysOf(await found(cairn, ["users"], "green tea", { threshold: 0.6 })).toSorted()).toEqual(["drink", "drink"]);
  expect(await found(cairn, ["users", "ada", "work"], "green tea", { threshold: 0.6 })).toMatchObject({ data: [], has_more: false });
  expect(await found(cairn, ["users", "a"], "green tea")).toEqual({ object: "list", data: [], has_more: false } as never);
});

test("a threshold that no document reaches leaves the other operations of the query what they may look at", async () => {
  await using cairn = await startCairn();
  await findByWords(cairn);
  const puts = Array.from({ length: 1_200 }, (_, i) => put(["fruit"], `${i}`, { text: `Crate ${i} of apples.` }));
  for (let i = 0; i < puts.length; i += 100) await batch(cairn, puts.slice(i, i + 100));
  const strict = Array.from({ length: 9 }, () => search(["fruit"], "crates of pears", { threshold: 0.99 }));
  const operations = [...strict, search(["fruit"], "crates of pears", { limit: 5 })];
  const { data } = await cairn.ok(cairn.post("/v1/documents/query", { operations }));
  expect(data.slice(0, 9)).toEqual(strict.map(() => ({ object: "list", data: [], has_more: false })));
  expect(data[9].data).toHaveLength(5);
});

test("what a document is found by is what its put says: all of it, or what paths lead to", async () => {
  await using cairn = await startCairn();
  const namespace = ["notes"];
  const value = {
    title: "Bicycle repair",
    author: { name: "Ada", favourite_food: "mushroom risotto" },
    lines: [{ text: "Patch the inner tube." }, { text: "Oil the chain." }, "Count the spokes: 32"],
    secret: "The umbrella is red.",
  };
  const indexes: Record<string, [index: unknown, text: string]> = {
    title: [["title"], "Bicycle repair"],
    member: [["author.favourite_food"], "mushroom risotto"],
    object: [["author"], "name: Ada\nfavourite_food: mushroom risotto"],
    items: [["lines[*].text"], "Patch the inner tube.\nOil the chain."],
    last: [["lines[-1]", "lines[0].text"], "Count the spokes: 32\nPatch the inner tube."],
    any: [["author.*"], "Ada\nmushroom risotto"],
    all: [
      ["$"],
      "title: Bicycle repair\nauthor name: Ada\nauthor favourite_food: mushroom risotto\nlines text: Patch the inner tube.\nlines text: Oil the chain.\nlines: Count the spokes: 32\nsecret: The umbrella is red.",
    ],
    true: [
      true,
      "title: Bicycle repair\nauthor name: Ada\nauthor favourite_food: mushroom risotto\nlines text: Patch the inner tube.\nlines text: Oil the chain.\nlines: Count the spokes: 32\nsecret: The umbrella is red.",
    ],
  };
  await batch(cairn, [
    ...Object.entries(indexes).map(([key, [index]]) => put(namespace, key, value, { index })),
    put(namespace, "nothing", value, { index: ["none", "author.name.first", "lines.text", "title[0]"] }),
    put(namespace, "null", { text: null, empty: {} }, { index: true }),
  ]);
  // A text scores 1 for itself and for nothing else.
  for (const [key, [index, text]] of Object.entries(indexes)) {
    const { data } = await found(cairn, namespace, text, { threshold: 1 });
    expect(data.map((one) => one.key)).toContain(key);
    expect(data.find((one) => one.key === key)).toMatchObject({ score: 1, index, value });
  }
  const all = await found(cairn, namespace, "umbrella", { limit: 50 });
  expect(keysOf(all).toSorted()).toEqual(Object.keys(indexes).toSorted());
  expect(keysOf(all).slice(0, 2)).toEqual(["true", "all"]);
  expect(await stored(cairn)).toMatchObject({ documents: 10, indexed_documents: 8, document_vectors: 8, pending_embeddings: 0 });
});

test("what is no path, too many of them, or leads to too long a text is refused by its name, and nothing is changed", async () => {
  await using cairn = await startCairn();
  const refusalOf = async (index: unknown, value: object = { a: "b" }) =>
    errorOf(await cairn.post("/v1/documents/batch", { operations: [put(["a"], "first", {}), put(["a"], "k", value, { index })] }));
  for (const path of ["a..b", ".", "a.", "[0]", "a[", "a]", "a[x]", "a[1.5]", "a[12345678]", "a[0]b", ""]) {
    expect(await refusalOf(["a", path])).toMatchObject({
      status: 400,
      code: "invalid_request",
      param: "operations.1.index.1",
    });
  }
  const wrong: [index: unknown, field: string, problem: string][] = [
    [["a", "x".repeat(257)], "index.1", "must be a string of 1 to 256 characters; got a string of 257 characters."],
    [["a", "b", ""], "index.2", 'must be a string of 1 to 256 characters; got "".'],
    [[7], "index.0", "must be a string of 1 to 256 characters; got 7."],
    [[], "index", "must be true, false or an array of 1 to 16 paths; got an array of 0 items."],
    [Array(17).fill("a"), "index", "must be true, false or an array of 1 to 16 paths; got an array of 17 items."],
    ["a", "index", 'must be true, false or an array of 1 to 16 paths; got "a".'],
  ];
  for (const [index, field, problem] of wrong) {
    const param = `operations.1.${field}`;
    expect(await refusalOf(index)).toMatchObject({ status: 400, code: "invalid_request", param, message: `${param} ${problem}` });
  }
  const long = { text: "é".repeat(10_001), others: Array.from({ length: 110_000 }, () => null) };
  const tooLong = {
    status: 413,
    code: "content_too_large",
    param: "operations.1.index",
    message: "What operations.1.index names has more than 10000 characters: name what the document is to be found by.",
  };
  expect(await refusalOf(["text"], long)).toEqual(tooLong);
  expect(await refusalOf(true, long)).toEqual(tooLong);
  // To look at so many values for a text would take too long.
  expect(await refusalOf(["others"], long)).toEqual(tooLong);
  expect(await stored(cairn)).toEqual(NOTHING);
  await batch(cairn, [put(["a"], "k", { text: "é".repeat(10_000) }, { index: Array(16).fill("none").with(0, "text") })]);
  await batch(cairn, [put(["a"], "l", { a: 1 }, { index: ["x".repeat(256), "a[1234567]"] })]);
  expect(await stored(cairn)).toMatchObject({ documents: 2, document_vectors: 1 });
});

test("a document that is put again is found by its new text alone; one that is removed, in whatever way, is found no more", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const namespace = ["a", "b"];
  const tea = { text: "She likes green tea." };
  const keys = ["replaced", "plain", "deleted", "popped", "of a session", "in time"];
  await batch(cairn, [
    ...keys.slice(0, 3).map((key) => put(namespace, key, tea)),
    put(namespace, "zz popped", tea),
    put(namespace, "of a session", tea, { index: true, session_id: session.id }),
    put(namespace, "in time", tea, { index: ["text"], ttl_seconds: 60 }),
    put(["a", "emptied"], "k", tea),
  ]);
  expect(keysOf(await found(cairn, ["a"], "green tea", { threshold: 0.5 }))).toHaveLength(7);
  await batch(cairn, [
    put(namespace, "replaced", { text: "Now it is about bicycles." }),
    put(namespace, "plain", tea, {}),
    { op: "delete", namespace, key: "deleted" },
    { op: "pop", namespace },
    { op: "delete_all", namespace: ["a", "emptied"] },
  ]);
  expect(keysOf(await found(cairn, ["a"], "green tea", { threshold: 0.5 })).toSorted()).toEqual(["in time", "of a session"]);
  expect(keysOf(await found(cairn, ["a"], "bicycles", { threshold: 0.5 }))).toEqual(["replaced"]);
  expect(await stored(cairn)).toMatchObject({ documents: 4, indexed_documents: 3, document_vectors: 3 });
  cairn.clock.advance({ seconds: 61 });
  expect(keysOf(await found(cairn, ["a"], "green tea", { threshold: 0.5 }))).toEqual(["of a session"]);
  await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
  expect(keysOf(await found(cairn, ["a"], "green tea", { threshold: 0.5 }))).toEqual([]);
  await cairn.runTask("document expiry");
  expect(await stored(cairn)).toMatchObject({ documents: 2, indexed_documents: 1, document_vectors: 1 });
  await batch(cairn, [{ op: "delete_all", namespace: ["a"] }]);
  expect(await stored(cairn)).toEqual(NOTHING);
});

test("no search of memories finds a document, and no search of documents a memory", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const text = "The parcel is in the blue cupboard.";
  await batch(cairn, [put(["parcels"], "k", { text }, { index: ["text"], session_id: session.id })], { user_id: "ada" });
  for (const scope of [{}, { user_id: "ada" }, { session_id: session.id }]) {
    expect((await cairn.search(text, { threshold: 0, ...scope })).data).toEqual([]);
  }
  const memory = await cairn.addMemory(session.id, text);
  for (const scope of [{}, { user_id: "ada" }, { session_id: session.id }]) {
    expect((await cairn.search(text, { threshold: 0, ...scope })).data).toMatchObject([{ id: memory.id, score: 1 }]);
  }
  expect((await found(cairn, ["parcels"], text, {}, { user_id: "ada" })).data).toMatchObject([{ key: "k", score: 1 }]);
  expect((await cairn.ok(cairn.post(`/v1/sessions/${session.id}/context`, { query: text }))).memories).toHaveLength(1);
});

test("pages of a search follow each other, and a threshold and a filter leave out what they say", async () => {
  await using cairn = await startCairn();
  const namespace = ["tickets"];
  const topics = ["printer", "invoice", "bicycle", "umbrella", "risotto"];
  const values = Array.from({ length: 300 }, (_, i) => ({
    text: `Ticket ${i} about the ${topics[i % 5]}.`,
    number: i,
    open: i % 100 === 7,
  }));
  for (let at = 0; at < 300; at += 100) {
    await batch(
      cairn,
      values.slice(at, at + 100).map((value, i) => put(namespace, `t${at + i}`, value, { index: ["text"] })),
    );
  }
  const whole = await found(cairn, namespace, "bicycle", { limit: 200 });
  expect([whole.data.length, whole.has_more]).toEqual([200, true]);
  const scores = whole.data.map(({ score }) => score);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
  expect(keysOf(whole).slice(0, 60).toSorted()).toEqual(
    values.flatMap(({ text }, i) => (text.includes("bicycle") ? [`t${i}`] : [])).toSorted(),
  );
  const pages: string[] = [];
  for (let offset = 0; offset < 200; offset += 50) {
    const page = await found(cairn, namespace, "bicycle", { limit: 50, offset });
    pages.push(...keysOf(page));
    expect(page.has_more).toBe(true);
  }
  expect(pages).toEqual(keysOf(whole));
  expect(await found(cairn, namespace, "bicycle", { threshold: scores[59] })).toMatchObject({ has_more: true });
  const sixty = await found(cairn, namespace, "bicycle", { threshold: scores[59], limit: 60 });
  expect([sixty.data.length, sixty.has_more]).toEqual([60, false]);
  // What few of the nearest pass is found among all.
  const open = await found(cairn, namespace, "printer", { filter: { open: true } });
  expect([keysOf(open).toSorted(), open.has_more]).toEqual([["t107", "t207", "t7"], false]);
  expect(keysOf(await found(cairn, namespace, "printer", { filter: { open: true }, limit: 2, offset: 1 }))).toEqual(keysOf(open).slice(1));
  expect(await found(cairn, namespace, "printer", { filter: { open: true }, limit: 1 })).toMatchObject({ has_more: true });
  const many = await found(cairn, namespace, "printer", { filter: { number: { $lt: 150 } }, limit: 100 });
  expect(new Set(keysOf(many)).size).toBe(100);
  expect(many.data.every(({ key }) => Number(key.slice(1)) < 150)).toBe(true);
});

test("a search gives ten documents unless up to 200 are asked for, and a request has ten searches at most", async () => {
  await using cairn = await startCairn();
  await batch(
    cairn,
    Array.from({ length: 12 }, (_, i) => put(["a"], `k${i}`, { text: `Green tea, cup ${i}.` })),
  );
  expect(await found(cairn, ["a"], "tea")).toMatchObject({ data: Array.from({ length: 10 }, () => ({})), has_more: true });
  expect(await found(cairn, ["a"], "tea", { limit: 150, offset: 50 })).toMatchObject({ data: [], has_more: false });
  const refused = async (operations: object[]) => refusal(await cairn.post("/v1/documents/query", { operations }));
  expect(await refused([search(["a"], "tea", { limit: 151, offset: 50 })])).toEqual({
    status: 400,
    code: "invalid_request",
    param: "operations.0.limit",
  });
  const ten = Array.from({ length: 10 }, () => search(["a"], "tea", { limit: 1 }));
  const answer = await cairn.ok(cairn.post("/v1/documents/query", { operations: [{ op: "count", namespace: ["a"] }, ...ten] }));
  expect(answer.data.slice(1).map(keysOf)).toEqual(Array.from({ length: 10 }, () => keysOf(answer.data[1])));
  expect(await refused([{ op: "count", namespace: ["a"] }, ...ten, ten[0]!])).toEqual({
    status: 400,
    code: "invalid_request",
    param: "operations.11.op",
  });
  for (const [query, more] of [
    ["", {}],
    ["§", { threshold: 0.7 }],
    ["tea", { threshold: 1 }],
  ] as const) {
    expect((await found(cairn, ["a"], query, { threshold: 0.1, ...more })).data).toEqual([]);
  }
  expect(await refused([{ op: "search", namespace: ["a"] }])).toMatchObject({ param: "operations.0.query" });
  expect(await refused([search(["a"], "tea", { cursor: "61!" })])).toMatchObject({ param: "operations.0.cursor" });
});

test("a page of a search has every document that fits into an answer", async () => {
  await using cairn = await startCairn();
  const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
  // Together a seventh of the largest answer.
  for (const key of keys) await batch(cairn, [put(["n"], key, { text: "green tea", more: "x".repeat(60_000) }, { index: ["text"] })]);
  const operations = [search(["n"], "green tea", { limit: 20 }), { op: "count", namespace: ["n"] }];
  const [page, count] = (await cairn.ok(cairn.post("/v1/documents/query", { operations }))).data;
  expect({ keys: keysOf(page).toSorted(), has_more: page.has_more, count }).toEqual({
    keys: keys.toSorted(),
    has_more: false,
    count: { count: 20 },
  });
});

test("each user and each agent finds their own documents, and a bound key no others", async () => {
  await using cairn = await startCairn();
  const ada = { key: await cairn.newKey({ owner: { userId: "ada" } }) };
  const planner = { key: await cairn.newKey({ owner: { userId: "ada", agentId: "planner" } }) };
  for (const [i, of] of [{}, { user_id: "ada" }, { user_id: "bo" }, { user_id: "ada", agent_id: "planner" }].entries()) {
    await batch(cairn, [put(["a"], `k${i}`, { text: "Green tea for everybody." })], of);
  }
  expect(keysOf(await found(cairn, ["a"], "tea"))).toEqual(["k0"]);
  expect(keysOf(await found(cairn, ["a"], "tea", {}, { user_id: "bo" }))).toEqual(["k2"]);
  expect(keysOf(await found(cairn, ["a"], "tea", {}, {}, ada))).toEqual(["k1"]);
  expect(keysOf(await found(cairn, ["a"], "tea", {}, {}, planner))).toEqual(["k3"]);
  const answer = await cairn.post("/v1/documents/query", { operations: [search(["a"], "tea")], user_id: "bo" }, ada);
  expect(refusal(answer)).toMatchObject({ status: 403, code: "permission_denied" });
});

test("a namespace with more documents than the few is searched in the index, also when most of them have just been emptied", async () => {
  await using cairn = await startCairn();
  await findByWords(cairn);
  const fill = async (namespace: string[], count: number, topic: string) => {
    for (let at = 0; at < count; at += 100) {
      await batch(
        cairn,
        Array.from({ length: 100 }, (_, i) => put(namespace, undefined, { text: `Item ${at + i} of the ${topic}.` }, { index: ["text"] })),
      );
    }
  };
  await fill(["large", "old"], 2_300, "bicycle");
  await batch(cairn, [
    put(["large"], "own", { text: "An umbrella among all that." }),
    put(["large", "new"], "k", { text: "A bicycle of its own." }),
  ]);
  await cairn.addMemory((await cairn.createSession()).id, "An umbrella that is a memory.");
  expect(keysOf(await found(cairn, ["large"], "umbrella", { limit: 1 }))).toEqual(["own"]);
  expect((await found(cairn, ["large"], "item 1234 of the bicycle", { limit: 1 })).data).toMatchObject([
    { value: { text: "Item 1234 of the bicycle." }, score: 1 },
  ]);
  await batch(cairn, [{ op: "delete_all", namespace: ["large", "old"] }]);
  expect(keysOf(await found(cairn, ["large"], "bicycle"))).toEqual(["k", "own"]);
  await batch(cairn, [put(["large", "old"], "after", { text: "The last bicycle." })]);
  expect(keysOf(await found(cairn, ["large", "old"], "bicycle"))).toEqual(["after"]);
  expect(await stored(cairn)).toMatchObject({ document_vectors: 2_303 });
  for (let i = 0; i < 30; i++) await cairn.runTask("document removal");
  expect(await stored(cairn)).toMatchObject({ documents: 3, indexed_documents: 3, document_vectors: 3 });
  expect(keysOf(await found(cairn, ["large"], "bicycle", { threshold: 0.7 })).toSorted()).toEqual(["after", "k"]);
  await cairn.restart();
  expect(keysOf(await found(cairn, ["large"], "umbrella", { limit: 1 }))).toEqual(["own"]);
});

test("documents get new vectors after a change of the provider, and those that a provider could not give in time", async () => {
  await using server = startEmbeddingServer({ length: 384 });
  await using cairn = await startCairn();
  await batch(cairn, [put(["a"], "tea", { text: "Ada likes green tea." }), put(["a"], "job", { text: "She repairs bicycles." })]);
  const asBuiltIn = (await found(cairn, ["a"], "green tea")).data;
  await setProvider(cairn, server);
  expect((await found(cairn, ["a"], "green tea")).data).toEqual([]);
  expect((await cairn.settings()).embedding.vectors).toEqual({ ready: 0, pending: 2 });
  await makeVectors(cairn);
  expect((await cairn.settings()).embedding.vectors).toEqual({ ready: 2, pending: 0 });
  expect(keysOf(await found(cairn, ["a"], "green tea"))[0]).toBe("tea");
  server.always(DOWN);
  await batch(cairn, [put(["a"], "late", { text: "Green tea, but later." })]);
  expect(await stored(cairn)).toMatchObject({ documents: 3, indexed_documents: 3, document_vectors: 3, pending_embeddings: 1 });
  server.always(undefined);
  cairn.clock.advance({ ms: 5_000 });
  await makeVectors(cairn);
  expect(keysOf(await found(cairn, ["a"], "green tea")).toSorted()).toEqual(["job", "late", "tea"]);
  await cairn.ok(cairn.patch("/v1/settings", { embedding: { provider: "builtin" } }));
  await makeVectors(cairn);
  expect((await found(cairn, ["a"], "green tea")).data.filter(({ key }) => key !== "late")).toEqual(asBuiltIn);
});
