import { expect, setDefaultTimeout, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DIMENSION_MAX, PASSAGE_DIMENSION } from "../../../src/embeddings/embedder.ts";
import type { BareId } from "../../../src/lib/ids.ts";
import { LmdbReader } from "../../../src/storage/lmdb/reader.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { memories, vectors as vectorTable } from "../../../src/storage/tables.ts";
import { vectors as table } from "../../../src/storage/tables.ts";
import { matches, type Filter } from "../../../src/storage/walk.ts";
import { dotStored, quantize, storedVector } from "../../../src/search/encoding.ts";
import { HnswIndex } from "../../../src/search/graph/hnsw-index.ts";
import { Indexer } from "../../../src/search/indexer.ts";
import { PROJECTED_DIMENSION, project } from "../../../src/search/graph/projection.ts";
import { closenessTo } from "../../../src/search/query.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";
import {
  byNearness,
  chance,
  dot,
  finished,
  ofType,
  ofUser,
  queryFor,
  queryOf,
  storedBytes,
  storedVectors,
  unitVector,
  withAnyTag,
  type Stored,
  type StoredVectors,
} from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(600_000);

const NO_FILTER: Filter = [];

const PEOPLE = ["Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hiro", "Ines", "Jonas", "the customer", "the manager"];
const VERBS = ["likes", "prefers", "bought", "sold", "forgot", "found", "asked for", "recommended", "ordered", "returned", "lost"];
const THINGS = [
  "green tea",
  "a red bicycle",
  "the piano",
  "chess",
  "hiking boots",
  "the report",
  "old coins",
  "jazz records",
  "a used car",
];
const TIMES = ["on Monday", "last week", "every morning", "in the evening", "during lunch", "at work", "in summer", "after the meeting"];

const snapshots = ({ directory }: StoredVectors) => join(directory, "vectors");

function finish(indexer: Indexer): void {
  while (indexer.step());
}

function ask(indexer: Indexer, query: Float32Array, filter: Filter, limit: number): BareId[] {
  return finished(indexer.nearest(queryFor(query, limit), filter))
    .sort(byNearness)
    .map(({ memory }) => memory);
}

test("nearest finds at least 95 of 100 of the ten nearest, with any filter: few pass or many, near the query or far from it", async () => {
  await using vectors = await storedVectors();
  const random = chance(1);
  const topics = Array.from({ length: 40 }, () => unitVector(random));
  const topicOf = Array.from({ length: 3_000 }, () => Math.floor(random() * topics.length));
  await vectors.add(
    topicOf.map((topic) => unitVector(random, topics[topic], 1.2)),
    (index) => ({
      user: `user-${index % 10}`,
      type: index % 2 === 0 ? "fact" : "event",
      tags: [`topic-${topicOf[index]}`, `hundredth-${index % 100}`],
    }),
  );
  // Small enough that all filters but the most selective ones go through the graph.
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => 60, oversampleMax: 1_600 });
  await indexer.start();
  finish(indexer);
  expect(indexer.status).toMatchObject({ indexed: 3_000, pending: 0 });

  const far = (topic: number) => withAnyTag(...[7, 17, 27].map((away) => `topic-${(topic + away) % topics.length}`));
  const filters: { name: string; of: (topic: number) => Filter }[] = [
    { name: "none", of: () => NO_FILTER },
    { name: "half pass", of: () => [ofType("fact")] },
    { name: "a tenth passes", of: () => [ofUser("user-3")] },
    { name: "a hundredth passes", of: () => [withAnyTag("hundredth-42")] },
    { name: "a twentieth passes: two conditions", of: () => [ofUser("user-4"), ofType("fact")] },
    { name: "only what is near passes", of: (topic) => [withAnyTag(`topic-${topic}`)] },
    { name: "only what is far passes", of: (topic) => [far(topic)] },
    { name: "only what is far passes: two conditions", of: (topic) => [far(topic), ofType("event")] },
    { name: "none passes", of: () => [ofUser("nobody")] },
  ];
  const queries = Array.from({ length: 25 }, (_, i) => ({ topic: i, query: unitVector(random, topics[i], 1.2) }));
  const recalls = filters.map(({ name, of }) => {
    let found = 0;
    let wanted = 0;
    for (const { topic, query } of queries) {
      const expected = vectors.exact(query, of(topic), 10);
      const answer = new Set(ask(indexer, query, of(topic), 100).slice(0, 10));
      wanted += expected.length;
      found += expected.filter((memory) => answer.has(memory)).length;
    }
    return { name, recall: wanted === 0 ? 1 : found / wanted };
  });
  expect(recalls.filter(({ recall }) => recall < 0.95)).toEqual([]);
});

