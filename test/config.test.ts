import { expect, test } from "bun:test";
import { isPrivateListener, OPTIONS, UsageError, VARIABLES, parseFlags, readConfig, type Config } from "../src/config.ts";

const KEY = "crn_0123456789abcdefghijABCD";

test("without flags and variables Cairn serves this machine alone, from a directory beside it", () => {
  expect(readConfig([], {})).toMatchObject({
    host: "127.0.0.1",
    port: 8700,
    dataDirectory: "./data",
    logLevel: "info",
    allowedHosts: [],
    apiKey: undefined,
    region: null,
    tls: undefined,
    httpRedirectPort: undefined,
    requireHttps: false,
    corsOrigins: [],
    embedding: {},
    webhooks: {},
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
    config: { port: 8700, apiKey: undefined, region: null, simd: undefined },
  },
  { name: "port 0", args: ["--port", "0"], config: { port: 0 } },
  { name: "port 65535", environment: { CAIRN_PORT: "65535" }, config: { port: 65_535 } },
  { name: "a log level", environment: { CAIRN_LOG_LEVEL: "silent" }, config: { logLevel: "silent" } },
  { name: "a key", environment: { CAIRN_API_KEY: KEY }, config: { apiKey: KEY } },
  { name: "a region", environment: { CAIRN_REGION: "eu" }, config: { region: "eu" } },
  {
    name: "hosts",
    environment: { CAIRN_ALLOWED_HOSTS: " a.example, b.example:8443,," },
    config: { allowedHosts: ["a.example", "b.example:8443"] },
  },
  { name: "an instruction set", environment: { CAIRN_SIMD: "sse" }, config: { simd: "sse" } },
  { name: "how many vectors get a graph", environment: { CAIRN_GRAPH_FROM: "0" }, config: { graphFrom: 0 } },
  { name: "nothing of webhooks", config: { webhooks: {} } },
  {
    name: "what is said of webhooks",
    environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "1", CAIRN_WEBHOOK_TIMEOUT: "500ms", CAIRN_WEBHOOK_RETRY_SCHEDULE: "200ms,1s,5m" },
    config: { webhooks: { allow_private: true, timeout: "500ms", retry_schedule: "200ms,1s,5m" } },
  },
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
    config: { embedding: { provider: "openai", base_url: "http://127.0.0.1:1234/v1", model: "m", api_key: "own" } },
  },
  {
    name: "webhooks",
    environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "1", CAIRN_WEBHOOK_TIMEOUT: "500ms", CAIRN_WEBHOOK_RETRY_SCHEDULE: "200ms,1s,5m" },
    config: { webhooks: { allow_private: true, timeout: "500ms", retry_schedule: "200ms,1s,5m" } },
  },
  { name: "the key many tools share", environment: { OPENAI_API_KEY: "common" }, config: { embedding: { api_key: "common" } } },
  {
    name: "the key many tools share, for another address of OpenAI's server",
    environment: { OPENAI_API_KEY: "common", CAIRN_EMBEDDING_BASE_URL: "https://API.openai.com:443/v2" },
    config: { embedding: { base_url: "https://API.openai.com:443/v2", api_key: "common" } },
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
    expect(readConfig([], environment).embedding).toEqual({ base_url });
    expect(readConfig([], { ...environment, CAIRN_EMBEDDING_API_KEY: "own" }).embedding).toEqual({ base_url, api_key: "own" });
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

const refused: { args?: string[]; environment?: Record<string, string>; message: string }[] = [
  ...["", "-1", "65536", "8700.5", "0x10", "1e3", " 80", "http", "100000"].map((port) => ({
    args: [`--port=${port}`],
    message: port === "" ? "--port must not be empty" : `--port must be a number from 0 to 65535; got ${port}`,
  })),
  { environment: { CAIRN_PORT: "http" }, message: "CAIRN_PORT must be a number from 0 to 65535; got http" },
  { args: ["--log-level", "loud"], message: "--log-level must be one of debug, info, warn, error, silent; got loud" },
  { environment: { CAIRN_LOG_LEVEL: "INFO" }, message: "CAIRN_LOG_LEVEL must be one of debug, info, warn, error, silent; got INFO" },
  { args: ["--data-dir", ""], message: "--data-dir must not be empty" },
  { args: ["--host", ""], message: "--host must not be empty" },
  { args: ["--tls-cert", "cert.pem"], message: "--tls-cert and --tls-key go together" },
  { environment: { CAIRN_TLS_KEY: "key.pem" }, message: "--tls-cert and --tls-key go together" },
  { args: ["--http-redirect-port", "80"], message: "--http-redirect-port needs --tls-cert and --tls-key" },
  {
    args: ["--tls-cert", "c", "--tls-key", "k"],
    environment: { CAIRN_HTTP_REDIRECT_PORT: "http" },
    message: "CAIRN_HTTP_REDIRECT_PORT must be a number from 0 to 65535; got http",
  },
  { environment: { CAIRN_REQUIRE_HTTPS: "yes" }, message: "CAIRN_REQUIRE_HTTPS must be 0 or 1; got yes" },
  { environment: { CAIRN_EMBEDDING_PROVIDER: "x" }, message: "CAIRN_EMBEDDING_PROVIDER must be one of local, openai; got x" },
  { environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "yes" }, message: "CAIRN_WEBHOOK_ALLOW_PRIVATE must be 0 or 1; got yes" },
  {
    environment: { CAIRN_WEBHOOK_TIMEOUT: "15" },
    message: "CAIRN_WEBHOOK_TIMEOUT must be a time such as 15s or 500ms, of at most 1h; got 15",
  },
  {
    environment: { CAIRN_WEBHOOK_RETRY_SCHEDULE: "1s,,2s" },
    message: "CAIRN_WEBHOOK_RETRY_SCHEDULE must be times such as 200ms,5s,5m,2h: at most 20, and 7d in all; got 1s,,2s",
  },
  { environment: { CAIRN_WEBHOOK_ALLOW_PRIVATE: "yes" }, message: "CAIRN_WEBHOOK_ALLOW_PRIVATE must be 0 or 1; got yes" },
  {
    environment: { CAIRN_WEBHOOK_TIMEOUT: "15" },
    message: "CAIRN_WEBHOOK_TIMEOUT must be a time such as 15s or 500ms, of at most 1h; got 15",
  },
  {
    environment: { CAIRN_WEBHOOK_RETRY_SCHEDULE: "5s;1m" },
    message: "CAIRN_WEBHOOK_RETRY_SCHEDULE must be times such as 200ms,5s,5m,2h: at most 20, and 7d in all; got 5s;1m",
  },
  { environment: { CAIRN_METRICS: "yes" }, message: "CAIRN_METRICS must be one of open, key; got yes" },
  { args: ["--metrics", "none"], message: "--metrics must be one of open, key; got none" },
  { environment: { CAIRN_SIMD: "avx" }, message: "CAIRN_SIMD must be one of v4, v3, sse; got avx" },
  { environment: { CAIRN_GRAPH_FROM: "many" }, message: "CAIRN_GRAPH_FROM must be a number from 0 to 999999999; got many" },
  { environment: { CAIRN_GRAPH_FROM: "-1" }, message: "CAIRN_GRAPH_FROM must be a number from 0 to 999999999; got -1" },
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
    expect(() => readConfig([], { CAIRN_API_KEY: key })).toThrow(new UsageError("CAIRN_API_KEY must be crn_ and 24 letters or digits"));
  });
}

