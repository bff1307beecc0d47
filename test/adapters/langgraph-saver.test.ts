/**
 * The checkpoints of LangGraph on Cairn: by the suites with which LangGraph tests its own savers, by chance beside `MemorySaver`, and
 * under a graph.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  MemorySaver,
  uuid6,
  type BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointTuple,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { CairnSaver, CairnStore, type CairnSaverOptions } from "../../src/adapters/langgraph.ts";
import { Cairn } from "../../src/client/index.ts";
import { sessionsBy, startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";
import { suitesForVitest } from "../support/vitest-suites.ts";

suitesForVitest();
const { deltaChannelHistoryTests, specTest } = await import("@langchain/langgraph-checkpoint-validation");

setDefaultTimeout(240_000);

let client: ServedClient;
let savers = 0;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const newSaver = (options: CairnSaverOptions = {}) =>
  new CairnSaver(client.cairn.documents, { namespace: ["saver", String(savers++)], ...options });

for (const initializer of [
  { checkpointerName: "CairnSaver", createCheckpointer: () => newSaver() },
  { checkpointerName: "CairnSaver with sessions", createCheckpointer: () => newSaver(sessionsBy(1, client)) },
]) {
  specTest(initializer);
  deltaChannelHistoryTests(initializer);
}

const THREADS = ["t1", "t 2", "ü/3"];
const NAMESPACES = ["", "child", "child|a:1"];
const CHANNELS = ["messages", "a/b", "ü", "branch:to:x"];

/** Values as graphs have them. No bytes, which MemorySaver does not give back. */
const value = (chance: Chance) =>
  pick(chance, ["text", "é😀\ud800", 0, -1.5, true, null, [], { deep: [{ n: chance.below(99) }] }, "x".repeat(5_000)]);

/** The same steps on both savers: a tree of checkpoints in some threads, writes of tasks, lists with filters. */
async function steps(chance: Chance, savers: readonly [BaseCheckpointSaver, BaseCheckpointSaver]): Promise<void> {
  const made: CheckpointTuple["config"][] = [];
  const both = async (ask: (saver: BaseCheckpointSaver) => Promise<unknown>) => {
    const [ours, theirs] = await Promise.all(savers.map(ask));
    expect(ours).toEqual(theirs);
  };
  const place = () => ({ thread_id: pick(chance, THREADS), checkpoint_ns: pick(chance, NAMESPACES) });
  for (let i = 0; i < 40; i++) {
    const act = chance.below(10);
    const parent: CheckpointTuple["config"] = made.length > 0 && chance.below(4) > 0 ? pick(chance, made) : { configurable: place() };
    if (act < 4) {
      const before = (await savers[1].getTuple(parent))?.checkpoint;
      const isChild = parent.configurable?.["checkpoint_id"] !== undefined && before !== undefined;
      const checkpoint: Checkpoint = {
        v: 4,
        id: uuid6(i),
        ts: "2026-05-07T08:00:00.000Z",
        channel_values: isChild ? { ...before.channel_values } : {},
        channel_versions: isChild ? { ...before.channel_versions } : {},
        versions_seen: { node: { messages: i } },
      };
      const changed = CHANNELS.filter(() => chance.below(2) === 0);
      const newVersions: Record<string, number> = {};
      for (const channel of changed) {
        newVersions[channel] = savers[0].getNextVersion(checkpoint.channel_versions[channel] as number | undefined);
        checkpoint.channel_versions[channel] = newVersions[channel]!;
        checkpoint.channel_values[channel] = value(chance);
      }
      const metadata = { source: pick(chance, ["input", "loop"] as const), step: chance.below(4), parents: {}, "a.b": i % 2 };
      await both((saver) => saver.put(parent, checkpoint, metadata, newVersions));
      made.push({ configurable: { ...parent.configurable, checkpoint_id: checkpoint.id } });
    } else if (act < 6 && made.length > 0) {
      const writes = Array.from({ length: 1 + chance.below(3) }, (): PendingWrite => [
        pick(chance, [...CHANNELS, "__error__", "__interrupt__"]),
        value(chance),
      ]);
      const [config, task, path] = [pick(chance, made), pick(chance, ["task-1", "task-2"]), pick(chance, ["", "~pull", "~push, 1"])];
      await both((saver) => saver.putWrites(config, writes, task, path));
    } else if (act < 8) {
      await both((saver) => saver.getTuple(parent));
    } else if (act === 8) {
      const config = pick(chance, [parent, { configurable: place() }, { configurable: { thread_id: pick(chance, THREADS) } }]);
      const filter = pick(chance, [undefined, { source: "loop" }, { step: 1, source: "input" }, { "a.b": 1 }, { step: 99 }]);
      const before = pick(chance, [undefined, made.at(-2)]);
      const options = { ...(filter && { filter }), ...(before && { before }) };
      // Namespaces have no order of their own.
      await both(async (saver) => (await Array.fromAsync(saver.list(config, options))).toSorted(byPlace));
      const [ns, limit] = [{ configurable: place() }, chance.below(4)];
      await both((saver) => Array.fromAsync(saver.list(ns, { ...options, limit })));
    } else if (chance.below(6) === 0) {
      const thread = pick(chance, THREADS);
      await both((saver) => saver.deleteThread(thread));
      made.splice(0, made.length, ...made.filter(({ configurable }) => configurable?.["thread_id"] !== thread));
    }
  }
}

