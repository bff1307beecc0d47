import { expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { removeMemoryRecords } from "../../../src/storage/memory-records.ts";
import { memories } from "../../../src/storage/tables.ts";
import { posting } from "../../../src/storage/walk.ts";
import { dot } from "../../../src/vectors/exact.ts";
import { Scope, ScopeMemory } from "../../../src/vectors/scope.ts";
import { compareOn, scriptCompare } from "../../../src/vectors/scope-kernel.ts";
import { Scopes } from "../../../src/vectors/scopes.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, ofType, ofUser, storedBytes, storedVectors, unitVector } from "./stored-vectors.ts";

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
    const scope = new Scope(new ScopeMemory(kernel));
    for (const [label, vector] of vectors.entries()) scope.add(`m${label}`, storedBytes(label, { vector, terms: Uint32Array.of(label) }));
    for (const query of queries) {
      const found = scope.nearest(query, vectors.length).sort((a, b) => a.label - b.label);
      expect(found).toEqual(
        vectors.map((vector, label) => ({ memory: `m${label}`, label, cosine: dot(query, vector), terms: Uint32Array.of(label) })),
      );
    }
  });
}

test("of equal vectors the newest are among the nearest, and one that is no vector is not", () => {
  const scope = new Scope(new ScopeMemory());
  for (let label = 0; label < 30; label++) scope.add(`m${label + 10}`, storedBytes(label, { vector: DENSE[0]! }));
  scope.add("m00", storedBytes(30, { vector: DENSE[0]!.slice().fill(Number.NaN, 3, 4) }));
  scope.add("m99", storedBytes(31, { vector: DENSE[1]! }));
  scope.remove(29);
  const found = scope.nearest(DENSE[0]!, 10).map(({ memory }) => memory);
  expect(found.sort()).toEqual(Array.from({ length: 10 }, (_, i) => `m${29 + i}`));
});

test("those with the query's words come besides the nearest, the newest of them and no more than asked for", () => {
  const scope = new Scope(new ScopeMemory());
  const [near, far, fingerprint] = [DENSE[0]!, DENSE[1]!, 0xc0000001];
  for (let label = 0; label < 20; label++)
    scope.add(`m${label + 10}`, storedBytes(label, { vector: far, terms: Uint32Array.of(7, fingerprint) }));
  for (let label = 20; label < 60; label++)
    scope.add(`m${label + 10}`, storedBytes(label, { vector: near, terms: Uint32Array.of(7, 0xc0000002) }));
  scope.add("m99", storedBytes(60, { vector: far.slice().fill(Number.NaN, 3, 4), terms: Uint32Array.of(7, fingerprint) }));
  scope.remove(19);
  const names = (limit: number, asked?: number) =>
    scope
      .nearest(near, limit, asked)
      .map(({ memory }) => memory)
      .sort();
  const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => `m${first + i}`);
  expect(names(10, fingerprint)).toEqual([...from(19, 10), ...from(60, 10)]);
  expect(names(45, fingerprint)).toEqual(from(10, 60).filter((name) => name !== "m29"));
  expect(names(10)).toEqual(from(60, 10));
});

test("scopes share their memory, and what one gives back serves the others", () => {
  const memory = new ScopeMemory();
  const vectors = [...TEXTS.slice(0, 40), ...DENSE.slice(0, 40)];
  const filled = (from: number) => {
    const scope = new Scope(memory);
    for (const [i, vector] of vectors.entries()) scope.add(`m${i}`, storedBytes(from + i, { vector }));
    return scope;
  };
  const expectWhole = (scope: Scope, from: number, first: number) => {
    const found = scope.nearest(QUERIES[0]!, vectors.length).sort((a, b) => a.label - b.label);
    const expected = vectors.map((vector, i) => ({ label: from + i, cosine: dot(QUERIES[0]!, vector) })).slice(first);
    expect(found.map(({ label, cosine }) => ({ label, cosine }))).toEqual(expected);
  };
  const stays = filled(0);
  const goes = filled(1_000);
  const bytes = memory.bytes;
  for (let round = 1; round <= 5; round++) {
    for (let i = 0; i < 30; i++) goes.remove(1_000 + i);
    expectWhole(goes, 1_000, 30);
    const other = filled(1_000 * (round + 1));
    expectWhole(other, 1_000 * (round + 1), 0);
    other.release();
    expectWhole(stays, 0, 0);
  }
  goes.release();
  expect(goes.size).toBe(0);
  expectWhole(filled(9_000), 9_000, 0);
  // At most one scope more than at first was there at once.
  expect(memory.bytes).toBeLessThanOrEqual(bytes * 1.5);
});

