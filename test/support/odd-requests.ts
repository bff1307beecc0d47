/**
 * Requests that nobody would write: for every endpoint one that would be accepted, then spoiled in a few places.
 *
 * @module
 */
import { Kind, OptionalKind, type TObject, type TSchema } from "@sinclair/typebox";
import * as fc from "fast-check";
import type { Endpoint } from "../../src/http/endpoint.ts";
import { OBJECT_KIND, ONE_OF, TEXT_KIND } from "../../src/http/types.ts";
import type { Answer, Cairn } from "./cairn.ts";
import { Chance } from "./process.ts";
import { oneOfEach, REQUESTS } from "./requests.ts";
import { manyRareWords } from "./texts.ts";

/** Stand for ids of records that exist when the request is sent. */
const NAMES = ["SESSION", "EXPIRED", "TURN", "MEMORY", "TRACE", "KEY", "WEBHOOK", "DELIVERY", "USER", "BACKUP"] as const;
type Name = (typeof NAMES)[number];

/** These would call another server, or change how the rest is answered: only nonsense is sent for them. */
const NEVER_IN_EARNEST = new Set(["embedding", "max_body_bytes"]);

export interface Sent {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | null;
}

// What a caller might send.

const oddText = fc.oneof(
  fc.constantFrom(...'| |__proto__|constructor|\0|😀|null|-1|1e999|../..|%00|a,b|"|\\'.split("|"), "\ud800", "\ude00\ud83d"),
  fc.constantFrom("sess_000000000000", "mem_zzzzzzzzzzzz", "sess_0VQk3aB4x1Zq ", "turn_", "trace_\u0000", ...NAMES),
  fc.constantFrom(
    "2026-05-07T08:00:00Z",
    "2026-02-30T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "+275760-09-13T00:00:00Z",
    "2026-05-07T08:00:00+99:99",
  ),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(65, 129, 257, 10_001, 70_000).map((length) => "x".repeat(length)),
);
const oddNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 0.5, 101, 2_592_001, 2 ** 31, 2 ** 53, -(2 ** 53) - 2, 1e21, 1e308, -1e308, 5e-324),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const deep = fc.constantFrom(63, 64, 65, 66, 1_000, 20_000).map((levels) => "[".repeat(levels) + "]".repeat(levels));
/** JSON text, since some of it has no value in JavaScript. */
const oddJson = fc.oneof(
  fc.constantFrom(...'null|true|false|{}|[]|[[]]|[null,""]|{"__proto__":{"polluted":1}}|{"a":1,"a":2}|1e999|-1e400'.split("|")),
  oddText.map((text) => JSON.stringify(text)),
  oddNumber.map((number) => JSON.stringify(number)),
  fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.stringify(value)),
  fc.array(oddText, { maxLength: 80 }).map((texts) => JSON.stringify(texts)),
  deep,
  deep.map((text) => `{"a":${text}}`),
);

/** No names, which would have to be looked up, and nothing but this machine: `webhooks.allow_private` may come to be true. */
const urls = fc.constantFrom(
  ..."http://127.0.0.1:9/hook http://127.0.0.1:9/hook?a=b#c http://127.0.0.2:9/latest http://0x7f.1/ http://127.0.0.1:99999/".split(" "),
  ..."http://[::1 http://[::ffff:127.0.0.1]:9/ https://user:password@127.0.0.1/ file:///etc/passwd javascript:alert(1) http://".split(" "),
  "//127.0.0.1/",
);

/** Words that nothing else has, as in logs and lists of ids. */
const longText = fc
  .tuple(fc.nat(), fc.constantFrom(200, 2_000, 5_000, 10_000))
  .map(([seed, length]) => manyRareWords(new Chance(seed), length));
const plainText = fc.oneof(
  { weight: 15, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }) },
  { weight: 1, arbitrary: longText },
);
const json = (value: unknown) => JSON.stringify(value);

/** JSON text that fits a schema, most of the time. */
function fitting(schema: TSchema, name: string): fc.Arbitrary<string> {
  if (NEVER_IN_EARNEST.has(name)) return oddJson;
  if (name === "url") return fc.oneof(urls.map(json), oddJson);
  if (name === "session_id") return fc.constantFrom("SESSION", "SESSION", "EXPIRED").map(json);
  const oneOf = schema[ONE_OF] as readonly string[] | undefined;
  if (oneOf !== undefined) return fc.constantFrom(...oneOf).map(json);
  if (schema["format"] === "date-time") return fc.constantFrom("2026-05-07T08:00:00Z", "2027-01-01T00:00:00+02:00").map(json);
  if (schema[Kind] === OBJECT_KIND) return fc.dictionary(plainText, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 }).map(json);
  if (schema[Kind] === TEXT_KIND)
    return plainText.map((text) => json(text.slice(0, (schema["maxLength"] as number | undefined) ?? 30) || "x"));
  switch (schema["type"]) {
    case "object":
      return "op" in (schema as TObject).properties ? operationOf(schema as TObject) : objectOf(schema as TObject).map(objectText);
    case "array":
      return fc.array(fitting(schema["items"] as TSchema, name), { maxLength: 4 }).map((items) => `[${items.join(",")}]`);
    case "integer": {
      const [min, max] = [(schema["minimum"] as number | undefined) ?? -2, (schema["maximum"] as number | undefined) ?? 3];
      return fc.integer({ min, max: Math.max(min, max) }).map(json);
    }
    case "number":
      return fc.double({ min: 0, max: 1, noNaN: true }).map(json);
    case "boolean":
      return fc.boolean().map(json);
    default:
      return plainText.map(json);
  }
}