test("what is wrong with the provider's address or key is said, and the key is not", () => {
  expect(() => readConfig([], { CAIRN_EMBEDDING_BASE_URL: "ftp://x" })).toThrow(/^CAIRN_EMBEDDING_BASE_URL cannot be used\. .+/);
  expect(() => readConfig([], { CAIRN_EMBEDDING_API_KEY: "se\ncret" })).toThrow(
    /^CAIRN_EMBEDDING_API_KEY cannot be used\. (?!.*se\ncret).+/s,
  );
});

test("commands of their own may know other flags", () => {
  expect(parseFlags(["--name", "n"], [{ flag: "name" }])).toEqual({ name: "n" });
  expect(() => parseFlags(["--name="], [{ flag: "name" }])).toThrow(new UsageError("--name must not be empty"));
  expect(() => parseFlags(["--port", "1"], [{ flag: "name" }])).toThrow(UsageError);
});

test("a secret has no flag, which everyone on the machine could read", () => {
  const flags = Object.values(OPTIONS).map(({ flag }) => flag as string);
  expect(flags.filter((flag) => /key|secret|token|password/.test(flag) && !flag.startsWith("tls-"))).toEqual([]);
  expect(Object.keys(VARIABLES)).toContain("CAIRN_API_KEY");
});

test("every flag has the variable of the same name", () => {
  for (const { flag, variable } of Object.values(OPTIONS))
    expect(variable as string).toBe(`CAIRN_${flag.toUpperCase().replaceAll("-", "_")}`);
});
