import { expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import type { Embedding } from "../../../src/embeddings/embedder.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";
import { MEMORIES as MEMORY_RECORDS } from "../../../src/storage/collections.ts";
import { removeRecord } from "../../../src/storage/memory-records.ts";
import { memories } from "../../../src/storage/tables.ts";
import { posting } from "../../../src/storage/walk.ts";
import type { CandidateReader } from "../../../src/search/candidates.ts";
import { closenessTo, type Query } from "../../../src/search/query.ts";
import { ScopeVectors } from "../../../src/search/scopes/scope-vectors.ts";
import { ScopeCache } from "../../../src/search/scopes/scope-cache.ts";
import { SharedVectors } from "../../../src/search/scopes/shared-vectors.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import {
  chance,
  dot,
  idAt,
  ofType,
  ofUser,
  queryFor,
  queryOf,
  sharedOf,
  storedBytes,
  storedVectors,
  unitVector,
} from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(600_000);

const embedder = madeEmbedder;
const random = chance(1);
const TEXTS = Object.values(MEMORIES).map((text) => embedder.embedMemory(text).vector);
const QUERIES = QUESTIONS.slice(0, 20).map(({ text }) => embedder.embedQuery(text).vector);
const DENSE = Array.from({ length: 200 }, () => unitVector(random));

/** No vector of these sets is to be read from a store. */
const NO_READER = {
  candidate: () => {
    throw new Error("there is a row");
  },
} as unknown as CandidateReader;

/** A set of vectors that all have rows. */
function setOf(embeddings: readonly (Pick<Embedding, "vector"> & Partial<Embedding>)[], memoryAt = (i: number) => idAt(10_000 + i)) {
  const stored = embeddings.map((embedding, i) => ({ id: idAt(i), bytes: storedBytes(embedding, memoryAt(i)) }));
  const shared = new SharedVectors(sharedOf(stored));
  const set = new ScopeVectors();
  for (const { id } of stored) set.add(id, shared);
  return { set, shared, nearest: (query: Query) => set.nearest(query, shared, NO_READER)! };
}

for (const { name, vectors, queries } of [
  { name: "vectors of the built-in provider", vectors: TEXTS, queries: QUERIES },
  { name: "vectors of which every number counts", vectors: DENSE, queries: DENSE.slice(0, 20) },
  { name: "both together", vectors: [...DENSE.slice(0, 50), ...TEXTS.slice(0, 50), ...DENSE.slice(50, 60)], queries: QUERIES },
]) {
  test(`cosines are those of the whole vectors to the last bit: ${name}`, () => {
    const { nearest } = setOf(vectors.map((vector, i) => ({ vector, terms: Uint32Array.of(i) })));
    for (const query of queries) {
      const found = nearest(queryFor(query, vectors.length)).sort((a, b) => (a.id < b.id ? -1 : 1));
      expect(found.map(({ id, memory, cosine, terms }) => ({ id, memory, cosine, terms: terms.slice() }))).toEqual(
        vectors.map((vector, i) => ({ memory: idAt(10_000 + i), id: idAt(i), cosine: dot(query, vector), terms: Uint32Array.of(i) })),
      );
    }
  });
}

test("of equal vectors the newest are among the nearest, and a removed one is not", () => {
  const { set, shared, nearest } = setOf(Array.from({ length: 32 }, (_, i) => ({ vector: DENSE[i === 31 ? 1 : 0]! })));
  set.remove(idAt(29), shared);
  expect(set.size).toBe(31);
  const found = nearest(queryFor(DENSE[0]!, 10)).map(({ id }) => Number(id));
  expect(found.sort((a, b) => a - b)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 30]);
});

test("of more memories than are enough those come that score best, by words as by cosine, with what they score", () => {
  const texts = Object.values(MEMORIES);
  const { nearest } = setOf(
    texts.map((text) => ({ ...embedder.embedMemory(text) })).map(({ vector, terms }) => ({ vector, terms: terms.slice() })),
  );
  for (const { text } of QUESTIONS.slice(0, 40)) {
    const query = queryOf(text, texts.length);
    const all = nearest(query)
      .map(({ memory, cosine, terms }) => ({ memory, cosine, closeness: closenessTo(query, cosine, terms) }))
      .sort((a, b) => b.closeness - a.closeness || b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1));
    for (const enough of [1, 10, 100]) {
      const found = nearest({ ...query, enough }).map(({ memory, cosine, closeness }) => ({ memory, cosine, closeness }));
      expect(
        found.sort((a, b) => all.findIndex(({ memory }) => memory === a.memory) - all.findIndex(({ memory }) => memory === b.memory)),
      ).toEqual(all.slice(0, enough).map(({ memory, cosine, closeness }) => ({ memory, cosine, closeness })));
    }
  }
});

