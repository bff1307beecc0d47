/**
 * Every setting, declared once: the flags, the variables and what `PATCH /v1/settings` changes.
 *
 * The configuration, `--help`, the API's schemas and checks, the checks of stored settings and the page on configuration all follow
 * from the two tables below. The first sentence of a description is what `--help` says.
 *
 * @module
 */
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { BUCKET_URL_FORM, parseBucketUrl } from "../lib/s3.ts";
import { BACKUP_SCHEDULE_FORM, parseBackupSchedule } from "./backup-schedule.ts";
import { DIMENSION_MAX } from "../embeddings/embedder.ts";
import { apiKeyProblem, baseUrlProblem, PROVIDER_DEFAULTS } from "../embeddings/provider-settings.ts";
import { CheckedText, OneOf, OrNull, Text } from "../http/types.ts";
import { validator } from "../http/validate.ts";
import { KEY_SHAPE } from "../keys/keys.ts";
import { DOMAINS_FORM, parseDomains } from "../lib/domains.ts";
import { ApiError } from "../lib/errors.ts";
import { toJson } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { LOG_LEVELS } from "../lib/log.ts";
import { SIMD_LEVELS } from "../lib/native.ts";
import { firstCodePoints } from "../lib/text.ts";
import { directoryUrlProblem, publicUrlProblem, withoutQuery } from "../lib/urls.ts";
import { parseSecretKinds, SECRET_ACTIONS, SECRET_KINDS_FORM } from "../secrets/secret-policy.ts";
import { DURABILITIES } from "../storage/durability.ts";
import { databaseUrlProblem } from "../storage/postgres/connection/database-url.ts";
import { TURN_INDEXES } from "../storage/tables.ts";
import { OAUTH_CLIENTS_FORM, parseOAuthClients } from "./oauth-clients.ts";
import { parseSchedule, parseTimeout, SCHEDULE_FORM, TIMEOUT_FORM } from "../webhooks/policy.ts";

export interface Setting<Value = unknown> {
  readonly schema: TSchema;
  readonly default: Value;
  readonly description: string;
  /** The flag with what follows it: `--port N`. Secrets have none, because everybody on the machine can read a command line. */
  readonly flag?: string | undefined;
  readonly variable?: string | undefined;
  /** The default in words, where it is not simply the value. */
  readonly defaultText?: string | undefined;
  /** True if it is never shown. */
  readonly isSecret?: boolean;
  /** Form in which traces, and exports without secrets, show a value that may hold a secret, as the query of a URL may. */
  readonly redact?: (text: string) => string;
}

/** @param source - the flag with what follows it, whose variable has the same name, or the variable */
function atStart<Schema extends TSchema, Default extends Static<Schema> | undefined>(
  source: `--${string} ${string}` | `CAIRN_${string}`,
  schema: Schema,
  fallback: Default,
  description: string,
  defaultText?: string,
): Setting<Static<Schema> | Default> {
  const isFlag = source.startsWith("--");
  const variable = isFlag ? `CAIRN_${source.slice(2).replace(/ .*/, "").replaceAll("-", "_").toUpperCase()}` : source;
  return { schema, default: fallback, description, flag: isFlag ? source : undefined, variable, defaultText };
}

function atRunTime<Schema extends TSchema, Default extends Static<Schema> | null>(
  schema: Schema,
  fallback: Default,
  description: string,
  more: Pick<Setting, "variable" | "defaultText" | "isSecret" | "redact"> = {},
): Setting<Static<Schema> | Default> {
  return { schema, default: fallback, description, ...more };
}

const integer = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });

const SHOWN_LENGTH = 80;
const formed = (max: number, form: string, fits: (text: string) => boolean) =>
  CheckedText(max, (text) => (fits(text) ? undefined : `must be ${form}; got ${toJson(firstCodePoints(text, SHOWN_LENGTH))}.`));
/** Never repeats the text. */
const usable = (max: number, problemOf: (text: string) => string | undefined) =>
  CheckedText(max, (text) => problemOf(text) && `cannot be used. ${problemOf(text)}`);

const TEXT_LENGTH_MAX = 2048;
const text = Type.String();
const yesOrNo = Type.Boolean();
const list = Type.Array(Type.String());
const port = integer(0, 65_535);
const ownKey = usable(Infinity, (key) => (KEY_SHAPE.test(key) ? undefined : "A key is crn_ and 24 letters or digits."));
const code = (values: readonly string[]) => values.map((value) => `\`${value}\``).join(", ");

