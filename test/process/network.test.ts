import { expect } from "bun:test";
import { diskShim } from "../support/disk-shim.ts";
import { runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { onLinux } from "../support/platform.ts";

const test = onLinux("a shim of the calls of a process");

/** What is looked up is an address already, what is called is this machine. */
const STAYS_HERE = /^(resolve (127(\.\d+){3}|::1)|(connect|send) (unix|127(\.\d+){3} \d+|::1 \d+))$/;

/** Everybody whom a process has looked up, called or written to. */
const reached = (trace: readonly string[]) => trace.filter((line) => /^(resolve|connect|send) /.test(line));

async function converse(server: CairnProcess): Promise<void> {
  const { id } = await server.createSession({ user_id: "user", initial_state: { step: 0 } });
  await server.ok(server.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }));
  const text = (content: string) => ({ type: "text", content });
  await server.ok(server.post(`/v1/sessions/${id}/turns`, { input: text("Where is the boat?"), output: text("At pier nine.") }));
  const content = "The boat is moored at pier nine; see https://example.com/piers/9.";
  const memory = await server.addMemory(id, content);
  expect((await server.ok(server.post("/v1/memory/search", { query: content }))).data).toMatchObject([{ id: memory.id }]);
  expect((await server.ok(server.post(`/v1/sessions/${id}/context`, { query: "boat" }))).memories).toHaveLength(1);
  for (const path of ["/docs", "/openapi.json", "/metrics", "/health", "/v1/traces", "/v1/settings"]) {
    expect((await server.get(path)).status).toBe(200);
  }
}

test("with the default settings nothing leaves the machine: not at the start, in a conversation, in a search, in a command, nor at the stop", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { traces: true });
  const dataDirectory = directory.at("data");
  const { environment } = shim;
  await using server = await startProcess({ dataDirectory, environment });
  await converse(server);
  for (const command of [["doctor"], ["keys", "list"], ["backup", directory.at("backup")], ["export", directory.at("export")]]) {
    expect(await runCairn([...command, "--data-dir", dataDirectory], { environment })).toMatchObject({ code: 0 });
  }
  expect(await server.stop()).toBe(0);
  expect(shim.trace().filter((line) => line.startsWith("answer 2")).length).toBeGreaterThan(10);
  expect(reached(shim.trace()).filter((line) => !STAYS_HERE.test(line))).toEqual([]);
});

test("what an operator asks for is seen leaving: a webhook by name, and an embedding provider", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { traces: true });
  await using receiver = startReceiver(() => new Response());
  const { port } = new URL(receiver.url);
  const { environment } = shim;
  await using server = await startProcess({ dataDirectory: directory.at("data"), environment });
  const seen = (line: string) => until(line, () => reached(shim.trace()).includes(line));
  await server.ok(server.post("/v1/webhooks", { url: `http://localhost:${port}/hook`, events: ["session.created"] }));
  await converse(server);
  await seen("resolve localhost");
  await seen(`connect 127.0.0.1 ${port}`);
  // Nobody speaks that language there; what matters is who is asked.
  await server.request("PATCH", "/v1/settings", {
    embedding: { provider: "openai", base_url: "http://127.0.0.2:9/v1", api_key: "sk-none" },
  });
  await seen("connect 127.0.0.2 9");
});
