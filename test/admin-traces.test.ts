/**
 * Changes of keys, settings and webhooks leave traces, which admin keys alone can read and which hold no secret.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { openRecords } from "../src/operations/open-records.ts";
import { createKey, deleteKey, rollKey } from "../src/keys/keys.ts";
import { bare, NO_PARTITION } from "../src/lib/ids.ts";
import { traces } from "../src/storage/tables.ts";
import { actionCode, isAdminAction, TRACE_ACTIONS } from "../src/traces/events.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { failingCommits, startCairn, type Cairn } from "./support/cairn.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { backupParts, leaveBackupTraces } from "./support/backups.ts";
import { startReceiver } from "./support/receiver.ts";
import { onEmbedded } from "./support/stores.ts";

const URL_WITH_SECRET = "https://hooks.example/T0/B1/a-secret-path?token=a-secret-query";
const SHOWN_URL = "https://hooks.example/…";
const NEW_WEBHOOK = { url: URL_WITH_SECRET, events: ["trace.created"], description: "alerts" };

/** The traces that a change has left, newest first. */
async function tracesOf(cairn: Cairn, change: () => Promise<unknown>): Promise<any[]> {
  const [last] = await cairn.list("/v1/traces?limit=1");
  await change();
  const { data } = await cairn.ok(cairn.get("/v1/traces?limit=100"));
  return data.slice(0, idsOf(data).indexOf(last.id));
}

const newWebhook = (cairn: Cairn, more: object = {}) => cairn.ok(cairn.post("/v1/webhooks", { ...NEW_WEBHOOK, ...more }));
const newKey = (cairn: Cairn, body: object = { name: "agent", tier: "free" }) => cairn.ok(cairn.post("/v1/api_keys", body));

const KEY = { kind: "key", name: "agent", scopes: ["read", "write"], tier: "free" };