test("a text that is like no other is found among thousands of a pattern, by itself and by a few of its words", async () => {
  await using vectors = await storedVectors();
  const random = chance(2);
  const embedder = madeEmbedder;
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;
  const pattern = () => `${pick(PEOPLE)} ${pick(VERBS)} ${pick(THINGS)} ${pick(TIMES)}, said ${pick(PEOPLE)} ${pick(TIMES)}.`;
  const unusual = Object.values(MEMORIES);
  const texts = [...Array.from({ length: 2_500 }, pattern), ...unusual, ...Array.from({ length: 2_500 }, pattern)];
  await vectors.addEmbeddings(texts.map((text) => embedder.embedMemory(text)));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  const someWords = (text: string) => {
    const words = text.split(/[\s,.;:]+/).filter((word) => word.length > 3 || text.length < 30);
    return Array.from({ length: 4 }, () => pick(words)).join(" ");
  };
  const missed = unusual
    .filter((_, i) => i % 3 === 0)
    .flatMap((text) => [text, someWords(text)])
    .filter((text) => {
      const { vector } = embedder.embedQuery(text);
      const found = new Set(ask(indexer, vector, NO_FILTER, 100));
      return vectors.exact(vector, NO_FILTER, 10).some((memory) => !found.has(memory));
    });
  expect(missed).toEqual([]);
});

test("of thousands of texts the ten best are found as if all were scored, with any filter and through the graph", async () => {
  await using vectors = await storedVectors();
  const random = chance(21);
  const words = Object.values(MEMORIES).join(" ").split(/\s+/);
  const text = () => Array.from({ length: 5 + Math.floor(random() * 25) }, () => words[Math.floor(random() * words.length)]).join(" ");
  const embeddings = Array.from({ length: 6_000 }, () => madeEmbedder.embedMemory(text()));
  await vectors.addEmbeddings(embeddings, (index) => ({
    tags: [`half-${index % 2}`, `twentieth-${index % 20}`, `thousandth-${index % 1_000}`],
  }));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => 100 });
  await indexer.start();
  finish(indexer);
  const long = Array.from({ length: 5 }, () => Array.from({ length: 10 }, text).join(". "));
  const questions = [...QUESTIONS.slice(0, 40).map((question) => question.text), ...long];
  for (const filter of [NO_FILTER, ...["half-1", "twentieth-7", "thousandth-3"].map((tag) => [withAnyTag(tag)])]) {
    let [found, wanted] = [0, 0];
    for (const question of questions) {
      const query = queryOf(question, 48);
      const vector = madeEmbedder.embedQuery(question).vector;
      const best = vectors.stored
        .flatMap(({ memory, vector: of }, i) => {
          const passes = matches(vectors.store.latest, filter, memory);
          return passes ? [closenessTo(query, dot(vector, of), embeddings[i]!.terms)] : [];
        })
        .sort((a, b) => b - a)
        .slice(0, 10);
      const answer = finished(indexer.nearest(query, filter))
        .map(({ cosine, terms }) => closenessTo(query, cosine, terms))
        .sort((a, b) => b - a);
      wanted += best.length;
      found += best.filter((score, i) => (answer[i] ?? -1) >= score).length;
    }
    expect(found / wanted).toBeGreaterThanOrEqual(filter === NO_FILTER ? 0.99 : 0.95);
  }
});