/** Settings that the start of a server, or a command, reads; by the name in `Config`. */
export const START_SETTINGS = {
  host: atStart("--host ADDRESS", text, "127.0.0.1", "Address to listen on."),
  port: atStart("--port N", port, 8700, "Port to listen on; 0 takes any free one."),
  dataDirectory: atStart("--data-dir DIR", text, "./data", "Directory for all data, readable by its owner only."),
  database: atStart(
    "--store URL",
    usable(Infinity, databaseUrlProblem),
    undefined,
    "Address of a PostgreSQL database that keeps the records: `postgres://user:password@host/database?sslmode=require`.",
    "the data directory",
  ),
  durability: atStart("--durability MODE", OneOf(DURABILITIES), "strict", "`strict` answers once a write is on disk, `relaxed` sooner."),
  metrics: atStart(
    "--metrics MODE",
    OneOf(["open", "key"]),
    undefined,
    "`key`: `/metrics` needs an admin key; `open`: it needs none.",
    "open where only this machine can ask, else key",
  ),
  logLevel: atStart("--log-level LEVEL", OneOf(LOG_LEVELS), "info", `Lowest level that is logged: ${code(LOG_LEVELS)}.`),
  tlsCertificate: atStart("--tls-cert FILE", text, undefined, "Certificate (PEM); with `--tls-key` the server speaks HTTPS."),
  tlsKey: atStart("--tls-key FILE", text, undefined, "The certificate's private key (PEM)."),
  httpRedirectPort: atStart(
    "--http-redirect-port N",
    port,
    undefined,
    "With TLS: redirects plain HTTP on this port to HTTPS. 80 unless given with `--domain`, whose certificate authority asks there.",
  ),
  domain: atStart(
    "--domain NAMES",
    formed(TEXT_LENGTH_MAX, DOMAINS_FORM, (names) => parseDomains(names) !== undefined),
    undefined,
    "Host names, separated by commas, for which the server gets and renews a certificate (Let's Encrypt) and speaks HTTPS: `--port` is then 443 unless given, and `--host` every address. Using it agrees to the terms of the certificate authority.",
    "none",
  ),
  acmeDirectory: atStart(
    "CAIRN_ACME_DIRECTORY",
    usable(TEXT_LENGTH_MAX, directoryUrlProblem),
    "https://acme-v02.api.letsencrypt.org/directory",
    "Address of the directory (ACME) of another certificate authority, with `--domain`. The root of a private one goes into `NODE_EXTRA_CA_CERTS`.",
  ),
  requireHttps: atStart(
    "CAIRN_REQUIRE_HTTPS",
    yesOrNo,
    false,
    "`1` behind a proxy: redirects `X-Forwarded-Proto: http` to HTTPS, at the server's own name or one of `CAIRN_ALLOWED_HOSTS`.",
  ),
  corsOrigins: atStart(
    "CAIRN_CORS_ORIGINS",
    list,
    [],
    "Origins whose pages may call the API (CORS), separated by commas; `*` is any.",
    "none",
  ),
  apiKey: atStart("CAIRN_API_KEY", ownKey, undefined, "Admin key to register at the start: `crn_` and 24 letters or digits."),
  allowedHosts: atStart(
    "CAIRN_ALLOWED_HOSTS",
    list,
    [],
    "Host names the server answers to besides loopback ones and that of `CAIRN_PUBLIC_URL`, separated by commas. Without it a listener beyond loopback answers to any name.",
  ),
  publicUrl: atStart(
    "CAIRN_PUBLIC_URL",
    usable(TEXT_LENGTH_MAX, publicUrlProblem),
    undefined,
    "Address at which clients reach this server, `https://cairn.example.com`: switches on OAuth for `/mcp`, which is on at loopback addresses without it. Its host need not stand in `CAIRN_ALLOWED_HOSTS`.",
    "none",
  ),
  nativeDirectory: atStart(
    "CAIRN_NATIVE_DIR",
    text,
    undefined,
    "Directory into which the executable unpacks its native parts.",
    "data directory",
  ),
  simd: atStart("CAIRN_SIMD", OneOf(SIMD_LEVELS), undefined, `Instruction set of the vector index: ${code(SIMD_LEVELS)}.`, "best there is"),
  graphFrom: atStart(
    "CAIRN_GRAPH_FROM",
    integer(0, 999_999_999),
    undefined,
    "Number of vectors from which a graph of them (HNSW) is built; below that all vectors are compared.",
    "5000",
  ),
} as const;

