import { expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { removeMemoryRecords } from "../../../src/storage/memory-records.ts";
import { memories } from "../../../src/storage/tables.ts";
import { posting } from "../../../src/storage/walk.ts";
import { compareOn, scriptCompare } from "../../../src/vectors/resident-kernel.ts";
import { ResidentSet, VectorArena } from "../../../src/vectors/resident-set.ts";
import { ResidentSets } from "../../../src/vectors/resident-sets.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, dot, idAt, ofType, ofUser, queryFor, queryOf, storedBytes, storedVectors, unitVector } from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(60_000);

const embedder = localEmbedder;
const random = chance(1);
const TEXTS = Object.values(MEMORIES).map((text) => embedder.embedMemory(text).vector);
const QUERIES = QUESTIONS.slice(0, 20).map(({ text }) => embedder.embedQuery(text).vector);
const DENSE = Array.from({ length: 200 }, () => unitVector(random));

for (const { name, vectors, queries } of [
  { name: "vectors of the built-in provider", vectors: TEXTS, queries: QUERIES },
  { name: "vectors of which every number counts", vectors: DENSE, queries: DENSE.slice(0, 20) },
  { name: "both together", vectors: [...DENSE.slice(0, 50), ...TEXTS.slice(0, 50), ...DENSE.slice(50, 60)], queries: QUERIES },
]) {
  test.each([compareOn, scriptCompare])(`cosines are those of the whole vectors to the last bit: ${name}, %p`, (kernel) => {
    const set = new ResidentSet(new VectorArena(kernel));
    for (const [i, vector] of vectors.entries()) add(set, i, vector, Uint32Array.of(i));
    for (const query of queries) {
      const found = set.nearest(queryFor(query, vectors.length)).sort((a, b) => (a.id < b.id ? -1 : 1));
      expect(found).toEqual(
        vectors.map((vector, i) => ({ memory: idAt(1_000 + i), id: idAt(i), cosine: dot(query, vector), terms: Uint32Array.of(i) })),
      );
    }
  });
}

function add(set: ResidentSet, number: number, vector: Float32Array, terms = new Uint32Array(0)): void {
  set.add(idAt(number), storedBytes({ vector, terms }, idAt(1_000 + number)));
}

test("of equal vectors the newest are among the nearest", () => {
  const set = new ResidentSet(new VectorArena());
  for (let i = 0; i < 30; i++) add(set, i, DENSE[0]!);
  add(set, 31, DENSE[1]!);
  set.remove(idAt(29));
  const found = set.nearest(queryFor(DENSE[0]!, 10)).map(({ id }) => Number(id));
  expect(found.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => 19 + i));
});

test("of more memories than are asked for those come that score best, by words as by cosine", () => {
  const set = new ResidentSet(new VectorArena());
  const texts = Object.values(MEMORIES);
  for (const [i, text] of texts.entries()) {
    const { vector, terms } = embedder.embedMemory(text);
    add(set, i, vector, terms.slice());
  }
  for (const { text } of QUESTIONS.slice(0, 40)) {
    const query = queryOf(text, 10);
    const best = ({ limit }: { limit: number }) =>
      set
        .nearest({ ...query, limit })
        .map(({ cosine, terms }) => query.score(cosine, terms))
        .sort((a, b) => b - a)
        .slice(0, 10);
    expect(best({ limit: 10 })).toEqual(best({ limit: texts.length }));
  }
});

test("sets share their memory, and what one gives back serves the others", () => {
  const arena = new VectorArena();
  const vectors = [...TEXTS.slice(0, 40), ...DENSE.slice(0, 40)];
  const filled = (from: number) => {
    const set = new ResidentSet(arena);
    for (const [i, vector] of vectors.entries()) add(set, from + i, vector);
    return set;
  };
  const expectWhole = (set: ResidentSet, from: number, first: number) => {
    const found = set.nearest(queryFor(QUERIES[0]!, vectors.length)).sort((a, b) => (a.id < b.id ? -1 : 1));
    const expected = vectors.map((vector, i) => ({ id: idAt(from + i), cosine: dot(QUERIES[0]!, vector) })).slice(first);
    expect(found.map(({ id, cosine }) => ({ id, cosine }))).toEqual(expected);
  };
  const stays = filled(0);
  const goes = filled(1_000);
  const bytes = arena.size;
  for (let round = 1; round <= 5; round++) {
    for (let i = 0; i < 30; i++) goes.remove(idAt(1_000 + i));
    expectWhole(goes, 1_000, 30);
    const other = filled(1_000 * (round + 1));
    expectWhole(other, 1_000 * (round + 1), 0);
    other.release();
    expectWhole(stays, 0, 0);
  }
  goes.release();
  expect(goes.size).toBe(0);
  expectWhole(filled(9_000), 9_000, 0);
  // At most one set more than at first was there at once.
  expect(arena.size).toBeLessThanOrEqual(bytes * 1.5);
});

