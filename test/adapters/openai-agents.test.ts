/**
 * Sessions of the Agents SDK of OpenAI on Cairn, by chance beside the `MemorySession` of that SDK.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Agent, MemorySession, run, tool, type AgentInputItem, type SessionHistoryTransaction } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { CairnSession, type CairnSessionOptions } from "../../src/adapters/openai-agents.ts";
import { clientBefore, sessionsBy, startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const sessionOf = (id: string, options: CairnSessionOptions = {}) => new CairnSession(client.cairn.documents, id, options);
const user = (content: string): AgentInputItem => ({ type: "message", role: "user", content });

function item(chance: Chance): AgentInputItem {
  const call = {
    type: "function_call",
    callId: `c${chance.below(3)}`,
    name: "look",
    arguments: `{"n":${chance.below(9)}}`,
    status: "completed",
  } as const;
  return pick<() => AgentInputItem>(chance, [
    () => user(`hello ${chance.below(5)} é😀`),
    () => call,
    () => ({ type: "function_call_result", callId: "c1", name: "look", status: "completed", output: { type: "text", text: "\ud800" } }),
    () => ({ type: "reasoning", id: "r", content: [], providerData: { nested: [1, null, { deep: true }] } }),
    () => ({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Hi." }] }),
  ])();
}
const some = (chance: Chance) => Array.from({ length: chance.below(4) }, () => item(chance));

/** What both give, or that both refuse. */
async function both<Result>(
  sessions: readonly [CairnSession, MemorySession],
  ask: (session: CairnSession | MemorySession) => Promise<Result>,
) {
  const outcomes = await Promise.all(
    sessions.map((session) =>
      ask(session).then(
        (result) => ({ result: plain(result) }),
        () => "refused",
      ),
    ),
  );
  expect(outcomes[0]).toEqual(outcomes[1]);
}
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

async function steps(chance: Chance, sessions: readonly [CairnSession, MemorySession]): Promise<void> {
  for (let i = 0; i < 60; i++) {
    const act = chance.below(12);
    const items = some(chance);
    if (act < 4) await both(sessions, (session) => session.addItems(items));
    else if (act < 6) await both(sessions, (session) => session.popItem());
    else if (act === 6 && chance.below(3) === 0) await both(sessions, (session) => session.clearSession());
    else if (act === 7) {
      const mutations = Array.from({ length: 1 + chance.below(2) }, () => {
        const replacement = {
          type: "function_call",
          callId: `c${chance.below(3)}`,
          name: "other",
          arguments: "{}",
          status: "completed",
        } as const;
        return { type: "replace_function_call" as const, callId: `c${chance.below(3)}`, replacement };
      });
      await both(sessions, (session) => session.applyHistoryMutations({ mutations }));
    } else if (act < 10) {
      const there = await sessions[1].getItems();
      const expectedSuffix = chance.below(3) === 0 ? some(chance) : there.slice(there.length - Math.min(there.length, chance.below(3)));
      const transaction = pick<SessionHistoryTransaction>(chance, [
        { type: "append_items", items },
        { type: "append_items", items: [user("once")] },
        { type: "replace_suffix", expectedSuffix, replacement: items },
      ]);
      const operationId = `operation ${chance.below(12)}`;
      await both(sessions, async (session) => session.applyHistoryTransaction({ operationId, transaction }));
    } else {
      const limit = pick(chance, [undefined, 0, 1, 2, 5]);
      await both(sessions, (session) => session.getItems(limit));
    }
  }
  await both(sessions, (session) => session.getItems());
}

test("it does what MemorySession does, whatever is asked of both", async () => {
  await withSeeds((chance, seed) => steps(chance, [sessionOf(`seed ${seed}`, sessionsBy(seed, client)), new MemorySession()]));
});

test("an agent goes on with a conversation in another process, with what tools have answered", async () => {
  const look = tool({
    name: "look",
    description: "Looks an order up.",
    parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"], additionalProperties: false },
    execute: (input) => `It arrives tomorrow: ${JSON.stringify(input)}`,
  });
  const ask = async (text: string, model: ScriptedModel) =>
    run(new Agent({ name: "support", model, tools: [look] }), text, { session: sessionOf("agent") });
  const first = new ScriptedModel([[functionCall("look", { id: "A-17" }, { callId: "c1" })], [assistantMessage("It arrives tomorrow.")]]);
  expect((await ask("Where is my order?", first)).finalOutput).toBe("It arrives tomorrow.");
  const second = new ScriptedModel([[assistantMessage("Yes.")]]);
  expect((await ask("Are you sure?", second)).finalOutput).toBe("Yes.");
  const input = second.calls[0]?.request.input as AgentInputItem[];
  expect(input.map((one) => one.type ?? "message")).toEqual(["message", "function_call", "function_call_result", "message", "message"]);
  expect(await sessionOf("agent").getItems()).toHaveLength(6);
});

