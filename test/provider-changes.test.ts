import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { hangs, refuses, startEmbeddingServer } from "./support/embedding-server.ts";
import { onEmbedded } from "./support/stores.ts";
import { TEA, CHESS, setEmbedding, setProvider, EMBEDDINGS, makeVectors, log, vectorsOf, NOTES, addAll } from "./support/providers.ts";

/** All memories of a Cairn, by id. */
async function memoriesOf(cairn: Cairn): Promise<Map<string, any>> {
  const found = new Map<string, any>();
  for (let after = ""; ;) {
    const page = await cairn.ok(cairn.get(`/v1/memory?limit=100${after}`));
    for (const memory of page.data) found.set(memory.id, memory);
    if (!page.has_more) return found;
    after = `&starting_after=${page.last_id}`;
  }
}

const QUERIES = ["Did Anna talk about tea in Oslo?", "Kyoto trains Greta", NOTES(18)[17]!, "Farid's garden in Lima", "n1003"];

/** What searches of the user's memories answer, as far as it does not depend on ids. So few are compared one by one. */
async function found(cairn: Cairn): Promise<unknown> {
  const results = [];
  for (const query of QUERIES) {
    const { data } = await cairn.search(query, { threshold: 0, limit: 20, user_id: "user" });
    results.push(data.map(({ content, score }: any) => [content, score]));
  }
  return results;
}

/** Whether some notes are found by their own text among all, for which the graph is asked. */
async function areFound(cairn: Cairn, count: number): Promise<boolean> {
  const notes = NOTES(count).filter((_, i) => i % 41 === 0);
  const best = await Promise.all(notes.map(async (note) => (await cairn.search(note, { limit: 1 })).data[0]));
  return best.every((result, i) => result?.content === notes[i] && result.score === 1);
}

const copies: string[] = [];
afterEach(() => {
  for (const copy of copies.splice(0)) rmSync(copy, { recursive: true, force: true });
});

/** One after the other: of equal scores the newer memory comes first. */
async function addInOrder(cairn: Cairn, contents: readonly string[]): Promise<void> {
  await cairn.addMemories((await cairn.createSession({ user_id: "user" })).id, contents);
}

/** The data directory as a crash would leave it now. */
function copyOf(cairn: Cairn): string {
  const copy = mkdtempSync(join(tmpdir(), "cairn-copy-"));
  copies.push(copy);
  cpSync(cairn.directory, copy, { recursive: true });
  return copy;
}

