import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idempotency } from "../src/storage/tables.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import {
  answers,
  hangs,
  refuses,
  startEmbeddingServer,
  when,
  type Behaviour,
  type EmbeddingServer,
  type EmbeddingServerOptions,
} from "./support/embedding-server.ts";

const KEY = "sk-providers-0123456789abcdefghijklmn";
const OTHER_KEY = "sk-others-zyxwvutsrqponmlkjihgfedcba";
const TEA = "The customer prefers green tea to coffee.";
const CHESS = "Luca plays chess online under the name of rook42.";
const RENT = "The landlord raised the rent of the flat.";
/** Nothing that is worth another attempt, so that one failure is enough. */
const DOWN = refuses(404, "The model is gone for lunch.");
const UNAVAILABLE = { status: 503, code: "service_unavailable" };

const openai = ({ baseUrl }: EmbeddingServer, more: Record<string, unknown> = {}) => ({
  provider: "openai",
  base_url: baseUrl,
  model: "some-model",
  ...more,
});

const setEmbedding = (cairn: Cairn, embedding: Record<string, unknown>, headers: Record<string, string> = {}) =>
  cairn.patch("/v1/settings", { embedding }, { headers });

async function setProvider(cairn: Cairn, server: EmbeddingServer, more: Record<string, unknown> = {}): Promise<any> {
  return (await cairn.ok(setEmbedding(cairn, openai(server, more)))).embedding;
}

/** The task that makes pending vectors. */
const EMBEDDINGS = "embeddings";
const makeVectors = (cairn: Cairn) => cairn.runTask(EMBEDDINGS);

/** What the operator was told, without times. */
function log(cairn: Cairn): Record<string, unknown>[] {
  return cairn.logged.map((line) => {
    const { time: _time, ...entry } = JSON.parse(line);
    return entry;
  });
}

const vectorsOf = async (cairn: Cairn) => (await cairn.settings()).embedding.vectors;

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

const WORDS = ["tea", "trains", "rent", "chess", "gardens", "music", "bread"];
const NAMES = ["Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karim"];
const PLACES = ["Oslo", "Lima", "Cairo", "Delhi", "Quito", "Tunis", "Perth", "Kyoto"];
/** No two of 616 are alike. */
const NOTES = (count: number) =>
  Array.from({ length: count }, (_, i) => `${NAMES[i % 11]} talked about ${WORDS[i % 7]} in ${PLACES[i % 8]}, says note n${1000 + i}.`);

