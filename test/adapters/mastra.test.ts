/**
 * Mastra's memory on Cairn, by chance beside what Mastra keeps in memory, and below an agent.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Agent } from "@mastra/core/agent";
import type { MastraDBMessage, StorageThreadType } from "@mastra/core/memory";
import { InMemoryDB, InMemoryMemory, MastraCompositeStore, type MemoryStorage, type StorageListMessagesInput } from "@mastra/core/storage";
import { Memory } from "@mastra/memory";
import { MockLanguageModelV4 } from "ai/test";
import { CairnMemory } from "../../src/adapters/mastra.ts";
import { Clock } from "../../src/adapters/shared/clock.ts";
import { CairnError } from "../../src/client/index.ts";
import { clientBefore, startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const memoryOf = (name: string) => new CairnMemory(client.cairn.documents, { namespace: ["mastra", name] });
const referenceOf = () => new InMemoryMemory({ db: new InMemoryDB() });
const START = Date.UTC(2026, 4, 7);
const at = (ms: number) => new Date(START + ms);
const thread = (id: string, resourceId = "ada", ms = 0): StorageThreadType => ({
  id,
  resourceId,
  title: `About ${id}`,
  metadata: {},
  createdAt: at(ms),
  updatedAt: at(ms),
});
const message = (id: string, ms: number, more: Partial<MastraDBMessage> = {}): MastraDBMessage => ({
  id,
  threadId: "one",
  resourceId: "ada",
  role: "user",
  type: "text",
  createdAt: at(ms),
  content: { format: 2, parts: [{ type: "text", text: `hello ${id}` }] },
  ...more,
});
const idsOf = ({ messages }: { messages: readonly MastraDBMessage[] }) => messages.map(({ id }) => id).join(" ");

const THREADS = ["one", "t wo", "ü/3", "*"];
const RESOURCES = ["ada", "bob", "*"];
const METADATA = [{}, { open: true }, { open: true, n: 1 }, { open: false, nested: { a: [1, null] } }, { open: null }];
const RANDOM_ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Times that a test gave are of the day of START. */
const NOW = /"(?!2026-05-07)\d{4}-\d\d-\d\dT[\d:.]+Z"/g;

/** What both can be compared by: without times that each sets by itself, and without ids that it made up. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value ?? null, (name, member: unknown) =>
    ["updatedAt", "clonedAt", "lastMessageId", "messageIdMap"].includes(name) ? undefined : member,
  );
  return JSON.parse(text.replaceAll(RANDOM_ID, "made up").replaceAll(NOW, '"now"'));
}

type Ask = (memory: MemoryStorage) => Promise<unknown>;

/** What both give, or that both refuse. */
async function both(memories: readonly [MemoryStorage, MemoryStorage], what: string, ask: Ask) {
  const outcomes = await Promise.all(
    memories.map((memory) =>
      ask(memory).then(
        (result) => ({ what, result: plain(result) }),
        () => `${what}: refused`,
      ),
    ),
  );
  expect(outcomes[0]).toEqual(outcomes[1]);
}

