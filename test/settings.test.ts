import { expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { settings } from "../src/storage/tables.ts";
import { failingCommits, startCairn, type Cairn } from "./support/cairn.ts";

const DEFAULT = (value: unknown) => ({ value, default: value, source: "default" });

const AT_FIRST = {
  object: "settings",
  memories_on_expiry: DEFAULT("keep"),
  endless_sessions_for_all: DEFAULT(true),
  trace_retention_days: DEFAULT(365),
  // Turned off for tests of something else.
  retrieval_log: { value: false, default: true, source: "environment" },
  retrieval_log_days: DEFAULT(7),
  index_turns: DEFAULT("words"),
  index_turns_share: DEFAULT(0.25),
  secrets: DEFAULT("off"),
  secret_kinds: DEFAULT("keys,cards"),
  max_body_bytes: DEFAULT(1_048_576),
  region: DEFAULT(null),
  state_versions_kept: DEFAULT(1_000),
  memory_versions_kept: DEFAULT(20),
  max_store_bytes: DEFAULT(null),
  oauth_clients: DEFAULT("any"),
  backups: { schedule: DEFAULT(null), keep: DEFAULT(7), keep_days: DEFAULT(null), copy_to: DEFAULT(null) },
  webhooks: {
    allow_private: DEFAULT(false),
    timeout: DEFAULT("15s"),
    retry_schedule: DEFAULT("5s,5m,30m,2h,5h,10h,10h"),
  },
  embedding: {
    provider: DEFAULT("builtin"),
    base_url: DEFAULT("https://api.openai.com/v1"),
    model: DEFAULT("text-embedding-3-small"),
    api_key: { set: false, source: "default" },
    query_prefix: DEFAULT(""),
    document_prefix: DEFAULT(""),
    dimensions: DEFAULT(null),
    relevant_cosine: { value: null, default: null, source: "built-in" },
    separation: null,
    vector_length: 384,
    state: { available: true },
    vectors: { ready: 0, pending: 0 },
  },
};

const change = (cairn: Cairn, body: Record<string, unknown>) => cairn.ok(cairn.patch("/v1/settings", body));

test("without any setting everything has its default, and says so", async () => {
  await using cairn = await startCairn();
  expect(await cairn.settings()).toEqual(AT_FIRST);
});

test("a change is answered with all settings, leaves the others as they are, and survives a restart", async () => {
  await using cairn = await startCairn();
  const first = await change(cairn, { memories_on_expiry: "delete" });
  expect(first).toEqual({ ...AT_FIRST, memories_on_expiry: { value: "delete", default: "keep", source: "setting" } });
  const second = await change(cairn, {
    trace_retention_days: 400,
    region: "eu",
    webhooks: { timeout: "30s" },
    embedding: { model: "some-model" },
  });
  const expected = {
    ...first,
    trace_retention_days: { value: 400, default: 365, source: "setting" },
    region: { value: "eu", default: null, source: "setting" },
    webhooks: { ...first.webhooks, timeout: { value: "30s", default: "15s", source: "setting" } },
    embedding: { ...first.embedding, model: { value: "some-model", default: "text-embedding-3-small", source: "setting" } },
  };
  expect(second).toEqual(expected);
  expect(await cairn.settings()).toEqual(expected);
  await cairn.restart();
  expect(await cairn.settings()).toEqual(expected);
});

test("changes at the same time all stand", async () => {
  await using cairn = await startCairn();
  await Promise.all([
    change(cairn, { memories_on_expiry: "delete" }),
    change(cairn, { embedding: { model: "one" } }),
    change(cairn, { trace_retention_days: 10 }),
    change(cairn, { embedding: { query_prefix: "q: " } }),
    change(cairn, { webhooks: { timeout: "1s" } }),
    change(cairn, { webhooks: { retry_schedule: "2s" } }),
    change(cairn, { max_body_bytes: 2048 }),
    change(cairn, { embedding: { document_prefix: "d: " } }),
  ]);
  const expected = {
    memories_on_expiry: { value: "delete" },
    trace_retention_days: { value: 10 },
    max_body_bytes: { value: 2048 },
    webhooks: { timeout: { value: "1s" }, retry_schedule: { value: "2s" } },
    embedding: { model: { value: "one" }, query_prefix: { value: "q: " }, document_prefix: { value: "d: " } },
  };
  expect(await cairn.settings()).toMatchObject(expected);
  await cairn.restart();
  expect(await cairn.settings()).toMatchObject(expected);
});

test("a larger or smaller body is taken as soon as it is set", async () => {
  await using cairn = await startCairn();
  const statusOf = async (bytes: number) =>
    (await cairn.post("/v1/sessions", { agent_id: "a", initial_state: { text: "x".repeat(bytes) } })).status;
  expect([await statusOf(1_000_000), await statusOf(1_100_000)]).toEqual([201, 413]);
  await change(cairn, { max_body_bytes: 2_000_000 });
  expect([await statusOf(1_100_000), await statusOf(2_000_000)]).toEqual([201, 413]);
  await change(cairn, { max_body_bytes: 1024 });
  expect([await statusOf(500), await statusOf(1024)]).toEqual([201, 413]);
  await change(cairn, { max_body_bytes: 1_048_576 });
  expect(await statusOf(1_000_000)).toBe(201);
});

test("the environment is named where a value comes from it; a setting wins over it, until it is null or an empty text", async () => {
  const environment = {
    embedding: { model: "from-outside", api_key: "sk-outside-0123456789abcdef" },
    webhooks: { allow_private: true, timeout: "20s", retry_schedule: "1s" },
  };
  await using cairn = await startCairn({ environment });
  const model = { value: "from-outside", default: "text-embedding-3-small", source: "environment" };
  const webhooks = {
    allow_private: { value: true, default: false, source: "environment" },
    timeout: { value: "20s", default: "15s", source: "environment" },
    retry_schedule: { value: "1s", default: "5s,5m,30m,2h,5h,10h,10h", source: "environment" },
  };
  const outside = { ...AT_FIRST, webhooks, embedding: { ...AT_FIRST.embedding, model, api_key: { set: true, source: "environment" } } };
  expect(await cairn.settings()).toEqual(outside);
  // What is the default too is a setting all the same.
  const set = await change(cairn, {
    webhooks: { allow_private: false, timeout: "15s" },
    embedding: { model: "mine", api_key: "sk-mine-0123456789abcdef", query_prefix: "search: " },
  });
  expect(set.webhooks).toEqual({
    ...webhooks,
    allow_private: { value: false, default: false, source: "setting" },
    timeout: { value: "15s", default: "15s", source: "setting" },
  });
  expect(set.embedding).toMatchObject({
    model: { ...model, value: "mine", source: "setting" },
    api_key: { set: true, source: "setting" },
    query_prefix: { value: "search: ", default: "", source: "setting" },
  });
  const back = { webhooks: { allow_private: null, timeout: "" }, embedding: { model: "", api_key: "", query_prefix: null } };
  expect(await change(cairn, back)).toEqual(outside);
});

const ALL_SET = {
  memories_on_expiry: "delete",
  endless_sessions_for_all: false,
  trace_retention_days: 30,
  max_body_bytes: 4096,
  region: "eu",
  webhooks: { allow_private: true, timeout: "1s", retry_schedule: "2s" },
  embedding: { provider: "words", model: "mine", api_key: "sk-mine-0123456789abcdef", query_prefix: "q: ", document_prefix: "d: " },
};
const nullsFor = (settings: object): object =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, typeof value === "object" ? nullsFor(value) : null]));

