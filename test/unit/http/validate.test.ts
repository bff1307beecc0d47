import { expect, test } from "bun:test";
import { Type, type TObject } from "@sinclair/typebox";
import * as fc from "fast-check";
import { Created, Cursor, Default, Instant, Metadata, OneOf, Text, UserObject } from "../../../src/http/types.ts";
import { fieldReader, validator } from "../../../src/http/validate.ts";
import { ApiError } from "../../../src/lib/errors.ts";
import { nested } from "../../support/answers.ts";

const check = validator(
  Type.Object({
    name: Text(1, 3),
    state: Type.Optional(UserObject()),
    metadata: Type.Optional(Metadata("Any.")),
    tags: Type.Optional(Type.Array(Text(1, 3), { maxItems: 2 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    from: Type.Optional(Type.Integer({ minimum: 0 })),
    share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    embed: Type.Optional(Type.Boolean()),
    input: Type.Optional(Type.Object({ type: OneOf(["text", "audio"]), content: Type.String() })),
  }),
);

function refusalOf(work: () => unknown): { code: string; param: string | undefined; message: string } {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, param: error.detail.param, message: error.message };
    throw error;
  }
  throw new Error("was not refused");
}

/** Messages by body; each begins with the name of its parameter. */
const refused: Record<string, string> = {
  "{}": "name is required: a string of 1 to 3 characters.",
  '{"name":null}': "name must be a string of 1 to 3 characters; got null.",
  '{"name":null,"limit":null}': "name must be a string of 1 to 3 characters; got null.",
  '{"name":5}': "name must be a string of 1 to 3 characters; got 5.",
  '{"name":""}': 'name must be a string of 1 to 3 characters; got "".',
  '{"name":"abcd"}': 'name must be a string of 1 to 3 characters; got "abcd".',
  '{"name":"😀😀😀😀"}': 'name must be a string of 1 to 3 characters; got "😀😀😀😀".',
  [JSON.stringify({ name: "x".repeat(100) })]: "name must be a string of 1 to 3 characters; got a string of 100 characters.",
  '{"name":["a"]}': "name must be a string of 1 to 3 characters; got an array of 1 item.",
  '{"name":{"a":1}}': "name must be a string of 1 to 3 characters; got an object.",
  '{"__proto__":{"name":"a"}}': "name is required: a string of 1 to 3 characters.",
  '{"name":"a","limit":"5"}': 'limit must be an integer from 1 to 100; got "5".',
  '{"name":"a","limit":5.5}': "limit must be an integer from 1 to 100; got 5.5.",
  '{"name":"a","limit":101}': "limit must be an integer from 1 to 100; got 101.",
  '{"name":"a","limit":true}': "limit must be an integer from 1 to 100; got true.",
  '{"name":"a","from":-1}': "from must be an integer of at least 0; got -1.",
  '{"name":"a","share":1.01}': "share must be a number from 0 to 1; got 1.01.",
  '{"name":"a","embed":"true"}': 'embed must be true or false; got "true".',
  '{"name":"a","embed":0}': "embed must be true or false; got 0.",
  '{"name":"a","tags":"b"}': 'tags must be an array of at most 2 items; got "b".',
  '{"name":"a","tags":["b","c","d"]}': "tags must be an array of at most 2 items; got an array of 3 items.",
  '{"name":"a","tags":["b",""]}': 'tags.1 must be a string of 1 to 3 characters; got "".',
  '{"name":"a","tags":[null]}': "tags.0 must be a string of 1 to 3 characters; got null.",
  '{"name":"a","state":[]}': "state must be an object of at most 64 levels; got an array of 0 items.",
  '{"name":"a","state":"{}"}': 'state must be an object of at most 64 levels; got "{}".',
  [JSON.stringify({ name: "a", metadata: { text: "x".repeat(65_526) } })]:
    "metadata must be an object of at most 64 levels and 65536 bytes; got one of 65537 bytes.",
  '{"name":"a","input":{"type":"text"}}': "input.content is required: a string.",
  '{"name":"a","input":{"type":"smoke","content":""}}': 'input.type must be one of text, audio; got "smoke".',
  '{"name":"a","input":{"content":""}}': "input.type is required: one of text, audio.",
  '{"name":"a","input":"text"}': 'input must be an object with type, content; got "text".',
};

for (const [body, message] of Object.entries(refused)) {
  test(`${body.slice(0, 60)} is refused: ${message}`, () => {
    expect(refusalOf(() => check(JSON.parse(body)))).toEqual({ code: "invalid_request", param: message.split(" ")[0], message });
  });
}

const accepted: { body: string; value: unknown }[] = [
  { body: '{"name":"a"}', value: { name: "a" } },
  { body: '{"name":"😀😀😀"}', value: { name: "😀😀😀" } },
  { body: '{"name":"\\ud800\\u0000"}', value: { name: "\ud800\u0000" } },
  { body: '{"name":"a","state":null,"tags":null,"limit":null,"embed":null,"input":null}', value: { name: "a" } },
  { body: '{"name":"a","limit":5.0,"from":1e1}', value: { name: "a", limit: 5, from: 10 } },
  { body: '{"name":"a","share":0,"embed":false,"tags":[]}', value: { name: "a", share: 0, embed: false, tags: [] } },
  { body: JSON.stringify({ name: "a", state: nested(64) }), value: { name: "a", state: nested(64) } },
  {
    body: JSON.stringify({ name: "a", metadata: { text: "x".repeat(65_525) } }),
    value: { name: "a", metadata: { text: "x".repeat(65_525) } },
  },
  { body: '{"name":"a","later":[[1]]}', value: { name: "a", later: [[1]] } },
];

for (const { body, value } of accepted) {
  test(`${body.slice(0, 60)} (${body.length}) is accepted`, () => {
    expect(check(JSON.parse(body))).toEqual(value as Record<string, unknown>);
  });
}

test("a null that stands for nothing takes no other member away, `__proto__` included", () => {
  const checked = check(JSON.parse('{"name":"a","limit":null,"__proto__":{"admin":true},"state":{"__proto__":1}}'));
  expect(JSON.stringify(checked)).toBe('{"name":"a","__proto__":{"admin":true},"state":{"__proto__":1}}');
  expect(Object.getPrototypeOf(checked)).toBe(Object.prototype);
});

test("whatever the body is, it is accepted or refused with a message and the name of a field", () => {
  const schemaField = fc.constantFrom("name", "state", "metadata", "tags", "limit", "from", "share", "embed", "input");
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(schemaField, fc.string()), fc.jsonValue({ maxDepth: 4 })), (body) => {
      try {
        check(body);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        expect(error.code).toBe("invalid_request");
        expect(error.message.length).toBeLessThan(400);
        expect(error.detail.param).not.toBe("");
      }
    }),
  );
});