test("by words alone the newest of those that have none come, in whatever order their vectors came, and none where 0 is left out", () => {
  const query = { ...queryOf("kayak", 10), vector: new Int16Array(0) };
  const texts = Array.from({ length: 40 }, (_, i) => (i === 3 ? "The kayak is red." : `Room ${i} is free.`));
  const made = texts.map((text) => ({ vector: DENSE[0]!, terms: embedder.embedMemory(text).terms }));
  const { nearest } = setOf(made, (i) => idAt(10_000 + ((i * 7) % 40)));
  const memoriesOf = (asked: Query) => nearest(asked).map(({ memory }) => Number(memory) - 10_000);
  expect(memoriesOf(query).sort((a, b) => a - b)).toEqual([21, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
  expect(memoriesOf({ ...query, isZeroLeftOut: true })).toEqual([21]);
});

test("a memory that covers most of the query is found before a long one that covers all of it", () => {
  const query = queryOf("kayak sauerkraut nephew harbour violin", 48);
  const { terms } = embedder.embedMemory("kayak sauerkraut nephew harbour violin");
  const names = Array.from({ length: 600 }, (_, i) => 2 ** 31 + i);
  const some = Uint32Array.of(...terms.subarray(0, 4), 2 ** 32 - 1);
  const long = Uint32Array.of(...terms.subarray(0, 5), ...names, 2 ** 32 - 1);
  const { nearest } = setOf([long, some, Uint32Array.of(1, 2)].map((one) => ({ vector: DENSE[0]!, terms: one })));
  expect(nearest({ ...query, enough: 1 }).map(({ terms: found }) => found.length)).toEqual([some.length]);
});

test("more vectors than are compared at once are all compared", () => {
  const { nearest } = setOf(Array.from({ length: 4_100 }, (_, i) => ({ vector: TEXTS[i % TEXTS.length]! })));
  const found = nearest(queryFor(QUERIES[0]!, 4_100)).sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(found.map(({ cosine }) => cosine)).toEqual(Array.from({ length: 4_100 }, (_, i) => dot(QUERIES[0]!, TEXTS[i % TEXTS.length]!)));
});

type Change =
  | { kind: "add"; count: number; user: number }
  | { kind: "remove" | "replace"; which: number; count: number }
  | { kind: "refused"; which: number };

const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), count: fc.integer({ min: 1, max: 8 }), user: fc.integer({ min: 0, max: 2 }) }),
  fc.record({ kind: fc.constantFrom("remove" as const, "replace" as const), which: fc.nat(), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant("refused" as const), which: fc.nat() }),
);

test("whatever is added, deleted and changed, a set that is kept gives the answer of brute force, and so does one of few bytes", async () => {
  const small = { sizeMax: 20, readMax: 4, changesMax: 6, bytesMax: 3_000 };
  let kept = 0;
  // Slots of one index never get other vectors.
  let numberings = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyChange, { minLength: 3, maxLength: 25 }), fc.integer(), fc.boolean(), async (changes, seed, isSmall) => {
      await using vectors = await storedVectors();
      const pick = chance(seed);
      const sets = new ScopeCache(vectors.store, isSmall ? small : {});
      for (const change of changes) {
        const at = change.kind === "add" ? 0 : change.which % Math.max(1, vectors.stored.length);
        switch (change.kind) {
          case "add":
            await vectors.add(
              Array.from({ length: change.count }, () => unitVector(pick)),
              () => ({ user: `user-${change.user}` }),
            );
            break;
          case "remove":
            await vectors.remove(vectors.stored.slice(at, at + change.count));
            break;
          case "replace":
            for (const one of vectors.stored.slice(at, at + change.count)) await vectors.replace(one, unitVector(pick));
            break;
          case "refused": {
            const refused = vectors.store.commit(NO_PARTITION, (tx) => {
              for (const { memory } of vectors.stored.slice(at, at + 1)) removeRecord(tx, MEMORY_RECORDS, memory);
              throw new Error("of the test");
            });
            expect(await refused.catch((error: Error) => error.message)).toBe("of the test");
            break;
          }
        }
        // The worker has seen some of what there is, and now and then it numbers anew.
        if (pick() < 0.2) sets.use({ ...vectors.shared, index: `index ${numberings++}` });
        const filter = [ofUser(`user-${Math.floor(pick() * 3)}`)];
        const query = unitVector(pick);
        const found = sets.nearest(queryFor(query, 5), filter);
        if (found === undefined) continue;
        kept++;
        expect(new Set(found.map(({ memory }) => memory))).toEqual(new Set(vectors.exact(query, filter, 5)));
      }
    }),
    { numRuns: 40 },
  );
  expect(kept).toBeGreaterThan(60);
});

test("a vector that is deleted leaves a set that is kept, and its place among the nearest to the next", async () => {
  await using vectors = await storedVectors();
  await vectors.add(DENSE.slice(0, 20));
  const sets = new ScopeCache(vectors.store);
  sets.use({ ...vectors.shared, index: "index" });
  const filter = [ofUser("user")];
  const nearest = () => new Set(sets.nearest(queryFor(DENSE[3]!, 5), filter)?.map(({ memory }) => memory));
  expect(nearest()).toEqual(new Set(vectors.exact(DENSE[3]!, filter, 5)));
  await vectors.remove(vectors.stored.slice(3, 4));
  expect(sets.for(filter)?.size).toBe(19);
  expect(nearest()).toEqual(new Set(vectors.exact(DENSE[3]!, filter, 5)));
});

