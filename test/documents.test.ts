/**
 * Documents: what a batch does, what a query finds, and when documents go.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { documentRemovals, documents, fillMark, meta, namespaces } from "../src/storage/tables.ts";
import { errorOf, refusal, unknownId } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { roundsDuring } from "./support/loop.ts";
import { block } from "./support/pages.ts";
import { makeVectors } from "./support/providers.ts";
import { onEmbedded } from "./support/stores.ts";

const send = (cairn: Cairn, kind: "batch" | "query", operations: object[], more: object = {}, options: RequestOptions = {}) =>
  cairn.post(`/v1/documents/${kind}`, { operations, ...more }, options);
const batch = async (cairn: Cairn, operations: object[], more: object = {}, options: RequestOptions = {}): Promise<any[]> =>
  (await cairn.ok(send(cairn, "batch", operations, more, options))).data;
const query = async (cairn: Cairn, operations: object[], more: object = {}, options: RequestOptions = {}): Promise<any[]> =>
  (await cairn.ok(send(cairn, "query", operations, more, options))).data;

const put = (namespace: string[], key: string | undefined, value: object, more: object = {}) => ({
  op: "put",
  namespace,
  key,
  value,
  ...more,
});
const keysOf = (page: { data: { key: string }[] }) => page.data.map(({ key }) => key);

/** What is stored, whether or not anybody sees it. */
function stored(cairn: Cairn): Promise<Record<string, number>> {
  return cairn.countsByName([documents, documents.index.bySession, documents.index.byExpiry, namespaces, documentRemovals]);
}
const NOTHING = { documents: 0, "documents.bySession": 0, "documents.byExpiry": 0, namespaces: 0, document_removals: 0 };

test("a document is put, read as it was put, replaced with the next version, and deleted", async () => {
  await using cairn = await startCairn();
  const namespace = ["orders", "ada"];
  const value = JSON.parse('{"__proto__":{"a":1},"2":"two","1":"one","constructor":null,"total":1e-7}') as object;
  expect(await batch(cairn, [put(namespace, "A-17", value)])).toEqual([{ key: "A-17", version: 1 }]);
  cairn.clock.advance({ seconds: 1 });
  const document = { object: "document", namespace, key: "A-17", created_at: "2026-05-07T08:00:00.000Z" };
  const [found] = await query(cairn, [{ op: "get", namespace, key: "A-17" }]);
  expect(found).toEqual({ ...document, value, version: 1, updated_at: "2026-05-07T08:00:00.000Z" });
  expect(JSON.stringify(found.value)).toBe(JSON.stringify(value));
  expect(await batch(cairn, [put(namespace, "A-17", { status: "paid" })])).toEqual([{ key: "A-17", version: 2 }]);
  await cairn.restart();
  expect(await query(cairn, [{ op: "get", namespace, key: "A-17" }])).toEqual([
    { ...document, value: { status: "paid" }, version: 2, updated_at: "2026-05-07T08:00:01.000Z" },
  ]);
  const remove = { op: "delete", namespace, key: "A-17" };
  expect(await batch(cairn, [remove, remove])).toEqual([{ deleted: 1 }, { deleted: 0 }]);
  expect(
    await query(cairn, [
      { op: "get", namespace, key: "A-17" },
      { op: "count", namespace },
    ]),
  ).toEqual([null, { count: 0 }]);
  expect(await stored(cairn)).toEqual(NOTHING);
  expect((await cairn.list("/v1/traces")).filter(({ actor }) => actor !== "system")).toEqual([]);
});

test("after a restart with a clock that was set back, documents have greater keys, and what was emptied before hides none of them", async () => {
  await using cairn = await startCairn();
  const append = (count: number) =>
    batch(
      cairn,
      Array.from({ length: 100 }, () => put(["log"], undefined, { count })),
    );
  for (let i = 0; i < 3; i++) await append(i);
  const last = (await append(3)).at(-1).key as string;
  expect(await batch(cairn, [{ op: "delete_all", namespace: ["log"] }])).toEqual([{ deleted: 400 }]);
  cairn.clock.set(cairn.clock.now() - 60_000);
  await cairn.restart();
  const [{ key }] = await batch(cairn, [put(["log"], undefined, { after: true })]);
  expect(key > last).toBe(true);
  const look = () => query(cairn, [{ op: "list", namespace: ["log"] }, { op: "count", namespace: ["log"] }, { op: "namespaces" }]);
  const found = await look();
  expect(found).toMatchObject([{ data: [{ key }] }, { count: 1 }, { data: [["log"]] }]);
  await cairn.runTask("document removal");
  expect(await look()).toEqual(found);
});

test("without a key each document gets a greater one than all before, also when the clock is set back", async () => {
  await using cairn = await startCairn();
  const namespace = ["log"];
  const keys: string[] = [];
  for (let i = 0; i < 5; i++) {
    const written = await batch(cairn, [put(namespace, undefined, { i }), put(namespace, undefined, { i: i + 0.5 })]);
    keys.push(...written.map(({ key }) => key));
    cairn.clock.set(cairn.clock.now() - 1_000);
  }
  expect(keys).toEqual(keys.toSorted());
  const [page] = await query(cairn, [{ op: "list", namespace }]);
  expect(keysOf(page)).toEqual(keys);
  const [last, first] = await batch(cairn, [
    { op: "pop", namespace },
    { op: "pop", namespace, order: "asc" },
  ]);
  expect([last, first]).toMatchObject([
    { object: "document", key: keys.at(-1), value: { i: 4.5 }, version: 1 },
    { key: keys[0], value: { i: 0 } },
  ]);
  expect(await batch(cairn, [{ op: "pop", namespace: ["none"] }])).toEqual([null]);
  expect(await query(cairn, [{ op: "count", namespace }])).toEqual([{ count: 8 }]);
});

test("a batch sees what it has written, and does all of its operations or none", async () => {
  await using cairn = await startCairn();
  const ns = ["a"];
  expect(
    await batch(cairn, [
      put(ns, "x", { n: 1 }),
      put(ns, "x", { n: 2 }, { if_version: 1 }),
      { op: "delete", namespace: ns, key: "x", if_version: 2 },
      put(ns, "x", { n: 3 }, { if_version: 0 }),
      put(["a", "b"], "y", {}),
      { op: "delete_all", namespace: ns },
      put(ns, "z", { n: 4 }),
      { op: "pop", namespace: ns },
    ]),
  ).toMatchObject([
    { version: 1 },
    { version: 2 },
    { deleted: 1 },
    { version: 1 },
    { version: 1 },
    { deleted: 2 },
    { version: 1 },
    { key: "z", value: { n: 4 } },
  ]);
  expect(await stored(cairn)).toEqual(NOTHING);
  await batch(cairn, [put(ns, "x", { n: 1 })]);
  const before = await query(cairn, [{ op: "list", namespace: ns, deep: true }]);
  for (const [index, wrong, says] of [
    [1, put(ns, "x", {}, { if_version: 0 }), 'Document "x" is at version 1, not 0. Nothing was changed.'],
    [2, { op: "delete", namespace: ns, key: "none", if_version: 1 }, 'Document "none" is at version 0, not 1. Nothing was changed.'],
  ] as const) {
    const operations = [put(ns, "other", {}), put(ns, "third", {}), put(ns, "fourth", {})].toSpliced(index, 0, wrong as never);
    const refused = { status: 409, code: "version_conflict", message: says, param: `operations.${index}.if_version` };
    expect(errorOf(await send(cairn, "batch", operations))).toEqual(refused);
  }
  const gone = await send(cairn, "batch", [put(ns, "other", {}), put(ns, "o", {}, { session_id: unknownId("sess") })]);
  expect(refusal(gone)).toEqual({ status: 404, code: "session_not_found", param: "operations.1.session_id" });
  expect(await query(cairn, [{ op: "list", namespace: ns, deep: true }])).toEqual(before);
});

test("a batch with an Idempotency-Key is done once and answered twice", async () => {
  await using cairn = await startCairn();
  const options = { headers: { "idempotency-key": "once" } };
  const operations = [put(["log"], undefined, { n: 1 }), { op: "pop", namespace: ["queue"] }];
  await batch(cairn, [put(["queue"], "a", {}), put(["queue"], "b", {})]);
  const first = await batch(cairn, operations, {}, options);
  expect(await batch(cairn, operations, {}, options)).toEqual(first);
  expect(
    await query(cairn, [
      { op: "count", namespace: ["log"] },
      { op: "count", namespace: ["queue"] },
    ]),
  ).toEqual([{ count: 1 }, { count: 1 }]);
});

