/**
 * What the OpenAPI document does not allow is refused by the name of its field and changes nothing; what it allows is taken.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { jsonDepth } from "../src/lib/json.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { nested, refusal, unknownId } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { DOCUMENT, resolved } from "./support/documented.ts";
import { oneOfEach, REQUESTS, type DocumentedRequest, type FieldSchema, type Ids } from "./support/requests.ts";

/** Of every field that a body can have and that has any: the smallest and largest value or length, and the default. */
const LIMITED: Record<string, string> = {
  "ApiKeyRoll.force": "default false",
  "ApiKeyRoll.overlap_seconds": "0 to 604800, default 86400",
  "ContextRequest.explain": "default false",
  "ContextRequest.filter.$and": "1 or more",
  "ContextRequest.filter.$or": "1 or more",
  "ContextRequest.format": 'json or text or messages, default "json"',
  "ContextRequest.importance_weight": "0 to 1",
  "ContextRequest.include": "1 to 4",
  "ContextRequest.max_tokens": "1 to 200000",
  "ContextRequest.memory_limit": "0 to 20",
  "ContextRequest.memory_scope": "session or user or agent",
  "ContextRequest.query": "0 to 10000",
  "ContextRequest.recency.half_life_days": "0 to 3650000",
  "ContextRequest.recency.weight": "0 to 1",
  "ContextRequest.turn_limit": "0 to 50",
  "DocumentBatch.agent_id": "1 to 256",
  "DocumentBatch.operations": "1 to 100",
  "DocumentBatch.operations[].cursor": "1 or more",
  "DocumentBatch.operations[].filter.$and": "1 or more",
  "DocumentBatch.operations[].filter.$or": "1 or more",
  "DocumentBatch.operations[].if_exists": "replace or keep",
  "DocumentBatch.operations[].key": "1 or more",
  "DocumentBatch.operations[].namespace": "1 to 16",
  "DocumentBatch.operations[].namespace[]": "1 or more",
  "DocumentBatch.operations[].op": "put or touch or delete or delete_all or copy_all or pop",
  "DocumentBatch.operations[].order": "asc or desc",
  "DocumentBatch.operations[].session_id": "1 or more",
  "DocumentBatch.operations[].to": "1 to 16",
  "DocumentBatch.operations[].to[]": "1 or more",
  "DocumentBatch.operations[].ttl_seconds": "0.001 or more or never",
  "DocumentBatch.user_id": "1 to 256",
  "DocumentQuery.agent_id": "1 to 256",
  "DocumentQuery.operations": "1 to 100",
  "DocumentQuery.operations[].after": "1 or more",
  "DocumentQuery.operations[].before": "1 or more",
  "DocumentQuery.operations[].cursor": "1 or more",
  "DocumentQuery.operations[].fields": "1 to 32",
  "DocumentQuery.operations[].filter.$and": "1 or more",
  "DocumentQuery.operations[].filter.$or": "1 or more",
  "DocumentQuery.operations[].key": "1 or more",
  "DocumentQuery.operations[].limit": "1 to 1000",
  "DocumentQuery.operations[].max_depth": "1 to 16",
  "DocumentQuery.operations[].namespace": "1 to 16",
  "DocumentQuery.operations[].namespace[]": "1 or more",
  "DocumentQuery.operations[].offset": "0 to 10000, default 0",
  "DocumentQuery.operations[].op": "get or list or search or count or namespaces",
  "DocumentQuery.operations[].order": "asc or desc",
  "DocumentQuery.operations[].order_by": "key or updated_at",
  "DocumentQuery.operations[].prefix": "0 to 16",
  "DocumentQuery.operations[].prefix[]": "1 or more",
  "DocumentQuery.operations[].query": "0 to 10000",
  "DocumentQuery.operations[].suffix": "0 to 16",
  "DocumentQuery.operations[].suffix[]": "1 or more",
  "DocumentQuery.operations[].threshold": "0 to 1",
  "DocumentQuery.user_id": "1 to 256",
  "EmbeddingTry.content": '1 to 10000, default "The customer prefers e-mail to phone calls."',
  "EmbeddingTry.embedding.api_key": "0 to 2048",
  "EmbeddingTry.embedding.base_url": "0 to 2048",
  "EmbeddingTry.embedding.document_prefix": "0 to 2048",
  "EmbeddingTry.embedding.model": "0 to 2048",
  "EmbeddingTry.embedding.provider": "builtin or words or openai or local",
  "EmbeddingTry.embedding.query_prefix": "0 to 2048",
  "EmbeddingTry.embedding.dimensions": "1 to 1536",
  "EmbeddingTry.embedding.relevant_cosine": "-1 to 1",
  "EmbeddingTry.query": '1 to 10000, default "How does the customer prefer to be contacted?"',
  "Forgetting.dry_run": "default true",
  "Forgetting.filter.$and": "1 or more",
  "Forgetting.filter.$or": "1 or more",
  "Forgetting.limit": "1 to 1000, default 100",
  "Forgetting.reason": "0 to 10000",
  "Forgetting.token": "1 or more",
  "Fork.memories": 'none or session, default "none"',
  "Fork.turns": '0 to 1000 or none or all, default "none"',
  "MemoryBatch.memories": "1 to 100",
  "MemoryBatch.memories[].agent_id": "1 to 256",
  "MemoryBatch.memories[].content": "1 or more",
  "MemoryBatch.memories[].embed": "default true",
  "MemoryBatch.memories[].external_id": "1 to 256",
  "MemoryBatch.memories[].if_exists": 'error or update or return, default "error"',
  "MemoryBatch.memories[].on_duplicate": 'allow or return or update, default "allow"',
  "MemoryBatch.memories[].importance": "0 to 1",
  "MemoryBatch.memories[].metadata": "default {}",
  "MemoryBatch.memories[].session_id": "1 or more",
  "MemoryBatch.memories[].reason": "0 to 10000",
  "MemoryBatch.memories[].similar.limit": "1 to 10",
  "MemoryBatch.memories[].similar.threshold": "0 to 1",
  "MemoryBatch.memories[].source": "user or agent or tool or import",
  "MemoryBatch.memories[].supersedes": "0 to 32",
  "MemoryBatch.memories[].supersedes[]": "1 or more",
  "MemoryBatch.memories[].tags": "0 to 64, default []",
  "MemoryBatch.memories[].tags[]": "1 to 128",
  "MemoryBatch.memories[].ttl_seconds": "1 to 3155760000",
  "MemoryBatch.memories[].type": '1 to 64, default "general"',
  "MemoryBatch.memories[].user_id": "1 to 256",
  "MemoryChanges.content": "1 or more",
  "MemoryChanges.external_id": "1 to 256",
  "MemoryChanges.importance": "0 to 1",
  "MemoryChanges.reason": "0 to 10000",
  "MemoryChanges.source": "user or agent or tool or import",
  "MemoryChanges.tags": "0 to 64",
  "MemoryChanges.tags[]": "1 to 128",
  "MemoryChanges.ttl_seconds": "1 to 3155760000",
  "MemoryChanges.type": "1 to 64",
  "MemorySearch.agent_id": "1 to 256",
  "MemorySearch.explain": "default false",
  "MemorySearch.filter.$and": "1 or more",
  "MemorySearch.filter.$or": "1 or more",
  "MemorySearch.importance_weight": "0 to 1",
  "MemorySearch.limit": "1 to 50, default 10",
  "MemorySearch.query": "0 to 10000",
  "MemorySearch.recency.half_life_days": "0 to 3650000",
  "MemorySearch.recency.weight": "0 to 1",
  "MemorySearch.session_id": "1 or more",
  "MemorySearch.status": "current or past or future or all",
  "MemorySearch.tags": "0 to 64",
  "MemorySearch.tags[]": "1 to 128",
  "MemorySearch.tags_match": "any or all",
  "MemorySearch.threshold": "0 to 1, default 0.7",
  "MemorySearch.type": "1 to 64",
  "MemorySearch.types": "0 to 64",
  "MemorySearch.types[]": "1 to 64",
  "MemorySearch.user_id": "1 to 256",
  "NewApiKey.agent_id": "1 to 256",
  "NewApiKey.name": "1 to 256",
  "NewApiKey.rate_limit.burst": "1 to 1000000000",
  "NewApiKey.rate_limit.per_minute": "1 to 1000000000",
  "NewApiKey.scopes": '1 to 3, default ["read","write"]',
  "NewApiKey.tier": 'free or pro or enterprise, default "enterprise"',
  "NewApiKey.user_id": "1 to 256",
  "NewFeedback.not_useful": "0 to 90, default []",
  "NewFeedback.not_useful[]": "1 or more",
  "NewFeedback.note": "0 to 1000",
  "NewFeedback.useful": "0 to 90, default []",
  "NewFeedback.useful[]": "1 or more",
  "NewMemory.agent_id": "1 to 256",
  "NewMemory.content": "1 or more",
  "NewMemory.embed": "default true",
  "NewMemory.external_id": "1 to 256",
  "NewMemory.if_exists": 'error or update or return, default "error"',
  "NewMemory.on_duplicate": 'allow or return or update, default "allow"',
  "NewMemory.importance": "0 to 1",
  "NewMemory.metadata": "default {}",
  "NewMemory.session_id": "1 or more",
  "NewMemory.reason": "0 to 10000",
  "NewMemory.similar.limit": "1 to 10",
  "NewMemory.similar.threshold": "0 to 1",
  "NewMemory.source": "user or agent or tool or import",
  "NewMemory.supersedes": "0 to 32",
  "NewMemory.supersedes[]": "1 or more",
  "NewMemory.tags": "0 to 64, default []",
  "NewMemory.tags[]": "1 to 128",
  "NewMemory.ttl_seconds": "1 to 3155760000",
  "NewMemory.type": '1 to 64, default "general"',
  "NewMemory.user_id": "1 to 256",
  "NewSession.agent_id": "1 to 256",
  "NewSession.external_id": "1 to 256",
  "NewSession.if_exists": 'error or return, default "error"',
  "NewSession.index_turns": "off or words or meaning",
  "NewSession.initial_state": "default {}",
  "NewSession.metadata": "default {}",
  "NewSession.ttl_seconds": "1 to 2592000 or never, default 86400",
  "NewSession.user_id": "1 to 256",
  "NewStateBaseMemory.content": "1 or more",
  "NewStateBaseMemory.embed": "default true",
  "NewStateBaseMemory.metadata": "default {}",
  "NewStateBaseMemory.session_id": "1 or more",
  "NewStateBaseMemory.tags": "0 to 64, default []",
  "NewStateBaseMemory.tags[]": "1 to 128",
  "NewStateBaseMemory.type": '1 to 64, default "general"',
  "NewStateBaseMemory.user_id": "1 to 256",
  "NewStep.external_id": "1 to 256",
  "NewStep.input.type": "text or audio or image or tool_call",
  "NewStep.memories": "0 to 20",
  "NewStep.memories[].agent_id": "1 to 256",
  "NewStep.memories[].content": "1 or more",
  "NewStep.memories[].embed": "default true",
  "NewStep.memories[].external_id": "1 to 256",
  "NewStep.memories[].if_exists": 'error or update or return, default "error"',
  "NewStep.memories[].on_duplicate": 'allow or return or update, default "allow"',
  "NewStep.memories[].importance": "0 to 1",
  "NewStep.memories[].metadata": "default {}",
  "NewStep.memories[].reason": "0 to 10000",
  "NewStep.memories[].session_id": "1 or more",
  "NewStep.memories[].source": "user or agent or tool or import",
  "NewStep.memories[].supersedes": "0 to 32",
  "NewStep.memories[].supersedes[]": "1 or more",
  "NewStep.memories[].tags": "0 to 64, default []",
  "NewStep.memories[].tags[]": "1 to 128",
  "NewStep.memories[].ttl_seconds": "1 to 3155760000",
  "NewStep.memories[].type": '1 to 64, default "general"',
  "NewStep.memories[].user_id": "1 to 256",
  "NewStep.metadata": "default {}",
  "NewStep.output.type": "text or audio or image or tool_result or error or tool_response",
  "NewTurns.turns": "1 to 100",
  "NewTurns.turns[].external_id": "1 to 256",
  "NewTurns.turns[].input.type": "text or audio or image or tool_call",
  "NewTurns.turns[].metadata": "default {}",
  "NewTurns.turns[].output.type": "text or audio or image or tool_result or error or tool_response",
  "NewWebhook.description": "0 to 256",
  "NewWebhook.enabled": "default true",
  "NewWebhook.events": "1 or more",
  "NewWebhook.secret": "16 to 255",
  "NewWebhook.url": "1 to 2048",
  "NewWebhookSecret.secret": "16 to 255",
  "OAuthAsked.client_id": "1 to 2048",
  "OAuthAsked.code_challenge": "1 to 128",
  "OAuthAsked.code_challenge_method": "1 to 16",
  "OAuthAsked.redirect_uri": "1 to 2048",
  "OAuthAsked.resource": "1 to 2048",
  "OAuthAsked.response_type": "1 to 32",
  "OAuthAsked.scope": "0 to 1024",
  "OAuthAsked.state": "0 to 2048",
  "OAuthConsent.agent_id": "1 to 256",
  "OAuthConsent.client_id": "1 to 2048",
  "OAuthConsent.code_challenge": "1 to 128",
  "OAuthConsent.code_challenge_method": "1 to 16",
  "OAuthConsent.expires_in_days": "1 to 365, default 90",
  "OAuthConsent.redirect_uri": "1 to 2048",
  "OAuthConsent.resource": "1 to 2048",
  "OAuthConsent.response_type": "1 to 32",
  "OAuthConsent.scope": "0 to 1024",
  "OAuthConsent.scopes": "1 to 2",
  "OAuthConsent.state": "0 to 2048",
  "OAuthConsent.user_id": "1 to 256",
  "Rollback.reason": "0 to 10000",
  "Rollback.turns": 'keep or hide, default "keep"',
  "SessionChanges.ttl_seconds": "1 to 2592000 or never",
  "StateBaseMemoryChanges.content": "1 or more",
  "StateBaseMemoryChanges.tags": "0 to 64",
  "StateBaseMemoryChanges.tags[]": "1 to 128",
  "StateBaseMemoryChanges.type": "1 to 64",
  "SettingsChanges.backups.copy_to": "0 to 2048",
  "SettingsChanges.backups.keep": "1 to 100",
  "SettingsChanges.backups.keep_days": "1 to 2557",
  "SettingsChanges.backups.schedule": "0 to 256",
  "SettingsChanges.embedding.api_key": "0 to 2048",
  "SettingsChanges.embedding.base_url": "0 to 2048",
  "SettingsChanges.embedding.document_prefix": "0 to 2048",
  "SettingsChanges.embedding.model": "0 to 2048",
  "SettingsChanges.embedding.provider": "builtin or words or openai or local",
  "SettingsChanges.embedding.query_prefix": "0 to 2048",
  "SettingsChanges.embedding.dimensions": "1 to 1536",
  "SettingsChanges.embedding.relevant_cosine": "-1 to 1",
  "SettingsChanges.index_turns": "off or words or meaning",
  "SettingsChanges.index_turns_share": "0.01 to 1",
  "SettingsChanges.max_body_bytes": "1024 to 67108864",
  "SettingsChanges.max_store_bytes": "1048576 to 1125899906842624",
  "SettingsChanges.memories_on_expiry": "keep or delete",
  "SettingsChanges.oauth_clients": "0 to 2048",
  "SettingsChanges.region": "0 to 64",
  "SettingsChanges.secrets": "off or tag or redact or block",
  "SettingsChanges.secret_kinds": "0 to 256",
  "SettingsChanges.memory_versions_kept": "0 to 100",
  "SettingsChanges.retrieval_log_days": "1 to 365",
  "SettingsChanges.state_versions_kept": "2 to 1000000000",
  "SettingsChanges.trace_retention_days": "1 to 2557",
  "SettingsChanges.webhooks.retry_schedule": "0 to 256",
  "SettingsChanges.webhooks.timeout": "0 to 256",
  "SignIn.name": "1 to 256",
  "StateRollback.reason": "0 to 10000",
  "TurnSearch.agent_id": "1 to 256",
  "TurnSearch.filter.$and": "1 or more",
  "TurnSearch.filter.$or": "1 or more",
  "TurnSearch.limit": "1 to 50, default 10",
  "TurnSearch.query": "0 to 10000",
  "TurnSearch.session_id": "1 or more",
  "TurnSearch.threshold": "0 to 1, default 0.7",
  "TurnSearch.user_id": "1 to 256",
  "WebhookChanges.description": "0 to 256",
  "WebhookChanges.events": "1 or more",
  "WebhookChanges.url": "1 to 2048",
};

