import { expect, test } from "bun:test";
import { startCairn, type Cairn } from "./support/cairn.ts";

/** The figures that `/metrics` gives, by name and labels. */
async function figures(cairn: Cairn): Promise<Record<string, number>> {
  const { status, text } = await cairn.plain("GET", "/metrics");
  expect(status).toBe(200);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

test("metrics count requests by route, method and status, and say how long they took", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  await cairn.session(session.id);
  await cairn.get("/v1/sessions/sess_000000000000");
  const found = await figures(cairn);
  const count = (route: string, method: string, status: number) =>
    found[`cairn_http_request_seconds_count{route="${route}",method="${method}",status="${status}"}`];
  expect(count("/v1/sessions", "POST", 201)).toBe(1);
  expect(count("/v1/sessions/{session_id}", "GET", 200)).toBe(1);
  expect(count("/v1/sessions/{session_id}", "GET", 404)).toBe(1);
  expect(found['cairn_http_request_seconds_bucket{le="+Inf",route="/v1/sessions",method="POST",status="201"}']).toBe(1);
});

test("metrics say what is in the store, and what is overdue", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ ttl_seconds: 60 });
  await cairn.addTurn(session.id);
  await cairn.addMemory(session.id, "The gate code is 4711.");
  expect(await figures(cairn)).toMatchObject({
    'cairn_records{kind="sessions"}': 1,
    'cairn_records{kind="turns"}': 1,
    'cairn_records{kind="memories"}': 1,
    'cairn_records{kind="traces"}': 3,
    cairn_vectors_owed: 0,
    cairn_expiry_lag_seconds: 0,
  });
  cairn.clock.advance({ seconds: 90 });
  expect((await figures(cairn))["cairn_expiry_lag_seconds"]).toBe(30);
  await cairn.runTask("session expiry");
  expect(await figures(cairn)).toMatchObject({ 'cairn_records{kind="sessions"}': 0, cairn_expiry_lag_seconds: 0 });
});

test("metrics are for admin keys, and nobody else who is not on the same machine", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read"] });
  const cases = [
    { key: cairn.key, status: 200 },
    { key: reader, status: 403 },
    { key: null, status: 401 },
  ];
  for (const { key, status } of cases) expect((await cairn.plain("GET", "/metrics", { key })).status).toBe(status);
});

test("each request is one line of the log: route, status, time, request id and the beginning of the key; nothing of its content", async () => {
  await using cairn = await startCairn();
  await cairn.post("/v1/sessions", { agent_id: "secret-agent" }, { headers: { "X-Request-Id": "mine-1" } });
  await cairn.get("/v1/sessions?agent_id=secret-agent", { headers: { "X-Request-Id": "mine-2" } });
  const lines = cairn.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === "request");
  expect(lines).toMatchObject([
    { level: "info", method: "POST", route: "/v1/sessions", status: 201, request_id: "mine-1", key: cairn.key.slice(0, 8) },
    { level: "info", method: "GET", route: "/v1/sessions", status: 200, request_id: "mine-2", key: cairn.key.slice(0, 8) },
  ]);
  expect(lines.map(({ ms }) => typeof ms)).toEqual(["number", "number"]);
  expect(cairn.logged.join("")).not.toContain("secret-agent");
  expect(cairn.logged.join("")).not.toContain(cairn.key);
});

const PAGE = "https://app.example.com";
const asks = (origin: string) => ({ Origin: origin, "Access-Control-Request-Method": "POST" });

test("pages of an origin that the operator named may call, after asking; others may not", async () => {
  await using cairn = await startCairn({ corsOrigins: [PAGE] });
  const preflight = await cairn.plain("OPTIONS", "/v1/sessions", { key: null, headers: asks(PAGE) });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(PAGE);
  expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
  expect(preflight.headers.get("access-control-allow-headers")).toContain("X-API-Key");
  expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();

  const called = await cairn.post("/v1/sessions", { agent_id: "agent" }, { headers: { Origin: PAGE } });
  expect(called.status).toBe(201);
  expect(called.headers.get("access-control-allow-origin")).toBe(PAGE);
  expect(called.headers.get("vary")).toBe("Origin");

  for (const origin of ["https://evil.example.com", "http://app.example.com", "null"]) {
    const refused = await cairn.plain("OPTIONS", "/v1/sessions", { key: null, headers: asks(origin) });
    expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    expect(refused.status).not.toBe(204);
  }
});

test("unless the operator named origins, no page of another origin may call", async () => {
  await using cairn = await startCairn();
  const { status, headers } = await cairn.plain("OPTIONS", "/v1/sessions", { key: null, headers: asks(PAGE) });
  expect(status).not.toBe(204);
  expect(headers.get("access-control-allow-origin")).toBeNull();
  expect((await cairn.get("/v1/sessions", { headers: { Origin: PAGE } })).headers.get("access-control-allow-origin")).toBeNull();
});

test("behind a proxy, what reached it over plain HTTP is sent to HTTPS, before its key is looked at", async () => {
  await using cairn = await startCairn({ requireHttps: true, allowedHosts: ["cairn.example.com"] });
  const headers = { host: "cairn.example.com" };
  const plain = await cairn.plain("GET", "/v1/sessions?limit=2", { key: null, headers: { ...headers, "X-Forwarded-Proto": "http" } });
  expect(plain.status).toBe(308);
  expect(plain.headers.get("location")).toBe("https://cairn.example.com/v1/sessions?limit=2");
  const odd = { ...headers, "X-Forwarded-Proto": "http", "X-Forwarded-Host": "evil.example.com/path" };
  expect((await cairn.plain("GET", "/v1/sessions", { headers: odd })).status).toBe(400);
  const safe = await cairn.plain("GET", "/v1/sessions?limit=2", { headers: { ...headers, "X-Forwarded-Proto": "https" } });
  expect(safe.status).toBe(200);
  expect((await cairn.get("/health")).status).toBe(200);
});

test("without that setting the header of a proxy changes nothing", async () => {
  await using cairn = await startCairn();
  expect((await cairn.get("/v1/sessions", { headers: { "X-Forwarded-Proto": "http" } })).status).toBe(200);
});
