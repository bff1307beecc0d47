/**
 * A start on each store that an earlier executable has made (`stores/keep.ts`): what that answered is answered still, and everything works.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBackup } from "../../src/operations/backup.ts";
import { repairAll } from "../../src/operations/doctor.ts";
import { RECORD_TABLES, SCHEMA_VERSION, VECTOR_TABLES } from "../../src/storage/tables.ts";
import { databaseDump, KEPT_STORES, unpackEmbedded, type Kept } from "../stores/kept.ts";
import { type Cairn, startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { form, MCP_HEADERS } from "../support/oauth.ts";
import { isHere } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";

interface Opened {
  cairn: Cairn;
  kept: Kept;
}

let scratch: string;
let postgres: Postgres | undefined;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "cairn-kept-"));
  if (isHere(POSTGRES, "stores in databases that earlier executables have made")) postgres = await Postgres.start();
});
afterAll(() => {
  postgres?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

async function openEmbedded(name: string): Promise<Opened> {
  const directory = mkdtempSync(join(scratch, "embedded-"));
  const kept = await unpackEmbedded(name, directory);
  return opened(kept, { directory });
}

async function openDatabase(name: string): Promise<Opened> {
  const kept = await databaseDump(name);
  return opened(kept, { database: await postgres?.filled(kept.dump), servers: 1 });
}

async function opened(kept: Kept, where: { directory?: string; database?: string | undefined; servers?: number }): Promise<Opened> {
  const clock = new FakeClock();
  clock.set(kept.now);
  const cairn = await startCairn({ ...where, clock });
  // It has keys already.
  expect(cairn.key).toBe("");
  cairn.key = kept.keys["admin"] ?? "";
  return { cairn, kept };
}

/** Does what was left to do, but for deliveries: whoever listens where the receiver was is another one. */
async function runTasks({ cairn }: Opened): Promise<void> {
  for (const name of ["embeddings", "user erasure", "session removal", "document removal", "webhook outbox"]) await cairn.runTask(name);
}

/** What is answered of vectors, which are of another provider now, and what follows from them. */
const OF_VECTORS = new Set(["embedding_id", "vector_available", "score"]);

function withoutVectors(answer: unknown): any {
  return JSON.parse(JSON.stringify(answer, (name, value: unknown) => (OF_VECTORS.has(name) ? undefined : byCreation(name, value))));
}

/** A context without a query has its memories in the order in which they happened, which was that of their creation. */
function byCreation(name: string, value: unknown): unknown {
  return name === "memories" && Array.isArray(value) && value.every(({ score }) => score === 0)
    ? value.toSorted((a, b) => (a.id < b.id ? 1 : -1))
    : value;
}

