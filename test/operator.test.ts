import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, spyOn, test } from "bun:test";
import { Store } from "../src/storage/lmdb/store.ts";
import { VectorIndex } from "../src/search/vector-index.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { scratchDirectory, until } from "./support/process.ts";
import { startReceiver } from "./support/receiver.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";

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
    // Of the first key, too.
    'cairn_records{kind="traces"}': 4,
    cairn_embeddings_pending: 0,
    cairn_expiry_lag_seconds: 0,
  });
  cairn.clock.advance({ seconds: 90 });
  expect((await figures(cairn))["cairn_expiry_lag_seconds"]).toBe(30);
  await cairn.runTask("session expiry");
  expect(await figures(cairn)).toMatchObject({ 'cairn_records{kind="sessions"}': 0, cairn_expiry_lag_seconds: 0 });
});

test("metrics say what became of deliveries, and what is still to be done", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "10s" } } });
  await using receiver = startReceiver();
  await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  const shown = async () => {
    const found = await figures(cairn);
    const attempts = (outcome: string) => found[`cairn_webhook_attempts_total{outcome="${outcome}"}`];
    return {
      outbox: found["cairn_outbox_events"],
      pending: found["cairn_webhook_deliveries_pending"],
      delivered: attempts("delivered"),
      retry: attempts("retry"),
      exhausted: attempts("exhausted"),
      failedDay: found["cairn_webhook_attempts_failed_last_day"],
      given: found["cairn_webhook_deliveries_exhausted"],
      disabled: found["cairn_webhooks_disabled_total"],
    };
  };
  // Those of the first key's trace and of the webhook's.
  const counts = { outbox: 0, pending: 0, delivered: 0, retry: 0, exhausted: 0, failedDay: 0, given: 0, disabled: 0 };
  expect(await shown()).toEqual(counts);

  await cairn.createSession();
  await cairn.createSession();
  expect(await shown()).toEqual({ ...counts, outbox: 2 });
  await cairn.runTask("webhook outbox");
  expect(await shown()).toEqual({ ...counts, pending: 2 });
  await cairn.runTask("webhook deliveries");
  expect(await shown()).toEqual({ ...counts, delivered: 2 });

  const attempt = async (status: number) => {
    receiver.reply = () => new Response(null, { status });
    await cairn.deliver();
    return shown();
  };
  await cairn.createSession();
  expect(await attempt(500)).toEqual({ ...counts, delivered: 2, retry: 1, failedDay: 1, pending: 1 });
  cairn.clock.advance({ seconds: 12 });
  expect(await attempt(500)).toEqual({ ...counts, delivered: 2, retry: 1, exhausted: 1, failedDay: 2, given: 1 });
  await cairn.createSession();
  // That it was disabled is a trace too.
  expect(await attempt(410)).toEqual({ ...counts, delivered: 2, retry: 1, exhausted: 2, failedDay: 3, given: 2, disabled: 1 });
  expect((await cairn.ok(cairn.get("/v1/stats"))).deliveries).toEqual({ pending: 0, failed: 3, exhausted: 2 });
  // Attempts by outcome are counted since the start, as Prometheus expects it.
  await cairn.restart();
  expect(await shown()).toEqual({ ...counts, failedDay: 3, given: 2 });
});

onEmbedded("its rows and vectors are in memory")("metrics say how often caches were of use", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  await cairn.addTurn(session.id);
  // Rows as they were committed are in memory already.
  await cairn.restart();
  const usesOf = async (cache: string) => {
    const found = await figures(cairn);
    return { hits: found[`cairn_cache_hits_total{cache="${cache}"}`]!, misses: found[`cairn_cache_misses_total{cache="${cache}"}`]! };
  };
  const [before, turnsBefore] = [await usesOf("sessions"), await usesOf("recent_turns")];
  await cairn.ok(cairn.get(`/v1/sessions/${session.id}`));
  expect(await usesOf("sessions")).toEqual({ ...before, misses: before.misses + 1 });
  await cairn.ok(cairn.get(`/v1/sessions/${session.id}`));
  expect(await usesOf("sessions")).toEqual({ hits: before.hits + 1, misses: before.misses + 1 });
  await cairn.context(session.id);
  await cairn.context(session.id);
  expect(await usesOf("recent_turns")).toEqual({ hits: turnsBefore.hits + 1, misses: turnsBefore.misses + 1 });
  expect(await usesOf("query_vectors")).toEqual({ hits: 0, misses: 0 });
  expect(await usesOf("resident_vectors")).toEqual({ hits: 0, misses: 0 });
  for (let i = 0; i < 3; i++) await cairn.context(session.id, { query: "tea" });
  expect(await usesOf("resident_vectors")).toEqual({ hits: 2, misses: 1 });
});