/** Each makes one change at last, which leaves a trace of the action that it is named by, and says its details. */
const ACTIONS: Record<string, (cairn: Cairn) => Promise<object>> = {
  async "api_key.created"(cairn) {
    const expires_at = "2027-01-01T00:00:00.000Z";
    const { id, prefix } = await newKey(cairn, { name: "agent", tier: "free", expires_at });
    return { key_id: id, prefix, ...KEY, source: null, rate_limit: { per_minute: 100, burst: 200 }, expires_at };
  },
  async "api_key.rolled"(cairn) {
    const { id, prefix } = await newKey(cairn);
    const rolled = await cairn.ok(cairn.post(`/v1/api_keys/${id}/roll`, { overlap_seconds: 60 }));
    const ends_at = "2026-05-07T08:01:00.000Z";
    return { key_id: id, prefix, ...KEY, rolled_to: rolled.id, rolled_to_prefix: rolled.prefix, ends_at, expires_at: null };
  },
  async "api_key.revoked"(cairn) {
    const { id, prefix } = await newKey(cairn);
    await cairn.ok(cairn.delete(`/v1/api_keys/${id}?reason=left%20us`));
    return { key_id: id, prefix, ...KEY, reason: "left us" };
  },
  async "settings.updated"(cairn) {
    const set = (settings: object) => cairn.ok(cairn.patch("/v1/settings", settings));
    await set({ region: "eu", webhooks: { timeout: "30s" } });
    await set({ trace_retention_days: 400, region: null, webhooks: { timeout: "30s", allow_private: true } });
    return {
      changes: {
        trace_retention_days: { from: 365, to: 400 },
        region: { from: "eu", to: null },
        "webhooks.allow_private": { from: false, to: true },
      },
    };
  },
  async "webhook.created"(cairn) {
    const { id } = await newWebhook(cairn);
    return { webhook_id: id, ...NEW_WEBHOOK, url: SHOWN_URL, enabled: true };
  },
  async "webhook.updated"(cairn) {
    const { id } = await newWebhook(cairn, { enabled: false });
    const changed = { url: "http://other.example/", events: ["trace.error"], description: "alerts", enabled: true };
    await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, changed));
    const changes = {
      url: { from: SHOWN_URL, to: "http://other.example" },
      events: { from: ["trace.created"], to: ["trace.error"] },
      enabled: { from: false, to: true },
    };
    return { webhook_id: id, changes };
  },
  async "webhook.updated, in its path alone"(cairn) {
    const { id } = await newWebhook(cairn);
    await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { url: "https://hooks.example/another-secret-path" }));
    return { webhook_id: id, changes: { url: { from: SHOWN_URL, to: SHOWN_URL } } };
  },
  async "webhook.disabled"(cairn) {
    const { id } = await newWebhook(cairn);
    await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: false }));
    return { webhook_id: id, url: SHOWN_URL, reason: null };
  },
  async "webhook.secret_rotated"(cairn) {
    const { id } = await newWebhook(cairn);
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/rotate_secret`, {}));
    return { webhook_id: id, url: SHOWN_URL, previous_valid_until: "2026-05-08T08:00:00.000Z" };
  },
  async "webhook.deleted"(cairn) {
    const { id } = await newWebhook(cairn);
    await cairn.ok(cairn.delete(`/v1/webhooks/${id}?reason=moved`));
    return { webhook_id: id, url: SHOWN_URL, reason: "moved" };
  },
};

for (const [name, run] of Object.entries(ACTIONS)) {
  test(`a change leaves a trace of no session: ${name}`, async () => {
    await using cairn = await startCairn();
    const details = await run(cairn);
    const [action] = name.split(",");
    const [newest] = await cairn.list("/v1/traces?limit=1");
    expect(newest).toEqual({
      object: "trace",
      id: expect.stringMatching(/^trace_[0-9A-Za-z]{12}$/),
      session_id: null,
      action,
      actor: cairn.key.slice(0, 8),
      timestamp: "2026-05-07T08:00:00.000Z",
      details,
      metadata: { request_id: expect.stringMatching(/^req_/), latency_ms: 0 },
    });
    expect((await cairn.get(`/v1/traces/${newest.id}`)).body).toEqual(newest);
    expect(await cairn.list(`/v1/traces?action=${action}&limit=1`)).toEqual([newest]);
  });
}

test("a webhook that is changed and disabled at once leaves a trace of each", async () => {
  await using cairn = await startCairn();
  const { id } = await newWebhook(cairn);
  const left = await tracesOf(cairn, () => cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: false, description: "paused" })));
  expect(left).toMatchObject([
    { action: "webhook.disabled", details: { webhook_id: id } },
    { action: "webhook.updated", details: { webhook_id: id, changes: { description: { from: "alerts", to: "paused" } } } },
  ]);
});

test("what is refused, changes nothing, or is asked for twice with one Idempotency-Key leaves no further trace", async () => {
  await using cairn = await startCairn();
  const headers = { "idempotency-key": "once" };
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", NEW_WEBHOOK, { headers }));
  const left = await tracesOf(cairn, async () => {
    await cairn.ok(cairn.post("/v1/webhooks", NEW_WEBHOOK, { headers }));
    await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: true, events: NEW_WEBHOOK.events }));
    await cairn.ok(cairn.patch("/v1/settings", { region: null }));
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`, {}));
    await cairn.patch("/v1/settings", { region: "line\nfeed" });
    await cairn.delete("/v1/api_keys/none");
    await cairn.delete("/v1/webhooks/none");
    await cairn.post(`/v1/webhooks/${id}/rotate_secret`, { secret: "short" });
    await cairn.post("/v1/api_keys", { scopes: ["all"] });
    await cairn.post("/v1/api_keys", {}, { key: await cairn.newKey() });
  });
  expect(left.map(({ action, actor }) => [action, actor])).toEqual([["api_key.created", "system"]]);
});

