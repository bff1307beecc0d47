/**
 * Configuration of the operator: flags, else `CAIRN_*` variables, else defaults. The only reader of the environment but for hooks.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { parseArgs } from "node:util";
import { isLoopback } from "./lib/addresses.ts";
import { parseDomains } from "./lib/domains.ts";
import { messageOf } from "./lib/errors.ts";
import { LOOPBACK_NAMES } from "./lib/urls.ts";
import type { BucketAccess } from "./lib/s3.ts";
import { DEFAULTS, readText, SETTINGS, START_SETTINGS, type GivenSettings, type Setting, type StartValues } from "./settings/schema.ts";

export interface Config extends Omit<StartValues, "metrics" | "domain"> {
  /** True if `/metrics` needs an admin key. */
  metrics: NonNullable<StartValues["metrics"]>;
  /** Files with a certificate and its key: then the server speaks HTTPS. */
  tls: { certificate: string; key: string } | undefined;
  /** Names for which it gets a certificate by itself, and then speaks HTTPS. */
  domains: readonly string[];
  /** The environment's part of the settings that the API can change; what was set through it wins. */
  environment: GivenSettings;
  /** Access to buckets, from the variables of AWS's own tools. */
  bucketAccess: BucketAccess;
  /** The socket on which systemd expects the state of the server. */
  notifySocket: string | undefined;
  /** True if spans are exported; OpenTelemetry reads where to and how from its own variables. */
  exportsSpans: boolean;
  /** Names of variables that nothing reads, though they begin like those that something does. */
  unknownVariables: readonly string[];
}

/**
 * Checks whether only this machine can reach the listener, as far as the configuration says: it is on loopback, and nothing names a
 * proxy or other machines as those who ask.
 */
export function isPrivateListener({
  host,
  allowedHosts,
  requireHttps,
  publicUrl,
  tls,
}: Pick<Config, "host" | "allowedHosts" | "requireHttps" | "publicUrl" | "tls">): boolean {
  const isForOthers = publicUrl !== undefined && !LOOPBACK_NAMES.has(new URL(publicUrl).hostname);
  return isLoopback(host) && allowedHosts.length === 0 && !requireHttps && !isForOthers && tls === undefined;
}

/** The API that a command of a user asks. */
export interface ApiTarget {
  /** The server to ask, and a key of it; undefined to serve a data directory of this machine. */
  server: { url: URL; key: string } | undefined;
  config: Config;
}

/** Arguments of `cairn mcp`. */
export interface McpConfig extends ApiTarget {
  user: string | undefined;
  agent: string | undefined;
  session: string | undefined;
  tools: string | undefined;
  /** True to open the store before the first call: hooks ask the server that is there. */
  hooks: boolean;
}

/** Its own flags. */
const MCP_FLAGS = ["url", "user", "agent", "session", "tools"] as const;

/**
 * Reads what `cairn mcp` is called with. Clients start it in any directory, so that its data never is where it was started unless
 * that was said; and they keep what it logs, which is warnings unless that was said.
 *
 * @throws {UsageError} as `readConfig` does
 */
export function readMcpConfig(args: readonly string[], environment: Texts = process.env): McpConfig {
  const { flags, has } = parseFlags(args, { flags: MCP_FLAGS, switches: ["hooks"] });
  const { user = has("hooks") ? loginOf(environment) : undefined, agent, session, tools } = flags;
  return { ...targetOf(flags, environment), user, agent, session, tools, hooks: has("hooks") };
}