/** One of the things that can be asked. Each time of a message is given once: for those of one time only their own order is promised. */
function asked(chance: Chance, step: number): [string, Ask] {
  const threadId = pick(chance, THREADS);
  const resourceId = pick(chance, RESOURCES);
  const metadata = pick(chance, METADATA);
  const id = () => `m${chance.below(12)}`;
  const some = (n: number) => Array.from({ length: chance.below(n) }, (_, i) => i);
  const perPage = pick(chance, [undefined, false, 0, 1, 2, 5] as const);
  const page = { ...(perPage !== undefined && { perPage }), page: pick(chance, [0, 0, 0, 1, 2, -1]) };
  const direction = pick(chance, ["ASC", "DESC"] as const);
  const filter = pick<StorageListMessagesInput["filter"]>(chance, [
    undefined,
    undefined,
    { metadata: pick(chance, [{ open: true }, { open: null }, { n: 1, open: true }, {}]) },
    { metadata: { "not safe": 1 } },
    {
      dateRange: {
        start: at(chance.below(40) * 1_000 - 10),
        end: at(chance.below(60) * 1_000),
        startExclusive: chance.below(2) === 0,
        endExclusive: chance.below(2) === 0,
      },
    },
    { dateRange: { start: new Date(8.64e15) } },
    { dateRange: { start: new Date(-8.64e15), end: new Date(8.64e15) }, metadata: { open: true } },
  ]);
  const include = pick(chance, [
    undefined,
    undefined,
    some(3).map(() => ({ id: id(), withPreviousMessages: chance.below(3), withNextMessages: chance.below(3) })),
  ]);
  const options = { ...page, ...(filter && { filter }), ...(include && { include }), orderBy: { field: "createdAt" as const, direction } };
  const acts: (() => [string, Ask])[] = [
    () => {
      const made = { ...thread(threadId, resourceId, step * 1_000), ...(chance.below(4) > 0 && { metadata }) };
      return ["saveThread", (memory) => memory.saveThread({ thread: structuredClone(made) })];
    },
    () => {
      const change = { id: threadId, ...(chance.below(2) === 0 && { title: `Title ${step}` }), ...(chance.below(2) === 0 && { metadata }) };
      return ["updateThread", (memory) => memory.updateThread(structuredClone(change))];
    },
    () => {
      const update = (before: StorageThreadType) => (before.title ? { ...metadata, seen: before.title } : undefined);
      return [
        "updateThreadMetadata",
        (memory) => memory.updateThreadMetadata({ id: threadId, ...(step % 2 === 0 && { resourceId }), update }),
      ];
    },
    () => ["updateThreadResourceId", (memory) => memory.updateThreadResourceId({ threadId, resourceId })],
    () => ["deleteThread", (memory) => (step % 3 === 0 ? memory.deleteThread({ threadId }) : Promise.resolve())],
    () => ["getThreadById", (memory) => memory.getThreadById({ threadId, ...(step % 2 === 0 && { resourceId }) })],
    ...Array.from({ length: 5 }, () => (): [string, Ask] => {
      // What is of an older format is replaced there when it is changed.
      const isOld = chance.below(6) === 0;
      const messages = some(5).map((i) =>
        message(isOld ? `old ${chance.below(3)}` : id(), step * 1_000 + i, {
          threadId,
          ...(chance.below(5) === 0 ? { resourceId: undefined as never } : { resourceId }),
          role: pick(chance, ["user", "assistant"] as const),
          content: isOld
            ? ("of an older format" as never)
            : pick<MastraDBMessage["content"]>(chance, [
                { format: 2, parts: [{ type: "text", text: `é😀 ${step}` }], metadata },
                { format: 2, parts: [], content: "plain", metadata: { ...metadata, at: i } },
              ]),
        }),
      );
      return ["saveMessages", (memory) => memory.saveMessages({ messages: structuredClone(messages) })];
    }),
    ...Array.from({ length: 2 }, () => (): [string, Ask] => {
      const messages = some(4).map((i) => ({
        id: id(),
        ...(chance.below(3) === 0 && { threadId: pick(chance, THREADS) }),
        ...(chance.below(3) === 0 && { resourceId: pick(chance, RESOURCES) }),
        ...(chance.below(3) === 0 && { createdAt: at(step * 1_000 + i) }),
        ...(chance.below(2) === 0 && { content: pick(chance, [{ content: `changed ${step}` }, { metadata }]) as never }),
      }));
      return ["updateMessages", (memory) => memory.updateMessages({ messages: structuredClone(messages) })];
    }),
    () => {
      const ids = some(3).map(id);
      return ["deleteMessages", (memory) => memory.deleteMessages(ids)];
    },
    () => {
      const ids = some(6).map(id);
      return ["listMessagesById", (memory) => memory.listMessagesById({ messageIds: ids })];
    },
    ...Array.from({ length: 5 }, () => (): [string, Ask] => {
      const threads = chance.below(3) === 0 ? some(3).map(() => pick(chance, THREADS)) : threadId;
      const input = { ...options, threadId: threads, ...(chance.below(2) === 0 && { resourceId }) };
      // With messages that were included a last page has more there.
      return [
        `listMessages ${JSON.stringify(input)}`,
        async (memory) => ({ ...(await memory.listMessages(input)), ...(include?.length && { hasMore: undefined }) }),
      ];
    }),
    ...Array.from({ length: 2 }, () => (): [string, Ask] => {
      const input = { ...options, resourceId };
      return [`listMessagesByResourceId ${JSON.stringify(input)}`, (memory) => memory.listMessagesByResourceId(input)];
    }),
    ...Array.from({ length: 2 }, () => (): [string, Ask] => {
      const wanted = pick(chance, [undefined, { resourceId }, { metadata }, { resourceId, metadata }, { metadata: { "not safe": 1 } }]);
      const input = { ...page, orderBy: { field: "createdAt" as const, direction }, ...(wanted && { filter: wanted }) };
      return [`listThreads ${JSON.stringify(input)}`, (memory) => memory.listThreads(input)];
    }),
    () => ["getResourceById", (memory) => memory.getResourceById({ resourceId })],
    () => {
      const resource = { id: resourceId, workingMemory: `# ${step}`, metadata, createdAt: at(step), updatedAt: at(step) };
      return ["saveResource", (memory) => memory.saveResource({ resource })];
    },
    () => {
      const change = { resourceId, ...(step % 2 === 0 && { workingMemory: `## ${step}` }), ...(step % 3 === 0 && { metadata }) };
      return ["updateResource", (memory) => memory.updateResource(change)];
    },
    () => {
      const messageFilter = pick(chance, [{}, { startDate: at(step * 500), endDate: at(step * 800) }, { messageIds: some(6).map(id) }]);
      const input = {
        sourceThreadId: threadId,
        newThreadId: pick(chance, THREADS),
        ...(step % 2 === 0 && { resourceId }),
        ...(step % 3 === 0 && { title: "Copy", metadata }),
        options: { messageFilter, messageLimit: chance.below(4) },
      };
      // The times of copies are the same as those of their originals: their order among these is not promised.
      return [
        "cloneThread",
        async (memory) => {
          const { thread, clonedMessages } = await memory.cloneThread(input);
          const { messages } = await memory.listMessages({ threadId: thread.id, perPage: false });
          await memory.deleteThread({ threadId: thread.id });
          return { thread, clonedMessages, messages };
        },
      ];
    },
  ];
  return pick(chance, acts)();
}

