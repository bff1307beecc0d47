import { expect, test } from "bun:test";
import { FLAGS, isPrivateListener, UsageError, parseFlags, readConfig } from "../src/config.ts";
import { SETTINGS, START_SETTINGS, type Setting } from "../src/settings/schema.ts";

const KEY = "crn_0123456789abcdefghijABCD";

test("without flags and variables Cairn serves this machine alone, from a directory beside it", () => {
  expect(readConfig([], {})).toMatchObject({
    host: "127.0.0.1",
    port: 8700,
    dataDirectory: "./data",
    logLevel: "info",
    allowedHosts: [],
    apiKey: undefined,
    publicUrl: undefined,
    tls: undefined,
    httpRedirectPort: undefined,
    requireHttps: false,
    corsOrigins: [],
    environment: {},
    nativeDirectory: undefined,
    simd: undefined,
    graphFrom: undefined,
  });
});

test("a variable that begins like Cairn's and that nothing reads is named, one that something reads is not", () => {
  const known = { CAIRN_PORT: "1", CAIRN_REGION: "eu", CAIRN_URL: "http://a.example", CAIRN_INSTALL_DIR: "/opt", PATH: "/bin" };
  expect(readConfig([], { ...known, CAIRN_LOGLEVEL: "debug", CAIRN_: "1" }).unknownVariables).toEqual(["CAIRN_LOGLEVEL", "CAIRN_"]);
  expect(readConfig([], known).unknownVariables).toEqual([]);
});

/** A text of each setting that has a variable, and what it stands for. */
const VALUES: Record<string, [text: string, value: unknown]> = {
  host: ["::1", "::1"],
  port: ["65535", 65_535],
  dataDirectory: ["/srv/cairn", "/srv/cairn"],
  database: ["postgres://cairn:p%40ss@db:5432/cairn?sslmode=require", "postgres://cairn:p%40ss@db:5432/cairn?sslmode=require"],
  durability: ["relaxed", "relaxed"],
  metrics: ["key", "key"],
  logLevel: ["silent", "silent"],
  tlsCertificate: ["cert.pem", "cert.pem"],
  tlsKey: ["key.pem", "key.pem"],
  httpRedirectPort: ["0", 0],
  domain: ["a.example, b.example", "a.example, b.example"],
  acmeDirectory: ["https://ca.example/dir", "https://ca.example/dir"],
  requireHttps: ["1", true],
  corsOrigins: ["https://a.example, *", ["https://a.example", "*"]],
  apiKey: [KEY, KEY],
  allowedHosts: [" a.example, b.example:8443,,", ["a.example", "b.example:8443"]],
  publicUrl: ["https://cairn.example.com", "https://cairn.example.com"],
  nativeDirectory: ["/opt/n", "/opt/n"],
  simd: ["sse", "sse"],
  graphFrom: ["0", 0],
  retrieval_log: ["1", true],
  index_turns: ["meaning", "meaning"],
  secrets: ["redact", "redact"],
  secret_kinds: ["keys,email", "keys,email"],
  region: ["eu", "eu"],
  max_store_bytes: [String(2 ** 50), 2 ** 50],
  oauth_clients: ["known, notes.example.com", "known, notes.example.com"],
  "backups.schedule": ["sun 03:00", "sun 03:00"],
  "backups.keep": ["3", 3],
  "backups.keep_days": ["30", 30],
  "backups.copy_to": ["s3://backups/cairn", "s3://backups/cairn"],
  "webhooks.allow_private": ["0", false],
  "webhooks.timeout": ["500ms", "500ms"],
  "webhooks.retry_schedule": ["200ms,1s,5m", "200ms,1s,5m"],
  "embedding.provider": ["openai", "openai"],
  "embedding.base_url": ["http://127.0.0.1:1234/v1", "http://127.0.0.1:1234/v1"],
  "embedding.model": ["m", "m"],
  "embedding.api_key": ["own", "own"],
};
const TLS = { CAIRN_TLS_CERT: "c", CAIRN_TLS_KEY: "k" };

test("every setting is read from its variable, and from its flag, which wins; an empty variable is none", () => {
  const declared = Object.entries<Setting>({ ...START_SETTINGS, ...SETTINGS }).filter(([, { variable }]) => variable !== undefined);
  expect(declared.map(([name]) => name)).toEqual(Object.keys(VALUES));
  for (const [name, { variable = "", flag }] of declared) {
    const [text, value] = VALUES[name] as [string, unknown];
    const others = name === "domain" ? {} : TLS;
    const valueIn = (args: string[], environment: Record<string, string>) => {
      const { environment: given, ...start } = readConfig(args, { ...others, ...environment });
      return ({ ...start, ...given } as Record<string, unknown>)[name];
    };
    expect([name, valueIn([], { [variable]: text })]).toEqual([name, value]);
    expect([name, valueIn([], { [variable]: "", ...others })]).toEqual([name, valueIn([], {})]);
    if (flag === undefined) continue;
    const option = flag.replace(/ .*/, "");
    for (const args of [[option, text], [`${option}=${text}`], [option, "x", option, text]])
      expect([args, valueIn(args, { [variable]: "x" })]).toEqual([args, value]);
  }
});