const isNumberOrWord = (forms: readonly FieldSchema[]): boolean => forms.some(({ type }) => type === "integer" || type === "number");

/** The fields with limits, by their names. */
function limitedIn(name: string, reference: FieldSchema, around: readonly FieldSchema[] = []): [name: string, limits: string][] {
  const schema = resolved(DOCUMENT, reference);
  // A filter holds filters: the inner ones have the same limits.
  if (around.includes(schema)) return [];
  const { properties, items, enum: values, anyOf = [], ...field } = schema;
  const within = (inner: string, form: FieldSchema) => limitedIn(inner, form, [...around, schema]);
  if (properties !== undefined) return Object.entries(properties).flatMap(([member, form]) => within(`${name}.${member}`, form));
  const ranges = [
    [field.minimum, field.maximum],
    [field.minItems, field.maxItems],
    [field.minLength, field.maxLength],
  ].filter((range) => field.format === undefined && range.some((limit) => limit !== undefined && limit !== 0));
  const said = [
    ...ranges.map(([min, max]) => (max === undefined ? `${min} or more` : `${min ?? 0} to ${max}`)),
    ...(isNumberOrWord(anyOf) ? [anyOf.flatMap((form) => within(name, form).map(([, limits]) => limits)).join(" or ")] : []),
    ...(values === undefined ? [] : [values.filter((value) => value !== null).join(" or ")]),
    ...(field.default === undefined ? [] : [`default ${JSON.stringify(field.default)}`]),
  ];
  const inItems = items === undefined || items.enum !== undefined ? [] : within(`${name}[]`, items);
  return said.length === 0 ? inItems : [[name, said.join(", ")], ...inItems];
}

