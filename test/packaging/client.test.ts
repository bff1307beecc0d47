/**
 * The npm package of the client, installed into a directory of its own without a registry, on every runtime that is here.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { EdgeRuntime } from "edge-runtime";
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tarGz } from "../../scripts/packaging/archive.ts";
import manifest from "../../package.json";
import { clientPackage } from "../../scripts/packaging/client.ts";
import { npmRegistry } from "../support/npm-registry.ts";
import { openTab } from "../support/browser.ts";
import { inBrowser } from "../support/in-browser.ts";
import { CURL, DENO, isHere, needs, NODE } from "../support/platform.ts";
import { scratchDirectory, type Scratch } from "../support/process.ts";
import { startServer, type Server } from "../support/server.ts";

setDefaultTimeout(300_000);

const ROOT = join(import.meta.dir, "../..");
const INSTALL = Bun.which("npm") === null ? [process.execPath, "add"] : ["npm", "install", "--no-audit", "--no-fund"];
/** Nothing listens there: whatever is not in the package is missing. */
const NO_REGISTRY = "http://127.0.0.1:9/";
/** Of the client alone, minified and compressed: what it adds to a page. */
const GZIP_BYTES_MAX = 5_950;

const { peerDependencies: PEERS } = JSON.parse(Buffer.from(clientPackage("9.9.9").files[0]!.bytes).toString()) as {
  peerDependencies: Record<string, string>;
};
/** What projects that use the adapters have installed. */
const FRAMEWORKS = [...Object.keys(PEERS), "@langchain/langgraph", "@mastra/memory"];
const VERSIONS = manifest.devDependencies as Record<string, string>;

/** Says what a conversation has come to, in a module that runs anywhere. */
const CONVERSATION = `
export async function converse({ Cairn, CairnError, verifyWebhook }, apiKey, baseUrl) {
  const cairn = new Cairn({ apiKey, baseUrl });
  const { id } = await cairn.sessions.create({ agent_id: "support-bot" });
  for (let i = 0; i < 12; i++) await cairn.turns.add(id, { input: { type: "text", content: "Hello " + i }, output: { type: "text", content: "Hi." } });
  let turns = 0;
  for await (const turn of cairn.turns.list(id, { limit: 5 })) turns += turn.object === "turn" ? 1 : 0;
  const page = await cairn.turns.list(id, { limit: 5 });
  const error = await cairn.sessions.get("sess_000000000000").catch((error) => error);
  const events = cairn.events({ session_id: id }, { lastEventId: (await cairn.traces.list({ session_id: id, limit: 1 })).last_id });
  const next = events.next();
  await cairn.sessions.setState(id, { state: { text: "ü😀" } });
  const { action } = (await next).value;
  await events.return();
  const secret = "whsec_" + btoa("abcdefghijklmnopqrstuvwx");
  const headers = { "webhook-id": "evt_1", "webhook-timestamp": "1777777777", "webhook-signature": "v1,AAAA" };
  return {
    turns, page: page.data.length, action, state: (await cairn.sessions.state(id)).state,
    error: [error instanceof CairnError, error.code, error.status, error.message],
    forged: await verifyWebhook(secret, headers, "{}", 1777777777000),
  };
}
`;
const EXPECTED = {
  turns: 12,
  page: 5,
  action: "state.updated",
  state: { text: "ü😀" },
  error: [true, "session_not_found", 404, expect.any(String)],
  forged: false,
};

let directory: Scratch;
let server: Server;
let project: string;

beforeAll(async () => {
  directory = scratchDirectory();
  const { file, files } = clientPackage("9.9.9");
  writeFileSync(directory.at(file), tarGz(files, 1));
  project = directory.at("project");
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }\n');
  writeFileSync(join(project, "conversation.js"), CONVERSATION);
  writeFileSync(
    join(project, "main.js"),
    'import * as client from "cairn-client";\nimport { converse } from "./conversation.js";\n' +
      "const [key, url] = globalThis.Deno?.args ?? process.argv.slice(2);\nconsole.log(JSON.stringify(await converse(client, key, url)));\n",
  );
  const { code, stdout, stderr } = await run([...INSTALL, directory.at(file)]);
  expect({ code, output: code === 0 ? "" : stdout + stderr }).toEqual({ code: 0, output: "" });
  for (const name of FRAMEWORKS) {
    const link = join(project, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), link);
  }
  server = await startServer();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

async function run(command: readonly string[], cwd = project, changes: Record<string, string> = {}) {
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory.path,
    BUN_INSTALL_CACHE_DIR: directory.at("bun-cache"),
    npm_config_cache: directory.at("npm-cache"),
    npm_config_offline: "true",
    npm_config_registry: NO_REGISTRY,
    npm_config_update_notifier: "false",
    // Without a key of OpenAI the Agents SDK prints its traces.
    OPENAI_AGENTS_DISABLE_TRACING: "1",
    ...changes,
  };
  const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

