/**
 * The OpenAPI document, made from the table of endpoints: the schemas that validate are the schemas that it shows.
 *
 * OpenAPI 3.0.3, because every generator of clients reads it. What several operations share is a component: schemas with a
 * title, error responses, headers.
 *
 * @module
 */
import { Type, type TSchema } from "@sinclair/typebox";
import { ERRORS, type WireCode } from "../lib/errors.ts";
import type { JsonObject, JsonValue } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Access } from "../lib/scopes.ts";
import { pascalCase } from "../lib/text.ts";
import { isIdempotent, operationId, type Callback, type Endpoint } from "./endpoint.ts";
import { ErrorBody, errorDescription, errorExample, errorsOf } from "./error-docs.ts";
import { openApiSchema, type SchemaComponents } from "./openapi-schema.ts";
import { DURABILITIES } from "../storage/durability.ts";
import { pathSchema } from "./path-parameters.ts";
import { hasReceipt, Receipt } from "./receipt.ts";
import { exampleOf, OneOf, OrNull, Timestamp } from "./types.ts";

export const TITLE = "Cairn";
export const SUMMARY = "Sessions with versioned state, turns, memories with semantic search, and traces, for AI agents.";

const DESCRIPTION = `${SUMMARY} The [guide](/docs/guide) says how to use and to operate it.

- **Keys.** Every request under \`/v1\` needs an API key, in the header \`X-API-Key\` or as \`Authorization: Bearer\`. A key has
  scopes: \`read\`, \`write\` and \`admin\`, which implies the others.
- **Bodies** are JSON objects with \`Content-Type: application/json\`, of at most ${LIMITS.bodyBytesMax / 1024 / 1024} MiB unless
  the setting \`max_body_bytes\` says otherwise. With \`Content-Encoding: gzip\` they are compressed, and have that limit as they come
  out of it. \`/health\` says the limit. Types are strict. Unknown fields are ignored, except that unknown settings are refused, and a misspelt field (\`userId\`,
  or one letter off a field that is not there) is 400 with "did you mean", in a query too, but not in \`PATCH …/state\` and on the paths made for the SDKs of StateBase. A null for an
  optional field is the same as leaving it out, except where a key would be bound to it. Nothing in a body nests deeper than ${LIMITS.jsonDepthMax} levels. A whole number that a double
  does not hold exactly (from 2^53 on) is refused with its path, such as \`state.order.id\`: send it as a string. Lengths of strings are
  counted in code points. A body must arrive within ${LIMITS.bodySecondsMax} s, or at ${LIMITS.bodyBytesPerSecondMin / 1024} KiB a second if that takes longer. While bodies that are arriving
  take ${LIMITS.arrivingBytesMax / 1024 / 1024} MiB in all, or half of that for one key, others are answered 503 with \`Retry-After\`.
- **Answers** of 4 KiB and more are compressed for clients that send \`Accept-Encoding: gzip\`, but for streams and files.
- **Times** are ISO 8601 in UTC with milliseconds. **Ids** are a prefix, an underscore and 12 letters or digits, and sort by time.
- **Lists** are newest first. A filter that only other lists have is refused, because ignoring it would return too much; a parameter that
  no list has is ignored, unless it is a misspelt one. While \`has_more\` is true, pass \`last_id\` as \`starting_after\` to get the next page.
  A page of large records ends early, after ${LIMITS.pageBytesMax / 1024 / 1024} MiB, with \`has_more\`. So does one whose filters rarely match,
  after ${LIMITS.listProbesMax.toLocaleString("en")} index entries: it can be short or empty, and its \`last_id\` is where the next page continues.
- **Read answers** as they arrive: while answers that clients do not read take ${LIMITS.unsentBytesMax / 1024 / 1024} MiB in all, or half of that for one
  key, others are 503 with \`Retry-After\`.
- **Errors** have a \`code\` and a \`message\` that says what was expected and what came. A path that does not exist is 404
  \`resource_not_found\`; a method that a path does not allow is 405 \`invalid_request\`, and the header \`Allow\` lists those it does.
- **Retries** are safe with an \`Idempotency-Key\`: one change and one answer, for ${LIMITS.idempotencyHours} hours. Search and
  context change nothing and ignore it. Answers that are larger than what they changed, such as that of a PATCH of nothing in a large session,
  are kept up to ${LIMITS.keptAnswerBytesMax / 1024 / 1024} MiB in ${LIMITS.idempotencyHours} hours for each API key; beyond that a request with the header is 429, and can be sent without it.
- **Rates** are limited for each key. The headers \`X-RateLimit-*\` of every response say how much is left.`;

const BY_KEY = [{ ApiKey: [] }, { Bearer: [] }];
const HEALTH_TAG = { name: "Health", description: "Whether the server is up and ready. Needs no key." };

