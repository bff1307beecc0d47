/**
 * Applications that ask for access: their documents, those that are built in, and who of them may ask.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn, type Options } from "./support/cairn.ts";
import { ISSUER, MCP, CALLBACK, PUBLIC, asking, consent, connect, statusOf } from "./support/oauth.ts";

const ID = "https://localhost/oauth/client.json";
const DOCUMENT = { client_id: ID, client_name: "Notes", redirect_uris: [CALLBACK], grant_types: ["authorization_code", "refresh_token"] };
const tls = (name: string) => Bun.file(`${import.meta.dir}/support/tls/${name}.pem`);

/** A Cairn to which a host on this machine seems to be on the Internet, and what that host was asked. */
async function withDocuments(answer: () => Response | Promise<Response>, network: Options["network"] = {}, name = "certificate") {
  const asked: (string | null)[][] = [];
  const host = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key: tls("key"), cert: tls(name) },
    fetch: (request) => {
      asked.push([request.method, request.headers.get("host"), request.headers.get("x-api-key")]);
      return answer();
    },
  });
  const dial = () => ({ host: "127.0.0.1", port: host.port ?? 0 });
  const ca = await tls(name).text();
  // Each server keeps the documents that it has fetched.
  const own = await startCairn({ ...PUBLIC, servers: 1, network: { resolve: () => Promise.resolve(["8.8.8.8"]), dial, ca, ...network } });
  const describe = (client_id = ID) => own.post("/v1/oauth/requests", asking(client_id));
  return {
    own,
    asked,
    describe,
    async [Symbol.asyncDispose]() {
      await host.stop(true);
      await own[Symbol.asyncDispose]();
    },
  };
}
const jsonOf = (document: unknown, headers: Record<string, string> = {}) => Response.json(document, { headers });

test("the document of a client is fetched by who is to consent, and kept as long as it says", async () => {
  let document: object = DOCUMENT;
  await using set = await withDocuments(() => jsonOf(document, { "Cache-Control": "public, max-age=600" }));
  const { own, asked, describe } = set;
  expect((await own.plain("GET", `/authorize?client_id=${encodeURIComponent(ID)}`, { key: null })).status).toBe(302);
  expect((await own.post("/v1/oauth/requests", asking(ID), { key: null })).status).toBe(401);
  expect(asked).toHaveLength(0);
  expect(await own.ok(describe())).toEqual({
    object: "oauth_request",
    client_id: ID,
    client_name: "Notes",
    client_host: "localhost",
    redirect_host: "127.0.0.1:5000",
    redirects_to_this_machine: true,
    resource: MCP,
    scopes: ["read", "write"],
    refreshes: true,
    denial: `${CALLBACK}?error=access_denied&state=s+t%26te&iss=${encodeURIComponent(ISSUER)}`,
  });
  const { key } = await consent(own, asking(ID));
  expect(key).toMatchObject({ name: "Notes", client_id: ID });
  expect(asked).toEqual([["GET", "localhost", null]]);
  document = { ...DOCUMENT, client_name: "Other" };
  own.clock.advance({ seconds: 599 });
  expect((await own.ok(describe())).client_name).toBe("Notes");
  own.clock.advance({ seconds: 1 });
  expect((await own.ok(describe())).client_name).toBe("Other");
});

