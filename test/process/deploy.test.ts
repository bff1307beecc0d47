/**
 * What an operator installs: the systemd unit, the Dockerfile and the compose file. Neither systemd nor an engine for containers is needed here:
 * the files are read, held against the product, and what they say of it is done with the executable.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { STOP_SECONDS } from "../../src/cli/serve.ts";
import { readConfig } from "../../src/config.ts";
import { SERVER_OPTIONS } from "../../src/http/server-options.ts";
import { CACHE_BYTES_MAX, LIMITS } from "../../src/lib/limits.ts";
import { SETTINGS, START_SETTINGS, type Setting } from "../../src/settings/schema.ts";
import { buildBinary } from "../support/binary.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until } from "../support/process.ts";
import { bindDatagrams } from "../support/unix-datagrams.ts";
import { onLinux, ownMounts } from "../support/platform.ts";

const it = onLinux("systemd, and mounts of a process's own");

const ROOT = join(import.meta.dir, "../..");
const UNIT = join(ROOT, "scripts/deploy/cairn.service");
const DOCKERFILE = join(ROOT, "scripts/deploy/Dockerfile");
const COMPOSE = join(ROOT, "scripts/deploy/compose.yaml");

const VARIABLE_NAMES = Object.values<Setting>({ ...START_SETTINGS, ...SETTINGS }).map(({ variable }) => variable ?? "");
const linesOf = (path: string) =>
  readFileSync(path, "utf8")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));

type Directive = { section: string; name: string; value: string };

function directivesOf(path: string): Directive[] {
  let section = "";
  return linesOf(path).flatMap((line) => {
    const [, heading] = /^\[(\w+)\]$/.exec(line) ?? [];
    if (heading !== undefined) {
      section = heading;
      return [];
    }
    const [, name = "", value = ""] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name === "") throw new Error(`neither a section nor a directive: ${line}`);
    return [{ section, name, value }];
  });
}

const unit = directivesOf(UNIT);
const said = (name: string) => unit.filter((directive) => directive.name === name).map(({ value }) => value);
const environmentOf = (assignments: readonly string[]) =>
  Object.fromEntries(assignments.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]));
const namesOfOthers = (environment: object) => Object.keys(environment).filter((name) => !VARIABLE_NAMES.includes(name));

const ALLOCATOR_VARIABLES = ["MIMALLOC_PURGE_DELAY", "MIMALLOC_PURGE_HOLES_MIN_INTERVAL"];

test("the systemd unit has only directives that systemd knows in their section", () => {
  let section = "";
  const known = new Set(
    linesOf(join(ROOT, "test/support/systemd-directives.txt")).flatMap((line) => {
      if (line.startsWith("[")) section = line.slice(1, -1);
      return line.split(" ").map((name) => `${section} ${name}`);
    }),
  );
  expect(known.size).toBeGreaterThan(300);
  expect(unit.filter(({ section, name }) => !known.has(`${section} ${name}`))).toEqual([]);
  expect([...new Set(unit.map(({ section }) => section))]).toEqual(["Unit", "Service", "Install"]);
});

test("the unit starts a command that there is, with variables that there are, in the directory that systemd makes for it", () => {
  const environment = environmentOf(said("Environment"));
  const [executable, command, ...args] = said("ExecStart").join(" ").split(" ");
  expect({ executable, command, others: namesOfOthers(environment) }).toEqual({
    executable: "/usr/local/bin/cairn",
    command: "serve",
    others: ALLOCATOR_VARIABLES,
  });
  expect(readConfig(args, environment)).toMatchObject({
    host: "127.0.0.1",
    port: 8700,
    dataDirectory: `/var/lib/${said("StateDirectory").join()}`,
  });
  expect([said("StateDirectoryMode"), said("UMask"), said("Type")]).toEqual([["0700"], ["0077"], ["notify"]]);
});

test("unit and container have the allocator give memory back as seldom as they say", async () => {
  for (const assignments of [said("Environment"), inFinal("ENV").join(" ").split(" ")]) {
    const environment = Object.fromEntries(
      Object.entries(environmentOf(assignments)).filter(([name]) => ALLOCATOR_VARIABLES.includes(name)),
    );
    const { stderr } = await runCairn(["version"], { environment: { MIMALLOC_VERBOSE: "1", ...environment } });
    const known = ["purge_delay", "purge_holes_min_interval"].map((name) => new RegExp(`'${name}': (\\d+)`).exec(stderr)?.[1]);
    expect(known).toEqual(["1000", "5000"]);
  }
});

test("the unit waits longer for a stop than a stop takes, for a migration as long as it takes, and does not try again what cannot be right", () => {
  expect(Number(said("TimeoutStopSec")[0])).toBeGreaterThanOrEqual(2 * STOP_SECONDS);
  expect([said("TimeoutStartSec"), said("Restart"), said("RestartPreventExitStatus")]).toEqual([["infinity"], ["on-failure"], ["2"]]);
});

test("the unit bounds the server's memory, by more than its caches, bodies and answers take", () => {
  const [, gigabytes] = /^(\d+)G$/.exec(said("MemoryMax").join()) ?? [];
  const bounded = Object.values(CACHE_BYTES_MAX).reduce((sum, bytes) => sum + bytes, LIMITS.arrivingBytesMax + LIMITS.unsentBytesMax);
  expect(Number(gigabytes) * 2 ** 30).toBeGreaterThan(4 * bounded);
});

test("the unit takes every right away that a service can do without, but not those that it needs", () => {
  const off = ["CapabilityBoundingSet", "AmbientCapabilities"];
  const strict: Record<string, string> = {
    ProtectSystem: "strict",
    ProtectProc: "invisible",
    User: "cairn",
    LimitCORE: "0",
    SystemCallArchitectures: "native",
  };
  const yes =
    "NoNewPrivileges ProtectHome PrivateTmp PrivateDevices ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectClock " +
    "ProtectControlGroups ProtectHostname RestrictNamespaces RestrictRealtime RestrictSUIDSGID LockPersonality";
  const expected = [...off.map((name) => [name, ""]), ...Object.entries(strict), ...yes.split(" ").map((name) => [name, "yes"])];
  expect(expected.map(([name = ""]) => [name, said(name).join()])).toEqual(expected);
  // Code is compiled while it runs; the kind of processor is read from /proc; the native parts are mapped from the state directory.
  for (const name of ["MemoryDenyWriteExecute", "ProcSubset", "NoExecPaths"]) expect([name, said(name)]).toEqual([name, []]);
  expect(said("RestrictAddressFamilies").join(" ").split(" ").toSorted()).toEqual(["AF_INET", "AF_INET6", "AF_UNIX"]);
});

it("systemd is told when the server is ready and when it stops, at a path and at an abstract name", async () => {
  using directory = scratchDirectory();
  const sockets = [directory.at("notify"), `\0cairn-test-${process.pid}`];
  for (const name of sockets) {
    using systemd = bindDatagrams(name);
    const environment = { NOTIFY_SOCKET: name.replace("\0", "@") };
    await using server = await startProcess({ dataDirectory: directory.at("data"), environment });
    expect(await until("systemd to be told", () => systemd.receive())).toBe("READY=1\n");
    expect((await server.get("/health/ready")).status).toBe(200);
    expect(systemd.receive()).toBeUndefined();
    expect(await server.stop()).toBe(0);
    expect([systemd.receive(), systemd.receive()]).toEqual(["STOPPING=1\n", undefined]);
  }
});

it("a server that systemd cannot be told of says so in its log, and serves", async () => {
  using directory = scratchDirectory();
  const socket = directory.at("nobody");
  await using server = await startProcess({
    dataDirectory: directory.at("data"),
    environment: { NOTIFY_SOCKET: socket },
  });
  expect((await server.get("/health/ready")).status).toBe(200);
  expect(await server.stop()).toBe(0);
  expect(server.logged("could not notify systemd")).toMatchObject([
    { level: "warn", state: "READY=1", reason: `Error: ${socket} takes no message` },
    { level: "warn", state: "STOPPING=1" },
  ]);
});

it("a user without rights, on a disk that only the data directory of can be written to, is served, searches and stops in order", async () => {
  using directory = scratchDirectory();
  chmodSync(directory.path, 0o755);
  const [dataDirectory, executable] = [directory.at("data"), directory.at("cairn")];
  mkdirSync(dataDirectory, { mode: 0o700 });
  copyFileSync(await buildBinary(), executable);
  const command = ownMounts("a disk that only the data directory of can be written to");
  const asRoot = process.geteuid?.() === 0;
  if (asRoot) chownSync(dataDirectory, 10001, 10001);
  // Nothing else can be written to: not /tmp, not the memory that is shared as files.
  const mounts = `mount --bind "${dataDirectory}" "${dataDirectory}" && mount -o remount,bind,ro / && mount -t tmpfs -o ro tmpfs /dev/shm`;
  const rights = asRoot ? "setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all" : "";
  const script = `${command === undefined ? "" : `${mounts} && `}umask 077 && cd / && exec ${rights} "${executable}" "$@"`;
  await using server = await startProcess({ dataDirectory, through: [...(command ?? []), "sh", "-c", script] });
  const session = await server.createSession();
  const contents = Array.from({ length: 120 }, (_, number) => `Parcel ${number} waits at counter ${number * 7}.`);
  await Promise.all(contents.map((content) => server.addMemory(session.id, content)));
  expect((await server.ok(server.post("/v1/memory/search", { query: "parcel", limit: 3 }))).data).toHaveLength(3);
  expect(await server.stop()).toBe(0);
  expect(server.stderr).not.toMatch(/"level":"(warn|error)"/);
  const native = readdirSync(join(dataDirectory, ".native"));
  expect(native.filter((name) => /^(lmdb|hnsw-\w+)-[0-9a-f]{16}\.node$/.test(name))).toHaveLength(2);
  expect(statSync(join(dataDirectory, "store/data.mdb")).uid).toBe(asRoot ? 10001 : (process.geteuid?.() ?? -1));
});

interface Instruction {
  name: string;
  value: string;
}

interface Stage {
  image: string;
  as: string | undefined;
  instructions: Instruction[];
}

/** The stages of the Dockerfile, arguments filled in. */
function stages(): Stage[] {
  const found: Stage[] = [];
  const values: Record<string, string> = {};
  for (const line of linesOf(DOCKERFILE)) {
    const [, name = "", value = ""] = /^([A-Z]+) +(.*)$/.exec(line) ?? [];
    if (name === "ARG" && found.length === 0) Object.assign(values, environmentOf([value]));
    else if (name === "FROM") {
      const [, image = "", as] = /^(\S+)(?: AS (\S+))?$/.exec(value) ?? [];
      found.push({ image: image.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => values[variable] ?? ""), as, instructions: [] });
    } else if (name === "") throw new Error(`no instruction: ${line}`);
    else found.at(-1)?.instructions.push({ name, value: value.replaceAll(/ +/g, " ").trim() });
  }
  return found;
}

