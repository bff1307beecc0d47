import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../../src/lib/log.ts";
import type { Filter } from "../../../src/storage/walk.ts";
import { pack } from "../../../src/search/candidates.ts";
import { NO_BYTES, type IndexStatus } from "../../../src/search/index-status.ts";
import type { FromWorker, ToWorker } from "../../../src/search/protocol.ts";
import { packQuery } from "../../../src/search/query.ts";
import { type IndexOptions, VectorIndex } from "../../../src/search/vector-index.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";
import { resealTables } from "./resealed.ts";
import {
  byNearness,
  chance,
  ofType,
  ofUser,
  queryFor,
  queryOf,
  storedVectors,
  unitVector,
  withAnyTag,
  type StoredVectors,
} from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(600_000);

const NO_FILTER: Filter = [];
const STATUS: IndexStatus = { indexed: 150, pending: 0, removed: 0, unsaved: 0 };
const IDLE: FromWorker = { kind: "status", status: STATUS, bytes: NO_BYTES, idle: true };

/** A worker that says what the test has it say, and keeps what it is told. */
class FakeWorker {
  readonly told: ToWorker[] = [];
  readonly #listeners = new Map<string, (event: unknown) => void>();

  addEventListener(name: string, listener: (event: unknown) => void): void {
    this.#listeners.set(name, listener);
  }
  postMessage(message: ToWorker): void {
    this.told.push(message);
  }
  ref(): void {}
  unref(): void {}

  say(message: FromWorker): void {
    this.#listeners.get("message")?.({ data: message });
  }
  crash(message: string): void {
    this.#listeners.get("error")?.({ message });
  }
  exit(): void {
    this.#listeners.get("close")?.({ code: 1 });
  }
  /** Comes up and has nothing to do. */
  up(): void {
    this.say({ kind: "ready", rebuilding: undefined, status: STATUS, bytes: NO_BYTES });
    this.say(IDLE);
  }
  get kinds(): string[] {
    return this.told.map(({ kind }) => kind);
  }
}

/** An index over so many vectors, on workers of the test. */
async function withFakes(count: number, options: Pick<IndexOptions, "openMaxMs"> = {}) {
  const vectors = await storedVectors();
  const random = chance(1);
  await vectors.add(Array.from({ length: count }, () => unitVector(random)));
  const workers: FakeWorker[] = [];
  const logged: string[] = [];
  const log = createLog({ level: "info", pretty: false, now: () => 0, write: (line) => void logged.push(JSON.parse(line).message) });
  const newWorker = () => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker as unknown as Worker;
  };
  const index = new VectorIndex(vectors.store, log, { newWorker, graphFrom: 0, ...options });
  const current = () => workers.at(-1) as FakeWorker;
  return { vectors, index, workers, current, logged, query: unitVector(random) };
}

/** Which memories are found, best first. */
async function nearest(index: VectorIndex, query: Float32Array, filter: Filter, limit: number): Promise<string[]> {
  return (await index.nearest(queryFor(query, limit), filter)).sort(byNearness).map(({ memory }) => memory.trim());
}

/** The answer of a worker that finds one memory. */
const packed = (name: string) => pack([{ memory: name.padEnd(12), id: "000000000001", cosine: 0.5, terms: new Uint32Array(3) }]);

/** Lets what has been promised so far be told. */
const turn = () => new Promise(setImmediate);

const UNAVAILABLE = { code: "service_unavailable" };

/** What a promise is rejected with. */
const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

test("a hundred vectors are compared without a worker, one more has one started", async () => {
  const { vectors, index, workers, query } = await withFakes(100);
  await using _ = vectors;
  await index.open();
  index.changed();
  expect(new Set(await nearest(index, query, NO_FILTER, 100))).toEqual(new Set(vectors.exact(query, NO_FILTER, 100)));
  expect((await nearest(index, query, NO_FILTER, 10)).slice(0, 10)).toEqual(vectors.exact(query, NO_FILTER, 10));
  expect(await nearest(index, query, [ofUser("nobody")], 10)).toEqual([]);
  expect(workers).toEqual([]);
  await vectors.add([query]);
  index.changed();
  expect(workers.length).toBe(1);
});