test("a list is in the order of keys, by code points, from either end, between keys, with its own documents before those below", async () => {
  await using cairn = await startCairn();
  const keys = ["", "!", ".", "A", "a", "aa", "b", "é", "~", "\uffff", "😀"].filter((key) => key !== "");
  await batch(cairn, [
    ...keys.toReversed().map((key) => put(["ns"], key, {})),
    put(["ns", "sub"], "0", {}),
    put(["nsx"], "other", {}),
    put(["n"], "other", {}),
  ]);
  const lists = await query(cairn, [
    { op: "list", namespace: ["ns"] },
    { op: "list", namespace: ["ns"], order: "desc", limit: 3 },
    { op: "list", namespace: ["ns"], after: "A", before: "b" },
    { op: "list", namespace: ["ns"], after: "A", before: "b", order: "desc" },
    { op: "list", namespace: ["ns"], offset: 2, limit: 2 },
    { op: "list", namespace: ["ns"], deep: true },
    { op: "list", namespace: ["ns"], after: "b", before: "a" },
    { op: "list", namespace: ["none"] },
  ]);
  const order = ["!", ".", "A", "a", "aa", "b", "~", "é", "\uffff", "😀"];
  expect(lists.map(keysOf)).toEqual([order, order.toReversed().slice(0, 3), ["a", "aa"], ["aa", "a"], ["A", "a"], [...order, "0"], [], []]);
  expect(lists.map(({ has_more }) => has_more)).toEqual([false, true, false, false, true, false, false, false]);
});

test("the pages of a list, each from the cursor of the one before, have every document once, in either order, filtered or not", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 3; i++)
    await batch(
      cairn,
      Array.from({ length: 60 }, (_, n) => put(["a", ...(n % 3 === 0 ? [`b${n % 5}`] : [])], `${i}-${n}`, { n, even: n % 2 === 0 })),
    );
  const all = async (listing: object) => {
    const found: string[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 500; pages++) {
      const [page] = await query(cairn, [{ op: "list", ...listing, cursor }]);
      found.push(...page.data.map(({ namespace, key }: any) => [...namespace, key].join("/")));
      if (page.has_more !== true) return found;
      cursor = page.next_cursor;
    }
    return expect.unreachable("the pages have no end");
  };
  for (const base of [{ namespace: ["a"] }, { namespace: ["a"], deep: true }, { namespace: ["a"], deep: true, filter: { even: true } }]) {
    const whole = await all({ ...base, limit: 1_000 });
    expect(new Set(whole).size).toBe(whole.length);
    for (const limit of [1, 7, 50]) {
      expect(await all({ ...base, limit })).toEqual(whole);
      expect(await all({ ...base, limit, order: "desc" })).toEqual(whole.toReversed());
    }
  }
});

test("a filter compares members by their paths", async () => {
  await using cairn = await startCairn();
  const values: Record<string, object> = {
    a: { status: "open", order: { total: 10 }, tags: ["x", "y"], note: null },
    b: { status: "paid", order: { total: 20.5 }, tags: ["x"] },
    c: { status: "open", order: { total: "20" }, constructor: 1 },
    d: { status: ["open"], order: 5, "order.total": 10 },
    e: JSON.parse('{"__proto__":{"e":1},"status":"new"}') as object,
  };
  await batch(
    cairn,
    Object.entries(values).map(([key, value]) => put(["f"], key, value)),
  );
  const cases: [filter: object, found: string][] = [
    [{}, "abcde"],
    [{ status: "open" }, "ac"],
    [{ status: { $eq: "open" } }, "ac"],
    [{ status: { $ne: "open" } }, "bde"],
    [{ "order.total": { $gt: 10 } }, "b"],
    [{ "order.total": { $gte: 10, $lt: 20.5 } }, "a"],
    [{ "order.total": { $lte: 20.5 } }, "ab"],
    [{ "order.total": { $gte: "1" } }, "c"],
    [{ status: { $in: ["paid", "gone", ["open"]] } }, "bd"],
    [{ status: { $in: [] } }, ""],
    [{ tags: ["x", "y"] }, "a"],
    [{ order: { total: 10 } }, "a"],
    [{ note: null }, "a"],
    [{ note: { $ne: null } }, "bcde"],
    [{ constructor: { $ne: 2 }, __proto__: undefined }, "abcde"],
    [{ "constructor.name": { $eq: "Object" } }, ""],
    [{ toString: { $gt: "" } }, ""],
    // Every object of JavaScript has these; a document has them only when somebody has put them there.
    [JSON.parse('{"__proto__":{}}') as object, ""],
    [{ "__proto__.constructor": { $ne: 1 }, "__proto__.e": { $eq: 1 } }, "e"],
    [{ ["order".concat(".x".repeat(400_000))]: { $ne: 1 } }, "abcde"],
    [{ status: "open", "order.total": { $gt: 5 } }, "a"],
  ];
  for (const [filter, found] of cases) {
    const [page] = await query(cairn, [{ op: "list", namespace: ["f"], filter }]);
    expect([filter, keysOf(page).join("")]).toEqual([filter, found]);
  }
  const nested = (depth: number): object => (depth === 0 ? { status: "open" } : { $and: [nested(depth - 1)] });
  const more: typeof cases = [
    [{ status: { $nin: ["open", ["open"]] } }, "be"],
    [{ note: { $exists: true } }, "a"],
    [{ note: { $exists: false } }, "bcde"],
    [{ tags: { $contains: "x" } }, "ab"],
    [{ status: { $contains: "pe" } }, "ac"],
    [{ status: { $contains: "open" } }, "acd"],
    [{ status: { $starts_with: "o" } }, "ac"],
    [{ tags: { $all: ["y", "x"] } }, "a"],
    [{ tags: { $all: ["y", "z"] } }, ""],
    [{ $or: [{ status: "paid" }, { note: null }] }, "ab"],
    [{ $not: { status: "open" } }, "bde"],
    [{ $and: [{ status: "open" }, { $not: { note: null } }] }, "c"],
    [{ tags: { $contains: "x" }, $or: [{ status: "paid" }, { order: 5 }] }, "b"],
    [nested(LIMITS.filterDepthMax), "ac"],
    [JSON.parse(block("src/docs/guide/filters.md", "json", "status")) as object, ""],
    [{ status: { $contains: "p".repeat(LIMITS.filterPartLengthMax) } }, ""],
  ];
  for (const [filter, found] of more) {
    const [page] = await query(cairn, [{ op: "list", namespace: ["f"], filter }]);
    expect([filter, keysOf(page).join("")]).toEqual([filter, found]);
  }
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));
  const long = "p".repeat(LIMITS.filterPartLengthMax + 1);
  const refused: [filter: object, place: string, says: RegExp][] = [
    [{ a: { $gt: 1, $regex: "x" } }, "a.$regex", / is not known; there are \$eq, .*\$starts_with\.$/],
    [{ a: { $eq: 1, b: 2 } }, "a.b", / is not known; /],
    [{ a: { $in: "x" } }, "a.$in", / must be an array of at most 100 values\.$/],
    [{ a: { $in: Array(101).fill(1) } }, "a.$in", / must be an array of at most 100 values\.$/],
    [{ a: { $nin: 1 } }, "a.$nin", / must be an array/],
    [{ a: { $all: [] } }, "a.$all", / must be an array of 1 to 100 texts, numbers, true, false or null\.$/],
    [{ a: { $all: [[1]] } }, "a.$all", / must be an array of 1 to 100 texts/],
    [{ a: { $exists: 1 } }, "a.$exists", / must be true or false\.$/],
    [{ a: { $contains: [1] } }, "a.$contains", / must be a text, a number, true, false or null\.$/],
    [{ a: { $contains: long } }, "a.$contains", / must be a text of at most 256 characters\.$/],
    [{ a: { $starts_with: 1 } }, "a.$starts_with", / must be a text of at most 256 characters\.$/],
    [{ $nor: [{ a: 1 }] }, "$nor", / is not known: besides paths there are \$and, \$or, \$not\.$/],
    [{ $or: [] }, "$or", / must be an array of at least one filter\.$/],
    [{ $and: { a: 1 } }, "$and", / must be an array of at least one filter\.$/],
    [{ $or: [{ a: 1 }, {}] }, "$or[1]", / must be a filter with at least one comparison\.$/],
    [{ $not: [{ a: 1 }] }, "$not", / must be a filter with at least one comparison\.$/],
    [{ $or: [{ a: 1 }, { b: { $gte: 1, $is: 2 } }] }, "$or[1].b.$is", / is not known; /],
    [nested(LIMITS.filterDepthMax + 1), `${"$and[0].".repeat(LIMITS.filterDepthMax)}$and`, / is nested too deep: .* may be 4 deep\.$/],
    [many(33), "k32", / is one too many: a filter has at most 32 paths\.$/],
    [{ $or: [many(20), many(20)] }, "$or[1].k12", / is one too many/],
  ];
  for (const [filter, place, says] of refused) {
    const { message, ...answer } = errorOf(await send(cairn, "query", [{ op: "list", namespace: ["f"], filter }]));
    expect([filter, answer]).toEqual([filter, { status: 400, code: "invalid_request", param: `operations.0.filter.${place}` }]);
    expect(message).toStartWith(`operations.0.filter.${place} `);
    expect(message).toMatch(says);
  }
});

