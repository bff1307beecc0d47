/**
 * What the operator decided: flags, else `CAIRN_*` variables, else defaults. The only reader of the environment.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { apiKeyProblem, baseUrlProblem } from "./embeddings/openai.ts";
import { PROVIDERS } from "./embeddings/embeddings.ts";
import { KEY_SHAPE } from "./keys/keys.ts";
import { LOG_LEVELS, type LogLevel } from "./lib/log.ts";
import { SIMD_LEVELS, type SimdLevel } from "./lib/native.ts";
import type { EmbeddingSettings } from "./storage/tables.ts";
import { parseDuration, parseSchedule } from "./webhooks/backoff.ts";

export interface Config {
  host: string;
  /** 0 takes any free one. */
  port: number;
  dataDirectory: string;
  logLevel: LogLevel;
  /** Names the server answers to beside its address. */
  allowedHosts: string[];
  /** An admin key to register at start. */
  apiKey: string | undefined;
  region: string | null;
  /** Files with a certificate and its key: then the server speaks HTTPS. */
  tls: { certificate: string; key: string } | undefined;
  /** Plain HTTP is answered here with where HTTPS is. */
  httpRedirectPort: number | undefined;
  requireHttps: boolean;
  corsOrigins: string[];
  /** What the environment says of the embedding provider; settings made through the API win. */
  embedding: EmbeddingSettings;
  webhooks: {
    /** Whether they may lead to this machine and into private networks, wherever the server listens. */
    allowPrivate: boolean;
    /** Milliseconds; undefined for what is usual. */
    timeoutMs: number | undefined;
    schedule: readonly number[] | undefined;
  };
  nativeDirectory: string | undefined;
  simd: SimdLevel | undefined;
}

/** A command line or environment that makes no sense; the message is for whoever typed it. */
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
  logLevel: { flag: "log-level", variable: "CAIRN_LOG_LEVEL", value: "LEVEL", fallback: "info", says: LOG_LEVELS.join(", ") },
} as const satisfies Record<string, Option>;

