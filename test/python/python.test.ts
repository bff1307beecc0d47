/**
 * The client for Python: what is made of it is current, and its own tests pass, which need no package, or those of `scripts/python`.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPython } from "../../scripts/packaging/python.ts";
import { pythonClient } from "../../scripts/python-client.ts";
import { DOCUMENT_METHODS } from "../../scripts/python-names.ts";
import { exportLines } from "../../src/operations/export.ts";
import { signatureHeaders } from "../../src/webhooks/signature.ts";
import { DOCUMENT } from "../support/documented.ts";
import { block, blocksOf, pageText, ROOT } from "../support/pages.ts";
import { needs, PYTHON_3_11, PYTHON_PACKAGES, pythonOf, pythonPackagesOf } from "../support/platform.ts";
import { longRounds } from "../support/rounds.ts";
import { startServer, type Server } from "../support/server.ts";

/** Each of its tests starts processes that do as much as a test file. */
const MANY_PROCESSES_MS = 1_800_000;
/** Besides the `python3` of the machine, which has all the tests. */
const OTHER_VERSIONS = ["3.12", "3.13", "3.14"];
const README = "src/python/README.md";
const SECRET = "whsec_b2xkb2xkb2xkb2xkb2xkb2xk";
const SIGNED = { id: "evt_1", timestampSeconds: 1_777_777_777, body: '{"data":"ü😀"}' };

let server: Server;
let directory: string;

beforeAll(async () => {
  server = await startServer();
  directory = mkdtempSync(join(tmpdir(), "cairn-python-"));
});

afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await server[Symbol.asyncDispose]();
});