async function steps(chance: Chance, memories: readonly [MemoryStorage, MemoryStorage]): Promise<void> {
  for (let step = 1; step <= 60; step++) {
    const [what, ask] = asked(chance, step);
    await both(memories, `step ${step}: ${what}`, ask);
  }
  await both(memories, "threads", (memory) => memory.listThreads({ perPage: false }));
  for (const threadId of THREADS) await both(memories, threadId, (memory) => memory.listMessages({ threadId, perPage: false }));
  for (const resourceId of RESOURCES)
    await both(memories, resourceId, (memory) => memory.listMessagesByResourceId({ resourceId, perPage: false }));
}

test("it does what InMemoryMemory does, whatever is asked of both", async () => {
  await withSeeds(async (chance, seed) => {
    const memory = memoryOf(`seed ${seed}`);
    await steps(chance, [memory, referenceOf()]);
    // Nothing is left of what is gone.
    for (const { id } of (await memory.listThreads({ perPage: false })).threads) await memory.deleteThread({ threadId: id });
    for (const threadId of THREADS) await memory.deleteThread({ threadId });
    const left = client.cairn.documents.namespaces({ prefix: ["mastra", `seed ${seed}`] });
    expect((await left).data.filter(([, , name]) => name !== "resources")).toEqual([]);
  });
});

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

test("an agent goes on with a conversation in another process, and remembers what it noted", async () => {
  const prompts: unknown[] = [];
  const ask = async (text: string) => {
    const model = new MockLanguageModelV4({
      doGenerate: async ({ prompt }) => {
        prompts.push(prompt);
        return { content: [{ type: "text", text: "Noted." }], finishReason: { unified: "stop", raw: "stop" }, usage: USAGE, warnings: [] };
      },
    });
    const storage = new MastraCompositeStore({ id: "cairn", domains: { memory: memoryOf("agent") } });
    const memory = new Memory({ storage, options: { workingMemory: { enabled: true, scope: "resource" } } });
    const agent = new Agent({ id: "support", name: "support", instructions: "Be kind.", model: model as never, memory });
    const answer = await agent.generate(text, { memory: { thread: "conversation", resource: "ada" } });
    return { answer: answer.text, memory };
  };
  const { memory } = await ask("Where is my order?");
  await memory.updateWorkingMemory({ threadId: "conversation", resourceId: "ada", workingMemory: "Ada likes tea." });
  expect((await ask("Are you sure?")).answer).toBe("Noted.");
  const [first, second] = prompts.map((prompt) => JSON.stringify(prompt));
  expect(first).not.toContain("Ada likes tea.");
  for (const known of ["Where is my order?", "Noted.", "Are you sure?", "Ada likes tea."]) expect(second).toContain(known);
  const { messages, total } = await memory.recall({ threadId: "conversation", resourceId: "ada" });
  expect([messages.map(({ role }) => role).join(" "), total]).toEqual(["user assistant user assistant", 4]);
  await expect(memory.recall({ threadId: "conversation", resourceId: "bob" })).rejects.toThrow("is for resource with id ada");
});