describe("another provider", () => {
  test("has all vectors made again in the background, with the progress in settings and log", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.5 });
    await using cairn = await startCairn();
    const ids = (await addAll(cairn, NOTES(300))).map(({ id }) => id);
    await makeVectors(cairn);
    const before = await memoriesOf(cairn);
    const memories = ids.map((id) => before.get(id));
    const [never] = await addAll(cairn, [TEA], { embed: false });
    const logged = log(cairn).length;
    expect((await setProvider(cairn, server)).vectors).toEqual({ ready: 0, pending: 300 });
    expect(await cairn.ok(cairn.get(`/v1/memory/${memories[0].id}`))).toMatchObject({ vector_available: false });
    const seen = [];
    while ((await cairn.runTaskOnce(EMBEDDINGS)) === 0) {
      cairn.clock.advance({ seconds: 5 });
      seen.push(await vectorsOf(cairn));
    }
    expect(seen.every(({ ready, pending }) => ready + pending === 300)).toBe(true);
    expect(seen.map(({ ready }) => ready)).toEqual([0, 0, 64, 128, 192, 256, 300]);
    expect(
      log(cairn)
        .slice(logged)
        .filter(({ message }) => /vectors|pending texts/.test(String(message))),
    ).toEqual([
      ...[0, 0, 0, 64, 128, 192].map((ready) => ({
        level: "info",
        message: "embedding pending texts",
        ready,
        pending: 300 - ready,
        percent: Math.floor((100 * ready) / 300),
      })),
      { level: "info", message: "all vectors are made", ready: 300, pending: 0 },
    ]);
    const after = await memoriesOf(cairn);
    expect(after.get(never.id)).toEqual(never);
    for (const memory of memories) {
      expect(after.get(memory.id)).toEqual({ ...memory, embedding_id: expect.stringMatching(/^emb_/) });
      expect(after.get(memory.id).embedding_id).not.toBe(memory.embedding_id);
    }
  });

  test("answers searches meanwhile by words and what is ready, with its own scores alone", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.6 });
    await using cairn = await startCairn();
    const notes = NOTES(250);
    const sessions = [];
    for (let i = 0; i < 250; i += 50) sessions.push((await addAll(cairn, notes.slice(i, i + 50)))[0].session_id);
    const query = "Did Anna talk about tea in Oslo?";
    const search = async (more: Record<string, unknown>): Promise<any[]> =>
      (await cairn.search(query, { threshold: 0, limit: 50, ...more })).data.map(({ content, score }: any) => ({ content, score }));
    const before = await search({ user_id: "user" });
    await setProvider(cairn, server);
    const seen = [];
    const seenOfSession = [];
    do {
      seen.push(await search({ user_id: "user" }));
      seenOfSession.push(await search({ session_id: sessions[1] }));
    } while ((await cairn.runTaskOnce(EMBEDDINGS)) === 0);
    expect(seen.map(({ length }) => length)).toEqual([0, 50, 50, 50, 50, 50, 50]);
    // The score of each is the one that it has by its words, or else the one that it has in the end, whenever it was found.
    const byWords = new Map(seenOfSession[2]!.map(({ content, score }) => [content, score]));
    const inTheEnd = new Map<string, number>();
    for (const session_id of sessions) for (const { content, score } of await search({ session_id })) inTheEnd.set(content, score);
    expect(inTheEnd.size).toBe(250);
    expect(seenOfSession.map(({ length }) => length)).toEqual([0, 50, 50, 50, 50, 50, 50]);
    const isOfNeither = (found: readonly any[]) =>
      found.filter(({ content, score }) => score !== inTheEnd.get(content) && score !== byWords.get(content));
    expect(seenOfSession.map((found) => isOfNeither(found).length)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    const isMade = (found: readonly any[]) => found.filter(({ content, score }) => score === inTheEnd.get(content)).length;
    expect(seenOfSession.map(isMade)).toEqual([0, 0, 0, 14, 50, 50, 50]);
    expect(seen.at(-1)!.every(({ content, score }) => score === inTheEnd.get(content))).toBe(true);
    expect(before.some(({ content, score }) => inTheEnd.get(content) === score)).toBe(false);
  });

  test("has a search whose vector the previous one made ask the new one", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.6 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(20));
    const { vectors } = cairn.service;
    const nearest = vectors.nearest.bind(vectors);
    let asked = 0;
    vectors.nearest = async (...given) => {
      // The query's vector is made already, all others are made again before it is compared with them.
      if (asked++ === 0) {
        await setProvider(cairn, server);
        await makeVectors(cairn);
      }
      return nearest(...given);
    };
    const search = () => cairn.search("Did Anna talk about tea in Oslo?", { threshold: 0, limit: 20, user_id: "user" });
    const { data } = await search();
    expect(asked).toBe(2);
    expect(data).toHaveLength(20);
    expect(data).toEqual((await search()).data);
  });

  test("takes account of memories that are changed, deleted and added meanwhile", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    const memories = await addAll(cairn, NOTES(300));
    const session = await cairn.createSession();
    await setProvider(cairn, server);
    const added: any[] = [];
    /** Something happens to a memory before each piece of the work, and while the provider works on each. */
    const meddle = async (i: number) => {
      await cairn.ok(cairn.patch(`/v1/memory/${memories[i].id}`, { content: `Changed ${i}: ${TEA}` }));
      await cairn.ok(cairn.patch(`/v1/memory/${memories[100 + i].id}`, { tags: ["tagged"] }));
      await cairn.ok(cairn.delete(`/v1/memory/${memories[200 + i].id}`));
      added.push(await cairn.addMemory(session.id, `Added ${i}: ${CHESS}`));
    };
    let step = 0;
    let isMeddling = false;
    server.always(async ({ body }, usual) => {
      // In one request at a time: the others carry what the change itself asks of the provider.
      if (body.input.length > 20 && !isMeddling) {
        isMeddling = true;
        await meddle(step++);
        isMeddling = false;
      }
      return usual();
    });
    for (let wait = 0; wait === 0;) {
      await meddle(step++);
      wait = await cairn.runTaskOnce(EMBEDDINGS);
    }
    expect(step).toBeGreaterThan(10);
    await makeVectors(cairn);
    const expected = memories.flatMap(({ id, content }, i) => {
      if (i >= 200 && i < 200 + step) return [];
      return [[id, i < step ? `Changed ${i}: ${TEA}` : content]];
    });
    const after = await memoriesOf(cairn);
    expect(after.size).toBe(expected.length + added.length);
    expect(await vectorsOf(cairn)).toEqual({ ready: after.size, pending: 0 });
    for (const [id, content] of [...expected, ...added.map((memory) => [memory.id, memory.content])]) {
      expect(after.get(id)).toMatchObject({ content, vector_available: true });
    }
    for (const id of [memories[0].id, memories[100].id, memories[299].id, added[0].id]) {
      expect((await cairn.search(after.get(id).content)).data[0]).toMatchObject({ id, score: 1 });
    }
    expect((await cairn.search(memories[200].content)).data.map(({ content }: any) => content)).not.toContain(memories[200].content);
  });

  test("gives a memory that is changed while its old text is with the provider the vector of its new text", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    const [memory] = await addAll(cairn, [TEA]);
    await setProvider(cairn, server);
    await cairn.runTaskOnce(EMBEDDINGS);
    const asked = server.requests.length;
    const release = Promise.withResolvers<void>();
    server.next(
      async (_request, usual) => {
        await release.promise;
        return usual();
      },
      refuses(401, "Not now"),
    );
    const making = cairn.runTaskOnce(EMBEDDINGS);
    await server.arrived(asked + 1);
    expect(await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: CHESS }))).toMatchObject({ vector_available: false });
    release.resolve();
    await making;
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 1 });
    cairn.clock.advance({ seconds: 60 });
    await makeVectors(cairn);
    expect(await cairn.search(CHESS)).toMatchObject({ data: [{ id: memory.id, score: 1 }] });
  });

  test("gets no vector that the previous one has made and that comes late", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.6 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(60));
    await setProvider(cairn, server);
    await makeVectors(cairn);
    const expected = await found(cairn);
    await cairn.ok(setEmbedding(cairn, { provider: "builtin" }));
    await cairn.runTaskOnce(EMBEDDINGS);
    // The built-in provider's vectors are made, and the other provider is set before they are stored.
    const { store } = cairn.service;
    const commit = store.commit.bind(store);
    store.commit = async (home, work) => {
      store.commit = commit;
      await setProvider(cairn, server);
      return commit(home, work);
    };
    await cairn.runTaskOnce(EMBEDDINGS);
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 60 });
    await makeVectors(cairn);
    expect(await found(cairn)).toEqual(expected);
  });

  onEmbedded("a crash leaves files, which are copied")(
    "continues where it was after a stop or a crash at any point",
    async () => {
      await using server = startEmbeddingServer({ length: 384, unrelated: 0.3 });
      await using cairn = await startCairn();
      const memories = await addAll(cairn, NOTES(300));
      await setProvider(cairn, server);
      const crashes: string[] = [copyOf(cairn)];
      while ((await cairn.runTaskOnce(EMBEDDINGS)) === 0) {
        crashes.push(copyOf(cairn));
        await cairn.restart();
      }
      const expected = await found(cairn);
      expect(crashes.length).toBe(8);
      expect(await vectorsOf(cairn)).toEqual({ ready: 300, pending: 0 });
      for (const directory of crashes) {
        await using after = await startCairn({ directory });
        after.key = cairn.key;
        const before = await vectorsOf(after);
        expect(before.ready + before.pending).toBe(300);
        const asked = server.batches.length;
        await makeVectors(after);
        expect(await vectorsOf(after)).toEqual({ ready: 300, pending: 0 });
        // None is paid for twice.
        expect(server.batches.slice(asked).flat().length).toBe(before.pending);
        expect((await memoriesOf(after)).size).toBe(memories.length);
        expect(await found(after)).toEqual(expected);
      }
    },
    600_000,
  );

  onEmbedded("a crash leaves files, which are copied")(
    "is in the index as if it had been there from the start, also with an index on disk from before, and back again",
    async () => {
      await using server = startEmbeddingServer({ length: 384, unrelated: 0.3 });
      const contents = NOTES(400);
      await using fresh = await startCairn();
      await setProvider(fresh, server);
      await addInOrder(fresh, contents);
      await makeVectors(fresh);
      const expected = await found(fresh);

      await using cairn = await startCairn();
      await addInOrder(cairn, contents);
      await makeVectors(cairn);
      const before = await found(cairn);
      await cairn.vectorIndex.save();
      await setProvider(cairn, server);
      await makeVectors(cairn);
      expect(await found(cairn)).toEqual(expected);
      expect(await areFound(cairn, 400)).toBe(true);

      await using crashed = await startCairn({ directory: copyOf(cairn) });
      crashed.key = cairn.key;
      expect(await found(crashed)).toEqual(expected);
      expect(await areFound(crashed, 400)).toBe(true);

      await cairn.ok(setEmbedding(cairn, { provider: "builtin" }));
      await makeVectors(cairn);
      expect(await found(cairn)).toEqual(before);
      expect(await areFound(cairn, 400)).toBe(true);
      expect(await vectorsOf(cairn)).toEqual({ ready: 400, pending: 0 });
      await cairn.restart();
      expect(await found(cairn)).toEqual(before);
      expect(await areFound(cairn, 400)).toBe(true);
    },
    600_000,
  );

  test("answers a search that was in flight to the previous one", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    await addAll(cairn, [TEA]);
    const asked = server.requests.length;
    server.next(hangs);
    const search = cairn.search(TEA);
    await server.arrived(asked + 1);
    await cairn.ok(setEmbedding(cairn, { provider: "builtin" }));
    expect(await search).toMatchObject({ data: [] });
    await makeVectors(cairn);
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ score: 1 }] });
  });

  test("set by the environment of the next start counts in the same way", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(20));
    await cairn.close();
    await using next = await startCairn({
      directory: cairn.directory,
      database: cairn.place.database,
      environment: { embedding: { provider: "openai", base_url: server.baseUrl } },
    });
    next.key = cairn.key;
    expect(await vectorsOf(next)).toEqual({ ready: 0, pending: 20 });
    await makeVectors(next);
    expect(await vectorsOf(next)).toEqual({ ready: 20, pending: 0 });
    expect((await next.search(NOTES(1)[0]!)).data[0]).toMatchObject({ content: NOTES(1)[0], score: 1 });
  });
});