test("metrics are typed: what only rises is a counter", async () => {
  await using cairn = await startCairn();
  const { text } = await cairn.plain("GET", "/metrics");
  const types = Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = "", type]) => [name, type] as const);
  // Those of a database that servers share.
  const [shared, others] = [true, false].map((isWanted) =>
    types.filter(([name]) => /^cairn_(lease|clock|conflicts|search_replica|database)_/.test(name) === isWanted),
  );
  expect(shared?.length === 0).toBe(!isOnPostgres);
  for (const [name, type] of shared ?? []) expect([name, type]).toEqual([name, name.endsWith("_total") ? "counter" : "gauge"]);
  expect(Object.fromEntries(others ?? [])).toEqual({
    cairn_http_request_seconds: "histogram",
    cairn_records: "gauge",
    cairn_retrievals_total: "counter",
    cairn_secrets_blocked_total: "counter",
    cairn_secrets_redacted_total: "counter",
    cairn_secrets_tagged_total: "counter",
    cairn_store_bytes: "gauge",
    cairn_store_max_bytes: "gauge",
    cairn_store_used_bytes: "gauge",
    cairn_vector_index_bytes: "gauge",
    cairn_vectors: "gauge",
    cairn_embeddings_pending: "gauge",
    cairn_encoder_waiting: "gauge",
    cairn_vectors_stored: "gauge",
    cairn_outbox_events: "gauge",
    cairn_webhook_deliveries_pending: "gauge",
    cairn_webhook_deliveries_exhausted: "gauge",
    cairn_webhook_attempts_failed_last_day: "gauge",
    cairn_webhook_attempts_total: "counter",
    cairn_webhooks_disabled_total: "counter",
    cairn_expiry_lag_seconds: "gauge",
    cairn_cache_hits_total: "counter",
    cairn_cache_misses_total: "counter",
    // A database has backups of its own.
    ...(isOnPostgres
      ? {}
      : {
          cairn_backup_newest_time_seconds: "gauge",
          cairn_backup_overdue: "gauge",
          cairn_backups_failed_total: "counter",
          cairn_backup_copy_newest_time_seconds: "gauge",
          cairn_backup_copies_failed_total: "counter",
        }),
    process_resident_memory_bytes: "gauge",
    process_cpu_seconds_total: "counter",
  });
});

onEmbedded("its rows and vectors are in memory")(
  "metrics say how far the index is behind the memories, and how large the store is",
  async () => {
    await using cairn = await startCairn();
    const session = await cairn.createSession();
    const add = (from: number, to: number) =>
      Promise.all(Array.from({ length: to - from }, (_, i) => cairn.addMemory(session.id, `Box ${from + i} stands in aisle ${i % 7}.`)));
    const found = async () => {
      const all = await figures(cairn);
      const of = (state: string) => all[`cairn_vectors{state="${state}"}`];
      return { stored: all["cairn_vectors_stored"], indexed: of("indexed"), pending: of("pending") };
    };
    await add(0, 100);
    expect(await found()).toEqual({ stored: 100, indexed: 0, pending: 0 });
    await add(100, 120);
    await until("the index to have taken all of them", async () =>
      Bun.deepEquals(await found(), { stored: 120, indexed: 120, pending: 0 }),
    );
    expect((await figures(cairn))["cairn_store_bytes"]).toBe(statSync(join(cairn.directory, "store", "data.mdb")).size);
  },
);