const address = () => `http://127.0.0.1:${server.port}`;

const RUNTIMES = [
  { name: "Bun", command: [process.execPath], it: test },
  { name: "Node", command: ["node"], it: needs(NODE) },
  { name: "Deno", command: ["deno", "run", "--allow-net", "--node-modules-dir=manual", "--no-remote"], it: needs(DENO) },
];

for (const { name, command, it } of RUNTIMES) {
  it(`the installed package runs on ${name}`, async () => {
    const { code, stdout, stderr } = await run([...command, "main.js", server.cairn.key, address()]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual(EXPECTED);
  });
}

/** The package and what it is asked to do as one script without imports. */
async function bundle(entry: string): Promise<string> {
  const path = join(project, "entry.js");
  writeFileSync(path, entry);
  const { outputs } = await Bun.build({ entrypoints: [path], minify: true, target: "browser", format: "iife" });
  return (await outputs[0]?.text()) ?? "";
}

test("the installed package runs where there are only web APIs, as in workers at the edge", async () => {
  const script = await bundle(
    'import * as client from "cairn-client";\nimport { converse } from "./conversation.js";\nglobalThis.answer = (key, url) => converse(client, key, url);\n',
  );
  const runtime = new EdgeRuntime({ initialCode: script });
  expect(await runtime.evaluate(`answer(${JSON.stringify(server.cairn.key)}, ${JSON.stringify(address())})`)).toEqual(EXPECTED);
});

inBrowser("the installed package runs in a browser, on a page of another origin", async () => {
  const script = await bundle(
    'import * as client from "cairn-client";\nimport { converse } from "./conversation.js";\n' +
      "const [key, url] = location.hash.slice(1).split('&').map(decodeURIComponent);\n" +
      "converse(client, key, url).then((answer) => (globalThis.answer = answer), (error) => (globalThis.answer = String(error)));\n",
  );
  using pages = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(`<!doctype html><body><script>${script.replaceAll("</", "<\\/")}</script>`, {
        headers: { "Content-Type": "text/html; charset=utf-8" },
      }),
  });
  await using open = await startServer({ corsOrigins: [`http://127.0.0.1:${pages.port}`] });
  using tab = await openTab();
  await tab.go(
    `http://127.0.0.1:${pages.port}/#${encodeURIComponent(open.cairn.key)}&${encodeURIComponent(`http://127.0.0.1:${open.port}`)}`,
  );
  await tab.holds("globalThis.answer !== undefined");
  expect(await tab.run<unknown>("globalThis.answer")).toEqual(EXPECTED);
});

test(`the client adds at most ${GZIP_BYTES_MAX} bytes to a page`, async () => {
  const script = await bundle(
    'export { Cairn, CairnError, verifyWebhook } from "cairn-client";\nimport { Cairn } from "cairn-client";\nglobalThis.Cairn = Cairn;\n',
  );
  expect(Bun.gzipSync(Buffer.from(script)).length).toBeLessThan(GZIP_BYTES_MAX);
});

const examplesOf = (path: string) =>
  Array.from(readFileSync(join(ROOT, path), "utf8").matchAll(/```ts\n([\s\S]*?)```/g), ([, text = ""]) => text);
const EXAMPLES = examplesOf("src/client/README.md");
const ADAPTER_EXAMPLES = examplesOf("src/adapters/README.md");

/** Runs an example as it is printed, with this server's address and key. */
async function runExample(example: string, name: string) {
  const to = `apiKey: ${JSON.stringify(server.cairn.key)}, baseUrl: ${JSON.stringify(address())}`;
  writeFileSync(join(project, name), example.replace(', baseUrl: "http://127.0.0.1:8700"', "").replace('apiKey: "crn_…"', to));
  return run([process.execPath, name]);
}

test("the first conversation of its page works as it is printed", async () => {
  const [example = ""] = EXAMPLES;
  const printing = example.replace("console.log(state, memories, ", "console.log(JSON.stringify(state), memories[0].content, ");
  expect(await runExample(printing, "first.js")).toEqual({
    code: 0,
    stdout: '{"order":"A-17","step":1} The customer prefers e-mail to phone calls. 1\n',
    stderr: "",
  });
});

test("the examples of the README run as they are printed", async () => {
  const outputs = [];
  // Another example of the same server may have written the thread before.
  for (const [i, example] of examplesOf("README.md").entries())
    outputs.push(await runExample(example.replace("thread-1", "thread-of-the-readme"), `readme-${i}.ts`));
  expect(outputs).toEqual([
    { code: 0, stdout: "The customer prefers e-mail to phone calls.\n", stderr: "" },
    { code: 0, stdout: "undefined\n", stderr: "" },
  ]);
});

