import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DATA_FILE } from "../../src/storage/lmdb/file/data-file.ts";
import { endOf } from "../support/backups.ts";
import { diskShim } from "../support/disk-shim.ts";
import { onLinux } from "../support/platform.ts";
import { Chance, KEY, runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { longRounds } from "../support/rounds.ts";
import { audit } from "./audit.ts";
import { Ledger } from "./ledger.ts";

const test = onLinux("a shim of the calls of a process");

/** What is written, when about the power goes and which part of what was not flushed survives. */
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_260_507);
const ROUNDS = longRounds(6, 60);
const CHANGES_MAX = 160;
const ERASING_ROUNDS = longRounds(3, 40);
const ERASURES_MAX = 6;
const WRITERS = 16;
/** Longer than a slow flush takes. */
const IDLE_MS = 50;

/** These need more than the scope `read` and store nothing: they try a provider, make a ticket in memory, describe what an application asks for. */
const STORE_NOTHING = ["POST /v1/settings/embedding/try", "POST /v1/backups/{backup_id}/ticket", "POST /v1/oauth/requests"];

test("the answer to every kind of write is sent after its pages are flushed and the page that refers to them is on the disk", async () => {
  using directory = scratchDirectory();
  // Whoever does not wait for a flush is ahead of it for certain.
  using shim = diskShim(directory.path, { traces: true, isSlow: true });
  const { environment } = shim;
  await using server = await startProcess({ dataDirectory: directory.at("data"), environment });
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const written: string[] = [];
  /** Asks for a change; `id` takes the place of the parameter in the path. */
  const write = async (endpoint: string, id = "", body: unknown = endpoint.startsWith("DELETE") ? undefined : {}) => {
    const [method = "", path = ""] = endpoint.split(" ");
    // Else a flush that comes too late for one answer would be taken for that of the next.
    let before = -1;
    while (before !== shim.trace().length) {
      before = shim.trace().length;
      await Bun.sleep(IDLE_MS);
    }
    const answer = await server.ok(
      server.request(
        method,
        path.replaceAll(/\{\w+\}/g, () => id),
        body,
      ),
    );
    const calls = shim.trace().slice(before);
    const sentAt = calls.findIndex((call) => call.startsWith("answer 2"));
    const commit = calls.slice(0, sentAt).filter((call, index, all) => call !== all[index - 1]);
    expect([endpoint, commit.join(" ")]).toEqual([endpoint, expect.stringContaining("data sync meta")]);
    written.push(endpoint);
    return answer;
  };

  const session = await write("POST /v1/sessions", "", { agent_id: "agent", initial_state: { step: 0 } });
  await write("PATCH /v1/sessions/{session_id}", session.id, { metadata: { changed: true } });
  await write("POST /v1/sessions/{session_id}/state", session.id, { state: { step: 1 } });
  await write("PATCH /v1/sessions/{session_id}/state", session.id, { state: { step: 2 } });
  await write("POST /v1/sessions/{session_id}/rollback", session.id, { version: 0 });
  await write("POST /v1/sessions/{session_id}/state/rollback", session.id, { version: 1 });
  await write("POST /v1/sessions/{session_id}/fork", session.id);
  const text = { type: "text", content: "Where is the boat?" };
  await write("POST /v1/sessions/{session_id}/turns", session.id, { input: text, output: text });
  await write("POST /v1/sessions/{session_id}/turns/batch", session.id, { turns: [{ input: text, output: text }] });
  await write("POST /v1/memory/batch", "", { memories: [{ session_id: session.id, content: "The anchor is in the shed." }] });
  const memory = await write("POST /v1/memory", "", { session_id: session.id, content: "The boat is moored at pier nine." });
  await write("PATCH /v1/memory/{memory_id}", memory.id, { tags: ["harbour"] });
  await write("DELETE /v1/memory/{memory_id}", memory.id);
  // In a session that is there: one made for it would be a commit of its own, before that of the memory.
  const another = await write("POST /v1/memories", "", { session_id: session.id, content: "The oars are in the shed." });
  await write("PATCH /v1/memories/{memory_id}", another.id, { tags: ["shed"] });
  await write("DELETE /v1/memories/{memory_id}", another.id);
  const { retrieval_id } = await server.ok(
    server.request("POST", "/v1/memory/search", { query: "Where is the anchor?", session_id: session.id }),
  );
  await write("POST /v1/retrievals/{retrieval_id}/feedback", retrieval_id, { note: "The anchor was found." });
  await server.addMemory(session.id, "The sails are in the loft.");
  await write("POST /v1/memory/forget", "", { filter: { session_id: session.id }, dry_run: false });
  await write("POST /v1/documents/batch", "", { operations: [{ op: "put", namespace: ["boats"], key: "one", value: { pier: 9 } }] });
  await write("DELETE /v1/sessions/{session_id}", session.id);
  await server.createSession({ user_id: "ada" });
  await write("DELETE /v1/users/{user_id}", "ada");
  const key = await write("POST /v1/api_keys", "", { name: "one" });
  const next = await write("POST /v1/api_keys/{key_id}/roll", key.id);
  await write("DELETE /v1/api_keys/{key_id}", next.id);
  const signedIn = await write("POST /v1/sign_in");
  server.key = signedIn.key;
  await write("DELETE /v1/api_keys/current");
  server.key = KEY;
  const redirect_uri = "http://127.0.0.1:5000/callback";
  const { client_id } = await server.ok(server.request("POST", "/register", { redirect_uris: [redirect_uri] }));
  const asked = { client_id, redirect_uri, response_type: "code", code_challenge: "c".repeat(43), code_challenge_method: "S256" };
  const { resource } = await server.ok(server.get("/.well-known/oauth-protected-resource"));
  await write("POST /v1/oauth/grants", "", { ...asked, resource });
  await write("PATCH /v1/settings", "", { region: "harbour" });
  const webhook = await write("POST /v1/webhooks", "", { url: receiver.url, events: ["turn.added"] });
  await write("PATCH /v1/webhooks/{webhook_id}", webhook.id, { description: "changed" });
  await write("POST /v1/webhooks/{webhook_id}/rotate_secret", webhook.id);
  await write("POST /v1/webhooks/{webhook_id}/test", webhook.id);
  const failedDelivery = () => {
    return until("a delivery to fail", async () => {
      const [latest] = await server.all(`/v1/webhooks/${webhook.id}/deliveries`);
      return latest.status === "failed" && latest;
    });
  };
  const delivery = await failedDelivery();
  await write("POST /v1/webhooks/{webhook_id}/recover", webhook.id, { since: webhook.created_at });
  await failedDelivery();
  await write(`POST /v1/webhooks/{webhook_id}/deliveries/${delivery.id}/retry`, webhook.id);
  await write("DELETE /v1/webhooks/{webhook_id}", webhook.id);
  const backup = await write("POST /v1/backups");
  await endOf(server, backup.id);
  await write("DELETE /v1/backups/{backup_id}", backup.id);

  const { paths } = await server.ok(server.get("/openapi.json"));
  const writes = Object.keys(paths).flatMap((path) =>
    Object.entries<any>(paths[path])
      .filter(([method, operation]) => method !== "get" && operation["x-scope"] !== "read")
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  const driven = written.map((endpoint) => endpoint.replace(delivery.id, "{delivery_id}"));
  expect([...driven, ...STORE_NOTHING].sort()).toEqual(writes.sort());
});

test("what was acknowledged is there after every power cut, whole and once; what was not is there once or not at all", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { isSlow: true });
  const dataDirectory = directory.at("data");
  const { environment } = shim;
  await using first = await startProcess({ dataDirectory });
  expect(await first.stop()).toBe(0);
  shim.simulateDisk(dataDirectory);
  const chance = new Chance(SEED);
  const ledger = new Ledger(chance);
  for (let round = 0; round < ROUNDS; round++) {
    await using server = await startProcess({ dataDirectory, environment });
    const before = ledger.changes.length;
    const enough = ledger.acknowledged + chance.below(CHANGES_MAX);
    let killed: Promise<void> | undefined;
    await ledger.write(server, WRITERS, () => {
      if (ledger.acknowledged >= enough) killed ??= server.kill();
      return killed !== undefined;
    });
    await killed;
    shim.cutPower(dataDirectory, chance);
    expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
    await using again = await startProcess({ dataDirectory, environment });
    await ledger.retry(again, ledger.changes.slice(before));
    await audit(again, ledger.changes, () => round === ROUNDS - 1);
    await again.kill();
    shim.cutPower(dataDirectory, chance);
  }
  await using last = await startProcess({ dataDirectory, environment });
  expect(await last.stop()).toBe(0);
  expect(await runCairn(["audit", "verify", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
  expect(ledger.changes.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
});

test("a power cut while free pages are overwritten takes nothing from others, and of whom the erasure was done nothing is in the file", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { isSlow: true });
  const dataDirectory = directory.at("data");
  const { environment } = shim;
  await using first = await startProcess({ dataDirectory });
  expect(await first.stop()).toBe(0);
  shim.simulateDisk(dataDirectory);
  const chance = new Chance(SEED);
  const kept = new Map<string, string>();
  const erased: string[] = [];
  for (let round = 0; round < ERASING_ROUNDS; round++) {
    await using server = await startProcess({ dataDirectory, environment });
    const until = erased.length + 1 + chance.below(ERASURES_MAX);
    let killed: Promise<void> | undefined;
    const isKilled = () => killed !== undefined;
    const write = async (work: (i: number) => Promise<void>) => {
      for (let i = 0; !isKilled(); i++) {
        try {
          await work(i);
        } catch (error) {
          if (!isKilled()) throw error;
        }
      }
    };
    await Promise.all([
      write(async (i) => {
        if (await eraseOne(server, `eve-${round}-${i}-`)) erased.push(`eve-${round}-${i}-`);
        if (erased.length >= until) killed ??= server.kill();
      }),
      ...Array.from({ length: WRITERS / 4 }, (_, writer) =>
        write(async (i) => {
          const text = `ada-${round}-${writer}-${i}-`.repeat(1 + chance.below(600));
          kept.set((await server.createSession({ initial_state: { text } })).id, text);
        }),
      ),
    ]);
    await killed;
    shim.cutPower(dataDirectory, chance);
    const file = readFileSync(join(dataDirectory, DATA_FILE));
    expect(erased.filter((text) => file.includes(text))).toEqual([]);
    expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
  }
  await using last = await startProcess({ dataDirectory, environment });
  for (const [id, text] of kept) expect((await last.ok(last.get(`/v1/sessions/${id}`))).state).toEqual({ text });
  expect(kept.size).toBeGreaterThan(ERASING_ROUNDS);
});

/** Makes a user with a text on a page with others and on pages of its own, and erases it. @returns whether that is done */
async function eraseOne(server: CairnProcess, text: string): Promise<boolean> {
  // Traces keep the name.
  const user_id = text.toUpperCase();
  for (const length of [1, 2_000]) await server.createSession({ user_id, initial_state: { text: text.repeat(length) } });
  return (await server.ok(server.delete(`/v1/users/${user_id}`))).status === "done";
}
