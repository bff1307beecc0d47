/**
 * What `scripts/release` makes: the same bytes each time, and files that say the truth about each other. The executables are
 * stand-ins here; `scripts/release --verify` tries the real ones.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonNames } from "../../scripts/packaging/python.ts";
import { changesOf, writeRelease, type Release } from "../../scripts/packaging/release.ts";
import { hostTarget, TARGET_NAMES } from "../../scripts/targets.ts";
import { SCHEMA_VERSION } from "../../src/storage/tables.ts";
import { version } from "../../package.json";
import { CLAUDE_CODE, CODEX } from "../support/npm-agents.ts";
import { block } from "../support/pages.ts";
import { CURL, needs, onLinux } from "../support/platform.ts";
import { scratchDirectory, type Scratch } from "../support/process.ts";
import { onlyLong } from "../support/rounds.ts";

const it = onLinux("sha256sum");

const ROOT = join(import.meta.dir, "../..");
const URL_OF_FILES = "https://cairn.example.com/releases/1";
const HOST = hostTarget();

let directory: Scratch;
let made: string;

/** A program that answers `version --native` as the executable does. */
const standIn = (target: string) => `#!/bin/sh
[ "$*" = "version --native" ] && [ -d "$(dirname "$CAIRN_NATIVE_DIR")" ] || exit 1
echo "cairn ${version} ${target}"
`;

function release(): Release {
  const executables = Object.fromEntries(TARGET_NAMES.map((target) => [target, directory.at(target)]));
  return { version, date: "2027-01-31", url: URL_OF_FILES, executables, python: pythonNames(version).map((name) => directory.at(name)) };
}

beforeAll(() => {
  directory = scratchDirectory();
  for (const target of TARGET_NAMES) writeFileSync(directory.at(target), standIn(target));
  for (const name of pythonNames(version)) writeFileSync(directory.at(name), name);
  made = directory.at("release");
  writeRelease(release(), made, 1);
});

afterAll(() => directory[Symbol.dispose]());

const read = (name: string) => readFileSync(join(made, name), "utf8");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const shaOf = (name: string) => sha256(readFileSync(join(made, name)));

test("made twice, from files with other times and modes, every file has the same bytes", () => {
  for (const target of TARGET_NAMES) {
    rmSync(directory.at(target));
    writeFileSync(directory.at(target), standIn(target), { mode: 0o600 });
  }
  const again = directory.at("again");
  writeRelease(release(), again, 1);
  expect(readdirSync(again)).toEqual(readdirSync(made));
  expect(readdirSync(made).filter((name) => sha256(readFileSync(join(again, name))) !== shaOf(name))).toEqual([]);
});

it("SHA256SUMS names every other file, in the form that sha256sum reads", () => {
  const { exitCode, stdout } = Bun.spawnSync(["sha256sum", "--check", "--strict", "SHA256SUMS"], { cwd: made });
  const names = readdirSync(made).filter((name) => name !== "SHA256SUMS");
  expect({ exitCode, lines: stdout.toString().trim().split("\n").toSorted() }).toEqual({
    exitCode: 0,
    lines: names.map((name) => `${name}: OK`).toSorted(),
  });
});

test("an archive unpacks into one directory with the executable, the licences and the README, and on Linux the systemd unit", () => {
  for (const target of TARGET_NAMES) {
    const name = `cairn-${version}-${target}`;
    expect(Bun.spawnSync(["tar", "-xzf", join(made, `${name}.tar.gz`), "-C", directory.path]).exitCode).toBe(0);
    const files = ["LICENSE", "NOTICE", "README.md", "cairn", ...(target.startsWith("linux") ? ["cairn.service"] : [])];
    expect(readdirSync(directory.at(name)).toSorted()).toEqual(files);
    expect(readFileSync(directory.at(`${name}/cairn`), "utf8")).toBe(standIn(target));
    expect(statSync(directory.at(`${name}/cairn`)).mode & 0o777).toBe(0o755);
    // What it links to is not in the archive.
    expect(Array.from(readFileSync(directory.at(`${name}/README.md`), "utf8").matchAll(/\]\((?!https?:)[^)]*\)/g), String)).toEqual([]);
    expect(readFileSync(directory.at(`${name}/LICENSE`))).toEqual(readFileSync(join(ROOT, "LICENSE")));
  }
});

/** Unpacks the marketplace with the plugin. @returns its directory */
function plugins(): string {
  expect(Bun.spawnSync(["tar", "-xzf", join(made, `cairn-plugins-${version}.tar.gz`), "-C", directory.path]).exitCode).toBe(0);
  return directory.at("cairn-plugins");
}