test("every field of a body has these limits and defaults", () => {
  const limited = REQUESTS.flatMap(({ schema, fields = {} }) =>
    Object.entries(fields).flatMap(([name, field]) => limitedIn(`${schema}.${name}`, field)),
  );
  expect(Object.fromEntries(limited)).toEqual(LIMITED);
});

/** Fields whose items an error names like this: `turns[1].input`. */
const IN_BRACKETS: ReadonlySet<string> = new Set(["turns", "memories"]);

/** A wrong value, and the place of it below its field. */
type Wrong = [value: unknown, at?: string];

/** Values that a field cannot have: of other types, and a step beyond its limits. */
function wrongValues(name: string, reference: FieldSchema, base: unknown): Wrong[] {
  const { type, minimum = -Infinity, maximum = Infinity, required = [], ...schema } = resolved(DOCUMENT, reference);
  if (schema.anyOf !== undefined) {
    if (isNumberOrWord(schema.anyOf))
      return ["nonsense", ...wrongValues(name, schema.anyOf[0]!, base).map(([value]) => value)].map((value) => [value]);
    // Of an array the item is named.
    const lists = schema.anyOf.filter((form) => form.type === "array").flatMap((form) => wrongValues(name, form, base));
    return [...["text", 5, {}].map((value): Wrong => [value]), ...lists.filter(([value]) => Array.isArray(value))];
  }
  switch (type) {
    case "boolean":
      return ["true", 1, [], {}].map((value) => [value]);
    case "integer":
    case "number": {
      const step = type === "integer" ? 1 : 0.01;
      const beyond = [minimum - step, maximum + step].filter((value) => Number.isFinite(value));
      return ["1", true, [1], {}, ...(type === "integer" ? [1.5] : []), ...beyond].map((value) => [value]);
    }
    case "string": {
      const ofType = [5, true, [], {}];
      if (schema.enum !== undefined) return [...ofType, "", "nonsense", "__proto__", schema.enum[0]?.toUpperCase()].map((value) => [value]);
      if (schema.format !== undefined) return [...ofType, "", "tomorrow", "2026-05-08"].map((value) => [value]);
      const { minLength = 0, maxLength = Infinity } = schema;
      const beyond = [...(minLength > 0 ? ["x".repeat(minLength - 1)] : []), ...(maxLength < Infinity ? ["😀".repeat(maxLength + 1)] : [])];
      return [...ofType, ...beyond].map((value) => [value]);
    }
    case "array": {
      const { items = { type: "string" }, minItems = 0, maxItems = Infinity } = schema;
      const item = (Array.isArray(base) ? (base as unknown[])[0] : undefined) ?? items.enum?.[0] ?? "a";
      const beyond = [...(minItems > 0 ? [[]] : []), ...(maxItems < Infinity ? [Array(maxItems + 1).fill(item)] : [])];
      // What nests too deep is found before it is known what it is of.
      const second = IN_BRACKETS.has(name) ? "[1]" : ".1";
      const place = (value: unknown, at: string) => (jsonDepth(value) > LIMITS.jsonDepthMax ? "" : second + at);
      const inside = wrongValues(name, items, item).map(([value, at = ""]): Wrong => [[item, value], place(value, at)]);
      return [...["a,b", 5, { 0: "a" }, ...beyond].map((value): Wrong => [value]), ...inside];
    }
    default: {
      const ofType = ["{}", 0, true, []].map((value): Wrong => [value]);
      // What is inside of filters has tests of its own, in `unit/filters`.
      if (name === "filter") return ofType;
      if (schema.properties === undefined) {
        const large = name === "metadata" ? ["x".repeat(65_526), "é".repeat(32_763)].map((text) => ({ text })) : [];
        return [...ofType, [nested(65)], [nested(5_000)], ...large.map((value): Wrong => [value])];
      }
      return [...ofType, ...wrongBodies(schema.properties, required, base).map(([value, at]): Wrong => [value, `.${at}`])];
    }
  }
}