test("namespaces are those with documents, matched from both ends, cut to a depth, and paged", async () => {
  await using cairn = await startCairn();
  const paths = ["a", "a/b", "a/b/c", "a/x/c", "b/b/c", "b/y", "a/bb", "z/1/2/3"].map((path) => path.split("/"));
  await batch(
    cairn,
    paths.map((namespace) => put(namespace, "k", {})),
  );
  await batch(cairn, [put(["gone", "soon"], "k", {}), { op: "delete", namespace: ["gone", "soon"], key: "k" }]);
  const found = async (more: object) => {
    const data: string[] = [];
    for (let cursor: string | undefined; ;) {
      const [page] = await query(cairn, [{ op: "namespaces", ...more, cursor }]);
      data.push(...page.data.map((parts: string[]) => parts.join("/")));
      if (page.has_more !== true) return data.join(" ");
      cursor = page.next_cursor;
    }
  };
  const cases: [more: object, found: string][] = [
    [{}, "a a/b a/b/c a/bb a/x/c b/b/c b/y z/1/2/3"],
    [{ prefix: ["a"] }, "a a/b a/b/c a/bb a/x/c"],
    [{ prefix: ["a", "b"] }, "a/b a/b/c"],
    [{ prefix: ["*", "b"] }, "a/b a/b/c b/b/c"],
    [{ prefix: ["*", "*", "c"] }, "a/b/c a/x/c b/b/c"],
    [{ suffix: ["c"] }, "a/b/c a/x/c b/b/c"],
    [{ suffix: ["b", "*"] }, "a/b/c b/b/c b/y"],
    [{ prefix: ["a"], suffix: ["c"] }, "a/b/c a/x/c"],
    [{ max_depth: 1 }, "a b z"],
    [{ max_depth: 2 }, "a a/b a/bb a/x b/b b/y z/1"],
    [{ suffix: ["c"], max_depth: 1 }, "a b"],
    [{ prefix: ["none"] }, ""],
  ];
  for (const [more, expected] of cases) {
    for (const limit of [1, 2, 100]) expect([more, limit, await found({ ...more, limit })]).toEqual([more, limit, expected]);
  }
  const [page] = await query(cairn, [{ op: "namespaces", offset: 2, limit: 2 }]);
  expect(page.data).toEqual([
    ["a", "b", "c"],
    ["a", "bb"],
  ]);
});

test("counts are of a namespace alone or with all below it, and follow every change", async () => {
  await using cairn = await startCairn();
  await batch(cairn, [
    put(["a"], "1", {}),
    put(["a"], "2", {}),
    put(["a", "b"], "3", {}),
    put(["a", "b", "c"], "4", {}),
    put(["ab"], "5", {}),
  ]);
  const counts = async () =>
    (
      await query(
        cairn,
        [["a"], ["a", "b"], ["a", "b", "c"]].flatMap((namespace) => [false, true].map((deep) => ({ op: "count", namespace, deep }))),
      )
    ).map(({ count }) => count);
  expect(await counts()).toEqual([2, 4, 1, 2, 1, 1]);
  await batch(cairn, [
    put(["a"], "1", { again: true }),
    { op: "delete", namespace: ["a", "b"], key: "3" },
    { op: "pop", namespace: ["a"] },
  ]);
  expect(await counts()).toEqual([1, 2, 0, 1, 1, 1]);
  expect(await batch(cairn, [{ op: "delete_all", namespace: ["a", "b"] }])).toEqual([{ deleted: 1 }]);
  expect(await counts()).toEqual([1, 1, 0, 0, 0, 0]);
});

test("documents are deleted by a filter, which sees what the batch has done before and leaves what does not pass", async () => {
  await using cairn = await startCairn();
  const ns = ["jobs"];
  const done = { op: "delete_all", namespace: ns, filter: { status: "done", "run.n": { $gte: 2 } } };
  await batch(cairn, [
    put(ns, "1", { status: "done", run: { n: 1 } }),
    put(ns, "2", { status: "done", run: { n: 2 } }),
    put([...ns, "below"], "3", { status: "done", run: { n: 3 } }),
    put(["other"], "4", { status: "done", run: { n: 4 } }),
  ]);
  expect(await batch(cairn, [put(ns, "1", { status: "done", run: { n: 5 } }), put(ns, "5", { status: "open" }), done, done])).toEqual([
    { key: "1", version: 2 },
    { key: "5", version: 1 },
    { deleted: 3, next_cursor: null },
    { deleted: 0, next_cursor: null },
  ]);
  const look = [ns, ["other"]].map((namespace) => ({ op: "list", namespace, deep: true }));
  expect((await query(cairn, look)).map(keysOf)).toEqual([["5"], ["4"]]);
  await batch(
    cairn,
    [ns, ["other"]].map((namespace) => ({ op: "delete_all", namespace, filter: {} })),
  );
  expect(await stored(cairn)).toEqual(NOTHING);
  // A filter tells what values are.
  const writer = { key: await cairn.newKey({ scopes: ["write"] }) };
  expect(refusal(await send(cairn, "batch", [done], {}, writer))).toEqual({
    status: 403,
    code: "permission_denied",
    param: "operations.0.filter",
  });
});

test("documents are copied with what is below their namespace, each as its original is, and replace what is there", async () => {
  await using cairn = await startCairn();
  const session_id = (await cairn.createSession()).id;
  await batch(cairn, [
    put(["a"], "plain", { text: "tea" }, { index: true }),
    put(["a", "é"], "deep", { n: 1 }, { ttl_seconds: 60 }),
    put(["a"], "tied", {}, { session_id }),
    put(["b", "x"], "plain", { old: true }),
    put(["b", "x"], "stays", {}),
  ]);
  cairn.clock.advance({ seconds: 10 });
  expect(await batch(cairn, [put(["a"], "new", {}), { op: "copy_all", namespace: ["a"], to: ["b", "x"] }])).toEqual([
    { key: "new", version: 1 },
    { copied: 4, next_cursor: null },
  ]);
  const list = (namespace: string[]) => ({ op: "list", namespace, deep: true });
  const [copies] = await query(cairn, [list(["b", "x"])]);
  expect(copies.data).toMatchObject([
    { namespace: ["b", "x"], key: "new", version: 1, created_at: "2026-05-07T08:00:10.000Z" },
    { namespace: ["b", "x"], key: "plain", version: 2, value: { text: "tea" }, index: true, created_at: "2026-05-07T08:00:00.000Z" },
    { namespace: ["b", "x"], key: "stays" },
    { namespace: ["b", "x"], key: "tied" },
    { namespace: ["b", "x", "é"], key: "deep", value: { n: 1 }, expires_at: "2026-05-07T08:01:00.000Z" },
  ]);
  await makeVectors(cairn);
  const [found] = await query(cairn, [{ op: "search", namespace: ["b"], query: "tea" }]);
  expect(keysOf(found)).toEqual(["plain"]);
  await cairn.ok(cairn.delete(`/v1/sessions/${session_id}`));
  cairn.clock.advance({ seconds: 50 });
  expect((await query(cairn, [list(["a"]), list(["b"])])).map(keysOf)).toEqual([
    ["new", "plain"],
    ["new", "plain", "stays"],
  ]);
});

