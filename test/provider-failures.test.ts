import { describe, expect, test } from "bun:test";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { answers, hangs, refuses, startEmbeddingServer, when, type Behaviour } from "./support/embedding-server.ts";
import {
  TEA,
  CHESS,
  RENT,
  DOWN,
  UNAVAILABLE,
  openai,
  setEmbedding,
  setProvider,
  EMBEDDINGS,
  makeVectors,
  log,
  vectorsOf,
  NOTES,
  addAll,
} from "./support/providers.ts";
import { onEmbedded } from "./support/stores.ts";

describe("while the provider is down", () => {
  test("a client that searches reads neither where it is nor what it says; the operator does", async () => {
    const server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const session = await cairn.createSession();
    await cairn.addMemory(session.id, TEA);
    const key = await cairn.newKey({ scopes: ["read"] });
    const { host, hostname, port } = new URL(server.baseUrl);
    const ask = async (query: string) => {
      const answers = [
        await cairn.post("/v1/memory/search", { query }, { key }),
        await cairn.post(`/v1/sessions/${session.id}/context`, { query }, { key }),
      ];
      for (const answer of answers) expect(refusal(answer)).toEqual(UNAVAILABLE);
      return answers.map(({ body }) => JSON.stringify(body)).join();
    };
    const texts: string[] = [];
    for (const behaviour of [
      refuses(502, `upstream ${host} is gone`, { code: hostname }),
      refuses(401, `ask at ${host}`, { code: host }),
      answers("", { status: 307, headers: { location: server.baseUrl } }),
      answers(`at ${host}`),
    ]) {
      server.always(behaviour);
      texts.push(await ask("tea"));
      await cairn.runTaskOnce(EMBEDDINGS);
      texts.push(await ask("green tea"));
    }
    await server[Symbol.asyncDispose]();
    await cairn.restart();
    texts.push(await ask("tea"));
    expect(texts.filter((text) => text.includes(hostname) || text.includes(port))).toEqual([]);
    const reason = `The embedding provider at ${host} cannot be reached: ECONNREFUSED`;
    expect(cairn.logged.filter((line) => line.includes(`"level":"error"`)).at(-1)).toContain(reason);
    expect((await cairn.settings()).embedding.state).toEqual({ available: false, reason });
  });

  test("memories are stored at once with their vectors pending, searches say what is wrong, and all else works", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const session = await cairn.createSession({ user_id: "user" });
    const before = await cairn.addMemory(session.id, TEA);
    server.always(DOWN);
    const first = await cairn.addMemory(session.id, CHESS);
    expect(first).toMatchObject({ vector_available: false });
    expect(first).not.toHaveProperty("embedding_id");
    const asked = server.requests.length;
    const pauses = cairn.clock.pauses.length;
    // It is known to be down now: nobody asks it, and nobody waits.
    const second = await cairn.addMemory(session.id, RENT);
    const changed = await cairn.ok(cairn.patch(`/v1/memory/${before.id}`, { content: "The customer prefers coffee." }));
    expect([second.vector_available, changed.vector_available]).toEqual([false, false]);
    const search = await cairn.post("/v1/memory/search", { query: "tea" });
    expect(refusal(search)).toEqual(UNAVAILABLE);
    expect(search.body.error.message).toBe(
      "The embedding provider refuses what it is asked for. The operator's log and GET /v1/settings say more.",
    );
    expect(refusal(await cairn.post(`/v1/sessions/${session.id}/context`, { query: "tea" }))).toEqual(UNAVAILABLE);
    expect(idsOf((await cairn.context(session.id)).memories)).toEqual([second.id, first.id, before.id]);
    expect(idsOf(await cairn.list("/v1/memory"))).toEqual([second.id, first.id, before.id]);
    await cairn.setState(session.id, { step: 1 });
    await cairn.addTurn(session.id);
    const { id } = await cairn.addMemory(session.id, "tea", { embed: false });
    expect((await cairn.delete(`/v1/memory/${id}`)).status).toBe(200);
    expect((await cairn.settings()).embedding).toMatchObject({
      state: { available: false, reason: "The embedding provider answered 404 (invalid_request_error)" },
      vectors: { ready: 0, pending: 3 },
    });
    expect([server.requests.length, cairn.clock.pauses.length]).toEqual([asked, pauses]);

    // What is pending survives a restart, and is made when the provider is back.
    await cairn.restart();
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 3 });
    expect(await cairn.runTaskOnce(EMBEDDINGS)).toBeGreaterThan(0);
    server.always(undefined);
    cairn.clock.advance({ ms: 5_000 });
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 3, pending: 0 });
    expect(await cairn.ok(cairn.get(`/v1/memory/${first.id}`))).toEqual({
      ...first,
      vector_available: true,
      embedding_id: expect.stringMatching(/^emb_/),
    });
    expect(await cairn.search(CHESS)).toMatchObject({ data: [{ id: first.id, score: 1 }] });
    const told = log(cairn).filter(({ message }) => /provider (does not work|works)/.test(String(message)));
    expect(told).toEqual([
      {
        level: "warn",
        message: "the embedding provider does not work",
        reason: "The embedding provider answered 404 (invalid_request_error)",
      },
      { level: "info", message: "the embedding provider works again", ready: 0, pending: 3 },
    ]);
  });

  onEmbedded("other servers can wake the task, so it looks every second")(
    "it is asked whether it is back after 5 s, 10 s, 20 s and so on, and never while it is not time",
    async () => {
      await using server = startEmbeddingServer({ length: 384 });
      await using cairn = await startCairn();
      await setProvider(cairn, server);
      server.always(DOWN);
      await addAll(cairn, [TEA]);
      const asked = server.requests.length;
      const waits = [];
      for (let i = 0; i < 4; i++) {
        const wait = await cairn.runTaskOnce(EMBEDDINGS);
        expect(await cairn.runTaskOnce(EMBEDDINGS)).toBe(wait);
        waits.push(wait);
        cairn.clock.advance({ ms: wait });
        await cairn.runTaskOnce(EMBEDDINGS);
      }
      expect(waits).toEqual([5_000, 10_000, 20_000, 40_000]);
      expect(server.requests.length - asked).toBe(4);
    },
  );

  test("a search that fails has the provider looked at soon, without a memory to be stored", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const [memory] = await addAll(cairn, [TEA]);
    // Where a server takes the lease of the task only after the start, that wakes the task, too.
    await makeVectors(cairn);
    const task = cairn.service.tasks.find(({ name }) => name === EMBEDDINGS)!;
    const run = task.run.bind(task);
    let ran = Promise.withResolvers<void>();
    /** After each run it sleeps for good, unless it is woken. */
    Object.assign(task, { run: () => run().then(() => (ran.resolve(), 1_000_000)) });
    const runAfter = async (work: () => unknown) => {
      ran = Promise.withResolvers();
      await work();
      await ran.promise;
    };
    await runAfter(() => cairn.service.start());
    const search = async () => refusal(await cairn.post("/v1/memory/search", { query: "tea" }));
    server.always(DOWN);
    await runAfter(async () => expect(await search()).toEqual(UNAVAILABLE));
    server.always(undefined);
    cairn.clock.advance({ seconds: 5 });
    await runAfter(async () => expect(await search()).toEqual(UNAVAILABLE));
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ id: memory.id }] });
  });

  test("a client that stores a memory waits 2.5 s for a provider that is slow, and no longer", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const session = await cairn.createSession();
    const memory = await cairn.addMemory(session.id, TEA);
    server.always(hangs);
    for (const request of [
      () => cairn.addMemory(session.id, CHESS),
      () => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: RENT })),
    ]) {
      const asked = server.requests.length;
      let isAnswered = false;
      const answer = request().finally(() => (isAnswered = true));
      await server.arrived(asked + 1);
      cairn.clock.advance({ ms: 2_499 });
      // Others are served meanwhile.
      await cairn.setState(session.id, { step: 1 });
      expect(isAnswered).toBe(false);
      cairn.clock.advance({ ms: 1 });
      expect(await answer).toMatchObject({ vector_available: false });
    }
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 2 });
  });

  test("one of the environment that is down at the start is measured when it is back", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    server.always(DOWN);
    await using cairn = await startCairn({ environment: { embedding: { provider: "openai", base_url: server.baseUrl } } });
    await cairn.runTaskOnce(EMBEDDINGS);
    const [memory] = await addAll(cairn, [TEA]);
    expect(memory.vector_available).toBe(false);
    expect(refusal(await cairn.post("/v1/memory/search", { query: "tea" }))).toEqual(UNAVAILABLE);
    expect((await cairn.settings()).embedding).toMatchObject({ separation: null, vector_length: null, state: { available: false } });
    server.always(undefined);
    cairn.clock.advance({ ms: 60_000 });
    await makeVectors(cairn);
    expect((await cairn.settings()).embedding).toMatchObject({
      relevant_cosine: { value: expect.any(Number), source: "probes" },
      separation: expect.any(Number),
      vector_length: 384,
      state: { available: true },
      vectors: { ready: 1, pending: 0 },
    });
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ id: memory.id, score: 1 }] });
  });

  test("a provider that answers but cannot be measured is not asked again and again", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    server.always(when(({ body }) => body.input.length > 1, refuses(422, "One at a time, and none of these")));
    await using cairn = await startCairn({ environment: { embedding: { provider: "openai", base_url: server.baseUrl } } });
    await cairn.runTaskOnce(EMBEDDINGS);
    const asked = server.requests.length;
    cairn.clock.advance({ ms: 4_999 });
    await cairn.runTaskOnce(EMBEDDINGS);
    expect(server.requests.length).toBe(asked);
  });

  test("closing ends at once, whatever the provider keeps waiting", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using other = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const session = await cairn.createSession();
    server.always(DOWN);
    await cairn.addMemory(session.id, CHESS);
    cairn.clock.advance({ seconds: 5 });
    server.always(hangs);
    other.always(hangs);
    const asked = server.requests.length;
    const probing = cairn.runTaskOnce(EMBEDDINGS);
    const change = setEmbedding(cairn, openai(other));
    const nextChange = setEmbedding(cairn, openai(other));
    await Promise.all([server.arrived(asked + 1), other.arrived(1)]);
    const closed = cairn.service.embeddings.close();
    await probing;
    await closed;
    expect([refusal(await change), refusal(await nextChange)]).toEqual([UNAVAILABLE, UNAVAILABLE]);
    expect((await cairn.settings()).embedding.base_url.value).toBe(server.baseUrl);
    await cairn[Symbol.asyncDispose]();
  });
});

