/**
 * OAuth 2.1 for `/mcp` with what hostile or careless applications send, and the end of a grant with that of its key.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { createLink } from "../src/keys/sign-in.ts";
import { startCairn } from "./support/cairn.ts";
import { asking, codeIn, connect, form, PUBLIC, registration, statusOf, tools, VERIFIER } from "./support/oauth.ts";
import { SERVERS } from "./support/stores.ts";

const cairn = await startCairn(PUBLIC);
afterAll(() => cairn[Symbol.asyncDispose]());

test("a grant ends no later than the key that consented, also where that was rolled to one that ends sooner", async () => {
  await using own = await startCairn(PUBLIC);
  const { client_id } = await registration(own);
  const admin = await own.ok(own.post("/v1/api_keys", { scopes: ["admin"], expires_at: "2026-05-07T10:30:00Z" }));
  const session = await own.ok(own.post("/v1/sign_in", {}, { key: admin.key }));
  const connectWith = async (key: string) => {
    const grant = await own.ok(own.post("/v1/oauth/grants", asking(client_id), { key }));
    const fields = { grant_type: "authorization_code", client_id, code: codeIn(grant), code_verifier: VERIFIER };
    return { id: grant.key.id, ...(await form(own, "/token", fields)).body };
  };
  const endOf = async ({ id }: { id: string }) => (await own.ok(own.get(`/v1/api_keys/${id}`))).expires_at;
  const connected = [await connectWith(admin.key), await connectWith(session.key)];
  for (const one of connected) expect(await endOf(one)).toStartWith("2026-05-07T10:30:00");
  await own.ok(own.post(`/v1/api_keys/${admin.id}/roll`, { overlap_seconds: 0, expires_at: "2026-05-07T08:30:00Z" }));
  for (const one of connected) expect(await endOf(one)).toStartWith("2026-05-07T08:30:00");
  own.clock.advance({ seconds: 1_800 });
  for (const { access_token, refresh_token } of connected) {
    expect(await statusOf(own, access_token)).toBe(401);
    expect((await form(own, "/token", { grant_type: "refresh_token", client_id, refresh_token })).body.error).toBe("invalid_grant");
  }
});

test("what is no form or no JSON is refused as RFC 6749 says, for pages, too", async () => {
  const sent = { key: null, raw: "{", headers: { "Content-Type": "application/json" } };
  const large = { key: null, raw: `token=${"a".repeat(40_000)}`, headers: { "Content-Type": "application/x-www-form-urlencoded" } };
  for (const [path, what, status] of [
    ["/token", sent, 400],
    ["/revoke", sent, 400],
    ["/register", sent, 400],
    ["/token", large, 413],
  ] as const) {
    const answer = await cairn.post(path, undefined, what);
    expect([path, answer.status, answer.headers.get("access-control-allow-origin"), answer.headers.get("cache-control")]).toEqual([
      path,
      status,
      "*",
      "no-store",
    ]);
    const error = path === "/register" ? "invalid_client_metadata" : "invalid_request";
    expect(answer.body).toEqual({ error, error_description: expect.any(String) });
  }
});

test("an address that asks too often is told so in the same form, and when to try again", async () => {
  await using own = await startCairn(PUBLIC);
  let answer = await form(own, "/token", {});
  for (let i = 0; i < 1_000 && answer.status !== 429; i++) answer = await form(own, "/token", {});
  expect([answer.status, answer.body.error, Number(answer.headers.get("retry-after"))]).toEqual([429, "temporarily_unavailable", 1]);
});

test("a form of thousands of fields costs the token endpoint no more than reading it", async () => {
  await using own = await startCairn(PUBLIC);
  const names = Array.from({ length: 8_000 }, (_, i) => i.toString(36));
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const raw = `grant_type=authorization_code&client_id=x&code=x&code_verifier=x&${names.join("&")}`;
  const costOf = async (path: string, error: string) => {
    const before = process.cpuUsage();
    expect((await own.post(path, undefined, { key: null, raw, headers })).body).toMatchObject({ error });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  let [read, checked] = [Infinity, Infinity];
  for (let run = 0; run < 10 && !(run > 0 && checked < 5 * Math.max(read, 8)); run++) {
    read = Math.min(read, await costOf("/revoke", "invalid_request"));
    checked = Math.min(checked, await costOf("/token", "invalid_grant"));
  }
  expect(checked).toBeLessThan(5 * Math.max(read, 8));
  const twice = await own.post("/token", undefined, { key: null, raw: raw.replace("&code=x", "&code=x&code=y"), headers });
  expect(twice.body).toEqual({ error: "invalid_request", error_description: "code is given twice." });
});

test("strangers who use up what their address has stop no refresh, no exchange of a code and no revocation behind the same proxy", async () => {
  await using own = await startCairn(PUBLIC);
  const app = await connect(own);
  const other = await connect(own);
  const { body } = await app.redeem();
  const made = { grant_type: "refresh_token", client_id: app.client_id, refresh_token: `crn_rt_${"0".repeat(67)}` };
  // Each server counts addresses by itself; they are asked in turn.
  for (let i = 0, refused = 0; i < 2_000 && refused < SERVERS; i++)
    refused = (await form(own, "/token", made)).status === 429 ? refused + 1 : 0;
  expect([(await form(own, "/token", made)).status, (await form(own, "/revoke", { token: made.refresh_token })).status]).toEqual([
    429, 429,
  ]);
  // Of an address without tokens only a small form is read.
  expect((await form(own, "/token", { ...made, refresh_token: body.refresh_token, resource: "r".repeat(9_000) })).status).toBe(429);
  const refreshed = await app.refresh(body.refresh_token);
  expect([refreshed.status, refreshed.headers.get("x-ratelimit-limit")]).toEqual([200, "60000"]);
  const { status: redeemed, body: tokens } = await other.redeem();
  expect([redeemed, (await form(own, "/revoke", { token: tokens.access_token })).status]).toEqual([200, 200]);
  expect((await own.list("/v1/api_keys?kind=oauth")).map(({ id }) => id)).toEqual([app.grant.key.id]);
});

test("a grant has a limit of its own, which its refreshes use up", async () => {
  await using own = await startCairn(PUBLIC);
  const { client_id } = await registration(own);
  const limits = { scopes: ["admin"], tier: "enterprise", rate_limit: { per_minute: 60, burst: 3 } };
  const { key } = await own.ok(own.post("/v1/api_keys", limits));
  const grant = await own.ok(own.post("/v1/oauth/grants", asking(client_id), { key }));
  const redeem = () => form(own, "/token", { grant_type: "authorization_code", client_id, code: codeIn(grant), code_verifier: VERIFIER });
  const { refresh_token } = (await redeem()).body;
  const refresh = () => form(own, "/token", { grant_type: "refresh_token", client_id, refresh_token });
  const answers = [await refresh(), await refresh(), await refresh()];
  expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
    [200, undefined],
    [200, undefined],
    [429, "temporarily_unavailable"],
  ]);
});

test("a refresh that asks for less gets a token with less, and the next one can have all again", async () => {
  const { redeem, refresh } = await connect(cairn);
  const first = (await redeem()).body;
  expect(first.scope).toBe("read write offline_access");
  const answer = await refresh(first.refresh_token, { scope: "read" });
  expect([answer.status, answer.body.scope]).toEqual([200, "read offline_access"]);
  const again = await refresh(first.refresh_token, { scope: "read" });
  expect(again.body).toEqual({ ...answer.body, expires_in: again.body.expires_in });
  const namesOf = async (token: string): Promise<string[]> =>
    (await tools(cairn, token)).body.result.tools.map(({ name }: { name: string }) => name);
  expect(await namesOf(first.access_token)).toContain("add_memory");
  expect(await namesOf(answer.body.access_token)).not.toContain("add_memory");
  const whole = (await refresh(answer.body.refresh_token)).body;
  expect(whole.scope).toBe("read write offline_access");
  expect(await namesOf(whole.access_token)).toContain("add_memory");
  expect((await refresh(whole.refresh_token, { scope: "read admin" })).body.error).toBe("invalid_scope");
});

test("erasing a user ends the grants that are bound to them, also where there is nothing else, and no others", async () => {
  await using own = await startCairn(PUBLIC);
  const [ada, bob, all] = [await connect(own, { user_id: "ada" }), await connect(own, { user_id: "bob" }), await connect(own)];
  const tokens: string[] = [];
  for (const { redeem } of [ada, bob, all]) tokens.push((await redeem()).body.access_token);
  expect(await own.ok(own.get("/v1/users/ada"))).toMatchObject({ id: "ada" });
  expect(await own.ok(own.delete("/v1/users/ada"))).toMatchObject({ status: "done" });
  expect(await Promise.all(tokens.map((token) => statusOf(own, token)))).toEqual([401, 200, 200]);
  const kept = await own.ok(own.get("/v1/api_keys?kind=oauth"));
  expect(kept.data.map(({ user_id }: { user_id: string | null }) => user_id)).toEqual([null, "bob"]);
  const [trace] = await own.list("/v1/traces?action=api_key.revoked");
  expect(trace).toMatchObject({ details: { key_id: ada.grant.key.id, reason: "its user was erased" } });
  expect((await own.get("/v1/users/ada")).status).toBe(404);
  // Connected again, it is another grant.
  const again = await connect(own, { user_id: "ada" });
  expect((await again.redeem()).status).toBe(200);
});

test("a grant that was given from a sign-in link outlives the session of that browser", async () => {
  await using own = await startCairn(PUBLIC);
  const session = await own.ok(own.post("/v1/sign_in", {}, { key: await createLink(own.service, own.service.system) }));
  const { client_id } = await registration(own);
  const grant = await own.ok(own.post("/v1/oauth/grants", asking(client_id), { key: session.key }));
  expect(grant.key.source).toBe(null);
  const fields = { grant_type: "authorization_code", client_id, code: codeIn(grant), code_verifier: VERIFIER };
  const { access_token } = (await form(own, "/token", fields)).body;
  await own.ok(own.delete("/v1/api_keys/current", { key: session.key }));
  expect(await statusOf(own, access_token)).toBe(200);
  await own.ok(own.delete(`/v1/api_keys/${grant.key.id}`));
  expect(await statusOf(own, access_token)).toBe(401);
});
