/**
 * `cairn import --from chatgpt`: exports in the shape in which they are downloaded.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { longRounds } from "../support/rounds.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until, type CairnProcess } from "../support/process.ts";
import { zip } from "../support/zip.ts";

/** 2025-03-01T10:00:00Z, as the export has it. */
const AT = 1_740_823_200;
type Said = [role: string, content: unknown, more?: object];
const text = (...parts: unknown[]) => ({ content_type: "text", parts });

/** A conversation whose messages follow one another; `id`-1 is the first one. */
function conversation(id: string, said: readonly Said[], more: object = {}, at = AT) {
  const nodes = said.map(([role, content, ofMessage], i) => ({
    id: `${id}-${i + 1}`,
    message: {
      id: `${id}-${i + 1}`,
      author: { role, name: null, metadata: {} },
      create_time: at + i + 0.25,
      update_time: null,
      content: typeof content === "string" ? text(content) : content,
      status: "finished_successfully",
      weight: 1,
      metadata: role === "assistant" ? { model_slug: "gpt-5" } : {},
      recipient: "all",
      ...ofMessage,
    },
    parent: i === 0 ? "client-created-root" : `${id}-${i}`,
    children: i === said.length - 1 ? [] : [`${id}-${i + 2}`],
  }));
  const root = { id: "client-created-root", message: null, parent: null, children: [`${id}-1`] };
  return {
    id,
    conversation_id: id,
    title: `On ${id}`,
    create_time: at,
    update_time: at + said.length,
    mapping: Object.fromEntries([root, ...nodes].map((node) => [node.id, node])) as Record<string, any>,
    moderation_results: [],
    current_node: nodes.at(-1)?.id,
    default_model_slug: "gpt-5",
    is_archived: false,
    ...more,
  };
}

const importFrom = (cairn: CairnProcess, path: string, ...flags: string[]) =>
  runCairn(["import", "--from", "chatgpt", "--data-dir", cairn.dataDirectory, "--user", "ada", path, ...flags]);

