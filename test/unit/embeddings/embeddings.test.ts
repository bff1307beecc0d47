import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Embeddings } from "../../../src/embeddings/embeddings.ts";
import type { EmbeddingSettings } from "../../../src/embeddings/provider-settings.ts";
import { ApiError } from "../../../src/lib/errors.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { generationOf } from "../../../src/storage/memory-records.ts";
import { vectors } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";
import { startEmbeddingServer, when } from "../../support/embedding-server.ts";

/** A store with some vectors, and what opens its provider. */
async function open() {
  const directory = mkdtempSync(join(tmpdir(), "cairn-embeddings-"));
  const clock = new FakeClock();
  const store = await Store.open(directory, clock);
  const failures: string[] = [];
  const opened: Embeddings[] = [];
  return {
    store,
    clock,
    failures,
    async embeddings(settings: EmbeddingSettings): Promise<Embeddings> {
      const embeddings = await Embeddings.open(store, settings, {
        clock,
        random: () => 1,
        resolve: () => Promise.resolve([]),
        onFailure: () => failures.push("failed"),
        onEncoderFailure: () => undefined,
      });
      opened.push(embeddings);
      return embeddings;
    },
    async addVectors(count: number): Promise<void> {
      await store.commit(NO_PARTITION, (tx) => {
        for (let i = 0; i < count; i++) tx.putVector(vectors, tx.bareId(), new Uint8Array(8));
      });
    },
    async [Symbol.asyncDispose]() {
      for (const embeddings of opened) await embeddings.close();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const REMOTE: EmbeddingSettings = { provider: "openai", base_url: "http://127.0.0.1:1/v1", model: "m", api_key: "key-a" };

const CHANGES: { name: string; before: EmbeddingSettings; after: EmbeddingSettings; isOther: boolean }[] = [
  { name: "nothing changed", before: REMOTE, after: REMOTE, isOther: false },
  { name: "another key", before: REMOTE, after: { ...REMOTE, api_key: "b" }, isOther: false },
  { name: "another relevant cosine", before: REMOTE, after: { ...REMOTE, relevant_cosine: 0.5 }, isOther: false },
  { name: "a slash more", before: REMOTE, after: { ...REMOTE, base_url: `${REMOTE.base_url}/` }, isOther: false },
  {
    name: "the defaults written out",
    before: { provider: "openai" },
    after: { provider: "openai", base_url: "https://api.openai.com/v1", model: "text-embedding-3-small", query_prefix: "" },
    isOther: false,
  },
  { name: "what a provider is told that is not in use", before: {}, after: { ...REMOTE, provider: "builtin" }, isOther: false },
  { name: "another server", before: REMOTE, after: { ...REMOTE, base_url: "http://127.0.0.1:2/v1" }, isOther: true },
  { name: "another model", before: REMOTE, after: { ...REMOTE, model: "n" }, isOther: true },
  { name: "another prefix of queries", before: REMOTE, after: { ...REMOTE, query_prefix: "q: " }, isOther: true },
  { name: "another length of vectors", before: REMOTE, after: { ...REMOTE, dimensions: 256 }, isOther: true },
  { name: "another prefix of memories", before: REMOTE, after: { ...REMOTE, document_prefix: "d: " }, isOther: true },
  { name: "a server in place of the built-in provider", before: {}, after: REMOTE, isOther: true },
  { name: "the built-in provider in place of a server", before: REMOTE, after: {}, isOther: true },
];

for (const { name, before, after, isOther } of CHANGES) {
  test(`vectors are ${isOther ? "made again" : "kept"} at a start with ${name}`, async () => {
    await using opened = await open();
    await opened.embeddings(before);
    await opened.addVectors(3);
    const generation = generationOf(opened.store.latest);
    const embeddings = await opened.embeddings(after);
    expect(embeddings.active.generation > generation).toBe(isOther);
    expect(await embeddings.progress()).toEqual(isOther ? { ready: 0, pending: 3 } : { ready: 3, pending: 0 });
  });
}

test("every change starts a generation of its own, also back and where no vector was made between two", async () => {
  await using opened = await open();
  const generations = [];
  for (const [settings, vectors] of [
    [{}, 0],
    [REMOTE, 2],
    [{}, 0],
    [REMOTE, 0],
    [REMOTE, 0],
    [{}, 2],
    [{}, 1],
  ] as const) {
    generations.push((await opened.embeddings(settings)).active.generation);
    await opened.addVectors(vectors);
  }
  expect(generations).toEqual([1, 2, 3, 4, 4, 5, 5]);
  expect(await (await opened.embeddings({})).progress()).toEqual({ ready: 3, pending: 2 });
});

/** The disk takes nothing until this is disposed of. */
function fullDisk(store: Store): Disposable {
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new ApiError("service_unavailable", "The disk is nearly full."));
  return { [Symbol.dispose]: () => void (store.commit = commit) };
}

test("on a full disk another provider is opened all the same: no vector is its own, and its generation starts when there is room", async () => {
  await using opened = await open();
  await opened.embeddings({});
  await opened.addVectors(3);
  const generation = generationOf(opened.store.latest);
  let full = fullDisk(opened.store);
  const embeddings = await opened.embeddings(REMOTE);
  const before = embeddings.active;
  expect([before.remote === undefined, await embeddings.progress()]).toEqual([false, { ready: 0, pending: 3 }]);
  await expect(embeddings.startGenerationIfNeeded()).rejects.toThrow("nearly full");
  // Started once more with the provider of before, nothing has happened.
  const { active } = await opened.embeddings({});
  expect([active.generation, generationOf(opened.store.latest), before.generation]).toEqual([generation, generation, generation + 1]);
  full[Symbol.dispose]();
  await embeddings.startGenerationIfNeeded();
  expect(embeddings.active).toMatchObject({ generation: generationOf(opened.store.latest), remote: before.remote });
  expect([generationOf(opened.store.latest), await embeddings.progress()]).toEqual([generation + 1, { ready: 0, pending: 3 }]);
  await embeddings.startGenerationIfNeeded();
  full = fullDisk(opened.store);
  expect((await opened.embeddings(REMOTE)).active.generation).toBe(generation + 1);
  full[Symbol.dispose]();
});

test("a provider that is set before another one's generation could start has its own, and the other one is forgotten", async () => {
  await using opened = await open();
  await using server = startEmbeddingServer({ length: 384 });
  await opened.embeddings({});
  await opened.addVectors(3);
  const full = fullDisk(opened.store);
  const embeddings = await opened.embeddings(REMOTE);
  full[Symbol.dispose]();
  const prepared = await embeddings.prepare({ ...REMOTE, base_url: server.baseUrl });
  await opened.store.commit(NO_PARTITION, (tx) => embeddings.put(tx, prepared));
  const generation = generationOf(opened.store.latest);
  await embeddings.startGenerationIfNeeded();
  expect([generationOf(opened.store.latest), embeddings.active.remote === prepared.remote]).toEqual([generation, false]);
  await embeddings.activate(prepared);
  expect(embeddings.active).toMatchObject({ generation, remote: prepared.remote });
});

test("one that was prepared and is not used after all is closed", async () => {
  await using opened = await open();
  await using server = startEmbeddingServer();
  const embeddings = await opened.embeddings({});
  const prepared = await embeddings.prepare({ ...REMOTE, base_url: server.baseUrl });
  embeddings.release(prepared);
  await expect(prepared.remote!.probe()).rejects.toThrow("no longer used");
});

test("what is measured late of a previous provider does not count for the one that is set by then", async () => {
  await using opened = await open();
  await using slow = startEmbeddingServer({ length: 384 });
  await using server = startEmbeddingServer({ length: 768 });
  const release = Promise.withResolvers<void>();
  const isMeasuring = ({ body }: { body: { input: string[] } }) => body.input.length > 1;
  slow.always(
    when(isMeasuring, async (_request, usual) => {
      await release.promise;
      return usual();
    }),
  );
  const embeddings = await opened.embeddings({ ...REMOTE, base_url: slow.baseUrl });
  const recovering = embeddings.recover().catch(() => undefined);
  await slow.arrived(2);
  const prepared = await embeddings.prepare({ ...REMOTE, base_url: server.baseUrl });
  await opened.store.commit(NO_PARTITION, (tx) => embeddings.put(tx, prepared));
  // Between the commit and the use of it.
  release.resolve();
  await recovering;
  await embeddings.activate(prepared);
  expect(embeddings.row).toMatchObject(prepared.row);
  expect((await opened.embeddings({ ...REMOTE, base_url: server.baseUrl })).row).toMatchObject(prepared.row);
});

test("until a provider is measured its vectors answer no query, and each such query has it probed", async () => {
  await using opened = await open();
  await using server = startEmbeddingServer({ length: 384 });
  const embeddings = await opened.embeddings({ ...REMOTE, base_url: server.baseUrl });
  const ask = (text: string) => embeddings.embedQuery(embeddings.active, text, "key");
  await expect(ask("tea")).rejects.toThrow("What the embedding provider's vectors mean was not measured yet. Try again in a moment.");
  expect((await ask(" ")).lexical.ids.length).toBe(0);
  await embeddings.recover();
  expect((await ask("tea")).lexical.ids.length).toBe(1);
  expect(opened.failures.length).toBe(1);
});