const HEADERS: Record<string, JsonObject> = {
  "X-Request-Id": {
    required: true,
    description: "Id of the request, also in the trace and in errors: your own header `X-Request-Id` if you sent one, else a new one.",
    schema: { type: "string", example: "req_0VQk3bD4w8Vu" },
  },
  "X-RateLimit-Limit": { required: true, description: "Requests per minute.", schema: { type: "integer", example: 1000 } },
  "X-RateLimit-Remaining": {
    required: true,
    description: "How many requests can be made now, before the limit is reached.",
    schema: { type: "integer", example: 1999 },
  },
  "X-RateLimit-Reset": {
    required: true,
    description: "Unix time in seconds at which the whole burst is available again.",
    schema: { type: "integer", example: 1778140801 },
  },
  "Retry-After": { required: true, description: "Seconds to wait.", schema: { type: "integer", example: 1 } },
  "Idempotency-Replayed": {
    description: "`true`: this is the answer to an earlier request with this `Idempotency-Key`; nothing was changed.",
    schema: { type: "string", enum: ["true"] },
  },
  "X-StateBase-Latency": {
    required: true,
    description: "How long the request took, for the SDKs of StateBase.",
    schema: { type: "string", example: "1.2ms" },
  },
};
const RETRY_AFTER_IF_KNOWN = { description: "Seconds to wait, if they are known.", schema: { type: "integer", example: 1 } };
const ON_EVERY_RESPONSE = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

const IDEMPOTENCY_KEY: JsonObject = {
  name: "Idempotency-Key",
  in: "header",
  description: `1 to ${LIMITS.idempotencyKeyLengthMax} printable ASCII characters. Repeating the request with the same key within ${LIMITS.idempotencyHours} hours changes nothing and returns the first answer again. The same key with another request is 400 \`invalid_request\`.`,
  schema: { type: "string", minLength: 1, maxLength: LIMITS.idempotencyKeyLengthMax },
};

const Health = Type.Object(
  {
    status: OneOf(["ready", "degraded"], {
      description: "`degraded` while the store cannot be read or takes no changes, the vector index has failed, or the server is stopping.",
    }),
    reason: Type.Optional(Type.String({ description: "Why it is degraded." })),
    version: Type.String({ description: "Version of Cairn." }),
    durability: OneOf(DURABILITIES, { description: "Whether a write is answered after it is on disk (`strict`) or before (`relaxed`)." }),
    region: Type.Optional(Type.String({ description: "Label of this deployment, if it has one." })),
    max_body_bytes: Type.Integer({
      description: "Largest body of a request, as it comes out of gzip (setting `max_body_bytes`).",
      examples: [1_048_576],
    }),
    certificate: Type.Optional(
      Type.Object(
        {
          expires_at: OrNull(Timestamp("When it ends.")),
          overdue: Type.Boolean({ description: "True if it should have been renewed long before.", examples: [false] }),
          error: OrNull(Type.String({ description: "Why the last order failed; null once one has succeeded since." })),
        },
        { description: "The certificate of a server that gets its own (`--domain`)." },
      ),
    ),
  },
  { title: "Health", description: "What the server can do now." },
);
const HEALTH = [
  { path: "/health", operationId: "getHealth", summary: "Get the health" },
  { path: "/health/ready", operationId: "getReadiness", summary: "Get the readiness, for probes" },
  { path: "/health/live", operationId: "getLiveness", summary: "Get the liveness, for probes" },
];

/** Components that operations refer to; each adds its own. */
interface Components {
  schemas: SchemaComponents;
  responses: Map<string, JsonObject>;
}

export function openApiDocument(endpoints: readonly Endpoint[], version: string): JsonObject {
  const components: Components = { schemas: new Map(), responses: new Map() };
  const paths: Record<string, JsonObject> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operationOf(endpoint, components) };
  }
  for (const { path, operationId, summary } of HEALTH) {
    const ready = success(
      path === "/health/live" ? "The process is alive." : "Reads, changes and searches work.",
      Health,
      { status: "ready", version, durability: "strict" },
      [],
      components,
    );
    const reason = "The disk is nearly full (less than 64 MiB free).";
    const degraded = success(
      "Reads, changes or searches fail.",
      Health,
      { status: "degraded", reason, version, durability: "strict" },
      [],
      components,
    );
    const responses = {
      200: ready,
      ...(path === "/health/live" ? {} : { 503: degraded }),
      ...errorResponses(["permission_denied", "internal_error"], components),
    };
    paths[path] = { get: { operationId, tags: [HEALTH_TAG.name], summary, security: [], responses } };
  }
  return {
    openapi: "3.0.3",
    info: { title: TITLE, description: DESCRIPTION, version, license: { name: "Apache-2.0" } },
    servers: [{ url: "/" }],
    security: BY_KEY,
    tags: [...new Set(endpoints.map(({ tag }) => tag)), HEALTH_TAG].map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        ApiKey: { type: "apiKey", in: "header", name: "X-API-Key", description: "`crn_` and 24 letters or digits." },
        Bearer: { type: "http", scheme: "bearer", description: "The API key, as a bearer token." },
        Ticket: { type: "apiKey", in: "query", name: "ticket", description: "Stands for a key once, for one URL." },
      },
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      headers: HEADERS,
      schemas: sorted(components.schemas),
      responses: sorted(components.responses),
    },
  };
}