test("other variables are not read, and one key of many tools is for OpenAI's own server", () => {
  const unknownVariables = ["CAIRN_NOTHING"];
  expect(readConfig([], { PORT: "1", HOST: "0.0.0.0", CAIRN_NOTHING: "x" })).toEqual({ ...readConfig([], {}), unknownVariables });
  const CAIRN_EMBEDDING_BASE_URL = "https://API.openai.com:443/v2";
  expect(readConfig([], { OPENAI_API_KEY: "common" }).environment).toEqual({ "embedding.api_key": "common" });
  expect(readConfig([], { OPENAI_API_KEY: "common", CAIRN_EMBEDDING_BASE_URL }).environment).toEqual({
    "embedding.base_url": CAIRN_EMBEDDING_BASE_URL,
    "embedding.api_key": "common",
  });
});

test("a certificate and its key go together, and a port for plain HTTP goes with them", () => {
  expect(readConfig(["--tls-cert", "c"], { CAIRN_TLS_KEY: "k" }).tls).toEqual({ certificate: "c", key: "k" });
  for (const args of [
    ["--tls-cert", "c"],
    ["--tls-key", "k"],
  ])
    expect(() => readConfig(args, {})).toThrow(new UsageError("--tls-cert and --tls-key go together"));
  expect(() => readConfig(["--http-redirect-port", "80"], {})).toThrow(
    new UsageError("--http-redirect-port needs --tls-cert and --tls-key, or --domain"),
  );
});

test("with domains a server listens where others look for it, under their names, and has no certificate of files", () => {
  const config = readConfig(["--domain", "Memory.example.org,notes.example.org"], { CAIRN_ALLOWED_HOSTS: "c.example" });
  expect(config).toMatchObject({
    domains: ["memory.example.org", "notes.example.org"],
    port: 443,
    httpRedirectPort: 80,
    publicUrl: "https://memory.example.org",
    allowedHosts: ["c.example", "memory.example.org", "notes.example.org"],
    tls: undefined,
    metrics: "key",
  });
  expect(["::", "0.0.0.0"]).toContain(config.host);
  const own = ["--domain", "a.example", "--host", "127.0.0.1", "--port", "8443", "--http-redirect-port", "8080"];
  expect(readConfig(own, {})).toMatchObject({ host: "127.0.0.1", port: 8443, httpRedirectPort: 8080, publicUrl: "https://a.example:8443" });
  expect(readConfig(own, { CAIRN_PUBLIC_URL: "https://a.example" }).publicUrl).toBe("https://a.example");
  const refusedOf = (args: string[], environment: Record<string, string> = {}) => {
    const [domain = "a.example", ...others] = args;
    return expect(() => readConfig(["--domain", domain, ...others], environment));
  };
  refusedOf([], TLS).toThrow("--domain and --tls-cert exclude each other");
  for (const port of ["--port", "--http-redirect-port"])
    refusedOf(["a.example", port, "0"]).toThrow("--domain needs ports that others know");
  refusedOf(["*.example.org"]).toThrow("--domain must be host names separated by commas");
  refusedOf([], { CAIRN_ACME_DIRECTORY: "http://ca.example/dir" }).toThrow(
    "CAIRN_ACME_DIRECTORY cannot be used. It must be an address that",
  );
  expect(readConfig([], { CAIRN_ACME_DIRECTORY: "http://127.0.0.1:14000/dir" }).domains).toEqual([]);
});

for (const base_url of [
  "http://127.0.0.1:1234/v1",
  "http://api.openai.com/v1",
  "https://api.openai.com:8443/v1",
  "https://api.openai.com.evil.example/v1",
  "https://eu.api.openai.com/v1",
]) {
  test(`the key many tools share is not for the server at ${base_url}`, () => {
    const given = { "embedding.base_url": base_url };
    const environment = { CAIRN_EMBEDDING_BASE_URL: base_url, OPENAI_API_KEY: "common" };
    expect(readConfig([], environment).environment).toEqual(given);
    const own = { ...environment, CAIRN_EMBEDDING_API_KEY: "own" };
    expect(readConfig([], own).environment).toEqual({ ...given, "embedding.api_key": "own" });
  });
}