function targetOf(flags: Texts, environment: Texts): ApiTarget {
  const isLocal = flags["data-dir"] !== undefined || flags["store"] !== undefined;
  const named = isLocal ? undefined : environment["CAIRN_URL"];
  const [source, url] = flags["url"] === undefined ? ["CAIRN_URL", named] : ["--url", flags["url"]];
  for (const flag of ["data-dir", "store"])
    if (flags["url"] !== undefined && flags[flag] !== undefined) throw new UsageError(`--url and --${flag} exclude each other`);
  const key = environment["CAIRN_API_KEY"];
  if (url && !key) throw new UsageError(`${source} needs CAIRN_API_KEY: a key of that server`);
  const own: Texts = {
    "log-level": environment["CAIRN_LOG_LEVEL"] || "warn",
    // That server's key is none to be registered here.
    ...(url ? {} : { "data-dir": environment["CAIRN_DATA_DIR"] || flags["data-dir"] || userDirectory(environment) }),
  };
  return {
    server: url && key ? { url: parseUrl(source, url), key } : undefined,
    config: configOf({ ...own, ...flags }, environment),
  };
}

/**
 * Reads what `cairn doctor --oauth URL` is called with: the address of a server, or of its `/mcp`, and the key of one of its admins.
 *
 * @throws {UsageError} for another address
 */
export function readOAuthWalk(args: readonly string[], environment: Texts = process.env): { address: URL; key: string | undefined } {
  const { flags } = parseFlags(args, { flags: ["oauth"] });
  const address = parseUrl("--oauth", flags["oauth"] ?? "");
  if (!/^\/(mcp\/?)?$/.test(address.pathname) || address.search !== "" || address.hash !== "")
    throw new UsageError("--oauth takes the address of a server or of its /mcp, with nothing behind that");
  return { address, key: environment["CAIRN_API_KEY"] || undefined };
}

/** Directory in which programs keep data of their user (XDG Base Directory Specification). */
function userDirectory({ XDG_DATA_HOME: data, HOME: home }: Texts): string {
  // That one must be absolute; another one is to be ignored.
  if (data && isAbsolute(data)) return join(data, "cairn");
  if (!home) throw new UsageError("there is no home directory (HOME) for the data: say where to keep it with --data-dir");
  return join(home, ".local", "share", "cairn");
}

/** Arguments of `cairn import --from`. */
export interface ImportConfig extends ApiTarget {
  source: string;
  paths: readonly string[];
  flags: Readonly<Partial<Record<(typeof IMPORT_FLAGS)[number], string>>>;
  has: (name: (typeof IMPORT_SWITCHES)[number]) => boolean;
  /** The user of what is imported: who is logged in, unless given. */
  user: string | undefined;
  /** Directories in which agents keep their transcripts. */
  transcripts: Readonly<Record<"claude-code" | "codex", string>>;
  /** Files and folders with what they are to remember: those that are there are read. */
  memoryFiles: readonly string[];
}

const IMPORT_FLAGS = ["from", "url", "user", "since", "project", "report"] as const;
const IMPORT_SWITCHES = ["dry-run", "strict", "remove", "update"] as const;

/** Reads what `cairn import --from` is called with. @throws {UsageError} as `readConfig` does */
export function readImportConfig(args: readonly string[], environment: Texts = process.env): ImportConfig {
  const { flags, has, positionals } = parseFlags(args, { flags: IMPORT_FLAGS, switches: IMPORT_SWITCHES, allowPositionals: true });
  const { CLAUDE_CONFIG_DIR: claude, CODEX_HOME: codex, HOME, USERPROFILE } = environment;
  const home = HOME || USERPROFILE || "";
  return {
    ...targetOf(flags, environment),
    source: flags["from"] ?? "",
    paths: positionals,
    flags,
    has,
    user: flags["user"] ?? loginOf(environment),
    transcripts: {
      "claude-code": join(claude || join(home, ".claude"), "projects"),
      codex: join(codex || join(home, ".codex"), "sessions"),
    },
    memoryFiles: [
      join(claude || join(home, ".claude"), "CLAUDE.md"),
      join(claude || join(home, ".claude"), "projects"),
      join(codex || join(home, ".codex"), "AGENTS.md"),
    ],
  };
}

