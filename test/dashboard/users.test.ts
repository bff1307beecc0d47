/**
 * The page of one user: what came last, a key, an export and the erasure, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { signedInTab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const text = (content: string) => ({ type: "text", content });

test("a user's latest sessions and memories stand on the page, and a key for the user is a click away", async () => {
  const session = await cairn.createSession({ agent_id: "support-bot", user_id: "ada" });
  await cairn.ok(cairn.post(`/v1/sessions/${session.id}/turns`, { input: text("Where is my parcel?"), output: text("Here.") }));
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Prefers tea.", embed: false }));
  using tab = await signedInTab(cairn, "/users/ada");
  await tab.has("[aria-label='Latest sessions'] a");
  await tab.has("[aria-label='Latest memories'] li");
  for (const said of ["Where is my parcel?", "Prefers tea."]) await tab.sees(said);
  expect([await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([[], false]);
  await tab.click("Create a key");
  await tab.fill("Name", "ada's agent");
  await tab.click("Create");
  await tab.click("I saved it");
  expect(await cairn.all("/v1/api_keys?kind=key")).toContainEqual(expect.objectContaining({ name: "ada's agent", user_id: "ada" }));
  expect(tab.complaints).toEqual([]);
});

test("an export has every record of the user and no other's, hidden turns and an agent's documents too", async () => {
  const user_id = "grace/hopper";
  const { id } = await cairn.createSession({ agent_id: "support-bot", user_id, initial_state: { step: 0 } });
  await cairn.createSession({ agent_id: "support-bot", user_id: "somebody else" });
  await cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input: text("Hello"), output: text("Hi.") }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, turns: "hide" }));
  await cairn.ok(cairn.post("/v1/memory", { user_id, content: "Prefers coffee.", embed: false }));
  await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "Wrote a compiler.", embed: false }));
  for (const owner of [{ user_id }, { user_id, agent_id: "keeps documents alone" }, { user_id, agent_id: "support-bot" }]) {
    const operations = [{ op: "put", namespace: ["notes", "deep"], key: "k", value: { of: owner.agent_id ?? "nobody" } }];
    await cairn.ok(cairn.post("/v1/documents/batch", { ...owner, operations }));
  }
  using tab = await signedInTab(cairn, `/users/${encodeURIComponent(user_id)}`);
  await tab.sees("Wrote a compiler.");
  // The file is read before the browser saves it.
  await tab.run(`(() => {
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => (void blob.text().then((text) => (window.saved = text)), create(blob));
    return true;
  })()`);
  await tab.click("Export");
  await tab.holds("window.saved !== undefined");
  const records = Bun.JSONL.parse(await tab.run<string>("window.saved")) as any[];
  const of = (object: string) => records.filter((record) => record.object === object);
  expect(of("session").map((session) => session.id)).toEqual([id]);
  expect(of("timeline_entry").map(({ kind, version, turn }) => [kind, version?.version ?? turn?.input.content])).toEqual([
    ["version", 0],
    ["turn", "Hello"],
    ["version", 1],
    ["version", 2],
  ]);
  expect(new Set(of("memory").map(({ content }) => content))).toEqual(new Set(["Prefers coffee.", "Wrote a compiler."]));
  expect(new Set(of("document").map(({ value }) => value.of))).toEqual(new Set(["nobody", "support-bot"]));
  expect(records.at(-1)).toMatchObject({ object: "user_export", user_id, sessions: 1, memories: 2, documents_missing: 1 });
  await tab.sees("without 1 document with agents that no session names");
  expect(tab.complaints).toEqual([]);
});

test("a user is erased by typing the id, with a report of what was removed", async () => {
  const { id } = await cairn.createSession({ agent_id: "erasing", user_id: "user/42 & more" });
  await cairn.addMemory(id, "The customer prefers e-mail.");
  using tab = await signedInTab(cairn, "/users");
  await tab.click("user/42 & more");
  await tab.seesFlat("sessions 1 memories 1");
  await tab.click("Erase");
  await tab.has("dialog button.danger:disabled");
  await tab.fill("Type the id of the user", "user/42 & more");
  await tab.click("Erase", "dialog");
  await tab.sees("Everything is removed.");
  await tab.seesFlat("sessions 1");
  await tab.sees("traces kept without content");
  expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
  await tab.go(`${cairn.address}/dashboard/users?show=agents`);
  await tab.has(".rows li, .empty");
  expect(tab.complaints).toEqual([]);
});

test("a user who has documents alone is erased too", async () => {
  const put = { op: "put", namespace: ["notes"], key: "k", value: { note: "tea" } };
  await cairn.ok(cairn.post("/v1/documents/batch", { user_id: "documented", operations: [put] }));
  using tab = await signedInTab(cairn, "/users/documented");
  await tab.seesFlat("sessions 0 memories 0 traces 0 documents 1");
  await tab.click("Erase");
  await tab.fill("Type the id of the user", "documented");
  await tab.click("Erase", "dialog");
  await tab.sees("Everything is removed.");
  await tab.seesFlat("documents 1");
  expect(tab.complaints).toEqual([]);
});
