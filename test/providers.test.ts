import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { idempotency } from "../src/storage/tables.ts";
import { errorOf, newestFirst, refusal } from "./support/answers.ts";
import { startCairn, WITH_GRAPH } from "./support/cairn.ts";
import {
  changes,
  hangs,
  refuses,
  startEmbeddingServer,
  when,
  type Behaviour,
  type EmbeddingServerOptions,
} from "./support/embedding-server.ts";
import { fillMemories } from "./support/fill.ts";
import {
  TEA,
  CHESS,
  RENT,
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

const KEY = "sk-providers-0123456789abcdefghijklmn";
const OTHER_KEY = "sk-others-zyxwvutsrqponmlkjihgfedcba";

describe("setting a provider", () => {
  test("it is asked with its model, key and prefixes from then on, and its figures are shown", async () => {
    await using server = startEmbeddingServer({ length: 768, unrelated: 0.4, apiKey: KEY });
    await using cairn = await startCairn();
    const session = await cairn.createSession();
    const set = await setProvider(cairn, server, { api_key: KEY, query_prefix: "search: ", document_prefix: "document: " });
    expect(set).toEqual({
      provider: { value: "openai", default: "builtin", source: "setting" },
      base_url: { value: server.baseUrl, default: "https://api.openai.com/v1", source: "setting" },
      model: { value: "some-model", default: "text-embedding-3-small", source: "setting" },
      api_key: { set: true, source: "setting" },
      query_prefix: { value: "search: ", default: "", source: "setting" },
      document_prefix: { value: "document: ", default: "", source: "setting" },
      dimensions: { value: null, default: null, source: "default" },
      relevant_cosine: { value: set.relevant_cosine.default, default: expect.any(Number), source: "probes" },
      separation: expect.any(Number),
      vector_length: 768,
      state: { available: true },
      vectors: { ready: 0, pending: 0 },
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
    expect((await cairn.settings()).embedding).toEqual({ ...set, vectors: { ready: 1, pending: 0 } });
    expect(log(cairn)).toContainEqual({
      level: "info",
      message: "embedding provider set",
      provider: "openai",
      model: "some-model",
      separation: set.separation,
    });
  });

  test("its vectors may have any length up to 1,536, and one that is set is asked for and checked", async () => {
    await using server = startEmbeddingServer({ length: 1000, dimensions: "take" });
    await using stubborn = startEmbeddingServer({ length: 1000 });
    await using cairn = await startCairn();
    const session = await cairn.createSession();
    for (const dimensions of [null, 8, 100, 1536]) {
      expect(await setProvider(cairn, server, { dimensions })).toMatchObject({ vector_length: dimensions ?? 1000 });
      await makeVectors(cairn);
      await cairn.addMemory(session.id, TEA);
      expect(await cairn.search(TEA, { limit: 1 })).toMatchObject({ data: [{ content: TEA, score: 1 }] });
    }
    expect(errorOf(await setEmbedding(cairn, { base_url: stubborn.baseUrl, dimensions: 100 }))).toEqual({
      status: 400,
      code: "invalid_request",
      param: "embedding.dimensions",
      message: expect.stringContaining("has vectors of 1000 numbers, not of the 100 that embedding.dimensions asks for"),
    });
    expect((await cairn.settings()).embedding).toMatchObject({ dimensions: { value: 1536 }, vector_length: 1536 });
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
    {
      name: "cannot be reached",
      more: { base_url: "http://127.0.0.1:1/v1" },
      param: "embedding.base_url",
      says: /127\.0\.0\.1:1 cannot be reached/,
    },
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
    { name: "has vectors too long", server: { length: 3072 }, param: "embedding", says: /vectors of 3072 numbers; at most 1536/ },
    // What fails only when it is measured.
    {
      name: "takes one text and no more",
      behaviour: when(({ body }) => body.input.length > 1, refuses(429, "Slow down")),
      param: "embedding",
      says: /answered 429 \(invalid_request_error\)/,
    },
  ];

  for (const { name, server: options, behaviour, more, param, says } of REFUSED) {
    test(`a provider that ${name} is refused with the reason, and the previous one stays as it is`, async () => {
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

  test("one that never answers is refused before the client's connection is given up", async () => {
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
    const first = setEmbedding(cairn, openai(one));
    // A database lets requests in that come at once in any order.
    await one.arrived(1);
    const others = [
      { base_url: "http://127.0.0.1:1/v1" },
      { model: "other-model" },
      { base_url: two.baseUrl },
      { query_prefix: "q: " },
      { api_key: "two words" },
    ].map((embedding) => setEmbedding(cairn, embedding));
    const answers = await Promise.all([first, ...others]);
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 200, 200, 400]);
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

  test("another key for the same provider makes no vector and measures nothing again", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    const before = await setProvider(cairn, server, { api_key: KEY });
    const memories = await addAll(cairn, NOTES(5));
    const asked = server.requests.length;
    const after = (await cairn.ok(setEmbedding(cairn, { api_key: OTHER_KEY }))).embedding;
    expect(after).toEqual({ ...before, vectors: { ready: 5, pending: 0 } });
    await makeVectors(cairn);
    expect(server.batches.slice(asked)).toEqual([[expect.any(String)]]);
    expect(server.requests.at(-1)?.headers.get("authorization")).toBe(`Bearer ${OTHER_KEY}`);
    expect(await cairn.list("/v1/memory")).toEqual(newestFirst(memories));
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
      message: "the embedding provider barely tells related texts from unrelated ones",
      separation,
    });
  });
});

describe("scores", () => {
  for (const unrelated of [0, 0.75]) {
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

  test("a name, an id and a date are found by their words among all that the provider puts nearer to the query", async () => {
    await using server = startEmbeddingServer({ base64: "ignore" });
    await using cairn = await startCairn(WITH_GRAPH);
    await setProvider(cairn, server);
    const session = await cairn.createSession();
    const colours = ["red", "green", "blue", "white", "yellow", "brown", "grey"];
    const things = ["boat", "coat", "lamp", "chair", "kettle", "garden", "bicycle", "piano", "carpet", "mirror", "window"];
    const doings = ["was sold", "got lost", "needs repair", "was painted", "came back", "looks old", "is missed"];
    await fillMemories(
      cairn,
      session,
      Array.from({ length: 1_000 }, (_, i) => `The ${colours[i % 7]} ${things[i % 11]} ${doings[Math.floor(i / 77) % 7]}.`),
    );
    const isOpposite = changes(({ data, ...answer }) => ({
      ...answer,
      data: data.map((one) => ({ ...one, embedding: (one["embedding"] as number[]).map((value) => -value) })),
    }));
    const asked = {
      "What about Zbigniew?": "Zbigniew has moved to another town and wants letters to be sent on.",
      "INV-48213": "Nobody knows why invoice INV-48213 was never paid.",
      "What was on May 7, 2024?": "On 2024-05-07 all doors stayed closed, because the locks had frozen.",
    };
    server.always(when(({ body }) => body.input.some((text) => Object.values(asked).includes(text)), isOpposite));
    for (const content of Object.values(asked)) await cairn.addMemory(session.id, content);
    const find = async (query: string) => [query, (await cairn.search(query, { limit: 1 })).data[0]?.content];
    const found = () => Promise.all(Object.keys(asked).map(find));
    expect(Object.fromEntries(await found())).toEqual(asked);
    while (cairn.service.vectors.status.pending > 0) await new Promise(setImmediate);
    expect(Object.fromEntries(await found())).toEqual(asked);
  });

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
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, pending: 0 });
    // Nothing was tried or measured: it was asked for the query alone, before the restart and after.
    expect(server.batches.slice(asked)).toEqual([[query], [query]]);
  });
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
  expect(JSON.stringify(await cairn.read((reader) => reader.rows(idempotency, { from: "", to: "~" })))).not.toContain(KEY);
  await cairn.close();
  for (const { name, parentPath } of readdirSync(cairn.directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )) {
    const bytes = readFileSync(join(parentPath, name)).toString("latin1");
    expect([name, bytes.includes(OTHER_KEY)]).toEqual([name, false]);
    // Older pages of the store may still hold the row as well: it is written with every change.
    const places = bytes.split(KEY).slice(0, -1);
    expect([name, places.every((before) => before.endsWith('"embedding.api_key":"'))]).toEqual([name, true]);
    if (name !== "data.mdb") expect([name, places.length]).toEqual([name, 0]);
  }
  await cairn.open();
});