test("a null takes a setting back to its default, whichever it is; a group that is null is left as it is", async () => {
  await using cairn = await startCairn();
  const before = await change(cairn, ALL_SET);
  expect(before.embedding.api_key).toEqual({ set: true, source: "setting" });
  expect(await change(cairn, { webhooks: null, embedding: null })).toEqual(before);
  expect(await change(cairn, { region: null, webhooks: { timeout: null } })).toEqual({
    ...before,
    region: AT_FIRST.region,
    webhooks: { ...before.webhooks, timeout: AT_FIRST.webhooks.timeout },
  });
  expect(await change(cairn, nullsFor(ALL_SET) as Record<string, unknown>)).toEqual(AT_FIRST);
  expect(await cairn.read((reader) => reader.get(settings, "current"))).toEqual({});
});

const regionOf = async (cairn: Cairn) => (await cairn.get("/health", { key: null })).body.region;

test("the region is that of the environment unless one is set; /health says at once which it is", async () => {
  await using cairn = await startCairn({ environment: { region: "from-outside" } });
  const outside = { value: "from-outside", default: null, source: "environment" };
  expect([await regionOf(cairn), (await cairn.settings()).region]).toEqual(["from-outside", outside]);
  for (const back of [null, ""]) {
    expect((await change(cairn, { region: "eu-west 🌍" })).region).toEqual({ value: "eu-west 🌍", default: null, source: "setting" });
    expect(await regionOf(cairn)).toBe("eu-west 🌍");
    expect((await change(cairn, { region: back })).region).toEqual(outside);
    expect(await regionOf(cairn)).toBe("from-outside");
  }
});

