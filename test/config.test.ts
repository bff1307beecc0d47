import { expect, test } from "bun:test";
import { OPTIONS, UsageError, VARIABLES, parseFlags, readConfig, type Config } from "../src/config.ts";

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
    nativeDirectory: undefined,
    simd: undefined,
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
  { name: "a directory for native parts", environment: { CAIRN_NATIVE_DIR: "/opt/n" }, config: { nativeDirectory: "/opt/n" } },
  { name: "no other variable", environment: { PORT: "1", HOST: "0.0.0.0", CAIRN_NOTHING: "x" }, config: { port: 8700, host: "127.0.0.1" } },
];

for (const { name, args = [], environment = {}, config } of read) {
  test(`the configuration takes ${name}`, () => {
    expect(readConfig(args, environment)).toMatchObject(config);
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
  { environment: { CAIRN_SIMD: "avx" }, message: "CAIRN_SIMD must be one of v4, v3, sse; got avx" },
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