test("a filter that a hundred memories pass needs no worker, however many there are", async () => {
  const { vectors, index, workers, query } = await withFakes(150);
  await using _ = vectors;
  const random = chance(2);
  await vectors.add(
    Array.from({ length: 100 }, () => unitVector(random)),
    () => ({ user: "few" }),
  );
  const filter = [ofUser("few")];
  expect(await nearest(index, query, filter, 10)).toEqual(vectors.exact(query, filter, 10));
  expect(workers).toEqual([]);
});

test("the first search of a user reads all vectors of that user and needs no worker, whatever else is searched meanwhile", async () => {
  const { vectors, index, query, workers } = await withFakes(0);
  await using _ = vectors;
  const random = chance(2);
  for (const user of ["one", "other"]) {
    await vectors.add(
      Array.from({ length: 600 }, () => unitVector(random)),
      () => ({ user }),
    );
  }
  const found = await Promise.all(["one", "other", "one"].map((user) => nearest(index, query, [ofUser(user)], 600)));
  expect(found.map(({ length }) => length)).toEqual([600, 600, 600]);
  expect(found[2]).toEqual(found[0]);
  // Of two that wait for one set, one has found it read by the other.
  expect(index.cacheUses).toEqual({ hits: 1, misses: 2 });
  expect(await nearest(index, query, [ofUser("one")], 600)).toEqual(found[0]!);
  expect(index.cacheUses).toEqual({ hits: 2, misses: 2 });
  expect(workers).toEqual([]);
});

test("a filter of which hardly a memory passes, but many each part of it, is for the worker: looking for them takes long", async () => {
  const { vectors, index, workers, current, query } = await withFakes(0);
  await using _ = vectors;
  const random = chance(2);
  const some = [unitVector(random), unitVector(random)];
  for (let i = 0; i < 400; i++) await vectors.add(some, (n) => (n === 0 ? { user: "one", type: "a" } : { user: "other", type: "b" }));
  const answer = nearest(index, query, [ofUser("one"), ofType("b")], 3);
  await turn();
  current().up();
  await turn();
  expect(current().kinds).toEqual(["start", "nearest"]);
  current().say({ kind: "answer", call: 1, ...packed("b") });
  expect(await answer).toEqual(["b"]);
  expect(await nearest(index, query, [ofUser("one"), ofType("c")], 3)).toEqual([]);
  expect(workers.length).toBe(1);
});

test("questions wait for the worker to come up, and each gets its own answer whatever the order", async () => {
  const { vectors, index, current, query } = await withFakes(150);
  await using _ = vectors;
  const [first, second] = [nearest(index, query, NO_FILTER, 3), nearest(index, query, [], 4)];
  await turn();
  expect(current().told).toEqual([
    { kind: "start", dataDirectory: vectors.directory, collection: "memories", useSnapshot: true, graphFrom: 0 },
  ]);
  current().up();
  await turn();
  expect(current().told.slice(1)).toEqual([
    { kind: "nearest", call: 1, query: packQuery(queryFor(query, 3)), filter: "[]" },
    { kind: "nearest", call: 2, query: packQuery(queryFor(query, 4)), filter: "[]" },
  ]);
  current().say({ kind: "answer", call: 2, ...packed("b") });
  current().say({ kind: "answer", call: 1, ...packed("a") });
  expect([await first, await second]).toEqual([["a"], ["b"]]);
});

test("a question that the worker refuses is unavailable, and nothing else is", async () => {
  const { vectors, index, workers, current, query } = await withFakes(150);
  await using _ = vectors;
  const [first, second] = [nearest(index, query, NO_FILTER, 3), nearest(index, query, NO_FILTER, 3)];
  current().up();
  await turn();
  current().say({ kind: "error", call: 1, reason: "the store could not be read" });
  current().say({ kind: "answer", call: 2, ...packed("b") });
  expect(await refused(first)).toMatchObject(UNAVAILABLE);
  expect(await second).toEqual(["b"]);
  expect(workers.length).toBe(1);
});

test("a start waits no longer than it is told to for a large index, and searches wait until that is up", async () => {
  const { vectors, index, current, query } = await withFakes(150, { openMaxMs: 1 });
  await using _ = vectors;
  await index.open();
  expect(current().kinds).toEqual(["start"]);
  const asked = nearest(index, query, NO_FILTER, 3);
  await turn();
  expect(current().kinds).toEqual(["start"]);
  current().up();
  await turn();
  expect(current().kinds).toEqual(["start", "nearest"]);
  current().say({ kind: "answer", call: 1, ...packed("a") });
  expect(await asked).toEqual(["a"]);
});