const byPlace = (a: CheckpointTuple, b: CheckpointTuple) => (JSON.stringify(a.config) < JSON.stringify(b.config) ? -1 : 1);

test("it does what MemorySaver does, whatever is asked of both", async () => {
  await withSeeds((chance, seed) => steps(chance, [newSaver(sessionsBy(seed, client)), new MemorySaver()]));
});

test("forks of a thread keep their own values, though both go on from the same version", async () => {
  const saver = newSaver();
  const State = Annotation.Root({ said: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
  const graph = new StateGraph(State)
    .addNode("answer", ({ said }) => ({ said: [`to ${said.at(-1)}`] }))
    .addEdge(START, "answer")
    .addEdge("answer", END)
    .compile({ checkpointer: saver });
  const thread = { configurable: { thread_id: "forked" } };
  await graph.invoke({ said: ["a"] }, thread);
  const { config: first } = await graph.getState(thread);
  await graph.invoke({ said: ["b"] }, first);
  const { config: second } = await graph.getState(thread);
  await graph.invoke({ said: ["c"] }, first);
  expect((await graph.getState(second)).values).toEqual({ said: ["a", "to a", "b", "to b"] });
  expect((await graph.getState(thread)).values).toEqual({ said: ["a", "to a", "c", "to c"] });
});

test("a graph waits for a person, goes on in another process, remembers in the store, and is replayed from its history", async () => {
  const State = Annotation.Root({
    messages: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }),
    approved: Annotation<boolean>(),
  });
  const namespace = ["saver", "graph"];
  const newProcess = () =>
    new StateGraph(State)
      .addNode("draft", async (_, { store }) => {
        await store!.put(["users", "ada"], "tone", { text: "friendly" });
        return { messages: ["draft"] };
      })
      .addNode("approve", () => ({ approved: interrupt<string, boolean>("Send it?") }))
      .addNode("send", async ({ approved }, { store }) => {
        const tone = (await store!.get(["users", "ada"], "tone"))?.value["text"] as string;
        return { messages: [approved ? `sent, ${tone}` : "dropped"] };
      })
      .addEdge(START, "draft")
      .addEdge("draft", "approve")
      .addEdge("approve", "send")
      .addEdge("send", END)
      .compile({ checkpointer: new CairnSaver(client.cairn.documents, { namespace }), store: new CairnStore(client.cairn.documents) });
  const thread = { configurable: { thread_id: "t1" } };
  const waiting = await newProcess().invoke({ messages: ["hi"] }, thread);
  expect(waiting).toMatchObject({ __interrupt__: [{ value: "Send it?" }] });
  const graph = newProcess();
  expect((await graph.getState(thread)).next).toEqual(["approve"]);
  expect((await graph.invoke(new Command({ resume: true }), thread)).messages).toEqual(["hi", "draft", "sent, friendly"]);
  const history = await Array.fromAsync(graph.getStateHistory(thread));
  expect(history.map(({ next }) => next[0])).toEqual([undefined, "send", "approve", "draft", "__start__"]);
  // From before the question it is asked again, and this time the answer is no.
  expect(await graph.invoke(null, history[3]!.config)).toMatchObject({ __interrupt__: [{ value: "Send it?" }] });
  expect((await graph.invoke(new Command({ resume: false }), thread)).messages).toEqual(["hi", "draft", "dropped"]);
});