test("each example of its page that ends by itself runs as it is printed", async () => {
  for (const [i, example] of EXAMPLES.entries()) {
    // Events come until the loop is left.
    if (example.includes("cairn.events(")) continue;
    // What one pins would come first in the contexts of the others.
    const { code, stderr } = await runExample(example.replaceAll("user-42", `user-of-example-${i}`), `example-${i}.ts`);
    expect({ example, code, stderr }).toEqual({ example, code: 0, stderr: "" });
  }
});

for (const example of ADAPTER_EXAMPLES) {
  const [, name = ""] = /"cairn-client\/([\w-]+)"/.exec(example) ?? [];
  test(`the example of ${name} prints what it says`, async () => {
    const { code, stdout, stderr } = await runExample(example, `${name}.ts`);
    const said = Array.from(example.matchAll(/console\.log\(.*\/\/ (.+)$/gm), ([, text = ""]) => text);
    expect({ code, stderr, lines: stdout.trim().split("\n") }).toEqual({ code: 0, stderr: "", lines: said });
  });
}

test("the skill for agents has its form, fits into 2 KB, and its examples run", async () => {
  const skill = clientPackage("9.9.9").files.find(({ name }) => name === "package/skills/cairn/SKILL.md");
  const text = Buffer.from(skill?.bytes ?? "").toString();
  const [, name = "", description = ""] = /^---\nname: ([a-z-]+)\ndescription: (.+)\n---\n\n# Cairn\n/.exec(text) ?? [];
  expect([name, description.length > 0 && description.length <= 1024, Buffer.byteLength(text) <= 2_048]).toEqual(["cairn", true, true]);
  expect(await (await fetch(`${address()}/docs/guide/SKILL.md`)).text()).toBe(text);
  const [example = ""] = examplesOf("src/docs/skill/SKILL.md");
  expect(await runExample(example, "skill.ts")).toEqual({ code: 0, stdout: "1\n", stderr: "" });
  if (!isHere(CURL, "the commands of the skill for agents")) return;
  const [, commands = ""] = /```sh\n([\s\S]*?)```/.exec(text) ?? [];
  const { code, stdout } = await run(["sh", "-ec", commands], project, { CAIRN_URL: address(), CAIRN_API_KEY: server.cairn.key });
  expect([code, stdout.split("Ada prefers e-mail to phone calls.").length - 1]).toEqual([0, 2]);
});

test("there is an example of every adapter", () => {
  const adapters = Array.from(new Bun.Glob("*.ts").scanSync(join(ROOT, "src/adapters")), (name) => name.slice(0, -".ts".length));
  expect(adapters.toSorted()).toEqual(ADAPTER_EXAMPLES.map((text) => /"cairn-client\/([\w-]+)"/.exec(text)?.[1] ?? "").toSorted());
});

const TYPED_PROGRAM = `import { Cairn, CairnError, type Session, type Trace } from "cairn-client";
const cairn = new Cairn({ apiKey: "crn_…" });
interface MyState { step: number }
const state: MyState = { step: 1 };
export const session: Session = await cairn.sessions.create({ agent_id: "a", initial_state: state });
export const step: MyState = session.state as MyState;
const [, put] = await cairn.documents.batch([{ op: "pop", namespace: ["a"] }, { op: "put", namespace: ["a"], value: {} }]);
export const version: number = put.version;
for await (const turn of cairn.turns.list(session.id)) turn.input.content.trim();
for await (const trace of cairn.events()) (trace satisfies Trace).id.trim();
try { await cairn.health(); } catch (error) { if (error instanceof CairnError && error.code === "version_conflict") throw error; }
// @ts-expect-error There is no such field.
await cairn.sessions.create({ agent: "a" });
declare const visitor: { id: string } | undefined;
declare const cursor: string | undefined;
await cairn.memories.search({ query: "tea", limit: undefined, ...(visitor && { user_id: visitor.id }) });
await cairn.sessions.list({ user_id: "ada", starting_after: cursor });
// @ts-expect-error The memories of all users.
await cairn.memories.search({ query: "tea", user_id: visitor?.id });
// @ts-expect-error The sessions of all users.
cairn.sessions.list({ user_id: visitor?.id });
// @ts-expect-error There is no such filter.
cairn.sessions.list({ user: "ada" });
// @ts-expect-error The traces of all users.
cairn.events({ user_id: visitor?.id });
// @ts-expect-error A key for the records of all users.
cairn.keys.create({ user_id: visitor?.id });
// @ts-expect-error The documents of nobody.
cairn.documents.of({ user_id: visitor?.id });
// @ts-expect-error All documents.
cairn.documents.list(["orders"], { before: cursor });
// @ts-expect-error There is no such code.
new CairnError("", { code: "nonsense" });
`;

for (const resolution of ["--module nodenext", "--module esnext --moduleResolution bundler"]) {
  test(`its types fit its page, and refuse what the API does not know: ${resolution}`, async () => {
    const programs = [TYPED_PROGRAM, ...EXAMPLES].map((text, i) => {
      const name = `program-${i}.ts`;
      writeFileSync(join(project, name), text);
      return name;
    });
    const options =
      "--ignoreConfig --noEmit --strict --skipLibCheck false --target es2022 --lib es2022,dom,dom.asynciterable --types".split(" ");
    const compiler = [process.execPath, join(ROOT, "node_modules/.bin/tsc"), ...resolution.split(" "), ...options, ""];
    expect(await run([...compiler, ...programs])).toEqual({ code: 0, stdout: "", stderr: "" });
  });
}

for (const { name, command, it } of RUNTIMES.filter((runtime) => runtime.name !== "Deno")) {
  it(`each adapter loads with its framework on ${name}, in what the package names as its peers`, async () => {
    const { exports } = JSON.parse(readFileSync(join(project, "node_modules/cairn-client/package.json"), "utf8")) as {
      exports: Record<string, unknown>;
    };
    const entries = Object.keys(exports).filter((name) => name !== "./package.json");
    const program = `for (const entry of ${JSON.stringify(entries)}) console.log(Object.keys(await import(entry.replace(".", "cairn-client"))).length > 0);`;
    writeFileSync(join(project, "adapters.js"), program);
    const { code, stdout, stderr } = await run([...command, "adapters.js"]);
    expect({ code, stderr, lines: stdout.trim().split("\n") }).toEqual({ code: 0, stderr: "", lines: entries.map(() => "true") });
    expect(entries.length).toBeGreaterThan(4);
  });
}

/** Writes an archive of a package that has nothing but its name. @returns its path */
function archive(name: string, version: string): string {
  const path = directory.at(`${name.replaceAll("/", "-")}-${version}.tgz`);
  writeFileSync(path, tarGz([{ name: "package/package.json", bytes: Buffer.from(JSON.stringify({ name, version })) }], 1));
  return path;
}

for (const version of ["0.0.1", "99.0.0", "99.0.0-beta.1"]) {
  test(`it installs beside frameworks of any version: ${version}`, async () => {
    const other = directory.at(`beside-${version}`);
    mkdirSync(other);
    writeFileSync(join(other, "package.json"), '{ "private": true }\n');
    // A registry has the versions that the adapters are tested with: npm compares with those.
    const registered = directory.at(`registry-${version}`);
    mkdirSync(registered);
    for (const name of Object.keys(PEERS)) renameSync(archive(name, VERSIONS[name]!), join(registered, `${name.replaceAll("/", "-")}.tgz`));
    using registry = await npmRegistry(registered);
    const env = { npm_config_offline: "false", npm_config_registry: registry.url };
    const archives = Object.keys(PEERS).map((name) => archive(name, version));
    for (const wanted of [archives, [directory.at("cairn-client-9.9.9.tgz")]]) {
      const { code, stdout, stderr } = await run([...INSTALL, ...wanted], other, env);
      expect({ code, output: code === 0 ? "" : stdout + stderr }).toEqual({ code: 0, output: "" });
    }
  });
}

test("the page of the adapters names the versions that they are tested with", () => {
  const page = readFileSync(join(ROOT, "src/adapters/README.md"), "utf8");
  expect(FRAMEWORKS.filter((name) => !page.includes(`\`${name}\` ${VERSIONS[name]}`))).toEqual([]);
});

test("the package names its entries, its licence and no dependency, and runs nothing when it is installed", () => {
  const { files } = clientPackage("9.9.9");
  const described = JSON.parse(Buffer.from(files[0]!.bytes).toString()) as Record<string, any>;
  expect(described).toMatchObject({ name: "cairn-client", version: "9.9.9", license: "Apache-2.0", type: "module" });
  expect(Object.keys(described)).not.toContainAnyValues(["dependencies", "scripts", "bin"]);
  const names = new Set(files.map(({ name }) => name));
  const entries = Object.values(described["exports"] as Record<string, string | Record<string, string>>).flatMap((entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry),
  );
  expect(entries.filter((entry) => !names.has(`package/${entry.slice(2)}`))).toEqual([]);
  expect([...names]).toContainValues(["package/LICENSE", "package/README.md"]);
  expect(Object.keys(described["peerDependencies"] as object)).toEqual(Object.keys(described["peerDependenciesMeta"] as object));
});