test("more vectors than are compared at once are all compared", () => {
  const scope = new Scope(new ScopeMemory());
  for (let label = 0; label < 4_100; label++) scope.add(`m${label}`, storedBytes(label, { vector: TEXTS[label % TEXTS.length]! }));
  const found = scope.nearest(QUERIES[0]!, 4_100).sort((a, b) => a.label - b.label);
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

test("whatever is added, deleted and changed, a scope that is kept gives the answer of brute force, and so does one of few bytes", async () => {
  const small = { sizeMax: 20, readMax: 4, changesMax: 6, bytesMax: 150_000 };
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyChange, { minLength: 3, maxLength: 25 }), fc.integer(), fc.boolean(), async (changes, seed, isSmall) => {
      await using vectors = await storedVectors();
      const pick = chance(seed);
      const scopes = new Scopes(vectors.store, isSmall ? small : {});
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
        const found = scopes.for(filter)?.nearest(query, 5);
        if (found === undefined) continue;
        kept++;
        expect(new Set(found.map(({ memory }) => memory))).toEqual(new Set(vectors.exact(query, filter, 5)));
      }
    }),
    { numRuns: 60 },
  );
  expect(kept).toBeGreaterThan(100);
});

test("while commits are under way a scope holds what readers see, neither more nor less", async () => {
  await using vectors = await storedVectors();
  const scopes = new Scopes(vectors.store);
  const filter = [ofUser("user")];
  await vectors.add(DENSE.slice(0, 60));
  const session = [posting(memories.index.bySession, "000000000000")];
  const seen = () => new Set(vectors.store.latest.keys(memories.index.bySession, { from: "", to: "~" }).map((key) => key.slice(-12)));
  for (let i = 0; i < 20; i++) {
    const state = { isDone: false };
    const chosen = vectors.stored.slice(i, i + 2);
    const changed = Promise.all([vectors.remove(chosen), vectors.add([DENSE[60 + i]!])]).then(() => (state.isDone = true));
    for (let round = 0; !state.isDone || round < 2; round++) {
      for (const scope of [scopes.for(filter), scopes.for(session)]) {
        expect(new Set(scope?.nearest(DENSE[0]!, 1_000).map(({ memory }) => memory))).toEqual(seen());
      }
      await new Promise(setImmediate);
    }
    await changed;
  }
});

test("a large scope is kept once it was asked for a few times, one that is too large and other filters never", async () => {
  await using vectors = await storedVectors();
  const scopes = new Scopes(vectors.store, { sizeMax: 50, readMax: 20 });
  await vectors.add(DENSE.slice(0, 50), () => ({ user: "large" }));
  await vectors.add(DENSE.slice(0, 51), () => ({ user: "too large" }));
  const sizes = (filter: Parameters<Scopes["for"]>[0]) => Array.from({ length: 4 }, () => scopes.for(filter)?.size);
  expect(sizes([ofUser("large")])).toEqual([undefined, undefined, 50, 50]);
  expect(sizes([ofUser("too large")])).toEqual([undefined, undefined, undefined, undefined]);
  expect(sizes([ofUser("nobody")])).toEqual([0, 0, 0, 0]);
  for (const filter of [[], [ofType("general")], [ofUser("large"), ofType("general")]]) expect(scopes.for(filter)).toBeUndefined();
  await vectors.add(DENSE.slice(0, 1), () => ({ user: "large" }));
  expect(scopes.for([ofUser("large")])).toBeUndefined();
});

test("a vector that is kept takes at most one and a half times its bytes, one of the built-in provider less than half", () => {
  const bytesEach = (vectors: readonly Float32Array[]) => {
    const scope = new Scope(new ScopeMemory());
    for (let label = 0; label < 1_000; label++) scope.add(`m${label}`, storedBytes(label, { vector: vectors[label % vectors.length]! }));
    return scope.bytes / 1_000;
  };
  expect(bytesEach(DENSE)).toBeLessThan(1.5 * 6_144);
  expect(bytesEach(TEXTS)).toBeLessThan(0.5 * 6_144);
});
