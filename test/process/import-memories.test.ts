/**
 * `cairn import --from claude-ai`, `mem0` and `memory-files`: exports and files in the shapes in which they are written.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until, type CairnProcess } from "../support/process.ts";
import { zip } from "../support/zip.ts";

const importFrom = (cairn: CairnProcess, from: string, path: string, ...flags: string[]) =>
  runCairn(["import", "--from", from, "--data-dir", cairn.dataDirectory, "--user", "ada", path, ...flags]);

const contentsIn = async (cairn: CairnProcess) => new Set((await cairn.all("/v1/memory")).map(({ content }) => content));

async function turnsOf(cairn: CairnProcess, name: string): Promise<any[]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions?external_id=${name}`));
  expect(data.length).toBe(1);
  return cairn.all(`/v1/sessions/${data[0].id}/turns?order=asc`);
}

const said = (uuid: string, sender: string, text: string, parent: string | undefined, more: object = {}) => ({
  uuid,
  text,
  content: [{ type: "text", text }],
  sender,
  created_at: `2025-03-01T10:00:0${uuid.at(-1)}.500000Z`,
  updated_at: "2025-03-01T10:00:09.000000Z",
  attachments: [],
  files: [],
  ...(parent === undefined ? {} : { parent_message_uuid: parent }),
  ...more,
});
const ROOT = "00000000-0000-4000-8000-000000000000";

test("an export of Claude.ai: the branch with the newest end, attachments, a memory for each paragraph; again adds what has grown", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const trip = {
    uuid: "trip",
    name: "The trip",
    summary: "",
    created_at: "2025-03-01T10:00:00.000000Z",
    account: { uuid: "account" },
    chat_messages: [
      said("m1", "human", "Read this.", ROOT, {
        attachments: [{ file_name: "plan.txt", file_type: "txt", extracted_content: "Turku, then Rauma." }],
        files: [{ file_name: "map.png" }],
      }),
      said("m2", "assistant", "An older answer.", "m1"),
      said("m3", "assistant", "I have.", "m1", {
        text: "The text of before",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "I have." },
          { type: "tool_use", name: "x" },
          { type: "text", text: "All of it." },
        ],
      }),
      said("m4", "human", "And?", "m3"),
      said("m5", "assistant", "Fine.", "m4"),
    ],
  };
  const old = {
    uuid: "old",
    name: "",
    chat_messages: [said("o1", "human", "Tea?", undefined, { content: [] }), said("o2", "assistant", "Tea.", undefined)],
  };
  const memories = {
    conversations_memory: "**Work context**\n\nAda runs a shop.\n\nShe writes TypeScript.\n\n**Personal**\n\nShe lives in Turku.",
    project_memories: { "11111111-2222": "The shop sells tea." },
    account_uuid: "account",
  };
  const path = work.at("data.zip");
  const pack = (conversations: object[], memory: object) =>
    writeFileSync(
      path,
      zip([
        { name: "users.json", bytes: "[{}]" },
        { name: "conversations.json", bytes: JSON.stringify(conversations) },
        { name: "memories.json", bytes: JSON.stringify([memory]) },
      ]),
    );
  pack([trip, old, { uuid: "odd" }], memories);
  const first = await importFrom(cairn, "claude-ai", path, "--dry-run");
  expect(first).toEqual(
    succeeded(
      /^Would import 3 turns and 4 memories, from 2025-03-01T10:00:01\.500Z to 2025-03-01T10:00:04\.500Z; 2 sessions new\.\nSkipped 1 record\. The first: .*data\.zip\/conversations\.json, record 3: has neither chat_messages nor memories\n/,
    ),
  );
  expect(await cairn.all("/v1/memory")).toEqual([]);
  expect(await importFrom(cairn, "claude-ai", path)).toEqual(succeeded(/^Imported 3 turns and 4 memories, /));
  const saidIn = async (name: string) => (await turnsOf(cairn, name)).map(({ input, output }) => [input.content, output.content]);
  expect(await saidIn("claude-ai:trip")).toEqual([
    ["Read this.\n\n[plan.txt]\nTurku, then Rauma.\n\n[map.png]", "I have.\n\nAll of it."],
    ["And?", "Fine."],
  ]);
  expect(await saidIn("claude-ai:old")).toEqual([["Tea?", "Tea."]]);
  expect(await contentsIn(cairn)).toEqual(
    new Set([
      "Work context: Ada runs a shop.",
      "Work context: She writes TypeScript.",
      "Personal: She lives in Turku.",
      "The shop sells tea.",
    ]),
  );

  trip.chat_messages.push(said("m6", "human", "Thanks", "m5"));
  pack([trip, old], { ...memories, conversations_memory: memories.conversations_memory.replace("Turku", "Rauma") });
  expect(await importFrom(cairn, "claude-ai", path)).toEqual(
    succeeded(/^Imported 1 turn and 1 memory, .*; 0 sessions new\.\nThere already: 3 turns and 3 memories\.\n$/),
  );
  expect((await contentsIn(cairn)).size).toBe(5);
  expect(await importFrom(cairn, "claude-ai", path, "--update")).toEqual(
    succeeded(
      "Imported 0 turns and 0 memories; 0 sessions new.\nThere already: 4 turns and 4 memories.\nTook away what their files have no longer: 1 memory.\n",
    ),
  );
  expect(await contentsIn(cairn)).not.toContain("Personal: She lives in Turku.");
  expect(await importFrom(cairn, "claude-ai", path, "--remove")).toEqual(
    succeeded("Removed 2 sessions and 4 memories of earlier imports.\n"),
  );
  writeFileSync(work.at("conversations.json"), `[{"hello":1}]`);
  expect(await importFrom(cairn, "claude-ai", work.at("conversations.json"))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/nothing of Claude\.ai: .*record 1: has neither/),
  });
});

test("memories of Mem0 keep their users, agents, runs, categories and times; expired ones are left out, changed ones updated when asked", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const memory = (id: string, text: string, more: object = {}) => ({
    id,
    memory: text,
    user_id: "grace",
    hash: "d41d8cd98f00b204",
    metadata: null,
    categories: null,
    created_at: "2024-07-20T01:30:36.275141-07:00",
    updated_at: "2024-07-20T01:30:36.275172-07:00",
    expiration_date: null,
    ...more,
  });
  const all = [
    memory("m-1", "Drinks tea", { categories: ["food", "food", ""], metadata: { channel: "chat" } }),
    memory("m-2", "Asked for a refund", { run_id: "r-7", agent_id: "support" }),
    memory("m-3", "Speaks Finnish", { user_id: undefined, agent_id: "tutor" }),
    memory("m-4", "Was in Oslo", { expiration_date: "2025-01-31" }),
    memory("m-5", "Is in Oslo", { expiration_date: "2125-01-31" }),
  ];
  const path = work.at("mem0.json");
  const write = (value: unknown) => writeFileSync(path, JSON.stringify(value, undefined, 2));
  write([
    { count: 5, next: null, previous: null, results: all.slice(0, 3) },
    { count: 5, results: [...all.slice(3), { id: "m-6" }] },
  ]);
  expect(await importFrom(cairn, "mem0", path)).toEqual(
    succeeded(
      /^Imported 4 memories, from 2024-07-20T08:30:36\.275Z to .*; 1 session new\.\nLeft out, since they had expired: 1 memory\.\nSkipped 1 record\. The first: .*mem0\.json, record 2, memory 3: has no memory, content or text\n$/,
    ),
  );
  const stored = new Map((await cairn.all("/v1/memory")).map((one) => [one.external_id, one]));
  expect(stored.get("mem0:m-1")).toMatchObject({
    content: "Drinks tea",
    type: "fact",
    user_id: "grace",
    agent_id: null,
    tags: ["food"],
    occurred_at: "2024-07-20T08:30:36.275Z",
    metadata: { channel: "chat", source: "import", imported_from: "mem0", source_data: { hash: "d41d8cd98f00b204" } },
  });
  expect(stored.get("mem0:m-2")).toMatchObject({ user_id: "grace", agent_id: "support", session_id: expect.stringMatching(/^sess_/) });
  expect(stored.get("mem0:m-3")).toMatchObject({ user_id: "ada", agent_id: "tutor" });
  expect(stored.get("mem0:m-5")).toMatchObject({ expires_at: "2125-01-31T23:59:59.999Z" });

  // As a page, with one that has changed and an edge of its graph.
  all[0] = { ...(all[0] as ReturnType<typeof memory>), memory: "Drinks coffee" };
  write({ results: all, relations: [{ source: "grace", relationship: "works_at", target: "the shop" }] });
  expect(await importFrom(cairn, "mem0", path)).toEqual(
    succeeded(
      /^Imported 1 memory; 0 sessions new\.\nThere already: 3 memories\.\nChanged in the source, and left as it is here: 1 memory\. --update replaces\.\n/,
    ),
  );
  expect(await importFrom(cairn, "mem0", path, "--update")).toEqual(
    succeeded(/^Imported 0 memories; .*\nThere already: 4 memories\.\nUpdated 1 memory\.\n/),
  );
  const contents = ["Drinks coffee", "Asked for a refund", "Speaks Finnish", "Is in Oslo", "grace works at the shop"];
  expect(await contentsIn(cairn)).toEqual(new Set(contents));
  write({ memories: [{ content: "Of a schema of one's own" }] });
  expect(await importFrom(cairn, "mem0", path)).toEqual(succeeded("Imported 1 memory; 0 sessions new.\n"));
  write([{ hello: 1 }]);
  expect(await importFrom(cairn, "mem0", path)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no memory of Mem0: .*record 1: has no memory/),
  });
});

test("an import of memories that is killed and runs again leaves nothing out and nothing twice", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const count = 1_000;
  const all = Array.from({ length: count }, (_, i) => ({
    id: `m-${i}`,
    memory: `Number ${i} is a part`,
    user_id: "ada",
    ...(i % 5 === 0 ? { run_id: `r-${i % 3}` } : {}),
  }));
  writeFileSync(work.at("mem0.json"), JSON.stringify(all));
  const args = ["import", "--from", "mem0", "--data-dir", cairn.dataDirectory, work.at("mem0.json")];
  const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "ignore", stderr: "ignore" });
  await until("a part to be stored", async () => (await cairn.ok(cairn.get("/v1/memory?limit=1"))).data.length > 0);
  child.kill("SIGKILL");
  await child.exited;
  expect(await importFrom(cairn, "mem0", work.at("mem0.json"))).toEqual(succeeded(/^Imported \d+ memor/));
  const stored = await cairn.all("/v1/memory?limit=100");
  expect(stored).toHaveLength(count);
  expect(new Set(stored.map(({ content }) => content)).size).toBe(count);
  expect(await cairn.all("/v1/sessions")).toHaveLength(3);
});

test("memory files become a memory for each item with its headings; notes of Basic Memory and the server memory keep tags and relations", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  mkdirSync(work.at("shop/notes"), { recursive: true });
  mkdirSync(work.at("shop/memory"));
  writeFileSync(work.at("shop/README.md"), "- Not to be remembered");
  const instructions =
    "# Shop\r\n\r\n<!-- hidden -->\r\nSold since 2001.\r\n\r\n## Code\r\n- Use tabs.\r\n  - But not in YAML.\r\n\r\n* Run:\r\n\r\n  ```sh\r\n  - make\r\n  ```\r\n@docs/more.md\r\n";
  writeFileSync(work.at("shop/CLAUDE.md"), instructions);
  writeFileSync(work.at("shop/AGENTS.md"), instructions);
  writeFileSync(work.at("shop/memory/MEMORY.md"), "- [User](user.md) — who Ada is\n");
  writeFileSync(work.at("shop/memory/user.md"), "---\nname: user\ntags: [people]\ncreated: 2025-03-01\n---\nAda lives in Turku.\n");
  const note =
    "---\ntitle: Coffee\npermalink: coffee\ntags:\n- brewing\n---\n# Coffee\n## Observations\n- [method] Pour over is clear #taste (tried)\n- [ ] Buy beans\n## Relations\n- pairs_with [[Cake]]\n";
  writeFileSync(work.at("shop/notes/coffee.md"), note);
  const lines = [
    { type: "entity", name: "Ada", entityType: "person", observations: ["Speaks Finnish", "Likes tea"] },
    { type: "relation", from: "Ada", to: "Shop", relationType: "works_at" },
    { type: "else" },
  ];
  writeFileSync(work.at("shop/memory.jsonl"), lines.map((line) => JSON.stringify(line)).join("\n"));
  const report = work.at("report");
  const args = ["--report", report] as const;
  expect(await importFrom(cairn, "memory-files", work.at("shop"), ...args, "--dry-run")).toEqual(
    succeeded(/^Would import 10 memories, from 2025-03-01/),
  );
  expect(await importFrom(cairn, "memory-files", work.at("shop"), ...args)).toEqual(
    succeeded(
      /^Imported 10 memories, from 2025-03-01T00:00:00\.000Z to 2025-03-01T00:00:00\.000Z; 0 sessions new\.\nThere already: 3 memories\.\nSkipped 1 record\. The first: .*memory\.jsonl, line 3: is neither an entity nor a relation\n$/,
    ),
  );
  expect(JSON.parse(readFileSync(report, "utf8"))).toEqual({
    place: `${work.at("shop/memory.jsonl")}, line 3`,
    reason: "is neither an entity nor a relation",
  });
  const all = await cairn.all("/v1/memory");
  expect(new Set(all.map(({ type, content, tags }) => [type, content, ...tags].join(" | ")))).toEqual(
    new Set([
      "policy | Shop: Sold since 2001.",
      "policy | Shop > Code: Use tabs.\n  - But not in YAML.",
      "policy | Shop > Code: Run:\n\n  ```sh\n  - make\n  ```",
      "fact | Ada lives in Turku. | people",
      "fact | Coffee: Pour over is clear #taste (tried) | brewing | method | taste",
      "fact | Coffee > Observations: [ ] Buy beans | brewing",
      "fact | Coffee pairs with Cake | brewing | relation",
      "fact | Ada: Speaks Finnish | person",
      "fact | Ada: Likes tea | person",
      "fact | Ada works at Shop | relation",
    ]),
  );
  expect(all.map(({ user_id: user, agent_id: agent }) => [user, agent])).toEqual(all.map(() => ["ada", null]));

  // An update takes away what a file has no longer, and leaves what an agent has added.
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Of an agent" }));
  for (const name of ["CLAUDE.md", "AGENTS.md"]) writeFileSync(work.at(`shop/${name}`), instructions.replace("Use tabs.", "Use spaces."));
  expect(await importFrom(cairn, "memory-files", work.at("shop"), "--update")).toEqual(
    succeeded(
      /^Imported 1 memory; 0 sessions new\.\nThere already: 12 memories\.\nTook away what their files have no longer: 1 memory\.\n/,
    ),
  );
  const contents = await contentsIn(cairn);
  expect(contents.size).toBe(11);
  expect(contents).toContain("Shop > Code: Use spaces.\n  - But not in YAML.");
  expect(contents).toContain("Of an agent");
  mkdirSync(work.at("empty"));
  expect(await importFrom(cairn, "memory-files", work.at("empty"))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/nothing to remember in .*empty/),
  });

  // Without a path those that agents keep of their user.
  mkdirSync(work.at(".claude"));
  writeFileSync(work.at(".claude/CLAUDE.md"), "- Answer briefly.");
  const usual = ["import", "--from", "memory-files", "--data-dir", cairn.dataDirectory, "--user", "ada"];
  expect(await runCairn(usual, { environment: { HOME: work.path } })).toEqual(succeeded("Imported 1 memory; 0 sessions new.\n"));
});