/** Lists have got filters since, which the error about a parameter that is none of them names. */
const comparable = (answer: unknown) =>
  JSON.parse(JSON.stringify(withoutVectors(answer)).replaceAll(/(is not a parameter of this list; it has) [^"]*/g, "$1 …"));

/** The members that were answered then are answered now, beside any that came later. */
async function expectSameAnswers({ cairn, kept: { keys, reads, settings } }: Opened): Promise<void> {
  for (const { method, path, body, key, status, answer } of reads) {
    // It was no filter of memories then.
    if (path.startsWith("/v1/memory?agent_id=") && status === 400) continue;
    const now = await cairn.request(method, path, { body, key: keys[key] ?? "" });
    const shown = { method, path, key, status: now.status, answer: now.body };
    expect(comparable(shown)).toMatchObject(comparable({ method, path, key, status, answer }));
  }
  expect(await cairn.settings()).toMatchObject(settings);
}

/** Its memories and documents are found, which the provider of today has embedded. */
async function expectFound({ cairn, kept }: Opened): Promise<void> {
  expect((await cairn.settings()).embedding.vectors).toMatchObject({ pending: 0 });
  for (const { query, finds } of kept.searches)
    expect({ query, id: (await cairn.search(query)).data[0]?.id }).toEqual({ query, id: finds });
  const { query, namespace, finds } = kept.documentSearch;
  const operations = [{ op: "search", namespace, query }];
  const { data } = await cairn.ok(cairn.post("/v1/documents/query", { operations }));
  expect(data[0].data[0]).toMatchObject({ key: finds });
}

/** Its application refreshes its tokens, and sees what it is bound to. */
async function expectConnected({ cairn, kept: { grant } }: Opened): Promise<void> {
  if (grant === undefined) return;
  const { client_id, resource, refresh_token } = grant;
  const { body } = await form(cairn, "/token", { grant_type: "refresh_token", client_id, refresh_token });
  const headers = { ...MCP_HEADERS, Authorization: `Bearer ${body.access_token}`, Host: new URL(resource).host };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_memories", arguments: {} } };
  const { result } = (await cairn.post("/mcp", call, { key: null, headers })).body;
  expect(new Set(result.structuredContent.data.map(({ user_id }: any) => user_id))).toEqual(new Set(["ada"]));
}

for (const name of KEPT_STORES) {
  for (const [kind, open] of [
    ["embedded store", openEmbedded],
    ["database", openDatabase],
  ] as const) {
    if (kind === "database" && !isHere(POSTGRES, "stores in databases that earlier executables have made")) continue;
    describe(`the ${kind} that ${name} has made`, () => {
      test("is whole and answers what was answered then, before and after its tasks have run, and then finds by meaning", async () => {
        const store = await open(name);
        await using _ = store.cairn;
        const { cairn, kept } = store;
        const counts = await cairn.countsByName([...RECORD_TABLES, ...VECTOR_TABLES]);
        expect(kept.tables.filter((table) => (counts[table] ?? 0) === 0)).toEqual([]);
        await expectSameAnswers(store);
        expect(await cairn.findings()).toEqual([]);
        await runTasks(store);
        await expectSameAnswers(store);
        await expectFound(store);
        expect(await cairn.findings()).toEqual([]);
        expect(await repairAll(cairn.service.store)).toEqual({ found: [], left: [] });
        if (kind === "database") return;
        const path = join(scratch, `${name}.backup`);
        expect(await writeBackup(cairn.embedded, cairn.clock, path, { force: true })).toMatchObject({ schema: SCHEMA_VERSION });
      });

      test("repeats kept answers, knows the memories that it has, takes changes, and tells its webhooks of them", async () => {
        const store = await open(name);
        await using _ = store.cairn;
        const { cairn, kept } = store;
        for (const { method, path, body, headers, text } of kept.repeated)
          expect((await cairn.plain(method, path, { body, headers })).text).toBe(text);
        for (const { finds } of kept.searches) {
          const { content, type, session_id } = await cairn.ok(cairn.get(`/v1/memory/${finds}`));
          const again = await cairn.ok(cairn.post("/v1/memory", { content, type, session_id, on_duplicate: "return" }));
          expect(again).toMatchObject({ id: finds, duplicate: true });
        }
        // Embedding is a matter of the other test; of these tasks it takes nearly all of the time.
        await cairn.runTask("webhook outbox");
        const { state_version } = await cairn.session(kept.session);
        expect(await cairn.setState(kept.session, { goes: "on" })).toMatchObject({ state_version: state_version + 1 });
        const memory = await cairn.addMemory(kept.session, "Ada has sold her bicycle to a neighbour.");
        expect((await cairn.search("Whom did Ada sell the bicycle?")).data[0]).toMatchObject({ id: memory.id });
        const turn = await cairn.addTurn(kept.session, "goes", "on");
        await cairn.runTask("webhook outbox");
        await expectConnected(store);
        const [newest] = await cairn.deliveries(kept.webhook);
        expect(newest).toMatchObject({ event_type: "turn.added", status: "pending", session_id: kept.session });
        expect(turn).toMatchObject({ turn_number: 4 });
      });
    });
  }
}