async function addAll(cairn: Cairn, contents: readonly string[], more: Record<string, unknown> = {}): Promise<any[]> {
  const session = await cairn.createSession({ user_id: "user" });
  return Promise.all(contents.map((content) => cairn.addMemory(session.id, content, more)));
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

/** The data directory as a crash would leave it now. */
function copyOf(cairn: Cairn): string {
  const copy = mkdtempSync(join(tmpdir(), "cairn-copy-"));
  copies.push(copy);
  cpSync(cairn.directory, copy, { recursive: true });
  return copy;
}

describe("setting a provider", () => {
  test("it is asked with its model, key and prefixes from then on, and its figures are shown", async () => {
    await using server = startEmbeddingServer({ length: 768, unrelated: 0.4, apiKey: KEY });
    await using cairn = await startCairn();
    const session = await cairn.createSession();
    const set = await setProvider(cairn, server, { api_key: KEY, query_prefix: "search: ", document_prefix: "document: " });
    expect(set).toEqual({
      provider: { value: "openai", default: "local", source: "setting" },
      base_url: { value: server.baseUrl, default: "https://api.openai.com/v1", source: "setting" },
      model: { value: "some-model", default: "text-embedding-3-small", source: "setting" },
      api_key: { set: true, source: "setting" },
      query_prefix: { value: "search: ", default: "", source: "setting" },
      document_prefix: { value: "document: ", default: "", source: "setting" },
      relevant_cosine: { value: set.relevant_cosine.default, default: expect.any(Number), source: "probes" },
      separation: expect.any(Number),
      vector_length: 768,
      state: { available: true },
      vectors: { ready: 0, owed: 0 },
    });
    expect(set.relevant_cosine.value).toBeWithin(0.4, 1);
    expect(set.separation).toBeWithin(0.5, 1);
    const asked = server.requests.length;
    expect(await cairn.addMemory(session.id, TEA)).toMatchObject({ vector_available: true });
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ content: TEA, score: 1 }] });
    const requests = server.requests.slice(asked);
    expect(requests.map(({ body, headers }) => [body.model, body.input, headers.get("authorization")])).toEqual([
      ["some-model", [`document: ${TEA}`], `Bearer ${KEY}`],
      ["some-model", [`search: ${TEA}`], `Bearer ${KEY}`],
    ]);
    expect((await cairn.settings()).embedding).toEqual({ ...set, vectors: { ready: 1, owed: 0 } });
    expect(log(cairn)).toContainEqual({
      level: "info",
      message: "embedding provider set",
      provider: "openai",
      model: "some-model",
      separation: set.separation,
    });
  });

  test("one of the environment is measured at the start, once, and kept", async () => {
    await using server = startEmbeddingServer({ length: 384, apiKey: KEY });
    const embedding = { provider: "openai", base_url: server.baseUrl, model: "some-model", api_key: KEY };
    await using cairn = await startCairn({ environment: { embedding } });
    expect((await cairn.settings()).embedding).toMatchObject({
      provider: { value: "openai", source: "environment" },
      base_url: { value: server.baseUrl, source: "environment" },
      model: { value: "some-model", source: "environment" },
      api_key: { set: true, source: "environment" },
      relevant_cosine: { value: null, source: "probes" },
      state: { available: false, reason: "It was not reached yet since it was set." },
    });
    await makeVectors(cairn);
    const { embedding: measured } = await cairn.settings();
    expect(measured).toMatchObject({ separation: expect.any(Number), vector_length: 384, state: { available: true } });
    const asked = server.requests.length;
    await cairn.restart();
    await makeVectors(cairn);
    expect((await cairn.settings()).embedding).toEqual(measured);
    expect(server.requests.length).toBe(asked);
    const [memory] = await addAll(cairn, [TEA]);
    expect(memory.vector_available).toBe(true);
  });

  test("a setting wins over the environment, and going back to that is a change like any other", async () => {
    await using outside = startEmbeddingServer({ length: 384 });
    await using server = startEmbeddingServer({ length: 768 });
    await using cairn = await startCairn({
      environment: { embedding: { provider: "openai", base_url: outside.baseUrl, model: "outside" } },
    });
    await makeVectors(cairn);
    expect(await setProvider(cairn, server)).toMatchObject({ vector_length: 768, base_url: { source: "setting" } });
    expect((await cairn.ok(setEmbedding(cairn, { base_url: "", model: "" }))).embedding).toMatchObject({
      base_url: { value: outside.baseUrl, source: "environment" },
      model: { value: "outside", source: "environment" },
      vector_length: 384,
    });
  });

  const REFUSED: { name: string; server?: EmbeddingServerOptions; behaviour?: Behaviour; more?: object; param: string; says: RegExp }[] = [
    { name: "does not answer", behaviour: refuses(503, "Too early"), param: "embedding.base_url", says: /answered 503: Too early/ },
    {
      name: "cannot be reached",
      more: { base_url: "http://127.0.0.1:1/v1" },
      param: "embedding.base_url",
      says: /127\.0\.0\.1:1 cannot be reached/,
    },
    { name: "is given no key", server: { apiKey: KEY }, param: "embedding.api_key", says: /answered 401/ },
    {
      name: "is given a wrong key",
      server: { apiKey: KEY },
      more: { api_key: OTHER_KEY },
      param: "embedding.api_key",
      says: /answered 401/,
    },
    {
      name: "does not know the model",
      behaviour: refuses(404, 'model "some-model" not found'),
      param: "embedding.model",
      says: /model "some-model" not found/,
    },
    {
      name: "is a cloud's metadata service",
      more: { base_url: "http://169.254.169.254/v1" },
      param: "embedding.base_url",
      says: /169\.254\.169\.254 is a cloud's metadata service/,
    },
    { name: "is somewhere else", more: { base_url: "BASE/v2" }, param: "embedding", says: /answered 404/ },
    { name: "has vectors too long", server: { length: 3072 }, param: "embedding", says: /vectors of 3072 numbers; at most 1536/ },
    { name: "answers with something else", behaviour: answers("<h1>Hello</h1>"), param: "embedding", says: /is not a list of embeddings/ },
    {
      name: "sends on to another server",
      behaviour: answers("", { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
      param: "embedding",
      says: /redirection/,
    },
    // What fails only when it is measured.
    {
      name: "takes one text and no more",
      behaviour: when(({ body }) => body.input.length > 1, refuses(429, "Slow down")),
      param: "embedding",
      says: /answered 429 \(invalid_request_error\)/,
    },
  ];

  for (const { name, server: options, behaviour, more, param, says } of REFUSED) {
    test(`a provider that ${name} is refused with the reason, and the one before stays as it is`, async () => {
      await using working = startEmbeddingServer({ length: 384 });
      await using server = startEmbeddingServer(options);
      await using cairn = await startCairn();
      await setProvider(cairn, working);
      const [memory] = await addAll(cairn, [TEA]);
      const before = await cairn.settings();
      server.always(behaviour);
      const settings = { ...openai(server), ...more };
      settings.base_url = settings.base_url.replace("BASE", server.baseUrl.replace("/v1", ""));
      const answer = await cairn.patch("/v1/settings", { trace_retention_days: 7, embedding: settings });
      expect(refusal(answer)).toEqual({ status: 400, code: "invalid_request", param });
      expect(answer.body.error.message).toMatch(says);
      expect(await cairn.settings()).toEqual(before);
      await makeVectors(cairn);
      expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toEqual(memory);
      expect(await cairn.search(TEA)).toMatchObject({ data: [{ id: memory.id, score: 1 }] });
    });
  }

  test("a name that leads to a cloud's metadata service is refused, whatever networks webhooks may lead to", async () => {
    await using server = startEmbeddingServer();
    await using cairn = await startCairn({
      environment: { webhooks: { allow_private: true } },
      network: { resolve: () => Promise.resolve(["169.254.169.254"]) },
    });
    const base_url = server.baseUrl.replace("127.0.0.1", "localhost");
    const answer = await setEmbedding(cairn, openai(server, { base_url, api_key: KEY }));
    expect(refusal(answer)).toEqual({ status: 400, code: "invalid_request", param: "embedding.base_url" });
    expect(answer.body.error.message).toContain(`${new URL(base_url).host} is not asked: 169.254.169.254 is`);
    expect(server.requests).toEqual([]);
  });

  test("one that never answers is refused before the connection of whoever asks is given up", async () => {
    await using server = startEmbeddingServer();
    await using cairn = await startCairn();
    server.always(hangs);
    const answer = setEmbedding(cairn, openai(server));
    await server.arrived(1);
    cairn.clock.advance({ ms: 50_000 });
    expect(refusal(await answer)).toEqual({ status: 400, code: "invalid_request", param: "embedding.base_url" });
    expect((await answer).body.error.message).toContain("did not answer within 50 s");
  });

  test("changes at the same time are tried one after the other, each on top of what stands by then", async () => {
    await using one = startEmbeddingServer({ length: 384 });
    await using two = startEmbeddingServer({ length: 768 });
    await using cairn = await startCairn();
    const statuses = await Promise.all(
      [
        openai(one),
        { base_url: "http://127.0.0.1:1/v1" },
        { model: "other-model" },
        { base_url: two.baseUrl },
        { query_prefix: "q: " },
        { api_key: "two words" },
      ].map(async (embedding) => (await setEmbedding(cairn, embedding)).status),
    );
    expect(statuses).toEqual([200, 400, 200, 200, 200, 400]);
    expect((await cairn.settings()).embedding).toMatchObject({
      base_url: { value: two.baseUrl },
      model: { value: "other-model" },
      query_prefix: { value: "q: " },
      vector_length: 768,
    });
    const asked = two.requests.length;
    await addAll(cairn, [TEA]);
    await cairn.search("tea");
    expect(two.requests.slice(asked).map(({ body }) => [body.model, body.input])).toEqual([
      ["other-model", [TEA]],
      ["other-model", ["q: tea"]],
    ]);
    const set = await cairn.settings();
    await cairn.restart();
    expect(await cairn.settings()).toEqual(set);
  });

  test("another key for the same provider makes no vector anew and measures nothing again", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    const before = await setProvider(cairn, server, { api_key: KEY });
    const memories = await addAll(cairn, NOTES(5));
    const asked = server.requests.length;
    const after = (await cairn.ok(setEmbedding(cairn, { api_key: OTHER_KEY }))).embedding;
    expect(after).toEqual({ ...before, vectors: { ready: 5, owed: 0 } });
    await makeVectors(cairn);
    expect(server.batches.slice(asked)).toEqual([[expect.any(String)]]);
    expect(server.requests.at(-1)?.headers.get("authorization")).toBe(`Bearer ${OTHER_KEY}`);
    expect([...(await memoriesOf(cairn)).values()]).toEqual(memories.toReversed());
  });

  test("a slash at the end of the base URL makes no other provider of it", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    await addAll(cairn, NOTES(3));
    await cairn.ok(setEmbedding(cairn, { base_url: `${server.baseUrl}/` }));
    expect(await vectorsOf(cairn)).toEqual({ ready: 3, owed: 0 });
  });

  test("a key goes to the server it was given for and to no other", async () => {
    await using one = startEmbeddingServer({ length: 384 });
    await using two = startEmbeddingServer({ length: 384 });
    await using three = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn({ environment: { embedding: { provider: "openai", base_url: one.baseUrl, api_key: KEY } } });
    await makeVectors(cairn);
    const keys = async (embedding: Record<string, unknown>) => (await cairn.ok(setEmbedding(cairn, embedding))).embedding.api_key;
    expect(await keys({ base_url: two.baseUrl })).toEqual({ set: false, source: "default" });
    expect(await keys({ api_key: OTHER_KEY })).toEqual({ set: true, source: "setting" });
    expect(await keys({ base_url: three.baseUrl })).toEqual({ set: false, source: "default" });
    expect(await keys({ base_url: "" })).toEqual({ set: true, source: "environment" });
    const sent = [one, two, three].map(({ requests }) => [...new Set(requests.map(({ headers }) => headers.get("authorization")))]);
    expect(sent).toEqual([[`Bearer ${KEY}`], [null, `Bearer ${OTHER_KEY}`], [null]]);
  });

  test("a provider that hardly tells anything apart is set, with a warning", async () => {
    await using server = startEmbeddingServer({ length: 2 });
    await using cairn = await startCairn();
    const { separation } = await setProvider(cairn, server);
    expect(separation).toBeLessThan(0.8);
    expect(log(cairn)).toContainEqual({
      level: "warn",
      message: "the embedding provider hardly tells what is related from what is not",
      separation,
    });
  });
});