const NEEDED: Partial<Record<Access, string>> = {
  any: "Needs an API key, whatever its scopes.",
  sign_in: "Needs an API key, whatever its scopes, or that of a sign-in link.",
};

const RECEIPT =
  "A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of the record that " +
  "say which it is, its versions and its times.";

function operationOf(endpoint: Endpoint, components: Components): JsonObject {
  const { tag, scope, summary, description, body, example } = endpoint;
  const required = new Set(endpoint.query.required);
  const parameters = [
    ...Object.entries<TSchema>(pathSchema(endpoint.path).properties).map(([name, schema]) =>
      parameter("path", name, schema, true, components),
    ),
    ...Object.entries<TSchema>(endpoint.query.properties).map(([name, schema]) =>
      parameter("query", name, schema, required.has(name), components),
    ),
    ...(isIdempotent(endpoint) ? [{ $ref: "#/components/parameters/IdempotencyKey" }] : []),
  ];
  const headers = [
    ...(isIdempotent(endpoint) ? ["Idempotency-Replayed"] : []),
    ...(endpoint.latencyHeader === undefined ? [] : [endpoint.latencyHeader]),
  ];
  const answered = (when: string) => success(when, endpoint.response, example.response as JsonValue, headers, components, endpoint.media);
  return {
    operationId: operationId(endpoint),
    tags: [tag.name],
    summary,
    description: [description, NEEDED[scope] ?? `Needs a key with the scope \`${scope}\`.`, hasReceipt(endpoint) ? RECEIPT : undefined]
      .filter((part) => part !== undefined)
      .join("\n\n"),
    "x-scope": scope,
    ...(hasReceipt(endpoint) ? { "x-without-read": openApiSchema(Receipt, components.schemas) } : {}),
    ...(endpoint.takesTicket ? { security: [...BY_KEY, { Ticket: [] }] } : {}),
    parameters,
    ...(body === null
      ? {}
      : {
          requestBody: {
            required: (body.required ?? []).length > 0,
            content: content(body, { example: example.request as JsonValue }, components),
          },
        }),
    responses: {
      [endpoint.status]: answered(endpoint.response.description ?? summary),
      ...(endpoint.existing === undefined ? {} : { 200: answered(endpoint.existing) }),
      ...errorResponses(errorsOf(endpoint), components),
    },
    ...(endpoint.callback === undefined ? {} : { callbacks: callbackOf(endpoint.callback, components) }),
  };
}

function callbackOf({ name, url, summary, description, headers, body, examples, answers }: Callback, components: Components): JsonObject {
  const parameters = Object.entries(headers).map(([header, is]) => ({
    name: header,
    in: "header",
    required: true,
    description: is,
    schema: { type: "string" },
  }));
  const shown = Object.fromEntries(Object.entries(examples).map(([type, value]) => [type, { value: value as JsonObject }]));
  const requestBody = { required: true, content: content(body, { examples: shown }, components) };
  const responses = Object.fromEntries(Object.entries(answers).map(([status, says]) => [status, { description: says }]));
  return { [name]: { [url]: { post: { summary, description, security: [], parameters, requestBody, responses } } } };
}

function parameter(place: "path" | "query", name: string, schema: TSchema, required: boolean, { schemas }: Components): JsonObject {
  const { description = schema.description ?? `The ${name.replace(/_id$/, "")}.`, ...rest } = openApiSchema(schema, schemas);
  const head = { name, in: place, required, description };
  if (schema["type"] !== "object") return { ...head, schema: rest };
  return { ...head, content: { "application/json": { schema: rest, example: exampleOf(schema) as JsonValue } } };
}

function success(
  description: string,
  schema: TSchema,
  example: JsonValue,
  headers: string[],
  components: Components,
  media = "application/json",
): JsonObject {
  return {
    description,
    headers: headerReferences([...ON_EVERY_RESPONSE, ...headers]),
    content: content(schema, { example }, components, media),
  };
}

/** Returns one response for each status, with all the codes it can have. */
function errorResponses(codes: readonly WireCode[], components: Components): Record<string, JsonObject> {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    Array.from(byStatus, ([status, ofStatus]) => {
      const name = ofStatus.map(pascalCase).join("Or");
      components.responses.set(name, {
        description: ofStatus.map(errorDescription).join("\n\n"),
        headers: {
          ...headerReferences(status === 429 ? [...ON_EVERY_RESPONSE, "Retry-After"] : ON_EVERY_RESPONSE),
          ...(status === 503 ? { "Retry-After": RETRY_AFTER_IF_KNOWN } : {}),
        },
        content: content(
          ErrorBody,
          { examples: Object.fromEntries(ofStatus.map((code) => [code, { value: errorExample(code) }])) },
          components,
        ),
      });
      return [String(status), { $ref: `#/components/responses/${name}` }];
    }),
  );
}

function content(schema: TSchema, examples: JsonObject, { schemas }: Components, media = "application/json"): JsonObject {
  return { [media]: { schema: openApiSchema(schema, schemas), ...examples } };
}

function headerReferences(names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function sorted(components: ReadonlyMap<string, JsonObject>): JsonObject {
  return Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)));
}