/** Objects with one field wrong or missing, and which. */
function wrongBodies(fields: Record<string, FieldSchema>, required: readonly string[], base: unknown): [body: object, param: string][] {
  const object = (base ?? {}) as Record<string, unknown>;
  return Object.entries(fields).flatMap(([name, field]) => {
    const missing = required.includes(name) ? [[undefined], [null]] : [];
    const wrong = [...missing, ...wrongValues(name, field, object[name])] as Wrong[];
    return wrong.map(([value, at = ""]): [object, string] => [{ ...object, [name]: value }, name + at]);
  });
}

/** What no schema says. */
const ODD: Record<string, [body: object, param: string][]> = {
  NewApiKey: [[{ tier: "pro" }, "rate_limit"]],
  NewStep: [[{ input: { type: "tool_response", content: "" } }, "input.type"]],
  NewWebhook: [
    [{ events: ["turn.added", "memory.deleted"] }, "events.1"],
    [{ events: ["webhook.test"] }, "events.0"],
    [{ secret: "ü".repeat(20) }, "secret"],
    [{ secret: "whsec_my-own_secret" }, "secret"],
  ],
  NewWebhookSecret: [[{ secret: "whsec_my-own_secret" }, "secret"]],
  SettingsChanges: [
    ...["two\nlines", "\u001b[2J", "half \ud83c"].map((region): [object, string] => [{ region }, "region"]),
    ...["any,known", "https://localhost", "a b", ",", "*.example.com"].map((value): [object, string] => [
      { oauth_clients: value },
      "oauth_clients",
    ]),
    ...inGroup("backups", "copy_to", ["backups", "s3://", "s3://Backups", "https://backups.example", "s3://backups/a//b"]),
    ...inGroup("backups", "schedule", ["3:00", "24:00", "sunday 03:00", "9m", "32d", "daily", "SUN 03:00"]),
    ...inGroup("webhooks", "timeout", ["15", "soon", "0s", "61m", "-1s", "1.5s"]),
    ...inGroup("webhooks", "retry_schedule", ["5s,", "5s;1m", "8d", "6d,2d", Array(21).fill("1s").join()]),
    ...inGroup("embedding", "base_url", ["nowhere", "ftp://127.0.0.1/v1", "http://name:word@127.0.0.1/v1", "http://127.0.0.1/v1#x"]),
    ...inGroup("embedding", "api_key", ["two words", "line\nfeed", "schlüssel", "x".repeat(1_025)]),
  ],
};

