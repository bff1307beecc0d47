/**
 * OAuth 2.1 for `/mcp`: discovery, registration, consent, codes, tokens, their rotation and their end, and everything that is refused.
 *
 * @module
 */
import { auth as auth2026 } from "@modelcontextprotocol/client";
import { auth as auth2025 } from "@modelcontextprotocol/sdk/client/auth.js";
import { afterAll, expect, test } from "bun:test";
import { LIMITS } from "../src/lib/limits.ts";
import { refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import {
  ISSUER,
  MCP,
  CALLBACK,
  VERIFIER,
  CHALLENGE,
  PUBLIC,
  form,
  registration,
  asking,
  consent,
  codeIn,
  connect,
  LIST,
  MCP_HEADERS,
  tools,
  statusOf,
  type Asked,
} from "./support/oauth.ts";

const cairn = await startCairn(PUBLIC);
afterAll(() => cairn[Symbol.asyncDispose]());

test("what the server says of itself, to any page", async () => {
  const metadata = await cairn.get("/.well-known/oauth-authorization-server", { key: null });
  expect(metadata.body).toEqual({
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/token`,
    registration_endpoint: `${ISSUER}/register`,
    revocation_endpoint: `${ISSUER}/revoke`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    scopes_supported: ["read", "write", "offline_access"],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  });
  expect(metadata.headers.get("access-control-allow-origin")).toBe("*");
  for (const path of ["", "/mcp"])
    expect((await cairn.get(`/.well-known/oauth-protected-resource${path}`, { key: null })).body).toMatchObject({
      resource: MCP,
      authorization_servers: [ISSUER],
      scopes_supported: ["read", "write"],
    });
  expect((await cairn.request("OPTIONS", "/token", { key: null, headers: { Origin: "https://a.example" } })).status).toBe(204);
});

test("/mcp without a valid token says where to get one, whatever the method; other paths do not", async () => {
  const where = `Bearer resource_metadata="${ISSUER}/.well-known/oauth-protected-resource/mcp", scope="read write"`;
  for (const method of ["GET", "POST", "DELETE"]) {
    const answer = await cairn.request(method, "/mcp", { key: null, ...(method === "POST" ? { body: LIST } : {}) });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, where]);
  }
  expect((await tools(cairn, "crn_at_x")).headers.get("www-authenticate")).toBe(`${where}, error="invalid_token"`);
  expect((await cairn.get("/v1/sessions", { key: null })).headers.get("www-authenticate")).toBeNull();
});

test("OAuth is off where no address is known, and on at one of this machine", async () => {
  await using own = await startCairn({ host: "0.0.0.0" });
  const at = (host: string) => own.get("/.well-known/oauth-protected-resource/mcp", { key: null, headers: { Host: host } });
  expect((await at("localhost:8700")).body).toMatchObject({ resource: "http://localhost:8700/mcp" });
  expect(refusal(await at("cairn.example.com"))).toEqual({ status: 404, code: "resource_not_found" });
  const mcp = await own.request("GET", "/mcp", { key: null, headers: { Host: "cairn.example.com" } });
  expect([mcp.status, mcp.headers.get("www-authenticate")]).toEqual([401, null]);
  const { client_id } = await registration(own);
  expect(refusal(await own.post("/v1/oauth/grants", asking(client_id)))).toEqual({
    status: 400,
    code: "invalid_request",
    param: "resource",
  });
  const local = "http://127.0.0.1:8700/mcp";
  const { key } = await consent(own, asking(client_id, { resource: local }));
  expect(key).toMatchObject({ kind: "oauth", client_id });
});

for (const [name, auth] of [
  ["2025", auth2025],
  ["2026", auth2026],
] as const) {
  test(`the client of the SDK of ${name} registers, gets consent, tokens, and new ones`, async () => {
    const seen: { client?: any; tokens?: any; verifier: string; location?: URL } = { verifier: "" };
    const provider = {
      redirectUrl: CALLBACK,
      clientMetadata: { client_name: "Notes", redirect_uris: [CALLBACK], grant_types: ["authorization_code", "refresh_token"] },
      clientInformation: () => seen.client,
      saveClientInformation: (client: any) => void (seen.client = client),
      tokens: () => seen.tokens,
      saveTokens: (tokens: any) => void (seen.tokens = tokens),
      redirectToAuthorization: (location: URL) => void (seen.location = location),
      saveCodeVerifier: (verifier: string) => void (seen.verifier = verifier),
      codeVerifier: () => seen.verifier,
      state: () => "state",
    };
    const fetchFn = (async (url: string | URL, init: RequestInit = {}) => {
      const { pathname, search } = new URL(url);
      const headers = Object.fromEntries(new Headers(init.headers));
      const raw = init.body === undefined || init.body === null ? {} : { raw: await new Response(init.body).text() };
      const answer = await cairn.plain(init.method ?? "GET", pathname + search, { key: null, headers, ...raw });
      return new Response(answer.text, { status: answer.status, headers: answer.headers });
    }) as typeof fetch;
    const run = (more: object = {}) => (auth as any)(provider, { serverUrl: MCP, fetchFn, ...more });
    expect(await run()).toBe("REDIRECT");
    const parameters = Object.fromEntries(seen.location?.searchParams ?? []);
    const handed = await cairn.plain("GET", `/authorize${seen.location?.search}&key=crn_x&prompt=consent`, { key: null });
    const [page, passed] = (handed.headers.get("location") ?? "").split("#");
    expect([handed.status, page, new URLSearchParams(passed).has("key")]).toEqual([302, "/dashboard/authorize", false]);
    const asked = Object.fromEntries(new URLSearchParams(passed)) as Asked;
    expect(asked).toEqual(expect.objectContaining({ client_id: parameters["client_id"], resource: MCP, state: "state" }));
    expect(await cairn.ok(cairn.post("/v1/oauth/requests", asked))).toMatchObject({
      client_name: "Notes",
      redirects_to_this_machine: true,
    });
    const back = new URL((await consent(cairn, asked)).redirect_to);
    expect([back.searchParams.get("state"), back.searchParams.get("iss")]).toEqual(["state", ISSUER]);
    const code = back.searchParams.get("code");
    expect(await run({ authorizationCode: code, iss: ISSUER, callbackParams: back.searchParams })).toBe("AUTHORIZED");
    const first = seen.tokens;
    expect((await tools(cairn, first.access_token)).body.result.tools.length).toBeGreaterThan(5);
    expect(await run()).toBe("AUTHORIZED");
    expect(seen.tokens.access_token).not.toBe(first.access_token);
    expect(await statusOf(cairn, seen.tokens.access_token)).toBe(200);
  });
}

test("a code is redeemed once, within a minute, by who asked for it: a second use ends the grant", async () => {
  const { grant, redeem } = await connect(cairn);
  const refused = async (fields: object) => {
    const { status, body } = await redeem(fields);
    return [status, body.error];
  };
  expect(await refused({ client_id: "another" })).toEqual([400, "invalid_grant"]);
  expect(await refused({ redirect_uri: "http://127.0.0.1:5001/callback" })).toEqual([400, "invalid_grant"]);
  expect(await refused({ code_verifier: "w".repeat(43) })).toEqual([400, "invalid_grant"]);
  expect(await refused({ code_verifier: CHALLENGE.slice(1) })).toEqual([400, "invalid_grant"]);
  expect(await refused({ code_verifier: "" })).toEqual([400, "invalid_request"]);
  expect(await refused({ resource: "https://other.example.com/mcp" })).toEqual([400, "invalid_target"]);
  expect(await refused({ code: `${codeIn(grant).slice(0, -1)}_` })).toEqual([400, "invalid_grant"]);
  expect(await refused({ code: "crn_ac_x" })).toEqual([400, "invalid_grant"]);
  const { status, body, headers } = await redeem({ resource: `${MCP.replace("cairn", "CAIRN")}/` });
  expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(body).toMatchObject({ token_type: "Bearer", expires_in: 3600, scope: "read write offline_access" });
  expect(await statusOf(cairn, body.access_token)).toBe(200);
  expect(await refused({})).toEqual([400, "invalid_grant"]);
  expect(await statusOf(cairn, body.access_token)).toBe(401);
  expect(refusal(await cairn.get(`/v1/api_keys/${grant.key.id}`))).toEqual({ status: 404, code: "resource_not_found", param: "key_id" });

  const late = await connect(cairn);
  cairn.clock.advance({ seconds: 60 });
  expect((await late.redeem()).body.error).toBe("invalid_grant");
});

test("a token opens /mcp and nothing else, for an hour, at the address that it is for", async () => {
  const { redeem } = await connect(cairn);
  const { access_token: token, refresh_token } = (await redeem()).body;
  for (const key of [token, refresh_token]) expect((await cairn.get("/v1/sessions", { key })).status).toBe(401);
  expect(await statusOf(cairn, refresh_token)).toBe(401);
  expect(await statusOf(cairn, `${token.slice(0, -1)}_`)).toBe(401);
  cairn.clock.advance({ seconds: 3_599 });
  expect(await statusOf(cairn, token)).toBe(200);
  cairn.clock.advance({ seconds: 1 });
  expect(await statusOf(cairn, token)).toBe(401);

  await using local = await startCairn();
  const { client_id } = await registration(local);
  const { redirect_to } = await consent(local, asking(client_id, { resource: "http://127.0.0.1:8700/mcp" }));
  const fields = {
    grant_type: "authorization_code",
    client_id,
    code: codeIn({ redirect_to }),
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  };
  const given = (await form(local, "/token", fields)).body;
  const at = async (Host: string) =>
    (await local.post("/mcp", LIST, { key: null, headers: { ...MCP_HEADERS, Host, Authorization: `Bearer ${given.access_token}` } }))
      .status;
  expect([await at("127.0.0.1:8700"), await at("127.0.0.1:8701"), await at("localhost:8700")]).toEqual([200, 401, 401]);
});

test("a refresh token is good once; for a minute the former one gets the same answer, and ends the grant after that", async () => {
  const { redeem, refresh } = await connect(cairn);
  const first = (await redeem()).body;
  expect((await refresh(first.refresh_token, { client_id: "another" })).body.error).toBe("invalid_grant");
  expect((await refresh(first.refresh_token, { scope: "read admin" })).body.error).toBe("invalid_scope");
  expect((await refresh(first.refresh_token, { resource: "https://other.example.com/mcp" })).body.error).toBe("invalid_target");
  expect((await refresh(first.access_token)).body.error).toBe("invalid_grant");
  const second = (await refresh(first.refresh_token, { scope: "read" })).body;
  expect(second.access_token).not.toBe(first.access_token);
  // What is under way with the former access token goes on.
  expect([await statusOf(cairn, first.access_token), await statusOf(cairn, second.access_token)]).toEqual([200, 200]);
  cairn.clock.advance({ seconds: 59 });
  expect((await refresh(first.refresh_token)).body).toEqual({ ...second, expires_in: 3_541 });
  const third = (await refresh(second.refresh_token)).body;
  expect(await statusOf(cairn, third.access_token)).toBe(200);
  cairn.clock.advance({ seconds: 60 });
  expect((await refresh(second.refresh_token)).body).toMatchObject({ error: "invalid_grant" });
  expect([await statusOf(cairn, third.access_token), (await refresh(third.refresh_token)).body.error]).toEqual([401, "invalid_grant"]);
});

test("a refresh token that is used several times at once gives the same tokens, and a code gives them once, whichever server is asked", async () => {
  const { redeem, refresh, grant } = await connect(cairn);
  const { refresh_token } = (await redeem()).body;
  const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(refresh_token)));
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.access_token} ${body.refresh_token}`)).size).toBe(1);
  expect(await statusOf(cairn, answers[0]?.body.access_token)).toBe(200);
  expect((await cairn.get(`/v1/api_keys/${grant.key.id}`)).status).toBe(200);

  const other = await connect(cairn);
  const redeemed = await Promise.all(Array.from({ length: 6 }, () => other.redeem()));
  expect(redeemed.filter(({ status }) => status === 200)).toHaveLength(1);
  expect((await cairn.get(`/v1/api_keys/${other.grant.key.id}`)).status).toBe(404);
});

