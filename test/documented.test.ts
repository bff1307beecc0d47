/**
 * Every answer that a test gets is compared with the OpenAPI document (`support/documented.ts`). Here: that a difference is
 * found, whatever it is.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { startCairn } from "./support/cairn.ts";
import { undocumented, type Answered } from "./support/documented.ts";

/** An answer that differs from another one. */
function changed(answer: Answered, change: { status?: number; body?: unknown; headers?: Record<string, string | null> }): Answered {
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(change.headers ?? {})) {
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  return { status: change.status ?? answer.status, headers, body: "body" in change ? change.body : answer.body };
}

test("an answer that is not as the document says is found out", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const path = `/v1/sessions/${id}`;
  const session = await cairn.get(path);
  const list = await cairn.get("/v1/sessions");
  const absent = await cairn.get("/v1/sessions/none");
  const nowhere = await cairn.get("/v2/sessions");
  const { agent_id: _, ...anonymous } = session.body;
  const error = (more: object) => ({ error: { ...absent.body.error, ...more } });
  const cases: [name: string, target: string, answer: Answered, problem: RegExp | null][] = [
    ["a session", path, session, null],
    ["a list", "/v1/sessions?limit=1", list, null],
    ["a refusal", "/v1/sessions/none", absent, null],
    ["a path that is none", "/v2/sessions", nowhere, null],
    ["a field too many", path, changed(session, { body: { ...session.body, extra: 1 } }), /additional.*extra/],
    [
      "a field too many in a list",
      "/v1/sessions",
      changed(list, { body: { ...list.body, data: [{ ...session.body, extra: 1 }] } }),
      /extra/,
    ],
    ["a field too few", path, changed(session, { body: anonymous }), /required.*agent_id/],
    ["a field of another type", path, changed(session, { body: { ...session.body, turn_count: "0" } }), /turn_count must be integer/],
    ["a time in another form", path, changed(session, { body: { ...session.body, created_at: "2026-05-07T08:00:00Z" } }), /created_at/],
    ["another kind of record", path, list, /required/],
    ["no body", path, changed(session, { body: undefined }), /must be object/],
    ["another status", path, changed(session, { status: 201 }), /^the status 201$/],
    ["another refusal", path, changed(absent, { status: 409 }), /^the status 409$/],
    ["a code of another endpoint", path, changed(absent, { body: error({ code: "trace_not_found" }) }), /trace_not_found/],
    ["a code that is none", path, changed(absent, { body: error({ code: "gone" }) }), /code must be equal/],
    ["a type of another code", path, changed(absent, { body: error({ type: "api_error" }) }), /session_not_found of the type api_error/],
    ["an error with a field too many", "/v2/sessions", changed(nowhere, { body: error({ hint: "" }) }), /hint/],
    ["no request id", path, changed(session, { headers: { "x-request-id": null } }), /^no header X-Request-Id$/],
    ["a header of others", path, changed(session, { headers: { "idempotency-replayed": "true" } }), /^the header Idempotency-Replayed$/],
    ["text", path, changed(session, { headers: { "content-type": "text/plain" } }), /^the type text\/plain$/],
  ];
  for (const [name, target, answer, problem] of cases) {
    const problems = undocumented("GET", target, answer).join("; ");
    expect({ name, problems }).toEqual({ name, problems: problem === null ? "" : expect.stringMatching(problem) });
  }
});

test("a refusal without its Retry-After or its Allow is found out", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ rateLimit: { perMinute: 1, burst: 1 } });
  await cairn.get("/v1/sessions", { key });
  const limited = await cairn.get("/v1/sessions", { key });
  const wrongMethod = await cairn.delete("/v1/sessions");
  expect([limited.status, wrongMethod.status]).toEqual([429, 405]);
  expect(undocumented("GET", "/v1/sessions", changed(limited, { headers: { "retry-after": null } }))).toEqual(["no header Retry-After"]);
  expect(undocumented("DELETE", "/v1/sessions", changed(wrongMethod, { headers: { allow: null } }))).toEqual(["no header Allow"]);
});

test("a test whose request is answered otherwise fails", async () => {
  await using cairn = await startCairn();
  await cairn.get("/health");
  Object.assign(cairn.service.settings.values, { region: 7 });
  expect(cairn.get("/health")).rejects.toThrow(/not as the OpenAPI document says: GET \/health answered 200 .*\/region must be string/);
});