function inGroup(group: string, name: string, values: unknown[]): [body: object, param: string][] {
  return values.map((value) => [{ [group]: { [name]: value } }, `${group}.${name}`]);
}

/** What an example lacks of a body of which each part can be made wrong. */
const MORE: Record<string, object> = {
  NewApiKey: { tier: "enterprise", rate_limit: { per_minute: 1, burst: 1 } },
  NewStep: { memories: [{ content: "Prefers e-mail." }] },
  MemorySearch: { recency: { half_life_days: 30, weight: 0.5 } },
  ContextRequest: { recency: { half_life_days: 30, weight: 0.5 } },
};

const CHANGING = REQUESTS.filter(({ fields }) => fields !== undefined);
const bodyOf = ({ schema, body }: DocumentedRequest, ids: Ids) => ({ ...body(ids), ...MORE[schema] });

/** Everything that a request can change, in one text. */
async function everything(cairn: Cairn): Promise<string> {
  const lists = ["sessions", "memory", "traces", "api_keys", "webhooks", "settings"];
  return JSON.stringify(
    await Promise.all(lists.map((list) => cairn.ok(cairn.get(`/v1/${list}${list === "settings" ? "" : "?limit=100"}`)))),
  );
}

test("a body that the document does not allow is refused by the name of its field, and nothing changes", async () => {
  await using cairn = await startCairn();
  const ids = await oneOfEach(cairn);
  const before = await everything(cairn);
  for (const request of CHANGING) {
    const { method, path, schema, fields = {}, required } = request;
    const base = bodyOf(request, ids);
    const odd = (ODD[schema] ?? []).map(([body, param]): [object, string] => [{ ...base, ...body }, param]);
    for (const [body, param] of [...wrongBodies(fields, required, base), ...odd]) {
      const about = { method, path: path(ids), body: JSON.stringify(body).slice(0, 200) };
      const answer = await cairn.request(method, path(ids), { body });
      expect({ ...about, ...refusal(answer) }).toEqual({ ...about, status: 400, code: "invalid_request", param });
    }
  }
  expect(await everything(cairn)).toBe(before);
});