describe("a text that the provider refuses for itself", () => {
  const refusesWord = when(({ body }) => body.input.some((text) => text.includes("rent")), refuses(400, "Indecent: rent"));

  test("stays pending without holding up others, is logged once, and is offered again an hour later", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    const memories = await addAll(cairn, [...NOTES(150), RENT]);
    const refused = memories.filter(({ content }) => content.includes("rent"));
    await setProvider(cairn, server);
    server.always(refusesWord);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: memories.length - refused.length, pending: refused.length });
    expect((await cairn.settings()).embedding.state).toEqual({ available: true });
    expect((await cairn.search(NOTES(1)[0]!)).data[0]).toMatchObject({ content: NOTES(1)[0], score: 1 });

    // No hot loop: nothing is sent, whether the task comes by or another memory wakes it.
    const asked = server.requests.length;
    cairn.clock.advance({ ms: 60_000 });
    await makeVectors(cairn);
    await makeVectors(cairn);
    expect(server.requests.length).toBe(asked);
    const told = () => log(cairn).filter(({ message }) => String(message).includes("rejects a text"));
    const first = told();
    expect(first.reduce((sum, { others }) => sum + 1 + Number(others), 0)).toBe(refused.length);
    expect(JSON.stringify(first)).not.toContain("ndecent");

    cairn.clock.advance({ ms: 3_600_000 });
    await makeVectors(cairn);
    expect(server.requests.length).toBeGreaterThan(asked);
    expect(told()).toEqual(first);
    server.always(undefined);
    cairn.clock.advance({ ms: 3_600_000 });
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: memories.length, pending: 0 });
  });

  test("is offered again at once when it is changed, and when another provider is set", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using other = startEmbeddingServer({ length: 768 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    server.always(refusesWord);
    const [one, two] = await addAll(cairn, [RENT, `${RENT} Or not.`]);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 2 });
    expect(await cairn.ok(cairn.patch(`/v1/memory/${one.id}`, { content: TEA }))).toMatchObject({ vector_available: true });
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, pending: 1 });
    await setProvider(cairn, other);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 2, pending: 0 });
    expect(await cairn.search(two.content)).toMatchObject({ data: [{ id: two.id, score: 1 }] });
  });
});