onEmbedded("it has backups")("no secret is in any trace: neither of keys, nor of webhooks, nor of the embedding provider", async () => {
  await using server = startEmbeddingServer();
  using parts = backupParts();
  await using cairn = await startCairn(parts);
  const made = await newKey(cairn, { name: "agent" });
  const rolled = await cairn.ok(cairn.post(`/v1/api_keys/${made.id}/roll`, {}));
  await cairn.ok(cairn.delete(`/v1/api_keys/${rolled.id}`));
  const webhook = await newWebhook(cairn, { secret: "a-webhook-secret-of-ours" });
  const { secret: rotated } = await cairn.ok(cairn.post(`/v1/webhooks/${webhook.id}/rotate_secret`, {}));
  await cairn.ok(cairn.patch(`/v1/webhooks/${webhook.id}`, { url: `${URL_WITH_SECRET}2`, enabled: false }));
  await cairn.ok(cairn.delete(`/v1/webhooks/${webhook.id}`));
  const base_url = `${server.baseUrl}?key=a-secret-of-the-provider`;
  const embedding = { provider: "openai", base_url, api_key: "sk-a-provider-key" };
  const [trace] = await tracesOf(cairn, () => cairn.ok(cairn.patch("/v1/settings", { embedding })));
  expect(trace.details).toEqual({
    changes: {
      "embedding.provider": { from: null, to: "openai" },
      "embedding.base_url": { from: null, to: `${server.baseUrl}?…` },
      "embedding.api_key": { from: { set: false }, to: { set: true } },
    },
  });
  const [again] = await tracesOf(cairn, () => cairn.ok(cairn.patch("/v1/settings", { embedding: { api_key: "sk-another-key" } })));
  expect(again.details).toEqual({ changes: { "embedding.api_key": { from: { set: true }, to: { set: true } } } });
  await cairn.createSession({ user_id: "ada" });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  await leaveBackupTraces(cairn, parts);

  const text = JSON.stringify(await pagesOf(cairn, "/v1/traces?limit=100"));
  for (const secret of [made.key, rolled.key, cairn.key, "a-webhook-secret-of-ours", rotated, "a-secret", "sk-"]) {
    expect({ secret, isShown: text.includes(secret) }).toEqual({ secret, isShown: false });
  }
  for (const action of TRACE_ACTIONS.filter(isAdminAction))
    expect({ action, isShown: text.includes(`"${action}"`) }).toEqual({ action, isShown: true });
});

test("a webhook that the service disables leaves a trace of the system's, with the reason", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 410 }));
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  await cairn.createSession();
  const [trace] = await tracesOf(cairn, () => cairn.deliver());
  expect(trace).toMatchObject({
    session_id: null,
    action: "webhook.disabled",
    actor: "system",
    details: { webhook_id: id, reason: "The receiver answered 410 Gone at 2026-05-07T08:00:00.000Z." },
    metadata: {},
  });
});

test("only a key with the scope admin sees them, in no list, under no filter, and not by id", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read", "write"] });
  const { id, created_at } = await cairn.createSession({ user_id: "ada" });
  const [ofSession] = await cairn.traces(id);
  for (let i = 0; i < 30; i++) await newKey(cairn);
  const { id: last } = await cairn.createSession();
  const [ofLast] = await cairn.traces(last);
  const all = (await pagesOf(cairn, "/v1/traces?limit=7")).flatMap(({ data }) => data);
  const hidden = all.filter(({ session_id }) => session_id === null);
  expect(hidden).toHaveLength(32);

  // Pages are filled with what the key may see, and the last of them says that it is.
  const pages = await pagesOf(cairn, "/v1/traces?limit=1", { key: reader });
  expect(pages.map(({ data, has_more }) => ({ data, has_more }))).toEqual([
    { data: [ofLast], has_more: true },
    { data: [ofSession], has_more: false },
  ]);
  for (const { id: trace, action } of [hidden[0], hidden.at(-1)]) {
    const list = async (query: string) => await cairn.list(`/v1/traces?${query}`, { key: reader });
    expect(await list(`action=${action}`)).toEqual([]);
    expect(await list(`action=${action}&created_after=2020-01-01T00:00:00Z&created_before=2030-01-01T00:00:00Z`)).toEqual([]);
    expect(await list(`action=${action}&session_id=${id}&user_id=ada`)).toEqual([]);
    expect(await list(`created_before=${created_at}`)).toEqual([]);
    expect(refusal(await cairn.get(`/v1/traces/${trace}`, { key: reader }))).toEqual({
      status: 404,
      code: "trace_not_found",
      param: "trace_id",
    });
    // As a cursor it is any id.
    expect(await list(`starting_after=${hidden[0].id}`)).toEqual([ofSession]);
  }
  expect(await cairn.list(`/v1/traces?session_id=null`)).toEqual([]);
});