test("of writers at the same time each change counts, and lists have each thread and each message once", async () => {
  const memories = [memoryOf("races"), memoryOf("races")];
  await memories[0]!.saveThread({ thread: thread("one") });
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      const memory = memories[i % 2]!;
      await memory.saveMessages({ messages: [message("shared", i), message(`own ${i}`, 100 + i)] });
      const update = ({ metadata }: StorageThreadType) => ({ count: ((metadata?.["count"] as number | undefined) ?? 0) + 1 });
      await memory.updateThreadMetadata({ id: "one", update });
      await memory.updateResource({ resourceId: "ada", metadata: { [`seen ${i}`]: true } });
    }),
  );
  const [memory] = memories as [CairnMemory];
  expect((await memory.getThreadById({ threadId: "one" }))?.metadata).toEqual({ count: 8 });
  expect(Object.keys((await memory.getResourceById({ resourceId: "ada" }))?.metadata ?? {})).toHaveLength(8);
  for (const field of ["createdAt", "updatedAt"] as const)
    for (const filter of [{}, { resourceId: "ada" }])
      expect(await memory.listThreads({ orderBy: { field }, filter })).toMatchObject({ threads: [{ id: "one" }], total: 1 });
  const listed = await memory.listMessages({ threadId: "one", perPage: false });
  expect([idsOf(listed), listed.total]).toEqual([`shared ${Array.from({ length: 8 }, (_, i) => `own ${i}`).join(" ")}`, 9]);
  expect((await memory.listMessagesByResourceId({ resourceId: "ada" })).total).toBe(9);
});

test("threads are listed by their last change, which a message is too", async () => {
  let now = START + 1_000;
  const memory = new CairnMemory(client.cairn.documents, { namespace: ["mastra", "order"] }, new Clock(() => now++));
  for (const [i, id] of ["a", "b", "c"].entries()) await memory.saveThread({ thread: thread(id, "ada", i) });
  const order = async (field: "createdAt" | "updatedAt", direction: "ASC" | "DESC") =>
    (await memory.listThreads({ orderBy: { field, direction }, filter: { resourceId: "ada" } })).threads.map(({ id }) => id).join("");
  expect(await order("updatedAt", "DESC")).toBe("cba");
  await memory.saveMessages({ messages: [message("m", 0, { threadId: "b" })] });
  expect(await order("updatedAt", "DESC")).toBe("bca");
  await memory.updateThread({ id: "a", title: "New" });
  expect(await order("updatedAt", "DESC")).toBe("abc");
  await memory.updateMessages({ messages: [{ id: "m", threadId: "c" }] });
  expect((await order("updatedAt", "ASC")).slice(0, 1)).toBe("a");
  await memory.deleteMessages(["m"]);
  expect([await order("updatedAt", "DESC"), await order("createdAt", "ASC")]).toEqual(["cba", "abc"]);
});

test("messages of one time stay in the order in which they were saved, and come back there when they are saved again", async () => {
  const memory = memoryOf("ties");
  const ids = Array.from({ length: 40 }, (_, i) => `m${(i * 7) % 40}`);
  await memory.saveMessages({ messages: ids.slice(0, 20).map((id) => message(id, 0)) });
  for (const id of ids.slice(20)) await memory.saveMessages({ messages: [message(id, 0, { resourceId: "bob" })] });
  await memory.saveMessages({ messages: [message("m0", 0), message("m7", 0)] });
  await memory.updateMessages({ messages: [{ id: "m14", content: { content: "changed" } }] });
  expect(idsOf(await memory.listMessages({ threadId: "one", perPage: false }))).toBe(ids.join(" "));
  const pages = [];
  for (let page = 0; page < 7; page++)
    pages.push(idsOf(await memory.listMessages({ threadId: "one", perPage: 6, page, orderBy: { field: "createdAt", direction: "DESC" } })));
  expect(pages.join(" ")).toBe(ids.toReversed().join(" "));
});