test("the plugin has the hooks of cairn setup for each agent, names no path, and every catalogue finds it", () => {
  const at = plugins();
  const json = (path: string) => JSON.parse(readFileSync(join(at, path), "utf8"));
  for (const [catalogue, source] of [
    [".claude-plugin", "./plugins/cairn"],
    [".cursor-plugin", "plugins/cairn"],
    [".agents/plugins", { source: "local", path: "./plugins/cairn" }],
  ] as const)
    expect(json(`${catalogue}/marketplace.json`)).toMatchObject({ name: "cairn", plugins: [{ name: "cairn", source }] });
  for (const [agent, hooks, events, command] of [
    ["claude", "hooks/hooks.json", "SessionStart UserPromptSubmit Stop PreCompact SessionEnd", "cairn hook"],
    ["codex", "hooks/codex.json", "SessionStart UserPromptSubmit Stop PreCompact SessionEnd", "cairn hook codex"],
    ["cursor", "hooks/cursor.json", "sessionStart beforeSubmitPrompt afterAgentResponse stop preCompact sessionEnd", "cairn hook cursor"],
  ] as const) {
    const plugin = json(`plugins/cairn/.${agent}-plugin/plugin.json`);
    expect(plugin).toMatchObject({ name: "cairn", version });
    // Claude Code reads these without being named, and refuses a name for them.
    if (agent !== "claude") expect([join(plugin.hooks), join(plugin.mcpServers)]).toEqual([hooks, ".mcp.json"]);
    const entered = json(`plugins/cairn/${hooks}`).hooks;
    expect(Object.keys(entered)).toEqual(events.split(" "));
    for (const [handler] of Object.values<any>(entered)) expect((handler.hooks?.[0] ?? handler).command).toBe(command);
  }
  expect(json("plugins/cairn/.mcp.json")).toEqual({ mcpServers: { cairn: { command: "cairn", args: ["mcp", "--hooks"] } } });
});

onlyLong(CLAUDE_CODE)(
  "Claude Code finds no fault in the marketplace and the plugin, and installs it with its hooks and server",
  () => {
    const at = plugins();
    const claude = (...args: string[]) => {
      const { exitCode, stdout, stderr } = Bun.spawnSync([CLAUDE_CODE.command, ...args], {
        env: { PATH: process.env["PATH"], HOME: directory.at("home") },
        stdin: "ignore",
      });
      return { exitCode, said: stdout.toString() + stderr.toString() };
    };
    expect(claude("plugin", "validate", at)).toEqual({ exitCode: 0, said: expect.not.stringMatching(/warning|error/i) });
    const profile = ["--profile", "directory"];
    expect(claude("plugin", "validate", join(at, "plugins/cairn"), ...profile)).toEqual({
      exitCode: 0,
      said: expect.stringMatching(/hooks: SessionEnd command "cairn hook"\n.*mcpServers: cairn stdio cairn /),
    });
    for (const line of [`marketplace add ${at}`, "install cairn@cairn"])
      expect(claude("plugin", ...line.split(" "))).toMatchObject({ exitCode: 0 });
    expect(claude("plugin", "list").said).toMatch(/cairn@cairn[^]*enabled/);
  },
  120_000,
);

onlyLong(CODEX)(
  "Codex takes the marketplace",
  () => {
    const env = { PATH: process.env["PATH"], HOME: directory.at("home") };
    mkdirSync(directory.at("home"), { recursive: true });
    const { exitCode, stderr } = Bun.spawnSync([CODEX.command, "plugin", "marketplace", "add", plugins()], { env, stdin: "ignore" });
    expect({ exitCode, stderr: stderr.toString() }).toMatchObject({ exitCode: 0 });
  },
  120_000,
);

test("the wheel of the Python client and its sources are part of it as they were built", () => {
  expect(pythonNames(version).map(read)).toEqual(pythonNames(version));
});

test("latest.json says the version, its day, the schema of its store and the archives with their sums", () => {
  const archives = Object.fromEntries(
    TARGET_NAMES.map((target) => {
      const file = `cairn-${version}-${target}.tar.gz`;
      return [target, { file, sha256: shaOf(file) }];
    }),
  );
  expect(JSON.parse(read("latest.json"))).toEqual({ version, date: "2027-01-31", schema: SCHEMA_VERSION, archives });
});