describe("scores", () => {
  for (const unrelated of [0, 0.3, 0.75]) {
    test(`with texts that have nothing in common at a cosine of ${unrelated}, 1 is the text itself and 0.7 parts what is about the query`, async () => {
      await using server = startEmbeddingServer({ length: 1024, unrelated });
      await using cairn = await startCairn();
      await setProvider(cairn, server);
      await addAll(cairn, [TEA, CHESS, RENT]);
      expect(await cairn.search(TEA)).toMatchObject({ data: [{ content: TEA, score: 1 }] });
      for (const [query, content] of [
        ["Does the customer like coffee or green tea?", TEA],
        ["Who plays chess under the name of rook42?", CHESS],
        ["Has the landlord raised the rent?", RENT],
      ] as const) {
        const { data } = await cairn.search(query, { threshold: 0 });
        expect([query, data[0].content, data[0].score >= 0.7, data[0].score < 1, data[1].score < 0.7]).toEqual([
          query,
          content,
          true,
          true,
          true,
        ]);
      }
      expect((await cairn.search("Unit tests run on every commit.")).data).toEqual([]);
    });
  }

  test("the cosine that counts as about the query can be set by hand, and given back to the probes", async () => {
    await using server = startEmbeddingServer({ length: 1024, unrelated: 0.3 });
    await using cairn = await startCairn();
    const measured = (await setProvider(cairn, server)).relevant_cosine;
    await addAll(cairn, [TEA]);
    const asked = server.requests.length;
    const query = "Does the customer prefer green tea?";
    const score = async () => (await cairn.search(query, { threshold: 0 })).data[0].score;
    const before = await score();
    const set = (await cairn.ok(setEmbedding(cairn, { relevant_cosine: 0.9 }))).embedding;
    expect(set.relevant_cosine).toEqual({ value: 0.9, default: measured.value, source: "setting" });
    expect(await score()).toBeLessThan(before);
    await cairn.restart();
    expect((await cairn.settings()).embedding.relevant_cosine).toEqual(set.relevant_cosine);
    expect((await cairn.ok(setEmbedding(cairn, { relevant_cosine: null }))).embedding.relevant_cosine).toEqual(measured);
    expect(await score()).toBe(before);
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, owed: 0 });
    // Nothing was tried or measured: it was asked for the query alone, before the restart and after.
    expect(server.batches.slice(asked)).toEqual([[query], [query]]);
  });

  test("it can be set while the provider is down", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    server.always(DOWN);
    expect(refusal(await cairn.post("/v1/memory/search", { query: "tea" }))).toEqual(UNAVAILABLE);
    expect((await cairn.ok(setEmbedding(cairn, { relevant_cosine: 0.5 }))).embedding).toMatchObject({
      relevant_cosine: { value: 0.5, source: "setting" },
      state: { available: false },
    });
  });
});

