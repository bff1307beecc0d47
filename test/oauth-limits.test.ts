/**
 * OAuth 2.1 for `/mcp` with what hostile or careless applications send, and the end of a grant with that of its key.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { startCairn } from "./support/cairn.ts";
import { asking, codeIn, form, PUBLIC, registration, statusOf, VERIFIER } from "./support/oauth.ts";

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