test("the formula and the Dockerfile name archives of the release, each with its sum, and nothing is left to fill in", () => {
  const named = (file: string, pattern: RegExp) => Array.from(read(file).matchAll(pattern), ([, target, sha = ""]) => [target, sha]);
  const expected = (targets: readonly string[]) => targets.map((target) => [target, shaOf(`cairn-${version}-${target}.tar.gz`)]);
  const formula = new RegExp(`url "${URL_OF_FILES}/cairn-${version}-([a-z0-9-]+)\\.tar\\.gz"\\s+sha256 "([0-9a-f]{64})"`, "g");
  expect(named("cairn.rb", formula)).toEqual(expected(["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"]));
  const added = Array.from(
    read("Dockerfile").matchAll(/^ADD --checksum=sha256:([0-9a-f]{64}) \S+-(linux-\w+)\.tar\.gz /gm),
    ([, sha, target]) => [target, sha],
  );
  expect(added).toEqual(expected(["linux-x64", "linux-arm64"]));
  for (const name of ["cairn.rb", "Dockerfile", "install.sh", "release-notes.md"])
    expect(read(name).match(/@[A-Z][A-Z0-9:a-z-]*@/g)).toBeNull();
});

test("the released image runs as the one that is built from source does", () => {
  const last = (text: string) =>
    text
      .slice(text.lastIndexOf("\nFROM "))
      .split("\n")
      .filter((line) => !/^(FROM|COPY|$)/.test(line));
  expect(last(read("Dockerfile"))).toEqual(last(readFileSync(join(ROOT, "scripts/deploy/Dockerfile"), "utf8")));
});

test("the bill of materials has all that NOTICE names, with versions, licences and the hashes of the lock file", () => {
  const { specVersion, components, serialNumber } = JSON.parse(read("sbom.cdx.json")) as {
    specVersion: string;
    serialNumber: string;
    components: { name: string; version?: string; licenses: unknown[]; hashes?: { content: string }[]; purl?: string }[];
  };
  expect([specVersion, serialNumber]).toEqual(["1.6", expect.stringMatching(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)]);
  const notice = readFileSync(join(ROOT, "NOTICE"), "utf8");
  const packages = Array.from(notice.matchAll(/^(\S+) \(npm; (.+)\)$/gm), ([, name = "", id]) => ({
    name,
    licenses: [{ license: { id } }],
  }));
  expect(packages.length).toBeGreaterThan(25);
  for (const entry of packages) expect(components).toContainEqual(expect.objectContaining(entry));
  const lock = readFileSync(join(ROOT, "bun.lock"), "utf8");
  for (const { name, version: own, hashes, purl } of components.filter((component) => component.purl !== undefined)) {
    expect(purl).toBe(`pkg:npm/${name.replace("@", "%40")}@${own}`);
    expect(lock).toContain(`sha512-${Buffer.from(hashes?.[0]?.content ?? "", "hex").toString("base64")}`);
    expect(lock).toContain(`"${name}@${own}"`);
  }
  for (const source of ["LMDB", "LZ4", "hnswlib", "node-addon-api", "libc++, libc++abi, libunwind and compiler-rt of LLVM"])
    expect(components.map(({ name }) => name)).toContain(source);
});

test("the release notes are the version's section of the changelog, and what each executable needs", () => {
  const changelog = "# Changelog\n\n## 1.1.0 (2027-02-01)\n\nNew.\n\n### More\n\n- Else.\n\n## 1.0.0\n\nOld.\n";
  expect(changesOf(changelog, "1.1.0")).toBe("New.\n\n### More\n\n- Else.");
  expect(changesOf(changelog, "1.0.0")).toBe("Old.");
  expect(changesOf(changelog, "1.0")).toBeUndefined();
  const notes = read("release-notes.md");
  expect(notes).toContain(`# Cairn ${version}\n`);
  expect(TARGET_NAMES.filter((target) => !notes.includes(`| \`${target}\` | `))).toEqual([]);
});

