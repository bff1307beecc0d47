import { expect, test } from "bun:test";
import { MAX_KEY } from "../src/storage/keys.ts";
import { idempotency, versions } from "../src/storage/tables.ts";
import { errorOf } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";

const set = (cairn: Cairn, values: Record<string, unknown>) => cairn.ok(cairn.patch("/v1/settings", values));

async function kept(cairn: Cairn, id: string): Promise<number[]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions/${id}/versions?limit=100`));
  return data.map(({ version }: { version: number }) => version);
}

test("of a session's versions the newest are kept, and the initial one; what was removed is said to be", async () => {
  await using cairn = await startCairn();
  await set(cairn, { state_versions_kept: 3 });
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  for (let step = 1; step <= 3; step++) await cairn.setState(id, { step });
  expect(await kept(cairn, id)).toEqual([3, 2, 1, 0]);
  await cairn.setState(id, { step: 4 });
  await cairn.setState(id, { step: 5 });
  expect(await kept(cairn, id)).toEqual([5, 4, 3, 0]);
  const removed = {
    status: 404,
    code: "version_not_found",
    param: "version",
    message: `Session ${id} has no version 2 any more: only its newest 3 and version 0 are kept (setting state_versions_kept).`,
  };
  const path = `/v1/sessions/${id}`;
  expect(errorOf(await cairn.get(`${path}/versions/2`))).toMatchObject(removed);
  expect(errorOf(await cairn.post(`${path}/rollback`, { version: 2 }))).toMatchObject(removed);
  expect(errorOf(await cairn.post(`${path}/fork`, { version: 2 }))).toMatchObject(removed);
  expect(errorOf(await cairn.post(`${path}/rollback`, { version: -3 }))).toMatchObject({
    ...removed,
    message: removed.message.replace("version 2", "version -3"),
  });
  expect(errorOf(await cairn.get(`${path}/versions/6`))).toMatchObject({
    message: `Session ${id} has no version 6; its versions are 0 to 5.`,
  });
  expect(await cairn.ok(cairn.post(`${path}/fork`, { version: 3 }))).toMatchObject({ state: { step: 3 }, state_version: 0 });
  expect(await cairn.rollback(id, 3)).toMatchObject({ state: { step: 3 }, state_version: 6 });
  expect(await cairn.rollback(id, 0)).toMatchObject({ state: { step: 0 }, state_version: 7 });
  expect(await kept(cairn, id)).toEqual([7, 6, 5, 0]);
  expect(await cairn.ok(cairn.get(`${path}/versions?limit=2&starting_after=6`))).toMatchObject({ has_more: false, last_id: "0" });
  await cairn.ok(cairn.delete(path));
  expect(await cairn.read((reader) => reader.keys(versions, { from: "", to: MAX_KEY }))).toHaveLength(1);
});

test("a lower state_versions_kept takes effect a few versions at a time, a higher one brings none back", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (let step = 1; step <= 40; step++) await cairn.setState(id, { step });
  expect(await kept(cairn, id)).toHaveLength(41);
  await set(cairn, { state_versions_kept: 2 });
  expect(await kept(cairn, id)).toHaveLength(41);
  await cairn.setState(id, { step: 41 });
  expect(await kept(cairn, id)).toEqual([...Array.from({ length: 33 }, (_, i) => 41 - i), 0]);
  for (let step = 42; step <= 48; step++) await cairn.setState(id, { step });
  expect(await kept(cairn, id)).toEqual([48, 47, 0]);
  await set(cairn, { state_versions_kept: 1_000 });
  await cairn.setState(id, { step: 49 });
  expect(await kept(cairn, id)).toEqual([49, 48, 47, 0]);
});

/** Adds memories until that is refused. @returns the refusal */
async function fill(cairn: Cairn, session: string): Promise<ReturnType<typeof errorOf>> {
  for (let i = 0; i < 2_000; i++) {
    // No database can compress it.
    const content = Array.from({ length: 700 }, (_, j) => Bun.hash(`${i} ${j}`).toString(36))
      .join(" ")
      .slice(0, 9_000);
    const answer = await cairn.post("/v1/memory", { session_id: session, content, embed: false });
    if (answer.status !== 201) return errorOf(answer);
    // The size of a database is measured each second.
    if (isOnPostgres) cairn.clock.advance({ seconds: 1 });
  }
  throw new Error("nothing was refused");
}

test("beyond max_store_bytes records are refused, and reading, deleting and a higher limit are not", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const max = cairn.service.store.bytesUsed + 1024 * 1024;
  await set(cairn, { max_store_bytes: max });
  expect(await fill(cairn, id)).toMatchObject({
    status: 503,
    message: `The store has reached its limit of ${max} bytes (setting max_store_bytes). Nothing was changed; reading and deleting still work.`,
  });
  expect((await cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } })).status).toBe(503);
  const [{ id: memory }] = await cairn.list("/v1/memory?limit=1");
  await cairn.ok(cairn.delete(`/v1/memory/${memory}`));
  await set(cairn, { max_store_bytes: 2 * max });
  await cairn.setState(id, { step: 1 });
});

onEmbedded("a database keeps what deleted records took for others")(
  "beyond max_store_bytes records are refused and what makes room is not, until there is room again",
  async () => {
    const max = 2 * 1024 * 1024;
    await using cairn = await startCairn({ environment: { max_store_bytes: max } });
    expect((await cairn.settings()).max_store_bytes).toEqual({ value: max, default: null, source: "environment" });
    const [session, other, short] = [
      await cairn.createSession({ metadata: { note: "x".repeat(1_000) } }),
      await cairn.createSession(),
      await cairn.createSession({ ttl_seconds: 60 }),
    ];
    const kept = await cairn.addMemory(other.id, "The parcel came.", { metadata: { note: "x".repeat(1_000) } });
    const full = await fill(cairn, session.id);
    expect(full).toMatchObject({ status: 503, code: "service_unavailable" });
    expect(full.message).toBe(
      `The store has reached its limit of ${max} bytes (setting max_store_bytes). Nothing was changed; reading and deleting still work.`,
    );
    // It was found out before much more was written than is allowed.
    expect(cairn.service.store.bytesUsed).toBeLessThan(max * 1.3);
    const { text } = await cairn.plain("GET", "/metrics");
    expect(text).toContain(`cairn_store_max_bytes ${max}`);
    expect(Number(/^cairn_store_used_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(max);

    const path = `/v1/sessions/${other.id}`;
    const turn = { input: { type: "text", content: "?" }, output: { type: "text", content: "!" } };
    const refused: [string, string, unknown][] = [
      ["POST", "/v1/sessions", { agent_id: "agent" }],
      ["POST", `${path}/state`, { state: {} }],
      ["PATCH", `${path}/state`, { state: { step: 1 } }],
      ["POST", `${path}/rollback`, { version: 0 }],
      ["POST", `${path}/fork`, {}],
      ["POST", `${path}/turns`, turn],
      ["PATCH", path, { metadata: { more: 1 } }],
      ["PATCH", `/v1/memory/${kept.id}`, { tags: ["more"] }],
    ];
    for (const [method, at, body] of refused) {
      const { status, code, message } = errorOf(await cairn.request(method, at, { body }));
      expect([at, status, code, message]).toEqual([at, full.status, full.code, full.message]);
    }
    // The message says it all: the log names no cause beside it.
    const logged = cairn.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === full.message);
    expect(logged.length).toBe(refused.length + 1);
    expect(logged.filter((line) => "cause" in line)).toEqual([]);
    const allowed: [string, string, unknown?][] = [
      ["GET", path],
      ["POST", `${path}/context`, {}],
      ["PATCH", `${path}/state`, { state: {} }],
      ["PATCH", path, { metadata: {} }],
      ["PATCH", `/v1/sessions/${session.id}`, { metadata: { note: null } }],
      ["PATCH", path, { ttl_seconds: 3_600 }],
      ["PATCH", `/v1/memory/${kept.id}`, { metadata: { note: null } }],
      ["POST", "/v1/api_keys", { scopes: ["read"] }],
      ["PATCH", "/v1/settings", { region: "eu" }],
      ["DELETE", `/v1/memory/${kept.id}`],
    ];
    for (const [method, at, body] of allowed) {
      const { status } = await cairn.request(method, at, body === undefined ? {} : { body });
      expect([at, status === 200 || status === 201]).toEqual([at, true]);
    }

    // Expiry continues.
    cairn.clock.advance({ seconds: 61 });
    await cairn.runTask("session expiry");
    expect(await cairn.ok(cairn.get(`/v1/traces?action=session.expired`))).toMatchObject({ data: [{ session_id: short.id }] });
    expect((await cairn.post(`${path}/state`, { state: {} })).status).toBe(503);
    await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
    await cairn.runTask("session removal");
    cairn.clock.advance({ seconds: 1 });
    await cairn.setState(other.id, { step: 1 });

    await fill(cairn, other.id);
    await set(cairn, { max_store_bytes: 2 * max });
    await cairn.setState(other.id, { step: 2 });
    await set(cairn, { max_store_bytes: null });
    expect((await cairn.settings()).max_store_bytes).toMatchObject({ value: max, source: "environment" });
    expect((await cairn.post(`${path}/state`, { state: {} })).status).toBe(503);
  },
);

test("an answer that was given before the store was full is given again for its Idempotency-Key", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const headers = { "idempotency-key": "once" };
  const first = await cairn.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } }, { headers });
  await set(cairn, { max_store_bytes: cairn.service.store.bytesUsed + 1024 * 1024 });
  await fill(cairn, session.id);
  const again = await cairn.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } }, { headers });
  expect([again.status, again.body]).toEqual([200, first.body]);
});

/** A session whose answer hardly can be compressed. */
function largeSession(cairn: Cairn, more: object = {}, length = 900_000) {
  const text = Array.from({ length: length / 11 }, (_, i) =>
    Buffer.from(Bun.hash(String(i)).toString(16).padStart(16, "0"), "hex").toString("base64"),
  );
  return cairn.createSession({ initial_state: { text: text.join("").slice(0, length) }, ...more });
}

test("answers that are kept need room as records do: requests that change nothing cannot fill a store beyond its limit", async () => {
  await using cairn = await startCairn();
  const max = cairn.service.store.bytesUsed + 3 * 1024 * 1024;
  await set(cairn, { max_store_bytes: max });
  const { id } = await largeSession(cairn, { external_id: "thread", metadata: { note: "x".repeat(100) } });
  const batch = {
    operations: [
      { op: "put", namespace: ["n"], key: "k", value: { n: 1 } },
      { op: "put", namespace: ["n"], key: "l", value: { n: 2 } },
    ],
  };
  await cairn.ok(cairn.post("/v1/documents/batch", batch));
  let keys = 0;
  const keyed = () => ({ headers: { "idempotency-key": `k${keys++}` } });
  const statuses = async (send: () => Promise<{ status: number }>) => {
    const given: number[] = [];
    for (let i = 0; i < 30; i++) {
      given.push((await send()).status);
      // The size of a database is measured each second.
      if (isOnPostgres) cairn.clock.advance({ seconds: 1 });
    }
    return given;
  };
  const path = `/v1/sessions/${id}`;
  const changesNothing = await statuses(() => cairn.patch(path, { metadata: {} }, keyed()));
  expect([changesNothing[0], changesNothing.at(-1)]).toEqual([200, 503]);
  expect(changesNothing.filter((status) => status === 200).length).toBeLessThanOrEqual(4);
  const returned = await statuses(() =>
    cairn.post("/v1/sessions", { agent_id: "agent", external_id: "thread", if_exists: "return" }, keyed()),
  );
  expect(new Set(returned)).toEqual(new Set([503]));
  await fill(cairn, id);
  // Each further server keeps one more answer before it has measured again what the others have written.
  const answerBytesMax = 1_200_000;
  expect(cairn.service.store.bytesUsed).toBeLessThan(max * 1.3 + answerBytesMax * (cairn.services.length - 1));
  expect(errorOf(await cairn.patch(path, { metadata: {} }, keyed())).message).toBe(
    `The store has reached its limit of ${max} bytes (setting max_store_bytes). Nothing was changed; reading and deleting still work.`,
  );

  // What was kept is given again, and what keeps nothing, makes room or is an administrator's goes on.
  expect((await cairn.patch(path, { metadata: {} }, { headers: { "idempotency-key": "k0" } })).headers.get("idempotency-replayed")).toBe(
    "true",
  );
  expect((await cairn.patch(path, { metadata: {} })).status).toBe(200);
  const pop = { operations: [{ op: "pop", namespace: ["n"], order: "asc" }] };
  expect((await cairn.ok(cairn.post("/v1/documents/batch", pop, keyed()))).data).toMatchObject([{ key: "k" }]);
  expect((await cairn.post("/v1/documents/batch", { operations: [{ op: "delete", namespace: ["n"], key: "l" }] }, keyed())).status).toBe(
    200,
  );
  // Nothing is there any more: the answer would take room, and make none.
  expect((await cairn.post("/v1/documents/batch", pop, keyed())).status).toBe(503);
  for (const [method, at, body] of [
    ["POST", "/v1/api_keys", { scopes: ["read"] }],
    ["PATCH", "/v1/settings", { region: "eu" }],
  ] as const) {
    const { status } = await cairn.request(method, at, { body, ...keyed() });
    expect([at, status < 300]).toEqual([at, true]);
  }
  await set(cairn, { max_store_bytes: 4 * max });
  await cairn.ok(cairn.patch(path, { metadata: {} }, keyed()));
});

test("an answer of many pages is kept compressed, and given again as it was", async () => {
  await using cairn = await startCairn();
  const words = "The parcel is on its way and arrives tomorrow before noon. ".repeat(2_000);
  const { id } = await cairn.createSession({ initial_state: { words, odd: "é😀\ud800" } });
  const headers = { "idempotency-key": "k" };
  const first = await cairn.plain("PATCH", `/v1/sessions/${id}`, { body: { metadata: {} }, headers });
  const [{ key, row } = { key: "", row: undefined }] = await cairn.read((reader) => reader.rows(idempotency, { from: "", to: MAX_KEY }));
  expect(row!.body.length).toBeLessThan(first.text.length / 10);
  await cairn.setState(id, { words: "others" });
  const again = await cairn.plain("PATCH", `/v1/sessions/${id}`, { body: { metadata: {} }, headers });
  expect([again.text === first.text, again.status, again.headers.get("idempotency-replayed")]).toEqual([true, 200, "true"]);
  expect(await cairn.read((reader) => reader.has(idempotency, key))).toBe(true);
});

test("one key can have only so much kept a day by answers that are larger than what they changed, and others their own share", async () => {
  await using cairn = await startCairn({ keptAnswerBytesMax: 2_500_000 });
  const { id } = await largeSession(cairn, {}, 1_000_000);
  let keys = 0;
  const keyed = (key = cairn.key) => ({ key, headers: { "idempotency-key": `k${keys++}` } });
  const changeNothing = async (options: RequestOptions) => (await cairn.patch(`/v1/sessions/${id}`, { metadata: {} }, options)).status;
  const given: number[] = [];
  for (let i = 0; i < 4; i++) given.push(await changeNothing({ ...keyed(), server: 0 }));
  expect(given).toEqual([200, 200, 429, 429]);
  const refused = await cairn.patch(`/v1/sessions/${id}`, { metadata: {} }, { ...keyed(), server: 0 });
  const { message, param, code } = errorOf(refused);
  const seconds = Number(refused.headers.get("retry-after"));
  expect({ message, param, code }).toEqual({
    message:
      "This API key has used up the 2 MiB that it can have kept in 24 hours of answers that are larger than what they changed. " +
      `Nothing was changed. Send what can be repeated without an Idempotency-Key, or try again in ${seconds} s.`,
    param: "Idempotency-Key",
    code: "rate_limit_exceeded",
  });
  // A change that writes as much as it answers is none of these, and a refused one took nothing.
  for (let i = 0; i < 4; i++) expect((await cairn.post(`/v1/sessions/${id}/turns`, TURN, { ...keyed(), server: 0 })).status).toBe(201);
  expect(await changeNothing({ ...keyed(await cairn.newKey()), server: 0 })).toBe(200);
  expect(await changeNothing({ server: 0 })).toBe(200);
  cairn.clock.advance({ seconds: seconds - 1 });
  expect(await changeNothing({ ...keyed(), server: 0 })).toBe(429);
  cairn.clock.advance({ seconds: 1 });
  expect(await changeNothing({ ...keyed(), server: 0 })).toBe(200);
});

const TURN = { input: { type: "text", content: "?" }, output: { type: "text", content: "!" } };
