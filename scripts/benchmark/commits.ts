/**
 * The limit of the disk: lmdb-js alone, writing for each operation what Cairn writes for it.
 *
 * Such a commit is recorded from a Cairn in this process: the keys and values of one commit. The same number of values of
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
import { IdSource, NO_PARTITION } from "../../src/lib/ids.ts";
import { hashKey, numberKey } from "../../src/storage/keys.ts";
import type { Tx } from "../../src/storage/access.ts";
import { WriteBuffer } from "../../src/storage/write-buffer.ts";
import { TABLES, vectors } from "../../src/storage/tables.ts";
import { startCairn, type Cairn } from "../../test/support/cairn.ts";
import { obey } from "./child.ts";
import { measure, type Run } from "../../src/cli/bench/load/timing.ts";
import { OPERATIONS, SESSIONS_PER_USER, createSession, filling, type OperationName } from "../../src/cli/bench/load/workload.ts";

export type CommitsOrder =
  | { kind: "open"; store: string; scratch: string; sessions: string[] }
  | { kind: "load"; operation: OperationName; concurrency: number; seconds: number };

export type CommitsResult = Run & { puts: number; bytes: number };

/** A piece of a key: the same each time, a session or its user, a number never used before, or the operation's nth new id. */
type Piece = { kind: "text"; text: string } | { kind: "session" } | { kind: "user" } | { kind: "number" } | { kind: "id"; index: number };

/** A write of a commit; without a value it removes. */
interface Write {
  table: string;
  key: Piece[];
  value: string | Uint8Array | undefined;
}

const ids = new IdSource(systemClock);
let env: RootDatabase<string, string>;
const databases = new Map<string, Database<string | Uint8Array, string>>();
let sessions: string[] = [];
/** `hashKey` of each user. */
let users: string[] = [];
let recorder: Recorder;
const recordings = new Map<OperationName, Write[][]>();
let number = 1e9;

async function start(order: Extract<CommitsOrder, { kind: "open" }>): Promise<void> {
  env = open<string, string>({ path: order.store, maxDbs: TABLES.length + 4, overlappingSync: false, encoding: "string" });
  for (const { name } of TABLES) databases.set(name, env.openDB({ name, encoding: "string" }));
  databases.set(vectors.name, env.openDB({ name: vectors.name, encoding: "binary" }));
  sessions = order.sessions.map((id) => id.slice("sess_".length));
  users = Array.from({ length: Math.ceil(sessions.length / SESSIONS_PER_USER) }, (_, user) => hashKey(`user-${user}`));
  recorder = await Recorder.start(mkdtempSync(join(order.scratch, "recorded-")));
}

/** A Cairn with one filled session whose commits are taken down. */
class Recorder {
  readonly #cairn: Cairn;
  #session = "";
  #commits: Write[][] = [];
  #newIds: string[] = [];

  private constructor(cairn: Cairn) {
    this.#cairn = cairn;
  }

  static async start(directory: string): Promise<Recorder> {
    const cairn = await startCairn({ directory });
    const recorder = new Recorder(cairn);
    const { id } = (await cairn.ok(cairn.post("/v1/sessions", createSession(0).body))) as { id: string };
    for (const { path, body } of filling(id, 0)) await cairn.ok(cairn.post(path, body));
    recorder.#session = id.slice("sess_".length);
    recorder.#listen();
    return recorder;
  }

  #listen(): void {
    const { store } = this.#cairn.service;
    const commit = store.commit.bind(store);
    store.commit = async (partition, callback) => {
      let transaction: Tx | undefined;
      const result = await commit(partition, (tx) => {
        const bareId = tx.bareId.bind(tx);
        this.#newIds = [];
        tx.bareId = (idHome) => {
          const id = bareId(idHome);
          this.#newIds.push(id);
          return id;
        };
        return callback((transaction = tx));
      });
      if (transaction instanceof WriteBuffer)
        this.#commits.push(transaction.writes.map(({ table, key, value }) => ({ table, key: this.#pieces(table, key), value })));
      return result;
    };
  }

  async record(operation: OperationName): Promise<Write[][]> {
    this.#commits = [];
    for (const { path, body, method } of OPERATIONS[operation].requests(`sess_${this.#session}`, 0, 1)) {
      await this.#cairn.ok(this.#cairn.request(method, path, body === undefined ? {} : { body }));
    }
    return this.#commits;
  }

  async close(): Promise<void> {
    await this.#cairn.close();
    rmSync(this.#cairn.directory, { recursive: true });
  }

  /** Finds in a key what changes from one operation to the next. */
  #pieces(table: string, key: string): Piece[] {
    const known: [string, Piece][] = [
      [this.#session, { kind: "session" }],
      [hashKey("user-0"), { kind: "user" }],
      ...this.#newIds.map((id, index): [string, Piece] => [id, { kind: "id", index }]),
    ];
    const pieces: Piece[] = [];
    for (let at = 0; at < key.length;) {
      const [text, piece] = known.find(([id]) => key.startsWith(id, at)) ?? [key.charAt(at), { kind: "text", text: key.charAt(at) }];
      pieces.push(piece);
      at += text.length;
      // The rest of a version's key is its number.
      if (table === "versions" && piece.kind === "session") {
        pieces.push({ kind: "number" });
        break;
      }
    }
    return pieces.reduce<Piece[]>((merged, piece) => {
      const last = merged.at(-1);
      if (last?.kind === "text" && piece.kind === "text") last.text += piece.text;
      else merged.push(piece);
      return merged;
    }, []);
  }
}

async function load({ operation, concurrency, seconds }: Extract<CommitsOrder, { kind: "load" }>): Promise<CommitsResult> {
  let commits = recordings.get(operation);
  if (commits === undefined) recordings.set(operation, (commits = await recorder.record(operation)));
  const recorded = commits;
  const spread = Math.max(1, Math.floor(sessions.length / concurrency));
  const run = await measure(concurrency, seconds, async (index) => {
    const session = ((index % concurrency) * spread + Math.floor(index / concurrency)) % sessions.length;
    const newIds: string[] = [];
    for (const writes of recorded) await env.transaction(() => write(writes, session, newIds));
  });
  const all = recorded.flat();
  const bytes = all.reduce((sum, { value }) => sum + (value === undefined ? 0 : Buffer.byteLength(value)), 0);
  return { ...run, puts: all.length, bytes };
}

function write(writes: readonly Write[], session: number, newIds: string[]): void {
  for (const { table, key, value } of writes) {
    let text = "";
    for (const piece of key) {
      switch (piece.kind) {
        case "text":
          text += piece.text;
          break;
        case "session":
          text += sessions[session];
          break;
        case "user":
          text += users[Math.floor(session / SESSIONS_PER_USER)];
          break;
        case "number":
          text += numberKey(number++);
          break;
        case "id":
          text += newIds[piece.index] ??= ids.bare(NO_PARTITION);
          break;
      }
    }
    const database = databases.get(table) as Database<string | Uint8Array, string>;
    if (value === undefined) void database.remove(text);
    else void database.put(text, value);
  }
}

obey(async (order: CommitsOrder) => {
  if (order.kind === "load") return load(order);
  await start(order);
  return undefined;
});