/** The smallest and the largest values of a field. */
function extremes(name: string, reference: FieldSchema): unknown[] {
  const schema = resolved(DOCUMENT, reference);
  if (isNumberOrWord(schema.anyOf ?? [])) return schema.anyOf!.flatMap((form) => extremes(name, form));
  switch (schema.type) {
    case "boolean":
      return [true, false];
    case "string":
      if (schema.enum !== undefined) return schema.enum;
      // A secret is ASCII; of other texts the characters count, not their bytes.
      return [schema.minLength, schema.maxLength].map((length = 1) => (name === "secret" ? "x" : "😀").repeat(length));
    case "array": {
      const { items = { type: "string" }, minItems = 0, maxItems = items.enum?.length ?? 0 } = schema;
      // Of objects the tests of their concept say more.
      if (resolved(DOCUMENT, items).properties !== undefined) return [];
      const [largest] = extremes(name, items).slice(-1);
      return [Array(minItems).fill(largest), Array(maxItems).fill(largest)];
    }
    case "object":
      return schema.properties === undefined ? [{}, nested(64)] : [];
    default:
      return [schema.minimum, schema.maximum].filter((value) => value !== undefined);
  }
}

/** Not every text of their lengths is one of them. */
const HAS_A_FORM =
  /url|client_id|redirect_uri|response_type|code_challenge|resource|api_key|expires_at|occurred_at|session_id|since|valid_(from|until)|created_(after|before)|as_of|useful|oauth_clients|secret_kinds|^token$/;