test("a set is read again when the worker has numbered the vectors anew", async () => {
  await using vectors = await storedVectors();
  await vectors.add(DENSE.slice(0, 20), () => ({ user: "other" }));
  await vectors.add(DENSE.slice(20, 40));
  const sets = new ScopeCache(vectors.store);
  const filter = [ofUser("user")];
  const nearest = () => new Set(sets.nearest(queryFor(DENSE[30]!, 5), filter)?.map(({ memory }) => memory));
  sets.use({ ...vectors.shared, index: "first" });
  expect(nearest()).toEqual(new Set(vectors.exact(DENSE[30]!, filter, 5)));
  // The next index has no slots for these, so that those of all others are lower.
  await vectors.remove(vectors.stored.slice(0, 10));
  sets.use({ ...vectors.shared, index: "second" });
  expect(nearest()).toEqual(new Set(vectors.exact(DENSE[30]!, filter, 5)));
});

test("while commits are under way a set holds what readers see, neither more nor less", async () => {
  await using vectors = await storedVectors();
  const sets = new ScopeCache(vectors.store);
  const filter = [ofUser("user")];
  await vectors.add(DENSE.slice(0, 60));
  const session = [posting(memories.index.bySession, "000000000000")];
  const seen = () => new Set(vectors.store.latest.keys(memories.index.bySession, { from: "", to: "~" }).map((key) => key.slice(-12)));
  for (let i = 0; i < 20; i++) {
    const state = { isDone: false };
    const chosen = vectors.stored.slice(i, i + 2);
    const changed = Promise.all([vectors.remove(chosen), vectors.add([DENSE[60 + i]!])]).then(() => (state.isDone = true));
    for (let round = 0; !state.isDone || round < 2; round++) {
      for (const scope of [filter, session]) {
        expect(new Set(sets.nearest(queryFor(DENSE[0]!, 1_000), scope)?.map(({ memory }) => memory))).toEqual(seen());
      }
      await new Promise(setImmediate);
    }
    await changed;
  }
});

test("a large set is kept once it was asked for a few times, one that is too large and other filters never", async () => {
  await using vectors = await storedVectors();
  const sets = new ScopeCache(vectors.store, { sizeMax: 50, readMax: 20 });
  await vectors.add(DENSE.slice(0, 50), () => ({ user: "large" }));
  await vectors.add(DENSE.slice(0, 51), () => ({ user: "too large" }));
  const sizes = (filter: Parameters<ScopeCache["for"]>[0]) => Array.from({ length: 4 }, () => sets.for(filter)?.size);
  expect(sizes([ofUser("large")])).toEqual([undefined, undefined, 50, 50]);
  expect(sizes([ofUser("too large")])).toEqual([undefined, undefined, undefined, undefined]);
  expect(sizes([ofUser("nobody")])).toEqual([0, 0, 0, 0]);
  for (const filter of [[], [ofType("general")], [ofUser("large"), ofType("general")]]) expect(sets.for(filter)).toBeUndefined();
  await vectors.add(DENSE.slice(0, 1), () => ({ user: "large" }));
  expect(sets.for([ofUser("large")])).toBeUndefined();
});

test("of more users than there is room for those searched last stay", async () => {
  await using vectors = await storedVectors();
  const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
  for (const user of users) await vectors.add(DENSE.slice(0, 10), () => ({ user }));
  // A set of ten without rows takes 2.5 KB: there is room for five.
  const sets = new ScopeCache(vectors.store, { bytesMax: 13_000 });
  const ask = (names: readonly string[]) => names.forEach((user) => expect(sets.for([ofUser(user)])?.size).toBe(10));
  ask(users);
  expect(sets.uses).toEqual({ hits: 0, misses: 20 });
  ask(users.slice(-5));
  expect(sets.uses).toEqual({ hits: 5, misses: 20 });
  ask(users.slice(0, 5));
  expect(sets.uses).toEqual({ hits: 5, misses: 25 });
});

test("vectors that have no row yet are read from the store, and where they are many another way is taken", async () => {
  await using vectors = await storedVectors();
  const sets = new ScopeCache(vectors.store);
  const filter = [ofUser("user")];
  const found = (pendingMax?: number) => sets.nearest(queryFor(DENSE[0]!, 1_000), filter, pendingMax)?.length;
  await vectors.add(DENSE.slice(0, 50));
  expect([found(), found(49)]).toEqual([50, undefined]);
  sets.use(vectors.shared);
  expect(found(0)).toBe(50);
  await vectors.add(DENSE.slice(50, 60));
  expect([found(), found(9)]).toEqual([60, undefined]);
  sets.use(vectors.shared);
  expect(found(0)).toBe(60);
});