/** Arguments of `cairn bench`. */
export interface BenchConfig {
  /** The server to ask, and a key of it; undefined to start one. */
  server: ApiTarget["server"];
  flags: Texts;
  has: (name: string) => boolean;
  positionals: readonly string[];
}

/**
 * Reads what `cairn bench` is called with. Only a flag names a server: a variable that is there for other commands would have it filled.
 *
 * @throws {UsageError} as `readConfig` does
 */
export function readBenchConfig(
  args: readonly string[],
  own: { flags: readonly string[]; switches: readonly string[] },
  environment: Texts = process.env,
): BenchConfig {
  const { flags, has, positionals } = parseFlags(args, { ...own, allowPositionals: true });
  const { url } = flags;
  const key = environment["CAIRN_API_KEY"];
  if (url !== undefined && !key) throw new UsageError("--url needs CAIRN_API_KEY: a key of that server");
  return { server: url !== undefined && key ? { url: parseUrl("--url", url), key } : undefined, flags, has, positionals };
}

/** Arguments of `cairn setup`. */
export interface SetupConfig {
  /** Names of agents, `all` among them. */
  agents: readonly string[];
  has: (name: (typeof SETUP_SWITCHES)[number]) => boolean;
  /** Flags of `cairn mcp` as they were given here. */
  mcp: Readonly<Record<"url" | "user" | "data-dir", string | undefined>>;
  /** Name of who is logged in. */
  login: string | undefined;
  /** Directories of the user's programs, as variables name them. */
  home: string;
  config: string;
  applications: string;
  claude: string | undefined;
  codex: string;
}

const SETUP_SWITCHES = ["project", "mcp-only", "no-capture", "dry-run", "remove", "yes"] as const;

function loginOf(environment: Texts): string | undefined {
  return environment["USER"] || environment["LOGNAME"] || environment["USERNAME"] || undefined;
}

/** Reads what `cairn setup` is called with. @throws {UsageError} as `readConfig` does */
export function readSetupConfig(args: readonly string[], environment: Texts = process.env): SetupConfig {
  const { flags, has, positionals } = parseFlags(args, { flags: ["url", "user"], switches: SETUP_SWITCHES, allowPositionals: true });
  const { url, user, "data-dir": directory } = flags;
  if (url !== undefined) parseUrl("--url", url);
  if (url !== undefined && directory !== undefined) throw new UsageError("--url and --data-dir exclude each other");
  const home = environment["HOME"] || environment["USERPROFILE"];
  if (!home) throw new UsageError("there is no home directory (HOME), where agents have their files");
  const { XDG_CONFIG_HOME: named } = environment;
  const config = named && isAbsolute(named) ? named : join(home, ".config");
  const systems: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
    darwin: join(home, "Library/Application Support"),
    win32: environment["APPDATA"] || join(home, "AppData/Roaming"),
  };
  return {
    agents: positionals,
    has,
    mcp: { url, user, "data-dir": directory },
    login: loginOf(environment),
    home,
    config,
    applications: systems[process.platform] ?? config,
    claude: environment["CLAUDE_CONFIG_DIR"] || undefined,
    codex: environment["CODEX_HOME"] || join(home, ".codex"),
  };
}

/** @throws {UsageError} unless it is the address of a server */
export function parseUrl(source: string, text: string): URL {
  const url = URL.parse(text);
  if (url !== null && ["http:", "https:"].includes(url.protocol)) return url;
  throw new UsageError(`${source} must be an address such as http://127.0.0.1:8700; got ${text}`);
}

/** The environment of a command that a server runs, without the settings of the server, of which flags may have given a part. */
export function commandEnvironment(environment: Texts = process.env): Texts {
  const isKept = (name: string) => !name.startsWith("CAIRN_") || name === NATIVE_VARIABLE || name === SIMD_VARIABLE;
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isKept(name)));
}
const [NATIVE_VARIABLE, SIMD_VARIABLE] = [START_SETTINGS.nativeDirectory.variable, START_SETTINGS.simd.variable];

