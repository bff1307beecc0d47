import { expect, test } from "bun:test";
import { startCairn, type Answer, type Cairn } from "./support/cairn.ts";
import { onEmbedded } from "./support/stores.ts";

interface Limit {
  limit: number;
  remaining: number;
  reset: number;
}

function limitOf({ headers }: Answer): Limit {
  return {
    limit: Number(headers.get("x-ratelimit-limit")),
    remaining: Number(headers.get("x-ratelimit-remaining")),
    reset: Number(headers.get("x-ratelimit-reset")),
  };
}

const seconds = (cairn: Cairn) => cairn.clock.now() / 1000;

/** How many requests of a key pass before one is refused. */
async function passing(cairn: Cairn, key: string): Promise<number> {
  for (let passed = 0; ; passed++) {
    const { status } = await cairn.get("/v1/sessions", { key });
    if (status === 429) return passed;
    expect(status).toBe(200);
  }
}

for (const { tier, perMinute, burst } of [
  { tier: "free", perMinute: 100, burst: 200 },
  { tier: "pro", perMinute: 1_000, burst: 2_000 },
] as const) {
  test(`a ${tier} key may make ${burst} requests at once and ${perMinute} a minute from then on`, async () => {
    await using cairn = await startCairn();
    const key = await cairn.newKey({ tier });
    expect(await passing(cairn, key)).toBe(burst);
    const msPerRequest = 60_000 / perMinute;
    cairn.clock.advance({ ms: msPerRequest - 1 });
    expect(await passing(cairn, key)).toBe(0);
    cairn.clock.advance({ ms: 1 });
    expect(await passing(cairn, key)).toBe(1);
    cairn.clock.advance({ seconds: 60 });
    expect(await passing(cairn, key)).toBe(perMinute);
    cairn.clock.advance({ hours: 1 });
    expect(await passing(cairn, key)).toBe(burst);
  });
}

test("an enterprise key has 60,000 a minute and 120,000 at once, unless it was given limits of its own", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ tier: "enterprise" });
  expect(limitOf(await cairn.get("/v1/sessions", { key }))).toMatchObject({ limit: 60_000, remaining: 119_999 });
  const own = await cairn.ok(cairn.post("/v1/api_keys", { tier: "enterprise", rate_limit: { per_minute: 3, burst: 5 } }));
  expect(own.rate_limit).toEqual({ per_minute: 3, burst: 5 });
  expect(await passing(cairn, own.key)).toBe(5);
  cairn.clock.advance({ seconds: 60 });
  expect(await passing(cairn, own.key)).toBe(3);
});

test("a bucket may be less deep than a minute's requests", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ rateLimit: { perMinute: 60, burst: 2 } });
  expect(await passing(cairn, key)).toBe(2);
  cairn.clock.advance({ hours: 1 });
  expect(await passing(cairn, key)).toBe(2);
});

test("the headers say what is left and when the bucket is full again", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ tier: "free" });
  const start = seconds(cairn);
  // A request takes 0.6 s of refilling; the second is rounded up.
  for (const [remaining, after] of [
    [199, 1],
    [198, 2],
    [197, 2],
    [196, 3],
  ] as const) {
    expect(limitOf(await cairn.get("/v1/sessions", { key }))).toEqual({ limit: 100, remaining, reset: start + after });
  }
  cairn.clock.advance({ ms: 600 });
  expect(limitOf(await cairn.get("/v1/sessions", { key }))).toEqual({ limit: 100, remaining: 196, reset: start + 3 });
  cairn.clock.advance({ seconds: 60 });
  expect(limitOf(await cairn.get("/v1/sessions", { key }))).toEqual({ limit: 100, remaining: 199, reset: start + 62 });
});

