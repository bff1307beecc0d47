/**
 * Filters of memories: what passes in a search and in a context, what they cost, and what is refused.
 *
 * @module
 */
import { expect, setDefaultTimeout, spyOn, test } from "bun:test";
import type { Operator } from "../src/filters/kinds.ts";
import { OPERATORS } from "../src/filters/operators.ts";
import { nextTurn } from "../src/lib/clock.ts";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { ALL_FILLED, fillMark, memories, meta } from "../src/storage/tables.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { fillMemories, numberedTexts } from "./support/fill.ts";
import { longRounds } from "./support/rounds.ts";

// Thousands of memories, on a machine that may be busy with other tests.
setDefaultTimeout(600_000);

const QUERY = "When does the train to Oslo leave?";
const HOUR = 3_600_000;

const search = (cairn: Cairn, more: object) =>
  cairn.ok(cairn.post("/v1/memory/search", { query: QUERY, threshold: 0, limit: 50, ...more }));

const found = async (cairn: Cairn, more: object) => idsOf((await search(cairn, more)).data);

const listOf = (filter: object, more = "") => `/v1/memory?filter=${encodeURIComponent(JSON.stringify(filter))}${more}`;

test("a filter lets through what passes, in a search, a list and a context with a query or without", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const names: Record<string, string> = {};
  const add = async (name: string, more: object) => {
    cairn.clock.advance({ hours: 1 });
    const { id } = await cairn.ok(cairn.post("/v1/memory", { session_id: session.id, content: `The train ${name} to Oslo.`, ...more }));
    names[id] = name;
  };
  const from = cairn.clock.now();
  const at = (hours: number) => new Date(from + hours * HOUR).toISOString();
  await add("a", { type: "fact", tags: ["x", "y"], metadata: { plan: { level: 1 }, city: "Oslo", n: 1 }, importance: 0.2 });
  await add("b", { type: "fact", tags: ["x"], metadata: { plan: { level: 2 }, city: "Bergen", n: "1" }, external_id: "b-1" });
  await add("c", { type: "event", metadata: { city: null, list: ["p", 1] }, importance: 0.9, occurred_at: "2025-01-01T00:00:00Z" });
  await add("d", { source: "user", tags: ["y"], valid_from: "2026-01-01T00:00:00Z", valid_until: "2027-01-01T00:00:00Z" });
  const cases: [filter: object, passing: string][] = [
    [{ "metadata.city": "Oslo" }, "a"],
    [{ "metadata.city": null }, "c"],
    [{ "metadata.n": 1 }, "a"],
    [{ "metadata.n": { $in: ["1", 2] } }, "b"],
    [{ "metadata.city": { $exists: false } }, "d"],
    [{ "metadata.city": { $starts_with: "B" } }, "b"],
    [{ "metadata.city": { $contains: "sl" } }, "a"],
    [{ "metadata.plan.level": { $gt: 1 } }, "b"],
    [{ "metadata.list": { $contains: "p" } }, "c"],
    [{ "metadata.list": { $all: [1, "p"] } }, "c"],
    [{ type: "fact" }, "ab"],
    [{ type: { $ne: "fact" } }, "cd"],
    [{ type: { $in: ["event", "general"] } }, "cd"],
    [{ tags: { $contains: "x" } }, "ab"],
    [{ tags: { $all: ["x", "y"] } }, "a"],
    [{ tags: { $in: ["y", "z"] } }, "ad"],
    [{ tags: { $nin: ["x"] } }, "cd"],
    [{ tags: ["x"] }, "b"],
    [{ tags: { $in: [] } }, ""],
    [{ user_id: "ada" }, "abcd"],
    [{ user_id: { $ne: "ada" } }, ""],
    [{ agent_id: session.agent_id, session_id: session.id }, "abcd"],
    [{ session_id: "sess_000000000000" }, ""],
    [{ session_id: "none" }, ""],
    [{ external_id: { $exists: true } }, "b"],
    [{ source: "user" }, "d"],
    [{ importance: { $gte: 0.2 } }, "ac"],
    [{ importance: { $exists: false } }, "bd"],
    [{ created_at: { $gt: at(1), $lte: at(3) } }, "bc"],
    [{ occurred_at: { $lt: "2026-01-01T00:00:00Z" } }, "c"],
    [{ valid_until: { $exists: true }, valid_from: { $lte: at(0) } }, "d"],
    [{ $or: [{ type: "event" }, { $and: [{ type: "fact" }, { $not: { "metadata.n": 1 } }] }] }, "bc"],
    [{}, "abcd"],
  ];
  const named = (ids: string[]) =>
    ids
      .map((id) => names[id] ?? "")
      .toSorted((a, b) => a.localeCompare(b))
      .join("");
  for (const [filter, passing] of cases) {
    expect([filter, named(await found(cairn, { filter }))]).toEqual([filter, passing]);
    expect([filter, named(idsOf((await pagesOf(cairn, listOf(filter, "&limit=1"))).flatMap(({ data }) => data)))]).toEqual([
      filter,
      passing,
    ]);
    for (const query of [undefined, QUERY]) {
      const context = await cairn.ok(cairn.post(`/v1/sessions/${session.id}/context`, { query, filter, memory_limit: 20 }));
      expect([filter, named(context.memories.map(({ id }: { id: string }) => id))]).toEqual([filter, passing]);
      expect(context.partial).toBeUndefined();
    }
  }
  expect(named(await found(cairn, { created_after: at(1), created_before: at(4) }))).toBe("bc");
  expect(named(await found(cairn, { created_after: at(1), filter: { type: "fact" } }))).toBe("b");
  expect(named(idsOf(await cairn.list(listOf({ type: "fact" }, `&created_after=${at(1)}`))))).toBe("b");
  expect(named(await found(cairn, { tags: ["x", "y"] }))).toBe("abd");
  expect(named(await found(cairn, { tags: ["x", "y"], tags_match: "all" }))).toBe("a");
  expect(named(idsOf(await cairn.list("/v1/memory?tags=x,y&tags_match=all")))).toBe("a");
});