/** Runs a command, which must succeed, with the server and a signed delivery. */
async function run(command: readonly string[], environment: Record<string, string> = {}, cwd = ROOT): Promise<string> {
  const headers = signatureHeaders([SECRET], SIGNED);
  const delivery = Object.entries(headers).map(([name, value]) => [name.replace("webhook-", "delivery_").toUpperCase(), value]);
  const child = Bun.spawn([...command], {
    cwd,
    env: {
      ...process.env,
      CAIRN_API_KEY: server.cairn.key,
      CAIRN_URL: `http://127.0.0.1:${server.port}`,
      DELIVERY_SECRET: SECRET,
      DELIVERY_BODY: SIGNED.body,
      PYTHONDONTWRITEBYTECODE: "1",
      ...Object.fromEntries(delivery),
      ...environment,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect({ code, said: code === 0 ? "" : output + errors }).toEqual({ code: 0, said: "" });
  return output;
}

const python = (...args: readonly string[]) => [join(ROOT, "scripts/python"), ...args];
const pytest = (folder: string, environment: Record<string, string> = {}) =>
  run(python("-m", "pytest", "-c", "test/python/pytest.ini", join(ROOT, "test/python", folder)), {
    PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1",
    ...environment,
  });

/** Compiles the package and runs the tests that need no other. */
async function testCore(executable: string): Promise<void> {
  const folder = join(ROOT, "src/python");
  await run([executable, "-c", `import compileall, sys; sys.exit(not compileall.compile_dir(${JSON.stringify(folder)}, quiet=1))`], {
    PYTHONPYCACHEPREFIX: directory,
  });
  await run([executable, "-m", "unittest", "discover", "-s", join(ROOT, "test/python/core")], { PYTHONPATH: folder });
}

test("what is made in src/python/cairn_client is what the OpenAPI document says: scripts/test --fix writes it", () => {
  for (const [name, text] of Object.entries(pythonClient()))
    expect({ name, text: readFileSync(join(ROOT, "src/python/cairn_client", name), "utf8") }).toEqual({ name, text });
});

test("each field of an operation of documents is one of a method of the Python client", () => {
  const { schemas } = (DOCUMENT as unknown as { components: { schemas: Record<string, { properties?: Record<string, unknown> }> } })
    .components;
  for (const [kind, name] of [
    ["batch", "DocumentChange"],
    ["query", "DocumentQueryOperation"],
  ]) {
    const taken = DOCUMENT_METHODS.filter((one) => one.kind === kind).flatMap(({ takes, more }) => [...takes, ...more]);
    expect(Object.keys(schemas[name ?? ""]?.properties ?? {}).filter((field) => field !== "op" && !taken.includes(field))).toEqual([]);
  }
});

needs(PYTHON_3_11)("the core of the Python client passes its tests by the standard library alone", () => testCore("python3"));

for (const version of OTHER_VERSIONS)
  needs(pythonOf(version))(`so it does on Python ${version}`, async () => {
    const executable = (await run(python("--which"), { CAIRN_PYTHON: version })).trim();
    expect(await run([executable, "--version"])).toStartWith(`Python ${version}.`);
    await testCore(executable);
  });

for (const version of longRounds([], OTHER_VERSIONS))
  needs(pythonPackagesOf(version))(
    `the Python client and each adapter pass their tests on Python ${version}`,
    async () => {
      for (const folder of ["client", "adapters"]) await pytest(folder, { CAIRN_PYTHON: version });
    },
    MANY_PROCESSES_MS,
  );

needs(PYTHON_PACKAGES)("the Python client and its tests pass ruff", async () => {
  for (const what of [["check"], ["format", "--check"]])
    await run(python("-m", "ruff", ...what, "--no-cache", "--config", "src/python/pyproject.toml", "src/python", "test/python"));
});

/** Writes each example of the page of the Python client as a program. @returns their paths */
function examplePrograms(): string[] {
  const blocks = blocksOf(pageText(README)).filter(({ language }) => language === "python");
  expect(blocks.length).toBeGreaterThan(12);
  return blocks.map(({ text }, i) => {
    const program = join(directory, `example_${i}.py`);
    writeFileSync(program, text);
    return program;
  });
}

needs(PYTHON_PACKAGES)(
  "the types of the Python client and of each example of its page are strict, and what is wrong is refused, by mypy and pyright",
  async () => {
    const files = [join(ROOT, "test/python/typing"), ...examplePrograms()];
    const folder = join(ROOT, "src/python");
    const [executable = "", prefix = ""] = (await run(python("-c", "import sys; print(sys.executable, sys.prefix, sep='\\n')"))).split(
      "\n",
    );
    // What it knows of the frameworks is kept beside them, in files that are replaced: several runs may do so at the same time.
    const cache = ["--no-sqlite-cache", "--cache-dir", join(prefix, "mypy")];
    await run(python("-m", "mypy", ...cache, "--warn-unused-ignores", "cairn_client", ...files), {}, folder);
    await run(python("-m", "basedpyright", "--pythonpath", executable, "cairn_client", ...files), {}, folder);
  },
  MANY_PROCESSES_MS,
);

needs(PYTHON_PACKAGES)(
  "the Python client passes its tests, blocking and awaiting, and each write over a connection that fails is made once",
  () => pytest("client"),
  MANY_PROCESSES_MS,
);

needs(PYTHON_PACKAGES)(
  "each adapter for Python passes its suite, does what the framework keeps in memory does, and serves an agent in two processes, and each example of the page runs",
  () => pytest("adapters"),
  MANY_PROCESSES_MS,
);

needs(PYTHON_PACKAGES)(
  "the wheel and its sources install into an empty environment, where the page of the Python client works",
  async () => {
    const [wheel, sources] = buildPython(directory);
    const again = join(directory, "again");
    buildPython(again);
    // A release is the same bytes each time.
    for (const name of [wheel, sources]) expect(readFileSync(join(again, name))).toEqual(readFileSync(join(directory, name)));
    const home = await run(python("-c", "import sys; print(sys.prefix)"));
    const environment = join(directory, "environment");
    await run(["python3", "-m", "venv", "--without-pip", environment]);
    const [executable, wheels] = [join(environment, "bin/python"), join(home.trim(), "wheels")];
    const install = (file: string) =>
      run(python("-m", "pip", "--python", executable, "install", "--quiet", "--no-index", "--find-links", wheels, join(directory, file)));
    await install(wheel);
    const program = join(directory, "first.py");
    writeFileSync(
      program,
      block(README, "python", "sessions.context")
        .replace('"crn_…"', JSON.stringify(server.cairn.key))
        .replace("http://127.0.0.1:8700", `http://127.0.0.1:${server.port}`),
    );
    expect(await run([executable, program], {}, directory)).toContain("The customer prefers e-mail");
    // What the sources have, by their names.
    const names = await run(["tar", "-tzf", join(directory, sources)]);
    for (const name of ["LICENSE", "README.md", "pyproject.toml", "cairn_client/py.typed", "cairn_client/_sync.py"])
      expect(names).toContain(`/${name}\n`);
  },
  MANY_PROCESSES_MS,
);

needs(PYTHON_PACKAGES)(
  "a program of 60 lines verifies the traces of an export",
  async () => {
    const { key, port } = { key: server.cairn.key, port: server.port };
    const asked = await fetch(`http://127.0.0.1:${port}/v1/sessions`, {
      method: "POST",
      headers: { "X-API-Key": key, "Content-Type": "application/json" },
      body: JSON.stringify({ agent_id: "audited", user_id: "ü" }),
    });
    expect(asked.status).toBe(201);
    const { store } = server.cairn.service;
    await store.signTraces();
    const lines = await Array.fromAsync(exportLines(store, { secrets: false }));
    const verify = (changed: readonly string[]) => {
      const file = join(directory, "export.jsonl");
      writeFileSync(file, `${changed.join("\n")}\n`);
      const { exitCode, stdout } = Bun.spawnSync([join(ROOT, "scripts/python"), join(ROOT, "test/python/verify_export.py"), file]);
      return { exitCode, said: stdout.toString().trim() };
    };
    expect(verify(lines)).toEqual({ exitCode: 0, said: "nothing was changed" });
    const changed = lines.map((line) => (line.startsWith('{"table":"traces"') ? line.replace("audited", "unheard") : line));
    expect(verify(changed)).toMatchObject({ exitCode: 1, said: expect.stringContaining("trace: ") });
  },
  MANY_PROCESSES_MS,
);