describe("while the provider is down", () => {
  test("whoever searches is told neither where it is nor what it says; the operator is", async () => {
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

  test("memories are stored at once and owed, searches say what is wrong, and all else works", async () => {
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
    expect(idsOf((await cairn.ok(cairn.get("/v1/memory"))).data)).toEqual([second.id, first.id, before.id]);
    await cairn.setState(session.id, { step: 1 });
    await cairn.addTurn(session.id);
    const { id } = await cairn.addMemory(session.id, "tea", { embed: false });
    expect((await cairn.delete(`/v1/memory/${id}`)).status).toBe(200);
    expect((await cairn.settings()).embedding).toMatchObject({
      state: { available: false, reason: "The embedding provider answered 404 (invalid_request_error)" },
      vectors: { ready: 0, owed: 3 },
    });
    expect([server.requests.length, cairn.clock.pauses.length]).toEqual([asked, pauses]);

    // What is owed survives a restart, and is made when the provider is back.
    await cairn.restart();
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, owed: 3 });
    expect(await cairn.runTaskOnce(EMBEDDINGS)).toBeGreaterThan(0);
    server.always(undefined);
    cairn.clock.advance({ ms: 5_000 });
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 3, owed: 0 });
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
      { level: "info", message: "the embedding provider works again", ready: 0, owed: 3 },
    ]);
  });

  test("it is asked whether it is back after 5 s, 10 s, 20 s and so on, and never while it is not time", async () => {
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
  });

  test("a search that fails has the provider looked at soon, without a memory to be stored", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    const [memory] = await addAll(cairn, [TEA]);
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

  test("whoever stores a memory waits 2.5 s for a provider that is slow, and no longer", async () => {
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
      // A few milliseconds have passed already, in which texts are gathered for one request.
      cairn.clock.advance({ ms: 2_490 });
      // Others are served meanwhile.
      await cairn.setState(session.id, { step: 1 });
      expect(isAnswered).toBe(false);
      cairn.clock.advance({ ms: 10 });
      expect(await answer).toMatchObject({ vector_available: false });
    }
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, owed: 2 });
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
      vectors: { ready: 1, owed: 0 },
    });
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ id: memory.id, score: 1 }] });
  });

  test("a provider that answers but cannot be measured is not asked again and again", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    server.always(when(({ body }) => body.input.length > 1, refuses(422, "One at a time, and none of these")));
    await using cairn = await startCairn({ environment: { embedding: { provider: "openai", base_url: server.baseUrl } } });
    expect(await cairn.runTaskOnce(EMBEDDINGS)).toBeGreaterThanOrEqual(5_000);
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
    cairn.service.embeddings.close();
    await probing;
    expect([refusal(await change), refusal(await nextChange)]).toEqual([UNAVAILABLE, UNAVAILABLE]);
    expect((await cairn.settings()).embedding.base_url.value).toBe(server.baseUrl);
    await cairn[Symbol.asyncDispose]();
  });

  test("closing ends a search and the storing of a memory that wait for the provider", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    const cairn = await startCairn();
    await setProvider(cairn, server);
    const session = await cairn.createSession();
    const asked = server.requests.length;
    server.always(hangs);
    const search = cairn.post("/v1/memory/search", { query: "tea" });
    const memory = cairn.addMemory(session.id, TEA);
    await server.arrived(asked + 2);
    cairn.service.embeddings.close();
    expect(refusal(await search)).toEqual(UNAVAILABLE);
    expect(await memory).toMatchObject({ vector_available: false });
    await cairn[Symbol.asyncDispose]();
  });
});