const ENDS: { name: string; end: (worker: FakeWorker) => void }[] = [
  { name: "says that it cannot go on", end: (worker) => worker.say({ kind: "fatal", reason: "of the test" }) },
  { name: "throws", end: (worker) => worker.crash("of the test") },
  { name: "exits", end: (worker) => worker.exit() },
];

for (const { name, end } of ENDS) {
  test(`a worker that ${name} before it is up makes no start fail; the next question has another one, which builds the graph anew`, async () => {
    const { vectors, index, workers, current, logged, query } = await withFakes(150);
    await using _ = vectors;
    const opened = index.open();
    const asked = nearest(index, query, NO_FILTER, 3);
    end(current());
    await opened;
    expect(await refused(asked)).toMatchObject(UNAVAILABLE);
    expect(logged).toEqual(["vector index failed"]);
    const again = nearest(index, query, NO_FILTER, 3);
    expect(workers.length).toBe(2);
    expect(current().told).toEqual([
      { kind: "start", dataDirectory: vectors.directory, collection: "memories", useSnapshot: false, graphFrom: 0 },
    ]);
    current().up();
    await turn();
    current().say({ kind: "answer", call: 1, ...packed("a") });
    expect(await again).toEqual(["a"]);
  });

  test(`a worker that ${name} leaves no question unanswered, and takes nothing from the next one`, async () => {
    const { vectors, index, workers, current, query } = await withFakes(150);
    await using _ = vectors;
    const asked = [nearest(index, query, NO_FILTER, 3), nearest(index, query, NO_FILTER, 3)];
    current().up();
    await turn();
    end(current());
    expect(await Promise.allSettled(asked)).toMatchObject([{ reason: UNAVAILABLE }, { reason: UNAVAILABLE }]);
    const again = nearest(index, query, NO_FILTER, 3);
    workers[0]!.exit();
    workers[0]!.say({ kind: "answer", call: 1, ...packed("the old") });
    current().up();
    await turn();
    current().say({ kind: "answer", call: 1, ...packed("the new") });
    expect(await again).toEqual(["the new"]);
    expect(workers.length).toBe(2);
  });
}

test("from the moment the worker has failed until another one is up there is a problem, and one is started without a question", async () => {
  const { vectors, index, workers, current } = await withFakes(150);
  await using _ = vectors;
  const opened = index.open();
  current().up();
  await opened;
  expect(index.problem()).toBeUndefined();
  current().exit();
  await turn();
  expect(index.problem()).toContain("The vector index has failed");
  index.startAgain();
  index.startAgain();
  expect([workers.length, index.problem()]).toEqual([2, expect.any(String) as string]);
  current().up();
  await turn();
  expect(index.problem()).toBeUndefined();
  index.startAgain();
  expect(workers.length).toBe(2);
});

test("the worker is told of changes once while it is busy, and of one that it may have overlooked when it is idle", async () => {
  const { vectors, index, current } = await withFakes(150);
  await using _ = vectors;
  index.changed();
  current().up();
  for (let i = 0; i < 5; i++) index.changed();
  expect(current().kinds).toEqual(["start", "changed"]);
  current().say({ ...IDLE, idle: false });
  expect(current().kinds).toEqual(["start", "changed"]);
  current().say(IDLE);
  expect(current().kinds).toEqual(["start", "changed", "changed"]);
  current().say(IDLE);
  expect(current().kinds).toEqual(["start", "changed", "changed"]);
});

test("the worker is told of memories whose rows were put again before it searches, and when they are many", async () => {
  const { vectors, index, current, query } = await withFakes(1_200);
  await using _ = vectors;
  void index.open();
  current().up();
  await turn();
  const [first, second] = vectors.stored;
  await vectors.change(first!, { type: "other" });
  await vectors.change(second!, { type: "other" });
  await vectors.add([query]);
  expect(current().kinds).toEqual(["start"]);
  void refused(nearest(index, query, NO_FILTER, 3));
  void refused(nearest(index, query, NO_FILTER, 3));
  await turn();
  expect(current().kinds).toEqual(["start", "updated", "nearest", "nearest"]);
  expect(current().told[1]).toEqual({ kind: "updated", memories: [first!.memory, second!.memory] });
  for (const one of vectors.stored.slice(0, 1_000)) await vectors.change(one, { type: "another" });
  expect(current().kinds.slice(4)).toEqual(["updated"]);
  expect(current().told[4]).toMatchObject({ memories: { length: 1_000 } });
  const closed = index.close();
  current().say({ kind: "closed" });
  await closed;
});

