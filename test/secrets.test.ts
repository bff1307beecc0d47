/**
 * The setting `secrets`: what becomes of keys, tokens and numbers of cards in what clients send.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { keptJson } from "../src/storage/erasure.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { idempotency, RECORD_TABLES, TABLES, type IdempotencyRow } from "../src/storage/tables.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { type Markers, useEverythingAs } from "./support/marked.ts";
import { REQUESTS } from "./support/requests.ts";
import { startReceiver } from "./support/receiver.ts";
import { githubToken, SecretMarkers } from "./support/secrets.ts";
import { isOnPostgres } from "./support/stores.ts";
import { startServer } from "./support/server.ts";
import { GENERATIONS } from "./support/mcp.ts";

const TOKEN = githubToken();
const TEXT = `The deploy key is ${TOKEN}.`;
const REDACTED = "The deploy key is [redacted:github_token].";
const CARD = "4111 1111 1111 1111";

/** A Cairn without the built-in embedding, which takes long to start. */
const startWith = (secrets: string, more: Record<string, unknown> = {}) =>
  startCairn({ environment: { secrets, embedding: { provider: "words" }, ...more } });

const redaction = (path: string, kind = "github_token", count = 1) => ({ path, kind, count });

/** A change of each way in that takes a text, what of the answer has the text, and the path of that. */
function waysIn(
  session: string,
  memory: string,
): { name: string; send: (cairn: Cairn, text: string) => Promise<any>; path: string; of: (body: any) => unknown }[] {
  const at = `/v1/sessions/${session}`;
  const turn = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } };
  const way = (name: string, method: string, path: string, body: (text: string) => unknown, param: string, of: (body: any) => unknown) => ({
    name,
    send: (cairn: Cairn, text: string) => cairn.request(method, path, { body: body(text) }),
    path: param,
    of,
  });
  return [
    way(
      "a session",
      "POST",
      "/v1/sessions",
      (text) => ({ agent_id: "a", initial_state: { a: [{ b: text }] } }),
      "initial_state.a.0.b",
      (body) => body.state.a[0].b,
    ),
    way(
      "metadata of a session",
      "PATCH",
      at,
      (text) => ({ metadata: { text } }),
      "metadata.text",
      (body) => body.metadata.text,
    ),
    way(
      "a state",
      "POST",
      `${at}/state`,
      (text) => ({ state: { text } }),
      "state.text",
      (body) => body.state.text,
    ),
    way(
      "keys of a state",
      "PATCH",
      `${at}/state`,
      (text) => ({ state: { text } }),
      "state.text",
      (body) => body.state.text,
    ),
    way(
      "a turn",
      "POST",
      `${at}/turns`,
      (text) => ({ ...turn, input: { type: "text", content: text } }),
      "input.content",
      (body) => body.input.content,
    ),
    way(
      "reasoning",
      "POST",
      `${at}/turns`,
      (text) => ({ ...turn, reasoning: text }),
      "reasoning",
      (body) => body.reasoning,
    ),
    way(
      "turns",
      "POST",
      `${at}/turns/batch`,
      (text) => ({ turns: [turn, { ...turn, output: { type: "text", content: text } }] }),
      "turns[1].output.content",
      (body) => body.data[1].output.content,
    ),
    way(
      "a step",
      "POST",
      `${at}/turns`,
      (text) => ({ ...turn, memories: [{ content: "one" }, { content: text }] }),
      "memories[1].content",
      (body) => body.memories[1].content,
    ),
    way(
      "a memory",
      "POST",
      "/v1/memory",
      (text) => ({ user_id: "ada", content: text }),
      "content",
      (body) => body.content,
    ),
    way(
      "tags",
      "POST",
      "/v1/memory",
      (text) => ({ user_id: "ada", content: "tagged", tags: ["x", text] }),
      "tags.1",
      (body) => body.tags[1],
    ),
    way(
      "memories",
      "POST",
      "/v1/memory/batch",
      (text) => ({ memories: [1, 2, 3].map((n) => ({ user_id: "ada", content: n === 3 ? text : `n ${n}` })) }),
      "memories[2].content",
      (body) => body.data[2].content,
    ),
    way(
      "a change",
      "PATCH",
      `/v1/memory/${memory}`,
      (text) => ({ content: text }),
      "content",
      (body) => body.content,
    ),
    way(
      "a StateBase memory",
      "POST",
      "/v1/memories",
      (text) => ({ session_id: session, content: text }),
      "content",
      (body) => body.content,
    ),
    way(
      "a StateBase change",
      "PATCH",
      `/v1/memories/${memory}`,
      (text) => ({ metadata: { text } }),
      "metadata.text",
      (body) => body.metadata.text,
    ),
  ];
}