test("more vectors than are compared at once are all compared", () => {
  const set = new ResidentSet(new VectorArena());
  for (let i = 0; i < 4_100; i++) add(set, i, TEXTS[i % TEXTS.length]!);
  const found = set.nearest(queryFor(QUERIES[0]!, 4_100)).sort((a, b) => (a.id < b.id ? -1 : 1));
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
  const small = { sizeMax: 20, readMax: 4, changesMax: 6, bytesMax: 150_000 };
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyChange, { minLength: 3, maxLength: 25 }), fc.integer(), fc.boolean(), async (changes, seed, isSmall) => {
      await using vectors = await storedVectors();
      const pick = chance(seed);
      const sets = new ResidentSets(vectors.store, isSmall ? small : {});
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
            const refused = vectors.store.commit(NO_HOME, (tx) => {
              for (const { memory } of vectors.stored.slice(at, at + 1)) removeMemoryRecords(tx, memory);
              throw new Error("of the test");
            });
            expect(await refused.catch((error: Error) => error.message)).toBe("of the test");
            break;
          }
        }
        const filter = [ofUser(`user-${Math.floor(pick() * 3)}`)];
        const query = unitVector(pick);
        const found = sets.for(filter)?.nearest(queryFor(query, 5));
        if (found === undefined) continue;
        kept++;
        expect(new Set(found.map(({ memory }) => memory))).toEqual(new Set(vectors.exact(query, filter, 5)));
      }
    }),
    { numRuns: 60 },
  );
  expect(kept).toBeGreaterThan(100);
});

test("while commits are under way a set holds what readers see, neither more nor less", async () => {
  await using vectors = await storedVectors();
  const sets = new ResidentSets(vectors.store);
  const filter = [ofUser("user")];
  await vectors.add(DENSE.slice(0, 60));
  const session = [posting(memories.index.bySession, "000000000000")];
  const seen = () => new Set(vectors.store.latest.keys(memories.index.bySession, { from: "", to: "~" }).map((key) => key.slice(-12)));
  for (let i = 0; i < 20; i++) {
    const state = { isDone: false };
    const chosen = vectors.stored.slice(i, i + 2);
    const changed = Promise.all([vectors.remove(chosen), vectors.add([DENSE[60 + i]!])]).then(() => (state.isDone = true));
    for (let round = 0; !state.isDone || round < 2; round++) {
      for (const set of [sets.for(filter), sets.for(session)]) {
        expect(new Set(set?.nearest(queryFor(DENSE[0]!, 1_000)).map(({ memory }) => memory))).toEqual(seen());
      }
      await new Promise(setImmediate);
    }
    await changed;
  }
});

test("a large set is kept once it was asked for a few times, one that is too large and other filters never", async () => {
  await using vectors = await storedVectors();
  const sets = new ResidentSets(vectors.store, { sizeMax: 50, readMax: 20 });
  await vectors.add(DENSE.slice(0, 50), () => ({ user: "large" }));
  await vectors.add(DENSE.slice(0, 51), () => ({ user: "too large" }));
  const sizes = (filter: Parameters<ResidentSets["for"]>[0]) => Array.from({ length: 4 }, () => sets.for(filter)?.size);
  expect(sizes([ofUser("large")])).toEqual([undefined, undefined, 50, 50]);
  expect(sizes([ofUser("too large")])).toEqual([undefined, undefined, undefined, undefined]);
  expect(sizes([ofUser("nobody")])).toEqual([0, 0, 0, 0]);
  for (const filter of [[], [ofType("general")], [ofUser("large"), ofType("general")]]) expect(sets.for(filter)).toBeUndefined();
  await vectors.add(DENSE.slice(0, 1), () => ({ user: "large" }));
  expect(sets.for([ofUser("large")])).toBeUndefined();
});

test("of more users than there is room for some stay, however the searches go round, and others get in now and then", async () => {
  await using vectors = await storedVectors();
  const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
  for (const user of users) await vectors.add(DENSE.slice(0, 10), () => ({ user }));
  // A set of ten takes 19 KB: there is room for five.
  const sets = new ResidentSets(vectors.store, { bytesMax: 110_000, admittedOf: 16 });
  const kept = () => users.filter((user) => sets.for([ofUser(user)]) !== undefined);
  const rounds = Array.from({ length: 10 }, kept);
  for (const round of rounds) expect(round.length).toBeWithin(3, 9);
  expect(new Set(rounds.flat()).size).toBeGreaterThan(10);
  // A set that is opened was not there.
  const { hits, misses } = sets.uses;
  expect(hits + misses).toBe(200);
  expect(hits).toBeWithin(30, rounds.flat().length);
});

test("a vector that is kept takes at most 2 KB, one of the built-in provider 1 KB", () => {
  const bytesEach = (vectors: readonly Float32Array[]) => {
    const set = new ResidentSet(new VectorArena());
    for (let i = 0; i < 1_000; i++) add(set, i, vectors[i % vectors.length]!);
    return set.bytes / 1_000;
  };
  expect(bytesEach(DENSE)).toBeLessThan(2_000);
  expect(bytesEach(TEXTS)).toBeLessThan(1_000);
});