test("a batch deletes by filters and copies 200 documents, looks at 1,000, and says where the next goes on", async () => {
  await using cairn = await startCairn();
  const puts = (from: number) => Array.from({ length: 100 }, (_, i) => put(["a"], String(from + i), { n: from + i }));
  for (let i = 0; i < 11; i++) await batch(cairn, puts(1_000 + 100 * i));
  const copy = { op: "copy_all", namespace: ["a"], to: ["b"] };
  const pieces: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const [first, second] = await batch(cairn, [
      { ...copy, cursor },
      { ...copy, to: ["c"] },
    ]);
    pieces.push(first.copied);
    if (first.copied === 200) expect(second).toMatchObject({ copied: 0, next_cursor: expect.any(String) });
    cursor = first.next_cursor;
  }
  expect(pieces).toEqual([200, 200, 200, 200, 200, 100]);
  const remove = { op: "delete_all", namespace: ["b"], filter: { n: { $gte: 1_900 } } };
  const [one] = await batch(cairn, [remove]);
  expect(one).toEqual({ deleted: 100, next_cursor: expect.any(String) });
  expect(await batch(cairn, [{ ...remove, cursor: one.next_cursor }])).toEqual([{ deleted: 100, next_cursor: null }]);
  const large = Array.from({ length: 3 }, (_, i) => put(["large"], String(i), { text: "x".repeat(1_000_000) }));
  for (const each of large) await batch(cairn, [each]);
  const [part] = await batch(cairn, [{ op: "copy_all", namespace: ["large"], to: ["d"] }]);
  expect(part).toEqual({ copied: 3, next_cursor: null });
  await batch(cairn, [put(["large"], "3", {})]);
  expect(await batch(cairn, [{ op: "copy_all", namespace: ["large"], to: ["d"] }])).toEqual([
    { copied: 3, next_cursor: expect.any(String) },
  ]);
});

test("a document goes when its time has passed, at once for readers, and a put without a time keeps it", async () => {
  await using cairn = await startCairn();
  const ns = ["t"];
  await batch(cairn, [
    put(ns, "a", {}, { ttl_seconds: 60 }),
    put(ns, "b", {}, { ttl_seconds: 60 }),
    put(ns, "c", {}),
    put([...ns, "d"], "d", {}, { ttl_seconds: 60 }),
  ]);
  cairn.clock.advance({ seconds: 59 });
  await batch(cairn, [put(ns, "b", { kept: true })]);
  const look = () =>
    query(cairn, [
      { op: "get", namespace: ns, key: "a" },
      { op: "list", namespace: ns, deep: true },
      { op: "count", namespace: ns },
      { op: "count", namespace: ns, deep: true },
      { op: "namespaces" },
    ]);
  expect(await look()).toMatchObject([{ key: "a" }, {}, { count: 3 }, { count: 4 }, { data: [["t"], ["t", "d"]] }]);
  cairn.clock.advance({ seconds: 1 });
  const after = await look();
  expect(after).toMatchObject([null, { data: [{ key: "b", version: 2 }, { key: "c" }] }, { count: 2 }, { count: 2 }, { data: [["t"]] }]);
  // It is new again, whether or not the old one was removed yet.
  expect(await batch(cairn, [put([...ns, "d"], "d", {}, { if_version: 0 }), { op: "delete", namespace: ns, key: "a" }])).toEqual([
    { key: "d", version: 1 },
    { deleted: 0 },
  ]);
  expect(await batch(cairn, [{ op: "delete", namespace: [...ns, "d"], key: "d" }])).toEqual([{ deleted: 1 }]);
  await cairn.runTask("document expiry");
  expect(await look()).toEqual(after);
  expect(await stored(cairn)).toMatchObject({ documents: 2, "documents.byExpiry": 0, namespaces: 3 });
});

test("a put that keeps what is there leaves it as it is and says so, and puts what is not", async () => {
  await using cairn = await startCairn();
  const ns = ["writes"];
  const keep = (key: string, value: object, more: object = {}) => put(ns, key, value, { if_exists: "keep", ...more });
  expect(await batch(cairn, [keep("a", { n: 1 }, { ttl_seconds: 60 })])).toEqual([{ key: "a", version: 1 }]);
  const [before] = await query(cairn, [{ op: "get", namespace: ns, key: "a" }]);
  cairn.clock.advance({ seconds: 1 });
  // What is kept takes nothing of the put, not even a session that there is not; and the rest of the batch is made.
  const kept = keep("a", { n: 2 }, { session_id: unknownId("sess"), index: true });
  expect(await batch(cairn, [kept, keep("b", { n: 2 }), keep("b", { n: 3 }), put(ns, "c", {}, { if_exists: "replace" })])).toEqual([
    { key: "a", version: 1, kept: true },
    { key: "b", version: 1 },
    { key: "b", version: 1, kept: true },
    { key: "c", version: 1 },
  ]);
  expect(
    await query(
      cairn,
      ["a", "b"].map((key) => ({ op: "get", namespace: ns, key })),
    ),
  ).toMatchObject([before, { value: { n: 2 } }]);
  expect(await batch(cairn, [{ op: "delete", namespace: ns, key: "b" }, keep("b", { n: 4 })])).toEqual([
    { deleted: 1 },
    { key: "b", version: 1 },
  ]);
  // What has expired is not there, whether or not it was removed yet.
  cairn.clock.advance({ seconds: 60 });
  expect(await batch(cairn, [keep("a", { n: 5 })])).toEqual([{ key: "a", version: 1 }]);
  expect(await query(cairn, [{ op: "list", namespace: ns }])).toMatchObject([
    { data: [{ key: "a", value: { n: 5 } }, { key: "b", value: { n: 4 } }, { key: "c" }] },
  ]);
});

test("a document says when it expires, however far that is, and a touch moves its end and nothing else", async () => {
  await using cairn = await startCairn();
  const ns = ["t"];
  const touch = (key: string, more: object = {}) => ({ op: "touch", namespace: ns, key, ...more });
  const look = async () => (await query(cairn, [{ op: "list", namespace: ns }]))[0].data;
  await batch(cairn, [
    put(ns, "century", {}, { ttl_seconds: 3_155_760_000 }),
    put(ns, "fraction", {}, { ttl_seconds: 1.5 }),
    put(ns, "longest", {}, { ttl_seconds: 1e300 }),
    put(ns, "never", {}, { ttl_seconds: "never" }),
    put(ns, "short", { kept: true }, { ttl_seconds: 60 }),
  ]);
  const before = await look();
  expect(before.map(({ key, expires_at }: any) => [key, expires_at])).toEqual([
    ["century", "2126-05-08T08:00:00.000Z"],
    ["fraction", "2026-05-07T08:00:01.500Z"],
    ["longest", "9999-12-31T23:59:59.999Z"],
    ["never", undefined],
    ["short", "2026-05-07T08:01:00.000Z"],
  ]);
  cairn.clock.advance({ seconds: 30 });
  // Without a time it lives as long as was said last, from now on.
  expect(await batch(cairn, [touch("short"), touch("never"), touch("fraction"), touch("none", { ttl_seconds: 5 })])).toEqual([
    { key: "short", version: 1, expires_at: "2026-05-07T08:01:30.000Z" },
    { key: "never", version: 1, expires_at: null },
    null,
    null,
  ]);
  expect((await look()).at(-1)).toEqual({ ...before.at(-1), expires_at: "2026-05-07T08:01:30.000Z" });
  expect(await batch(cairn, [touch("short", { ttl_seconds: 0.001 }), touch("never", { ttl_seconds: 7_200.25 })])).toEqual([
    { key: "short", version: 1, expires_at: "2026-05-07T08:00:30.001Z" },
    { key: "never", version: 1, expires_at: "2026-05-07T10:00:30.250Z" },
  ]);
  expect(await batch(cairn, [touch("never"), touch("short", { ttl_seconds: "never" }), touch("short")])).toEqual([
    { key: "never", version: 1, expires_at: "2026-05-07T10:00:30.250Z" },
    { key: "short", version: 1, expires_at: null },
    { key: "short", version: 1, expires_at: null },
  ]);
  cairn.clock.advance({ seconds: 3_600 });
  await cairn.runTask("document expiry");
  expect(await stored(cairn)).toMatchObject({ documents: 4, "documents.byExpiry": 3 });
  await cairn.restart();
  expect((await look()).map(({ key }: any) => key)).toEqual(["century", "longest", "never", "short"]);
  cairn.clock.advance({ seconds: 3_631 });
  expect(await batch(cairn, [touch("never", { ttl_seconds: 60 })])).toEqual([null]);
});