const providerText = Text(0, TEXT_LENGTH_MAX);
const TIMES_LENGTH_MAX = 256;
const SEVEN_YEARS_DAYS = 2557;
const MIB = 1024 * 1024;

/** Settings that the API changes while the server runs; by the name in the API, a dot after the group. Some have a variable too. */
export const SETTINGS = {
  memories_on_expiry: atRunTime(OneOf(["keep", "delete"]), "keep", "What becomes of the memories of a session that expires."),
  endless_sessions_for_all: atRunTime(
    yesOrNo,
    true,
    'Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds: "never"`). Such sessions stay until they are deleted. Turned off, it changes no session that is there.',
  ),
  trace_retention_days: atRunTime(integer(1, SEVEN_YEARS_DAYS), 365, "How many days traces made with an enterprise key are kept."),
  retrieval_log: atRunTime(
    yesOrNo,
    true,
    "Whether the server logs which memories a search or a context found, with the query. `GET /v1/sessions/{session_id}/retrievals` lists them, and `GET /v1/retrievals` the searches that named no session. They are kept for `retrieval_log_days`, and no longer than the session.",
    { variable: "CAIRN_RETRIEVAL_LOG" },
  ),
  retrieval_log_days: atRunTime(
    integer(1, LIMITS.retrievalLogDaysMax),
    7,
    "How many days the log of retrievals keeps what was found, with the query. A change concerns what is logged from then on.",
  ),
  index_turns: atRunTime(
    OneOf(TURN_INDEXES),
    "words",
    "By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn, passage by passage. A session can be created with another one. After a change the turns that are there follow in the background; `/v1/stats` says how far that is.",
    { variable: "CAIRN_INDEX_TURNS" },
  ),
  index_turns_share: atRunTime(
    Type.Number({ minimum: 0.01, maximum: 1 }),
    0.25,
    "The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that are there after a change of `index_turns` and the vectors of new ones are made within it.",
  ),
  secrets: atRunTime(
    OneOf(SECRET_ACTIONS),
    "off",
    "What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or `block`. `tag` stores them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and the answer says so; `block` refuses the request. Records that are there stay as they are.",
    { variable: "CAIRN_SECRETS" },
  ),
  secret_kinds: atRunTime(
    formed(TIMES_LENGTH_MAX, SECRET_KINDS_FORM, (text) => parseSecretKinds(text) !== undefined),
    "keys,cards",
    `What counts as a secret: ${SECRET_KINDS_FORM}. \`keys\` are keys and tokens of known forms, private keys, JWTs and passwords in URLs; \`cards\` numbers of cards; \`email\` addresses and \`phone\` telephone numbers.`,
    { variable: "CAIRN_SECRET_KINDS" },
  ),
  max_body_bytes: atRunTime(integer(1024, 64 * MIB), LIMITS.bodyBytesMax, "Largest body of a request."),
  region: atRunTime(
    formed(64, "text without control characters", (text) => !/\p{Cc}|\p{Cs}/u.test(text)),
    null,
    "A label for this deployment, shown in `/health` to everybody. Without control characters.",
    { variable: "CAIRN_REGION" },
  ),
  state_versions_kept: atRunTime(
    integer(LIMITS.stateVersionsKeptMin, LIMITS.stateVersionsKeptMax),
    LIMITS.stateVersionsKeptDefault,
    "How many of the newest versions of a session's state are kept, including the current one; version 0 is always kept. Each new version removes up to 8 older ones, so a lower number takes effect as states change.",
  ),
  memory_versions_kept: atRunTime(
    integer(0, LIMITS.memoryVersionsKeptMax),
    LIMITS.memoryVersionsKeptDefault,
    "How many contents that a memory had are kept, besides the present one, for its history. A lower number takes effect with the next change of each memory's content.",
  ),
  max_store_bytes: atRunTime(
    integer(LIMITS.maxStoreBytesMin, LIMITS.maxStoreBytesMax),
    null,
    "How many bytes the store may take on disk; beyond that new records are refused with 503. `cairn_store_used_bytes` in `/metrics` says how many it takes. New sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of one that does not make it smaller, and a request with an Idempotency-Key whose answer has no space to be kept; deletion, keys, webhooks, settings, expiry and retention keep working. The size is checked twice a second and after large writes, so it can exceed the limit slightly.",
    { variable: "CAIRN_MAX_STORE_BYTES", defaultText: "none" },
  ),
  oauth_clients: atRunTime(
    formed(TEXT_LENGTH_MAX, OAUTH_CLIENTS_FORM, (text) => parseOAuthClients(text) !== undefined),
    "any",
    `Applications that may ask for access by OAuth: ${OAUTH_CLIENTS_FORM}. \`known\` are those whose documents are built in; a host is where an application has its document. Unless it is \`any\`, no application can register itself. Those that are connected stay connected.`,
    { variable: "CAIRN_OAUTH_CLIENTS" },
  ),
  "backups.schedule": atRunTime(
    formed(TIMES_LENGTH_MAX, BACKUP_SCHEDULE_FORM, (text) => parseBackupSchedule(text) !== undefined),
    null,
    `When the server makes a backup by itself: ${BACKUP_SCHEDULE_FORM}; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails is tried again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.`,
    { variable: "CAIRN_BACKUP_SCHEDULE", defaultText: "none" },
  ),
  "backups.keep": atRunTime(
    integer(1, LIMITS.scheduledBackupsMax),
    7,
    "How many backups of the schedule are kept; older ones are deleted once a newer one is complete.",
    { variable: "CAIRN_BACKUP_KEEP" },
  ),
  "backups.keep_days": atRunTime(
    integer(1, SEVEN_YEARS_DAYS),
    null,
    "How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old.",
    { variable: "CAIRN_BACKUP_KEEP_DAYS", defaultText: "none" },
  ),
  "backups.copy_to": atRunTime(
    formed(TEXT_LENGTH_MAX, BUCKET_URL_FORM, (text) => parseBucketUrl(text) !== undefined),
    null,
    `A bucket that the newest backup is copied to: ${BUCKET_URL_FORM}; null or empty for none. It keeps as many copies as \`backups.keep\` and \`backups.keep_days\` say. The variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.`,
    { variable: "CAIRN_BACKUP_COPY_TO", defaultText: "none" },
  ),
  "webhooks.allow_private": atRunTime(
    yesOrNo,
    false,
    "Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key can then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.",
    { variable: "CAIRN_WEBHOOK_ALLOW_PRIVATE" },
  ),
  "webhooks.timeout": atRunTime(
    formed(TIMES_LENGTH_MAX, TIMEOUT_FORM, (text) => parseTimeout(text) !== undefined),
    "15s",
    `How long a receiver has to answer an attempt: ${TIMEOUT_FORM}.`,
    { variable: "CAIRN_WEBHOOK_TIMEOUT" },
  ),
  "webhooks.retry_schedule": atRunTime(
    formed(TIMES_LENGTH_MAX, SCHEDULE_FORM, (text) => parseSchedule(text) !== undefined),
    // 27 h 35 min in all: long enough to outlive a receiver's bad night.
    "5s,5m,30m,2h,5h,10h,10h",
    `The waits before each further attempt: ${SCHEDULE_FORM}. A wait that has begun stays as it is.`,
    { variable: "CAIRN_WEBHOOK_RETRY_SCHEDULE" },
  ),
  "embedding.provider": atRunTime(
    OneOf(["builtin", "words", "openai", "local"]),
    PROVIDER_DEFAULTS.provider,
    "`builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks `/v1/embeddings`. `local` is read as `builtin`.",
    { variable: "CAIRN_EMBEDDING_PROVIDER" },
  ),
  "embedding.base_url": atRunTime(
    usable(TEXT_LENGTH_MAX, baseUrlProblem),
    PROVIDER_DEFAULTS.base_url,
    "Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address of a cloud metadata service is refused.",
    { variable: "CAIRN_EMBEDDING_BASE_URL", redact: withoutQuery },
  ),
  "embedding.model": atRunTime(providerText, PROVIDER_DEFAULTS.model, "The provider's model.", {
    variable: "CAIRN_EMBEDDING_MODEL",
  }),
  "embedding.api_key": atRunTime(usable(TEXT_LENGTH_MAX, apiKeyProblem), null, "The provider's key. It is kept, and never shown.", {
    variable: "CAIRN_EMBEDDING_API_KEY",
    defaultText: "OPENAI_API_KEY for OpenAI's own server",
    isSecret: true,
  }),
  "embedding.query_prefix": atRunTime(providerText, PROVIDER_DEFAULTS.query_prefix, "Text that the model expects before a query."),
  "embedding.document_prefix": atRunTime(providerText, PROVIDER_DEFAULTS.document_prefix, "Text that the model expects before a memory."),
  "embedding.dimensions": atRunTime(
    integer(1, DIMENSION_MAX),
    null,
    `Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it one with vectors of more than ${DIMENSION_MAX} numbers is asked for ${DIMENSION_MAX}.`,
  ),
  "embedding.relevant_cosine": atRunTime(
    Type.Number({ minimum: -1, maximum: 1 }),
    null,
    "From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for the built-in provider. One that is set takes the place of what the probes measure.",
  ),
} as const;