/** What operations get of a request with these members. */
function fieldsOf(schema: TObject, input: Record<string, unknown>): Record<string, unknown> {
  return fieldReader(schema)(validator(schema)(input));
}

test("operations get fields in camelCase, with their defaults, and none that the schema does not know", () => {
  const schema = Type.Object({
    agent_id: Text(1, 3),
    user_id: Type.Optional(Text(1, 3)),
    ttl_seconds: Default(Type.Integer({ minimum: 1 }), 60),
    initial_state: Default(UserObject(), {}),
  });
  for (const sent of [{ agent_id: "a" }, { agent_id: "a", user_id: undefined, ttl_seconds: undefined, initial_state: null }])
    expect(fieldsOf(schema, sent)).toEqual({ agentId: "a", ttlSeconds: 60, initialState: {} });
  const sent = JSON.parse(
    '{"agent_id":"a","user_id":null,"ttl_seconds":5,"initial_state":{"step_no":1},"agentId":"b","__proto__":{"userId":"c"}}',
  );
  expect(fieldsOf(schema, sent)).toEqual({ agentId: "a", ttlSeconds: 5, initialState: { step_no: 1 } });
});

test("an instant is read as milliseconds, and one that is none is refused by the name of its parameter", () => {
  const schema = Type.Object({ expires_at: Type.Optional(Instant("When.")), ...Created("sessions") });
  expect(fieldsOf(schema, {})).toEqual({});
  const noon = Date.UTC(2026, 4, 7, 12);
  const halfPast = "2026-05-07T12:00:00.0005Z";
  expect(fieldsOf(schema, { expires_at: "2026-05-07T14:00:00+02:00", created_after: halfPast, created_before: halfPast })).toEqual({
    expiresAt: noon,
    createdAfter: noon,
    createdBefore: noon + 1,
  });
  for (const param of ["expires_at", "created_after", "created_before"]) {
    expect(refusalOf(() => fieldsOf(schema, { [param]: "yesterday" }))).toEqual({
      code: "invalid_request",
      param,
      message: `${param} must be an ISO 8601 time such as 2026-05-07T08:00:00Z; got "yesterday".`,
    });
  }
});

test("a cursor that is no id of its kind is refused", () => {
  const schema = Type.Object({ starting_after: Type.Optional(Cursor("sess")) });
  expect(fieldsOf(schema, {})).toEqual({});
  expect(fieldsOf(schema, { starting_after: "sess_0VQk3aB4x1Zq" })).toEqual({ startingAfter: "sess_0VQk3aB4x1Zq" });
  for (const cursor of [
    "",
    "x",
    "sess_",
    "sess_0VQk3aB4x1Z",
    "sess_0VQk3aB4x1Zqq",
    "sess_0VQk3aB4x1Z-",
    "turn_0VQk3aB4x1Zq",
    "sess_0VQk3aB4x1Zq\n",
  ]) {
    expect(refusalOf(() => fieldsOf(schema, { starting_after: cursor }))).toEqual({
      code: "invalid_request",
      param: "starting_after",
      message: `starting_after must be an id (sess_ and 12 characters); got ${JSON.stringify(cursor)}.`,
    });
  }
});
