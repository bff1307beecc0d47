/**
 * What a server keeps in memory of its own (`RssAnon`: without the pages of the store), and what a record takes on disk.
 *
 * @module
 */
import { NO_PARTITION, type SessionId } from "../../src/lib/ids.ts";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILTIN_VERSION } from "../../src/embeddings/builtin/version.ts";
import { wordsOf } from "../../src/embeddings/words/terms.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { toIso } from "../../src/lib/time.ts";
import { toJson, type JsonText } from "../../src/lib/json.ts";
import { openRecords } from "../../src/operations/open-records.ts";
import { turnKey, versionKey } from "../../src/storage/keys.ts";
import { MEMORIES as collection } from "../../src/storage/collections.ts";
import { storeVector } from "../../src/search/store-vector.ts";
import { generationOf } from "../../src/storage/memory-records.ts";
import { memories, sessions, turns, versions, provider, PROVIDER_KEY } from "../../src/storage/tables.ts";
import { prose } from "../../src/cli/bench/load/workload.ts";
import { startCairn } from "../support/cairn.ts";
import { numberedTexts } from "../support/fill.ts";
import { pageText } from "../support/pages.ts";
import { inTurns, scratchDirectory, startProcess, until, type CairnProcess, type Scratch } from "../support/process.ts";
import { chance, unitVector } from "../unit/search/stored-vectors.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("the memory of a process's own in /proc");

const TIMEOUT_MS = 600_000;
const MIB = 1024 * 1024;
const SIZING = pageText("src/docs/operate/sizing.md");

const MEMORIES = 20_000;
const USERS = 40;
const SESSIONS = 6_000;
const SESSIONS_PER_COMMIT = 250;
/** Two bytes each in memory. */
const STATE_CHARACTERS = 7_000;
const CONNECTIONS = 32;
/** Between machines, and between one run and the next. */
const MARGIN = 1.2;
/** Of a kind, to measure what one takes on disk. */
const RECORDS = 300;
const CACHES_MAX_BYTES = 80 * MIB;

setDefaultTimeout(TIMEOUT_MS);

let directory: Scratch;
let sessionIds: string[];
let memoryIds: string[];

/** The number that the page on sizing gives in a sentence. */
function claimed(pattern: RegExp): number {
  const [, number] = pattern.exec(SIZING.replaceAll(/\s+/g, " ")) ?? [];
  if (number === undefined) throw new Error(`the page says nothing like ${pattern}`);
  return Number(number);
}

const userOf = (number: number) => `user-${number % USERS}`;

/** Sessions with a large state each, turns and metadata of their own; memories of a few users with a vector each. */
beforeAll(async () => {
  directory = scratchDirectory();
  const { store } = await openRecords({ dataDirectory: directory.path }, systemClock);
  const now = systemClock.now();
  const expiresAt = now + 86_400_000;
  sessionIds = [];
  for (let first = 0; first < SESSIONS; first += SESSIONS_PER_COMMIT) {
    const made = await store.commit(NO_PARTITION, (tx) =>
      Array.from({ length: SESSIONS_PER_COMMIT }, (_, i) => {
        const id = tx.id("sess");
        const key = id.slice("sess_".length);
        const metadata = Object.fromEntries(Array.from({ length: 10 }, (_, j) => [`name ${first + i} ${j}`, j]));
        const times = { createdAt: now, updatedAt: now, ttlSeconds: 86_400, expiresAt };
        tx.add(sessions, key, { agentId: "agent", userId: null, ...times, metadata, memoryCount: 0, turnCount: 4, version: 0 });
        const state = toJson({ id, notes: "—".repeat(STATE_CHARACTERS) });
        tx.put(versions, versionKey(key, 0), { id: key, createdAt: now, actor: "system", source: "initial", body: state });
        for (let turn = 1; turn <= 4; turn++) {
          const input = toJson({ type: "text", content: "—".repeat(1_000) });
          const output = toJson({ type: "text", content: "" });
          const shown = `"id":"${tx.id("turn")}","input":${input},"output":${output},"created_at":"${toIso(now)}"` as JsonText;
          tx.put(turns, turnKey(key, tx.bareId()), { shown, rest: `"session_id":"${id}","turn_number":${turn}` });
        }
        return id;
      }),
    );
    sessionIds.push(...made);
  }
  // As the encoder makes them, which would take minutes.
  await store.commit(NO_PARTITION, (tx) => tx.put(provider, PROVIDER_KEY, { identity: BUILTIN_VERSION, generation: 0 }));
  const random = chance(1);
  const embeddings = numberedTexts(1_000).map((text) => ({
    text,
    embedding: { ...wordsOf(text), vector: unitVector(random, undefined, 1, 384) },
  }));
  memoryIds = [];
  for (let first = 0; first < MEMORIES; first += 2_000) {
    const made = await store.commit(NO_PARTITION, (tx) =>
      Array.from({ length: 2_000 }, (_, i) => {
        const id = tx.id("mem");
        const key = id.slice("mem_".length);
        const { text, embedding } = embeddings[i % embeddings.length]!;
        const content = `${text} ${"x".repeat(100)}`;
        tx.add(memories, key, {
          sessionId: sessionIds[(first + i) % USERS] as SessionId,
          userId: userOf(first + i),
          agentId: "agent",
          content,
          type: "fact",
          tags: ["delivery"],
          metadata: { number: first + i },
          createdAt: now,
          embed: true,
          embedding: storeVector(tx, collection, key, generationOf(tx), embedding),
        });
        return id;
      }),
    );
    memoryIds.push(...made);
  }
  await store.close();
}, TIMEOUT_MS);