/** Groups that the API puts into an object of their own. */
export const GROUPS = {
  backups: "Backups that the server makes by itself.",
  webhooks: "How events are delivered, from the next attempt on.",
  embedding:
    "The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again in the background.",
} as const;

type ValueOf<Declared> = Declared extends Setting<infer Value> ? Value : never;
export type StartValues = { [Name in keyof typeof START_SETTINGS]: ValueOf<(typeof START_SETTINGS)[Name]> };
export type SettingName = keyof typeof SETTINGS;
export type SettingValues = { [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };
/** Settings that somebody gave; the others have their default. */
export type GivenSettings = { [Name in SettingName]?: NonNullable<SettingValues[Name]> };
/** A null, or an empty text, takes a setting back to the environment's or the default. */
export type SettingChanges = { [Name in SettingName]?: SettingValues[Name] | null };

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];
export const DEFAULTS = ofEach((name) => SETTINGS[name].default) as SettingValues;

export function ofEach<Value>(value: (name: SettingName) => Value): Record<SettingName, Value> {
  return Object.fromEntries(SETTING_NAMES.map((name) => [name, value(name)])) as Record<SettingName, Value>;
}

/** Picks the values of one group, or with "" of settings without a group, by their names within it. */
export function membersOf<Value>(group: keyof typeof GROUPS | "", values: Readonly<Record<string, Value>>): Record<string, Value> {
  const prefix = group === "" ? "" : `${group}.`;
  const found = Object.entries(values).filter(([name]) => (group === "" ? !name.includes(".") : name.startsWith(prefix)));
  return Object.fromEntries(found.map(([name, value]) => [name.slice(prefix.length), value]));
}