test("a filter that names what there is not, or compares it with what it cannot be, is refused by path and operator", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const cases: [filter: object, param: string][] = [
    [{ content: "x" }, "filter.content"],
    [{ metadata: {} }, "filter.metadata"],
    [{ tags: "x" }, "filter.tags"],
    [{ importance: "high" }, "filter.importance"],
    [{ $or: [{ type: "fact" }, { created_at: { $gt: "soon" } }] }, "filter.$or[1].created_at.$gt"],
    [{ "metadata.a": { $regex: "x" } }, "filter.metadata.a.$regex"],
  ];
  for (const [filter, param] of cases) {
    for (const path of ["/v1/memory/search", `/v1/sessions/${session.id}/context`])
      expect(refusal(await cairn.post(path, { query: QUERY, filter }))).toEqual({ status: 400, code: "invalid_request", param });
    expect(refusal(await cairn.get(listOf(filter)))).toEqual({ status: 400, code: "invalid_request", param });
  }
});

test("a list takes its filter as a JSON object, not too deep and with numbers that can be kept, and says what is wrong with another", async () => {
  await using cairn = await startCairn();
  const cases: [text: string, param: string, message: string][] = [
    ["", "filter", 'filter must be an object of at most 64 levels; got "".'],
    ["type:fact", "filter", 'filter must be an object of at most 64 levels; got "type:fact".'],
    ['{"type":"fact"', "filter", "filter must be an object of at most 64 levels; got "],
    ["[]", "filter", 'filter must be an object of at most 64 levels; got "[]".'],
    ["null", "filter", 'filter must be an object of at most 64 levels; got "null".'],
    ['{"metadata.n":9007199254740993}', "filter.metadata.n", "must be a number that can be kept exactly"],
    [`{"metadata.n":${"[".repeat(64)}${"]".repeat(64)}}`, "filter", "filter must nest at most 64 levels; got 65."],
  ];
  for (const [text, param, message] of cases) {
    const answer = await cairn.get(`/v1/memory?filter=${encodeURIComponent(text)}`);
    expect({ text, ...refusal(answer) }).toEqual({ text, status: 400, code: "invalid_request", param });
    expect(answer.body.error.message).toContain(message);
  }
});