test("neither the log, nor a trace, nor a list shows a code or a token", async () => {
  const { redeem, refresh, grant } = await connect(cairn);
  const code = codeIn(grant);
  const first = (await redeem()).body;
  const second = (await refresh(first.refresh_token)).body;
  await cairn.get(`/v1/sessions?access_token=${second.access_token}`, { key: null });
  expect(await statusOf(cairn, second.access_token)).toBe(200);
  await refresh(`${second.refresh_token.slice(0, -1)}_`);
  const shown = [cairn.logged, await cairn.list("/v1/traces?limit=100"), await cairn.list("/v1/api_keys?limit=100")].flat();
  const secrets = [code, first.access_token, first.refresh_token, second.access_token, second.refresh_token];
  // The last 43 characters are the secret.
  for (const secret of secrets) expect(JSON.stringify(shown)).not.toContain(secret.slice(-43));
});

test("a grant ends when it was not used for 30 days, and when the days that were given are over", async () => {
  await using own = await startCairn(PUBLIC);
  const unused = await connect(own);
  const used = await connect(own, { expires_in_days: 40 });
  const once = await connect(own, {}, { grant_types: undefined });
  const [{ refresh_token: never }, first, single] = [(await unused.redeem()).body, (await used.redeem()).body, (await once.redeem()).body];
  expect([single.refresh_token, single.scope]).toEqual([undefined, "read write"]);
  expect(await own.ok(own.get(`/v1/api_keys/${used.grant.key.id}`))).toMatchObject({
    expires_at: expect.stringMatching(/^2026-06-06T08:00/),
  });
  own.clock.advance({ days: 29 });
  const second = (await used.refresh(first.refresh_token)).body;
  expect(await own.ok(own.get(`/v1/api_keys/${used.grant.key.id}`))).toMatchObject({
    expires_at: expect.stringMatching(/^2026-06-16T08:00/),
  });
  await own.runTask("key expiry");
  expect((await own.list("/v1/api_keys?kind=oauth")).map(({ id }: any) => id)).toEqual([used.grant.key.id, unused.grant.key.id]);
  own.clock.advance({ days: 1 });
  expect((await unused.refresh(never)).body.error).toBe("invalid_grant");
  own.clock.advance({ days: 10 });
  expect((await used.refresh(second.refresh_token)).body.error).toBe("invalid_grant");
  await own.runTask("key expiry");
  expect(await own.list("/v1/api_keys?kind=oauth")).toEqual([]);
});

