/**
 * Signing in: session keys, which browsers hold, and the keys of sign-in links.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { createLink } from "../src/keys/sign-in.ts";
import { apiKeys, deletedKeys } from "../src/storage/tables.ts";
import { refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

const signIn = (cairn: Cairn, key: string = cairn.key, body: object = {}) => cairn.post("/v1/sign_in", body, { key });
const signedIn = (cairn: Cairn, key?: string, body?: object) => cairn.ok(signIn(cairn, key, body));
const newKey = (cairn: Cairn, body: object = {}) => cairn.ok(cairn.post("/v1/api_keys", body));
const statusOf = async (cairn: Cairn, key: string) => (await cairn.get("/v1/sessions", { key })).status;
const newLink = ({ service }: Cairn) => createLink(service, service.system);

const REFUSED = { status: 401, code: "authentication_failed" };

test("a session key has the scopes, the tier and the limits of the key it came from, for twelve hours", async () => {
  await using cairn = await startCairn();
  const made = await newKey(cairn, { name: "agent", scopes: ["read"], tier: "pro" });
  const answer = await signIn(cairn, made.key, { name: "Dashboard in Firefox" });
  expect(answer.status).toBe(201);
  const { id, key, prefix } = answer.body;
  const { key: _, ...source } = made;
  const shown = {
    ...source,
    id,
    prefix,
    kind: "session",
    name: "Dashboard in Firefox",
    expires_at: "2026-05-07T20:00:00.000Z",
    source: made.id,
  };
  expect(answer.body).toEqual({ ...shown, key });
  const { last_used_at, ...current } = await cairn.ok(cairn.get("/v1/api_keys/current", { key }));
  expect([current, last_used_at]).toEqual([{ ...shown, last_used_at: undefined }, "2026-05-07T08:00:00.000Z"]);
  expect(refusal(await cairn.post("/v1/sessions", { agent_id: "a" }, { key }))).toEqual({ status: 403, code: "permission_denied" });
  cairn.clock.advance({ ms: 12 * 3_600_000 - 1 });
  expect(await statusOf(cairn, key)).toBe(200);
  cairn.clock.advance({ ms: 1 });
  expect([await statusOf(cairn, key), await statusOf(cairn, made.key)]).toEqual([401, 200]);
});

test("a key of any scope can sign in and see itself", async () => {
  await using cairn = await startCairn();
  for (const scopes of [["read"], ["write"], ["admin"]]) {
    const { key, id } = await newKey(cairn, { scopes });
    const session = await signedIn(cairn, key);
    expect(session).toMatchObject({ kind: "session", name: null, scopes, source: id });
    expect(await cairn.ok(cairn.get("/v1/api_keys/current", { key }))).toMatchObject({ id, kind: "key", source: null });
    expect(await cairn.ok(cairn.get("/v1/api_keys/current", { key: session.key }))).toMatchObject({ id: session.id, scopes });
  }
});

test("a session key never outlives the key it came from: not its end, its revocation, nor its roll", async () => {
  await using cairn = await startCairn();
  const [ending, revoked, rolled] = [await newKey(cairn, { expires_at: "2026-05-07T09:00:00Z" }), await newKey(cairn), await newKey(cairn)];
  const sessions = [await signedIn(cairn, ending.key), await signedIn(cairn, revoked.key), await signedIn(cairn, rolled.key)];
  expect(sessions[0].expires_at).toBe(ending.expires_at);
  await cairn.ok(cairn.delete(`/v1/api_keys/${revoked.id}`));
  expect(refusal(await cairn.get("/v1/sessions", { key: sessions[1].key }))).toEqual(REFUSED);
  expect((await cairn.get(`/v1/api_keys/${sessions[1].id}`)).status).toBe(404);
  const next = await cairn.ok(cairn.post(`/v1/api_keys/${rolled.id}/roll`, { overlap_seconds: 60 }));
  cairn.clock.advance({ seconds: 59 });
  expect(await statusOf(cairn, sessions[2].key)).toBe(200);
  cairn.clock.advance({ seconds: 1 });
  expect([await statusOf(cairn, sessions[2].key), await statusOf(cairn, next.key)]).toEqual([401, 200]);
  cairn.clock.advance({ hours: 1 });
  expect(await statusOf(cairn, sessions[0].key)).toBe(401);
});

test("signing out ends the session key at once, after a restart too, and no other", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await signedIn(cairn), await signedIn(cairn)];
  const answer = await cairn.delete("/v1/api_keys/current", { key: one.key });
  expect([answer.status, answer.body]).toEqual([200, { object: "api_key", id: one.id, deleted: true }]);
  await cairn.restart();
  expect(refusal(await cairn.delete("/v1/api_keys/current", { key: one.key }))).toEqual(REFUSED);
  expect([await statusOf(cairn, other.key), await statusOf(cairn, cairn.key)]).toEqual([200, 200]);
});

test("a key that is no session key is not ended as the current one, and a session key cannot sign in or be rolled", async () => {
  await using cairn = await startCairn();
  const session = await signedIn(cairn);
  expect(refusal(await cairn.delete("/v1/api_keys/current"))).toEqual({ status: 400, code: "invalid_request" });
  expect(refusal(await signIn(cairn, session.key))).toEqual({ status: 400, code: "invalid_request" });
  expect(refusal(await cairn.post(`/v1/api_keys/${session.id}/roll`, {}))).toMatchObject({ status: 400, param: "key_id" });
  expect(await cairn.list("/v1/api_keys")).toHaveLength(2);
});

test("the key of a link is good for signing in, once, within ten minutes, and for nothing else", async () => {
  await using cairn = await startCairn();
  const link = await newLink(cairn);
  const paths = ["/v1/sessions", "/v1/api_keys", "/v1/api_keys/current", "/v1/settings", "/v1/traces", "/metrics"];
  for (const path of paths) {
    const { status, text } = await cairn.plain("GET", path, { key: link });
    expect([path, status, JSON.parse(text).error.code]).toEqual([path, 403, "permission_denied"]);
  }
  for (const [method, path] of [
    ["POST", "/v1/sessions"],
    ["DELETE", "/v1/api_keys/current"],
  ] as const)
    expect(refusal(await cairn.request(method, path, { key: link, body: { agent_id: "a" } }))).toMatchObject({ status: 403 });
  const session = await signedIn(cairn, link);
  expect(session).toMatchObject({ kind: "session", scopes: ["admin"], source: null, expires_at: "2026-05-07T20:00:00.000Z" });
  expect(await statusOf(cairn, session.key)).toBe(200);
  expect(refusal(await signIn(cairn, link))).toEqual(REFUSED);

  const late = await newLink(cairn);
  cairn.clock.advance({ seconds: 600 });
  expect(refusal(await signIn(cairn, late))).toEqual(REFUSED);
});

test("of requests that use one link at the same time one is signed in", async () => {
  await using cairn = await startCairn();
  const link = await newLink(cairn);
  const statuses = (await Promise.all(Array.from({ length: 8 }, () => signIn(cairn, link)))).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(1);
  expect(statuses.filter((status) => status === 401)).toHaveLength(7);
  expect(await cairn.list("/v1/api_keys?kind=session")).toHaveLength(1);
});

test("a sign-in that is repeated with its Idempotency-Key gives the same session key", async () => {
  await using cairn = await startCairn();
  const again = () => cairn.post("/v1/sign_in", {}, { headers: { "Idempotency-Key": "once" } });
  const [first, second] = [await again(), await again()];
  expect(second.body).toEqual(first.body);
  expect(second.headers.get("Idempotency-Replayed")).toBe("true");
  expect(await cairn.list("/v1/api_keys?kind=session")).toHaveLength(1);
});

test("a session key shares the rate limit of the key it came from, so that signing in gives no more requests", async () => {
  await using cairn = await startCairn();
  const { key } = await newKey(cairn, { tier: "enterprise", rate_limit: { per_minute: 1, burst: 4 } });
  const sessions = [await signedIn(cairn, key), await signedIn(cairn, key)];
  const statuses = [];
  for (const session of [...sessions, ...sessions]) statuses.push(await statusOf(cairn, session.key));
  expect(statuses).toEqual([200, 200, 429, 429]);
});

test("a key has at most 100 session keys: one more ends the oldest", async () => {
  await using cairn = await startCairn();
  const { key } = await newKey(cairn, { tier: "pro" });
  const sessions = [];
  for (let i = 0; i < 100; i++) sessions.push(await signedIn(cairn, key));
  const other = await signedIn(cairn);
  expect(refusal(await signIn(cairn, key))).toEqual({ status: 429, code: "rate_limit_exceeded" });
  cairn.clock.advance({ seconds: 60 });
  sessions.push(await signedIn(cairn, key));
  const [first, second, last] = [sessions[0], sessions[1], sessions[100]];
  expect([await statusOf(cairn, first.key), await statusOf(cairn, second.key)]).toEqual([401, 200]);
  expect([await statusOf(cairn, last.key), await statusOf(cairn, other.key)]).toEqual([200, 200]);
});

test("a key signs in 100 times after a pause, then ten times a minute", async () => {
  await using cairn = await startCairn();
  const { key } = await newKey(cairn, { tier: "pro" });
  const statuses = async (count: number) => {
    const given: number[] = [];
    for (let i = 0; i < count; i++) given.push((await signIn(cairn, key)).status);
    return given;
  };
  expect((await statuses(101)).lastIndexOf(201)).toBe(99);
  expect((await signIn(cairn, key)).headers.get("Retry-After")).toBe("6");
  cairn.clock.advance({ seconds: 60 });
  expect(await statuses(11)).toEqual([...Array(10).fill(201), 429]);
});

test("keys are listed by their kind, newest first and page by page", async () => {
  await using cairn = await startCairn();
  const link = await newLink(cairn);
  const sessions = [await signedIn(cairn), await signedIn(cairn), await signedIn(cairn)].map(({ id }) => id).toReversed();
  const { id } = await newKey(cairn);
  const idsOf = async (query: string) => (await cairn.list(`/v1/api_keys?${query}`)).map((key) => key.id);
  expect(await idsOf("kind=session")).toEqual(sessions);
  expect(await idsOf("kind=session&limit=2")).toEqual(sessions.slice(0, 2));
  expect(await idsOf(`kind=session&starting_after=${sessions[1]}`)).toEqual(sessions.slice(2));
  expect(await idsOf("kind=key")).toEqual([id, expect.any(String)]);
  expect(await cairn.list("/v1/api_keys?kind=link")).toMatchObject([{ kind: "link", prefix: link.slice(0, 8) }]);
  expect(await idsOf("limit=100")).toHaveLength(6);
});

test("an admin session key is not the last admin key, and may be revoked when it is the only other one", async () => {
  await using cairn = await startCairn();
  const [first] = await cairn.list("/v1/api_keys");
  const session = await signedIn(cairn);
  const refused = await cairn.delete(`/v1/api_keys/${first.id}`, { key: session.key });
  expect(refusal(refused)).toEqual({ status: 400, code: "invalid_request", param: "force" });
  expect((await cairn.delete(`/v1/api_keys/${session.id}`)).status).toBe(200);
});

test("signing in, out, and what a link makes leave traces with the kind of the key, and no secret", async () => {
  await using cairn = await startCairn();
  const session = await signedIn(cairn, await newLink(cairn), { name: "Firefox" });
  await cairn.ok(cairn.delete("/v1/api_keys/current", { key: session.key }));
  const traces = (await cairn.list("/v1/traces")).filter(({ details }) => details.kind !== "key");
  const details = { kind: "session", key_id: session.id, name: "Firefox" };
  expect(traces).toMatchObject([
    { action: "api_key.revoked", actor: session.prefix, details: { ...details, reason: "signed out" } },
    { action: "api_key.created", details: { ...details, expires_at: session.expires_at } },
    { action: "api_key.created", actor: "system", details: { kind: "link", name: "sign-in link" } },
  ]);
  expect(JSON.stringify(traces)).not.toContain(session.key);
});

test("session and link keys that have ended are removed, and leave nothing behind", async () => {
  await using cairn = await startCairn();
  const count = () => cairn.count(apiKeys);
  const ending = await newKey(cairn, { expires_at: "2026-05-07T09:00:00Z" });
  await newLink(cairn);
  await signedIn(cairn);
  await signedIn(cairn, ending.key);
  expect(await count()).toBe(5);
  await cairn.runTaskOnce("key expiry");
  expect(await count()).toBe(5);
  cairn.clock.advance({ hours: 1 });
  await cairn.runTaskOnce("key expiry");
  expect((await cairn.list("/v1/api_keys")).map(({ kind }) => kind)).toEqual(["session", "key", "key"]);
  cairn.clock.advance({ hours: 11 });
  await cairn.runTaskOnce("key expiry");
  expect(await count()).toBe(2);
  expect(await cairn.counts([apiKeys.index.byEnd, apiKeys.index.bySource, deletedKeys])).toEqual([0, 0, 0]);
});
