import { expect, test } from "bun:test";
import { Arrivals } from "../../../src/http/arrivals.ts";
import { Metrics } from "../../../src/http/metrics.ts";
import { Pipeline, type Exchange } from "../../../src/http/pipeline.ts";
import { createLog } from "../../../src/lib/log.ts";
import type { ApiKeyRow } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";

const KEY: ApiKeyRow = {
  id: "key_000000000001",
  name: null,
  prefix: "crn_abcd",
  scopes: ["read"],
  tier: "free",
  perMinute: 60,
  burst: 2,
  createdAt: 0,
  expiresAt: null,
};
const ANONYMOUS_RATE = { perMinute: 60, burst: 1 };

/** A pipeline that knows one key, `secret`, and the ids of the keys whose use it noted. */
function pipelineWithKey() {
  const clock = new FakeClock();
  const used: string[] = [];
  const pipeline = new Pipeline({
    clock,
    log: createLog({ level: "error", pretty: false, now: () => clock.now(), write: () => undefined }),
    keys: {
      find: (presented) => (presented === "secret" ? KEY : undefined),
      noteUse: ({ id }) => void used.push(id),
      retentionDays: () => 7,
      anonymousRate: ANONYMOUS_RATE,
    },
    arrivals: new Arrivals(clock),
    metrics: new Metrics([]),
    settings: { values: { max_body_bytes: 1_000 } },
    store: { refusalOfRead: () => undefined },
    host: "127.0.0.1",
    allowedHosts: [],
  });
  const exchange = (headers: Record<string, string>): Exchange => ({
    request: new Request("http://localhost/v1/sessions", { headers }),
    remote: null,
    route: "/v1/sessions",
    requestId: "req_1",
    startedAt: 0,
    rate: ANONYMOUS_RATE,
    level: undefined,
  });
  return { pipeline, used, exchange };
}

test("authenticating finds the key of either header, notes its use and takes a token of its bucket", () => {
  const { pipeline, used, exchange } = pipelineWithKey();
  for (const [headers, remaining] of [
    [{ "X-API-Key": "secret" }, 1],
    [{ Authorization: "bearer secret" }, 0],
  ] as const) {
    const open = exchange(headers);
    expect(pipeline.authenticate(open)).toBe(KEY);
    expect(open).toMatchObject({ actor: KEY.prefix, keyId: KEY.id, rate: KEY, level: { remaining } });
    expect(pipeline.callerOf(open, KEY)).toMatchObject({ keyId: KEY.id, scopes: ["read"], retentionDays: 7, requestId: "req_1" });
  }
  expect(used).toEqual([KEY.id, KEY.id]);
  expect(() => pipeline.authenticate(exchange({ "X-API-Key": "secret" }))).toThrow("Too many requests: 60 per minute.");
  expect(used).toHaveLength(2);
});

test("a request without a valid key takes a token of its address before it is refused", () => {
  const { pipeline, used, exchange } = pipelineWithKey();
  expect(() => pipeline.authenticate(exchange({ "X-API-Key": "guess" }))).toThrow("The API key is not valid");
  expect(() => pipeline.authenticate(exchange({}))).toThrow("Too many requests");
  expect(used).toEqual([]);
});

test("what is thrown becomes a response with the headers of every other", async () => {
  const { pipeline, exchange } = pipelineWithKey();
  const response = pipeline.refuse(exchange({}), new Error("a broken assumption"));
  expect(response.status).toBe(500);
  expect(response.headers.get("X-Request-Id")).toBe("req_1");
  expect(response.headers.get("X-RateLimit-Limit")).toBe("60");
  expect(await response.json()).toMatchObject({ error: { code: "internal_error", request_id: "req_1" } });
});