test("a touch does not bring back what was emptied, and what it touched is still found by meaning", async () => {
  await using cairn = await startCairn();
  await batch(cairn, [put(["a"], "tea", { text: "Ada drinks green tea." }, { index: true, ttl_seconds: 60 })]);
  cairn.clock.advance({ seconds: 59 });
  await batch(cairn, [{ op: "touch", namespace: ["a"], key: "tea" }]);
  cairn.clock.advance({ seconds: 59 });
  const search = { op: "search", namespace: ["a"], query: "Ada drinks green tea." };
  expect((await query(cairn, [search]))[0].data.map(({ key }: any) => key)).toEqual(["tea"]);
  expect(
    await batch(cairn, [
      { op: "delete_all", namespace: ["a"] },
      { op: "touch", namespace: ["a"], key: "tea" },
    ]),
  ).toEqual([{ deleted: 1 }, null]);
});

test("an answer has the values of documents, some members of them, or none", async () => {
  await using cairn = await startCairn();
  const ns = ["f"];
  const value = JSON.parse('{"b":{"c":[1,{"d":2}],"e":null,"f":{"g":1,"h":2}},"a":1,"__proto__":{"p":1},"x.y":3}') as object;
  await batch(cairn, [put(ns, "k", value, { index: ["a"], ttl_seconds: 60 })]);
  const get = { op: "get", namespace: ns, key: "k" };
  const [whole] = await query(cairn, [get]);
  const { value: _, ...head } = whole;
  const search = { op: "search", namespace: ns, query: "1" };
  const [shown, list, found, { value: all }] = await query(cairn, [
    { ...get, values: false },
    { op: "list", namespace: ns, values: false, filter: { a: 1 } },
    { ...search, values: false },
    { ...get, values: true },
  ]);
  expect(shown).toEqual(head);
  expect(list.data).toEqual([head]);
  expect(found.data).toEqual([{ ...head, score: expect.any(Number) }]);
  expect(JSON.stringify(all)).toBe(JSON.stringify(value));
  const cases: [fields: string[], found: string][] = [
    [["a"], '{"a":1}'],
    [["a", "b.f.g"], '{"b":{"f":{"g":1}},"a":1}'],
    [["b.f", "b.f.g", "b.e"], '{"b":{"e":null,"f":{"g":1,"h":2}}}'],
    [["b.f.g", "b.f"], '{"b":{"f":{"g":1,"h":2}}}'],
    [["b.c"], '{"b":{"c":[1,{"d":2}]}}'],
    [["b.c.0", "b.c.1.d"], '{"b":{}}'],
    [["a.b", "none", "x.y", "constructor", "toString.name"], "{}"],
    [["__proto__.p"], '{"__proto__":{"p":1}}'],
    [["", "."], "{}"],
    [["b".concat(".b".repeat(400_000))], '{"b":{}}'],
  ];
  for (const [fields, expected] of cases) {
    const [one, page, best] = await query(cairn, [
      { ...get, fields },
      { op: "list", namespace: ns, fields: fields.map((field) => field.slice(0, 100)) },
      { ...search, fields: fields.map((field) => field.slice(0, 100)) },
    ]);
    const texts = [one, page.data[0], best.data[0]].map((document) => JSON.stringify(document.value));
    expect([fields[0]!.slice(0, 20), texts]).toEqual([fields[0]!.slice(0, 20), [expected, expected, expected]]);
    expect(one).toEqual({ ...head, value: one.value });
  }
});

test("pages without values hold more documents than those with, and each is shown once", async () => {
  await using cairn = await startCairn();
  const value = { text: "x".repeat(900_000), n: 1 };
  for (let i = 0; i < 12; i++) await batch(cairn, [put(["large"], `k${String(i).padStart(2, "0")}`, value)]);
  const lists = await query(cairn, [
    { op: "list", namespace: ["large"], values: false },
    { op: "list", namespace: ["large"], fields: ["n"] },
    { op: "list", namespace: ["large"] },
  ]);
  expect(lists.map(({ data, has_more }) => [data.length, has_more])).toEqual([
    [12, false],
    [12, false],
    [9, true],
  ]);
  expect(lists[1].data.map(({ value }: any) => value)).toEqual(lists[1].data.map(() => ({ n: 1 })));
});

test("a list by updated_at is in the order of puts, from either end and over pages, whatever the clock says", async () => {
  await using cairn = await startCairn();
  const ns = ["log"];
  const keys = Array.from({ length: 30 }, (_, i) => `k${(i * 7) % 30}`);
  for (const key of keys) {
    await batch(cairn, [put(ns, key, { n: key.length }), put([...ns, "below"], key, {}), put(["lo"], key, {})]);
    cairn.clock.set(cairn.clock.now() - 1_000);
  }
  const order = [...keys.slice(1, 10), ...keys.slice(11), keys[10], keys[0]];
  await batch(cairn, [put(ns, keys[10], {}), put(ns, keys[0], {}), { op: "touch", namespace: ns, key: keys[5], ttl_seconds: 7_200 }]);
  const all = async (more: object) => {
    const found: string[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 100; pages++) {
      const [page] = await query(cairn, [{ op: "list", namespace: ns, order_by: "updated_at", ...more, cursor }]);
      found.push(...keysOf(page));
      if (page.has_more !== true) return found;
      cursor = page.next_cursor;
    }
    return expect.unreachable("the pages have no end");
  };
  for (const limit of [1, 7, 1_000]) {
    expect(await all({ limit })).toEqual(order as string[]);
    expect(await all({ limit, order: "desc", values: false })).toEqual(order.toReversed() as string[]);
    expect(await all({ limit, filter: { n: 3 } })).toEqual(order.filter((key) => key!.length === 3 && key !== keys[10]) as string[]);
  }
  expect((await query(cairn, [{ op: "list", namespace: ns, order_by: "key", limit: 2 }]))[0].data).toMatchObject([
    { key: "k0" },
    { key: "k1" },
  ]);
  // A cursor of another list leads nowhere else.
  for (const cursor of ["~", "!", "6c6f!.zz", "6c6f67!.~", "6c!", "z".repeat(1_850)]) {
    for (const direction of ["asc", "desc"]) {
      const [page] = await query(cairn, [{ op: "list", namespace: ns, order_by: "updated_at", order: direction, cursor }]);
      expect(page.data.every(({ namespace }: any) => namespace.length === 1 && namespace[0] === "log")).toBe(true);
    }
  }
  await batch(cairn, [
    { op: "pop", namespace: ns },
    { op: "delete", namespace: ns, key: keys[0] },
  ]);
  expect(await cairn.count(documents.index.byChange)).toBe(await cairn.count(documents));
  await batch(cairn, [{ op: "delete_all", namespace: ns }]);
  expect(await all({})).toEqual([]);
  expect(await cairn.findings()).toEqual([]);
});

test("documents of an earlier Cairn get their place among the changes at the next start, and until then no list is by them", async () => {
  await using cairn = await startCairn();
  const ns = ["old"];
  const keys = Array.from({ length: 60 }, (_, i) => `k${(i * 7) % 60}`);
  await batch(
    cairn,
    keys.map((key) => put(ns, key, { key }, { ttl_seconds: 3_600 })),
  );
  const list = { op: "list", namespace: ns, order_by: "updated_at", limit: 1_000 };
  const [whole] = await query(cairn, [list]);
  expect(keysOf(whole)).toEqual(keys);
  await cairn.dropEntries(documents.index.byChange, "");
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(meta, fillMark(documents.index.byChange.name)));
  expect(await cairn.findings()).toEqual([]);
  expect(refusal(await send(cairn, "query", [{ op: "count", namespace: ns }, list]))).toEqual({
    status: 503,
    code: "service_unavailable",
    param: "operations.1.order_by",
  });
  const { updated_at } = whole.data[0];
  cairn.clock.advance({ seconds: 60 });
  await batch(cairn, [put(ns, "k7", { new: true })]);
  await cairn.restart();
  const [ordered] = await query(cairn, [list]);
  expect(ordered.data).toEqual([
    ...whole.data.filter(({ key }: any) => key !== "k7"),
    expect.objectContaining({ key: "k7", value: { new: true }, version: 2 }),
  ]);
  expect(ordered.data[0].updated_at).toBe(updated_at);
  expect(await cairn.findings()).toEqual([]);
});

