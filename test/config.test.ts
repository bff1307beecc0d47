import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FLAGS, isPrivateListener, UsageError, parseFlags, readConfig, type Config } from "../src/config.ts";
import { defaultOf, SETTINGS, START_SETTINGS, summaryOf, type Setting } from "../src/settings/schema.ts";

const KEY = "crn_0123456789abcdefghijABCD";

test("without flags and variables Cairn serves this machine alone, from a directory beside it", () => {
  expect(readConfig([], {})).toMatchObject({
    host: "127.0.0.1",
    port: 8700,
    dataDirectory: "./data",
    logLevel: "info",
    allowedHosts: [],
    apiKey: undefined,
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

const read: { name: string; args?: string[]; environment?: Record<string, string>; config: Partial<Config> }[] = [
  { name: "a flag", args: ["--port", "9000"], config: { port: 9000 } },
  { name: "a flag with an equals sign", args: ["--data-dir=/srv/cairn"], config: { dataDirectory: "/srv/cairn" } },
  { name: "a variable", environment: { CAIRN_HOST: "::1" }, config: { host: "::1" } },
  { name: "a flag before its variable", args: ["--port", "9000"], environment: { CAIRN_PORT: "9001" }, config: { port: 9000 } },
  { name: "the last of two", args: ["--port", "1", "--port", "2"], config: { port: 2 } },
  {
    name: "an empty variable as none",
    environment: { CAIRN_PORT: "", CAIRN_API_KEY: "", CAIRN_REGION: "", CAIRN_SIMD: "" },
    config: { port: 8700, apiKey: undefined, environment: {}, simd: undefined },
  },
  { name: "port 0", args: ["--port", "0"], config: { port: 0 } },
  { name: "port 65535", environment: { CAIRN_PORT: "65535" }, config: { port: 65_535 } },
  { name: "a log level", environment: { CAIRN_LOG_LEVEL: "silent" }, config: { logLevel: "silent" } },
  { name: "a key", environment: { CAIRN_API_KEY: KEY }, config: { apiKey: KEY } },
  { name: "a region", environment: { CAIRN_REGION: "eu" }, config: { environment: { region: "eu" } } },
  {
    name: "hosts",
    environment: { CAIRN_ALLOWED_HOSTS: " a.example, b.example:8443,," },
    config: { allowedHosts: ["a.example", "b.example:8443"] },
  },
  { name: "an instruction set", environment: { CAIRN_SIMD: "sse" }, config: { simd: "sse" } },
  { name: "how many vectors get a graph", environment: { CAIRN_GRAPH_FROM: "0" }, config: { graphFrom: 0 } },
  { name: "a directory for native parts", environment: { CAIRN_NATIVE_DIR: "/opt/n" }, config: { nativeDirectory: "/opt/n" } },
  {
    name: "a certificate and its key",
    args: ["--tls-cert", "cert.pem"],
    environment: { CAIRN_TLS_KEY: "key.pem" },
    config: { tls: { certificate: "cert.pem", key: "key.pem" }, httpRedirectPort: undefined },
  },
  {
    name: "a port for plain HTTP",
    args: ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--http-redirect-port", "80"],
    config: { httpRedirectPort: 80 },
  },
  { name: "a proxy that speaks HTTPS", environment: { CAIRN_REQUIRE_HTTPS: "1" }, config: { requireHttps: true } },
  { name: "none that does", environment: { CAIRN_REQUIRE_HTTPS: "0" }, config: { requireHttps: false } },
  { name: "origins", environment: { CAIRN_CORS_ORIGINS: "https://a.example, *" }, config: { corsOrigins: ["https://a.example", "*"] } },
  {
    name: "an embedding provider",
    environment: {
      CAIRN_EMBEDDING_PROVIDER: "openai",
      CAIRN_EMBEDDING_BASE_URL: "http://127.0.0.1:1234/v1",
      CAIRN_EMBEDDING_MODEL: "m",
      CAIRN_EMBEDDING_API_KEY: "own",
      OPENAI_API_KEY: "common",
    },
    config: {
      environment: {
        "embedding.provider": "openai",
        "embedding.base_url": "http://127.0.0.1:1234/v1",
        "embedding.model": "m",
        "embedding.api_key": "own",
      },
    },
  },
  {
    name: "webhooks",
    environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "1", CAIRN_WEBHOOK_TIMEOUT: "500ms", CAIRN_WEBHOOK_RETRY_SCHEDULE: "200ms,1s,5m" },
    config: {
      environment: { "webhooks.allow_private": true, "webhooks.timeout": "500ms", "webhooks.retry_schedule": "200ms,1s,5m" },
    },
  },
  {
    name: "the key many tools share",
    environment: { OPENAI_API_KEY: "common" },
    config: { environment: { "embedding.api_key": "common" } },
  },
  {
    name: "the key many tools share, for another address of OpenAI's server",
    environment: { OPENAI_API_KEY: "common", CAIRN_EMBEDDING_BASE_URL: "https://API.openai.com:443/v2" },
    config: { environment: { "embedding.base_url": "https://API.openai.com:443/v2", "embedding.api_key": "common" } },
  },
  { name: "open metrics", args: ["--metrics", "open"], environment: { CAIRN_HOST: "0.0.0.0" }, config: { metrics: "open" } },
  { name: "metrics for admin keys", environment: { CAIRN_METRICS: "key" }, config: { metrics: "key" } },
  { name: "no other variable", environment: { PORT: "1", HOST: "0.0.0.0", CAIRN_NOTHING: "x" }, config: { port: 8700, host: "127.0.0.1" } },
];

for (const { name, args = [], environment = {}, config } of read) {
  test(`the configuration takes ${name}`, () => {
    expect(readConfig(args, environment)).toMatchObject(config);
  });
}

for (const base_url of [
  "http://127.0.0.1:1234/v1",
  "http://api.openai.com/v1",
  "https://api.openai.com:8443/v1",
  "https://api.openai.com.evil.example/v1",
  "https://eu.api.openai.com/v1",
]) {
  test(`the key many tools share is not for the server at ${base_url}`, () => {
    const environment = { CAIRN_EMBEDDING_BASE_URL: base_url, OPENAI_API_KEY: "common" };
    expect(readConfig([], environment).environment).toEqual({ "embedding.base_url": base_url });
    expect(readConfig([], { ...environment, CAIRN_EMBEDDING_API_KEY: "own" }).environment).toEqual({
      "embedding.base_url": base_url,
      "embedding.api_key": "own",
    });
  });
}

const LISTENERS: { name: string; environment: Record<string, string>; isPrivate: boolean }[] = [
  { name: "on loopback", environment: {}, isPrivate: true },
  { name: "on loopback over IPv6", environment: { CAIRN_HOST: "::1" }, isPrivate: true },
  { name: "on loopback by name", environment: { CAIRN_HOST: "localhost", CAIRN_ALLOWED_HOSTS: " ," }, isPrivate: true },
  { name: "on every address", environment: { CAIRN_HOST: "0.0.0.0" }, isPrivate: false },
  { name: "on an address of a network", environment: { CAIRN_HOST: "192.168.0.10" }, isPrivate: false },
  { name: "on loopback under another name", environment: { CAIRN_ALLOWED_HOSTS: "cairn.example" }, isPrivate: false },
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
  { environment: { CAIRN_PORT: "http" }, message: `CAIRN_PORT ${NO_PORT} "http".` },
  { args: ["--log-level", "loud"], message: `--log-level ${NO_LEVEL} "loud".` },
  { environment: { CAIRN_LOG_LEVEL: "INFO" }, message: `CAIRN_LOG_LEVEL ${NO_LEVEL} "INFO".` },
  ...["port", "data-dir", "host"].map((flag) => ({ args: [`--${flag}=`], message: `--${flag} must not be empty` })),
  { args: ["--tls-cert", "cert.pem"], message: "--tls-cert and --tls-key go together" },
  { environment: { CAIRN_TLS_KEY: "key.pem" }, message: "--tls-cert and --tls-key go together" },
  { args: ["--http-redirect-port", "80"], message: "--http-redirect-port needs --tls-cert and --tls-key" },
  {
    args: ["--tls-cert", "c", "--tls-key", "k"],
    environment: { CAIRN_HTTP_REDIRECT_PORT: "http" },
    message: `CAIRN_HTTP_REDIRECT_PORT ${NO_PORT} "http".`,
  },
  ...Object.entries({
    CAIRN_REQUIRE_HTTPS: 'must be 0 or 1; got "yes".',
    CAIRN_WEBHOOK_ALLOW_PRIVATE: 'must be 0 or 1; got "yes".',
    CAIRN_EMBEDDING_PROVIDER: 'must be one of local, openai; got "yes".',
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

test("a key of the provider that cannot be used is refused without repeating it, whichever variable has it", () => {
  const message = "CAIRN_EMBEDDING_API_KEY cannot be used. An API key is 1 to 1,024 printable ASCII characters without spaces.";
  for (const variable of ["CAIRN_EMBEDDING_API_KEY", "OPENAI_API_KEY"])
    expect(() => readConfig([], { [variable]: "se\ncret" })).toThrow(new UsageError(message));
});

test("commands of their own may know other flags, switches and positional arguments", () => {
  expect(parseFlags(["--name", "n"], ["name"]).flags).toMatchObject({ name: "n" });
  expect(() => parseFlags(["--name="], ["name"])).toThrow(new UsageError("--name must not be empty"));
  expect(() => parseFlags(["--port", "1"], ["name"])).toThrow(UsageError);
  expect(() => parseFlags(["file"], [])).toThrow(UsageError);
  const { has, positionals } = parseFlags(["file", "--force"], [], { switches: ["force", "fix"], allowPositionals: true });
  expect([has("force"), has("fix"), positionals]).toEqual([true, false, ["file"]]);
});

test("a secret has no flag, which everyone on the machine could read", () => {
  expect(FLAGS.filter((flag) => /key|secret|token|password/.test(flag) && !flag.startsWith("tls-"))).toEqual([]);
  expect(ALL.filter(({ isSecret, flag }) => isSecret === true && flag !== undefined)).toEqual([]);
});

const ALL = Object.values<Setting>({ ...START_SETTINGS, ...SETTINGS });

test("the README's table has every flag and variable with its default and what it is", () => {
  const readme = readFileSync(join(import.meta.dir, "../README.md"), "utf8").replaceAll("`", "");
  const rows = Array.from(readme.matchAll(/^\| (--[\w-]+)? *\| (CAIRN_\w+) *\| (.*?) *\| (.*?) *\|$/gm), ([, ...cells]) => cells);
  const declared = ALL.filter(({ variable }) => variable !== undefined).map((setting) => [
    setting.flag?.replace(/ .*/, ""),
    setting.variable,
    defaultOf(setting),
    summaryOf(setting).replaceAll("`", ""),
  ]);
  expect(
    rows.map(([flag, variable, fallback, says = ""], i) => [flag, variable, fallback, says.slice(0, declared[i]?.[3]?.length)]),
  ).toEqual(declared);
});