test("a refusal says how long to wait, and then there is a request again", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ rateLimit: { perMinute: 4, burst: 1 } });
  const start = seconds(cairn);
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  const refused = await cairn.get("/v1/sessions", { key, headers: { "x-request-id": "mine" } });
  expect(refused).toMatchObject({
    status: 429,
    body: {
      error: {
        code: "rate_limit_exceeded",
        message: "Too many requests: 4 per minute. Try again in 15 s.",
        type: "rate_limit_error",
        retry_after: 15,
        request_id: "mine",
      },
    },
  });
  expect(refused.headers.get("retry-after")).toBe("15");
  expect(limitOf(refused)).toEqual({ limit: 4, remaining: 0, reset: start + 15 });
  cairn.clock.advance({ ms: 14_001 });
  expect((await cairn.get("/v1/sessions", { key })).body.error.retry_after).toBe(1);
  cairn.clock.advance({ ms: 999 });
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
});

test("being refused costs nothing: who keeps asking waits no longer", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ rateLimit: { perMinute: 60, burst: 1 } });
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  for (let i = 0; i < 10; i++) {
    expect((await cairn.get("/v1/sessions", { key })).status).toBe(429);
    cairn.clock.advance({ ms: 100 });
  }
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
});

test("every key has its own limit, and requests without one have theirs", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await cairn.newKey({ tier: "free" }), await cairn.newKey({ tier: "free" })];
  await passing(cairn, one);
  expect(limitOf(await cairn.get("/v1/sessions", { key: other }))).toMatchObject({ remaining: 199 });
  expect(limitOf(await cairn.get("/v1/sessions", { key: null }))).toMatchObject({ limit: 100, remaining: 199 });
});

test("requests that present no valid key are limited too: guessing keys is slow", async () => {
  await using cairn = await startCairn();
  // Addresses have a bucket in each server.
  for (let i = 0; i < 200 * cairn.services.length; i++) {
    const guess = `crn_${String(i).padStart(24, "0")}`;
    expect((await cairn.get("/v1/sessions", i % 2 === 0 ? { key: guess } : { key: null })).status).toBe(401);
  }
  expect((await cairn.get("/v1/sessions", { key: "crn_000000000000000000000200" })).status).toBe(429);
  expect((await cairn.get("/v1/nothing", { key: null })).status).toBe(429);
  expect((await cairn.get("/v1/sessions")).status).toBe(200);
});

test("a request takes one from the limit, whatever becomes of it", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const key = await cairn.newKey({ scopes: ["read", "write"], rateLimit: { perMinute: 60, burst: 100 } });
  const idempotent = { headers: { "idempotency-key": "k" } };
  const requests: [status: number, method: string, path: string, options?: object][] = [
    [200, "GET", `/v1/sessions/${session.id}`],
    [200, "HEAD", `/v1/sessions/${session.id}`],
    [201, "POST", "/v1/sessions", { body: { agent_id: "a" }, ...idempotent }],
    [201, "POST", "/v1/sessions", { body: { agent_id: "a" }, ...idempotent }],
    [400, "POST", "/v1/sessions", { body: {} }],
    [400, "GET", "/v1/sessions?limit=0"],
    [403, "GET", "/v1/api_keys"],
    [404, "GET", "/v1/sessions/none"],
    [404, "GET", "/v1/none"],
    [405, "PUT", "/v1/sessions"],
    [413, "POST", "/v1/memory", { body: { session_id: session.id, content: "x".repeat(10_001) } }],
    [413, "POST", "/v1/memory", { body: {}, headers: { "content-length": "2000000" } }],
  ];
  for (const [i, [status, method, path, options]] of requests.entries()) {
    const answer = await cairn.request(method, path, { key, ...options });
    expect({ status: answer.status, remaining: limitOf(answer).remaining }).toEqual({ status, remaining: 99 - i });
  }
});

const onSystemClock = onEmbedded("setting the clock of a server changes nothing for a database");
onSystemClock("a system clock that is set gives and takes no requests", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ tier: "free" });
  await cairn.get("/v1/sessions", { key });
  cairn.clock.set("2030-01-01T00:00:00Z");
  expect(limitOf(await cairn.get("/v1/sessions", { key }))).toEqual({ limit: 100, remaining: 198, reset: seconds(cairn) + 2 });
  cairn.clock.set("2020-01-01T00:00:00Z");
  expect(limitOf(await cairn.get("/v1/sessions", { key }))).toEqual({ limit: 100, remaining: 197, reset: seconds(cairn) + 2 });
});
