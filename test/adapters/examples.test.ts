/**
 * The examples in the page of the adapters run as they are printed, and print what their comments say.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startClient, type ServedClient } from "../support/cairn-client.ts";
import { scratchDirectory } from "../support/process.ts";

const ROOT = join(import.meta.dir, "../..");
const PAGE = readFileSync(join(ROOT, "src/adapters/README.md"), "utf8");
const EXAMPLES = Array.from(PAGE.matchAll(/```ts\n([\s\S]*?)```/g), ([, text = ""]) => text);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

function fileOf(specifier: string): string {
  const [, adapter] = /^cairn-client(?:\/(.+))?$/.exec(specifier) ?? [null];
  if (!specifier.startsWith("cairn-client")) return import.meta.resolve(specifier);
  return join(ROOT, adapter === undefined ? "src/client/index.ts" : `src/adapters/${adapter}.ts`);
}

for (const example of EXAMPLES) {
  const [, name = ""] = /"cairn-client\/([\w-]+)"/.exec(example) ?? [];
  test(`the example of ${name} prints what it says`, async () => {
    using directory = scratchDirectory();
    const { server } = client;
    const program = example
      .replaceAll(/ from "([^"]+)"/g, (_, specifier: string) => ` from ${JSON.stringify(fileOf(specifier))}`)
      .replace("crn_…", server.cairn.key)
      .replace("http://127.0.0.1:8700", `http://127.0.0.1:${server.port}`);
    writeFileSync(directory.at("example.ts"), program);
    const child = Bun.spawn([process.execPath, directory.at("example.ts")], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    const said = Array.from(example.matchAll(/console\.log\(.*\/\/ (.+)$/gm), ([, text = ""]) => text);
    expect({ code, stderr, lines: stdout.trim().split("\n") }).toEqual({ code: 0, stderr: "", lines: said });
  });
}

test("there is an example of every adapter", () => {
  const adapters = Array.from(new Bun.Glob("*.ts").scanSync(join(ROOT, "src/adapters")), (name) => name.slice(0, -".ts".length));
  expect(adapters.toSorted()).toEqual(EXAMPLES.map((text) => /"cairn-client\/([\w-]+)"/.exec(text)?.[1] ?? "").toSorted());
});
