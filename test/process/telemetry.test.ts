/**
 * OpenTelemetry: what a collector receives of requests, and what becomes of the server when there is none.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { buildBinary } from "../support/binary.ts";
import { GENERATIONS } from "../support/mcp.ts";
import { KEY, scratchDirectory, startProcess, until } from "../support/process.ts";

interface Span {
  name: string;
  kind: number;
  traceId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
}

interface Collector extends AsyncDisposable {
  url: string;
  received: { path: string; authorization: string | null; body: any }[];
  /** What was received as it came. */
  texts: string[];
}

function startCollector(answer: () => Response | Promise<Response> = () => Response.json({})): Collector {
  const received: Collector["received"] = [];
  const texts: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const bytes = new Uint8Array(await request.arrayBuffer());
      const text = new TextDecoder().decode(request.headers.get("content-encoding") === "gzip" ? Bun.gunzipSync(bytes) : bytes);
      texts.push(text);
      received.push({ path: new URL(request.url).pathname, authorization: request.headers.get("authorization"), body: JSON.parse(text) });
      return answer();
    },
  });
  return { url: server.url.origin, received, texts, [Symbol.asyncDispose]: () => server.stop(true) };
}

const spansOf = ({ received }: Collector): Span[] =>
  received.flatMap(({ body }) => body.resourceSpans.flatMap(({ scopeSpans }: any) => scopeSpans.flatMap(({ spans }: any) => spans)));

function attributesOf({ attributes }: Span): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const PARENT = { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331" };

test("a collector receives a span of every request, child of the caller's, with what it did and without contents", async () => {
  await using collector = startCollector();
  await using server = await startProcess({
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector",
      OTEL_SERVICE_NAME: "memory-of-bots",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    },
  });
  const before = Date.now();
  const { id } = await server.createSession({ initial_state: { secret: "CONTENT-state" } });
  const memory = await server.addMemory(id, "CONTENT-memory");
  await server.ok(server.post("/v1/memory/search", { query: "CONTENT-query", session_id: id }));
  const traceparent = `00-${PARENT.trace}-${PARENT.span}-01`;
  await server.ok(server.request("PATCH", `/v1/memory/${memory.id}`, { tags: ["CONTENT-tag"] }, { traceparent }));
  await server.request("DELETE", `/v1/memory/${memory.id}?reason=CONTENT-reason`, undefined, { traceparent: "00-zz-yy-01" });
  await server.ok(server.request("GET", `/v1/sessions/${id}`, undefined, { traceparent: `00-${PARENT.trace}-${PARENT.span}-00` }));
  const call = { name: "add_memory", arguments: { session_id: id, content: "CONTENT-mcp" } };
  await server.post(
    "/mcp",
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: call },
    { accept: "application/json, text/event-stream" },
  );
  await server.get("/v1/sessions/CONTENT-path");
  expect(await server.stop()).toBe(0);

  const spans = spansOf(collector);
  expect(spans.map(({ name }) => name)).toEqual([
    "POST /v1/sessions",
    "POST /v1/memory",
    "POST /v1/memory/search",
    "PATCH /v1/memory/{memory_id}",
    "DELETE /v1/memory/{memory_id}",
    // Its caller samples no spans.
    "POST /mcp",
    "GET /v1/sessions/{session_id}",
  ]);
  const conversation = { "gen_ai.conversation.id": id };
  const memoryIs = (operation: string) => ({ "gen_ai.operation.name": operation });
  const common = (method: string, route: string, status: number) => ({
    "http.request.method": method,
    "http.route": route,
    "http.response.status_code": status,
    "cairn.api_key": KEY.slice(0, 8),
    "cairn.request_id": expect.stringMatching(/^req_/),
  });
  expect(spans.map(attributesOf)).toEqual([
    common("POST", "/v1/sessions", 201),
    { ...common("POST", "/v1/memory", 201), ...memoryIs("create_memory"), ...conversation },
    { ...common("POST", "/v1/memory/search", 200), ...memoryIs("search_memory"), ...conversation },
    { ...common("PATCH", "/v1/memory/{memory_id}", 200), ...memoryIs("update_memory") },
    { ...common("DELETE", "/v1/memory/{memory_id}", 200), ...memoryIs("delete_memory") },
    { ...common("POST", "/mcp", 200), ...memoryIs("create_memory"), ...conversation },
    common("GET", "/v1/sessions/{session_id}", 404),
  ]);
  expect(spans.filter(({ kind }) => kind !== 2)).toEqual([]);
  const [, , , child, orphan] = spans;
  expect(child).toMatchObject({ traceId: PARENT.trace, parentSpanId: PARENT.span });
  expect(orphan?.parentSpanId ?? "").toBe("");
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(spans.length);
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    const [start, end] = [Number(BigInt(startTimeUnixNano) / 1_000_000n), Number(BigInt(endTimeUnixNano) / 1_000_000n)];
    expect(start).toBeGreaterThanOrEqual(before - 1_000);
    expect(end).toBeGreaterThanOrEqual(start);
  }
  expect(collector.received.every(({ path }) => path === "/v1/traces")).toBe(true);
  expect(collector.received.every(({ authorization }) => authorization === "Bearer of-the-collector")).toBe(true);
  const [resource] = collector.received[0]!.body.resourceSpans;
  expect(attributesOf(resource.resource)).toMatchObject({
    "service.name": "memory-of-bots",
    "service.version": expect.any(String),
    "deployment.environment.name": "test",
  });
  expect(collector.texts.join("")).not.toMatch(/CONTENT|crn_ProcessTests/);
});

test("a collector that refuses or never answers disturbs no request and no stop, and is warned of once", async () => {
  const released = Promise.withResolvers<Response>();
  let asked = 0;
  await using collector = startCollector(() => (++asked === 1 ? new Response("no", { status: 400 }) : released.promise));
  await using server = await startProcess({
    environment: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/custom`, OTEL_BSP_SCHEDULE_DELAY: "20" },
  });
  await server.createSession();
  await until("the refusal to be logged", () => server.stderr.includes("could not export spans"));
  await server.createSession();
  await until("a second export", () => asked > 1);
  await server.createSession();
  expect(await server.stop()).toBe(0);
  expect(server.stderr.match(/could not export spans/g)).toHaveLength(1);
  expect(collector.received[0]!.path).toBe("/custom");
  released.resolve(new Response());
});

test("nothing is exported where the variables of OpenTelemetry say so", async () => {
  await using collector = startCollector();
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  for (const off of [{ OTEL_SDK_DISABLED: "true" }, { OTEL_TRACES_EXPORTER: "none" }]) {
    await using server = await startProcess({ environment: { ...endpoint, ...off } });
    await server.createSession();
    expect(await server.stop()).toBe(0);
  }
  expect(collector.received).toEqual([]);
});

test("cairn mcp exports the calls that it answers for its directory", async () => {
  await using collector = startCollector();
  using data = scratchDirectory();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  {
    await using mcp = await GENERATIONS["2026-07-28"]!({ command: await buildBinary(), args: ["mcp", "--data-dir", data.path], env });
    await mcp.use("add_memory", { content: "CONTENT-memory" });
  }
  await until("the spans", () => spansOf(collector).length > 0);
  expect(spansOf(collector).map(({ name }) => name)).toContain("POST /v1/memory");
  expect(collector.texts.join("")).not.toContain("CONTENT");
});