test("the last messages of a long thread take one request, and no more than they are", async () => {
  const memory = memoryOf("long");
  const messages = Array.from({ length: 300 }, (_, i) => message(`m${i}`, i));
  await memory.saveMessages({ messages });
  let requests = 0;
  const counting = clientBefore(client, "query", () => requests++);
  const reader = new CairnMemory(counting.documents, { namespace: ["mastra", "long"] });
  const orderBy = { field: "createdAt", direction: "DESC" } as const;
  const last = await reader.listMessages({ threadId: "one", resourceId: "ada", perPage: 3, orderBy, includeTotal: false });
  expect([idsOf(last), last.hasMore, requests]).toEqual(["m299 m298 m297", true, 1]);
  const page = await reader.listMessages({ threadId: "one", resourceId: "ada", perPage: 3, page: 50, orderBy });
  expect([idsOf(page), page.total, page.hasMore]).toEqual(["m149 m148 m147", 300, true]);
  expect((await reader.listMessages({ threadId: "one", perPage: false })).messages).toEqual(messages);
  await memory.deleteThread({ threadId: "one" });
  expect(await client.cairn.documents.count(["mastra", "long"], { deep: true })).toBe(0);
});

test("messages that are too large for one request together are saved and copied, one that is too large alone is refused", async () => {
  const memory = memoryOf("large");
  await memory.saveThread({ thread: thread("one") });
  const large = (id: string, ms: number, length: number) =>
    message(id, ms, { content: { format: 2, parts: [{ type: "text", text: "x".repeat(length) }] } });
  const messages = ["a", "b", "c"].map((id, i) => large(id, i, 400_000));
  await memory.saveMessages({ messages });
  const { clonedMessages } = await memory.cloneThread({ sourceThreadId: "one", newThreadId: "copy" });
  expect(clonedMessages.map(({ content }) => content)).toEqual(messages.map(({ content }) => content));
  expect((await memory.listMessages({ threadId: "one", perPage: false })).messages).toEqual(messages);
  const refused = memory.saveMessages({ messages: [large("d", 4, 2_000_000)] });
  await expect(refused).rejects.toMatchObject({ code: "payload_too_large" });
});

test("a copy that fails leaves nothing, and of two copies of one name one is made", async () => {
  const memory = memoryOf("copies");
  await memory.saveThread({ thread: thread("one") });
  await memory.saveMessages({ messages: Array.from({ length: 80 }, (_, i) => message(`m${i}`, i)) });
  const before = await client.cairn.documents.count(["mastra", "copies"], { deep: true });
  const unlucky = clientBefore(client, "batch", (batch) => {
    if (batch === 3) throw new Error("The connection is gone.");
  });
  const failing = new CairnMemory(unlucky.documents, { namespace: ["mastra", "copies"] });
  await expect(failing.copyThread({ sourceThreadId: "one", newThreadId: "two" })).rejects.toBeInstanceOf(CairnError);
  expect(await client.cairn.documents.count(["mastra", "copies"], { deep: true })).toBe(before);
  const copies = [1, 2].map(() => memory.copyThread({ sourceThreadId: "one", newThreadId: "two" }));
  const outcomes = await Promise.allSettled(copies);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({ reason: { message: "Thread with id two already exists" } });
  expect(await memory.listMessages({ threadId: "two" })).toMatchObject({ total: 80, hasMore: true });
});

test("a thread that is deleted while messages are saved in it goes with them", async () => {
  const memory = memoryOf("deleted");
  for (const at of [1, 2, 3]) {
    await memory.saveThread({ thread: thread("one") });
    await memory.saveMessages({ messages: Array.from({ length: 40 }, (_, i) => message(`m${i}`, i)) });
    const late = clientBefore(client, "batch", async (batch) => {
      if (batch === at) await memory.saveMessages({ messages: [message("late", 1_000), message("m0", 2_000)] });
    });
    await new CairnMemory(late.documents, { namespace: ["mastra", "deleted"] }).deleteThread({ threadId: "one" });
    expect(await client.cairn.documents.count(["mastra", "deleted"], { deep: true })).toBe(0);
  }
  await memory.saveMessages({ messages: [message("m", 0), message("n", 1, { resourceId: undefined as never })] });
  await client.cairn.documents.deleteAll(["mastra", "deleted", "message ids"]);
  await memory.deleteThread({ threadId: "one" });
  expect(await client.cairn.documents.count(["mastra", "deleted"], { deep: true })).toBe(0);
});