test("closing tells the worker at once, also while it loads, lets it finish, and nothing starts another one", async () => {
  const { vectors, index, workers, current, logged, query } = await withFakes(150);
  await using _ = vectors;
  const opened = index.open();
  const asked = refused(nearest(index, query, NO_FILTER, 3));
  const closed = index.close();
  index.changed();
  await turn();
  expect(current().kinds).toEqual(["start", "close"]);
  current().say({ kind: "closed" });
  await Promise.all([opened, closed]);
  expect(await asked).toMatchObject(UNAVAILABLE);
  index.changed();
  expect(await refused(nearest(index, query, NO_FILTER, 3))).toMatchObject(UNAVAILABLE);
  await index.close();
  expect(workers.length).toBe(1);
  expect(logged).toEqual([]);
});

for (const { name, end } of ENDS) {
  test(`closing does not wait for a worker that ${name}`, async () => {
    const { vectors, index, workers, current } = await withFakes(150);
    await using _ = vectors;
    void index.open();
    const closed = index.close();
    end(current());
    await closed;
    expect(workers.length).toBe(1);
  });
}

/** The real thing, with its workers within reach. */
function withWorkers({ store }: StoredVectors) {
  const workers: Worker[] = [];
  const logged: { message: string }[] = [];
  const log = createLog({ level: "info", pretty: false, now: () => 0, write: (line) => void logged.push(JSON.parse(line)) });
  const newWorker = () => {
    const worker = new Worker(new URL("../../../src/search/worker.ts", import.meta.url).href);
    workers.push(worker);
    return worker;
  };
  const index = new VectorIndex(store, log, { newWorker, graphFrom: 0 });
  return { index, workers, logged };
}

test("a worker that is gone is replaced, the store is whole for both threads, and the graph is built anew", async () => {
  await using vectors = await storedVectors();
  const random = chance(20);
  await vectors.add(Array.from({ length: 120 }, () => unitVector(random)));
  const { index, workers, logged } = withWorkers(vectors);
  await index.open();
  const query = unitVector(random);
  const expected = () => new Set(vectors.exact(query, NO_FILTER, 20));
  expect(new Set(await nearest(index, query, NO_FILTER, 20))).toEqual(expected());
  // No message: the worker throws where nobody catches.
  workers[0]!.postMessage(null);
  await vectors.add(Array.from({ length: 5 }, () => unitVector(random)));
  const first = await nearest(index, query, NO_FILTER, 20).catch((error: { code: string }) => error.code);
  // The end of the first worker is noticed before or after the question.
  if (first !== "service_unavailable") expect(new Set(first)).toEqual(expected());
  expect(new Set(await nearest(index, query, NO_FILTER, 20))).toEqual(expected());
  expect(workers.length).toBe(2);
  await vectors.remove(vectors.stored.slice(0, 10));
  await vectors.add([unitVector(random, query, 0.1)]);
  expect(new Set(await nearest(index, query, NO_FILTER, 20))).toEqual(expected());
  await index.close();
  expect(logged).toMatchObject([
    { message: "vector index ready", rebuilding: "there is no snapshot" },
    { message: "vector index failed" },
    { message: "vector index ready", rebuilding: "the index failed with it" },
  ]);
});

test("an index of posting lists that turn out to be damaged is built anew", async () => {
  await using vectors = await storedVectors();
  await vectors.addEmbeddings(Array.from({ length: 300 }, (_, i) => madeEmbedder.embedMemory(`A lighthouse with ${i} steps`)));
  const first = withWorkers(vectors);
  await first.index.open();
  while (first.index.status.pending > 0) await turn();
  const find = async (index: VectorIndex) =>
    (await index.nearest(queryOf("a lighthouse", 20), NO_FILTER)).map(({ memory }) => memory).sort();
  const found = await find(first.index);
  await first.index.close();
  // Each block leads to itself.
  resealTables(join(vectors.directory, "vectors"), ({ parts }) => parts.at(-1)!.fill(Buffer.of(16, 0, 0, 0, 0, 0, 0, 0)));
  const { index, workers, logged } = withWorkers(vectors);
  await index.open();
  expect(await refused(find(index))).toMatchObject(UNAVAILABLE);
  expect(await find(index)).toEqual(found);
  await index.close();
  expect(workers.length).toBe(2);
  expect(logged).toMatchObject([
    { message: "vector index ready" },
    { message: "vector index failed", reason: "DamagedListsError: the posting lists are damaged" },
    { message: "vector index ready", rebuilding: "the index failed with it" },
  ]);
});