const [build, final] = stages() as [Stage, Stage];
const inFinal = (name: string) => final.instructions.filter((instruction) => instruction.name === name).map(({ value }) => value);
const copied = ({ instructions }: Stage) =>
  instructions.flatMap(({ name, value }) => (name === "COPY" && !value.startsWith("--from=") ? value.split(" ").slice(0, -1) : []));

test("the Dockerfile builds in one stage and leaves all of it behind in another, of the same slim Debian, but the executable and the licences", () => {
  expect(stages().map(({ image, as }) => ({ image, as }))).toEqual([
    { image: "node:24-trixie-slim", as: "build" },
    { image: "debian:trixie-slim", as: undefined },
  ]);
  expect(inFinal("COPY")).toEqual(["LICENSE NOTICE /usr/share/doc/cairn/", "--from=build /build/dist/cairn /usr/local/bin/cairn"]);
  expect(inFinal("ADD")).toEqual([]);
  const known = ["RUN", "COPY", "WORKDIR", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"];
  expect([build, final].flatMap(({ instructions }) => instructions).filter(({ name }) => !known.includes(name))).toEqual([]);
});

test("what the Dockerfile copies is there, is let through by its .dockerignore, and is all that the executable is built from", () => {
  const [first, ...let_through] = linesOf(`${DOCKERFILE}.dockerignore`);
  expect(first).toBe("*");
  expect([...copied(build), ...copied(final)].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const wanted = new Set([...copied(build), ...copied(final)].filter((path) => !path.endsWith("/")));
  expect(let_through.toSorted()).toEqual([...wanted].map((path) => `!${path}`).toSorted());
  const [, list = ""] = /^const SOURCES = \[([^\]]*)\];/m.exec(readFileSync(join(ROOT, "scripts/build.ts"), "utf8")) ?? [];
  const sources = Array.from(list.matchAll(/"([^"]+)"/g), (match) => match[1] as string);
  expect(sources.length).toBeGreaterThan(5);
  expect(sources.filter((source) => !copied(build).some((path) => source === path || source.startsWith(`${path}/`)))).toEqual([]);
  expect(build.instructions.at(-1)).toEqual({ name: "RUN", value: "scripts/build" });
});

test("the container runs as a user with no rights, on what it declares, and its variables are a configuration", () => {
  const environment = environmentOf(inFinal("ENV").join(" ").split(" "));
  expect(namesOfOthers(environment)).toEqual(ALLOCATOR_VARIABLES);
  expect(readConfig([], environment)).toMatchObject({
    host: "0.0.0.0",
    port: Number(inFinal("EXPOSE")[0]),
    dataDirectory: inFinal("VOLUME")[0],
  });
  const [user = ""] = inFinal("USER");
  expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  expect(inFinal("RUN")).toEqual([`install -d -m 0700 -o ${user.replace(":", " -g ")} /data`]);
  expect([inFinal("ENTRYPOINT"), inFinal("CMD")]).toEqual([['["cairn"]'], ['["serve"]']]);
});

test("the container's health check is a command that says of the container's own server that it is ready", async () => {
  using directory = scratchDirectory();
  // With what the example adds.
  const [example = ""] = /docker run [^\n]*\\\n[^\n]*/.exec(readFileSync(DOCKERFILE, "utf8")) ?? [];
  const added = environmentOf(Array.from(example.matchAll(/-e (\S+)/g), ([, variable = ""]) => variable));
  expect(Object.keys(added)).toEqual(["CAIRN_ALLOWED_HOSTS"]);
  const environment = { ...environmentOf(inFinal("ENV").join(" ").split(" ")), ...added };
  const [, command = "[]"] = /CMD (\[.*\])$/.exec(inFinal("HEALTHCHECK").join()) ?? [];
  const [executable, ...args] = JSON.parse(command) as string[];
  expect(executable).toBe("cairn");
  const within = { ...environment, CAIRN_PORT: "0", CAIRN_DATA_DIR: directory.path };
  await using server = await startProcess({ dataDirectory: directory.path, environment: within });
  const asked = await runCairn(args, { environment: { ...environment, CAIRN_PORT: new URL(server.address).port } });
  expect(asked).toEqual(succeeded("ready\n"));
  // In the container the data directory is the server's, which says where that listens.
  expect(await runCairn(args, { environment: within })).toEqual(succeeded("ready\n"));
  const rebound = await fetch(`${server.address.replace("0.0.0.0", "127.0.0.1")}/health`, { headers: { Host: "evil.example" } });
  expect(rebound.status).toBe(403);
});

interface ComposeService {
  image: string;
  environment?: Record<string, string>;
  volumes?: string[];
  depends_on?: Record<string, { condition: string }> | string[];
  stop_grace_period?: string;
  healthcheck?: { test: string[] };
  configs?: { source: string; target: string }[];
}

interface Compose {
  services: Record<string, ComposeService>;
  configs: Record<string, { content: string }>;
  volumes: Record<string, unknown>;
}

/** With its one variable filled in. */
const compose = Bun.YAML.parse(readFileSync(COMPOSE, "utf8").replaceAll(/\$\{CAIRN_DATABASE_PASSWORD:\?[^}]+\}/g, "secret")) as Compose;
const nodes = Object.entries(compose.services).filter(([, { image }]) => image === "cairn");
const PROXY_LINES = (compose.configs["proxy"]?.content ?? "").split("\n").map((line) => line.trim());
const secondsOf = (timeout: string) =>
  Number(PROXY_LINES.map((line) => /^timeout (\w+) (\d+)s$/.exec(line)).find((match) => match?.[1] === timeout)?.[2]);