test("with a full disk nothing is asked of the provider that could not be kept", async () => {
  await using server = startEmbeddingServer({ length: 384 });
  await using cairn = await startCairn();
  await addAll(cairn, NOTES(10));
  await setProvider(cairn, server);
  await cairn.runTaskOnce(EMBEDDINGS);
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("no space left"));
  const asked = server.requests.length;
  for (let i = 0; i < 3; i++) await cairn.runTaskOnce(EMBEDDINGS).catch(() => undefined);
  expect(server.requests.length).toBe(asked);
  store.commit = commit;
  await makeVectors(cairn);
  expect(await vectorsOf(cairn)).toEqual({ ready: 10, pending: 0 });
});

test("no text that was sent to be embedded comes back in a log, in the settings or in an answer, whatever the provider says", async () => {
  await using server = startEmbeddingServer({ length: 384 });
  await using cairn = await startCairn();
  await setProvider(cairn, server);
  const session = await cairn.createSession();
  const quotes = (status: number): Behaviour => {
    return ({ body }) => Response.json({ error: { message: `could not embed input ${JSON.stringify(body.input)}` } }, { status });
  };
  const reasons = [];
  for (const status of [400, 401, 404, 413, 422, 429, 500, 503]) {
    server.always(undefined);
    cairn.clock.advance({ ms: 300_000 });
    await makeVectors(cairn);
    server.always(quotes(status));
    const answers = [
      await cairn.post("/v1/memory/search", { query: `a private query ${status}` }),
      await cairn.post(`/v1/sessions/${session.id}/context`, { query: "another private query" }),
      await cairn.post("/v1/memory", { session_id: session.id, content: `a private note ${status}` }),
      await cairn.get("/v1/settings"),
    ];
    expect([status, answers.map((answer) => answer.status)]).toEqual([status, [503, 503, 201, 200]]);
    for (const { body } of answers) expect(JSON.stringify(body.error ?? body.embedding ?? {})).not.toContain("private");
    await cairn.runTaskOnce(EMBEDDINGS);
    cairn.clock.advance({ ms: 300_000 });
    await cairn.runTaskOnce(EMBEDDINGS);
    // Asked for our own plain text it may say what it likes.
    reasons.push((await cairn.settings()).embedding.state.reason);
  }
  expect(new Set(reasons.map((reason) => reason.replace(/^The embedding provider answered \d+: /, "")))).toEqual(
    new Set(['could not embed input ["The quick brown fox jumps over the lazy dog."]']),
  );
  expect(cairn.logged.join()).not.toContain("private");
  expect(log(cairn)).toContainEqual({ level: "warn", message: "the embedding provider does not work", reason: reasons.at(-1) });
});