test("a page of a filtered list ends where it has compared as much as one request may, and the next goes on behind it", async () => {
  await using cairn = await startCairn({ listProbesMax: 205, environment: { embedding: { provider: "words" } } });
  const session = await cairn.createSession({ user_id: "ada" });
  await fillMemories(cairn, session, numberedTexts(40), (i) => ({ metadata: { i, ...(i === 39 ? { long: "ab".repeat(30_000) } : {}) } }));
  const of = async (filter: object, headers = {}) => {
    const pages = await pagesOf(cairn, listOf(filter), { headers });
    return { lengths: pages.map(({ data }) => data.length), found: pages.flatMap(({ data }) => data).map((one: any) => one.metadata.i) };
  };
  // Each row that does not pass counts as 10.
  expect(await of({ "metadata.i": { $lt: 2 } })).toEqual({ lengths: [0, 2], found: [1, 0] });
  const bound = { "X-API-Key": await cairn.newKey({ owner: { userId: "ada" } }) };
  expect((await of({ "metadata.i": { $lt: 2 } }, bound)).found).toEqual([1, 0]);
  // What passes counts, too, and each is shown once.
  const all = await of({ "metadata.i": { $gte: 0 } }, bound);
  expect(all.found).toEqual(Array.from({ length: 40 }, (_, i) => 39 - i));
  expect(all.lengths.length).toBeGreaterThan(1);
  // Long metadata that all of a filter goes through counts for many: a page ends behind it.
  const worst = Array.from({ length: LIMITS.filterPathsMax }, () => ({ "metadata.long": { $contains: `${"ba".repeat(99)}bb` } }));
  const { lengths, found: shown } = await of({ $or: [...worst.slice(1), { "metadata.i": 38 }] });
  expect([lengths[0], shown]).toEqual([0, [38]]);
  // An equality in metadata goes by an index.
  expect(await of({ "metadata.i": 0 })).toEqual({ lengths: [1], found: [0] });
});

test("a filtered search finds what a comparison of all that pass finds, however few they are", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const shares = [2, 10, 100, 1_000];
  const kindOf = (i: number) => ({ type: shares.map((share) => (i % share === 1 ? "1" : "0")).join("") });
  const typesOf = (place: number) =>
    Array.from({ length: 16 }, (_, n) => n.toString(2).padStart(4, "0")).filter((type) => type[place] === "1");
  await fillMemories(cairn, session, numberedTexts(6_000), (i) => ({
    ...kindOf(i),
    metadata: Object.fromEntries(shares.map((share) => [`of${share}`, i % share])),
    // Of a share are those that happened then, or later.
    occurredAt: Math.max(...shares.map((share) => (i % share === 1 ? share : 0))),
  }));
  for (const [place, share] of shares.entries()) {
    for (const query of ["Parcel for Anna at gate 12", "seal 7919 of Boris", "what came for Greta?"]) {
      const byIndex = await found(cairn, { query, types: typesOf(place), limit: 10 });
      expect(byIndex.length).toBe(Math.min(10, 6_000 / share));
      // By the index of metadata, and by rows.
      const ofMetadata = [1, { $in: [1, "none"] }, { $gte: 1, $lt: 2 }].map((comparison) => ({ [`metadata.of${share}`]: comparison }));
      for (const filter of [...ofMetadata, { occurred_at: { $gte: new Date(share).toISOString() } }]) {
        const filtered = await search(cairn, { query, filter, limit: 10 });
        const passing = new Set(idsOf(filtered.data));
        expect(filtered.partial).toBeUndefined();
        expect(byIndex.filter((id) => passing.has(id)).length / byIndex.length).toBeGreaterThanOrEqual(0.95);
      }
    }
  }
});