test("the Cairns of the compose file share its database, by variables that there are, and write to no disk but their own /data", () => {
  const { database } = compose.services;
  expect(nodes).toHaveLength(2);
  for (const [, { environment = {}, volumes, depends_on, stop_grace_period }] of nodes) {
    expect(namesOfOthers(environment)).toEqual([]);
    const store = new URL(readConfig([], environment).database ?? "");
    expect({
      POSTGRES_USER: store.username,
      POSTGRES_PASSWORD: store.password,
      POSTGRES_DB: store.pathname.slice(1),
      POSTGRES_INITDB_ARGS: expect.stringContaining("--encoding=UTF8"),
    }).toEqual(database?.environment as never);
    expect(compose.services[store.hostname]).toBe(database);
    expect({ volumes, depends_on }).toEqual({
      volumes: inFinal("VOLUME"),
      depends_on: { [store.hostname]: { condition: "service_healthy" } },
    });
    expect(parseInt(stop_grace_period ?? "", 10)).toBeGreaterThanOrEqual(2 * STOP_SECONDS);
  }
  expect(database?.healthcheck?.test.slice(0, 2)).toEqual(["CMD", "pg_isready"]);
  const kept = (database?.volumes ?? []).map((volume) => volume.split(":")[0]);
  expect(kept).toEqual(Object.keys(compose.volumes));
});