for (const [how, end] of Object.entries({
  "is deleted": (cairn: Cairn, id: string) => cairn.ok(cairn.delete(`/v1/sessions/${id}`)),
  "has expired": (cairn: Cairn) => cairn.clock.advance({ seconds: 60 }),
})) {
  test(`documents of a session go with it when it ${how}, at once for readers, however many there are`, async () => {
    await using cairn = await startCairn();
    const { id: session_id } = await cairn.createSession({ ttl_seconds: 60 });
    for (let i = 0; i < 4; i++)
      await batch(
        cairn,
        Array.from({ length: 100 }, (_, n) => put(["s", `${n % 3}`], `${i}-${n}`, {}, { session_id })),
      );
    await batch(cairn, [put(["s", "0"], "other", {})]);
    const look = () =>
      query(cairn, [{ op: "count", namespace: ["s"], deep: true }, { op: "list", namespace: ["s"], deep: true }, { op: "namespaces" }]);
    expect(await look()).toMatchObject([
      { count: 401 },
      { has_more: true },
      {
        data: [
          ["s", "0"],
          ["s", "1"],
          ["s", "2"],
        ],
      },
    ]);
    await end(cairn, session_id);
    const after = await look();
    expect(after).toMatchObject([{ count: 1 }, { data: [{ key: "other" }], has_more: false }, { data: [["s", "0"]] }]);
    expect(await batch(cairn, [{ op: "pop", namespace: ["s", "1"] }, put(["s", "1"], "0-1", { new: true }, { if_version: 0 })])).toEqual([
      null,
      { key: "0-1", version: 1 },
    ]);
    await batch(cairn, [{ op: "delete", namespace: ["s", "1"], key: "0-1" }]);
    await cairn.runTask("session expiry");
    await cairn.runTask("session removal");
    expect(await look()).toEqual(after);
    expect(await stored(cairn)).toMatchObject({ documents: 1, "documents.bySession": 0, namespaces: 4 });
    expect(refusal(await send(cairn, "batch", [put(["s"], "k", {}, { session_id })]))).toMatchObject({
      status: 404,
      code: "session_not_found",
    });
  });
}

test("more than a thousand documents that ended at the same time hide none that is there", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 12; i++)
    await batch(
      cairn,
      Array.from({ length: 100 }, (_, n) => put(["n"], `k${i}-${n}`, {}, { ttl_seconds: 1 })),
    );
  await batch(cairn, [put(["n"], "last", { is: "there" })]);
  cairn.clock.advance({ seconds: 2 });
  const [listed, counted] = await query(cairn, [
    { op: "list", namespace: ["n"] },
    { op: "count", namespace: ["n"] },
  ]);
  expect(listed.data.map(({ key }: { key: string }) => key)).toEqual(["last"]);
  // A task removes them, and so many have ended at once that some count until then.
  expect(counted.count).toBe(201);
  const pop = { op: "pop", namespace: ["n"] };
  const popped = await batch(cairn, [{ ...pop, order: "asc" }, pop, pop]);
  expect(popped.map((document) => document?.key ?? null)).toEqual(["last", null, null]);
});

test("a namespace with more documents than a commit removes is empty as soon as that is answered, and what is put then stays", async () => {
  await using cairn = await startCairn();
  const fill = async () => {
    for (let i = 0; i < 5; i++)
      await batch(
        cairn,
        Array.from({ length: 100 }, (_, n) => put(["big", `${n % 4}`], `${i}-${n}`, { i })),
      );
  };
  await fill();
  await batch(cairn, [put(["small"], "k", {})]);
  expect(
    await batch(cairn, [{ op: "delete_all", namespace: ["big"] }, put(["big", "1"], "0-1", { new: true }, { if_version: 0 })]),
  ).toEqual([{ deleted: 500 }, { key: "0-1", version: 1 }]);
  const look = () =>
    query(cairn, [
      { op: "list", namespace: ["big"], deep: true },
      { op: "count", namespace: ["big"], deep: true },
      { op: "count", namespace: ["big", "1"] },
      { op: "namespaces" },
      { op: "get", namespace: ["big", "2"], key: "0-2" },
    ]);
  const after = await look();
  expect(after).toMatchObject([
    { data: [{ key: "0-1", value: { new: true } }], has_more: false },
    { count: 1 },
    { count: 1 },
    { data: [["big", "1"], ["small"]] },
    null,
  ]);
  expect(await stored(cairn)).toMatchObject({ documents: 501, document_removals: 1 });
  await cairn.runTaskOnce("document removal");
  await cairn.restart();
  expect(await look()).toEqual(after);
  // Emptied again meanwhile, with what came since.
  await fill();
  expect(await batch(cairn, [{ op: "delete_all", namespace: ["big"] }])).toEqual([{ deleted: 500 }]);
  await batch(cairn, [put(["big", "3"], "last", {})]);
  await cairn.runTask("document removal");
  expect(await stored(cairn)).toEqual({ ...NOTHING, documents: 2, namespaces: 5 });
  expect(
    await query(cairn, [
      { op: "list", namespace: ["big"], deep: true },
      { op: "count", namespace: ["big"], deep: true },
    ]),
  ).toMatchObject([{ data: [{ key: "last" }] }, { count: 1 }]);
});

test("a query looks at 10,000 documents and no more, says where to go on, and lets other requests through", async () => {
  await using cairn = await startCairn();
  const { store } = cairn.service;
  await store.commit("00", (tx) => {
    for (let i = 0; i < 10_500; i++) {
      const key = `${"A".repeat(44)}61!.${Buffer.from(String(i).padStart(6, "0")).toString("hex")}`;
      tx.add(documents, key, { id: tx.bareId(), version: 1, createdAt: tx.now, updatedAt: tx.now, body: `{"i":${i}}` as never });
    }
  });
  // The space of nobody in particular, whose name is a hash.
  await batch(cairn, [put(["a"], "x", {})]);
  const keys = await cairn.read((reader) => reader.keys(documents, { from: "", to: "~" }));
  const [own] = keys.filter((key) => !key.startsWith("A".repeat(44)));
  const space = own!.slice(0, 44);
  await store.commit("00", (tx) => {
    for (const { key, row } of tx.rows(documents, { from: "A".repeat(44), to: `${"A".repeat(44)}~` }))
      tx.add(documents, key.replace("A".repeat(44), space), row);
  });
  const rare = { op: "list", namespace: ["a"], filter: { i: 10_400 } };
  let isLetThrough = false;
  const other = cairn.get("/v1/sessions").then(() => (isLetThrough = true));
  const [first, second] = await query(cairn, [rare, rare]);
  expect(isLetThrough).toBe(true);
  await other;
  expect([first, second]).toMatchObject([
    { data: [], has_more: true },
    { data: [], has_more: true },
  ]);
  expect(await query(cairn, [{ ...rare, cursor: first.next_cursor }])).toMatchObject([
    { data: [{ value: { i: 10_400 } }], has_more: false },
  ]);
  expect(await query(cairn, [{ ...rare, cursor: second.next_cursor, limit: 1 }])).toMatchObject([{ data: [], has_more: true }]);

  // Two of the five that are to be left out are among the first 10,000; the rest are on the next page.
  for (const order of ["asc", "desc"]) {
    const filter = order === "asc" ? { i: { $gte: 9_998 } } : { i: { $lte: 501 } };
    const listing = { op: "list", namespace: ["a"], filter, order, limit: 2 };
    const [page] = await query(cairn, [{ ...listing, offset: 5 }]);
    expect(page).toMatchObject({ data: [], has_more: true });
    const [next] = await query(cairn, [{ ...listing, cursor: page.next_cursor }]);
    expect(next.data.map(({ value }: any) => value.i)).toEqual(order === "asc" ? [10_003, 10_004] : [496, 495]);
    expect(next.next_cursor).not.toContain("+");
  }
  for (const cursor of ["61!.+0", "61!.+", "61!.+1+1", "61!.+100000", "+5"]) {
    const answer = await cairn.post("/v1/documents/query", { operations: [{ op: "list", namespace: ["a"], cursor }] });
    expect({ cursor, ...refusal(answer) }).toMatchObject({ cursor, status: 400 });
  }
});