/** Only in the environment: secrets do not belong on a command line, the others are rarely needed. */
export const VARIABLES = {
  CAIRN_API_KEY: "an admin key to register at start (crn_ and 24 letters or digits)",
  CAIRN_ALLOWED_HOSTS: "names a loopback listener answers to beside its own, separated by commas",
  CAIRN_REQUIRE_HTTPS: "1: behind a proxy, redirect what arrives with X-Forwarded-Proto: http",
  CAIRN_CORS_ORIGINS: "origins whose pages may call from a browser, separated by commas",
  CAIRN_REGION: "a label for this deployment, shown in /health",
  CAIRN_EMBEDDING_PROVIDER: "local (default), or openai: any server that speaks /v1/embeddings",
  CAIRN_EMBEDDING_BASE_URL: "where that server is",
  CAIRN_EMBEDDING_MODEL: "its model",
  CAIRN_EMBEDDING_API_KEY: "its key; OPENAI_API_KEY serves too",
  CAIRN_WEBHOOK_ALLOW_PRIVATE: "1: webhooks may lead into private networks",
  CAIRN_WEBHOOK_TIMEOUT: "how long a receiver has to answer: 15s (default)",
  CAIRN_WEBHOOK_RETRY_SCHEDULE: "waits before each further attempt: 5s,5m,30m,2h,5h,10h,10h (default)",
  CAIRN_NATIVE_DIR: "where the executable unpacks its native parts first",
  CAIRN_SIMD: `instruction set of the vector index: ${SIMD_LEVELS.join(", ")}`,
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
  const requireHttps = environment["CAIRN_REQUIRE_HTTPS"] ?? "0";
  if (!["", "0", "1"].includes(requireHttps)) throw new UsageError(`CAIRN_REQUIRE_HTTPS must be 0 or 1; got ${requireHttps}`);
  const logLevel = LOG_LEVELS.find((level) => level === text(OPTIONS.logLevel));
  if (logLevel === undefined) throw wrong(OPTIONS.logLevel, `one of ${LOG_LEVELS.join(", ")}`);
  const apiKey = nonEmpty(environment["CAIRN_API_KEY"]);
  if (apiKey !== undefined && !KEY_SHAPE.test(apiKey)) throw new UsageError("CAIRN_API_KEY must be crn_ and 24 letters or digits");
  const simdText = nonEmpty(environment["CAIRN_SIMD"]);
  const simd = SIMD_LEVELS.find((level) => level === simdText);
  if (simdText !== undefined && simd === undefined)
    throw new UsageError(`CAIRN_SIMD must be one of ${SIMD_LEVELS.join(", ")}; got ${simdText}`);
  return {
    host: text(OPTIONS.host),
    port: portOf(OPTIONS.port),
    dataDirectory: text(OPTIONS.dataDirectory),
    logLevel,
    allowedHosts: listIn(environment["CAIRN_ALLOWED_HOSTS"]),
    tls: certificate === undefined || key === undefined ? undefined : { certificate, key },
    httpRedirectPort: redirects ? portOf(OPTIONS.httpRedirectPort) : undefined,
    requireHttps: requireHttps === "1",
    corsOrigins: listIn(environment["CAIRN_CORS_ORIGINS"]),
    apiKey,
    region: nonEmpty(environment["CAIRN_REGION"]) ?? null,
    embedding: embeddingIn(environment),
    webhooks: webhooksIn(environment),
    nativeDirectory: nonEmpty(environment["CAIRN_NATIVE_DIR"]),
    simd,
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
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  // `--data-dir "$UNSET"` must not mean the directory one happens to be in.
  const empty = Object.keys(flags).find((flag) => flags[flag] === "");
  if (empty !== undefined) throw new UsageError(`--${empty} must not be empty`);
  return flags;
}

function embeddingIn(environment: Environment): EmbeddingSettings {
  const provider = nonEmpty(environment["CAIRN_EMBEDDING_PROVIDER"]);
  if (provider !== undefined && !PROVIDERS.some((known) => known === provider)) {
    throw new UsageError(`CAIRN_EMBEDDING_PROVIDER must be one of ${PROVIDERS.join(", ")}; got ${provider}`);
  }
  const base_url = nonEmpty(environment["CAIRN_EMBEDDING_BASE_URL"]);
  const urlProblem = base_url === undefined ? undefined : baseUrlProblem(base_url);
  if (urlProblem !== undefined) throw new UsageError(`CAIRN_EMBEDDING_BASE_URL cannot be used. ${urlProblem}`);
  const model = nonEmpty(environment["CAIRN_EMBEDDING_MODEL"]);
  const api_key = nonEmpty(environment["CAIRN_EMBEDDING_API_KEY"]) ?? nonEmpty(environment["OPENAI_API_KEY"]);
  const keyProblem = api_key === undefined ? undefined : apiKeyProblem(api_key);
  if (keyProblem !== undefined) throw new UsageError(`CAIRN_EMBEDDING_API_KEY cannot be used. ${keyProblem}`);
  return {
    ...(provider === undefined ? {} : { provider }),
    ...(base_url === undefined ? {} : { base_url }),
    ...(model === undefined ? {} : { model }),
    ...(api_key === undefined ? {} : { api_key }),
  };
}

function webhooksIn(environment: Environment): Config["webhooks"] {
  const allowPrivate = environment["CAIRN_WEBHOOK_ALLOW_PRIVATE"] ?? "0";
  if (!["", "0", "1"].includes(allowPrivate)) throw new UsageError(`CAIRN_WEBHOOK_ALLOW_PRIVATE must be 0 or 1; got ${allowPrivate}`);
  const timeout = nonEmpty(environment["CAIRN_WEBHOOK_TIMEOUT"]);
  const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout);
  if (timeout !== undefined && timeoutMs === undefined)
    throw new UsageError(`CAIRN_WEBHOOK_TIMEOUT must be a time such as 15s or 500ms; got ${timeout}`);
  const waits = nonEmpty(environment["CAIRN_WEBHOOK_RETRY_SCHEDULE"]);
  const schedule = waits === undefined ? undefined : parseSchedule(waits);
  if (waits !== undefined && schedule === undefined)
    throw new UsageError(`CAIRN_WEBHOOK_RETRY_SCHEDULE must be times such as 200ms,5s,5m,2h; got ${waits}`);
  return { allowPrivate: allowPrivate === "1", timeoutMs, schedule };
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