async function turnsOf(cairn: CairnProcess, id: string): Promise<any[]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions?external_id=chatgpt:${id}`));
  expect(data.length).toBe(1);
  return cairn.all(`/v1/sessions/${data[0].id}/turns?order=asc`);
}

const saidIn = (turns: readonly any[]) => turns.map(({ input, output }) => [input.content, output.content]);

test("the branch of a conversation that is shown becomes turns, custom instructions preferences; again adds what has grown alone", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const trip = conversation("trip", [
    ["system", ""],
    [
      "user",
      { content_type: "user_editable_context", user_profile: "Wrapped: I live in Turku.", user_instructions: "Answer briefly." },
      { metadata: { is_visually_hidden_from_conversation: true, user_context_message_data: { about_user_message: "I live in Turku." } } },
    ],
    [
      "user",
      {
        content_type: "multimodal_text",
        parts: [{ content_type: "image_asset_pointer", asset_pointer: "file-service://x" }, "Where is it?"],
      },
    ],
    ["assistant", { content_type: "thoughts", thoughts: [] }],
    ["assistant", { content_type: "code", language: "unknown", text: "search('x')" }, { recipient: "web" }],
    ["tool", { content_type: "tether_quote", text: "page" }],
    ["assistant", text("In Rauma\ue200cite\ue202turn0search0\ue201.")],
    ["assistant", text("By the sea.")],
    ["user", "And the ferry?"],
  ]);
  // An answer of before, that was asked for again.
  trip.mapping["other"] = {
    id: "other",
    message: { id: "other", author: { role: "assistant" }, content: text("In Oulu.") },
    parent: "trip-3",
    children: [],
  };
  const old = conversation(
    "old",
    [
      ["assistant", "Hello, I begin."],
      ["user", "Tea or coffee?"],
      ["assistant", "Tea."],
    ],
    {},
    AT - 86_400,
  );
  old.mapping["old-1"].parent = "old-3";
  const path = work.at("export.zip");
  const pack = (...all: object[]) =>
    writeFileSync(
      path,
      zip([
        { name: "chat.html", bytes: "<html>" },
        { name: "conversations.json", bytes: JSON.stringify(all) },
      ]),
    );
  pack(trip, old);

  const times = "from 2025-02-28T10:00:00.250Z to 2025-03-01T10:00:08.250Z";
  expect(await importFrom(cairn, path, "--dry-run")).toEqual(
    succeeded(
      [
        `Would import 4 turns and 2 memories, ${times}; 2 sessions new.`,
        "  2025-03-01T10:00:02.250Z  [image] Where is it?",
        "  2025-03-01T10:00:08.250Z  And the ferry?",
        "  2025-02-28T10:00:00.250Z  Hello, I begin.",
        "  2025-02-28T10:00:01.250Z  Tea or coffee?",
        "  2025-03-01T10:00:00.000Z  I live in Turku.",
        "",
      ].join("\n"),
    ),
  );
  expect(await cairn.all("/v1/sessions")).toEqual([]);
  expect(await importFrom(cairn, path)).toEqual(succeeded(`Imported 4 turns and 2 memories, ${times}; 2 sessions new.\n`));
  expect(saidIn(await turnsOf(cairn, "trip"))).toEqual([
    ["[image]\n\nWhere is it?", "In Rauma.\n\nBy the sea."],
    ["And the ferry?", ""],
  ]);
  expect(saidIn(await turnsOf(cairn, "old"))).toEqual([
    ["", "Hello, I begin."],
    ["Tea or coffee?", "Tea."],
  ]);
  expect((await turnsOf(cairn, "trip"))[0]).toMatchObject({
    external_id: "trip-3",
    occurred_at: "2025-03-01T10:00:02.250Z",
    metadata: { model: "gpt-5" },
  });
  expect((await cairn.ok(cairn.get("/v1/sessions?external_id=chatgpt:trip"))).data[0]).toMatchObject({
    agent_id: "chatgpt",
    user_id: "ada",
    ttl_expires_at: null,
    occurred_at: "2025-03-01T10:00:02.250Z",
    metadata: { source: "import", title: "On trip", source_data: { default_model_slug: "gpt-5", is_archived: false } },
  });
  const memories = () => cairn.all("/v1/memory").then((all) => all.map(({ external_id: name, content, type }) => [name, type, content]));
  expect(await memories()).toEqual([
    ["chatgpt:instructions", "preference", "Answer briefly."],
    ["chatgpt:about-user", "preference", "I live in Turku."],
  ]);

  // The question has its answer now, and another one follows; the instructions are others.
  const grown = conversation("trip", []);
  Object.assign(grown.mapping, trip.mapping);
  for (const [i, [role, said]] of [
    ["assistant", "At noon."],
    ["user", "Thanks"],
    ["assistant", "Welcome."],
  ].entries())
    grown.mapping[`new-${i}`] = {
      message: { id: `new-${i}`, author: { role }, create_time: AT + 20 + i, content: text(said) },
      parent: i === 0 ? "trip-9" : `new-${i - 1}`,
    };
  grown.mapping["trip-2"].message.content.user_instructions = "Answer at length.";
  pack({ ...grown, current_node: "new-2" }, old);
  expect(await importFrom(cairn, path)).toEqual(
    succeeded(
      /^Imported 2 turns and 0 memories, .*; 0 sessions new\.\nThere already: 3 turns and 1 memory\.\nChanged in the source, and left as it is here: 1 memory\. --update replaces\.\n$/,
    ),
  );
  expect(saidIn(await turnsOf(cairn, "trip")).slice(1)).toEqual([
    ["And the ferry?", ""],
    ["", "At noon."],
    ["Thanks", "Welcome."],
  ]);
  expect(await importFrom(cairn, path, "--update")).toEqual(
    succeeded("Imported 0 turns and 0 memories; 0 sessions new.\nThere already: 5 turns and 1 memory.\nUpdated 1 memory.\n"),
  );
  expect(await memories()).toContainEqual(["chatgpt:instructions", "preference", "Answer at length."]);
  expect(await importFrom(cairn, path, "--update")).toEqual(
    succeeded(/^Imported 0 turns and 0 memories; .*\nThere already: 5 turns and 2 memories\.\n$/),
  );
  expect(await importFrom(cairn, path, "--remove")).toEqual(succeeded("Removed 2 sessions and 2 memories of earlier imports.\n"));
  expect(await cairn.all("/v1/memory")).toEqual([]);
});

test("texts beyond the limits go on in turns and memories of their own, and nothing of them is lost", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const question = `${"Why? ".repeat(15_000)}\u{1f600}`;
  const answer = "\u{1f600}".repeat(60_000);
  const profile = `${"I like tea. ".repeat(1_200)}End.`;
  const long = conversation("long", [
    ["user", { content_type: "user_editable_context", user_profile: profile, user_instructions: "" }],
    ["user", question],
    ["assistant", answer],
  ]);
  writeFileSync(work.at("conversations-000.json"), JSON.stringify([long]));
  const imported = await importFrom(cairn, work.path);
  expect(imported).toEqual(succeeded(/^Imported 4 turns and 2 memories, /));
  const turns = await turnsOf(cairn, "long");
  expect(turns.map(({ input }) => input.content).join("")).toBe(question);
  expect(turns.map(({ output }) => output.content).join("")).toBe(answer);
  expect(turns.map(({ external_id: name, metadata }) => [name, metadata.part, metadata.parts])).toEqual([
    ["long-2", 1, 4],
    ["long-2:2", 2, 4],
    ["long-2:3", 3, 4],
    ["long-2:4", 4, 4],
  ]);
  const memories = await cairn.all("/v1/memory");
  expect(
    memories
      .map(({ content }) => content)
      .toReversed()
      .join(""),
  ).toBe(profile);
  expect(await importFrom(cairn, work.path)).toEqual(succeeded(/^Imported 0 turns .*\nThere already: 4 turns and 2 memories\.\n$/));
});

test("what does not fit is skipped with its file and place; nothing of a record is imported in part", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const path = work.at("conversations.json");
  const good = JSON.stringify(
    conversation("good", [
      ["user", "One"],
      ["assistant", "Uno."],
    ]),
  );
  const later = JSON.stringify(
    conversation(
      "later",
      [
        ["user", "Two"],
        ["assistant", "Dos."],
      ],
      { current_node: "gone", create_time: "soon" },
    ),
  );
  const cut = JSON.stringify(
    conversation("cut", [
      ["user", "Three"],
      ["assistant", "Tres."],
    ]),
  ).slice(0, -9);
  const odd = ["7", `"x"`, "{}", `{"id":"a","mapping":[]}`, `{"id":"b" "mapping":{}}`, "[".repeat(600) + "]".repeat(600)];
  writeFileSync(path, `\ufeff[ ${[good, ...odd, later, cut].join(" ,\r\n")}`);
  const strict = await importFrom(cairn, path, "--strict");
  expect(strict).toMatchObject({ code: 1, stderr: `cairn: ${path}, record 2: is not an object. What stands before it is imported.\n` });
  expect(await importFrom(cairn, path, "--report", work.at("report"))).toEqual(
    succeeded(
      new RegExp(
        `^Imported 1 turn, .*; 1 session new\\.\nThere already: 1 turn\\.\nSkipped 7 records\\. The first: ${path}, record 2: is not an object\n$`,
      ),
    ),
  );
  const report = readFileSync(work.at("report"), "utf8").trim().split("\n");
  expect(report.map((line) => JSON.parse(line))).toEqual(
    [
      "is not an object",
      "is not an object",
      "has no id",
      "has no mapping of messages",
      "is not JSON",
      "has objects or arrays more than 512 deep",
    ]
      .map((reason, i) => ({ place: `${path}, record ${i + 2}`, reason }))
      .concat({ place: `${path}, record 9`, reason: "the file ends within it" }),
  );
  const names = (await cairn.all("/v1/sessions")).map(({ external_id: name }) => name);
  expect(new Set(names)).toEqual(new Set(["chatgpt:good", "chatgpt:later"]));

  const refused = async (said: RegExp, bytes: Buffer | string, name = "conversations.json") => {
    writeFileSync(work.at(name), bytes);
    expect(await importFrom(cairn, work.at(name))).toEqual({ code: 1, stdout: "", stderr: expect.stringMatching(said) });
  };
  await refused(/no conversation of ChatGPT: .*record 1: the file is not JSON: neither \[ nor \{ stands there/, "<html>");
  await refused(/no conversation of ChatGPT: .*record 1: has no id/, `[{"hello":"world"}]`);
  await refused(/no conversation of ChatGPT: .*has no conversations\.json/, "[]");
  const packed = zip([{ name: "conversations.json", bytes: `[${good}]` }]);
  await refused(/damaged ZIP archive/, packed.subarray(0, -30), "a.zip");
  await refused(/is a link/, zip([{ name: "conversations.json", bytes: "/etc/passwd", mode: 0o120_777 }]), "b.zip");
  await refused(/damaged ZIP archive: .*invalid relative path/, zip([{ name: "../conversations.json", bytes: `[${good}]` }]), "c.zip");
  const wrong = Buffer.from(packed);
  wrong[60] = (wrong[60] as number) ^ 0xff;
  await refused(/cannot be read to its end/, wrong, "d.zip");
  expect(await runCairn(["import", "--from", "chatgpt", "--data-dir", cairn.dataDirectory])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/takes the export/),
  });
  expect(await importFrom(cairn, path, "--project", "/srv")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--project is for claude-code and codex/),
  });
});

test("an import of an export that is killed and runs again leaves nothing out and nothing twice", async () => {
  using work = scratchDirectory();
  await using cairn = await startProcess();
  const path = work.at("conversations.json");
  const count = 60;
  const turns = 20;
  const all = Array.from({ length: count }, (_, i) =>
    conversation(
      `c${i}`,
      Array.from({ length: 2 * turns }, (_turn, j): Said => [j % 2 === 0 ? "user" : "assistant", `Text ${i}.${j}`]),
    ),
  );
  writeFileSync(path, JSON.stringify(all));
  const args = ["import", "--from", "chatgpt", "--data-dir", cairn.dataDirectory, "--user", "ada", path];
  const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "ignore", stderr: "ignore" });
  await until("a part to be stored", async () => (await cairn.ok(cairn.get("/v1/sessions"))).data.length > 0);
  child.kill("SIGKILL");
  await child.exited;
  expect(await importFrom(cairn, path)).toEqual(succeeded(/new\.\n/));
  const sessions = await cairn.all("/v1/sessions");
  expect(sessions).toHaveLength(count);
  expect(new Map(sessions.map(({ external_id: name, turn_count: has }) => [name, has]))).toEqual(
    new Map(Array.from({ length: count }, (_, i) => [`chatgpt:c${i}`, turns])),
  );
  expect(saidIn(await turnsOf(cairn, "c59"))).toEqual(
    Array.from({ length: turns }, (_, j) => [`Text 59.${2 * j}`, `Text 59.${2 * j + 1}`]),
  );
});

const MB = 1_000_000;

longRounds(undefined, test)?.(
  "1 GB of conversations is imported within 400 MB of memory",
  async () => {
    using work = scratchDirectory();
    await using cairn = await startProcess();
    const path = work.at("conversations.json");
    const file = Bun.file(path).writer();
    const filler = "The stock is counted every night. ".repeat(60);
    void file.write("[");
    let [bytes, count] = [0, 0];
    for (; bytes < 1_000_000_000; count++) {
      const tool: Said = ["tool", "x".repeat(40_000)];
      const said = Array.from({ length: 20 }, (_, i): Said[] => [["user", `Question ${count}.${i}`], tool, ["assistant", filler]]).flat();
      const json = `${count === 0 ? "" : ","}${JSON.stringify(conversation(`c${count}`, said))}`;
      void file.write(json);
      bytes += Buffer.byteLength(json);
      await file.flush();
    }
    void file.write("]");
    await file.end();
    const args = ["import", "--from", "chatgpt", "--data-dir", cairn.dataDirectory, "--user", "ada", path];
    const child = Bun.spawn([await buildBinary(), ...args], { env: {}, stdout: "pipe", stderr: "inherit" });
    expect(await new Response(child.stdout).text()).toStartWith(`Imported ${count * 20} turns`);
    await child.exited;
    const used = (child.resourceUsage()?.maxRSS ?? Number.POSITIVE_INFINITY) / MB;
    console.log(`An import of ${Math.round(bytes / MB)} MB took ${Math.round(used)} MB of memory.`);
    expect(used).toBeLessThan(400);
  },
  600_000,
);
