/**
 * What the operator decided: flags, else `CAIRN_*` variables, else defaults. The only reader of the environment.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { apiKeyProblem, baseUrlProblem, OPENAI_BASE_URL } from "./embeddings/remote/openai.ts";
import { PROVIDERS } from "./embeddings/embeddings.ts";
import { KEY_SHAPE } from "./keys/keys.ts";
import { isLoopback } from "./lib/addresses.ts";
import { messageOf } from "./lib/errors.ts";
import { LIMITS } from "./lib/limits.ts";
import { LOG_LEVELS, type LogLevel } from "./lib/log.ts";
import { SIMD_LEVELS, type SimdLevel } from "./lib/native.ts";
import { DURABILITIES, type Durability } from "./storage/durability.ts";
import type { EmbeddingSettings, WebhookSettings } from "./storage/tables.ts";
import { parseSchedule, parseTimeout, SCHEDULE_FORM, TIMEOUT_FORM } from "./webhooks/policy.ts";

export interface Config {
  host: string;
  /** 0 takes any free one. */
  port: number;
  dataDirectory: string;
  durability: Durability;
  logLevel: LogLevel;
  /** Names the server answers to beside its address. */
  allowedHosts: string[];
  /** An admin key to register at start. */
  apiKey: string | undefined;
  region: string | null;
  maxStoreBytes: number | undefined;
  /** Files with a certificate and its key: then the server speaks HTTPS. */
  tls: { certificate: string; key: string } | undefined;
  /** Plain HTTP is answered here with where HTTPS is. */
  httpRedirectPort: number | undefined;
  requireHttps: boolean;
  /** Whether `/metrics` needs an admin key. */
  metrics: MetricsAccess;
  corsOrigins: string[];
  /** What the environment says of the embedding provider; settings made through the API win. */
  embedding: EmbeddingSettings;
  /** What it says of webhooks; here too the API's settings win. */
  webhooks: WebhookSettings;
  nativeDirectory: string | undefined;
  simd: SimdLevel | undefined;
  /** The number of vectors from which on there is a graph. */
  graphFrom: number | undefined;
  /** Where systemd wants to be told how far the server is. */
  notifySocket: string | undefined;
}

export const METRICS_ACCESS = ["open", "key"] as const;
export type MetricsAccess = (typeof METRICS_ACCESS)[number];

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

interface Option {
  flag: string;
  variable: string;
  value: string;
  fallback: string;
  says: string;
}

/** In the order of `cairn --help`. */
export const OPTIONS = {
  host: { flag: "host", variable: "CAIRN_HOST", value: "ADDRESS", fallback: "127.0.0.1", says: "address to listen on" },
  port: { flag: "port", variable: "CAIRN_PORT", value: "N", fallback: "8700", says: "port to listen on; 0 takes any free one" },
  dataDirectory: { flag: "data-dir", variable: "CAIRN_DATA_DIR", value: "DIR", fallback: "./data", says: "where everything is kept" },
  durability: {
    flag: "durability",
    variable: "CAIRN_DURABILITY",
    value: "MODE",
    fallback: "strict",
    says: "strict: answers what is on the disk; relaxed: sooner, at most the last second at risk",
  },
  tlsCertificate: {
    flag: "tls-cert",
    variable: "CAIRN_TLS_CERT",
    value: "FILE",
    fallback: "",
    says: "certificate (PEM); with --tls-key the server speaks HTTPS",
  },
  tlsKey: { flag: "tls-key", variable: "CAIRN_TLS_KEY", value: "FILE", fallback: "", says: "its private key (PEM)" },
  httpRedirectPort: {
    flag: "http-redirect-port",
    variable: "CAIRN_HTTP_REDIRECT_PORT",
    value: "N",
    fallback: "",
    says: "with TLS: redirect plain HTTP from this port",
  },
  metrics: {
    flag: "metrics",
    variable: "CAIRN_METRICS",
    value: "MODE",
    fallback: "",
    says: "key: /metrics needs an admin key; open: none (default where only this machine can ask)",
  },
  logLevel: { flag: "log-level", variable: "CAIRN_LOG_LEVEL", value: "LEVEL", fallback: "info", says: LOG_LEVELS.join(", ") },
} as const satisfies Record<string, Option>;