test("metrics are for admin keys, or open to everybody who comes through no proxy", async () => {
  for (const metrics of ["key", "open"] as const) {
    await using cairn = await startCairn({ metrics });
    const reader = await cairn.newKey({ scopes: ["read"] });
    const cases = [
      { key: cairn.key, status: 200 },
      { key: reader, status: metrics === "open" ? 200 : 403 },
      { key: null, status: metrics === "open" ? 200 : 401 },
    ];
    for (const { key, status } of cases) {
      expect({ metrics, key, status: (await cairn.plain("GET", "/metrics", { key })).status }).toEqual({ metrics, key, status });
    }
  }
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
  for (const header of ["X-API-Key", "Content-Encoding", "Idempotency-Key", "Last-Event-ID"])
    expect(preflight.headers.get("access-control-allow-headers")).toContain(header);
  expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();

  const called = await cairn.post("/v1/sessions", { agent_id: "agent" }, { headers: { Origin: PAGE } });
  expect(called.status).toBe(201);
  expect(called.headers.get("access-control-allow-origin")).toBe(PAGE);
  // Also of what is refused, and of what no page asked for: a cache must not give that to one.
  const answers = [
    preflight,
    called,
    await cairn.get("/v1/sessions"),
    await cairn.get("/v1/nothing", { key: null }),
    await cairn.get("/health"),
  ];
  expect(answers.map(({ headers }) => headers.get("vary"))).toEqual(answers.map(() => "Origin"));

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
  expect(headers.get("vary")).toBeNull();
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

test("it is sent to no name that the operator did not allow, though a client says that the proxy has it", async () => {
  const names = [
    "evil.example",
    "cairn.example.com.evil.example",
    "cairn.example.com",
    "CAIRN.example.com:8443",
    "127.0.0.1:8700",
    "[::1]",
  ];
  const sentTo = async (options: Parameters<typeof startCairn>[0], host?: string) => {
    await using cairn = await startCairn({ ...options, requireHttps: true });
    const answers: unknown[] = [];
    for (const name of names) {
      const headers = { "X-Forwarded-Proto": "http", "X-Forwarded-Host": name, ...(host === undefined ? {} : { host }) };
      const { status, headers: answered, text } = await cairn.plain("GET", "/health", { key: null, headers });
      const { error } = status === 308 ? {} : JSON.parse(text);
      answers.push(status === 308 ? answered.get("location") : [status, error.code, error.param]);
    }
    return answers;
  };
  const refused = [403, "permission_denied", "X-Forwarded-Host"];
  const own = ["https://127.0.0.1:8700/health", "https://[::1]/health"];
  const allowed = ["https://cairn.example.com/health", "https://CAIRN.example.com:8443/health"];
  expect(await sentTo({ allowedHosts: ["cairn.example.com"] })).toEqual([refused, refused, ...allowed, ...own]);
  expect(await sentTo({})).toEqual([refused, refused, refused, refused, ...own]);
  // It answers to any name then, but what a proxy was asked for is believed only where it passes on the Host as well.
  const beyond = await sentTo({ host: "0.0.0.0" }, "cairn.example.com");
  expect(beyond).toEqual([refused, refused, allowed[0], refused, ...own]);
});

test("without that setting the header of a proxy changes nothing", async () => {
  await using cairn = await startCairn();
  expect((await cairn.get("/v1/sessions", { headers: { "X-Forwarded-Proto": "http" } })).status).toBe(200);
});

onEmbedded("its index has a thread")(
  "a start that fails closes what it has opened, and the next one finds the directory free",
  async () => {
    using directory = scratchDirectory();
    using close = spyOn(Store.prototype, "close");
    using open = spyOn(VectorIndex.prototype, "open").mockRejectedValue(new Error("no thread"));
    expect(await startCairn({ directory: directory.path }).catch(String)).toBe("Error: no thread");
    expect(close).toHaveBeenCalledTimes(1);
    open.mockRestore();
    await using cairn = await startCairn({ directory: directory.path });
    expect((await cairn.get("/health")).status).toBe(200);
  },
);
