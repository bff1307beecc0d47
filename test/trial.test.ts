/**
 * Trying an embedding provider: what it would do, without setting it.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { hangs, refuses, startEmbeddingServer } from "./support/embedding-server.ts";
import { openai } from "./support/providers.ts";

const attempt = (cairn: Cairn, body: object = {}) => cairn.ok(cairn.post("/v1/settings/embedding/try", body));
const WORKS = { object: "embedding_trial", works: true, reason: null, param: null };

test("the provider that is set is tried with a pair of texts, and scores it as a search does", async () => {
  await using cairn = await startCairn();
  const built = await attempt(cairn);
  expect(built).toEqual({ ...WORKS, duration_ms: expect.any(Number), vector_length: 384, separation: null, score: expect.any(Number) });
  const pair = { query: "Where is the key of the shed?", content: "The key of the shed hangs behind the door." };
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, pair.content);
  const [{ score }] = (await cairn.search(pair.query, { threshold: 0 })).data;
  // That of a stored vector is a little less exact.
  expect((await attempt(cairn, pair)).score).toBeCloseTo(score, 3);
  expect((await attempt(cairn, { query: "…", content: "…" })).works).toBe(true);
});

test("another provider is tried and nothing of it is saved, neither its settings nor a trace", async () => {
  await using server = startEmbeddingServer({ length: 768 });
  await using cairn = await startCairn();
  const before = [await cairn.settings(), await cairn.list("/v1/traces")];
  const trial = await attempt(cairn, { embedding: openai(server, { api_key: "sk-of-the-trial" }) });
  expect(trial).toMatchObject({ ...WORKS, vector_length: 768, separation: expect.any(Number) });
  expect(trial.score).toBeWithin(0, 1.000001);
  expect(server.requests.every(({ headers }) => headers.get("authorization") === "Bearer sk-of-the-trial")).toBe(true);
  expect([await cairn.settings(), await cairn.list("/v1/traces")]).toEqual(before);
});

test("a provider that does not work is no error of the request: the answer says why, and which setting is likely wrong", async () => {
  await using server = startEmbeddingServer({ apiKey: "sk-right" });
  await using cairn = await startCairn();
  const unknown = { object: "embedding_trial", works: false, duration_ms: null, vector_length: null, separation: null, score: null };
  const trial = await attempt(cairn, { embedding: openai(server, { api_key: "sk-wrong" }) });
  expect(trial).toEqual({ ...unknown, reason: expect.any(String), param: "embedding.api_key" });
  const nowhere = await attempt(cairn, { embedding: { provider: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "sk-x" } });
  expect(nowhere).toMatchObject({ ...unknown, param: "embedding.base_url" });
  server.always(refuses(500, "out of order"));
  expect(await attempt(cairn, { embedding: openai(server, { api_key: "sk-right" }) })).toMatchObject(unknown);
});

test("of a server that is no embedding server, on this machine or in a private network, a trial repeats nothing", async () => {
  await using cairn = await startCairn();
  let reply = () => new Response("root:x:0:0", { status: 500 });
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => reply() });
  const embedding = { provider: "openai", base_url: `http://127.0.0.1:${server.port}/v1`, api_key: "sk-x" };
  expect((await attempt(cairn, { embedding })).reason).toBe("The embedding provider answered 500");
  reply = () => new Response("root:x:0:0");
  expect((await attempt(cairn, { embedding })).reason).not.toContain("root");
  // What embedding servers say helps to set one up.
  reply = () => Response.json({ error: "There is no such model." }, { status: 404 });
  expect((await attempt(cairn, { embedding })).reason).toBe("The embedding provider answered 404: There is no such model.");
  expect(cairn.logged.join("\n")).not.toContain("root:x");
});

test("one provider is tried at a time, and unknown settings are refused by their names", async () => {
  await using server = startEmbeddingServer();
  await using cairn = await startCairn();
  server.always(hangs);
  const first = attempt(cairn, { embedding: openai(server) });
  await cairn.clock.waiting(50_000);
  expect(refusal(await cairn.post("/v1/settings/embedding/try", {}))).toEqual({ status: 503, code: "service_unavailable" });
  cairn.clock.advance({ seconds: 50 });
  expect(await first).toMatchObject({ works: false });
  expect(await attempt(cairn)).toMatchObject({ works: true });
  expect(refusal(await cairn.post("/v1/settings/embedding/try", { embedding: { modell: "x" } }))).toMatchObject({ status: 400 });
});
