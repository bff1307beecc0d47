/**
 * A PostgreSQL for the tests: a server of the package that is installed, in a directory of its own, which ends with the process that
 * started it. Each caller gets a database that nobody else has.
 *
 * It does not wait for the disk, so what it says after a crash is no evidence of anything.
 *
 * @module
 */
import { SQL } from "bun";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { PostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import { definitions } from "../../src/storage/postgres/schema.ts";
import type { Part } from "./platform.ts";

const PACKAGES = "/usr/lib/postgresql";
const VERSION_MIN = 15;
/** What has to be escaped in a URL is in it. */
const PASSWORD = "p@ss/word";
const USER = "cairn";
const TLS = join(import.meta.dir, "tls");

/** The directory of the newest server's programs; undefined where there is none that will do. */
function programs(): string | undefined {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).map(Number) : [];
  const found = versions
    .filter((version) => version >= VERSION_MIN)
    .toSorted((a, b) => b - a)
    .map((version) => join(PACKAGES, String(version), "bin"));
  return found.find((directory) => existsSync(join(directory, "postgres")));
}

export const POSTGRES: Part = {
  name: "PostgreSQL",
  problem: () => (programs() === undefined ? `no package postgresql of version ${VERSION_MIN} or later is installed` : undefined),
};

/** Installs the package where that is allowed. @returns why there is none in the end; undefined when there is */
export async function installPostgres(): Promise<string | undefined> {
  if (programs() !== undefined) return undefined;
  if (Bun.which("apt-get") === null) return "no package postgresql is installed, and there is no apt-get";
  if (process.getuid?.() !== 0) return "no package postgresql is installed, and only root may install it";
  // On run level 1 the package starts no server of its own.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const apt = async (...args: string[]) => {
    const child = Bun.spawn(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", ...args], {
      env,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const [errors, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    return code === 0 ? undefined : (errors.trim().split("\n").at(-1) ?? `apt-get ends with ${code}`);
  };
  const install = ["install", "-y", "--no-install-recommends", "postgresql"];
  const problem = await apt(...install).then(async (failed) =>
    failed === undefined ? failed : ((await apt("update")) ?? apt(...install)),
  );
  if (problem !== undefined) return `apt-get cannot install postgresql: ${problem}`;
  return programs() !== undefined ? undefined : `the package postgresql is older than ${VERSION_MIN}`;
}

/** The server refuses to run as root. */
function asItsUser(): string[] {
  const died = ["setpriv", "--pdeathsig", "INT"];
  return process.getuid?.() === 0 ? [...died, "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] : died;
}

const nameIn = (url: string): string => new URL(url).pathname.slice(1);

function freePort(): number {
  using listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  return listener.port;
}

/** Up to this size the rows of a table are deleted: to cut it off makes new files of it, of its indexes and of what is too long for its rows. */
const DELETED_BYTES_MAX = 256 * 1024;

/** Ends what is under way in a database. */
const END_OTHERS =
  "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";

/** Names the tables that may hold anything. */
const USED_TABLES = `select oid::regclass::text as name, pg_total_relation_size(oid) > ${DELETED_BYTES_MAX} as is_large from pg_class
  where relnamespace = 'cairn'::regnamespace and relkind = 'r' and relname <> 'migrations' and pg_relation_size(oid) > 0`;

/** The rows that the migrations put. */
const FIRST_ROWS = definitions("pglz").filter((statement) => statement.startsWith("insert"));

export interface PostgresOptions {
  /** Whether what it acknowledges is on the disk: a server that is killed then is like one whose machine fails. */
  fsync?: boolean;
  /** Whether it speaks TLS, with the certificate of `support/tls`. */
  tls?: boolean;
}

export class Postgres {
  readonly #bin: string;
  readonly #port: number;
  readonly #directory: string;
  readonly #settings: Readonly<Record<string, string | number>>;
  #server: Bun.Subprocess<"ignore", "ignore", "pipe"> | undefined;
  readonly #remover: Bun.Subprocess<"pipe", "ignore", "ignore">;
  #databases = 0;
  /** The URLs of databases that were given back. */
  readonly #free: string[] = [];
  /** The name of a database that others are copies of. */
  #template: Promise<string> | undefined;

  private constructor(bin: string, directory: string, { fsync = false, tls = false }: PostgresOptions) {
    this.#bin = bin;
    this.#directory = directory;
    this.#port = freePort();
    this.#remover = Bun.spawn(["sh", "-c", REMOVE, "sh", directory], { stdin: "pipe", stdout: "ignore", stderr: "ignore" });
    this.#settings = {
      port: this.#port,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      fsync: fsync ? "on" : "off",
      max_connections: 200,
      shared_buffers: "32MB",
      ...(tls ? { ssl: "on", ssl_cert_file: join(directory, "certificate.pem"), ssl_key_file: join(directory, "key.pem") } : {}),
    };
    if (tls) for (const name of ["certificate.pem", "key.pem"]) copyForItsUser(join(TLS, name), join(directory, name));
  }

  static async start(options: PostgresOptions = {}): Promise<Postgres> {
    const { bin, directory } = newDirectory();
    const passwordFile = join(directory, "password");
    writeFileSync(passwordFile, PASSWORD);
    own(passwordFile);
    const init = [
      "-U",
      USER,
      "-A",
      "scram-sha-256",
      "--pwfile",
      passwordFile,
      "-E",
      "UTF8",
      "--locale=C",
      "--no-sync",
      "--no-instructions",
    ];
    run([join(bin, "initdb"), "-D", join(directory, "data"), ...init], directory);
    const postgres = new Postgres(bin, directory, options);
    await postgres.#launch();
    return postgres;
  }

  /**
   * A standby of this server. From now on this one acknowledges nothing that the standby has not got; the standby itself, once it
   * was promoted, needs nobody.
   */
  async standby(options: PostgresOptions = {}): Promise<Postgres> {
    const { bin, directory } = newDirectory();
    const { href } = new URL(this.#url("postgres"));
    run([join(bin, "pg_basebackup"), "-D", join(directory, "data"), "-d", href, "-R", "-c", "fast", "--no-sync"], directory);
    const standby = new Postgres(bin, directory, options);
    await standby.#launch();
    await this.#do("alter system set synchronous_standby_names = '*'");
    await this.#do("select pg_reload_conf()");
    while ((await this.#do("select from pg_stat_replication where sync_state = 'sync'")).length === 0) await new Promise(setImmediate);
    return standby;
  }

  /** The URL of a new database. */
  async database(template = "template1"): Promise<string> {
    const name = `test_${++this.#databases}`;
    await this.#do(`create database ${name} template ${template}`);
    return this.#url(name);
  }

  /** The URL that a database of another server has on this one. */
  same(url: string): string {
    return this.#url(nameIn(url));
  }

  /** The URL of a new database with the schema of Cairn. */
  async migrated(): Promise<string> {
    this.#template ??= this.#makeTemplate();
    return this.database(await this.#template);
  }

  async #makeTemplate(): Promise<string> {
    const url = await this.database();
    const store = await PostgresStore.open(url, systemClock);
    await store.close();
    return nameIn(url);
  }

  /** The URL of a database like a new one of `migrated()`, to be given back: making and dropping one takes longer than most tests. */
  async borrow(): Promise<string> {
    return this.#free.pop() ?? this.migrated();
  }

  /** Leaves it as the migrations do, but for some room that was taken. Nobody is to use it any more: what is still under way on it is ended. */
  async giveBack(url: string): Promise<void> {
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe(END_OTHERS).simple();
    const tables = await sql.unsafe<{ name: string; is_large: boolean }[]>(USED_TABLES).simple();
    const statements = tables.map(({ name, is_large }) => (is_large ? `truncate ${name}` : `delete from ${name}`));
    await sql.unsafe([...statements, ...FIRST_ROWS].join("; ")).simple();
    this.#free.push(url);
  }

  /** All of a database as SQL that fills an empty one, of this version of PostgreSQL or a later one. */
  dump(url: string): string {
    const options = ["--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=100"];
    const text = run([join(this.#bin, "pg_dump"), ...options, url], this.#directory);
    // What is said of a session's own settings, and to psql, is of that version alone.
    return text.replaceAll(/^(SET|\\|--).*\n/gm, "");
  }

  /** The URL of a new database with what was dumped of another one. */
  async filled(dump: string): Promise<string> {
    const url = await this.database();
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe(dump).simple();
    return url;
  }

  /** Ends every connection to a database, whatever is under way on it. */
  async disconnect(url: string): Promise<void> {
    await this.#do("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", new URL(url).pathname.slice(1));
  }

  /** How many commits wait for the standby. */
  async waitingCommits(): Promise<number> {
    return (await this.#do("select from pg_stat_activity where wait_event = 'SyncRep'")).length;
  }

  /** Its processes, each of which has a session of its own. */
  get pids(): number[] {
    const pid = this.#server?.pid ?? 0;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
    return [pid, ...children.map(Number)];
  }

  /** Kills all of its processes at once. */
  async kill(): Promise<void> {
    for (const one of this.pids) {
      try {
        process.kill(one, "SIGKILL");
      } catch (error) {
        // It has ended meanwhile.
        if ((error as { code?: string }).code !== "ESRCH") throw error;
      }
    }
    await this.#server?.exited;
  }

  /** Starts it again on what it has left on the disk. */
  async restart(): Promise<void> {
    await this.#launch();
  }

  /** Makes the standby a server that takes changes. */
  async promote(): Promise<void> {
    await this.#do("select pg_promote()");
  }

  /** Also what becomes of it when the process of the tests ends. */
  stop(): void {
    this.#server?.kill("SIGQUIT");
    void this.#remover.stdin.end();
  }

  async #launch(): Promise<void> {
    const options = Object.entries(this.#settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    for (;;) {
      this.#server = Bun.spawn([...asItsUser(), join(this.#bin, "postgres"), "-D", join(this.#directory, "data"), ...options], {
        cwd: this.#directory,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      const problem = await problemOf(this.#server.stderr);
      if (problem === undefined) return;
      // Processes of one that was killed end by themselves, a little later.
      if (!problem.includes("shared memory block")) throw new Error(`PostgreSQL ended: ${problem}`);
    }
  }

  async #do(text: string, ...values: string[]): Promise<unknown[]> {
    await using sql = new SQL(this.#url("postgres"));
    return (await sql.unsafe(text, values)) as unknown[];
  }

  #url(database: string): string {
    return `postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${this.#port}/${database}?sslmode=disable`;
  }
}

/** Removes a directory once nobody holds its input any more, and for as long as processes of the server still write there. */
const REMOVE =
  'cat; for i in $(seq 100); do rm -rf "$1" && test ! -e "$1/data/postmaster.pid" && sleep 0.2 && test ! -e "$1" && exit; sleep 0.1; done';

function newDirectory(): { bin: string; directory: string } {
  const bin = programs();
  if (bin === undefined) throw new Error("there is no PostgreSQL here");
  const directory = mkdtempSync(join(mayEnter(tmpdir()) ? tmpdir() : "/tmp", "cairn-postgres-"));
  own(directory);
  return { bin, directory };
}

/** Whether the server's user may: what is private to root it may not. */
function mayEnter(path: string): boolean {
  if (process.getuid?.() !== 0) return true;
  const isOpen = (statSync(path).mode & 0o001) !== 0;
  return isOpen && (path === dirname(path) || mayEnter(dirname(path)));
}

/** Gives a path to the server's user. */
function own(path: string): void {
  if (process.getuid?.() !== 0) return;
  const entry =
    readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((line) => line.startsWith("postgres:"))
      ?.split(":") ?? [];
  chownSync(path, Number(entry[2]), Number(entry[3]));
}

function copyForItsUser(from: string, to: string): void {
  writeFileSync(to, readFileSync(from), { mode: 0o600 });
  own(to);
}

function run(command: readonly string[], directory: string): string {
  const ended = Bun.spawnSync([...asItsUser(), ...command], { cwd: directory, stderr: "pipe" });
  if (ended.exitCode !== 0) throw new Error(`${command[0]}: ${ended.stderr.toString()}`);
  return ended.stdout.toString();
}

/** @returns once its log says that it is ready, or what it said when it ended. What it says later is read too: a full pipe would hold it up. */
function problemOf(log: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const read = async () => {
    let said = "";
    const decoder = new TextDecoder();
    for await (const piece of log) {
      said = (said + decoder.decode(piece, { stream: true })).slice(-4_000);
      if (/ready to accept (read-only )?connections/.test(said)) resolve(undefined);
    }
    resolve(said);
  };
  void read();
  return promise;
}