async function start(secrets: string, more: Record<string, unknown> = {}) {
  const cairn = await startWith(secrets, more);
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "A first content.");
  return { cairn, id, ways: waysIn(id, memory.id) };
}

test("with redact the text is stored without its secrets at every way in, and the answer says where and what they were", async () => {
  const { cairn, id, ways } = await start("redact");
  await using _ = cairn;
  for (const { name, send, path, of } of ways) {
    const { status, body } = await send(cairn, TEXT);
    expect([name, status < 300, of(body), body.redacted]).toEqual([name, true, REDACTED, [redaction(path)]]);
    expect([name, (await send(cairn, "Nothing to hide.")).body.redacted]).toEqual([name, undefined]);
  }
  const batch = { user_id: "ada", operations: [{ op: "put", namespace: ["n"], key: "k", value: { deep: [TEXT, { [TOKEN]: CARD }] } }] };
  expect((await cairn.post("/v1/documents/batch", batch)).body).toMatchObject({
    redacted: [
      redaction("operations.0.value.deep.0"),
      redaction("operations.0.value.deep.1.[redacted:github_token]"),
      redaction("operations.0.value.deep.1.[redacted:github_token]", "card_number"),
    ],
  });
  const rolledBack = await cairn.rollback(id, 0, { reason: `${TOKEN} ${githubToken(2)}` });
  expect(rolledBack.redacted).toEqual([redaction("reason", "github_token", 2)]);
  const memory = await cairn.addMemory(id, "To be deleted.");
  expect((await cairn.delete(`/v1/memory/${memory.id}?reason=${TOKEN}`)).body).toMatchObject({
    deleted: true,
    redacted: [redaction("reason")],
  });
});

test("with block a request that has a secret is 400 at every way in, names the place, repeats no secret and changes nothing", async () => {
  const { cairn, id, ways } = await start("block");
  await using _ = cairn;
  const before = await cairn.counts(RECORD_TABLES);
  for (const { name, send, path } of ways) {
    const { status, body } = await send(cairn, TEXT);
    expect([name, status, body.error]).toMatchObject([name, 400, { code: "invalid_request", param: path }]);
    expect(body.error.message).toStartWith(`${path} has a secret (github_token)`);
    expect(JSON.stringify(body)).not.toContain(TOKEN);
  }
  const named = await cairn.post(`/v1/sessions/${id}/state`, { state: { [TOKEN]: 1 } });
  expect(named.body.error.param).toBe("state.[redacted:github_token]");
  expect((await cairn.delete(`/v1/sessions/${id}?reason=${TOKEN}`)).body.error.param).toBe("reason");
  expect(await cairn.counts(RECORD_TABLES)).toEqual(before);
  for (const { name, send } of ways) expect([name, (await send(cairn, "Nothing to hide.")).status < 300]).toEqual([name, true]);
});

test("with tag a record is stored as it is, marked with the kinds of its secrets, and found by these", async () => {
  const { cairn, id, ways } = await start("tag");
  await using _ = cairn;
  for (const { name, send, of } of ways) {
    const { body } = await send(cairn, TEXT);
    expect([name, of(body), body.redacted]).toEqual([name, TEXT, undefined]);
    const records = body.memories ?? body.data ?? [body];
    expect([name, records.at(-1).secrets]).toEqual([name, ["github_token"]]);
  }
  const filter = (value: unknown) => encodeURIComponent(JSON.stringify({ secrets: value }));
  const marked = await cairn.list(`/v1/memory?filter=${filter({ $contains: "github_token" })}`);
  expect(marked.length).toBeGreaterThan(3);
  expect(marked.every(({ secrets }) => secrets.includes("github_token"))).toBe(true);
  expect(await cairn.list(`/v1/memory?filter=${filter({ $contains: "jwt" })}`)).toEqual([]);
  const unmarked = await cairn.list(`/v1/memory?filter=${filter({ $exists: false })}`);
  expect(unmarked.length).toBeGreaterThan(2);
  expect(unmarked.every(({ secrets }) => secrets === undefined)).toBe(true);
  expect((await cairn.list(`/v1/turns?filter=${filter({ $exists: true })}`)).length).toBe(3);
  expect((await cairn.list("/v1/sessions?has_secrets=true")).map((one) => one.id)).toContain(id);
  expect((await cairn.list("/v1/sessions?has_secrets=false")).map((one) => one.id)).not.toContain(id);
  expect((await cairn.list(`/v1/sessions/${id}/versions`)).map((one) => one.secrets)).toEqual([["github_token"], undefined]);
});