test("memories of before are found by their metadata before an index has them, and after", async () => {
  await using cairn = await startCairn();
  const { byMetadata } = memories.index;
  const add = (i: number) => cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: `Note ${i}.`, metadata: { i } }));
  const [first, last] = [await add(1), await add(2)];
  await cairn.dropEntries(byMetadata, "");
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(meta, fillMark(byMetadata.name)));
  expect(await found(cairn, { filter: { "metadata.i": 1 } })).toEqual([first.id]);
  await cairn.restart();
  expect(await cairn.read((reader) => reader.get(meta, fillMark(byMetadata.name)))).toBe(ALL_FILLED);
  expect(await found(cairn, { filter: { "metadata.i": 2 } })).toEqual([last.id]);
  expect(await cairn.findings()).toEqual([]);
});

test("a search compares 10,000 memories with its filter and no more, and then says that its answer is partial; metadata that equals a value is found among more, whatever else there is", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const session = await cairn.createSession({ user_id: "ada" });
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
  const long = "é".repeat(200);
  const own: [metadata: object, filters: object[]][] = [
    [{ n: 20, "a.b": 1 }, [{ "metadata.n": 20 }, { "metadata.n": { $in: [7, 20] } }]],
    [{ n: "20" }, [{ "metadata.n": "20" }]],
    [{ n: null, yes: true }, [{ "metadata.n": null }, { "metadata.yes": true, type: "general" }]],
    [{ n: long }, [{ "metadata.n": long }]],
    [{ n: `${long}s` }, [{ "metadata.n": { $eq: `${long}s` } }]],
    [{ ...many(32), m: [1], o: { p: 1 } }, [{ $and: [{ "metadata.k31": 31 }, { $not: { "metadata.k32": 32 } }] }]],
    [{ ...many(33), last: "x" }, [{ "metadata.k32": 32 }, { "metadata.last": { $in: ["x"] } }]],
  ];
  const oldest: { id: string }[] = [];
  for (const [metadata] of own) {
    const body = { session_id: session.id, content: `The train ${oldest.length}.`, metadata };
    oldest.push(await cairn.ok(cairn.post("/v1/memory", body)));
  }
  const texts = numberedTexts(LIMITS.memoryRowsMax + 2_000);
  await fillMemories(cairn, session, texts, (i) => ({ metadata: { i, yes: false } }));
  const lowest = { filter: { "metadata.i": { $lt: 1 } }, query: "zebras in the rain" };
  expect(await search(cairn, lowest)).toMatchObject({ data: [], partial: true });
  const context = { filter: lowest.filter, memory_limit: 1 };
  expect(await cairn.ok(cairn.post(`/v1/sessions/${session.id}/context`, context))).toMatchObject({ memories: [], partial: true });
  const newest = await search(cairn, { ...lowest, filter: { "metadata.i": { $gte: texts.length - 1 } }, limit: 1 });
  expect(newest.data).toHaveLength(1);
  for (const [i, [, filters]] of own.entries()) {
    for (const filter of filters) {
      const { data, partial } = await search(cairn, { filter });
      expect({ filter, ids: idsOf(data), partial }).toEqual({ filter, ids: [oldest[i]!.id], partial: undefined });
      const { memories: shown } = await cairn.ok(cairn.post(`/v1/sessions/${session.id}/context`, { filter }));
      expect({ filter, ids: idsOf(shown) }).toEqual({ filter, ids: [oldest[i]!.id] });
    }
  }
  const [changed, deleted] = [`/v1/memory/${oldest[0]!.id}`, `/v1/memory/${oldest[1]!.id}`];
  await cairn.ok(cairn.request("PATCH", changed, { body: { metadata: { n: 21 } } }));
  await cairn.ok(cairn.delete(deleted));
  const left = await Promise.all([20, 21, "20"].map((n) => found(cairn, { filter: { "metadata.n": n } })));
  expect(left).toEqual([[], [oldest[0]!.id], []]);
});

test("a search compares a memory with its filter once, however often it looks for more to rank, and once more in each ranking", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  // None matters, so that the ranking grows until it has all of them: it is of 4, 16, 64 and 256 of them.
  const [count, rankings] = [190, 4];
  await fillMemories(cairn, session, numberedTexts(count), () => ({ metadata: { of: "all of them" }, importance: 0 }));
  const comparing = OPERATORS.$contains.test.bind(OPERATORS.$contains);
  let compared = 0;
  using _ = spyOn(OPERATORS.$contains, "test").mockImplementation((...given) => {
    const passes = comparing(...given);
    return (value) => (compared++, passes(value));
  });
  const filter = { "metadata.of": { $contains: "all" } };
  const { data, partial } = await search(cairn, { query: "Parcel for Anna at gate 12", limit: 1, importance_weight: 1, filter });
  expect([data.length, partial]).toEqual([1, undefined]);
  expect(compared).toBeGreaterThan(count);
  expect(compared).toBeLessThanOrEqual(count * (1 + rankings));
});