/** Only in the environment: secrets do not belong on a command line, the others are rarely needed. */
export const VARIABLES = {
  CAIRN_API_KEY: "an admin key to register at start (crn_ and 24 letters or digits)",
  CAIRN_ALLOWED_HOSTS: "names the server answers to besides loopback ones, separated by commas",
  CAIRN_REQUIRE_HTTPS: "1: behind a proxy, redirect what arrives with X-Forwarded-Proto: http",
  CAIRN_CORS_ORIGINS: "origins whose pages may call from a browser, separated by commas",
  CAIRN_REGION: "a label for this deployment, shown in /health",
  CAIRN_MAX_STORE_BYTES: "what the store may take on disk; beyond it new records are refused with 503: no limit (default)",
  CAIRN_EMBEDDING_PROVIDER: "local (default), or openai: any server that speaks /v1/embeddings",
  CAIRN_EMBEDDING_BASE_URL: "where that server is",
  CAIRN_EMBEDDING_MODEL: "its model",
  CAIRN_EMBEDDING_API_KEY: "its key; for OpenAI's own server OPENAI_API_KEY serves too",
  CAIRN_WEBHOOK_ALLOW_PRIVATE: "1: webhooks may lead into private networks",
  CAIRN_WEBHOOK_TIMEOUT: "how long a receiver has to answer: 15s (default)",
  CAIRN_WEBHOOK_RETRY_SCHEDULE: "waits before each further attempt: 5s,5m,30m,2h,5h,10h,10h (default)",
  CAIRN_NATIVE_DIR: "where the executable unpacks its native parts first",
  CAIRN_SIMD: `instruction set of the vector index: ${SIMD_LEVELS.join(", ")}`,
  CAIRN_GRAPH_FROM: "from how many vectors on a graph of them (HNSW) is built; it answers from twice as many on: 200000 (default)",
} as const;

type Environment = Record<string, string | undefined>;

/**
 * @param args - what follows the command
 * @throws {UsageError} naming the flag or variable that is wrong
 */
export function readConfig(args: readonly string[], environment: Environment = process.env): Config {
  const flags = parseFlags(args, Object.values(OPTIONS));
  const text = (option: Option) => flags[option.flag] ?? nonEmpty(environment[option.variable]) ?? option.fallback;
  const wrong = (option: Option, expected: string) => {
    const name = flags[option.flag] === undefined ? option.variable : `--${option.flag}`;
    return new UsageError(`${name} must be ${expected}; got ${text(option)}`);
  };
  const portOf = (option: Option) => {
    const port = Number(text(option));
    if (!/^\d{1,5}$/.test(text(option)) || port > 65_535) throw wrong(option, "a number from 0 to 65535");
    return port;
  };
  const certificate = nonEmpty(text(OPTIONS.tlsCertificate));
  const key = nonEmpty(text(OPTIONS.tlsKey));
  if ((certificate === undefined) !== (key === undefined)) throw new UsageError("--tls-cert and --tls-key go together");
  const redirects = nonEmpty(text(OPTIONS.httpRedirectPort)) !== undefined;
  if (redirects && key === undefined) throw new UsageError("--http-redirect-port needs --tls-cert and --tls-key");
  const choiceOf = <Choice extends string>(option: Option, choices: readonly Choice[]) => {
    const choice = choices.find((known) => known === text(option));
    if (choice === undefined) throw wrong(option, `one of ${choices.join(", ")}`);
    return choice;
  };
  const metrics = nonEmpty(text(OPTIONS.metrics)) === undefined ? undefined : choiceOf(OPTIONS.metrics, METRICS_ACCESS);
  const apiKey = nonEmpty(environment["CAIRN_API_KEY"]);
  if (apiKey !== undefined && !KEY_SHAPE.test(apiKey)) throw new UsageError("CAIRN_API_KEY must be crn_ and 24 letters or digits");
  const graphFrom = nonEmpty(environment["CAIRN_GRAPH_FROM"]);
  if (graphFrom !== undefined && !/^\d{1,9}$/.test(graphFrom))
    throw new UsageError(`CAIRN_GRAPH_FROM must be a number from 0 to 999999999; got ${graphFrom}`);
  const listener = {
    host: text(OPTIONS.host),
    allowedHosts: listIn(environment["CAIRN_ALLOWED_HOSTS"]),
    requireHttps: switchIn(environment, "CAIRN_REQUIRE_HTTPS") ?? false,
    tls: certificate === undefined || key === undefined ? undefined : { certificate, key },
  };
  return {
    ...listener,
    port: portOf(OPTIONS.port),
    dataDirectory: text(OPTIONS.dataDirectory),
    durability: choiceOf(OPTIONS.durability, DURABILITIES),
    logLevel: choiceOf(OPTIONS.logLevel, LOG_LEVELS),
    metrics: metrics ?? (isPrivateListener(listener) ? "open" : "key"),
    httpRedirectPort: redirects ? portOf(OPTIONS.httpRedirectPort) : undefined,
    corsOrigins: listIn(environment["CAIRN_CORS_ORIGINS"]),
    apiKey,
    region: nonEmpty(environment["CAIRN_REGION"]) ?? null,
    maxStoreBytes: maxStoreBytesIn(environment),
    embedding: embeddingIn(environment),
    webhooks: webhooksIn(environment),
    nativeDirectory: nonEmpty(environment["CAIRN_NATIVE_DIR"]),
    simd: choiceIn(environment, "CAIRN_SIMD", SIMD_LEVELS),
    graphFrom: graphFrom === undefined ? undefined : Number(graphFrom),
    notifySocket: nonEmpty(environment["NOTIFY_SOCKET"]),
  };
}