/** A command line or environment that makes no sense; the message is for the operator. */
export class UsageError extends Error {
  override name = "UsageError";
}

type Texts = Readonly<Record<string, string | undefined>>;

/** `--port N` is `port`. */
const flagOf = ({ flag = "" }: Setting) => flag.replace(/^--| .*/g, "");
const START: readonly (readonly [name: string, setting: Setting])[] = Object.entries(START_SETTINGS);

/** Variables of settings; and those of `cairn mcp`, the installer and the compose file. */
const VARIABLES: ReadonlySet<string | undefined> = new Set(
  [...Object.values<Setting>(START_SETTINGS), ...Object.values<Setting>(SETTINGS)]
    .map(({ variable }) => variable)
    .concat("CAIRN_URL", "CAIRN_HOOKS", "CAIRN_INSTALL_DIR", "CAIRN_DATABASE_PASSWORD"),
);

/** The flags of every command. */
export const FLAGS: readonly string[] = START.map(([, setting]) => flagOf(setting)).filter((flag) => flag !== "");

/**
 * @param args - what follows the command
 * @throws {UsageError} naming the flag or variable that is wrong
 */
export function readConfig(args: readonly string[], environment: Texts = process.env): Config {
  return configOf(parseFlags(args).flags, environment);
}

/** @throws {UsageError} as `readConfig` does */
export function configOf(flags: Texts, environment: Texts = process.env): Config {
  const defaults = Object.fromEntries(START.map(([name, setting]) => [name, setting.default]));
  const given = givenOf(START, flags, environment) as Partial<StartValues>;
  const domains = given.domain === undefined ? [] : (parseDomains(given.domain) ?? []);
  const start = ofDomains(domains, { ...defaults, ...(domains.length === 0 ? {} : DOMAIN_DEFAULTS), ...given } as StartValues);
  const { tlsCertificate: certificate, tlsKey: key } = start;
  if ((certificate === undefined) !== (key === undefined)) throw new UsageError("--tls-cert and --tls-key go together");
  const tls = certificate === undefined || key === undefined ? undefined : { certificate, key };
  if (tls !== undefined && domains.length > 0) throw new UsageError("--domain and --tls-cert exclude each other");
  if (start.httpRedirectPort !== undefined && tls === undefined && domains.length === 0)
    throw new UsageError("--http-redirect-port needs --tls-cert and --tls-key, or --domain");
  return {
    ...start,
    tls,
    domains,
    metrics: start.metrics ?? (isPrivateListener({ ...start, tls }) ? "open" : "key"),
    environment: givenOf(Object.entries(SETTINGS), {}, withSharedKey(environment)),
    bucketAccess: bucketAccessOf(environment),
    notifySocket: environment["NOTIFY_SOCKET"] || undefined,
    exportsSpans: namesCollector(environment),
    unknownVariables: Object.keys(environment).filter((name) => name.startsWith("CAIRN_") && !VARIABLES.has(name)),
  };
}

/**
 * Address of a listener on every address of this machine, by IPv4 and, where the kernel has it, by IPv6. Interfaces are not listed for
 * it: that takes a netlink socket, which the systemd unit does not allow.
 */
const EVERY_ADDRESS = process.platform !== "linux" || existsSync("/proc/net/if_inet6") ? "::" : "0.0.0.0";
/** Defaults of a server with domains: it listens on every address, where a certificate authority and clients look for it. */
const DOMAIN_DEFAULTS: Partial<StartValues> = { host: EVERY_ADDRESS, port: 443, httpRedirectPort: 80 };