test("a checkpoint with more values than a request takes, and larger ones, is there whole", async () => {
  const saver = newSaver();
  const channels = Array.from({ length: 250 }, (_, i) => `channel ${i}`);
  const versions = Object.fromEntries(channels.map((channel) => [channel, 1]));
  // 2.5 MB in all, and one that is almost as large as a request may be.
  const values = Object.fromEntries(channels.map((channel, i) => [channel, "é".repeat(i === 7 ? 400_000 : 5_000)]));
  const checkpoint: Checkpoint = {
    v: 4,
    id: uuid6(1),
    ts: "2026-05-07T08:00:00.000Z",
    channel_values: values,
    channel_versions: versions,
    versions_seen: {},
  };
  const config = await saver.put({ configurable: { thread_id: "large" } }, checkpoint, { source: "loop", step: 1, parents: {} }, versions);
  expect((await saver.getTuple(config))?.checkpoint).toEqual(checkpoint);
});

test("bytes come back as bytes", async () => {
  const saver = newSaver();
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i % 256);
  const versions = { image: 1 };
  const checkpoint = {
    v: 4,
    id: uuid6(1),
    ts: "2026-05-07T08:00:00.000Z",
    channel_values: { image: bytes },
    channel_versions: versions,
    versions_seen: {},
  };
  const config = await saver.put({ configurable: { thread_id: "bytes" } }, checkpoint, { source: "loop", step: 1, parents: {} }, versions);
  await saver.putWrites(config, [["image", bytes]], "task");
  const found = await saver.getTuple(config);
  expect(found?.checkpoint.channel_values["image"]).toEqual(bytes);
  expect(found?.pendingWrites).toEqual([["task", "image", bytes]]);
});

test("a long history takes few requests, and each value is read once", async () => {
  let requests = 0;
  const read: string[] = [];
  const cairn = new Cairn({
    apiKey: client.server.cairn.key,
    baseUrl: `http://127.0.0.1:${client.server.port}`,
    fetch: async (request) => {
      requests++;
      const { operations } = (await request.clone().json()) as { operations: { op: string; namespace: string[]; key: string }[] };
      read.push(...operations.flatMap(({ op, namespace, key }) => (op === "get" ? [JSON.stringify([namespace, key])] : [])));
      return fetch(request);
    },
  });
  const saver = new CairnSaver(cairn.documents, { namespace: ["saver", "long"] });
  const State = Annotation.Root({ said: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });
  const graph = new StateGraph(State)
    .addNode("count", ({ said }) => ({ said: [String(said.length)] }))
    .addEdge(START, "count")
    .addConditionalEdges("count", ({ said }) => (said.length < 100 ? "count" : END))
    .compile({ checkpointer: saver });
  const thread = { configurable: { thread_id: "long" }, recursionLimit: 200 };
  await graph.invoke({ said: [] }, thread);
  [requests, read.length] = [0, 0];
  const history = await Array.fromAsync(graph.getStateHistory(thread));
  expect(history.map(({ values }) => (values as { said: string[] }).said?.length ?? 0)).toEqual([
    ...Array.from({ length: 101 }, (_, i) => 100 - i),
    0,
  ]);
  expect(requests).toBeLessThanOrEqual(history.length / 5);
  expect(read).toEqual([...new Set(read)]);
  requests = 0;
  for await (const _ of graph.getStateHistory(thread, { limit: 1 })) void 0;
  expect(requests).toBe(2);
});

test("what cannot be a checkpoint's place is refused with the field", async () => {
  const saver = newSaver();
  for (const thread_id of ["", 7, null])
    expect(saver.getTuple({ configurable: { thread_id } })).rejects.toThrow("configurable.thread_id must be a text");
  expect(await saver.getTuple({})).toBeUndefined();
});