test("of texts with many passages the ten that have the nearest are found as if all were compared, each once", async () => {
  await using vectors = await storedVectors();
  const random = chance(22);
  const topics = Array.from({ length: 60 }, () => unitVector(random, undefined, 1, PASSAGE_DIMENSION));
  const passage = (topic: number) => unitVector(random, topics[topic % topics.length], 1, PASSAGE_DIMENSION);
  const terms = new Uint32Array(0);
  // Every fourth text is long, of one topic or of many.
  const texts = Array.from({ length: 1_500 }, (_, i) => {
    const count = i % 4 === 0 ? 2 + Math.floor(random() * 20) : 1;
    return Array.from({ length: count }, (_unused, at) => passage(i % 8 === 0 ? i : i + 7 * at));
  });
  const embeddings = texts.map((of) => ({ vector: Float32Array.from(of.flatMap((one) => Array.from(one))), passages: of.length, terms }));
  const added = await vectors.addEmbeddings(embeddings, (index) => ({ tags: [`half-${index % 2}`] }));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => 60 });
  await indexer.start();
  finish(indexer);
  const { latest } = vectors.store;
  const rows = added.map(({ memory }) => ({ memory, bytes: latest.vectorBytes(vectorTable, memory)!.slice() }));
  for (const filter of [NO_FILTER, [withAnyTag("half-0")]]) {
    let [found, wanted] = [0, 0];
    for (let i = 0; i < 40; i++) {
      const query = passage(i);
      const numbers = quantize(query);
      const best = rows
        .filter(({ memory }) => matches(latest, filter, memory))
        .map(({ memory, bytes }) => ({ memory, cosine: dotStored(numbers, bytes) }))
        .sort((a, b) => b.cosine - a.cosine)
        .slice(0, 10);
      const answer = ask(indexer, query, filter, 50);
      expect([answer.length, new Set(answer).size]).toEqual([50, 50]);
      wanted += best.length;
      found += best.filter(({ memory }) => answer.slice(0, 10).includes(memory)).length;
    }
    expect(found / wanted).toBeGreaterThanOrEqual(0.99);
  }
});

test("a memory with a rare word of the query is found however far its vector is, and the query's very text before all others", async () => {
  await using vectors = await storedVectors();
  const random = chance(22);
  const query = queryOf("who knows the quokka of Rottnest", 48);
  const { terms } = madeEmbedder.embedMemory("A quokka was on Rottnest.");
  const asked = unitVector(random);
  const near = () => ({ vector: unitVector(random, asked, 8), terms: madeEmbedder.embedMemory("Nobody was there.").terms });
  const [rare, same] = await vectors.addEmbeddings([
    { vector: unitVector(random), terms },
    { vector: unitVector(random), terms: madeEmbedder.embedMemory("Who knows the quokka of Rottnest?").terms },
  ]);
  await vectors.addEmbeddings(Array.from({ length: 3_000 }, near));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  const found = () => finished(indexer.nearest({ ...query, vector: quantize(asked) }, NO_FILTER)).map(({ memory }) => memory);
  const bothFound = () => [rare!, same!].filter(({ memory }) => found().includes(memory)).length;
  expect(bothFound()).toBe(2);
  finish(indexer);
  expect(bothFound()).toBe(2);
});

type Change =
  | { kind: "add"; count: number; user: number }
  | { kind: "remove" | "replace"; which: number; count: number }
  | { kind: "other user"; which: number; count: number; user: number }
  | { kind: "step"; count: number }
  | { kind: "sweep" | "rebuild" | "save" | "restart" };