/** Adds what follows from the domains. @throws {UsageError} for ports that nobody would find */
function ofDomains(domains: readonly string[], start: StartValues): StartValues {
  const [first] = domains;
  if (first === undefined) return start;
  if (start.port === 0 || start.httpRedirectPort === 0)
    throw new UsageError("--domain needs ports that others know: --port and --http-redirect-port must not be 0");
  const publicUrl = start.publicUrl ?? `https://${first}${start.port === 443 ? "" : `:${start.port}`}`;
  return { ...start, publicUrl, allowedHosts: [...start.allowedHosts, ...domains] };
}

/** @throws {UsageError} for an endpoint that is no address */
function bucketAccessOf(environment: Texts): BucketAccess {
  const firstOf = (...names: string[]) => names.find((name) => environment[name]);
  const textOf = (...names: string[]) => environment[firstOf(...names) ?? ""];
  const endpoint = firstOf("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  if (endpoint !== undefined) parseUrl(endpoint, environment[endpoint] ?? "");
  return {
    accessKeyId: textOf("AWS_ACCESS_KEY_ID"),
    secretAccessKey: textOf("AWS_SECRET_ACCESS_KEY"),
    sessionToken: textOf("AWS_SESSION_TOKEN"),
    region: textOf("AWS_REGION", "AWS_DEFAULT_REGION"),
    endpoint: textOf("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
  };
}

/** Checks whether the variables of OpenTelemetry name a collector for spans. @throws {UsageError} where that is no address */
function namesCollector(environment: Texts): boolean {
  const isOff = environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true" || environment["OTEL_TRACES_EXPORTER"] === "none";
  const named = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"].filter((name) => environment[name]);
  if (!isOff) for (const name of named) parseUrl(name, environment[name] ?? "");
  return !isOff && named.length > 0;
}

/** The values that flags or variables give; an empty variable gives none. */
function givenOf(settings: typeof START, flags: Texts, environment: Texts): Record<string, unknown> {
  const given = settings.flatMap(([name, setting]): [string, unknown][] => {
    const [flag, variable] = [flagOf(setting), setting.variable ?? ""];
    const [source, text] = flags[flag] === undefined ? [variable, environment[variable]] : [`--${flag}`, flags[flag]];
    return text === undefined || text === "" ? [] : [[name, read(source, setting, text)]];
  });
  return Object.fromEntries(given);
}

function read(source: string, setting: Setting, text: string): unknown {
  try {
    return readText(source, setting, text);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** A key that many tools share is for OpenAI alone, whatever server is set here. */
function withSharedKey(environment: Texts): Texts {
  const openAi = DEFAULTS["embedding.base_url"];
  const isOpenAi = URL.parse(environment["CAIRN_EMBEDDING_BASE_URL"] || openAi)?.origin === new URL(openAi).origin;
  const shared = isOpenAi ? environment["OPENAI_API_KEY"] : undefined;
  return { ...environment, CAIRN_EMBEDDING_API_KEY: environment["CAIRN_EMBEDDING_API_KEY"] || shared };
}

/**
 * Parses what a command was called with: the flags of every command, and its own.
 *
 * @throws {UsageError} for a flag that is not known or lacks its value
 */
export function parseFlags(
  args: readonly string[],
  own: { flags?: readonly string[]; switches?: readonly string[]; allowPositionals?: boolean } = {},
): { flags: Texts; has: (name: string) => boolean; positionals: readonly string[] } {
  const { flags = [], switches = [], allowPositionals = false } = own;
  const withValue = [...FLAGS, ...flags];
  const options: Record<string, { type: "string" | "boolean" }> = {};
  for (const name of withValue) options[name] = { type: "string" };
  for (const name of switches) options[name] = { type: "boolean" };
  let parsed: { values: Readonly<Record<string, unknown>>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, allowPositionals });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  const { values, positionals } = parsed;
  // `--data-dir "$UNSET"` must not mean the directory one happens to be in.
  const empty = withValue.find((name) => values[name] === "");
  if (empty !== undefined) throw new UsageError(`--${empty} must not be empty`);
  return { flags: values as Texts, has: (name) => values[name] === true, positionals };
}