test("of two that replace the same end at the same time one does, and items that are added meanwhile stay where they belong", async () => {
  const session = sessionOf("races");
  await session.addItems([user("a"), user("b")]);
  const replace = (operationId: string, replacement: AgentInputItem[]) =>
    session.applyHistoryTransaction({ operationId, transaction: { type: "replace_suffix", expectedSuffix: [user("b")], replacement } });
  const outcomes = await Promise.allSettled([replace("1", [user("c")]), replace("2", [user("d")])]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  const kept = await session.getItems();
  expect(kept).toHaveLength(2);
  await Promise.allSettled([
    session.applyHistoryTransaction({
      operationId: "3",
      transaction: { type: "replace_suffix", expectedSuffix: kept.slice(1), replacement: [user("e")] },
    }),
    ...Array.from({ length: 10 }, (_, i) => session.addItems([user(`added ${i}`)])),
  ]);
  const items = (await session.getItems()) as { content: string }[];
  expect(items.filter(({ content }) => content.startsWith("added"))).toHaveLength(10);
  // It was replaced before anything was added, or not at all.
  expect(items[0]?.content).toBe("a");
  expect([(kept[1] as { content: string }).content, "e"]).toContain(items[1]!.content);
});

test("bytes, and objects that look as bytes are stored, come back as they were", async () => {
  const session = sessionOf("bytes");
  const audio = Uint8Array.from({ length: 70_000 }, (_, i) => i % 256);
  const items = [
    { ...user("a"), providerData: { audio, like: { $bytes: "AAAA" }, nested: { $object: { $bytes: 7 } }, nothing: {} } },
  ] as AgentInputItem[];
  await session.addItems(items);
  expect(await session.getItems()).toEqual(items);
});

test("more items than a request takes are kept in their order, and a transaction of so many is refused", async () => {
  const session = sessionOf("many");
  const items = Array.from({ length: 250 }, (_, i) => user(String(i)));
  await session.addItems(items);
  expect(await session.getItems()).toEqual(items);
  expect(await session.getItems(120)).toEqual(items.slice(130));
  await expect(session.applyHistoryTransaction({ operationId: "1", transaction: { type: "append_items", items } })).rejects.toThrow(
    "at most 99",
  );
  expect(await session.getItems()).toHaveLength(250);
});

test("items that are too large for one request together are added in several", async () => {
  const items = ["x", "y", "z"].map((text) => user(text.repeat(400_000)));
  await sessionOf("large").addItems(items);
  expect(await sessionOf("large").getItems()).toEqual(items);
});

test("a change of a history that was cleared and begun again meanwhile is made with what is there then", async () => {
  const call = { type: "function_call", callId: "c1", name: "look", arguments: "{}", status: "completed" } as const;
  const cases: ((session: CairnSession) => Promise<void>)[] = [
    (session) =>
      session.applyHistoryTransaction({
        operationId: "1",
        transaction: { type: "replace_suffix", expectedSuffix: [call], replacement: [user("replaced")] },
      }),
    (session) =>
      session.applyHistoryMutations({
        mutations: [{ type: "replace_function_call", callId: "c1", replacement: { ...call, name: "other" } }],
      }),
  ];
  for (const [i, change] of cases.entries()) {
    const session = sessionOf(`again ${i}`);
    await session.addItems([call]);
    const late = clientBefore(client, "batch", async (batch) => {
      if (batch > 1) return;
      await session.clearSession();
      await session.addItems([user("new")]);
    });
    const changed = change(new CairnSession(late.documents, `again ${i}`));
    if (i === 0) await expect(changed).rejects.toThrow("does not end with the items");
    else await changed;
    expect(await session.getItems()).toEqual([user("new")]);
  }
});

test("an operation that another process applied to a history it had cleared before is not applied twice", async () => {
  const session = sessionOf("twice");
  await session.addItems([user("old")]);
  const once = { operationId: "1", transaction: { type: "append_items" as const, items: [user("once")] } };
  const late = clientBefore(client, "batch", async (batch) => {
    if (batch > 1) return;
    await session.clearSession();
    await session.applyHistoryTransaction(once);
  });
  await new CairnSession(late.documents, "twice").applyHistoryTransaction(once);
  expect(await session.getItems()).toEqual([user("once")]);
});