/** Runs install.sh with a shell against a server on loopback that has the files of a directory. */
async function install(shell: string, files: string, extra: Record<string, string> = {}) {
  using server = serving(files);
  using home = scratchDirectory();
  const env = { PATH: process.env["PATH"] ?? "", HOME: home.path, CAIRN_RELEASE_URL: server.url, ...extra };
  const child = Bun.spawn([shell, join(files, "install.sh")], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  const installed = home.at(".local/bin/cairn");
  return {
    code,
    stdout: stdout.replaceAll(home.path, "~"),
    stderr: stderr.replaceAll(home.path, "~"),
    left: readdirSync(home.path, { recursive: true, encoding: "utf8" }).toSorted(),
    executable: existsSync(installed) ? readFileSync(installed, "utf8") : undefined,
  };
}

function serving(files: string) {
  const fetch = ({ url }: Request) => {
    const path = join(files, new URL(url).pathname);
    return existsSync(path) ? new Response(Bun.file(path)) : new Response("", { status: 404 });
  };
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

for (const shell of ["sh", "bash"]) {
  needs(CURL)(`install.sh installs the executable for this machine, and nothing else (${shell})`, async () => {
    expect(await install(shell, made)).toEqual({
      code: 0,
      stdout: `Downloading Cairn ${version} for ${HOST} ...\nInstalled cairn ${version} ${HOST} as ~/.local/bin/cairn\nStart it: ~/.local/bin/cairn serve\n`,
      stderr: "",
      left: [".local", ".local/bin", ".local/bin/cairn"],
      executable: standIn(HOST),
    });
  });
}

/** The commands of the page on installing, by what they begin with. */
function installCommands(beginning: string): string {
  return block("src/docs/operate/install.md", "sh", beginning);
}

needs(CURL)("what the page on installing says installs: with install.sh, and by hand", async () => {
  using server = serving(made);
  for (const { commands, executable } of [
    { commands: installCommands('curl -fsSL "$RELEASE/install.sh"'), executable: ".local/bin/cairn" },
    { commands: installCommands("curl -fsSL --remote-name-all"), executable: `cairn-${version}-${HOST}/cairn` },
  ]) {
    using home = scratchDirectory();
    const variables = { RELEASE: server.url, CAIRN_RELEASE_URL: server.url, VERSION: version, TARGET: HOST };
    const child = Bun.spawn(["sh", "-euc", commands], {
      cwd: home.path,
      env: { PATH: process.env["PATH"] ?? "", HOME: home.path, ...variables },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    expect({ code, stderr, installed: readFileSync(home.at(executable), "utf8") }).toEqual({
      code: 0,
      stderr: "",
      installed: standIn(HOST),
    });
  }
});

/** A copy of the release in which the archive for this machine is another. */
function changed(name: string, change: (archive: Buffer) => Buffer | undefined): string {
  const copy = directory.at(name);
  mkdirSync(copy);
  const archive = `cairn-${version}-${HOST}.tar.gz`;
  symlinkSync(join(made, "install.sh"), join(copy, "install.sh"));
  const bytes = change(readFileSync(join(made, archive)));
  if (bytes !== undefined) writeFileSync(join(copy, archive), bytes);
  return copy;
}

needs(CURL)(
  "install.sh refuses an archive with a changed byte, one that was cut short, and one that is not there, and leaves nothing",
  async () => {
    const flip = (archive: Buffer) => {
      archive[archive.length - 20]! ^= 1;
      return archive;
    };
    for (const [name, change] of Object.entries({ flipped: flip, short: (archive: Buffer) => archive.subarray(0, 100) })) {
      const { code, stderr, left } = await install("sh", changed(name, change));
      expect({ code, stderr, left }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          /^What was downloaded is not Cairn \S+: its SHA-256 is [0-9a-f]{64}, not [0-9a-f]{64}\. Nothing was installed\.\n$/,
        ),
        left: [".local", ".local/bin"],
      });
    }
    expect(
      await install(
        "sh",
        changed("absent", () => undefined),
      ),
    ).toMatchObject({ code: 1, stderr: expect.stringContaining("The download failed: http://127.0.0.1:"), left: [".local", ".local/bin"] });
  },
);

needs(CURL)("install.sh keeps the executable that was there when the new one does not start here, and says why", async () => {
  const broken = directory.at("broken");
  const executables = { [HOST]: directory.at("does-not-start") };
  writeFileSync(directory.at("does-not-start"), "#!/bin/sh\necho 'GLIBC_2.99 not found' >&2\nexit 1\n");
  writeRelease({ ...release(), executables }, broken, 1);
  using target = scratchDirectory();
  writeFileSync(target.at("cairn"), "the old one");
  const { code, stderr } = await install("sh", broken, { CAIRN_INSTALL_DIR: target.path });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "It does not start here: GLIBC_2.99 not found\nNothing was installed.\n" });
  expect(readdirSync(target.path)).toEqual(["cairn"]);
  expect(readFileSync(target.at("cairn"), "utf8")).toBe("the old one");
});

test("install.sh names a system that there is no Cairn for", async () => {
  using bin = scratchDirectory();
  writeFileSync(bin.at("uname"), '#!/bin/sh\n[ "$1" = -s ] && echo FreeBSD || echo riscv64\n');
  chmodSync(bin.at("uname"), 0o755);
  const { code, stderr } = await install("sh", made, { PATH: `${bin.path}:${process.env["PATH"]}` });
  expect({ code, stderr }).toEqual({ code: 1, stderr: "There is no Cairn for FreeBSD. On Windows, use WSL 2.\n" });
});