test("a grant without another wish lasts 90 days", async () => {
  await using own = await startCairn(PUBLIC);
  const { grant, redeem, refresh } = await connect(own);
  let { refresh_token } = (await redeem()).body;
  for (let month = 1; month < 4; month++) {
    own.clock.advance({ days: LIMITS.oauthGrantDaysDefault / 4 });
    ({ refresh_token } = (await refresh(refresh_token)).body);
  }
  expect((await own.ok(own.get(`/v1/api_keys/${grant.key.id}`))).expires_at).toStartWith("2026-08-05T08:00");
});

test("an application revokes its tokens, and nobody else's", async () => {
  const { client_id, redeem, grant } = await connect(cairn);
  const { access_token, refresh_token } = (await redeem()).body;
  expect((await form(cairn, "/revoke", {})).body.error).toBe("invalid_request");
  for (const fields of [{ token: "nonsense" }, { token: refresh_token, client_id: "another" }, { token: `${refresh_token.slice(0, -1)}_` }])
    expect((await form(cairn, "/revoke", fields)).status).toBe(200);
  expect(await statusOf(cairn, access_token)).toBe(200);
  expect((await form(cairn, "/revoke", { token: refresh_token, client_id })).status).toBe(200);
  expect(await statusOf(cairn, access_token)).toBe(401);
  const [trace] = (await cairn.list("/v1/traces?action=api_key.revoked&limit=1")) as [any];
  expect(trace.details).toMatchObject({ key_id: grant.key.id, kind: "oauth", reason: "revoked by the application" });
});

