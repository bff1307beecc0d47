import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EmbeddingSettings } from "../../../src/embeddings/provider-settings.ts";
import { changesIn, type GivenSettings } from "../../../src/settings/schema.ts";
import { Settings } from "../../../src/settings/settings.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { FakeClock } from "../../support/clock.ts";

interface Opened extends AsyncDisposable {
  settings: Settings;
  store: Store;
  change(body: Record<string, unknown>): Promise<void>;
}

/** Takes settings as a PATCH has them. */
async function open(environment: Record<string, unknown> = {}): Promise<Opened> {
  const directory = mkdtempSync(join(tmpdir(), "cairn-settings-"));
  const store = await Store.open(directory, new FakeClock());
  const settings = await Settings.open(store, changesIn(environment) as GivenSettings);
  return {
    settings,
    store,
    async change(body) {
      await store.commit(NO_PARTITION, (tx) => settings.put(tx, changesIn(body)));
      await settings.reload();
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const HERE = "http://127.0.0.1:11434/v1";
const THERE = "https://models.example/v1";
const OPENAI = "https://api.openai.com/v1";

const SET: EmbeddingSettings = { base_url: HERE, api_key: "a" };

/** The key that is in use after some changes of the provider, one after the other. */
const KEYS: [name: string, environment: EmbeddingSettings, changes: EmbeddingSettings[], key: string | undefined][] = [
  ["is kept for another model of the same server", {}, [SET, { model: "m" }], "a"],
  ["is kept for another path of the same server", {}, [SET, { base_url: `${HERE}/more` }], "a"],
  ["is kept when the server is named again", {}, [SET, { base_url: HERE }], "a"],
  ["is kept when the default is written out", {}, [{ api_key: "a" }, { base_url: OPENAI }], "a"],
  ["is dropped for another server", {}, [SET, { base_url: THERE }], undefined],
  ["is dropped for another port", {}, [SET, { base_url: "http://127.0.0.1:1/v1" }], undefined],
  ["is dropped for the same server without TLS", {}, [{ ...SET, base_url: THERE }, { base_url: "http://models.example/v1" }], undefined],
  ["is not there again when the server is", {}, [SET, { base_url: THERE }, { base_url: HERE }], undefined],
  ["is the new one where both are given", {}, [SET, { base_url: THERE, api_key: "b" }], "b"],
  ["of the environment is for OpenAI unless that names a server", { api_key: "e" }, [{ model: "m" }], "e"],
  ["of the environment goes to no server of the settings", { api_key: "e" }, [{ base_url: HERE }], undefined],
  ["of the environment is back with its server", { base_url: THERE, api_key: "e" }, [{ base_url: HERE }, { base_url: "" }], "e"],
  ["of the environment gives way to one that is set", { api_key: "e" }, [{ api_key: "a" }], "a"],
  ["of the environment is back when that is taken back", { api_key: "e" }, [{ api_key: "a" }, { api_key: "" }], "e"],
];

for (const [name, environment, changes, key] of KEYS) {
  test(`the provider's key ${name}`, async () => {
    await using opened = await open({ embedding: environment });
    for (const embedding of changes) await opened.change({ embedding });
    const { effective } = opened.settings;
    expect(effective.embedding.api_key).toBe(key);
    expect(effective.sourceOf("embedding.api_key")).toBe(key === undefined ? "default" : key === "e" ? "environment" : "setting");
  });
}

test("changes build on those before; an empty text, or a null, takes one back", async () => {
  await using opened = await open({ embedding: { model: "outside" } });
  await opened.change({ embedding: { model: "mine", query_prefix: "q: ", relevant_cosine: 0 } });
  await opened.change({ embedding: { document_prefix: "d: " }, trace_retention_days: 7 });
  expect(opened.settings.effective.embedding).toEqual({ model: "mine", query_prefix: "q: ", document_prefix: "d: ", relevant_cosine: 0 });
  await opened.change({ embedding: { model: "", query_prefix: null, relevant_cosine: null } });
  expect(opened.settings.effective.embedding).toEqual({ model: "outside", document_prefix: "d: " });
  expect(opened.settings.values).toMatchObject({
    memories_on_expiry: "keep",
    trace_retention_days: 7,
    retrieval_log: true,
    retrieval_log_days: 7,
    secrets: "off",
    secret_kinds: "keys,cards",
    max_body_bytes: 1_048_576,
    region: null,
    state_versions_kept: 1_000,
    memory_versions_kept: 20,
    max_store_bytes: null,
  });
});

test("effective settings never change: a change gives others, which can be had before it is made", async () => {
  await using opened = await open();
  const { effective: before } = opened.settings;
  const change = { max_body_bytes: 2048, "embedding.model": "mine" };
  const after = opened.settings.with(change);
  expect(opened.settings.effective).toBe(before);
  await opened.change({ max_body_bytes: 2048, embedding: { model: "mine" } });
  expect(opened.settings.effective.values).toEqual(after.values);
  expect(after.values).toEqual({ ...before.values, ...change });
  expect(before.values.max_body_bytes).toBe(1_048_576);
});

test("serialized work begins when the previous one has ended, well or not", async () => {
  await using opened = await open();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const results = ["first", "second", "third"].map((name) =>
    opened.settings.serialize(async () => {
      order.push(`${name} begins`);
      if (name === "first") await first.promise;
      order.push(`${name} ends`);
      if (name === "second") throw new Error("no");
      return name;
    }),
  );
  first.resolve();
  expect((await Promise.allSettled(results)).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(order).toEqual(["first begins", "first ends", "second begins", "second ends", "third begins", "third ends"]);
});