test("an answer that would be too large ends a list early, and is refused where it cannot end", async () => {
  await using cairn = await startCairn();
  const value = { text: "x".repeat(900_000) };
  for (let i = 0; i < 12; i++) await batch(cairn, [put(["large"], `k${String(i).padStart(2, "0")}`, value)]);
  const keys: string[] = [];
  for (let cursor: string | undefined, pages = 0; pages < 20; pages++) {
    const [page] = await query(cairn, [{ op: "list", namespace: ["large"], cursor }]);
    keys.push(...keysOf(page));
    if (page.has_more !== true) break;
    cursor = page.next_cursor;
  }
  expect(keys).toEqual(Array.from({ length: 12 }, (_, i) => `k${String(i).padStart(2, "0")}`));
  const gets = keys.map((key) => ({ op: "get", namespace: ["large"], key }));
  expect(refusal(await send(cairn, "query", gets))).toEqual({ status: 413, code: "payload_too_large", param: "operations.9" });
  const pops = keys.map(() => ({ op: "pop", namespace: ["large"] }));
  expect(refusal(await send(cairn, "batch", pops))).toEqual({ status: 413, code: "payload_too_large", param: "operations.9" });
  expect(await query(cairn, [{ op: "count", namespace: ["large"] }])).toEqual([{ count: 12 }]);
});

test("an operation without a field that it needs, or with one that it does not take, is refused by its name", async () => {
  await using cairn = await startCairn();
  const namespace = ["a"];
  const cases: ["batch" | "query", object, string][] = [
    ["batch", { op: "put", namespace }, "value"],
    ["batch", { op: "put", namespace, value: null }, "value"],
    ["batch", { op: "delete", namespace }, "key"],
    ["batch", { op: "delete_all", namespace, key: "a" }, "key"],
    ["batch", { op: "delete_all", namespace, if_version: 1 }, "if_version"],
    ["batch", { op: "delete_all", namespace, cursor: "61!" }, "cursor"],
    ["batch", { op: "delete_all", namespace, filter: { a: { $near: 1 } } }, "filter.a.$near"],
    ["batch", { op: "delete_all", namespace, filter: {}, cursor: "../x" }, "cursor"],
    ["batch", { op: "copy_all", namespace }, "to"],
    ["batch", { op: "copy_all", namespace, to: ["a"] }, "to"],
    ["batch", { op: "copy_all", namespace, to: ["a", "b"] }, "to"],
    ["batch", { op: "copy_all", namespace: ["a", "b"], to: ["a"] }, "to"],
    ["batch", { op: "copy_all", namespace, to: ["x".repeat(901)] }, "to"],
    ["batch", { op: "copy_all", namespace, to: ["b"], filter: {} }, "filter"],
    ["batch", { op: "copy_all", namespace: ["long"], to: ["x".repeat(500)] }, "to"],
    ["batch", { op: "pop", namespace, value: {} }, "value"],
    ["batch", put(namespace, undefined, {}, { if_exists: "keep" }), "if_exists"],
    ["batch", put(namespace, "k", {}, { if_exists: "keep", if_version: 0 }), "if_exists"],
    ["batch", put(namespace, "k", {}, { if_exists: "return" }), "if_exists"],
    ["batch", put(namespace, "k", {}, { ttl_seconds: 0 }), "ttl_seconds"],
    ["batch", put(namespace, "k", {}, { ttl_seconds: "60" }), "ttl_seconds"],
    ["batch", { op: "touch", namespace }, "key"],
    ["batch", { op: "touch", namespace, key: "k", ttl_seconds: -1 }, "ttl_seconds"],
    ["batch", { op: "touch", namespace, key: "k", value: {} }, "value"],
    ["batch", { op: "touch", namespace, key: "k", if_version: 1 }, "if_version"],
    ["batch", put(["a", "half \ud800"], "k", {}), "namespace.1"],
    ["batch", put(namespace, "\udc00", {}), "key"],
    ["batch", put(["é".repeat(450)], "k", {}), "key"],
    ["batch", { op: "delete_all", namespace: ["x".repeat(901)] }, "namespace"],
    ["batch", put(Array(16).fill("x".repeat(57)), undefined, {}), "namespace"],
    ["query", { op: "get", namespace }, "key"],
    ["query", { op: "list" }, "namespace"],
    ["query", { op: "count", namespace, limit: 5 }, "limit"],
    ["query", { op: "namespaces", namespace }, "namespace"],
    ["query", { op: "count", namespace, values: false }, "values"],
    ["query", { op: "get", namespace, key: "k", fields: [] }, "fields"],
    ["query", { op: "get", namespace, key: "k", fields: Array(33).fill("a") }, "fields"],
    ["query", { op: "list", namespace, fields: ["a"], values: false }, "fields"],
    ["query", { op: "list", namespace, order_by: "created_at" }, "order_by"],
    ["query", { op: "list", namespace, order_by: "updated_at", deep: true }, "deep"],
    ["query", { op: "list", namespace, order_by: "updated_at", after: "k" }, "after"],
    ["query", { op: "list", namespace, order_by: "updated_at", before: "k" }, "before"],
    ["query", { op: "count", namespace, order_by: "updated_at" }, "order_by"],
    ["query", { op: "list", namespace, deep: true, after: "a" }, "after"],
    ["query", { op: "list", namespace, cursor: "../x" }, "cursor"],
    ["query", { op: "list", namespace, before: "x".repeat(900) }, "before"],
    ["query", { op: "list", namespace, cursor: "6".repeat(1_851) }, "cursor"],
    ["query", { op: "namespaces", prefix: ["x".repeat(901)] }, "prefix"],
    ["query", { op: "namespaces", prefix: ["*", "\ud800"] }, "prefix.1"],
  ];
  await batch(cairn, [put(["long"], "y".repeat(500), {})]);
  for (const [kind, operation, field] of cases) {
    const answer = refusal(await send(cairn, kind, [{ op: kind === "batch" ? "delete_all" : "count", namespace: ["ok"] }, operation]));
    expect([operation, answer]).toEqual([operation, { status: 400, code: "invalid_request", param: `operations.1.${field}` }]);
  }
  const longest = put(Array(16).fill("x".repeat(56)), "😀", {}, { ttl_seconds: 60, session_id: (await cairn.createSession()).id });
  expect(await batch(cairn, [longest])).toEqual([{ key: "😀", version: 1 }]);
  expect(await query(cairn, [{ op: "get", namespace: longest.namespace, key: "😀" }])).toMatchObject([{ namespace: longest.namespace }]);
});

test("a cursor leads nowhere but into the list that it is given for", async () => {
  await using cairn = await startCairn();
  await batch(cairn, [put(["a"], "1", {}), put(["b"], "2", {}), put(["c"], "3", {})]);
  for (const cursor of [
    "0",
    "~",
    "61!.31",
    "62!",
    "63!.33!",
    "!",
    "f".repeat(1_850),
    `62!${"0".repeat(1_847)}`,
    `62!.${"6".repeat(1_846)}`,
  ]) {
    for (const order of ["asc", "desc"]) {
      const [page] = await query(cairn, [{ op: "list", namespace: ["b"], order, cursor }]);
      expect(page.data.every(({ key }: any) => key === "2")).toBe(true);
    }
    const [namespacePage] = await query(cairn, [{ op: "namespaces", prefix: ["b"], cursor }]);
    expect(namespacePage.data.every((parts: string[]) => parts[0] === "b")).toBe(true);
  }
});

test("each user and each agent has documents of its own, and a bound key reaches no others", async () => {
  await using cairn = await startCairn();
  const ada = { key: await cairn.newKey({ owner: { userId: "ada" } }) };
  const bo = { key: await cairn.newKey({ owner: { userId: "bo" } }) };
  const planner = { key: await cairn.newKey({ owner: { agentId: "planner" } }) };
  const everybody = {};
  const namespace = ["shared"];
  for (const [name, options] of Object.entries({ everybody, ada, bo, planner })) {
    expect(await batch(cairn, [put(namespace, "k", { of: name }, { if_version: 0 })], {}, options)).toEqual([{ key: "k", version: 1 }]);
  }
  const look = [{ op: "get", namespace, key: "k" }, { op: "count", namespace }, { op: "namespaces" }];
  for (const [name, options] of Object.entries({ everybody, ada, bo, planner })) {
    const [found, count, all] = await query(cairn, look, {}, options);
    expect([found.value, count, all.data]).toEqual([{ of: name }, { count: 1 }, [namespace]]);
  }
  // Without a binding the owner is named.
  expect(await query(cairn, look, { user_id: "ada" })).toMatchObject([{ value: { of: "ada" } }, { count: 1 }, {}]);
  expect(await query(cairn, look, { agent_id: "planner" })).toMatchObject([{ value: { of: "planner" } }, { count: 1 }, {}]);
  expect(await query(cairn, look, { user_id: "ada", agent_id: "planner" })).toMatchObject([null, { count: 0 }, { data: [] }]);
  expect(await query(cairn, look, { user_id: "ada" }, ada)).toMatchObject([{ value: { of: "ada" } }, {}, {}]);
  for (const kind of ["batch", "query"] as const) {
    const operations = kind === "batch" ? [{ op: "delete_all", namespace }] : look;
    expect(refusal(await send(cairn, kind, operations, { user_id: "ada" }, bo))).toEqual({
      status: 403,
      code: "permission_denied",
      param: "user_id",
    });
  }
  const ofAda = await cairn.createSession({ user_id: "ada" });
  const tied = put(namespace, "tied", {}, { session_id: ofAda.id });
  expect(refusal(await send(cairn, "batch", [tied], {}, bo))).toMatchObject({ status: 404, code: "session_not_found" });
  expect(refusal(await send(cairn, "batch", [tied], { user_id: "bo" }))).toMatchObject({ status: 404, code: "session_not_found" });
  await batch(cairn, [tied], {}, ada);
  expect(await batch(cairn, [{ op: "delete_all", namespace }], {}, bo)).toEqual([{ deleted: 1 }]);
  expect(await query(cairn, look, {}, ada)).toMatchObject([{ value: { of: "ada" } }, { count: 2 }, {}]);
});