const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), count: fc.integer({ min: 1, max: 5 }), user: fc.integer({ min: 0, max: 1 }) }),
  fc.record({ kind: fc.constantFrom("remove" as const, "replace" as const), which: fc.nat(), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({
    kind: fc.constant("other user" as const),
    which: fc.nat(),
    count: fc.integer({ min: 1, max: 3 }),
    user: fc.integer({ min: 0, max: 1 }),
  }),
  fc.record({ kind: fc.constant("step" as const), count: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ kind: fc.constantFrom("sweep" as const, "rebuild" as const, "save" as const, "restart" as const) }),
);

test("whatever is added, deleted, changed, built, saved and restarted in any order, the answer is that of brute force", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyChange, { minLength: 5, maxLength: 25 }), fc.integer(), fc.boolean(), async (changes, seed, byGraph) => {
      await using vectors = await storedVectors();
      const random = chance(seed);
      const filterBitmaps = { updatedMax: 4, newMax: 3 };
      const options = { flatMax: () => 5, removedMin: 4, graphFrom: byGraph ? 0 : 1_000, filterBitmaps };
      let indexer = new Indexer(vectors.store, snapshots(vectors), options);
      await indexer.start();
      for (const change of changes) {
        switch (change.kind) {
          case "add":
            await vectors.add(
              Array.from({ length: change.count }, () => unitVector(random)),
              () => ({ user: `user-${change.user}` }),
            );
            break;
          case "remove":
          case "replace": {
            const at = change.which % Math.max(1, vectors.stored.length);
            const chosen = vectors.stored.slice(at, at + change.count);
            if (change.kind === "remove") await vectors.remove(chosen);
            else for (const one of chosen) await vectors.replace(one, unitVector(random));
            break;
          }
          case "other user": {
            const at = change.which % Math.max(1, vectors.stored.length);
            for (const one of vectors.stored.slice(at, at + change.count)) {
              await vectors.change(one, { user: `user-${change.user}` });
              indexer.updated([one.memory]);
            }
            break;
          }
          case "step":
            for (let i = 0; i < change.count; i++) indexer.step();
            break;
          case "sweep":
            indexer.sweep();
            break;
          case "rebuild":
            indexer.rebuild();
            break;
          case "save":
            await indexer.save();
            break;
          case "restart":
            indexer = new Indexer(vectors.store, snapshots(vectors), options);
            await indexer.start();
            break;
        }
        const query = unitVector(random);
        const filter = random() < 0.5 ? NO_FILTER : [ofUser("user-0")];
        expect(new Set(ask(indexer, query, filter, 10))).toEqual(new Set(vectors.exact(query, filter, 10)));
      }
      finish(indexer);
      indexer.sweep();
      finish(indexer);
      expect(indexer.status).toMatchObject({ indexed: vectors.stored.length, pending: 0 });
    }),
    { numRuns: 60 },
  );
});

test("what passes a filter that is searched with again is looked up once", async () => {
  await using vectors = await storedVectors();
  const random = chance(31);
  await vectors.add(
    Array.from({ length: 2_000 }, () => unitVector(random)),
    (i) => ({ type: i % 2 === 0 ? "even" : "odd", user: i % 3 === 0 ? "third" : "other" }),
  );
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => 50 });
  await indexer.start();
  finish(indexer);
  using looks = spyOn(LmdbReader.prototype, "has");
  const query = unitVector(random);
  for (const filter of [[ofType("even")], [ofUser("other"), ofType("even")]]) {
    const expected = new Set(vectors.exact(query, filter, 10));
    const search = () => {
      looks.mockClear();
      expect(new Set(ask(indexer, query, filter, 10))).toEqual(expected);
      return looks.mock.calls.length;
    };
    expect(search()).toBeGreaterThan(50);
    expect(indexer.isBehind).toBe(false);
    expect(search()).toBeGreaterThan(50);
    expect(indexer.isBehind).toBe(true);
    finish(indexer);
    expect(indexer.isBehind).toBe(false);
    expect(search()).toBe(0);
  }
});

test.each([
  ["through the graph", 50],
  ["all compared", 5_000],
])("a filter that is known is right for memories that are new, deleted or put again, however many are (%s)", async (_, flatMax) => {
  await using vectors = await storedVectors();
  const random = chance(32);
  const query = unitVector(random);
  const others = () => Array.from({ length: 1_300 }, () => unitVector(random));
  const filter = [ofType("in")];
  await vectors.add(others(), (i) => ({ type: i % 2 === 0 ? "in" : "out" }));
  const [near, alsoNear] = await vectors.add([query, query], () => ({ type: "out" }));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => flatMax, filterBitmaps: { updatedMax: 3, newMax: 5 } });
  await indexer.start();
  const check = () => expect(new Set(ask(indexer, query, filter, 10))).toEqual(new Set(vectors.exact(query, filter, 10)));
  const put = async (one: Stored, type: string) => {
    await vectors.change(one, { type });
    indexer.updated([one.memory]);
    check();
  };
  for (let search = 0; search < 3; search++, finish(indexer)) check();
  await put(near!, "in");
  expect(ask(indexer, query, filter, 10)).toContain(near!.memory);
  await put(alsoNear!, "in");
  await put(near!, "out");
  // More were put than are kept. than are kept.
  for (const one of vectors.stored.slice(0, 6)) await put(one, "out");
  for (let search = 0; search < 3; search++, finish(indexer)) check();
  for (let added = 0; added < 8; added++) {
    const [one] = await vectors.add([query], () => ({ type: added % 2 === 0 ? "in" : "out" }));
    expect(ask(indexer, query, filter, 10).includes(one!.memory)).toBe(added % 2 === 0);
    check();
    finish(indexer);
  }
  await vectors.remove(vectors.stored.slice(-4));
  check();
  indexer.rebuild();
  finish(indexer);
  check();
});