afterAll(() => directory[Symbol.dispose]());

function ownBytes({ pid }: CairnProcess): number {
  const [, kib] = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

/**
 * What stays when garbage has been collected, which the server does when it has little else to do.
 *
 * @param enough - bytes; waiting ends as soon as there are no more
 */
async function settledBytes(server: CairnProcess, enough: number, seconds = 90): Promise<number> {
  let least = ownBytes(server);
  for (const end = performance.now() + seconds * 1000; least > enough && performance.now() < end; await Bun.sleep(100)) {
    await inTurns(Array.from({ length: 20 }), CONNECTIONS, async () => void (await server.get("/health")));
    least = Math.min(least, ownBytes(server));
  }
  return least;
}

async function indexed(server: CairnProcess): Promise<void> {
  await until("the index to have every vector", async () => {
    const { text } = await server.get("/metrics");
    return text.includes(`cairn_vectors{state="indexed"} ${MEMORIES}`) && text.includes('cairn_vectors{state="pending"} 0');
  });
}

async function ask(server: CairnProcess, requests: Iterable<[method: "GET" | "POST", path: string, body?: unknown]>): Promise<void> {
  await inTurns(Array.from(requests), CONNECTIONS, async ([method, path, body]) => {
    const { status } = await server.request(method, path, body);
    if (status >= 300 && status !== 404) throw new Error(`${method} ${path} answered ${status}`);
  });
}

/** Requests for the records numbered from `first` on, of every kind whose answers some cache serves. */
function* reads(first: number, count: number): Generator<["GET" | "POST", string, unknown?]> {
  for (let i = first; i < first + count; i++) {
    const session = `/v1/sessions/${sessionIds[i % SESSIONS]}`;
    // What is made of a row is cached when it is asked for again.
    yield ["GET", session];
    yield ["GET", session];
    yield ["POST", `${session}/context`, {}];
    yield ["GET", `/v1/memory/${memoryIds[(i * 3) % MEMORIES]}`];
    yield ["GET", `/v1/memory/${memoryIds[(i * 3 + 1) % MEMORIES]}?${"x".repeat(5_000)}`];
    yield ["GET", `/v1/sessions/sess_${String(i).padStart(12, "0")}`];
    if (i % 6 === 0)
      yield ["POST", "/v1/memory/search", { query: `word${i} parcel ${i}`, user_id: userOf(i / 6), threshold: 0, limit: 50 }];
    if (i % 20 === 0) yield ["GET", `/v1/sessions?user_id=${`other ${i}`.padEnd(200, "y")}&limit=1&z=${"z".repeat(5_000)}`];
  }
}

it("with 20,000 memories the server has as much memory of its own as the page on sizing says, and all caches together add 80 MB at most to that", async () => {
  const most = claimed(/With 20,000 memories the server has about (\d+) MB of memory of its own/) * MIB * MARGIN;
  await using server = await startProcess({ dataDirectory: directory.path, environment: {} });
  await ask(server, [["POST", "/v1/memory/search", { query: "parcel", threshold: 0 }]]);
  await indexed(server);
  // What handles requests is compiled and has its buffers before the first look.
  for (let round = 0; round < 10; round++) await ask(server, reads(0, 60));
  expect(await settledBytes(server, most)).toBeLessThan(most);
  const before = await settledBytes(server, 0, 3);
  await ask(server, reads(0, SESSIONS));
  expect((await settledBytes(server, before + CACHES_MAX_BYTES)) - before).toBeLessThanOrEqual(CACHES_MAX_BYTES);
});

test("a memory of 200 characters and a turn of 1,000 take as much disk as the page on sizing says", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "user" });
  const file = join(cairn.directory, "store", "data.mdb");
  const bytesEach = async (add: (i: number) => Promise<unknown>) => {
    const addFrom = (first: number) =>
      inTurns(
        Array.from({ length: RECORDS }, (_, i) => first + i),
        CONNECTIONS,
        async (i) => void (await add(i)),
      );
    // What the file has in reserve is used up first.
    await addFrom(0);
    const before = statSync(file).size;
    await addFrom(RECORDS);
    return (statSync(file).size - before) / RECORDS;
  };
  const memory = await bytesEach((i) => cairn.addMemory(session.id, prose(200, i)));
  const turn = await bytesEach((i) => cairn.addTurn(session.id, prose(500, i), prose(500, 3 * i)));
  const asClaimed = [
    claimed(/A memory of 200 characters takes about ([\d.]+) KB of disk/),
    claimed(/a turn of 1,000 characters about ([\d.]+) KB/),
  ];
  for (const [i, bytes] of [memory, turn].entries()) {
    expect(bytes).toBeGreaterThan(asClaimed[i]! * 1000 * 0.7);
    expect(bytes).toBeLessThan(asClaimed[i]! * 1000 * 1.3);
  }
});