describe("a text that the provider refuses for itself", () => {
  const refusesWord = when(({ body }) => body.input.some((text) => text.includes("rent")), refuses(400, "Indecent: rent"));

  test("stays owed without holding up others, is told once, and is offered again an hour later", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    const cairn = await startCairn();
    const memories = await addAll(cairn, [...NOTES(150), RENT]);
    const refused = memories.filter(({ content }) => content.includes("rent"));
    await setProvider(cairn, server);
    server.always(refusesWord);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: memories.length - refused.length, owed: refused.length });
    expect((await cairn.settings()).embedding.state).toEqual({ available: true });
    expect(await areFound(cairn, 1)).toBe(true);

    // No hot loop: nothing is sent, whether the task comes by or another memory wakes it.
    const asked = server.requests.length;
    cairn.clock.advance({ ms: 60_000 });
    await makeVectors(cairn);
    await makeVectors(cairn);
    expect(server.requests.length).toBe(asked);
    const told = () => log(cairn).filter(({ message }) => String(message).includes("refuses"));
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
    expect(await vectorsOf(cairn)).toEqual({ ready: memories.length, owed: 0 });
  });

  test("is offered again at once when it is changed, and when another provider is set", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using other = startEmbeddingServer({ length: 768 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    server.always(refusesWord);
    const [one, two] = await addAll(cairn, [RENT, `${RENT} Or not.`]);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, owed: 2 });
    expect(await cairn.ok(cairn.patch(`/v1/memory/${one.id}`, { content: TEA }))).toMatchObject({ vector_available: true });
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, owed: 1 });
    await setProvider(cairn, other);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 2, owed: 0 });
    expect(await cairn.search(two.content)).toMatchObject({ data: [{ id: two.id, score: 1 }] });
  });
});