const LISTENERS: { name: string; environment: Record<string, string>; isPrivate: boolean }[] = [
  { name: "on loopback", environment: {}, isPrivate: true },
  { name: "on loopback over IPv6", environment: { CAIRN_HOST: "::1" }, isPrivate: true },
  { name: "on loopback by name", environment: { CAIRN_HOST: "localhost", CAIRN_ALLOWED_HOSTS: " ," }, isPrivate: true },
  { name: "on every address", environment: { CAIRN_HOST: "0.0.0.0" }, isPrivate: false },
  { name: "on an address of a network", environment: { CAIRN_HOST: "192.168.0.10" }, isPrivate: false },
  { name: "on loopback under another name", environment: { CAIRN_ALLOWED_HOSTS: "cairn.example" }, isPrivate: false },
  { name: "on loopback with an address for others", environment: { CAIRN_PUBLIC_URL: "https://cairn.example" }, isPrivate: false },
  { name: "on loopback with its own address", environment: { CAIRN_PUBLIC_URL: "http://localhost:8700" }, isPrivate: true },
  { name: "on loopback behind a proxy", environment: { CAIRN_REQUIRE_HTTPS: "1" }, isPrivate: false },
  { name: "on loopback with a certificate", environment: { CAIRN_TLS_CERT: "c", CAIRN_TLS_KEY: "k" }, isPrivate: false },
];

for (const { name, environment, isPrivate } of LISTENERS) {
  test(`a listener ${name} is ${isPrivate ? "" : "not "}private, and its metrics ${isPrivate ? "are open" : "need a key"} unless said otherwise`, () => {
    const config = readConfig([], environment);
    expect([isPrivateListener(config), config.metrics]).toEqual([isPrivate, isPrivate ? "open" : "key"]);
  });
}

const NO_PORT = "must be an integer from 0 to 65535; got";
const NO_LEVEL = "must be one of debug, info, warn, error, silent; got";
const refused: { args?: string[]; environment?: Record<string, string>; message: string }[] = [
  ...["-1", "8700.5", "0x10", "1e3", " 80", "http"].map((port) => ({ args: [`--port=${port}`], message: `--port ${NO_PORT} "${port}".` })),
  ...["65536", "100000"].map((port) => ({ args: ["--port", port], message: `--port ${NO_PORT} ${port}.` })),
  { args: ["--log-level", "loud"], message: `--log-level ${NO_LEVEL} "loud".` },
  ...["port", "data-dir", "host"].map((flag) => ({ args: [`--${flag}=`], message: `--${flag} must not be empty` })),
  ...Object.entries({
    CAIRN_PORT: `${NO_PORT} "yes".`,
    CAIRN_HTTP_REDIRECT_PORT: `${NO_PORT} "yes".`,
    CAIRN_LOG_LEVEL: `${NO_LEVEL} "yes".`,
    CAIRN_DURABILITY: 'must be one of strict, relaxed; got "yes".',
    CAIRN_REQUIRE_HTTPS: 'must be 0 or 1; got "yes".',
    CAIRN_WEBHOOK_ALLOW_PRIVATE: 'must be 0 or 1; got "yes".',
    CAIRN_EMBEDDING_PROVIDER: 'must be one of builtin, words, openai, local; got "yes".',
    CAIRN_WEBHOOK_TIMEOUT: 'must be a time such as 15s or 500ms, of at most 1h; got "yes".',
    CAIRN_WEBHOOK_RETRY_SCHEDULE: 'must be times such as 200ms,5s,5m,2h: at most 20, and 7d in all; got "yes".',
    CAIRN_METRICS: 'must be one of open, key; got "yes".',
    CAIRN_SIMD: 'must be one of v4, v3, sse; got "yes".',
    CAIRN_GRAPH_FROM: 'must be an integer from 0 to 999999999; got "yes".',
    CAIRN_MAX_STORE_BYTES: `must be an integer from ${2 ** 20} to ${2 ** 50}; got "yes".`,
    CAIRN_EMBEDDING_BASE_URL: "cannot be used. It is not a URL.",
  }).map(([variable, problem]) => ({ environment: { [variable]: "yes" }, message: `${variable} ${problem}` })),
  {
    environment: { CAIRN_MAX_STORE_BYTES: "1" },
    message: `CAIRN_MAX_STORE_BYTES must be an integer from ${2 ** 20} to ${2 ** 50}; got 1.`,
  },
  { environment: { CAIRN_REGION: "two\nlines" }, message: 'CAIRN_REGION must be text without control characters; got "two\\nlines".' },
];

for (const { args = [], environment = {}, message } of refused) {
  test(`what makes no sense is refused by its name: ${args.join(" ")}${JSON.stringify(environment)}`, () => {
    expect(() => readConfig(args, environment)).toThrow(new UsageError(message));
  });
}