test("the smallest and the largest values that the document allows are taken", async () => {
  await using cairn = await startCairn();
  const ids = await oneOfEach(cairn);
  for (const request of CHANGING) {
    const { method, path, fields = {} } = request;
    for (const [name, field] of Object.entries(fields)) {
      for (const value of HAS_A_FORM.test(name) ? [] : extremes(name, field)) {
        // Of a session it can only be that session's user and agent.
        const alone = name === "user_id" || name === "agent_id" ? { session_id: null } : {};
        // Of two ways to say when it ends a memory takes one.
        const ends = name === "ttl_seconds" && "expires_at" in fields ? { expires_at: null } : {};
        // A step changes the state in one of two ways.
        const whole = name === "state" && "state_patch" in fields ? { state_patch: null } : {};
        const body = { ...bodyOf(request, ids), ...alone, ...ends, ...whole, [name]: value };
        const answer = await cairn.request(method, path(ids), { body });
        const about = { path: path(ids), name, value: JSON.stringify(value).slice(0, 100) };
        // How many tokens are too few depends on what there is.
        if (name === "max_tokens" && value === 1) continue;
        const isRefused = answer.status === 400 && String(answer.body.error.param).startsWith(name);
        expect({ ...about, isRefused }).toEqual({ ...about, isRefused: false });
      }
    }
  }
});

test("a memory's content of 10,000 characters is taken, and one more is too large", async () => {
  // By words alone: how soon the encoder has vectors of such texts is not what is asked here.
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const { id } = await cairn.createSession();
  const content = "😀".repeat(10_000);
  const memory = await cairn.addMemory(id, content);
  await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "x".repeat(10_000) }));
  for (const answer of [
    await cairn.post("/v1/memory", { session_id: id, content: `${content}😀` }),
    await cairn.patch(`/v1/memory/${memory.id}`, { content: "x".repeat(10_001), type: "fact" }),
  ]) {
    expect(refusal(answer)).toEqual({ status: 413, code: "content_too_large", param: "content" });
  }
  expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toEqual({
    ...memory,
    content: "x".repeat(10_000),
  });
});

/** Kinds of the ids that are cursors, by the end of a list's path. */
const CURSORS: Record<string, string> = {
  sessions: "sess",
  turns: "turn",
  memory: "mem",
  memories: "mem",
  traces: "trace",
  api_keys: "key",
  webhooks: "whk",
  deliveries: "dlv",
  backups: "bkp",
  failed_deliveries: "dlv",
  webhook_stats: "whk",
  timeline: "entry",
  retrievals: "ret",
};

/** Lists whose cursors are names. */
const NAMES = ["users", "agents"];

const NO_CURSORS = (prefix: string) => [
  unknownId(prefix === "sess" ? "mem" : "sess"),
  `${unknownId(prefix)}0`,
  `${unknownId(prefix)}%0A`,
  `${prefix}_short`,
  `${prefix}_`,
  ..." x __proto__ %00".split(" "),
];
const NO_INTEGERS = ["", "-1", "5.0", "1e1", "0x10", "+5", "%2B5", "%205", "5%20", "five", "null", "NaN", "٣", "5,6", "9".repeat(400)];
const NO_TIMES = "|yesterday|2026|2026-05-07|2026-05-07T|2026-05-07 08:00:00|07.05.2026|1778140800|2026-13-01T00:00:00Z".split("|");
NO_TIMES.push(
  "2026-02-29T00:00:00Z",
  "2026-05-07T25:00:00Z",
  "2026-05-07T08:60:00Z",
  "2026-05-07T08:00:00%2B99:00",
  "2026-05-07T08:00:00X",
);
const NO_TAGS = ["", ",%20,", "a".repeat(129), `a,${"x".repeat(129)}`, Array(65).fill("a").join()];