test("one that names a session all the same, as an import can, is hidden too", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read", "write"] });
  const { id } = await cairn.createSession();
  const [{ id: trace }] = await tracesOf(cairn, () => newKey(cairn));
  const key = actionCode("api_key.created") + bare(trace);
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    tx.put(traces, key, { ...tx.get(traces, key)!, sessionId: id });
  });
  expect(idsOf(await cairn.traces(id))).toContain(trace);
  expect((await cairn.get(`/v1/traces/${trace}`, { key: reader })).status).toBe(404);
  expect((await cairn.list(`/v1/traces?session_id=${id}`, { key: reader })).map(({ action }: any) => action)).toEqual(["session.created"]);
});

onEmbedded("commands open its directory")(
  "a start leaves traces of the keys that it makes, and a command beside the server of those it makes, rolls and revokes",
  async () => {
    const apiKey = `crn_${"a".repeat(24)}`;
    await using cairn = await startCairn({ apiKey });
    cairn.key = apiKey;
    const list = async () => (await cairn.list("/v1/traces")).map(({ action, actor, details }: any) => [action, actor, details.name]);
    expect(await list()).toEqual([["api_key.created", "system", "from the environment"]]);
    await cairn.restart();
    expect(await list()).toHaveLength(1);

    await cairn.ok(cairn.patch("/v1/settings", { trace_retention_days: 10 }));
    const beside = await openRecords(cairn.place, cairn.clock, cairn.place);
    const { operator } = beside;
    const made = JSON.parse(await createKey(beside, operator, { name: "one", scopes: ["read"], tier: "free" }));
    const rolled = JSON.parse(await rollKey(beside, operator, made.id, { overlapMs: 0 }));
    await deleteKey(beside, operator, rolled.id);
    await beside.store.close();
    const left = [
      ["api_key.revoked", "system", "one"],
      ["api_key.rolled", "system", "one"],
      ["api_key.created", "system", "one"],
    ];
    expect((await list()).slice(0, 3)).toEqual(left);
    // Kept as long as the settings say.
    cairn.clock.advance({ days: 10, ms: -1 });
    expect((await list()).slice(0, 3)).toEqual(left);
    cairn.clock.advance({ ms: 1 });
    expect(await list()).toHaveLength(2);
  },
);

test("a webhook that wants every trace gets these too, except that of its own creation", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["trace.created"] }));
  const { id } = await newKey(cairn);
  await cairn.deliver();
  const [trace] = await cairn.list("/v1/traces?limit=1");
  expect(receiver.events).toMatchObject([{ type: "trace.created", data: trace }]);
  expect(trace).toMatchObject({ action: "api_key.created", details: { key_id: id } });
});

test("a trace goes with its change: a commit that fails leaves neither", async () => {
  await using cairn = await startCairn();
  const before = await cairn.count(traces);
  {
    using _ = failingCommits(cairn);
    expect((await cairn.post("/v1/api_keys", {})).status).toBe(500);
    expect((await cairn.post("/v1/webhooks", NEW_WEBHOOK)).status).toBe(500);
    expect((await cairn.patch("/v1/settings", { region: "eu" })).status).toBe(500);
  }
  expect(await cairn.list("/v1/api_keys")).toHaveLength(1);
  expect(await cairn.list("/v1/webhooks")).toEqual([]);
  expect((await cairn.settings()).region.value).toBeNull();
  expect(await cairn.count(traces)).toBe(before);
});

test("a list for a key without the scope admin has no more pages, and names no id, for traces that only admin keys read", async () => {
  await using cairn = await startCairn({ listProbesMax: 30 });
  const key = await cairn.newKey();
  const { id } = await cairn.createSession();
  for (let i = 0; i < 10; i++) await cairn.ok(cairn.request("PATCH", "/v1/settings", { body: { region: `r${i}` } }));
  const list = (query: string) => cairn.ok(cairn.get(`/v1/traces${query}`, { key }));
  expect((await list("")).data).toMatchObject([{ action: "session.created", session_id: id }]);
  expect((await list("?limit=1")).data).toMatchObject([{ session_id: id }]);
  expect((await list("?created_after=2000-01-01T00:00:00Z")).data).toMatchObject([{ session_id: id }]);
  expect(await list("?action=settings.updated")).toEqual({ object: "list", data: [], has_more: false, first_id: null, last_id: null });
});
