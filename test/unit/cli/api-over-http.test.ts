import { expect, test } from "bun:test";
import { apiOverHttp } from "../../../src/cli/api-over-http.ts";
import { ApiError } from "../../../src/lib/errors.ts";

type Answer = () => Response;

/** @param answers - of one request after the other, the last of them of all that follow */
function apiOf(...answers: readonly Answer[]) {
  const sent: Request[] = [];
  const fetch = (request: Request) => {
    const answer = answers[Math.min(sent.length, answers.length - 1)]!;
    sent.push(request);
    return Promise.resolve().then(answer);
  };
  return {
    sent,
    api: apiOverHttp({ name: "The server", apiKey: "crn_key", baseUrl: "http://localhost/under", fetch, pauseMs: 0, pausesMax: 3 }),
  };
}

const ok: Answer = () => Response.json({});
const lost: Answer = () => {
  throw Object.assign(new Error("closed"), { code: "ECONNRESET" });
};
const MEMORY = { path: { memory_id: "mem_000000000000" } };

test("every change over HTTP but a deletion has an Idempotency-Key of its own, so that it can be sent again", async () => {
  const { sent, api } = apiOf(ok);
  const path = { session_id: "sess_000000000000", memory_id: "mem_000000000000" };
  for (const route of [
    "POST /v1/sessions",
    "PATCH /v1/sessions/{session_id}",
    "PATCH /v1/memory/{memory_id}",
    "GET /v1/sessions/{session_id}",
    "DELETE /v1/memory/{memory_id}",
  ] as const)
    await api(route, { path, ...(/^(POST|PATCH)/.test(route) ? { body: {} } : {}) });
  const keys = sent.map(({ headers }) => headers.get("Idempotency-Key"));
  const key = expect.stringMatching(/^[0-9a-f]{32}$/) as string;
  expect(keys).toEqual([key, key, key, null, null]);
  expect(new Set(keys.slice(0, 3)).size).toBe(3);
  expect(new URL(sent[1]!.url).pathname).toBe("/under/v1/sessions/sess_000000000000");
});

test("a change whose answer was lost is sent again with the same Idempotency-Key, in plain text, at most as often as said", async () => {
  const { sent, api } = apiOf(lost, lost, ok);
  await api("POST /v1/memory", { body: { content: "a".repeat(100_000) } });
  expect(new Set(sent.map(({ headers }) => headers.get("Idempotency-Key"))).size).toBe(1);
  expect(sent.map(({ headers }) => headers.get("Content-Encoding"))).toEqual([null, null, null]);
  const silent = apiOf(lost);
  const refused = await silent.api("POST /v1/memory", { body: {} }).catch((error: unknown) => error as ApiError);
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({
    code: "service_unavailable",
    message: "The server does not answer: the connection was closed before the answer.",
  });
  expect(silent.sent).toHaveLength(4);
});

test("a deletion that finds nothing when it is sent again has done what it was to do, and one that was sent once has not", async () => {
  const missing: Answer = () => Response.json({ error: { code: "memory_not_found", message: "There is none." } }, { status: 404 });
  expect(await apiOf(lost, missing).api("DELETE /v1/memory/{memory_id}", MEMORY)).toEqual({ id: "mem_000000000000", deleted: true });
  await expect(apiOf(missing).api("DELETE /v1/memory/{memory_id}", MEMORY)).rejects.toMatchObject({ code: "memory_not_found" });
});

test("what the server answered is for who asked: a refusal is not sent again, nor is what no attempt would help", async () => {
  for (const [answer, message] of [
    [() => Response.json({ error: { code: "rate_limit_exceeded", message: "Too many." } }, { status: 429 }), "Too many."],
    [
      () => {
        throw new ApiError("service_unavailable", "The directory cannot be opened.");
      },
      "The directory cannot be opened.",
    ],
    [() => new Response("<html>", { headers: { "Content-Type": "text/html" } }), /which is not Cairn's JSON\.$/],
  ] as const satisfies readonly (readonly [Answer, string | RegExp])[]) {
    const { sent, api } = apiOf(answer);
    await expect(api("GET /v1/memory/{memory_id}", MEMORY)).rejects.toThrow(message);
    expect(sent).toHaveLength(1);
  }
});

test("a whole number that JavaScript has changed is refused before it is sent", async () => {
  const { sent, api } = apiOf(ok);
  await expect(api("POST /v1/memory", { body: { metadata: { order: 2 ** 60 } } })).rejects.toThrow("send it as text");
  expect(sent).toHaveLength(0);
});