test("that webhooks may lead into private networks stands in the log as a warning, once", async () => {
  await using cairn = await startCairn();
  for (const allow_private of [false, true, true, null, true]) await change(cairn, { webhooks: { allow_private } });
  const warnings = cairn.logged.map((text) => JSON.parse(text)).filter(({ level }) => level === "warn");
  expect(warnings.map(({ message }) => message)).toEqual(Array.from({ length: 2 }, () => "webhooks may now lead into private networks"));
});

test("a name that is no setting is refused with what is one, and nothing of the request is set", async () => {
  await using cairn = await startCairn();
  for (const { body, param, near } of [
    { body: { nothing: 1, region: "eu" }, param: "nothing" },
    { body: { region: "eu", Retrieval_log: true }, param: "Retrieval_log", near: "retrieval_log" },
    { body: { region: "eu", regions: "eu" }, param: "regions", near: "region" },
    { body: { maxBodyBytes: 2048 }, param: "maxBodyBytes", near: "max_body_bytes" },
    { body: { region: "eu", trace_retention: 1 }, param: "trace_retention" },
    { body: { region: "eu", embedding: { model: "mine", apikey: "sk-misspelt" } }, param: "embedding.apikey", near: "api_key" },
    { body: { region: "eu", webhooks: { foo: null } }, param: "webhooks.foo" },
    { body: JSON.parse('{"__proto__": {"region": "eu"}}') as object, param: "__proto__" },
    { body: { ["x".repeat(1_000)]: 1 }, param: "x".repeat(80) },
  ]) {
    const refused = await cairn.patch("/v1/settings", body);
    expect({ status: refused.status, ...refused.body.error }).toMatchObject({ status: 400, code: "invalid_request", param });
    const rest = near === undefined ? "there are " : `did you mean ${near}?`;
    expect(refused.body.error.message).toStartWith(`${param} is not a field here; ${rest}`);
    expect(refused.body.error.message).not.toContain("sk-");
  }
  expect(await cairn.read((reader) => reader.get(settings, "current"))).toBeUndefined();
});

test("a change that cannot be written is not in force either", async () => {
  await using cairn = await startCairn();
  {
    using _ = failingCommits(cairn);
    expect((await cairn.patch("/v1/settings", { max_body_bytes: 2048, embedding: { model: "mine" } })).status).toBe(500);
  }
  expect(await cairn.settings()).toEqual(AT_FIRST);
  await change(cairn, { embedding: { query_prefix: "q: " } });
  expect((await cairn.settings()).embedding.model).toEqual(AT_FIRST.embedding.model);
});

test("a change stands in the log with who made it and what was changed, without the values", async () => {
  await using cairn = await startCairn();
  await change(cairn, {
    max_body_bytes: 4096,
    webhooks: { timeout: "1s" },
    embedding: { api_key: "sk-secret-0123456789abcdef", model: "mine" },
  });
  const [line] = cairn.logged.map((text) => JSON.parse(text)).filter(({ message }) => message === "settings changed");
  expect(line).toEqual({
    time: "2026-05-07T08:00:00.000Z",
    level: "info",
    message: "settings changed",
    actor: cairn.key.slice(0, 8),
    names: "max_body_bytes webhooks.timeout embedding.api_key embedding.model",
  });
});

test("settings in the store that make no sense count as not set, and the next change removes them", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { timeout: "20s" } } });
  const wrong = { max_body_bytes: "much", "webhooks.timeout": "soon", "embedding.base_url": "nope", "embedding.api_key": "sk-for-nope" };
  await cairn.service.store.commit(NO_PARTITION, (tx) =>
    tx.put(settings, "current", { ...wrong, region: "eu", "embedding.provider": "local" }),
  );
  await cairn.restart();
  const { max_body_bytes, region, webhooks, embedding } = await cairn.settings();
  expect({ max_body_bytes, embedding }).toEqual({
    max_body_bytes: AT_FIRST.max_body_bytes,
    embedding: { ...AT_FIRST.embedding, provider: { value: "builtin", default: "builtin", source: "setting" } },
  });
  expect([region.value, webhooks.timeout]).toEqual(["eu", { value: "20s", default: "15s", source: "environment" }]);
  await change(cairn, { region: "us" });
  expect(await cairn.read((reader) => reader.get(settings, "current"))).toEqual({ region: "us", "embedding.provider": "builtin" });
});