/** Texts that a parameter of a query cannot be, and some that it can. */
function textsFor(template: string, { name, schema }: DocumentedRequest["query"][number]): { wrong: string[]; right: string[] } {
  const list = template.split("/").at(-1) ?? "";
  const prefix = CURSORS[list] ?? "";
  if (name === "starting_after" && NAMES.includes(list)) return { wrong: ["", "x".repeat(257)], right: ["anybody", "é".repeat(256)] };
  if (name === "starting_after") {
    return list === "versions"
      ? { wrong: NO_INTEGERS.slice(0, -1), right: ["0", "999999999999999"] }
      : { wrong: NO_CURSORS(prefix), right: [unknownId(prefix)] };
  }
  if (name === "types") return { wrong: ["", ",%20,", "a".repeat(65), Array(65).fill("a").join()], right: ["fact,event", "fact,,event"] };
  if (list === "proof") return { wrong: ["", "x".repeat(257)], right: [] };
  if (name === "tags") return { wrong: NO_TAGS, right: ["a,b", "a,,b"] };
  if (schema.format === "date-time") return { wrong: NO_TIMES, right: ["2026-05-07T08:00:00Z", "2026-05-07T08:00:00.123456%2B02:00"] };
  if (schema.enum !== undefined) return { wrong: ["", "nonsense", schema.enum[0]?.toUpperCase() ?? ""], right: schema.enum as string[] };
  if (schema.type === "integer") return { wrong: [...NO_INTEGERS, "0", "101"], right: ["1", "100", "0100"] };
  if (schema.type === "boolean") return { wrong: ["", "yes", "1", "TRUE"], right: ["false"] };
  const { minLength = 0, maxLength = Infinity } = schema;
  const beyond = maxLength < Infinity ? ["x".repeat(maxLength + 1)] : [];
  return { wrong: [...(minLength > 0 ? [""] : []), ...beyond], right: maxLength < Infinity ? ["é".repeat(maxLength)] : [] };
}

test("a parameter of a query that the document does not allow is refused by its name", async () => {
  await using cairn = await startCairn();
  const ids = await oneOfEach(cairn);
  for (const { method, template, path, query } of REQUESTS) {
    for (const parameter of query) {
      const { name } = parameter;
      const { wrong, right } = textsFor(template, parameter);
      for (const text of wrong) {
        const about = `${method} ${template}?${name}=${text}`;
        const answer = await cairn.request(method, `${path(ids)}?${name}=${text}`);
        expect({ about, ...refusal(answer) }).toEqual({ about, status: 400, code: "invalid_request", param: name });
      }
      for (const text of method === "GET" ? right : []) {
        const about = `${template}?${name}=${text}`;
        expect({ about, status: (await cairn.get(`${path(ids)}?${name}=${text}`)).status }).toEqual({ about, status: 200 });
      }
    }
  }
  for (const tags of ["tags=&tags=%20", `tags=a&tags=${"x".repeat(129)}`, Array.from({ length: 65 }, (_, i) => `tags=${i}`).join("&")]) {
    expect({ tags, ...refusal(await cairn.get(`/v1/memory?${tags}`)) }).toEqual({
      tags,
      status: 400,
      code: "invalid_request",
      param: "tags",
    });
  }
});

/** The codes of what is not there, by the parameter of the path; others are `resource_not_found`. */
const NOT_FOUND: Record<string, string> = {
  session_id: "session_not_found",
  turn_id: "turn_not_found",
  memory_id: "memory_not_found",
  trace_id: "trace_not_found",
  version: "version_not_found",
};

function unknownNames(name: string, id: string): string[] {
  if (name === "version") return ["1", "-1", "00", "0.0", "one", "9".repeat(30), "%00", "%F0%9F%AB%96"];
  const [prefix = ""] = id.split("_");
  const other = prefix === "sess" ? unknownId("mem") : unknownId("sess");
  return [
    unknownId(prefix),
    `${prefix}_`,
    `${prefix}_short`,
    other,
    `${id}0`,
    `${id}%20`,
    "..%2f..%2fetc",
    "%00",
    "__proto__",
    "%F0%9F%AB%96",
  ];
}

test("an id that no record has, or that none could have, is not found by the name of its parameter", async () => {
  await using cairn = await startCairn();
  const ids = await oneOfEach(cairn);
  const before = await everything(cairn);
  for (const { method, template, path, body, pathParameters } of REQUESTS) {
    for (const name of pathParameters) {
      for (const unknown of unknownNames(name, ids[name] ?? "")) {
        const about = `${method} ${template} of ${name} ${unknown}`;
        const answer = refusal(await cairn.request(method, path({ ...ids, [name]: unknown }), { body: body(ids) }));
        expect({ about, ...answer }).toEqual({ about, status: 404, code: NOT_FOUND[name] ?? "resource_not_found", param: name });
      }
    }
  }
  expect(await everything(cairn)).toBe(before);
});