test("a mark goes with what it is of: with another content, a rollback and a fork", async () => {
  const { cairn, id } = await start("tag");
  await using _ = cairn;
  const memory = await cairn.addMemory(id, TEXT, { metadata: { card: CARD } });
  expect(memory.secrets).toEqual(["card_number", "github_token"]);
  const change = (body: object) => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, body));
  expect((await change({ content: "No more." })).secrets).toEqual(["card_number"]);
  expect((await change({ metadata: { card: null } })).secrets).toBeUndefined();
  await cairn.setState(id, { text: TEXT, step: 1 });
  const patch = (state: object) => cairn.ok(cairn.patch(`/v1/sessions/${id}/state`, { state }));
  expect((await patch({ step: 2 })).secrets).toEqual(["github_token"]);
  expect((await patch({ text: null })).secrets).toBeUndefined();
  expect((await cairn.session(id)).secrets).toBeUndefined();
  const fork = (version: number) => cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { version }));
  expect((await fork(1)).secrets).toEqual(["github_token"]);
  expect((await fork(3)).secrets).toBeUndefined();
  expect((await cairn.rollback(id, 1)).secrets).toEqual(["github_token"]);
  await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { card: CARD } }));
  expect((await cairn.setState(id, { step: 3 })).secrets).toEqual(["card_number"]);
  expect((await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { card: null } }))).secrets).toBeUndefined();
});

test("a setting changes what becomes of secrets while the server runs, and what counts as one", async () => {
  await using cairn = await startWith("off");
  const session = await cairn.createSession();
  const personal = "Ada is ada@example.com, +44 20 7946 0958.";
  const contentOf = async (content: string) => (await cairn.addMemory(session.id, content)).content;
  const set = (settings: object) => cairn.ok(cairn.patch("/v1/settings", settings));
  expect(await contentOf(TEXT)).toBe(TEXT);
  await set({ secrets: "redact" });
  expect(await contentOf(`${TEXT} ${personal} ${CARD}`)).toBe(`${REDACTED} ${personal} [redacted:card_number]`);
  await set({ secret_kinds: "email, phone" });
  expect(await contentOf(`${TEXT} ${personal} ${CARD}`)).toBe(`${TEXT} Ada is [redacted:email], [redacted:phone]. ${CARD}`);
  await set({ secrets: null, secret_kinds: null });
  expect(await contentOf(TEXT)).toBe(TEXT);
  for (const wrong of ["", "keys,", "cards,passwords"]) {
    const answer = await cairn.patch("/v1/settings", { secret_kinds: wrong });
    if (wrong !== "") expect(answer.body.error).toMatchObject({ code: "invalid_request", param: "secret_kinds" });
  }
});

test("secrets are counted by kind and by what became of them", async () => {
  const { cairn, id } = await start("redact");
  await using _ = cairn;
  await cairn.setState(id, { a: TEXT, b: [TOKEN, CARD] });
  await cairn.ok(cairn.patch("/v1/settings", { secrets: "block" }));
  for (const server of cairn.services.keys()) await cairn.post(`/v1/sessions/${id}/state`, { state: { a: TOKEN } }, { server });
  const metrics = await Promise.all([...cairn.services.keys()].map((server) => cairn.plain("GET", "/metrics", { server })));
  const counted = (name: string) =>
    metrics.reduce((sum, { text }) => sum + Number(new RegExp(`^cairn_secrets_${name} (\\d+)$`, "m").exec(text)?.[1]), 0);
  expect(counted('redacted_total{kind="github_token"}'.replaceAll(/[{}]/g, String.raw`\$&`))).toBe(2);
  expect(counted('redacted_total{kind="card_number"}'.replaceAll(/[{}]/g, String.raw`\$&`))).toBe(1);
  expect(counted('blocked_total{kind="github_token"}'.replaceAll(/[{}]/g, String.raw`\$&`))).toBe(cairn.services.length);
  expect(counted('tagged_total{kind="github_token"}'.replaceAll(/[{}]/g, String.raw`\$&`))).toBe(0);
});

test("a request with an Idempotency-Key is answered again, says again what was taken out, and its fingerprint does not tell of it", async () => {
  const { cairn, id } = await start("redact");
  await using _ = cairn;
  const send = (text: string) => cairn.post("/v1/memory", { session_id: id, content: text }, { headers: { "Idempotency-Key": "once" } });
  const first = await send(TEXT);
  const again = await send(TEXT);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.body).toEqual(first.body);
  expect(first.body.redacted).toEqual([redaction("content")]);
  // Another secret in its place makes the same text.
  expect((await send(TEXT.replace(TOKEN, githubToken(2)))).body.id).toBe(first.body.id);
  expect((await send("Another text.")).body.error).toMatchObject({ code: "invalid_request", param: "Idempotency-Key" });
});