/** The settings of a PATCH by their full names. */
export function changesIn(body: Readonly<Record<string, unknown>>): SettingChanges {
  return Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) =>
      Object.hasOwn(GROUPS, name)
        ? Object.entries(value as object).map(([member, inner]) => [`${name}.${member}`, inner as unknown])
        : [[name, value]],
    ),
  );
}

/** Reads the text of a flag or variable. @throws {ApiError} that says by `name` what is wrong */
export function readText(name: string, { schema }: Setting, text: string): unknown {
  if (schema["type"] === "boolean" && !/^[01]$/.test(text))
    throw new ApiError("invalid_request", `${name} must be 0 or 1; got ${toJson(firstCodePoints(text, SHOWN_LENGTH))}.`);
  return validator(Type.Object({ [name]: schema }))({ [name]: parsed(schema, text) })[name];
}

/** The text itself where it has not the form of the type, for the error that says so. */
function parsed({ type }: TSchema, text: string): unknown {
  if (type === "integer" && /^\d{1,16}$/.test(text)) return Number(text);
  if (type === "boolean") return text === "1";
  return type === "array" ? text.split(",").flatMap((item) => item.trim() || []) : text;
}

/** Makes a check of values of any of the settings. */
export const settingsValidator = () => validator(Type.Object(ofEach((name) => Type.Optional(SETTINGS[name].schema))));

/** Each setting as a change of it has it; a null takes one back. */
export const changeable = ofEach((name) => Type.Optional(OrNull({ ...SETTINGS[name].schema, description: SETTINGS[name].description })));

export function changeableGroup(group: keyof typeof GROUPS) {
  return Type.Optional(Type.Object(membersOf(group, changeable), { additionalProperties: false, description: GROUPS[group] }));
}