test("a grant is a key: seen, bound, revoked, and it ends with the key that consented, but not with its roll", async () => {
  const admin = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["admin"], name: "admin" }));
  const session = await cairn.ok(cairn.post("/v1/sign_in", {}, { key: admin.key }));
  const { client_id } = await registration(cairn);
  const body = { ...asking(client_id), scopes: ["read"], user_id: "ada" };
  const { key, redirect_to } = await cairn.ok(cairn.post("/v1/oauth/grants", body, { key: session.key }));
  expect(key).toMatchObject({ kind: "oauth", name: "Notes", scopes: ["read"], user_id: "ada", source: admin.id, client_id });
  expect(key.key).toBeUndefined();
  const fields = { grant_type: "authorization_code", client_id, code: codeIn({ redirect_to }), code_verifier: VERIFIER };
  const { access_token, scope } = (await form(cairn, "/token", fields)).body;
  expect(scope).toBe("read offline_access");
  const names = (await tools(cairn, access_token)).body.result.tools.map(({ name }: any) => name);
  expect([names.includes("search_memories"), names.includes("add_memory")]).toEqual([true, false]);
  const rolled = await cairn.ok(cairn.post(`/v1/api_keys/${admin.id}/roll`, { overlap_seconds: 0 }));
  expect(await statusOf(cairn, access_token)).toBe(200);
  await cairn.ok(cairn.delete(`/v1/api_keys/${rolled.id}`));
  expect(await statusOf(cairn, access_token)).toBe(401);

  const other = await connect(cairn);
  const { access_token: token } = (await other.redeem()).body;
  await cairn.ok(cairn.delete(`/v1/api_keys/${other.grant.key.id}`));
  expect(await statusOf(cairn, token)).toBe(401);
});