test("a key that may not read learns what was taken out of what it sent", async () => {
  const { cairn, id } = await start("redact");
  await using _ = cairn;
  const key = await cairn.newKey({ scopes: ["write"] });
  const { body } = await cairn.post(`/v1/sessions/${id}/state`, { state: { text: TEXT } }, { key });
  expect(body).toMatchObject({ object: "session", redacted: [redaction("state.text")] });
  expect(body.state).toBeUndefined();
});

/** Fields whose texts are names of records, or filters and queries, which find records. */
const NAMES = /external_id$|^(?:namespace|key|key of nobody's|a memory's name)$|(?:filter|namespace|cursor|starting_after) name$|filter$/;

/** Where secrets are, by the names of the tables. */
async function copiesOf(cairn: Cairn, markers: Markers): Promise<string[]> {
  const everything = { from: "", to: MAX_KEY };
  const found: string[] = [];
  for (const table of TABLES) {
    const keys = await cairn.read((reader) => reader.keys(table, everything));
    found.push(...markers.foundIn(keys.join("\n")));
  }
  for (const table of RECORD_TABLES) {
    const rows: unknown[] = (await cairn.read((reader) => reader.rows(table, everything))).map(({ row }) => row);
    const texts = rows.map((row) => (table.name === idempotency.name ? keptJson(row as IdempotencyRow) : JSON.stringify(row)));
    found.push(...markers.foundIn(texts.join("\n")));
  }
  return [...new Set(found)];
}

test("with redact no secret of any field is anywhere in the store, its files, the log or what webhooks deliver, after every operation", async () => {
  await using cairn = await startWith("redact", { retrieval_log: true });
  await using receiver = startReceiver(() => new Response("ok"));
  await cairn.subscribe(receiver.url);
  const { markers } = await useEverythingAs(cairn, "eve", "agent", new SecretMarkers("eve"));
  await cairn.deliver();
  const sent = [...markers.texts.keys()];
  expect(sent.length).toBeGreaterThanOrEqual(REQUESTS.length / 4);
  const others = (found: string[]) => found.filter((field) => !NAMES.test(field));
  expect(sent.filter((field) => NAMES.test(field)).length).toBeLessThan(sent.length / 3);
  expect(others(await copiesOf(cairn, markers))).toEqual([]);
  expect(others(receiver.received.flatMap((request) => markers.foundIn(JSON.stringify(request))))).toEqual([]);
  expect(markers.foundIn(cairn.logged.join("\n"))).toEqual([]);
  if (isOnPostgres) return;
  const files = readdirSync(cairn.directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { parentPath, name } of files)
    expect([name, others(markers.foundIn(readFileSync(join(parentPath, name))))]).toEqual([name, []]);
});

test("the tools of MCP say what was taken out, and refuse what is to be refused", async () => {
  await using server = await startServer({ environment: { secrets: "redact", embedding: { provider: "words" } } });
  const { cairn, port } = server;
  const [connect] = Object.values(GENERATIONS);
  await using mcp = await connect!({ url: `http://127.0.0.1:${port}/mcp?user_id=ada`, headers: { "X-API-Key": cairn.key } });
  const answerOf = async (tool: string, input: Record<string, unknown>) => (await mcp.call(tool, input)).structuredContent;
  expect(await answerOf("add_memory", { content: TEXT })).toMatchObject({ content: REDACTED, redacted: [redaction("content")] });
  expect(await answerOf("update_state", { changes: { text: TEXT } })).toMatchObject({
    state: { text: REDACTED },
    redacted: [redaction("state.text")],
  });
  expect(await answerOf("rollback_state", { reason: TOKEN })).toMatchObject({ redacted: [redaction("reason")] });
  expect(await answerOf("add_turn", { input: "in", output: TEXT })).toMatchObject({ redacted: [redaction("output.content")] });
  expect(await answerOf("start_session", { initial_state: { text: TEXT } })).toMatchObject({ redacted: [redaction("initial_state.text")] });
  await cairn.ok(cairn.patch("/v1/settings", { secrets: "block" }));
  expect(await mcp.refusal("add_memory", { content: TEXT })).toStartWith("invalid_request: content has a secret (github_token)");
});
