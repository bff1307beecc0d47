/**
 * What the operator decided: flags, else `CAIRN_*` variables, else defaults. The only reader of the environment.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { isLoopback } from "./lib/addresses.ts";
import { messageOf } from "./lib/errors.ts";
import { DEFAULTS, readText, SETTINGS, START_SETTINGS, type GivenSettings, type Setting, type StartValues } from "./settings/schema.ts";

export interface Config extends Omit<StartValues, "metrics"> {
  /** Whether `/metrics` needs an admin key. */
  metrics: NonNullable<StartValues["metrics"]>;
  /** Files with a certificate and its key: then the server speaks HTTPS. */
  tls: { certificate: string; key: string } | undefined;
  /** The environment's part of the settings that the API can change; what was set through it wins. */
  environment: GivenSettings;
  /** The socket on which systemd expects the state of the server. */
  notifySocket: string | undefined;
}

/**
 * Whether only this machine can reach the listener, as far as the configuration says: it is on loopback, and nothing names a
 * proxy or other machines as those who ask.
 */
export function isPrivateListener({
  host,
  allowedHosts,
  requireHttps,
  tls,
}: Pick<Config, "host" | "allowedHosts" | "requireHttps" | "tls">): boolean {
  return isLoopback(host) && allowedHosts.length === 0 && !requireHttps && tls === undefined;
}

/** A command line or environment that makes no sense; the message is for the operator. */
export class UsageError extends Error {
  override name = "UsageError";
}

type Texts = Readonly<Record<string, string | undefined>>;

/** `--port N` is `port`. */
const flagOf = ({ flag = "" }: Setting) => flag.replace(/^--| .*/g, "");
const START: readonly (readonly [name: string, setting: Setting])[] = Object.entries(START_SETTINGS);

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
  const start = { ...defaults, ...givenOf(START, flags, environment) } as StartValues;
  const { tlsCertificate: certificate, tlsKey: key } = start;
  if ((certificate === undefined) !== (key === undefined)) throw new UsageError("--tls-cert and --tls-key go together");
  const tls = certificate === undefined || key === undefined ? undefined : { certificate, key };
  if (start.httpRedirectPort !== undefined && tls === undefined)
    throw new UsageError("--http-redirect-port needs --tls-cert and --tls-key");
  return {
    ...start,
    tls,
    metrics: start.metrics ?? (isPrivateListener({ ...start, tls }) ? "open" : "key"),
    environment: givenOf(Object.entries(SETTINGS), {}, withSharedKey(environment)),
    notifySocket: environment["NOTIFY_SOCKET"] || undefined,
  };
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