test("what cannot be consented to is refused by its name, and nothing is sent anywhere", async () => {
  const { client_id } = await registration(cairn);
  const param = async (more: object, path = "/v1/oauth/grants") => {
    const { status, body } = await cairn.post(path, asking(client_id, more));
    return [status, body.error?.param];
  };
  for (const redirect_uri of [
    "http://127.0.0.1:5000/other",
    "http://127.0.0.1:5000/callback?x",
    "http://127.0.0.2:5000/callback",
    "http://localhost:5000/callback",
    "https://127.0.0.1:5000/callback",
    "http://x@127.0.0.1:5000/callback",
    "javascript:alert(1)",
    "https://evil.example.com/callback",
  ])
    expect([redirect_uri, ...(await param({ redirect_uri }, "/v1/oauth/requests"))]).toEqual([redirect_uri, 400, "redirect_uri"]);
  expect(await param({ redirect_uri: "http://127.0.0.1:61234/callback" })).toEqual([201, undefined]);
  expect(await param({ client_id: "nobody" })).toEqual([400, "client_id"]);
  expect(await param({ client_id: `cairn_${Buffer.from("[]").toString("base64url")}` })).toEqual([400, "client_id"]);
  expect(await param({ client_id: "cairn_!" })).toEqual([400, "client_id"]);
  expect(await param({ response_type: "token" })).toEqual([400, "response_type"]);
  expect(await param({ code_challenge_method: "plain" })).toEqual([400, "code_challenge_method"]);
  expect(await param({ code_challenge: "short" })).toEqual([400, "code_challenge"]);
  expect(await param({ resource: "https://other.example.com/mcp" })).toEqual([400, "resource"]);
  expect(await param({ resource: `${ISSUER}/v1` })).toEqual([400, "resource"]);
  expect(await param({ scope: "read", scopes: ["read", "write"] })).toEqual([400, "scopes"]);
  expect(await param({ expires_in_days: LIMITS.oauthGrantDaysMax + 1 })).toEqual([400, "expires_in_days"]);
  expect(await param({ scopes: ["admin"] })).toEqual([400, "scopes.0"]);
  const writer = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["read", "write"] }));
  expect((await cairn.post("/v1/oauth/grants", asking(client_id), { key: writer.key })).status).toBe(403);
});