/** Operations on documents with members that they take: any others are hardly ever accepted. */
const OPERATIONS: Record<string, readonly string[]> = {
  put: ["namespace value", "namespace key value", "namespace key value index session_id ttl_seconds if_version"],
  delete: ["namespace key"],
  delete_all: ["namespace", "namespace filter cursor"],
  copy_all: ["namespace to", "namespace to cursor"],
  pop: ["namespace order"],
  get: ["namespace key"],
  list: ["namespace deep", "namespace after before order", "namespace filter offset limit"],
  count: ["namespace deep"],
  search: ["namespace query filter threshold"],
  namespaces: ["prefix suffix max_depth limit"],
};

/** An operation of one that the schema has, or whatever its members are. */
function operationOf(schema: TObject): fc.Arbitrary<string> {
  const ops = (schema.properties["op"]?.[ONE_OF] ?? []) as readonly string[];
  const known = ops.flatMap((op) =>
    (OPERATIONS[op] ?? []).map((names) => {
      const properties = Object.fromEntries(names.split(" ").map((name) => [name, schema.properties[name]!]));
      return objectOf({ ...schema, properties }).map((members): Members => [["op", json(op)], ...members]);
    }),
  );
  return fc.oneof(...known, objectOf(schema)).map(objectText);
}

function objectText(members: Members): string {
  return `{${members.map(([key, value]) => `${json(key)}:${value}`).join(",")}}`;
}

type Members = [name: string, json: string][];

function objectOf(schema: TObject): fc.Arbitrary<Members> {
  const members = Object.entries(schema.properties).map(([name, property]) => {
    const member = fitting(property, name).map((value): Members => [[name, value]]);
    return OptionalKind in property ? fc.oneof(member, fc.constant<Members>([]), fc.constant<Members>([[name, "null"]])) : member;
  });
  return fc.tuple(...members).map((parts) => parts.flat());
}

// What can be wrong with it.

const oddSegment = fc.oneof(
  oddText.filter((text) => text.isWellFormed()).map((text) => encodeURIComponent(text)),
  fc.constantFrom("%ZZ", "%", "..", ".", ";", "a%2Fb", ":id", "*", "%F0%9F", "sess_0VQk3aB4x1Zq%00"),
);
const oddMembers = fc.array(fc.tuple(fc.oneof(oddText, fc.constantFrom("id", "object", "created_at", "state", "reason")), oddJson), {
  maxLength: 3,
});
const oddBody = fc.oneof(
  oddJson,
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Uint8Array.from(bytes)),
  fc.constantFrom(
    ...'|{|{"agent_id":|agent_id=a|{"agent_id":"a"}{}|\ufeff{}|NaN'.split("|"),
    "[".repeat(200_000),
    `"${"x".repeat(1_100_000)}"`,
  ),
);
const oddHeader = fc.oneof(
  fc.tuple(
    fc.constant("content-type"),
    fc.constantFrom("", "text/plain", "application/json; charset=utf-16", "multipart/form-data", "a".repeat(5_000)),
  ),
  fc.tuple(fc.constant("content-encoding"), fc.constantFrom("gzip", "identity", "br", "\u00ff")),
  fc.tuple(fc.constant("content-length"), fc.constantFrom("9999999", "1048577", "99999999999999999999")),
  fc.tuple(fc.constant("idempotency-key"), fc.constantFrom("", "k", "k2", "\u00e9", "x".repeat(256), "x".repeat(255))),
  fc.tuple(fc.constant("x-request-id"), fc.constantFrom("", "mine", "a b", "x".repeat(500), "\u00e9")),
  fc.tuple(fc.constant("x-api-key"), fc.constantFrom("", "crn_000000000000000000000000", "\u00ff", "x".repeat(5_000))),
  fc.tuple(fc.constant("authorization"), fc.constantFrom("", "Bearer", "Bearer crn_", "Basic dTpw")),
  fc.tuple(fc.constant("host"), fc.constantFrom("evil.example", "localhost:1", "", "[::1]")),
);

/** The names of all parameters of queries, whichever endpoint has them. */
const QUERY_NAMES = [...new Set(REQUESTS.flatMap(({ query }) => query.map(({ name }) => name)))];

type Spoil =
  | { kind: "replace"; at: number; with: string }
  | { kind: "drop"; at: number }
  | { kind: "add"; members: Members }
  | { kind: "body"; body: string | Uint8Array<ArrayBuffer> }
  | { kind: "method"; method: string }
  | { kind: "segment"; at: number; with: string }
  | { kind: "query"; name: string; text: string }
  | { kind: "header"; name: string; text: string };