for (const args of [["--nothing"], ["--port"], ["serve"], ["-p", "1"], ["--api-key", KEY], ["--", "x"]]) {
  test(`a command line that is not understood is refused: ${args.join(" ")}`, () => {
    expect(() => readConfig(args, {})).toThrow(UsageError);
  });
}

for (const key of [KEY.slice(0, -1), `${KEY}x`, ` ${KEY}`, KEY.replace("crn_", "sk_"), "x"]) {
  test(`an API key of the wrong shape is refused, without repeating it: ${key}`, () => {
    expect(() => readConfig([], { CAIRN_API_KEY: key })).toThrow(
      new UsageError("CAIRN_API_KEY cannot be used. A key is crn_ and 24 letters or digits."),
    );
  });
}

for (const [url, problem] of [
  ["db/secret", "It has to be a URL such as postgres://cairn:PASSWORD@db.example.com:5432/cairn?sslmode=verify-full."],
  ["mysql://cairn:secret@db/cairn", "It has to be a URL such as postgres://cairn:PASSWORD@db.example.com:5432/cairn?sslmode=verify-full."],
  ["postgres://cairn:secret@/cairn", "It has to be a URL such as postgres://cairn:PASSWORD@db.example.com:5432/cairn?sslmode=verify-full."],
  ["postgres:///cairn", "It names no host: postgres://USER:PASSWORD@HOST:PORT/DATABASE."],
  ["postgres://:secret@db/cairn", "It names no user: postgres://USER:PASSWORD@HOST:PORT/DATABASE."],
  ["postgres://cairn:secret@db", "It names no database: postgres://USER:PASSWORD@HOST:PORT/DATABASE."],
  ["postgres://cairn:secret@db/", "It names no database: postgres://USER:PASSWORD@HOST:PORT/DATABASE."],
  ["postgres://cairn:secret@db/cairn#x", "What follows # is no part of such a URL: write # as %23."],
  ["postgres://cairn:secret%@db/cairn", "It has a % that no two hex digits follow: write % as %25."],
  ["postgres://cairn:secret@db/cairn?sslmode=secret", "Its sslmode has to be one of disable, prefer, require, verify-ca, verify-full."],
  [
    "postgres://cairn:secret@db/cairn?password=secret",
    "It has a parameter that is not known; known are sslmode, sslrootcert, sslcert, sslkey, channel_binding, application_name, options, pool_max_conns.",
  ],
  ...["3", "101", "4&pool_max_conns=4", "4.5", "0x10", ""].map((size) => [
    `postgres://cairn:secret@db/cairn?pool_max_conns=${size}`,
    "Its pool_max_conns has to be a whole number from 4 to 100.",
  ]),
] as const) {
  test(`a URL that names no database is refused by what is wrong with it, without repeating any of it: ${url}`, () => {
    expect(() => readConfig([`--store=${url}`], {})).toThrow(new UsageError(`--store cannot be used. ${problem}`));
    expect(() => readConfig([], { CAIRN_STORE: url })).toThrow(new UsageError(`CAIRN_STORE cannot be used. ${problem}`));
  });
}

test("a key of the provider that cannot be used is refused without repeating it, whichever variable has it", () => {
  const message = "CAIRN_EMBEDDING_API_KEY cannot be used. An API key is 1 to 1,024 printable ASCII characters without spaces.";
  for (const variable of ["CAIRN_EMBEDDING_API_KEY", "OPENAI_API_KEY"])
    expect(() => readConfig([], { [variable]: "se\ncret" })).toThrow(new UsageError(message));
});

test("a command may know flags of its own, switches and positional arguments besides the flags of every command", () => {
  const own = { flags: ["name"], switches: ["force", "fix"], allowPositionals: true };
  const { flags, has, positionals } = parseFlags(["file", "--name", "n", "--port", "1", "--force"], own);
  expect(flags).toMatchObject({ name: "n", port: "1" });
  expect([has("force"), has("fix"), positionals]).toEqual([true, false, ["file"]]);
  expect(() => parseFlags(["--name="], own)).toThrow(new UsageError("--name must not be empty"));
  for (const args of [["--name", "n"], ["--force"], ["file"]]) expect(() => parseFlags(args)).toThrow(UsageError);
});

test("a secret has no flag, which everyone on the machine could read", () => {
  expect(FLAGS.filter((flag) => /key|secret|token|password/.test(flag) && !flag.startsWith("tls-"))).toEqual([]);
  expect(ALL.filter(({ isSecret, flag }) => isSecret === true && flag !== undefined)).toEqual([]);
});

const ALL = Object.values<Setting>({ ...START_SETTINGS, ...SETTINGS });