/** @throws {UsageError} for a flag that is not known or lacks its value */
export function parseFlags(args: readonly string[], options: readonly { flag: string }[]): Record<string, string | undefined> {
  let flags: Record<string, string | undefined>;
  try {
    flags = parseArgs({
      args: [...args],
      options: Object.fromEntries(options.map(({ flag }) => [flag, { type: "string" as const }])),
      strict: true,
      allowPositionals: false,
    }).values;
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
  // `--data-dir "$UNSET"` must not mean the directory one happens to be in.
  const empty = Object.keys(flags).find((flag) => flags[flag] === "");
  if (empty !== undefined) throw new UsageError(`--${empty} must not be empty`);
  return flags;
}

/** The flags of every command among those that were given, as they would be written. */
export function commonFlags(given: Record<string, unknown>): string[] {
  return Object.values(OPTIONS).flatMap(({ flag }) => {
    const value = given[flag];
    return typeof value === "string" ? [`--${flag}`, value] : [];
  });
}

function maxStoreBytesIn(environment: Environment): number | undefined {
  const text = nonEmpty(environment["CAIRN_MAX_STORE_BYTES"]);
  if (text === undefined) return undefined;
  const bytes = Number(text);
  const { maxStoreBytesMin: least, maxStoreBytesMax: most } = LIMITS;
  if (!/^\d{1,16}$/.test(text) || bytes < least || bytes > most)
    throw new UsageError(`CAIRN_MAX_STORE_BYTES must be a number of bytes from ${least} to ${most}; got ${text}`);
  return bytes;
}

function embeddingIn(environment: Environment): EmbeddingSettings {
  const provider = choiceIn(environment, "CAIRN_EMBEDDING_PROVIDER", PROVIDERS);
  const base_url = nonEmpty(environment["CAIRN_EMBEDDING_BASE_URL"]);
  const urlProblem = base_url === undefined ? undefined : baseUrlProblem(base_url);
  if (urlProblem !== undefined) throw new UsageError(`CAIRN_EMBEDDING_BASE_URL cannot be used. ${urlProblem}`);
  const model = nonEmpty(environment["CAIRN_EMBEDDING_MODEL"]);
  // A key that many tools share is for OpenAI alone, whatever server is set here.
  const isOpenAi = new URL(base_url ?? OPENAI_BASE_URL).origin === new URL(OPENAI_BASE_URL).origin;
  const shared = isOpenAi ? nonEmpty(environment["OPENAI_API_KEY"]) : undefined;
  const api_key = nonEmpty(environment["CAIRN_EMBEDDING_API_KEY"]) ?? shared;
  const keyProblem = api_key === undefined ? undefined : apiKeyProblem(api_key);
  if (keyProblem !== undefined) throw new UsageError(`CAIRN_EMBEDDING_API_KEY cannot be used. ${keyProblem}`);
  return {
    ...(provider === undefined ? {} : { provider }),
    ...(base_url === undefined ? {} : { base_url }),
    ...(model === undefined ? {} : { model }),
    ...(api_key === undefined ? {} : { api_key }),
  };
}

function webhooksIn(environment: Environment): WebhookSettings {
  const allow_private = switchIn(environment, "CAIRN_WEBHOOK_ALLOW_PRIVATE");
  const timeout = nonEmpty(environment["CAIRN_WEBHOOK_TIMEOUT"]);
  if (timeout !== undefined && parseTimeout(timeout) === undefined)
    throw new UsageError(`CAIRN_WEBHOOK_TIMEOUT must be ${TIMEOUT_FORM}; got ${timeout}`);
  const retry_schedule = nonEmpty(environment["CAIRN_WEBHOOK_RETRY_SCHEDULE"]);
  if (retry_schedule !== undefined && parseSchedule(retry_schedule) === undefined)
    throw new UsageError(`CAIRN_WEBHOOK_RETRY_SCHEDULE must be ${SCHEDULE_FORM}; got ${retry_schedule}`);
  return {
    ...(allow_private === undefined ? {} : { allow_private }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(retry_schedule === undefined ? {} : { retry_schedule }),
  };
}

function choiceIn<Choice extends string>(environment: Environment, name: string, choices: readonly Choice[]): Choice | undefined {
  const text = nonEmpty(environment[name]);
  const choice = choices.find((known) => known === text);
  if (text !== undefined && choice === undefined) throw new UsageError(`${name} must be one of ${choices.join(", ")}; got ${text}`);
  return choice;
}

function switchIn(environment: Environment, name: string): boolean | undefined {
  const text = nonEmpty(environment[name]);
  if (text !== undefined && text !== "0" && text !== "1") throw new UsageError(`${name} must be 0 or 1; got ${text}`);
  return text === undefined ? undefined : text === "1";
}

function listIn(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