const spoil: fc.Arbitrary<Spoil> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("replace" as const), at: fc.nat(20), with: oddJson }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop" as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("add" as const), members: oddMembers }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("body" as const), body: oddBody }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("method" as const),
      method: fc.constantFrom("GET", "HEAD", "PUT", "PATCH", "OPTIONS", "DELETE", "POST"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("segment" as const), at: fc.nat(5), with: oddSegment }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("query" as const),
      name: fc.constantFrom(...QUERY_NAMES, "__proto__"),
      text: oddSegment,
    }),
  },
  { weight: 2, arbitrary: oddHeader.map(([name, text]) => ({ kind: "header" as const, name, text })) },
);

/** Few enough to meet again, with another request or the same. */
const idempotencyKey = fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(500).map((n) => `key ${n}`) });

/** Requests to an endpoint. */
export function requestTo(endpoint: Endpoint): fc.Arbitrary<Sent> {
  const members = endpoint.body === null ? fc.constant<Members | null>(null) : objectOf(endpoint.body);
  return fc
    .record({
      members,
      query: objectOf(endpoint.query),
      idempotencyKey,
      spoils: fc.array(spoil, { maxLength: 3 }),
    })
    .map(({ members, query, idempotencyKey, spoils }) => {
      let method: string = endpoint.method;
      let segments = endpoint.path.split("/");
      let body: Members | string | Uint8Array<ArrayBuffer> | null = members;
      const search = new Map<string, string>(
        query.filter(([, value]) => value !== "null").map(([name, value]) => [name, queryText(value)]),
      );
      const headers: Record<string, string> = { "content-type": "application/json" };
      if (idempotencyKey !== null) headers["idempotency-key"] = idempotencyKey;
      for (const change of spoils) {
        switch (change.kind) {
          case "replace":
            if (Array.isArray(body)) body = body.map(([name, value], i, all) => [name, i === change.at % all.length ? change.with : value]);
            break;
          case "drop":
            if (Array.isArray(body)) body = body.filter((_, i, all) => i !== change.at % all.length);
            break;
          case "add":
            if (Array.isArray(body)) body = [...body, ...change.members];
            break;
          case "body":
            body = change.body;
            break;
          case "method":
            method = change.method;
            break;
          case "segment":
            segments = segments.map((segment, i) => (i === 1 + (change.at % (segments.length - 1)) ? change.with : segment));
            break;
          case "query":
            search.set(change.name, change.text);
            break;
          case "header":
            headers[change.name] = change.text;
            break;
        }
      }
      const path = `${segments.join("/")}${search.size === 0 ? "" : "?"}${[...search].map(([name, text]) => `${name}=${text}`).join("&")}`;
      const text = Array.isArray(body) ? `{${body.map(([name, value]) => `${json(name)}:${value}`).join(",")}}` : body;
      const sent: Sent = { method, path, headers, body: method === "GET" || method === "HEAD" ? null : text };
      // A body can have a megabyte; the seed brings all of it back.
      return { ...sent, [fc.toStringMethod]: () => fc.stringify(sent).slice(0, 1_000) };
    });
}

/** A value as it stands in a query. */
function queryText(value: string): string {
  const parsed = JSON.parse(value) as unknown;
  return encodeURIComponent(typeof parsed === "string" ? parsed.toWellFormed() : value);
}

// Where it is sent.

/** A Cairn with the records that requests name. */
export class World {
  readonly cairn: Cairn;
  #ids = {} as Record<Name, string>;

  constructor(cairn: Cairn) {
    this.cairn = cairn;
  }

  /** One record of each kind; others when a request has deleted one. */
  async fill(): Promise<void> {
    const { cairn } = this;
    const expired = await cairn.createSession({ ttl_seconds: 1 });
    cairn.clock.advance({ seconds: 1 });
    // There can be a hundred.
    for (const { id } of await cairn.list("/v1/webhooks?limit=100")) await cairn.ok(cairn.delete(`/v1/webhooks/${id}`));
    const ids = Object.entries(await oneOfEach(cairn)).map(([name, id]) => [name.replace(/_id$/, "").toUpperCase(), id]);
    this.#ids = { ...Object.fromEntries(ids), EXPIRED: expired.id };
  }

  named(text: string): string {
    return text
      .replace(/\{(\w+)_id\}/g, (_, name: string) => this.#ids[name.toUpperCase() as Name] ?? "none")
      .replace("{version}", "0")
      .replace(new RegExp(String.raw`\b(${NAMES.join("|")})\b`, "g"), (name) => this.#ids[name as Name]);
  }

  send({ method, path, headers, body }: Sent): Promise<Answer> {
    const raw = typeof body === "string" ? this.named(body) : body;
    return this.cairn.request(method, this.named(path), { headers, ...(raw === null ? {} : { raw }) });
  }
}