test("a message that moves while it is changed is changed where it is then", async () => {
  const memory = memoryOf("moves");
  // Without threads, whose versions would tell that something has changed, too.
  await memory.saveMessages({ messages: [message("m", 0)] });
  const move = (threadId: string) => memory.updateMessages({ messages: [{ id: "m", threadId }] });
  const late = [
    // Between the reads of where it is and of what it is, and after both.
    clientBefore(client, "query", (query) => (query === 2 ? move("two") : undefined)),
    clientBefore(client, "batch", (batch) => (batch === 1 ? move("one") : undefined)),
  ];
  for (const [i, { documents }] of late.entries()) {
    const changing = new CairnMemory(documents, { namespace: ["mastra", "moves"] });
    const content = { metadata: { [`change ${i}`]: true } };
    await changing.updateMessages({ messages: [{ id: "m", content }] });
  }
  const { messages, total } = await memory.listMessages({ threadId: ["one", "two"] });
  expect(messages).toMatchObject([{ id: "m", threadId: "one", content: { metadata: { "change 0": true, "change 1": true } } }]);
  expect(total).toBe(1);
});

test("bytes in a message, and users that have the same threads, are kept apart as they are", async () => {
  const audio = Uint8Array.from({ length: 1_000 }, (_, i) => i % 256);
  const [ada, bob] = ["ada", "bob"].map((user_id) => new CairnMemory(client.cairn.documents.of({ user_id }), { namespace: ["mastra"] }));
  const kept = message("m", 0, { content: { format: 2, parts: [], metadata: { audio } } });
  await ada!.saveThread({ thread: thread("one") });
  await ada!.saveMessages({ messages: [kept] });
  expect((await ada!.listMessages({ threadId: "one" })).messages).toEqual([kept]);
  await bob!.saveMessages({ messages: [message("m", 0, { threadId: "two" })] });
  await bob!.deleteThread({ threadId: "one" });
  expect(await bob!.listMessagesById({ messageIds: ["m"] })).toMatchObject({ messages: [{ threadId: "two" }] });
  expect((await ada!.listMessages({ threadId: "one" })).messages).toEqual([kept]);
  await bob!.dangerouslyClearAll();
  expect(await bob!.listMessages({ threadId: "two" })).toMatchObject({ messages: [], total: 0 });
  expect((await ada!.listThreads({})).total).toBe(1);
});

test("what nothing can be kept by is refused, with its name", async () => {
  const memory = memoryOf("refused");
  const refusals: [string, () => Promise<unknown>][] = [
    ["thread.id must be a text that is not empty", () => memory.saveThread({ thread: thread("") })],
    ["thread.resourceId must be a text", () => memory.saveThread({ thread: thread("one", " ") })],
    ["thread.createdAt must be a date", () => memory.saveThread({ thread: { ...thread("one"), createdAt: new Date(NaN) } })],
    ["messages[1].threadId must be a text", () => memory.saveMessages({ messages: [message("a", 0), message("b", 0, { threadId: "" })] })],
    [
      "messages[0].createdAt must be a date of the years 0 to 9999",
      () => memory.saveMessages({ messages: [message("a", 8.6e15 - START)] }),
    ],
    ["resource.id must be a text", () => memory.saveResource({ resource: { id: "", createdAt: at(0), updatedAt: at(0) } })],
    ["Thread with id none not found", () => memory.updateThread({ id: "none", title: "New" })],
    ["A dateRange must have dates", () => memory.listMessages({ threadId: "one", filter: { dateRange: { start: new Date(NaN) } } })],
    ["Observational memory is not implemented", () => memory.getObservationalMemory("one", "ada")],
  ];
  for (const [said, ask] of refusals) await expect(ask()).rejects.toThrow(said);
  const metadata = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`m${i}`, i]));
  expect((await memory.listMessages({ threadId: "one", filter: { metadata } })).total).toBe(0);
  expect(await memory.listMessages({ threadId: "one" })).toMatchObject({ messages: [] });
  expect(await memory.getThreadById({ threadId: "" })).toBeNull();
  expect(await memory.getResourceById({ resourceId: "" })).toBeNull();
  expect(memory.supportsObservationalMemory).toBe(false);
});