test("a registration is kept nowhere, and one that cannot be used is refused", async () => {
  const made = await cairn.post(
    "/register",
    { redirect_uris: ["https://notes.example.com/cb"], client_name: "No\u202etes" },
    { key: null },
  );
  expect(made).toMatchObject({
    status: 201,
    body: { client_name: "Notes", token_endpoint_auth_method: "none", grant_types: ["authorization_code"] },
  });
  expect((await registration(cairn, { client_name: "\u3164\u2800\u115f" })).client_name).toBe("A program on this machine");
  const error = async (body: object) => {
    const answer = await cairn.post("/register", body, { key: null });
    return [answer.status, answer.body.error];
  };
  expect(await error({})).toEqual([400, "invalid_redirect_uri"]);
  for (const uri of [
    "http://notes.example.com/cb",
    "notes:/cb",
    "https://notes.example.com/#x",
    "javascript:alert(1)",
    "data:,x",
    "https://a@b.example/",
  ])
    expect([uri, ...(await error({ redirect_uris: [uri] }))]).toEqual([uri, 400, "invalid_redirect_uri"]);
  const some = await registration(cairn, { redirect_uris: ["notes:/callback", CALLBACK, "http://notes.example.com/"] });
  expect(some.redirect_uris).toEqual([CALLBACK]);
  expect(await error({ redirect_uris: Array(21).fill(CALLBACK) })).toEqual([400, "invalid_redirect_uri"]);
  expect(await error({ redirect_uris: [1] })).toEqual([400, "invalid_redirect_uri"]);
  expect(await error({ redirect_uris: [`https://a.example/${"a".repeat(2_000)}`] })).toEqual([400, "invalid_redirect_uri"]);
  expect(await error({ redirect_uris: [CALLBACK], token_endpoint_auth_method: "client_secret_basic" })).toEqual([
    400,
    "invalid_client_metadata",
  ]);
  expect(await error({ redirect_uris: [CALLBACK], grant_types: ["client_credentials"] })).toEqual([400, "invalid_client_metadata"]);
  expect((await form(cairn, "/token", { grant_type: "password" })).body.error).toBe("unsupported_grant_type");
  const typed = await cairn.post("/token", { grant_type: "refresh_token" }, { key: null });
  expect(typed).toMatchObject({ status: 400 });
});

test("a key has at most 100 grants: one more ends the oldest", async () => {
  await using own = await startCairn(PUBLIC);
  const { client_id } = await registration(own);
  const ids: string[] = [];
  for (let i = 0; i <= LIMITS.oauthGrantsMax; i++) ids.push((await consent(own, asking(client_id))).key.id);
  const statuses = [ids[0], ids[1], ids.at(-1)].map(async (id) => (await own.get(`/v1/api_keys/${id}`)).status);
  expect(await Promise.all(statuses)).toEqual([404, 200, 200]);
});