test("a vector that was deleted while the graph was rebuilt is swept, also when a search has noticed it before", async () => {
  await using vectors = await storedVectors();
  const random = chance(1);
  const added = await vectors.add(Array.from({ length: 3 }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { flatMax: () => 5, removedMin: 4 });
  await indexer.start();
  const left = added[2]!.memory;
  const steps = (count: number) => Array.from({ length: count }, () => indexer.step());
  expect(ask(indexer, unitVector(random), NO_FILTER, 10)).toHaveLength(3);
  steps(1);
  indexer.rebuild();
  steps(2);
  indexer.sweep();
  steps(3);
  await vectors.remove(added.slice(0, 2));
  expect(ask(indexer, unitVector(random), NO_FILTER, 10)).toEqual([left]);
  steps(1);
  expect(ask(indexer, unitVector(random), NO_FILTER, 10)).toEqual([left]);
  finish(indexer);
  indexer.sweep();
  finish(indexer);
  expect(indexer.status).toMatchObject({ indexed: 1, pending: 0 });
});

test("of equal vectors the newest come first, in the graph as out of it", async () => {
  await using vectors = await storedVectors();
  const random = chance(3);
  const same = unitVector(random);
  await vectors.add(Array.from({ length: 300 }, () => unitVector(random)));
  const equals = await vectors.add(Array.from({ length: 700 }, () => same));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  const newest = equals.map(({ memory }) => memory).reverse();
  expect(ask(indexer, same, NO_FILTER, 100)).toEqual(newest.slice(0, 100));
  for (let i = 0; i < 600; i++) indexer.step();
  expect(ask(indexer, same, NO_FILTER, 100)).toEqual(newest.slice(0, 100));
  finish(indexer);
  expect(ask(indexer, same, NO_FILTER, 100)).toEqual(newest.slice(0, 100));
});

test("of more equal vectors than are ever looked at the newest come, newest first", async () => {
  await using vectors = await storedVectors();
  const random = chance(3);
  const same = unitVector(random);
  const equals = await vectors.add(Array.from({ length: 700 }, () => same));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { graphFrom: 10_000 });
  await indexer.start();
  finish(indexer);
  equals.push(...(await vectors.add(Array.from({ length: 150 }, () => same))));
  const newest = equals.map(({ memory }) => memory).reverse();
  expect(ask(indexer, same, NO_FILTER, 100)).toEqual(newest.slice(0, 100));
});

test("of more equal vectors in the graph than it is asked for the newest come, newest first", async () => {
  await using vectors = await storedVectors();
  const random = chance(3);
  const same = unitVector(random);
  await vectors.add(Array.from({ length: 300 }, () => unitVector(random)));
  const equals = await vectors.add(Array.from({ length: 3_000 }, () => same));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  finish(indexer);
  const newest = equals.map(({ memory }) => memory).reverse();
  expect(ask(indexer, same, NO_FILTER, 100)).toEqual(newest.slice(0, 100));
});