test("a document that cannot be used is refused with the reason, which is kept for a minute", async () => {
  let answer = (): Response => new Response("", { status: 302, headers: { Location: "http://127.0.0.1/" } });
  await using set = await withDocuments(() => answer());
  const { own, asked, describe } = set;
  const cases: [reason: string, answer: () => Response][] = [
    ["redirects are not followed", answer],
    ["more than 5120 bytes", () => jsonOf({ ...DOCUMENT, more: "a".repeat(6_000) })],
    ["not served as JSON", () => new Response(JSON.stringify(DOCUMENT), { headers: { "Content-Type": "text/html" } })],
    ["client_id is not this URL", () => jsonOf({ ...DOCUMENT, client_id: `${ID}x` })],
    ["client_id is not this URL", () => new Response("{", { headers: { "Content-Type": "application/json" } })],
    ["client_name is missing", () => jsonOf({ ...DOCUMENT, client_name: undefined })],
    ["redirect_uris", () => jsonOf({ ...DOCUMENT, redirect_uris: ["http://evil.example.com/"] })],
  ];
  for (const [reason, one] of cases) {
    answer = one;
    const refused = await describe();
    expect(refusal(refused)).toEqual({ status: 400, code: "invalid_request", param: "client_id" });
    expect(refused.body.error.message).toContain(reason);
    own.clock.advance({ seconds: 59 });
    expect((await describe()).body.error.message).toContain(reason);
    own.clock.advance({ seconds: 1 });
  }
  expect(asked).toHaveLength(cases.length);
});

test("a document is fetched from public addresses at the default port alone", async () => {
  let addresses = ["8.8.8.8"];
  await using set = await withDocuments(() => jsonOf(DOCUMENT), { loopback: true, resolve: () => Promise.resolve(addresses) });
  const { own, asked, describe } = set;
  await own.ok(own.patch("/v1/settings", { webhooks: { allow_private: true } }));
  for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "fd00::1", "0.0.0.0"]) {
    addresses = ["8.8.8.8", address];
    const refused = await describe();
    expect([address, refused.status, refused.body.error?.message]).toEqual([address, 400, expect.stringContaining("public address")]);
    own.clock.advance({ seconds: 60 });
  }
  addresses = ["8.8.8.8"];
  for (const id of [
    "http://localhost/oauth/client.json",
    "https://localhost:8443/oauth/client.json",
    "https://localhost/",
    "https://localhost",
    "https://localhost/a/../client.json",
    "https://localhost/client.json?x",
    "https://localhost/client.json#x",
    "https://a@localhost/client.json",
    "https://127.0.0.1/client.json",
    "https://[::1]/client.json",
    "https://2130706433/client.json",
  ])
    expect([id, refusal(await describe(id))]).toEqual([id, { status: 400, code: "invalid_request", param: "client_id" }]);
  expect(asked).toHaveLength(0);
});

test("a document that does not come in time is none", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  await using set = await withDocuments(() => {
    reach();
    return promise;
  });
  const refused = set.describe();
  await reached;
  set.own.clock.advance({ seconds: 3 });
  expect((await refused).body.error.message).toContain("within 3 s");
  resolve(jsonOf(DOCUMENT));
});

const CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata";
/** What well-known clients send. */
const KNOWN: [name: string, client_id: string, redirect_uri: string][] = [
  ["Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback"],
  ["Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.com/api/mcp/auth_callback"],
  ["Claude Code", CLAUDE_CODE, "http://localhost:54321/callback"],
  ["ChatGPT", "https://chatgpt.com/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect"],
  ["ChatGPT", "https://chatgpt.com/oauth/a1-b2/client.json", "https://chatgpt.com/connector/oauth/a1-b2"],
  ["Codex", "https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1:54321/callback"],
  ["OpenCode", "https://opencode.ai/oauth/opencode/client.json", "http://127.0.0.1:54321/callback"],
  ["Cursor", "https://cursor.com/oauth/mcp-client.json", "https://www.cursor.com/agents/mcp/oauth/callback"],
  ["Visual Studio Code", "https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:33418/"],
];
const nowhere = () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));