test("a list has a hundred documents unless a limit of up to 1,000 is asked for", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 11; i++)
    await batch(
      cairn,
      Array.from({ length: 100 }, () => put(["log"], undefined, {})),
    );
  const lists = await query(
    cairn,
    [{}, { limit: 1_000 }, { limit: 1_000, offset: 200 }].map((more) => ({ op: "list", namespace: ["log"], ...more })),
  );
  expect(lists.map(({ data, has_more }) => [data.length, has_more])).toEqual([
    [100, true],
    [1_000, true],
    [900, false],
  ]);
});

test("of queries that hold much each key's few are under way at once, and all are answered in full", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 15; i++)
    await batch(
      cairn,
      Array.from({ length: 100 }, (_, n) => put(["log"], `${i}-${n}`, { text: "x".repeat(100) })),
    );
  const { documentQueries } = cairn.service;
  const taken = new Map<string, number>();
  const most = { ofAll: 0, ofKey: 0 };
  const permitOf = documentQueries.permitOf.bind(documentQueries);
  using _ = spyOn(documentQueries, "permitOf").mockImplementation((owner) => {
    const permit = permitOf(owner);
    return {
      get isTaken() {
        return permit.isTaken;
      },
      async take() {
        await permit.take();
        taken.set(owner, (taken.get(owner) ?? 0) + 1);
        most.ofKey = Math.max(most.ofKey, ...taken.values());
        most.ofAll = Math.max(
          most.ofAll,
          taken.values().reduce((sum, count) => sum + count, 0),
        );
      },
      [Symbol.dispose]() {
        if (permit.isTaken) taken.set(owner, taken.get(owner)! - 1);
        permit[Symbol.dispose]();
      },
    };
  });
  const keys = await Promise.all(Array.from({ length: 2 }, () => cairn.newKey()));
  const large = { op: "list", namespace: ["log"], limit: 1_000 };
  const pages = await Promise.all(Array.from({ length: 24 }, (_, i) => query(cairn, [large], {}, { key: keys[i % 2]! })));
  expect(pages.map(([page]) => page.data.length)).toEqual(pages.map(() => 1_000));
  expect(most).toEqual({ ofAll: 4, ofKey: 2 });
});

onEmbedded("an answer of a database lets others through anyway")(
  "a filter counts by what it compares: a large one looks at fewer documents, and lets other requests through",
  async () => {
    await using cairn = await startCairn();
    const values = { numbers: Array.from({ length: 900 }, (_, n) => n) };
    for (let i = 0; i < 13; i++)
      await batch(
        cairn,
        Array.from({ length: 100 }, (_, n) =>
          put(["log"], `${String(i).padStart(2, "0")}-${n}`, n === 0 && i === 12 ? { is: "last" } : values),
        ),
      );
    const small = { op: "list", namespace: ["log"], filter: { is: "last" } };
    const large = { ...small, filter: { ...small.filter, other: { $in: Array.from({ length: 80 }, () => values.numbers) } } };
    const [page] = await query(cairn, [small]);
    expect(page).toMatchObject({ data: [{ key: "12-0" }], has_more: false });
    const ofSmall = await roundsDuring(query(cairn, [small]));
    const asked = query(cairn, [large]);
    expect(await roundsDuring(asked)).toBeGreaterThan(ofSmall + 100);
    const [first] = await asked;
    expect(first).toMatchObject({ data: [], has_more: true });
    expect(await query(cairn, [{ ...large, cursor: first.next_cursor }])).toMatchObject([{ data: [], has_more: false }]);
  },
);

test("a query that holds much waits for nobody without a permit, and none that takes longer than a turn goes on without", async () => {
  await using cairn = await startCairn();
  await batch(cairn, [put(["large"], "a", { text: "x".repeat(100_000) })]);
  for (let i = 0; i < 4; i++)
    await batch(
      cairn,
      Array.from({ length: 100 }, (_, n) => put(["small"], `${i}-${n}`, { n })),
    );
  const { documentQueries } = cairn.service;
  const permitOf = documentQueries.permitOf.bind(documentQueries);
  let taken = 0;
  using _ = spyOn(documentQueries, "permitOf").mockImplementation((owner) => {
    const permit = permitOf(owner);
    return {
      get isTaken() {
        return permit.isTaken;
      },
      take() {
        taken++;
        return permit.take();
      },
      [Symbol.dispose]() {
        permit[Symbol.dispose]();
      },
    };
  });
  const permitsOf = async (...operations: object[]) => {
    taken = 0;
    await query(cairn, operations);
    return taken;
  };
  const search = { op: "search", namespace: ["small"], query: "anything" };
  expect(await permitsOf({ op: "get", namespace: ["large"], key: "a" }, { op: "list", namespace: ["small"] })).toBe(0);
  expect(await permitsOf(search, { op: "get", namespace: ["large"], key: "a" })).toBe(0);
  expect(await permitsOf({ op: "get", namespace: ["large"], key: "a" }, search)).toBe(1);
  expect(await permitsOf({ op: "list", namespace: ["small"], filter: { n: -1 } })).toBe(1);
});

onEmbedded("an answer of a database lets others through anyway")(
  "paths that lead through much let other requests through between documents",
  async () => {
    await using cairn = await startCairn();
    const value = { lists: Array.from({ length: 2_000 }, () => []) };
    const tooLong = put(["wide"], "last", { text: "x".repeat(10_001) }, { index: true });
    /** Of a batch that is refused, so that none of them are those of a commit. */
    const roundsOf = async (index: unknown) => {
      const sent = send(cairn, "batch", [...Array.from({ length: 40 }, (_, n) => put(["wide"], `${n}`, value, { index })), tooLong]);
      const rounds = await roundsDuring(sent);
      expect(refusal(await sent)).toMatchObject({ code: "content_too_large", param: "operations.40.index" });
      return rounds;
    };
    const plain = await roundsOf(undefined);
    expect(await roundsOf(Array.from({ length: 16 }, () => "lists[*].*"))).toBeGreaterThan(plain + 10);
  },
);

test("large documents that are gone are removed a few at a time", async () => {
  await using cairn = await startCairn();
  const value = { text: "x".repeat(600_000) };
  const left = () => cairn.count(documents);
  for (let i = 0; i < 9; i++) await batch(cairn, [put(["timed"], `${i}`, value, { ttl_seconds: 60 })]);
  cairn.clock.advance({ seconds: 60 });
  const counts: number[] = [];
  while ((await left()) > 0) {
    expect(await cairn.runTaskOnce("document expiry")).toBe(counts.length < 2 ? 0 : 1_000);
    counts.push(await left());
  }
  // The fourth goes beyond 2 MiB.
  expect(counts).toEqual([5, 1, 0]);
  for (let i = 0; i < 9; i++) await batch(cairn, [put(["emptied"], `${i}`, value)]);
  for (let i = 0; i < 2; i++)
    await batch(
      cairn,
      Array.from({ length: 100 }, (_, n) => put(["emptied"], `s${i}-${n}`, {})),
    );
  expect(await batch(cairn, [{ op: "delete_all", namespace: ["emptied"] }])).toEqual([{ deleted: 209 }]);
  await cairn.runTaskOnce("document removal");
  expect(await left()).toBe(205);
  await cairn.runTask("document removal");
  expect(await left()).toBe(0);
});