test("closing writes a snapshot, with which the next start has nothing to build", async () => {
  await using vectors = await storedVectors();
  const random = chance(21);
  await vectors.add(Array.from({ length: 120 }, () => unitVector(random)));
  const first = withWorkers(vectors);
  await first.index.open();
  while (first.index.status.pending > 0) await turn();
  expect(existsSync(join(vectors.directory, "vectors"))).toBe(false);
  await first.index.close();
  expect(existsSync(join(vectors.directory, "vectors/manifest.json"))).toBe(true);
  const second = withWorkers(vectors);
  await second.index.open();
  const [ready] = second.logged;
  expect(ready).toMatchObject({ message: "vector index ready" });
  expect(ready).not.toHaveProperty("rebuilding");
  await second.index.close();
});

test("closing while the snapshot is loaded is no failure, and leaves it for the next start", async () => {
  await using vectors = await storedVectors();
  const random = chance(23);
  await vectors.add(Array.from({ length: 1_000 }, () => unitVector(random)));
  const first = withWorkers(vectors);
  await first.index.open();
  while (first.index.status.pending > 0) await turn();
  await first.index.close();
  for (const turns of [0, 1, 4, 16]) {
    const { index, logged } = withWorkers(vectors);
    const opened = index.open();
    for (let i = 0; i < turns; i++) await turn();
    await index.close();
    await opened;
    expect(logged.filter(({ message }) => message !== "vector index ready")).toEqual([]);
  }
  const last = withWorkers(vectors);
  await last.index.open();
  expect(last.logged).toMatchObject([{ message: "vector index ready", indexed: 1_000, pending: 0 }]);
  await last.index.close();
});

test("a process that has nothing else to do ends, although it has not closed the index", async () => {
  await using vectors = await storedVectors();
  const random = chance(22);
  await vectors.add(Array.from({ length: 120 }, () => unitVector(random)));
  const source = join(import.meta.dir, "../../../src");
  const script = `
    import { Store } from ${JSON.stringify(join(source, "storage/lmdb/store.ts"))};
    import { systemClock } from ${JSON.stringify(join(source, "lib/clock.ts"))};
import { createLog } from ${JSON.stringify(join(source, "lib/log.ts"))};
    import { type IndexOptions, VectorIndex } from ${JSON.stringify(join(source, "search/vector-index.ts"))};
    const log = createLog({ level: "silent", pretty: false, now: () => 0, write: () => undefined });
    const index = new VectorIndex(await Store.open(${JSON.stringify(vectors.directory)}, systemClock), log);
    await index.open();
    console.log((await index.nearest({ vector: new Int16Array(1536).fill(300), limit: 10, words: { weights: new Float64Array(0), ids: new Uint32Array(0), fingerprint: 0 }, calibration: { kind: "measured", lexicalShare: 0.5, cosineOfUnrelated: 0, cosineOfSame: 0.4, relevant: 0.5 } }, [])).length);
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect([stdout, stderr, await child.exited]).toEqual(["10\n", "", 0]);
});

test("other searches are answered while one looks for what passes two filters that rarely meet", async () => {
  await using vectors = await storedVectors();
  const random = chance(5);
  await vectors.add(Array.from({ length: 150 }, () => unitVector(random)));
  await vectors.addWithout(40_000, (index) => (index % 2 === 0 ? { type: "left", tags: ["l"] } : { type: "right", tags: ["r"] }));
  const index = new VectorIndex(vectors.store, createLog({ level: "error", pretty: false, now: () => 0, write: () => undefined }));
  await index.open();
  const answered: string[] = [];
  const query = unitVector(random);
  const rare = index
    .nearest(queryFor(query, 10), [ofType("left"), withAnyTag("r")])
    .then((found) => answered.push(`rare: ${found.length}`));
  const plain = index.nearest(queryFor(query, 10), NO_FILTER).then((found) => answered.push(`plain: ${found.length}`));
  await Promise.all([rare, plain]);
  expect(answered).toEqual(["plain: 10", "rare: 0"]);
  await index.close();
});