test("the proxy of the compose file sends to every Cairn that says it is ready, and outwaits what a Cairn says nothing for", async () => {
  const [port] = inFinal("EXPOSE");
  const servers = PROXY_LINES.filter((line) => line.startsWith("server "));
  expect(servers).toEqual(nodes.map(([name]) => `server ${name} ${name}:${port}`));
  expect(compose.services["proxy"]).toMatchObject({ configs: [{ source: "proxy" }], depends_on: nodes.map(([name]) => name) });
  for (const timeout of ["client", "server"])
    expect(secondsOf(timeout)).toBeGreaterThan(Math.max(SERVER_OPTIONS.idleTimeout, LIMITS.eventCommentSeconds));
  const [, path = "", host = ""] = /^http-check send meth GET uri (\S+) ver HTTP\/1\.1 hdr Host (\S+)$/m.exec(PROXY_LINES.join("\n")) ?? [];
  const { CAIRN_ALLOWED_HOSTS = "" } = nodes[0]![1].environment ?? {};
  await using server = await startProcess({ environment: { CAIRN_ALLOWED_HOSTS } });
  expect((await fetch(`${server.address}${path}`, { headers: { Host: host } })).status).toBe(200);
  expect(path).toBe("/health/ready");
});

test("no file names a registry or one machine", () => {
  const text = [UNIT, DOCKERFILE, COMPOSE, `${DOCKERFILE}.dockerignore`].map((path) => readFileSync(path, "utf8")).join("\n");
  expect(text.match(/registry|https?:\/\/(?!127\.0\.0\.1)|\w+\.(com|org|io|dev|net)\b/gi)).toBeNull();
  const images = [...stages(), ...Object.values(compose.services)].map(({ image }) => image);
  expect(images.filter((image) => image !== "cairn" && !/^[a-z]+:[a-z0-9.-]+$/.test(image))).toEqual([]);
});
