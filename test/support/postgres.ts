/**
 * A PostgreSQL for the tests: a server of the package that is installed, in a directory of its own, which ends with the process that
 * started it. Each caller gets a database that nobody else has.
 *
 * It does not wait for the disk, so what it says after a crash is no evidence of anything.
 *
 * @module
 */
import { SQL } from "bun";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PACKAGES = "/usr/lib/postgresql";
const VERSION_MIN = 15;
/** What has to be escaped in a URL is in it. */
const PASSWORD = "p@ss/word";
const USER = "cairn";

/** The directory of the newest server's programs; undefined where there is none that will do. */
function programs(): string | undefined {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).map(Number) : [];
  const found = versions
    .filter((version) => version >= VERSION_MIN)
    .toSorted((a, b) => b - a)
    .map((version) => join(PACKAGES, String(version), "bin"));
  return found.find((directory) => existsSync(join(directory, "postgres")));
}

/** Whether there is one on this machine. */
export const hasPostgres = (): boolean => programs() !== undefined;

/** Installs the package where that is allowed. @returns why there is none in the end; undefined when there is */
export async function installPostgres(): Promise<string | undefined> {
  if (hasPostgres()) return undefined;
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
  return hasPostgres() ? undefined : `the package postgresql is older than ${VERSION_MIN}`;
}

/** The server refuses to run as root. */
function asItsUser(): string[] {
  const died = ["setpriv", "--pdeathsig", "INT"];
  return process.getuid?.() === 0 ? [...died, "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] : died;
}

function freePort(): number {
  using listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  return listener.port;
}

export class Postgres {
  readonly #port: number;
  readonly #directory: string;
  readonly #server: Bun.Subprocess;
  #databases = 0;

  private constructor(port: number, directory: string, server: Bun.Subprocess) {
    this.#port = port;
    this.#directory = directory;
    this.#server = server;
  }

  static async start(): Promise<Postgres> {
    const bin = programs();
    if (bin === undefined) throw new Error("there is no PostgreSQL here");
    // Its user may not enter what is private to root.
    const directory = mkdtempSync(join(process.getuid?.() === 0 ? "/tmp" : tmpdir(), "cairn-postgres-"));
    const data = join(directory, "data");
    const passwordFile = join(directory, "password");
    writeFileSync(passwordFile, PASSWORD);
    if (process.getuid?.() === 0) {
      const entry =
        readFileSync("/etc/passwd", "utf8")
          .split("\n")
          .find((line) => line.startsWith("postgres:"))
          ?.split(":") ?? [];
      for (const path of [directory, passwordFile]) chownSync(path, Number(entry[2]), Number(entry[3]));
    }
    const init = [join(bin, "initdb"), "-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", passwordFile, "-E", "UTF8", "--locale=C"];
    const made = Bun.spawnSync([...asItsUser(), ...init, "--no-sync", "--no-instructions"], { cwd: directory, stderr: "pipe" });
    if (made.exitCode !== 0) throw new Error(`initdb: ${made.stderr.toString()}`);
    const port = freePort();
    const settings = {
      port,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      fsync: "off",
      max_connections: 200,
      shared_buffers: "32MB",
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const server = Bun.spawn([...asItsUser(), join(bin, "postgres"), "-D", data, ...options], {
      cwd: directory,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const postgres = new Postgres(port, directory, server);
    await postgres.#untilReady(server.stderr);
    return postgres;
  }

  /** The URL of a new database. */
  async database(): Promise<string> {
    const name = `test_${++this.#databases}`;
    await using sql = new SQL(this.#url("postgres"));
    await sql.unsafe(`create database ${name}`);
    return this.#url(name);
  }

  /** Ends every connection to a database, whatever is under way on it. */
  async disconnect(url: string): Promise<void> {
    await using sql = new SQL(this.#url("postgres"));
    await sql.unsafe("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [new URL(url).pathname.slice(1)]);
  }

  stop(): void {
    this.#server.kill("SIGQUIT");
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #url(database: string): string {
    return `postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${this.#port}/${database}?sslmode=disable`;
  }

  /** Its log says so. What it says later is read too: a full pipe would hold it up. */
  async #untilReady(log: ReadableStream<Uint8Array>): Promise<void> {
    const ready = Promise.withResolvers<void>();
    const read = async () => {
      let said = "";
      const decoder = new TextDecoder();
      for await (const piece of log) {
        said = (said + decoder.decode(piece, { stream: true })).slice(-4_000);
        if (said.includes("ready to accept connections")) ready.resolve();
      }
      ready.reject(new Error(`PostgreSQL ended: ${said}`));
    };
    void read();
    await ready.promise;
  }
}
