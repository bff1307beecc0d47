/**
 * The URL that names a database: `postgres://user:password@host:port/database?sslmode=require`.
 *
 * @module
 */

const SSL_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;
/** The default of the clients of PostgreSQL. */
const SSL_MODE = "prefer";
/** Largest number of connections of a server, in the word of pgx for it: PostgreSQL's own clients have one. */
const POOL = "pool_max_conns";
/** For four transactions at the same time, reads, and commands for the whole store. */
const POOL_CONNECTIONS = 12;
/** With fewer, what takes its time on a connection can leave none for requests. */
const POOL_CONNECTIONS_MIN = 4;
const POOL_CONNECTIONS_MAX = 100;
/** Other parameters of a URL, in the words of PostgreSQL's own clients. */
const PARAMETERS = ["sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "application_name", "options", POOL];
const APPLICATION = "cairn";

/** Problem of a URL; undefined when it names a database. Never repeats any of it: it has a password. */
export function databaseUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !["postgres:", "postgresql:"].includes(url.protocol))
    return "It has to be a URL such as postgres://cairn:PASSWORD@db.example.com:5432/cairn?sslmode=verify-full.";
  if (url.hostname === "") return "It names no host: postgres://USER:PASSWORD@HOST:PORT/DATABASE.";
  if (url.username === "") return "It names no user: postgres://USER:PASSWORD@HOST:PORT/DATABASE.";
  if (url.pathname.length < 2) return "It names no database: postgres://USER:PASSWORD@HOST:PORT/DATABASE.";
  if (url.hash !== "") return "What follows # is no part of such a URL: write # as %23.";
  if ([url.username, url.password, url.pathname].some((part) => !isEscaped(part)))
    return "It has a % that no two hex digits follow: write % as %25.";
  const modes = url.searchParams.getAll("sslmode");
  if (modes.length > 1 || modes.some((mode) => !(SSL_MODES as readonly string[]).includes(mode)))
    return `Its sslmode has to be one of ${SSL_MODES.join(", ")}.`;
  const pools = url.searchParams.getAll(POOL);
  if (pools.length > 1 || pools.some((pool) => !isPoolSize(pool)))
    return `Its ${POOL} has to be a whole number from ${POOL_CONNECTIONS_MIN} to ${POOL_CONNECTIONS_MAX}.`;
  if (Array.from(url.searchParams.keys()).some((name) => !PARAMETERS.includes(name)))
    return `It has a parameter that is not known; known are ${PARAMETERS.join(", ")}.`;
  return undefined;
}

function isPoolSize(text: string): boolean {
  return /^\d{1,3}$/.test(text) && Number(text) >= POOL_CONNECTIONS_MIN && Number(text) <= POOL_CONNECTIONS_MAX;
}

function isEscaped(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** The same URL without what is Cairn's own, and with what it leaves to the server. */
export function connectionUrl(text: string): string {
  const url = new URL(text);
  const { searchParams: parameters } = url;
  parameters.delete(POOL);
  if (!parameters.has("sslmode")) parameters.set("sslmode", SSL_MODE);
  if (!parameters.has("application_name")) parameters.set("application_name", APPLICATION);
  return url.href;
}

/** Largest number of connections. */
export function poolSize(text: string): number {
  return Number(new URL(text).searchParams.get(POOL) ?? POOL_CONNECTIONS);
}

/** Form of a URL that may be shown: `postgres://user@host:port/database`. */
export function shownDatabase(text: string): string {
  const { username, hostname, port, pathname } = new URL(text);
  return `postgres://${username}@${hostname}:${port || "5432"}${pathname}`;
}

/** Server and database of a URL. */
export function placeOfDatabase(text: string): { host: string; sslMode: string } {
  const { hostname, port, searchParams } = new URL(connectionUrl(text));
  return { host: `${hostname}:${port || "5432"}`, sslMode: searchParams.get("sslmode") ?? SSL_MODE };
}