test("documents of well-known clients are built in, for a server that cannot fetch them, and name no other place", async () => {
  await using own = await startCairn({ ...PUBLIC, network: { resolve: nowhere } });
  for (const [client_name, id, redirect_uri] of KNOWN) {
    expect(await own.ok(own.post("/v1/oauth/requests", asking(id, { redirect_uri })))).toMatchObject({ client_name, refreshes: true });
    const other = asking(id, { redirect_uri: "https://evil.example.com/callback" });
    expect(refusal(await own.post("/v1/oauth/requests", other))).toMatchObject({ status: 400, param: "redirect_uri" });
  }
  const ofAnother = asking("https://chatgpt.com/oauth/a1-b2/client.json", { redirect_uri: "https://chatgpt.com/connector/oauth/c3" });
  expect(refusal(await own.post("/v1/oauth/requests", ofAnother))).toMatchObject({ status: 400, param: "redirect_uri" });
  for (const id of [`${CLAUDE_CODE}/`, "https://claude.ai/oauth/constructor", "https://chatgpt.com/oauth/a/b/client.json"])
    expect((await own.post("/v1/oauth/requests", asking(id))).body.error.message).toContain("was not found");
});

test("the document of a well-known client counts where its host answers, also when it says that there is none any more", async () => {
  let answer = (): Response => jsonOf({ ...DOCUMENT, client_id: CLAUDE_CODE, client_name: "Claude Code 3" });
  await using set = await withDocuments(() => answer(), {}, "claude-ai");
  const { own, asked, describe } = set;
  expect((await own.ok(describe(CLAUDE_CODE))).client_name).toBe("Claude Code 3");
  answer = () => new Response("", { status: 410 });
  own.clock.advance({ hours: 1 });
  expect((await describe(CLAUDE_CODE)).body.error.message).toContain("status 410");
  expect(asked).toHaveLength(2);
});

test("a host that is not the one in the URL is not asked for a document: the one that is built in counts", async () => {
  await using set = await withDocuments(() => jsonOf(DOCUMENT));
  const loopback = { redirect_uri: "http://localhost:5000/callback" };
  const describe = () => set.own.ok(set.own.post("/v1/oauth/requests", asking(CLAUDE_CODE, loopback)));
  expect(await describe()).toMatchObject({ client_name: "Claude Code", client_host: "claude.ai" });
  expect(set.asked).toHaveLength(0);
});

test("oauth_clients says who may ask: those that are connected stay, and nobody registers", async () => {
  await using set = await withDocuments(() => jsonOf(DOCUMENT));
  const { own } = set;
  const { client_id, redeem } = await connect(own);
  const { access_token } = (await redeem()).body;
  const may = async (id: string, more: object = {}) => {
    const { status, body } = await own.post("/v1/oauth/requests", asking(id, more));
    return [status, body.error?.param];
  };
  const [yes, no] = [
    [200, undefined],
    [403, "client_id"],
  ];
  const loopback = { redirect_uri: "http://localhost:5000/callback" };
  const registers = async () => {
    const metadata = await own.get("/.well-known/oauth-authorization-server", { key: null });
    return [
      metadata.body.registration_endpoint !== undefined,
      (await own.post("/register", { redirect_uris: [CALLBACK] }, { key: null })).status,
    ];
  };
  expect([await may(client_id), await may(ID), await may(CLAUDE_CODE, loopback), await registers()]).toEqual([yes, yes, yes, [true, 201]]);
  await own.ok(own.patch("/v1/settings", { oauth_clients: "known" }));
  expect([await may(client_id), await may(ID), await may(CLAUDE_CODE, loopback), await registers()]).toEqual([no, no, yes, [false, 403]]);
  expect(await statusOf(own, access_token)).toBe(200);
  await own.ok(own.patch("/v1/settings", { oauth_clients: "Localhost, notes.example.com" }));
  expect([await may(client_id), await may(ID), await may(CLAUDE_CODE, loopback), await registers()]).toEqual([no, yes, no, [false, 403]]);
  await own.ok(own.patch("/v1/settings", { oauth_clients: "localhost,known" }));
  expect([await may(ID), await may(CLAUDE_CODE, loopback), await may("nobody")]).toEqual([yes, yes, no]);
});
