/**
 * Stores that earlier executables have made (`keep.ts`), and what those answered.
 *
 * ```
 * NAME/embedded.tar.gz   the files of an embedded store      NAME/embedded.json   what was answered of it
 * NAME/postgres.sql.gz   a dump of a database                NAME/postgres.json
 * ```
 *
 * @module
 */
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export const FILES = {
  embedded: "embedded.tar.gz",
  ofEmbedded: "embedded.json",
  database: "postgres.sql.gz",
  ofDatabase: "postgres.json",
} as const;

export interface KeptRead {
  method: "GET" | "POST";
  path: string;
  body?: object;
  /** Which of the keys asked. */
  key: string;
  status: number;
  answer: unknown;
}

/** What an executable answered, and what later ones must answer. */
export interface Kept {
  /** Unix milliseconds when it was killed. */
  now: number;
  /** The names of the tables that have rows. */
  tables: string[];
  keys: Record<string, string>;
  reads: KeptRead[];
  /** The settings that were set through the API. */
  settings: object;
  /** Requests with an Idempotency-Key, and how they were answered. */
  repeated: { method: string; path: string; body: object; headers: Record<string, string>; text: string }[];
  /** What is found first. */
  searches: { query: string; finds: string }[];
  documentSearch: { query: string; namespace: string[]; finds: string };
  /** One that goes on, and a webhook that hears of it. */
  session: string;
  webhook: string;
  /** An application that is connected; older executables connected none. */
  grant?: { client_id: string; resource: string; refresh_token: string };
}

export const KEPT_STORES: readonly string[] = readdirSync(import.meta.dir).filter((name) =>
  statSync(join(import.meta.dir, name)).isDirectory(),
);

const answersIn = (path: string): Promise<Kept> => Bun.file(path).json() as Promise<Kept>;

/** Unpacks an embedded store into a data directory. */
export async function unpackEmbedded(name: string, directory: string): Promise<Kept> {
  mkdirSync(directory, { recursive: true });
  const { exitCode, stderr } = Bun.spawnSync(["tar", "-xzf", join(import.meta.dir, name, FILES.embedded), "-C", directory]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  return answersIn(join(import.meta.dir, name, FILES.ofEmbedded));
}

/** The statements that fill an empty database with a store. */
export async function databaseDump(name: string): Promise<Kept & { dump: string }> {
  const packed = await Bun.file(join(import.meta.dir, name, FILES.database)).bytes();
  return { ...(await answersIn(join(import.meta.dir, name, FILES.ofDatabase))), dump: new TextDecoder().decode(Bun.gunzipSync(packed)) };
}
