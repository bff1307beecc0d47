/**
 * Keeps a small store that an executable has made, with what that answered, for later versions to open:
 *
 *     bun test/stores/keep.ts NAME
 *
 * A server fills an embedded store and one on PostgreSQL over HTTP, its answers are written down, and it is killed while it removes much,
 * so that tasks have something left to do. It is the executable of this checkout, or that in CAIRN_TEST_EXECUTABLE, of which this has to
 * be the source: what each table has to hold is looked up with it.
 *
 * @module
 */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import { PostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import type { RecordStore } from "../../src/storage/record-store.ts";
import { RECORD_TABLES, VECTOR_TABLES } from "../../src/storage/tables.ts";
import { connectApplication } from "../support/consent.ts";
import { installPostgres, Postgres } from "../support/postgres.ts";
import { Chance, KEY, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { manyRareWords } from "../support/texts.ts";
import { FILES, type Kept, type KeptRead } from "./kept.ts";

const TRIES_MAX = 20;
const OWN_SECRET = "a secret of my own choice";
const [name = ""] = process.argv.slice(2);
const kept = join(import.meta.dir, name);
const receiver = startReceiver();

async function keepEmbedded(): Promise<void> {
  using scratch = scratchDirectory();
  const dataDirectory = scratch.at("data");
  const answers = await filled(
    () => startProcess({ dataDirectory, environment: {} }),
    async () => {
      // It is looked at where it may be changed: opening a store that was left by a crash does that.
      const copy = scratch.at("copy");
      rmSync(copy, { recursive: true, force: true });
      // The socket of a server cannot be copied, and is no part of the store.
      await cp(join(dataDirectory, "store"), join(copy, "store"), { recursive: true });
      return emptyTables(await Store.open(copy, systemClock));
    },
  );
  // Locks and addresses of the process that was killed, and the key of the next, are no part of the store.
  const files = readdirSync(join(dataDirectory, "store")).map((file) => `store/${file}`);
  const tar = Bun.spawnSync([
    "tar",
    "-czf",
    join(kept, FILES.embedded),
    "-C",
    dataDirectory,
    ...files.filter((file) => !/lock/.test(file)),
  ]);
  if (tar.exitCode !== 0) throw new Error(tar.stderr.toString());
  await Bun.write(join(kept, FILES.ofEmbedded), json(answers));
}

async function keepDatabase(): Promise<void> {
  const problem = await installPostgres();
  if (problem !== undefined) throw new Error(problem);
  const postgres = await Postgres.start();
  try {
    const url = await postgres.database();
    using scratch = scratchDirectory();
    const answers = await filled(
      () => startProcess({ dataDirectory: scratch.at("data"), flags: ["--store", url], environment: {} }),
      async () => emptyTables(await PostgresStore.open(await postgres.database(new URL(url).pathname.slice(1)), systemClock)),
    );
    await Bun.write(join(kept, FILES.database), Bun.gzipSync(postgres.dump(url)));
    await Bun.write(join(kept, FILES.ofDatabase), json(answers));
  } finally {
    postgres.stop();
  }
}

const json = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`;

/** All but that of pending vectors: while the built-in provider is set, a text is embedded with its record. */
const FILLED_TABLES = [...RECORD_TABLES, ...VECTOR_TABLES];

async function emptyTables(store: RecordStore): Promise<string[]> {
  const counts = await Promise.all(FILLED_TABLES.map(async (table) => ({ table: table.name, rows: await store.count(table) })));
  await store.close();
  return counts.filter(({ rows }) => rows === 0).map(({ table }) => table);
}

/** Fills a store, and kills its server while it removes. @param lacking - the tables that hold nothing then */
async function filled(start: () => Promise<CairnProcess>, lacking: () => Promise<string[]>): Promise<Kept> {
  let answers: Kept | undefined;
  for (let i = 1; i <= TRIES_MAX; i++) {
    const cairn = await start();
    answers ??= await fill(cairn);
    await killWhileRemoving(cairn, i);
    answers.now = Date.now();
    const missing = await lacking();
    console.log(`try ${i}: ${missing.length === 0 ? "every table has rows" : `nothing in ${missing.join(", ")}`}`);
    if (missing.length === 0) return answers;
  }
  throw new Error("some table stays empty");
}

const put = (namespace: string[], key: string | undefined, more: object = {}) => ({
  op: "put",
  namespace,
  key,
  value: { title: `${key} of ${namespace.join(" and ")}`, number: 1.5, nothing: null },
  ...more,
});

type Read = readonly [method: "GET" | "POST", path: string, body?: object | undefined];

/** Makes every kind of record, and writes down what is answered to who reads it. */
async function fill(cairn: CairnProcess): Promise<Kept> {
  const ok = cairn.ok.bind(cairn);
  const patch = (path: string, body: unknown) => ok(cairn.request("PATCH", path, body));
  const documents = (operations: object[], more: object = {}) => ok(cairn.post("/v1/documents/batch", { operations, ...more }));
  await patch("/v1/settings", { retrieval_log: true, trace_retention_days: 365, region: "eu-central" });

  const hook = await ok(
    cairn.post("/v1/webhooks", {
      url: receiver.url,
      events: ["session.created", "turn.added", "memory.created"],
      secret: OWN_SECRET,
      description: "All.",
    }),
  );
  // Nobody listens there.
  const failing = await ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/", events: ["turn.added"] }));
  await ok(cairn.post(`/v1/webhooks/${failing.id}/test`, undefined));
  await ok(cairn.post(`/v1/webhooks/${failing.id}/rotate_secret`, {}));

  const bound = await ok(cairn.post("/v1/api_keys", { name: "of ada", user_id: "ada" }));
  const ofAgent = await ok(cairn.post("/v1/api_keys", { name: "of an agent", agent_id: "planner", scopes: ["read"] }));
  const rolled = await ok(cairn.post("/v1/api_keys", { name: "rolled", tier: "pro", expires_at: "2099-01-01T00:00:00Z" }));
  const roll = await ok(cairn.post(`/v1/api_keys/${rolled.id}/roll`, { expires_at: "2099-01-01T00:00:00Z" }));
  await ok(cairn.delete(`/v1/api_keys/${(await ok(cairn.post("/v1/api_keys", { name: "revoked" }))).id}`));
  await ok(cairn.post("/v1/sign_in", { name: "a browser" }));
  const grant = await connectApplication(cairn.address, KEY, { user_id: "ada", expires_in_days: 365 });

  const session = await cairn.createSession({
    agent_id: "planner",
    user_id: "ada",
    external_id: "thread ü",
    initial_state: { step: 0, list: [1, "two", null], text: "line\nfeed \u0000 😀" },
    metadata: { origin: "kept" },
    ttl_seconds: 2_592_000,
  });
  const ofSession = `/v1/sessions/${session.id}`;
  await ok(cairn.post(`${ofSession}/state`, { state: { step: 1 }, reasoning: "The first step." }));
  await patch(`${ofSession}/state`, { state: { more: true } });
  await ok(cairn.post(`${ofSession}/rollback`, { version: 1, reason: "Too far." }));
  for (const i of [1, 2, 3]) {
    const [input, output] = [`Question ${i}`, `Answer ${i}`].map((content) => ({ type: "text", content }));
    await ok(cairn.post(`${ofSession}/turns`, { input, output, metadata: { i }, reasoning: "Because." }));
  }
  const memory = (content: string, more: object = {}) => ok(cairn.post("/v1/memory", { session_id: session.id, content, ...more }));
  const tea = await memory("Ada drinks green tea in the morning.", {
    type: "preference",
    tags: ["drink", "morning"],
    metadata: { sure: 0.5 },
  });
  const changed = await memory("Ada lives in Turin.");
  await patch(`/v1/memory/${changed.id}`, { content: "Ada lives in the harbour of Trieste.", tags: ["place"] });
  const silent = await memory("Nothing finds this one.", { embed: false });
  const long = await memory(manyRareWords(new Chance(2), 5_000));
  const fork = await ok(cairn.post(`${ofSession}/fork`, { version: 1, turns: "all" }));
  const other = await cairn.createSession({ agent_id: "writer", external_id: "without a user" });
  await ok(cairn.post("/v1/memory", { session_id: other.id, content: "The deadline of the report is a Friday." }));

  const newer = await fillNewer(cairn, session.id);

  const once = { method: "POST", path: "/v1/sessions", body: { agent_id: "once", user_id: "bob" }, headers: { "Idempotency-Key": "once" } };
  const first = await cairn.request(once.method, once.path, once.body, once.headers);
  const sealed = { method: "POST", path: "/v1/api_keys", body: { name: "asked twice" }, headers: { "Idempotency-Key": "secret" } };
  const second = await cairn.request(sealed.method, sealed.path, sealed.body, sealed.headers);

  await documents([put(["notes", "ü"], "one", { session_id: session.id }), put(["notes"], "with a time", { ttl_seconds: 2_592_000 })]);
  await documents([put(["notes"], undefined), put(["notes"], "hers")], { user_id: "ada" });
  await documents([
    put(["found"], "whole", { index: true, value: { text: "The lighthouse is painted red." } }),
    put(["found", "below"], "in part", { index: ["text"], value: { text: "The ferry leaves at noon.", hidden: "x" } }),
    ...[1, 2, 3, 4].map((seed) => put(["found"], `long ${seed}`, { index: true, value: { text: manyRareWords(new Chance(seed), 5_000) } })),
  ]);

  const queries = { tea: "What does Ada drink in the morning?", place: "Where does Ada live?" };
  await ok(cairn.post("/v1/memory/search", { query: queries.tea, session_id: session.id }));
  await ok(cairn.post(`${ofSession}/context`, { query: queries.place }));
  const retrieval = await until("what was found to be kept", async () => (await cairn.all(`${ofSession}/retrievals`))[1]);
  await patch("/v1/settings", { retrieval_log: null });
  const eraseAtOnce = await cairn.createSession({ user_id: "erased at once" });
  const deliveredTo = (id: string, last: string) => async () => {
    const all = await cairn.all(`/v1/webhooks/${id}/deliveries`);
    return all[0]?.session_id === last && all.every(({ status }) => status === "delivered") && all;
  };
  const delivered = await until("all deliveries", deliveredTo(hook.id, eraseAtOnce.id));
  await until("attempts that fail", async () =>
    (await cairn.all(`/v1/webhooks/${failing.id}/deliveries`)).some(({ attempts }) => attempts > 0),
  );
  await ok(cairn.delete(`/v1/users/${encodeURIComponent("erased at once")}`));

  const keys = { admin: KEY, bound: bound.key, ofAgent: ofAgent.key, rolled: roll.key };
  const query = (operations: object[], more: object = {}) => ["POST", "/v1/documents/query", { operations, ...more }] as const;
  const reads: (readonly [...Read, (keyof typeof keys)?])[] = [
    ["GET", ofSession],
    ["GET", `${ofSession}/versions?limit=100`],
    ...[0, 1, 2, 3].map((version) => ["GET", `${ofSession}/versions/${version}`] as const),
    ["GET", `${ofSession}/turns?limit=100`],
    ["GET", `${ofSession}/timeline?limit=100`],
    ["GET", `${ofSession}/retrievals?limit=100`],
    ["GET", `/v1/retrievals/${retrieval.id}`],
    ["POST", `${ofSession}/context`, {}],
    ["GET", `/v1/sessions/${fork.id}`],
    ["GET", `/v1/sessions/${fork.id}/turns?limit=100`],
    ...newer,
    ["GET", `/v1/sessions/${eraseAtOnce.id}`],
    ["GET", `/v1/sessions?external_id=${encodeURIComponent("thread ü")}&user_id=ada`],
    ["GET", "/v1/sessions?agent_id=planner"],
    ["GET", "/v1/sessions?user_id=ada"],
    ["GET", "/v1/sessions", undefined, "bound"],
    ["GET", "/v1/memory?user_id=ada&limit=100"],
    ["GET", "/v1/memory?tags=drink"],
    ["GET", "/v1/memory?types=preference"],
    ["GET", "/v1/memory?agent_id=planner", undefined, "ofAgent"],
    ...[tea, changed, silent, long].map(({ id }) => ["GET", `/v1/memory/${id}`] as const),
    ["GET", `/v1/traces?limit=100&session_id=${session.id}`],
    ["GET", "/v1/traces?limit=100&user_id=ada"],
    ["GET", "/v1/traces?limit=100&action=settings.updated"],
    ["GET", "/v1/users/ada"],
    ["GET", `/v1/users/${encodeURIComponent("erased at once")}/erasure`],
    ["GET", "/v1/api_keys?limit=100"],
    ["GET", "/v1/api_keys/current", undefined, "bound"],
    ["GET", "/v1/api_keys/current", undefined, "rolled"],
    ["GET", `/v1/api_keys/${rolled.id}`],
    ["GET", `/v1/webhooks/${hook.id}`],
    ["GET", `/v1/webhooks/${hook.id}/deliveries?event_type=turn.added`],
    ["GET", `/v1/webhooks/${hook.id}/deliveries/${delivered[0].id}`],
    query([{ op: "namespaces" }, { op: "list", namespace: ["notes"] }, { op: "count", namespace: ["found"] }]),
    query([{ op: "list", namespace: ["notes"] }], { user_id: "ada" }),
    query([{ op: "get", namespace: ["found", "below"], key: "in part" }]),
    query([{ op: "list", namespace: ["notes"], order_by: "updated_at" }]),
  ];
  const answered: KeptRead[] = [];
  for (const [method, path, body, key = "admin"] of reads) {
    const answer = await cairn.request(method, path, body, { "X-API-Key": keys[key] });
    answered.push({ method, path, ...(body && { body }), key, status: answer.status, answer: lasting(answer.body) });
  }
  const settings = Object.entries<any>(await ok(cairn.get("/v1/settings"))).filter(([, { source }]) => source === "setting");
  return {
    now: 0,
    tables: FILLED_TABLES.map((table) => table.name),
    keys,
    reads: answered,
    settings: Object.fromEntries(settings),
    repeated: [
      { ...once, text: first.text },
      { ...sealed, text: second.text },
    ],
    searches: [
      { query: queries.tea, finds: tea.id },
      { query: queries.place, finds: changed.id },
      { query: (long.content as string).slice(0, 80), finds: long.id },
    ],
    documentSearch: { query: "What colour is the lighthouse?", namespace: ["found"], finds: "whole" },
    session: session.id,
    webhook: hook.id,
    grant,
  };
}

/**
 * Makes turns with names and times of their own, rollbacks that hide turns and forks that show them, and memories that supersede, hold for
 * a while, expire, or belong to no session.
 *
 * @returns what to read of it
 */
async function fillNewer(cairn: CairnProcess, session: string): Promise<Read[]> {
  const ok = cairn.ok.bind(cairn);
  const { id } = await cairn.createSession({
    agent_id: "mover",
    user_id: "eve",
    ttl_seconds: "never",
    occurred_at: "2019-01-01T00:00:00Z",
  });
  const path = `/v1/sessions/${id}`;
  const turn = (content: string, more: object = {}) => ({
    input: { type: "text", content },
    output: { type: "text", content: `${content}, answered` },
    ...more,
  });
  await ok(cairn.post(`${path}/turns`, turn("Of now")));
  const batch = [3, 1, 2].map((day) => turn(`Of day ${day}`, { external_id: `message ${day}`, occurred_at: `2020-02-0${day}T12:00:00Z` }));
  const moved = await ok(cairn.post(`${path}/turns/batch`, { turns: batch }));
  const step = await ok(
    cairn.post(`${path}/turns`, turn("A step", { state: { step: 1 }, memories: [{ content: "Eve moved to Oslo.", tags: ["place"] }] })),
  );
  const shared = await ok(cairn.post(`${path}/fork`, { turns: "all", memories: "session" }));
  await ok(cairn.post(`/v1/sessions/${shared.id}/turns`, turn("Of the fork")));
  await ok(cairn.post(`${path}/rollback`, { version: 0, turns: "hide" }));
  await ok(cairn.post(`${path}/turns`, turn("After the rollback")));
  const few = await ok(cairn.post(`${path}/fork`, { turns: 2 }));
  const gone = await ok(cairn.post(`${path}/fork`, { turns: "all", memories: "session" }));
  await ok(cairn.post("/v1/memory", { session_id: gone.id, content: "Eve has sold her car." }));
  const last = await ok(cairn.post(`/v1/sessions/${gone.id}/fork`, { turns: "all", memories: "session" }));
  await ok(cairn.delete(`/v1/sessions/${gone.id}`));

  const memory = (content: string, more: object = {}) => ok(cairn.post("/v1/memory", { user_id: "eve", content, ...more }));
  const rome = await memory("Eve works in Rome.", { external_id: "place of work", source: "import", importance: 0.25 });
  const oslo = await memory("Eve works in Oslo.", {
    supersedes: [rome.id],
    external_id: "place of work",
    occurred_at: "2020-03-01T00:00:00Z",
  });
  await memory("Eve is in training.", { valid_from: "2020-01-01T00:00:00Z", valid_until: "2020-06-01T00:00:00Z" });
  const later = await memory("Eve will retire.", { valid_from: "2070-01-01T00:00:00Z", supersedes: [oslo.id] });
  const ending = await memory("Eve has a visitor.", { expires_at: "2080-01-01T00:00:00Z" });
  await ok(cairn.post("/v1/memory", { agent_id: "mover", content: "Invoices are sent on Mondays." }));
  await memory("Eve is allergic to nuts.", { pinned: true, metadata: { heard: "at lunch", sure: true, times: 2 } });
  await ok(cairn.post("/v1/memory/search", { query: "Where does Eve work?", user_id: "eve", filter: { "metadata.sure": { $ne: false } } }));
  const searches = await until("a search of no session to be kept", async () => (await cairn.all("/v1/retrievals?user_id=eve"))[0]);
  await ok(cairn.post(`/v1/retrievals/${searches.id}/feedback`, { note: "It was found." }));
  // The index of turns begins with the first search.
  await ok(cairn.post("/v1/turns/search", { query: "Of day 2", session_id: id }));
  await until("all turns to be indexed", async () => (await ok(cairn.get("/v1/stats"))).turn_index.state === "ready");
  const sessions = [id, shared.id, few.id, last.id].map((one) => `/v1/sessions/${one}`);
  const every = sessions.flatMap((one): Read[] => [
    ["GET", one],
    ["GET", `${one}/turns?limit=100`],
    ["GET", `${one}/turns?limit=100&status=all&order=asc`],
    ["GET", `${one}/timeline?limit=100`],
    ["GET", `/v1/memory?session_id=${one.slice("/v1/sessions/".length)}`],
    ["POST", `${one}/context`, { turn_limit: 50 }],
  ]);
  return [
    ...every,
    ["GET", `${path}/turns/${moved.data[1].id}`],
    ["GET", `/v1/sessions?forked_from=${id}`],
    ["GET", `/v1/sessions?forked_from=${session}`],
    ["GET", "/v1/memory?user_id=eve&limit=100"],
    ...["past", "future", "all"].map((status): Read => ["GET", `/v1/memory?user_id=eve&status=${status}`]),
    ["GET", "/v1/memory?user_id=eve&as_of=2020-02-01T00:00:00Z"],
    ["GET", "/v1/memory?agent_id=mover"],
    ["GET", "/v1/retrievals?user_id=eve"],
    ["GET", `/v1/turns?q=day&session_id=${last.id}`],
    ...[rome, oslo, later, ending, step.memories[0]].map((one): Read => ["GET", `/v1/memory/${one.id}`]),
    ["GET", `/v1/traces?limit=100&session_id=${id}`],
    ["GET", "/v1/users/eve"],
  ];
}

/**
 * Removes more than a transaction does, of a session, of a namespace and of a user, changes much of which a webhook is told, and kills
 * the server before it gets round to all of it.
 */
async function killWhileRemoving(cairn: CairnProcess, i: number): Promise<void> {
  const owner = `leaving ${i}`;
  const large = await cairn.createSession({ agent_id: "removed", external_id: `removed ${i}` });
  await times(260, () => cairn.ok(cairn.post(`/v1/sessions/${large.id}/state`, { state: {} })));
  await times(60, () => cairn.createSession({ agent_id: "removed", user_id: owner }));
  const batch = (operations: object[]) => cairn.ok(cairn.post("/v1/documents/batch", { operations }));
  for (let at = 0; at < 4; at++) await batch(Array.from({ length: 100 }, () => put(["emptied"], undefined, { value: {} })));
  // Its answer comes after some dozen transactions, or not at all.
  const erased = cairn.delete(`/v1/users/${encodeURIComponent(owner)}`).catch(() => undefined);
  await Promise.all([
    cairn.ok(cairn.delete(`/v1/sessions/${large.id}`)),
    batch([{ op: "delete_all", namespace: ["emptied"] }]),
    times(5, () => cairn.createSession({ agent_id: "removed" })),
  ]);
  await cairn.kill();
  await erased;
}

const times = (count: number, work: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, work));

/** What is answered again: the id of a request is another one, when a key was used last is written once a minute, and attempts go on. */
function lasting(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (member, value: unknown) => (/^(request_id|last_used_at|next_attempt_at)$/.test(member) ? undefined : value)),
  );
}

if (!/^[\w.-]+$/.test(name)) throw new Error("bun test/stores/keep.ts NAME");
mkdirSync(kept);
try {
  await keepEmbedded();
  await keepDatabase();
} catch (error) {
  rmSync(kept, { recursive: true, force: true });
  throw error;
} finally {
  await receiver[Symbol.asyncDispose]();
}