test("hostile filters on very many memories look at as many as one request may, and let others through meanwhile", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const session = await cairn.createSession();
  const long = "ab".repeat(500);
  const metadata = { long, list: Array.from({ length: 50 }, (_, i) => `ab${i}`), n: 1 };
  const texts = numberedTexts(longRounds(2_000, 100_000));
  for (let at = 0; at < texts.length; at += 5_000) await fillMemories(cairn, session, texts.slice(at, at + 5_000), () => ({ metadata }));
  const part = `${"ab".repeat(126)}ba`;
  const values = Array.from({ length: LIMITS.filterValuesMax - 1 }, (_, i) => `${long.slice(0, 60)}${i}`);
  const most = `${long.slice(0, -1)}a`;
  // None passes, so that each looks at all that it may.
  const worst: Record<Operator, object> = {
    $eq: { "metadata.list": { $eq: [...metadata.list.slice(1), "c"] } },
    $ne: { "metadata.n": { $ne: 1 } },
    $gt: { "metadata.long": { $gt: `${long}c` } },
    $gte: { "metadata.long": { $gte: `${long}c` } },
    $lt: { "metadata.long": { $lt: most } },
    $lte: { "metadata.long": { $lte: most } },
    $in: { "metadata.list": { $in: values.map((value) => [value]) } },
    $nin: { "metadata.n": { $nin: [...values, 1] } },
    $exists: { "metadata.long": { $exists: false } },
    $all: { "metadata.list": { $all: ["ab0", ...values] } },
    $contains: { "metadata.long": { $contains: part } },
    $starts_with: { "metadata.long": { $starts_with: part } },
  };
  const nested = { $or: Object.values(worst).map((filter) => ({ $and: [{ $or: [filter] }] })) };
  for (const filter of longRounds([worst.$contains, nested], [...Object.values(worst), nested])) {
    const state = { isAnswered: false };
    const asked = search(cairn, { filter }).finally(() => (state.isAnswered = true));
    let served = 0;
    for (; !state.isAnswered; served++) {
      await cairn.ok(cairn.get(`/v1/sessions/${session.id}`));
      await nextTurn();
    }
    const { data, partial } = await asked;
    expect({ filter, data, isBounded: partial === true || texts.length <= LIMITS.memoryRowsMax }).toEqual({
      filter,
      data: [],
      isBounded: true,
    });
    expect(served).toBeGreaterThan(2);
  }
});

test("each operator at its worst is bounded by what it goes through: long metadata counts for many rows", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const long = "ab".repeat(30_000);
  await fillMemories(cairn, session, numberedTexts(40), () => ({ metadata: { long, list: Array(1_000).fill("ab") } }));
  const part = `${"ab".repeat(126)}ba`;
  const worst = Array.from({ length: LIMITS.filterPathsMax }, (_, i) => ({
    "metadata.long": { $contains: i % 2 === 0 ? part : `b${part}` },
  }));
  expect(await search(cairn, { filter: { $or: worst } })).toMatchObject({ data: [], partial: true });
  const operators = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"].map((operator) => ({
    "metadata.long": { [operator]: `${long.slice(0, 1_000)}c` },
  }));
  const lists = ["$in", "$nin"].map((operator) => ({ "metadata.list": { [operator]: Array(100).fill(Array(50).fill("ab")) } }));
  const others = [
    { "metadata.list": { $all: ["ab", "c"] } },
    { "metadata.long": { $starts_with: part } },
    { "metadata.long": { $exists: false } },
  ];
  for (const filter of [...operators, ...lists, ...others]) expect((await search(cairn, { filter })).partial).toBeUndefined();
});
