/**
 * The limit of the disk: lmdb-js alone, writing for each operation what Cairn writes for it.
 *
 * What that is, is recorded from a Cairn in this process: the keys and values of one commit. The same number of values of
 * the same bytes then goes into the same tables, with keys that move as they do there, on a copy of the store that is
 * measured, so that its trees are as deep. Each operation is one transaction, durable before it counts, and those that
 * come at the same time share a flush, as in Cairn. Nothing is read, parsed, checked or answered.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase } from "lmdb";
import { systemClock } from "../../src/lib/clock.ts";
import { IdSource } from "../../src/lib/ids.ts";
import { hashKey, numberKey } from "../../src/storage/keys.ts";
import type { Tx } from "../../src/storage/store.ts";
import { TABLES, vectors } from "../../src/storage/tables.ts";
import { startCairn, type Cairn } from "../../test/support/cairn.ts";
import { obey } from "./child.ts";
import { measure, type Run } from "./timing.ts";
import { OPERATIONS, SESSIONS_PER_USER, createSession, filling, type OperationName } from "./workload.ts";

export type CommitsOrder =
  | { kind: "open"; store: string; scratch: string; sessions: string[] }
  | { kind: "load"; operation: OperationName; concurrency: number; seconds: number };

export type CommitsResult = Run & { puts: number; bytes: number };

/** A write of a commit: its key in pieces of which some are new each time. */
interface Write {
  table: string;
  key: (string | "session" | "user" | "number" | { fresh: number })[];
  value: string | Uint8Array | undefined;
}

const ids = new IdSource(systemClock);
let env: RootDatabase<string, string>;
const databases = new Map<string, Database<string | Uint8Array, string>>();
let sessions: string[] = [];
let recorder: Recorder;
const recordings = new Map<OperationName, Write[][]>();
let number = 1e9;

async function start(order: Extract<CommitsOrder, { kind: "open" }>): Promise<void> {
  env = open<string, string>({ path: order.store, maxDbs: TABLES.length + 4, overlappingSync: false, encoding: "string" });
  for (const { name } of TABLES) databases.set(name, env.openDB({ name, encoding: "string" }));
  databases.set(vectors.name, env.openDB({ name: vectors.name, encoding: "binary" }));
  sessions = order.sessions.map((id) => id.slice("sess_".length));
  recorder = await Recorder.start(mkdtempSync(join(order.scratch, "recorded-")));
}

/** A Cairn with one filled session whose commits are taken down. */
class Recorder {
  readonly #cairn: Cairn;
  #session = "";
  #commits: Write[][] = [];
  #fresh: string[] = [];

  private constructor(cairn: Cairn) {
    this.#cairn = cairn;
  }

  static async start(directory: string): Promise<Recorder> {
    const cairn = await startCairn({ directory });
    const recorder = new Recorder(cairn);
    const { store, ids: source } = cairn.service;
    const bare = source.bare.bind(source);
    source.bare = () => {
      const id = bare();
      recorder.#fresh.push(id);
      return id;
    };
    const commit = store.commit.bind(store);
    store.commit = (work) =>
      commit((tx) => {
        const writes: Write[] = [];
        recorder.#commits.push(writes);
        return work(recorder.#listening(tx, writes));
      });
    recorder.#session = (await cairn.ok(cairn.post("/v1/sessions", createSession(0).body))).id.slice("sess_".length);
    for (const { path, body } of filling(`sess_${recorder.#session}`, 0)) await cairn.ok(cairn.post(path, body));
    return recorder;
  }

  async record(operation: OperationName): Promise<Write[][]> {
    this.#commits = [];
    this.#fresh = [];
    for (const { path, body, method } of OPERATIONS[operation].requests(`sess_${this.#session}`, 0, 1)) {
      await this.#cairn.ok(this.#cairn.request(method, path, body === undefined ? {} : { body }));
    }
    return this.#commits;
  }

  async close(): Promise<void> {
    await this.#cairn.close();
    rmSync(this.#cairn.directory, { recursive: true });
  }

  #listening(tx: Tx, writes: Write[]): Tx {
    const note = (table: string, key: string, value: Write["value"]) => writes.push({ table, key: this.#pieces(table, key), value });
    return {
      ...tx,
      put: (table, key, row) => {
        note(table.name, key, table.encode(row));
        tx.put(table, key, row);
      },
      remove: (table, key) => {
        note(table.name, key, undefined);
        tx.remove(table, key);
      },
      putVector: (memory, bytes) => {
        note(vectors.name, memory, bytes.slice());
        tx.putVector(memory, bytes);
      },
      removeVector: (memory) => {
        note(vectors.name, memory, undefined);
        tx.removeVector(memory);
      },
    };
  }

  /** Finds in a key what changes from one operation to the next. */
  #pieces(table: string, key: string): Write["key"] {
    if (table === "labels") return ["number"];
    const known = new Map<string, Write["key"][number]>([
      [this.#session, "session"],
      [hashKey("user-0"), "user"],
      ...this.#fresh.map((id, index) => [id, { fresh: index }] as const),
    ]);
    const pieces: Write["key"] = [];
    for (let rest = key; rest !== ""; ) {
      const found = [...known].find(([text]) => rest.startsWith(text));
      if (found !== undefined) {
        pieces.push(found[1]);
        rest = rest.slice(found[0].length);
        // A version's number stands behind its session.
        if (table === "versions" && found[1] === "session") {
          pieces.push("number");
          rest = "";
        }
      } else if (typeof pieces.at(-1) === "string" && pieces.at(-1) !== "session" && pieces.at(-1) !== "user") {
        pieces.push((pieces.pop() as string) + rest.charAt(0));
        rest = rest.slice(1);
      } else {
        pieces.push(rest.charAt(0));
        rest = rest.slice(1);
      }
    }
    return pieces;
  }
}

async function load({ operation, concurrency, seconds }: Extract<CommitsOrder, { kind: "load" }>): Promise<CommitsResult> {
  let commits = recordings.get(operation);
  if (commits === undefined) recordings.set(operation, (commits = await recorder.record(operation)));
  const recorded = commits;
  const spread = Math.max(1, Math.floor(sessions.length / concurrency));
  const run = await measure(concurrency, seconds, async (index) => {
    const session = ((index % concurrency) * spread + Math.floor(index / concurrency)) % sessions.length;
    const fresh: string[] = [];
    for (const writes of recorded) await env.transaction(() => write(writes, session, fresh));
  });
  const all = recorded.flat();
  const bytes = all.reduce((sum, { value }) => sum + (value === undefined ? 0 : Buffer.byteLength(value)), 0);
  return { ...run, puts: all.length, bytes };
}

function write(writes: readonly Write[], session: number, fresh: string[]): void {
  for (const { table, key, value } of writes) {
    let text = "";
    for (const piece of key) {
      if (piece === "session") text += sessions[session] as string;
      else if (piece === "user") text += users[Math.floor(session / SESSIONS_PER_USER)] ??= hashKey(`user-${Math.floor(session / SESSIONS_PER_USER)}`);
      else if (piece === "number") text += numberKey(number++);
      else if (typeof piece === "string") text += piece;
      else text += fresh[piece.fresh] ??= ids.bare();
    }
    const database = databases.get(table) as Database<string | Uint8Array, string>;
    if (value === undefined) void database.remove(text);
    else void database.put(text, value);
  }
}

const users: string[] = [];

obey<CommitsOrder, CommitsResult | undefined>(async (order) => {
  if (order.kind === "load") return load(order);
  await start(order);
  return undefined;
});