describe("another provider", () => {
  test("has all vectors made anew in the background, with the progress in settings and log", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.5 });
    await using cairn = await startCairn();
    const memories = await addAll(cairn, NOTES(300));
    const [never] = await addAll(cairn, [TEA], { embed: false });
    expect((await setProvider(cairn, server)).vectors).toEqual({ ready: 0, owed: 300 });
    expect(await cairn.ok(cairn.get(`/v1/memory/${memories[0].id}`))).toMatchObject({ vector_available: false });
    const seen = [];
    while ((await cairn.runTaskOnce(EMBEDDINGS)) === 0) {
      cairn.clock.advance({ seconds: 5 });
      seen.push(await vectorsOf(cairn));
    }
    expect(seen.every(({ ready, owed }) => ready + owed === 300)).toBe(true);
    expect(seen.map(({ ready }) => ready)).toEqual([0, 0, 64, 128, 192, 256, 300]);
    expect(log(cairn).filter(({ message }) => String(message).includes("vectors"))).toEqual([
      ...[0, 0, 0, 64, 128, 192].map((ready) => ({
        level: "info",
        message: "making vectors",
        ready,
        owed: 300 - ready,
        percent: Math.floor((100 * ready) / 300),
      })),
      { level: "info", message: "all vectors are made", ready: 300, owed: 0 },
    ]);
    const after = await memoriesOf(cairn);
    expect(after.get(never.id)).toEqual(never);
    for (const memory of memories) {
      expect(after.get(memory.id)).toEqual({ ...memory, embedding_id: expect.stringMatching(/^emb_/) });
      expect(after.get(memory.id).embedding_id).not.toBe(memory.embedding_id);
    }
  });

  test("answers searches meanwhile from what is ready, with its own scores alone", async () => {
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
    expect(seen.map(({ length }) => length)).toEqual([0, 0, 0, 50, 50, 50, 50]);
    // The score of each is the one that it has in the end, whenever it was found.
    const inTheEnd = new Map<string, number>();
    for (const session_id of sessions) for (const { content, score } of await search({ session_id })) inTheEnd.set(content, score);
    expect(inTheEnd.size).toBe(250);
    expect(seenOfSession.map(({ length }) => length)).toEqual([0, 0, 0, 14, 50, 50, 50]);
    for (const { content, score } of [...seen, ...seenOfSession].flat()) expect([content, score]).toEqual([content, inTheEnd.get(content)]);
    expect(before.some(({ content, score }) => inTheEnd.get(content) === score)).toBe(false);
  });

  test("has a search that was under way ask the new provider", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.6 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(20));
    const { vectors } = cairn.service;
    const nearest = vectors.nearest.bind(vectors);
    let asked = 0;
    vectors.nearest = async (...given) => {
      // The query's vector is made already, all others are made anew before it is compared with them.
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
    server.always(
      when(
        ({ body }) => body.input.length > 40,
        async (_request, usual) => {
          await meddle(step++);
          return usual();
        },
      ),
    );
    for (let wait = 0; wait === 0;) {
      await meddle(step++);
      wait = await cairn.runTaskOnce(EMBEDDINGS);
    }
    await makeVectors(cairn);
    const expected = memories.flatMap(({ id, content }, i) => {
      if (i >= 200 && i < 200 + step) return [];
      return [[id, i < step ? `Changed ${i}: ${TEA}` : content]];
    });
    const after = await memoriesOf(cairn);
    expect(after.size).toBe(expected.length + added.length);
    expect(await vectorsOf(cairn)).toEqual({ ready: after.size, owed: 0 });
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
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, owed: 1 });
    cairn.clock.advance({ seconds: 60 });
    await makeVectors(cairn);
    expect(await cairn.search(CHESS)).toMatchObject({ data: [{ id: memory.id, score: 1 }] });
  });

  test("gets no vector that the one before has made and that comes late", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.6 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(60));
    await setProvider(cairn, server);
    await makeVectors(cairn);
    const expected = await found(cairn);
    await cairn.ok(setEmbedding(cairn, { provider: "local" }));
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
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, owed: 60 });
    await makeVectors(cairn);
    expect(await found(cairn)).toEqual(expected);
  });

  test("goes on where it was after a stop or a crash at any point", async () => {
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
    expect(await vectorsOf(cairn)).toEqual({ ready: 300, owed: 0 });
    for (const directory of crashes) {
      const after = await startCairn({ directory });
      await using _after = after;
      after.key = cairn.key;
      const before = await vectorsOf(after);
      expect(before.ready + before.owed).toBe(300);
      const asked = server.batches.length;
      await makeVectors(after);
      expect(await vectorsOf(after)).toEqual({ ready: 300, owed: 0 });
      // None is paid for twice.
      expect(server.batches.slice(asked).flat().length).toBe(before.owed);
      expect((await memoriesOf(after)).size).toBe(memories.length);
      expect(await found(after)).toEqual(expected);
    }
  }, 60_000);

  test("is in the index as if it had been there from the start, also with an index on disk from before, and back again", async () => {
    await using server = startEmbeddingServer({ length: 384, unrelated: 0.3 });
    const contents = NOTES(400);
    const fresh = await startCairn();
    await using _fresh = fresh;
    await setProvider(fresh, server);
    await addAll(fresh, contents);
    const expected = await found(fresh);

    await using cairn = await startCairn();
    await addAll(cairn, contents);
    const before = await found(cairn);
    await cairn.service.vectors.save();
    const atFirst = [...(await memoriesOf(cairn)).values()];
    await setProvider(cairn, server);
    await makeVectors(cairn);
    expect(await found(cairn)).toEqual(expected);
    expect(await areFound(cairn, 400)).toBe(true);

    const crashed = await startCairn({ directory: copyOf(cairn) });
    await using _crashed = crashed;
    crashed.key = cairn.key;
    expect(await found(crashed)).toEqual(expected);
    expect(await areFound(crashed, 400)).toBe(true);

    await cairn.restart();
    expect(await found(cairn)).toEqual(expected);
    await cairn.ok(setEmbedding(cairn, { provider: "local" }));
    await makeVectors(cairn);
    expect(await found(cairn)).toEqual(before);
    expect(await areFound(cairn, 400)).toBe(true);
    expect(await vectorsOf(cairn)).toEqual({ ready: 400, owed: 0 });
    const known = new Set(atFirst.map(({ embedding_id }) => embedding_id));
    expect([...(await memoriesOf(cairn)).values()].filter(({ embedding_id }) => known.has(embedding_id))).toEqual([]);
    await cairn.restart();
    expect(await found(cairn)).toEqual(before);
    expect(await areFound(cairn, 400)).toBe(true);
  }, 60_000);

  test("answers a search that was under way with the one before", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await setProvider(cairn, server);
    await addAll(cairn, [TEA]);
    const asked = server.requests.length;
    server.next(hangs);
    const search = cairn.search(TEA);
    await server.arrived(asked + 1);
    await cairn.ok(setEmbedding(cairn, { provider: "local" }));
    expect(await search).toMatchObject({ data: [] });
    await makeVectors(cairn);
    expect(await cairn.search(TEA)).toMatchObject({ data: [{ score: 1 }] });
  });

  test("set by the environment of the next start counts in the same way", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await addAll(cairn, NOTES(20));
    const next = await startCairn({
      directory: copyOf(cairn),
      environment: { embedding: { provider: "openai", base_url: server.baseUrl } },
    });
    await using _next = next;
    next.key = cairn.key;
    expect(await vectorsOf(next)).toEqual({ ready: 0, owed: 20 });
    await makeVectors(next);
    expect(await vectorsOf(next)).toEqual({ ready: 20, owed: 0 });
    expect((await next.search(NOTES(1)[0]!)).data[0]).toMatchObject({ content: NOTES(1)[0], score: 1 });
  });

  test("set while the one before is being measured keeps its place over a restart", async () => {
    await using slow = startEmbeddingServer({ length: 384 });
    await using server = startEmbeddingServer({ length: 768 });
    await using cairn = await startCairn({ environment: { embedding: { provider: "openai", base_url: slow.baseUrl } } });
    const release = Promise.withResolvers<void>();
    slow.always(
      when(
        ({ body }) => body.input.length > 1,
        async (_request, usual) => {
          await release.promise;
          return usual();
        },
      ),
    );
    const measuring = cairn.runTaskOnce(EMBEDDINGS);
    await slow.arrived(2);
    await setProvider(cairn, server);
    await addAll(cairn, [TEA]);
    release.resolve();
    await measuring;
    const set = (await cairn.settings()).embedding;
    expect(set).toMatchObject({ vector_length: 768, vectors: { ready: 1, owed: 0 } });
    await cairn.restart();
    expect((await cairn.settings()).embedding).toEqual(set);
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
  expect(await vectorsOf(cairn)).toEqual({ ready: 10, owed: 0 });
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

test("the provider's key is in the settings' row and nowhere else: no answer, no log, no trace, no other row", async () => {
  await using server = startEmbeddingServer({ length: 384, apiKey: KEY });
  await using cairn = await startCairn();
  const said: string[] = [];
  const say = async (answer: ReturnType<typeof setEmbedding>) => {
    const { status, headers, body } = await answer;
    said.push(JSON.stringify([status, Object.fromEntries(headers), body]));
  };
  await say(setEmbedding(cairn, openai(server, { api_key: KEY }), { "Idempotency-Key": "once" }));
  await say(setEmbedding(cairn, openai(server, { api_key: KEY }), { "Idempotency-Key": "once" }));
  await say(setEmbedding(cairn, openai(server, { api_key: OTHER_KEY })));
  await say(setEmbedding(cairn, { api_key: `${KEY} ` }));
  await say(setEmbedding(cairn, { api_key: { is: KEY } }));
  await say(cairn.get("/v1/settings"));
  await addAll(cairn, [TEA]);
  server.always((request) => Response.json({ error: { message: `No: ${request.headers.get("authorization")}` } }, { status: 401 }));
  await addAll(cairn, [CHESS]);
  await cairn.runTaskOnce(EMBEDDINGS);
  await say(cairn.post("/v1/memory/search", { query: "tea" }));
  await say(cairn.get("/v1/settings"));
  await say(cairn.get("/v1/traces"));
  expect(said.map((text) => JSON.parse(text)[0])).toEqual([200, 200, 400, 400, 400, 200, 503, 200, 200]);
  for (const text of [...said, ...cairn.logged]) {
    expect(text).not.toContain(KEY);
    expect(text).not.toContain(OTHER_KEY);
  }
  const { store } = cairn.service;
  expect(JSON.stringify(store.latest.rows(idempotency, { from: "", to: "~" }))).not.toContain(KEY);
  await cairn.close();
  for (const { name, parentPath } of readdirSync(cairn.directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )) {
    const bytes = readFileSync(join(parentPath, name)).toString("latin1");
    expect([name, bytes.includes(OTHER_KEY)]).toEqual([name, false]);
    // Older pages of the store may still hold the row as well: it is written anew with every change.
    const places = bytes.split(KEY).slice(0, -1);
    expect([name, places.every((before) => before.endsWith('"embedding.api_key":"'))]).toEqual([name, true]);
    if (name !== "data.mdb") expect([name, places.length]).toEqual([name, 0]);
  }
  await cairn.open();
});
