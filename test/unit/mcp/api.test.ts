import { expect, test } from "bun:test";
import { apiOverHttp, type HttpCall } from "../../../src/mcp/api.ts";

test("every change over HTTP but a deletion has an Idempotency-Key of its own, so that it can be sent again", async () => {
  const sent: HttpCall[] = [];
  const api = apiOverHttp((call) => {
    sent.push(call);
    return Promise.resolve({ status: 200, body: "{}" });
  });
  const path = { session_id: "sess_000000000000", memory_id: "mem_000000000000" };
  for (const route of [
    "POST /v1/sessions",
    "PATCH /v1/sessions/{session_id}",
    "PATCH /v1/memory/{memory_id}",
    "GET /v1/sessions/{session_id}",
    "DELETE /v1/memory/{memory_id}",
  ] as const)
    await api(route, { path, ...(/^(POST|PATCH)/.test(route) ? { body: {} } : {}) });
  const keys = sent.map(({ headers }) => headers["Idempotency-Key"]);
  const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;
  expect(keys).toEqual([uuid, uuid, uuid, undefined, undefined]);
  expect(new Set(keys.slice(0, 3)).size).toBe(3);
});
