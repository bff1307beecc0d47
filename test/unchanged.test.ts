import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { exportLines } from "../src/operations/export.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

/** Everything that is stored. */
async function stored({ directory, service: { store, embedded } }: Cairn): Promise<unknown> {
  if (embedded !== undefined) return Bun.hash(readFileSync(join(directory, "store", "data.mdb")));
  return Array.fromAsync(exportLines(store, { secrets: true }));
}

/** The changes must each be answered 200 with the record as it is, and write nothing. */
async function expectUnchanged(cairn: Cairn, path: string, changes: object[]): Promise<void> {
  const before = await cairn.ok(cairn.get(path));
  cairn.clock.advance({ seconds: 1 });
  const bytes = await stored(cairn);
  for (const change of changes) {
    expect([change, (await cairn.patch(path, change)).body]).toEqual([change, before]);
    expect([change, await cairn.ok(cairn.get(path))]).toEqual([change, before]);
    expect([change, await stored(cairn)]).toEqual([change, bytes]);
  }
  // With an Idempotency-Key the answer is kept, so that a later retry cannot change back what others have changed.
  for (const replayed of [null, "true"]) {
    const answer = await cairn.patch(path, changes[0], { headers: { "idempotency-key": JSON.stringify(changes[0]) } });
    expect([answer.status, answer.body, answer.headers.get("idempotency-replayed")]).toEqual([200, before, replayed]);
  }
  const { data } = await cairn.ok(cairn.get("/v1/traces?limit=100"));
  expect(data.filter(({ action, timestamp }: any) => /updated/.test(action) && Date.parse(timestamp) === cairn.clock.now())).toEqual([]);
}

const METADATA = { channel: "chat", nested: { a: 1, b: [1, 2] } };

test("a PATCH of a session that changes nothing is answered with the session and writes nothing", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ metadata: METADATA });
  const path = `/v1/sessions/${session.id}`;
  await expectUnchanged(cairn, path, [
    { metadata: METADATA },
    {},
    { metadata: {} },
    { metadata: { nested: { b: [1, 2], a: 1 } } },
    { metadata: { unknown: null } },
  ]);
  // A time to live counts from now, so that the same one is another end.
  const extended = await cairn.ok(cairn.patch(path, { ttl_seconds: 86_400 }));
  expect(Date.parse(extended.ttl_expires_at) - Date.parse(session.ttl_expires_at)).toBe(1_000);
  await cairn.ok(cairn.patch(path, { metadata: { nested: { a: 1, b: [2, 1] } } }));
  expect(await cairn.traces(session.id, "session.updated")).toHaveLength(2);
});

test("a PATCH of a state that changes nothing is answered with the state and writes nothing", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: METADATA });
  await expectUnchanged(cairn, `/v1/sessions/${session.id}/state`, [
    { state: METADATA },
    { state: {} },
    { state: { nested: { b: [1, 2], a: 1 } }, reasoning: "Nothing." },
    { state: { unknown: null }, expected_version: 0 },
  ]);
  expect(await cairn.traces(session.id, "state.updated")).toEqual([]);
});

test("a PATCH of a memory that changes nothing is answered with the memory and writes nothing", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const memory = await cairn.addMemory(session.id, "The parcel came.", { type: "event", tags: ["a", "b"], metadata: METADATA });
  const path = `/v1/memory/${memory.id}`;
  await expectUnchanged(cairn, path, [
    { content: "The parcel came." },
    {},
    { type: "event", tags: ["a", "b"], metadata: { nested: { b: [1, 2], a: 1 }, none: null } },
  ]);
  expect(await cairn.session(session.id)).toMatchObject({ updated_at: memory.created_at });
  await cairn.ok(cairn.patch(path, { tags: ["b", "a"] }));
  expect(await cairn.traces(session.id, "memory.updated")).toHaveLength(1);
});

test("a PATCH of a webhook that changes nothing is answered with the webhook and writes nothing", async () => {
  await using cairn = await startCairn();
  const url = "https://example.com/hook";
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url, events: ["turn.added"], description: "mine" }));
  await expectUnchanged(cairn, `/v1/webhooks/${webhook.id}`, [
    { url },
    {},
    { events: ["turn.added", "turn.added"], description: "mine", enabled: true },
  ]);
});

test("a PATCH of the settings that changes nothing is answered with them, writes nothing and is not logged", async () => {
  await using cairn = await startCairn();
  await expectUnchanged(cairn, "/v1/settings", [
    {},
    { region: null },
    { trace_retention_days: null, webhooks: { timeout: "" } },
    { embedding: { model: null } },
    { webhooks: {} },
  ]);
  await cairn.ok(cairn.patch("/v1/settings", { region: "eu", webhooks: { timeout: "30s" }, embedding: { model: "mine" } }));
  await expectUnchanged(cairn, "/v1/settings", [{ region: "eu" }, { webhooks: { timeout: "30s" } }, { embedding: { model: "mine" } }]);
  expect(cairn.logged.filter((line) => line.includes("settings changed"))).toHaveLength(1);
});