test("points of deleted vectors do not stand in the way of others, before anything has swept them", async () => {
  await using vectors = await storedVectors();
  const random = chance(4);
  const topic = unitVector(random);
  const near = await vectors.add(Array.from({ length: 900 }, () => unitVector(random, topic, 0.5)));
  await vectors.add(Array.from({ length: 300 }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  finish(indexer);
  await vectors.remove(near);
  const found = ask(indexer, topic, NO_FILTER, 100);
  expect(found).toHaveLength(100);
  expect(vectors.exact(topic, NO_FILTER, 100).filter((memory) => found.includes(memory)).length).toBeGreaterThanOrEqual(95);
});

test("as many come as are asked for where the graph does not come to all that are there, as among hundreds of equal ones half of them deleted", async () => {
  const embedder = madeEmbedder;
  const { vector: query } = await embedder.embedQuery("coffee");
  // With 38 and 44 it comes to 58 and 68 of 251, and then not to the one that is left.
  for (const seed of [38, 44, 50, 56]) {
    const random = chance(seed);
    const below = (end: number) => Math.floor(random() * end);
    const opened = async () => {
      const indexer = new Indexer(vectors.store, snapshots(vectors), { graphFrom: 0 });
      await indexer.start();
      return indexer;
    };
    const steps = (count: number) => {
      for (let i = 0; i < count; i++) indexer.step();
    };
    await using vectors = await storedVectors();
    const [kept] = await vectors.addEmbeddings([embedder.embedMemory("Ada asked whether there is coffee in the office on Fridays.")]);
    const equal = await vectors.addEmbeddings(Array.from({ length: 450 }, () => embedder.embedMemory("coffee")));
    let indexer = await opened();
    steps(below(500));
    await vectors.remove(equal.slice(0, 200));
    steps(below(100));
    if (random() < 0.5) await indexer.save();
    indexer = await opened();
    steps(below(200));
    expect(ask(indexer, query, NO_FILTER, 100).length).toBe(100);
    expect(ask(indexer, query, NO_FILTER, 400).length).toBe(251);
    steps(below(200));
    await vectors.remove(equal.slice(200));
    steps(below(50));
    expect(ask(indexer, query, NO_FILTER, 100)).toEqual([kept?.memory as string]);
  }
});

test("as many come as are asked for, or all that pass, where all of them have the query's words, in the graph as out of it", async () => {
  await using vectors = await storedVectors();
  const texts = Array.from({ length: 240 }, (_, i) => (i % 2 === 0 ? "coffee" : `Ada drank coffee number ${i} in the kitchen.`));
  await vectors.addEmbeddings(
    texts.map((text) => madeEmbedder.embedMemory(text)),
    (index) => ({ user: `user-${index % 3}` }),
  );
  for (const graphFrom of [0, 1_000]) {
    const indexer = new Indexer(vectors.store, snapshots(vectors), { graphFrom, flatMax: () => 60 });
    await indexer.start();
    finish(indexer);
    for (const [filter, passing] of [[NO_FILTER, 240] as const, [[ofUser("user-1")], 80] as const]) {
      const asked = [10, 48, 79, 80, 192, 239, 768];
      const counts = asked.map((limit) => new Set(finished(indexer.nearest(queryOf("coffee", limit), filter)).map(({ id }) => id)).size);
      expect(counts).toEqual(asked.map((limit) => Math.min(limit, passing)));
    }
  }
});

test("a start that fails ends only when hnswlib has read its file, since the thread may end with it", async () => {
  await using vectors = await storedVectors();
  const random = chance(1);
  await vectors.add(Array.from({ length: 100 }, () => unitVector(random)));
  const options = { graphFrom: 1 };
  const first = new Indexer(vectors.store, snapshots(vectors), options);
  await first.start();
  finish(first);
  await first.save();

  const ends: string[] = [];
  const failure = Promise.withResolvers<void>();
  const load = HnswIndex.load.bind(HnswIndex);
  using loading = spyOn(HnswIndex, "load").mockImplementation(async (file, expected) => {
    const graph = await load(file, expected);
    await failure.promise;
    await new Promise(setImmediate);
    ends.push("read");
    return graph;
  });
  using _keys = spyOn(Store.prototype, "copyKeys").mockImplementation(() => {
    failure.resolve();
    throw new Error("a page is damaged");
  });
  const start = new Indexer(vectors.store, snapshots(vectors), options).start().finally(() => ends.push("start"));
  expect(await start.catch(String)).toBe("Error: a page is damaged");
  expect([loading.mock.calls.length, ends]).toEqual([1, ["read", "start"]]);
});

test("how much memory each part takes is known, and grows with what is in it", async () => {
  await using vectors = await storedVectors();
  const random = chance(6);
  const bytesOf = async (count: number, graphFrom: number) => {
    await vectors.add(Array.from({ length: count }, () => unitVector(random)));
    const indexer = new Indexer(vectors.store, snapshots(vectors), { graphFrom });
    await indexer.start();
    finish(indexer);
    return indexer.bytes;
  };
  const few = await bytesOf(100, 1);
  const more = await bytesOf(300, 1);
  const flat = await bytesOf(0, 1_000);
  expect(few.rows).toBeGreaterThan(100 * DIMENSION_MAX);
  expect(more.rows - few.rows).toBeGreaterThan(300 * DIMENSION_MAX);
  expect(Math.abs(more.graph - 4 * few.graph)).toBeLessThan(8);
  expect([few.ids > 100 * 24, few.terms > 0, few.graph > 100 * PROJECTED_DIMENSION]).toEqual([true, true, true]);
  expect(flat).toEqual({ ...more, graph: 0 });
});

test("while a snapshot is written searches see what is added and deleted meanwhile, and the snapshot is none the worse", async () => {
  await using vectors = await storedVectors();
  const random = chance(5);
  const topic = unitVector(random);
  const old = await vectors.add(Array.from({ length: 150 }, () => unitVector(random, topic, 1)));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  finish(indexer);
  await vectors.remove(old.slice(0, 60));
  await vectors.add(Array.from({ length: 20 }, () => unitVector(random, topic, 0.5)));
  const expected = new Set(vectors.exact(topic, NO_FILTER, 50));
  const state = { isSaving: true };
  const saving = indexer.save().finally(() => (state.isSaving = false));
  while (state.isSaving) {
    expect(new Set(ask(indexer, topic, NO_FILTER, 50))).toEqual(expected);
    indexer.sweep();
    expect(indexer.step()).toBe(false);
    expect(indexer.status).toMatchObject({ pending: 20 });
    await new Promise(setImmediate);
  }
  await saving;
  finish(indexer);
  expect(new Set(ask(indexer, topic, NO_FILTER, 50))).toEqual(expected);
  const restarted = new Indexer(vectors.store, snapshots(vectors));
  expect(await restarted.start()).toBeUndefined();
  expect(restarted.status).toMatchObject({ indexed: 90, pending: 20, removed: 60 });
  expect(new Set(ask(restarted, topic, NO_FILTER, 50))).toEqual(expected);
});

test("the nearest are found although they are in no graph yet, beside one that gives as many as are asked for", async () => {
  await using vectors = await storedVectors();
  const random = chance(11);
  await vectors.add(Array.from({ length: 300 }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  finish(indexer);
  const query = unitVector(random);
  await vectors.add(Array.from({ length: 3 }, () => unitVector(random, query, 0.2)));
  expect(indexer.status).toMatchObject({ indexed: 300, pending: 0 });
  expect(ask(indexer, query, NO_FILTER, 10)).toEqual(vectors.exact(query, NO_FILTER, 10));
  expect(indexer.status).toMatchObject({ indexed: 300, pending: 3 });
});

test("a deleted vector takes no room where there is no graph, once a search has come upon it", async () => {
  await using vectors = await storedVectors();
  const random = chance(12);
  const stored = await vectors.add(Array.from({ length: 20 }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, snapshots(vectors), { graphFrom: 1_000 });
  await indexer.start();
  const query = unitVector(random);
  expect(ask(indexer, query, NO_FILTER, 20)).toHaveLength(20);
  await vectors.remove(stored.slice(0, 5));
  expect(ask(indexer, query, NO_FILTER, 20)).toHaveLength(15);
  expect(indexer.status).toMatchObject({ indexed: 15, pending: 0 });
});

test("a deleted vector is not found at once, leaves the store with its memory, and leaves graph and disk when the graph is built anew", async () => {
  await using vectors = await storedVectors();
  const random = chance(6);
  const [secret, ...others] = await vectors.add(Array.from({ length: 200 }, () => unitVector(random)));
  const projection = new Float64Array(PROJECTED_DIMENSION);
  project(storedVector(storedBytes(secret!)), projection);
  const bytes = Buffer.from(Int8Array.from(projection, (number) => Math.round(256 * number)).buffer);
  const indexer = new Indexer(vectors.store, snapshots(vectors), { removedMin: 50 });
  await indexer.start();
  finish(indexer);
  await indexer.save();
  const onDisk = () =>
    readFileSync(join(snapshots(vectors), `${JSON.parse(readFileSync(join(snapshots(vectors), "manifest.json"), "utf8")).name}.hnsw`));
  expect(onDisk().includes(bytes)).toBe(true);

  const secretId = vectors.idOf(secret!);
  await vectors.remove([secret!]);
  expect(ask(indexer, secret!.vector, NO_FILTER, 200)).not.toContain(secret!.memory);
  expect(vectors.store.latest.vectorBytes(table, secretId)).toBeUndefined();
  expect([vectorTable, memories].map((table) => vectors.store.count(table))).toEqual([199, 199]);

  await vectors.remove(others.slice(0, 60));
  indexer.sweep();
  finish(indexer);
  await indexer.save();
  expect(indexer.status).toEqual({ indexed: 139, pending: 0, removed: 0, unsaved: 0 });
  expect(onDisk().includes(bytes)).toBe(false);
  expect(onDisk().length).toBeLessThan(140 * 1_300);
});

test("a graph is not built anew for a few deleted vectors, and is as soon as they are more than 30 of 100", async () => {
  await using vectors = await storedVectors();
  const random = chance(7);
  const stored = await vectors.add(Array.from({ length: 400 }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  finish(indexer);
  for (const [from, to, removed] of [
    [0, 99, 99],
    [99, 120, 120],
    [120, 121, 0],
  ] as const) {
    await vectors.remove(stored.slice(from, to));
    indexer.sweep();
    finish(indexer);
    expect(indexer.status).toMatchObject({ indexed: 400 - to, removed });
  }
});

test("what another process has stored and deleted is seen by the next search, without a turn of the event loop in between", async () => {
  await using vectors = await storedVectors();
  const random = chance(9);
  const [old] = await vectors.add([unitVector(random)]);
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  const query = unitVector(random);
  // The view of the store that this search reads from is still open afterwards.
  expect(ask(indexer, query, NO_FILTER, 10)).toEqual([old!.memory]);
  const { exitCode, stdout } = Bun.spawnSync(
    [process.execPath, join(import.meta.dir, "replace-vectors.ts"), vectors.directory, old!.memory],
    {
      stderr: "inherit",
    },
  );
  expect(exitCode).toBe(0);
  expect(ask(indexer, query, NO_FILTER, 10)).toEqual([stdout.toString().trim()]);
});

/** Twelve thousand memories of two types, each with a tag of its own type; between them four that have the other's, with vectors. */
async function addApart(vectors: StoredVectors, random: () => number): Promise<void> {
  for (let part = 0; part < 4; part++) {
    await vectors.addWithout(3_000, (index) => (index % 2 === 0 ? { type: "left", tags: ["l"] } : { type: "right", tags: ["r"] }));
    await vectors.add([unitVector(random)], () => ({ type: "left", tags: ["r"] }));
    await vectors.add(Array.from({ length: 50 }, () => unitVector(random)));
  }
}
const LEFT_AND_R = [ofType("left"), withAnyTag("r")];

test("a search whose filters rarely meet is made in steps, and finds exactly what passes", async () => {
  await using vectors = await storedVectors();
  const random = chance(3);
  await addApart(vectors, random);
  const indexer = new Indexer(vectors.store, snapshots(vectors));
  await indexer.start();
  const query = unitVector(random);
  const steps = indexer.nearest(queryFor(query, 10), LEFT_AND_R);
  expect(steps.next()).toEqual({ done: false, value: undefined });
  const found = finished(steps).map(({ memory }) => memory);
  expect(found.toSorted()).toEqual(vectors.exact(query, LEFT_AND_R, 10).toSorted());
  expect(found).toHaveLength(4);
});

test("a search that would look at too much finds the newest that pass and those among the nearest", async () => {
  await using vectors = await storedVectors();
  const random = chance(4);
  await addApart(vectors, random);
  const indexer = new Indexer(vectors.store, snapshots(vectors), { probesMax: 10_000, oversampleMax: 20 });
  await indexer.start();
  const [oldest, second, , newest] = vectors.stored.filter(({ memory }) => matches(vectors.store.latest, LEFT_AND_R, memory));
  const found = ask(indexer, oldest!.vector, LEFT_AND_R, 10);
  expect(found).toContain(oldest!.memory);
  expect(found).toContain(newest!.memory);
  expect(found).not.toContain(second!.memory);
});
