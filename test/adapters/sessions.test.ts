/**
 * Sessions of Cairn in which adapters keep conversations, and the turns that they log in them.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Agent, run, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import type { UIMessage } from "ai";
import { CairnChats } from "../../src/adapters/ai-sdk.ts";
import { CairnChatHistory } from "../../src/adapters/langchain.ts";
import { CairnSaver } from "../../src/adapters/langgraph.ts";
import { CairnSession } from "../../src/adapters/openai-agents.ts";
import { Clock } from "../../src/adapters/shared/clock.ts";
import { Sessions, type SessionOptions } from "../../src/adapters/shared/sessions.ts";
import type { Documents, Session } from "../../src/client/index.ts";
import { startClient, type ServedClient } from "../support/cairn-client.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

/** A conversation in a framework, in which the user says something and is answered. */
interface Conversation {
  ask(question: string, answer: string): Promise<unknown>;
  /** How many messages it has. */
  count(): Promise<number>;
  delete?(): Promise<unknown>;
}

const said = (id: string, role: "user" | "assistant", text: string): UIMessage => ({ id, role, parts: [{ type: "text", text }] });

const FRAMEWORKS: Record<string, (documents: Documents, id: string, session: SessionOptions) => Conversation> = {
  "ai-sdk": (documents, chatId, session) => {
    const chats = new CairnChats(documents, { session });
    return {
      async ask(question, answer) {
        const asked = [...(await chats.loadChat(chatId)), said(crypto.randomUUID(), "user", question)];
        await chats.saveChat({ chatId, messages: asked });
        const messages = [...asked, said(crypto.randomUUID(), "assistant", answer)];
        await chats.saveChat({ chatId, messages });
        // As it is, once more.
        await chats.saveChat({ chatId, messages });
      },
      count: async () => (await chats.loadChat(chatId)).length,
      delete: () => chats.deleteChat(chatId),
    };
  },
  "openai-agents": (documents, id, session) => {
    const items = new CairnSession(documents, id, { session });
    const look = tool({
      name: "look",
      description: "Looks an order up.",
      parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
      execute: () => "found",
    });
    return {
      ask(question, answer) {
        const call = [assistantMessage("I look it up."), functionCall("look", {}, { callId: "c1" })];
        return run(new Agent({ name: "bot", model: new ScriptedModel([call, [assistantMessage(answer)]]), tools: [look] }), question, {
          session: items,
        });
      },
      count: async () => (await items.getItems()).length,
    };
  },
  langchain: (documents, id, session) => {
    const history = new CairnChatHistory(documents, id, { session });
    return {
      async ask(question, answer) {
        await history.addMessage(new HumanMessage([{ type: "text", text: question }]));
        await history.addMessages([
          new AIMessage({ content: "I look it up.", tool_calls: [{ id: "1", name: "look", args: {} }] }),
          new ToolMessage({ content: "found", tool_call_id: "1" }),
        ]);
        await history.addMessage(new AIMessage(answer));
      },
      count: async () => (await history.getMessages()).length,
    };
  },
  langgraph: (documents, thread_id, session) => {
    const checkpointer = new CairnSaver(documents, { session });
    const config = { configurable: { thread_id } };
    return {
      ask(question, answer) {
        const graph = new StateGraph(MessagesAnnotation)
          .addNode("look", () => ({
            messages: [new AIMessage({ content: "I look it up.", tool_calls: [{ id: "1", name: "look", args: {} }] })],
          }))
          .addNode("tools", () => ({ messages: [new ToolMessage({ content: "found", tool_call_id: "1" })] }))
          .addNode("answer", () => ({ messages: [new AIMessage(answer)] }))
          .addNode("after", () => ({}))
          .addEdge(START, "look")
          .addEdge("look", "tools")
          .addEdge("tools", "answer")
          .addEdge("answer", "after")
          .compile({ checkpointer });
        return graph.invoke({ messages: [new HumanMessage(question)] }, config);
      },
      async count() {
        const tuple = await checkpointer.getTuple(config);
        return (tuple?.checkpoint.channel_values["messages"] as unknown[] | undefined)?.length ?? 0;
      },
      delete: () => checkpointer.deleteThread(thread_id),
    };
  },
};

const sessionsOf = async (user_id: string): Promise<Session[]> => (await client.cairn.sessions.list({ user_id })).data;
const turnsOf = async (id: string) => {
  const { data } = await client.cairn.turns.list(id, { order: "asc" });
  return data.map(({ input, output }) => [input.content, output.content]);
};

for (const [framework, begin] of Object.entries(FRAMEWORKS)) {
  const documentsOf = (user_id: string) => client.cairn.documents.of({ user_id });

  test(`${framework}: a conversation is kept in a session of its name and user, which has a turn for each answer`, async () => {
    const { cairn } = client;
    const [ada, ben] = [`${framework} ada`, `${framework} ben`];
    const session = { cairn, agent_id: "support-bot", ttl_seconds: 86_400, logTurns: true };
    const conversations = [ada, ben].map((user) => begin(documentsOf(user), "c:1", session));
    for (const conversation of conversations) await conversation.ask("Where is my order?", "It arrives tomorrow.");
    const messages = await conversations[0]!.count();
    // Another process goes on with it.
    const again = begin(documentsOf(ada), "c:1", session);
    await again.ask("Are you sure?", "Yes.");
    expect(await again.count()).toBe(2 * messages);
    await begin(documentsOf(ada), "c:2", { cairn }).ask("Hello?", "Hello.");

    const [second, first] = await sessionsOf(ada);
    expect(first).toMatchObject({ agent_id: "support-bot", external_id: `${framework}:c%3a1@${ada}`, turn_count: 2 });
    expect(second).toMatchObject({ agent_id: framework, external_id: `${framework}:c%3a2@${ada}`, turn_count: 0 });
    expect(Date.parse(first!.ttl_expires_at ?? "") - client.server.cairn.clock.now()).toBe(86_400_000);
    expect(await turnsOf(first!.id)).toEqual([
      ["Where is my order?", "It arrives tomorrow."],
      ["Are you sure?", "Yes."],
    ]);
    expect(await sessionsOf(ben)).toMatchObject([{ turn_count: 1 }]);
  });

  test(`${framework}: a conversation ends with its session, and begins again in a new one`, async () => {
    const { cairn } = client;
    const user = `${framework} cleo`;
    const conversation = begin(documentsOf(user), "c", { cairn, logTurns: true });
    await conversation.ask("Where is my order?", "It arrives tomorrow.");
    const messages = await conversation.count();
    const [{ id } = { id: "" }] = await sessionsOf(user);
    await cairn.sessions.delete(id);
    expect(await conversation.count()).toBe(0);
    expect(await documentsOf(user).count([framework], { deep: true })).toBe(0);
    await conversation.ask("Are you there?", "Yes.");
    expect(await conversation.count()).toBe(messages);
    const [next] = await sessionsOf(user);
    expect(next!.id).not.toBe(id);
    expect(await turnsOf(next!.id)).toEqual([["Are you there?", "Yes."]]);
    await conversation.delete?.();
    expect(await sessionsOf(user)).toHaveLength(conversation.delete === undefined ? 1 : 0);
  });

  test(`${framework}: after a change of the agent a conversation goes on in its session, and is deleted with it`, async () => {
    const { cairn } = client;
    const user = `${framework} dora`;
    const of = (agent_id: string) => begin(documentsOf(user), "c", { cairn, agent_id, logTurns: true });
    await of("before").ask("Where is my order?", "It arrives tomorrow.");
    const [first] = await sessionsOf(user);
    await cairn.memories.add({ session_id: first!.id, content: "The customer waits for an order." });
    const after = of("after");
    if (after.delete === undefined) {
      await after.ask("Are you sure?", "Yes.");
      expect(await sessionsOf(user)).toMatchObject([{ id: first!.id, turn_count: 2, memory_count: 1 }]);
      return;
    }
    await after.delete();
    expect(await sessionsOf(user)).toEqual([]);
    expect((await cairn.memories.list({ user_id: user })).data).toEqual([]);
    expect(await after.count()).toBe(0);
  });
}

test("a checkpoint of a graph whose session ends while it runs has all its values", async () => {
  const { cairn } = client;
  const saver = new CairnSaver(cairn.documents, { namespace: ["ended"], session: { cairn } });
  const base = { v: 4, ts: "2026-05-07T08:00:00.000Z", versions_seen: {} };
  const [metadata, config] = [{ source: "loop", step: 0, parents: {} } as const, { configurable: { thread_id: "t" } }];
  const values = { old: "kept", new: "added" };
  await saver.put(config, { ...base, id: "1", channel_values: { old: "kept" }, channel_versions: { old: 1 } }, metadata, { old: 1 });
  await cairn.sessions.delete((await cairn.sessions.list({ external_id: "ended:t" })).data[0]!.id);
  await saver.put(config, { ...base, id: "2", channel_values: values, channel_versions: { old: 1, new: 2 } }, metadata, { new: 2 });
  expect((await saver.getTuple(config))?.checkpoint).toMatchObject({ id: "2", channel_values: values });
});

test("a session is prolonged by a change when less than half of its time is left, and opened once by changes at the same time", async () => {
  const { cairn, server } = client;
  const { clock } = server.cairn;
  const requests: string[] = [];
  const sessions = new Proxy(cairn.sessions, {
    get: (target, name: "create" | "update") => {
      if (name === "create" || name === "update") requests.push(name);
      return target[name];
    },
  });
  const documents = cairn.documents.of({ user_id: "prolonged" });
  const open = () =>
    new Sessions(documents, ["a"], "test", { cairn: { sessions, turns: cairn.turns }, ttl_seconds: 1_000 }, new Clock(() => clock.now()));
  const put = (opened: Sessions, key: string) => opened.change("c", (given) => given.put(["a", "c"], key, {}));
  const opened = open();
  await Promise.all(["1", "2", "3"].map((key) => put(opened, key)));
  expect(requests.splice(0)).toEqual(["create"]);
  clock.advance({ seconds: 499 });
  await put(opened, "4");
  await put(open(), "5");
  expect(requests.splice(0)).toEqual(["create"]);
  clock.advance({ seconds: 2 });
  await put(opened, "6");
  expect(requests.splice(0)).toEqual(["create", "update"]);
  await put(open(), "7");
  expect(requests.splice(0)).toEqual(["create"]);
  clock.advance({ seconds: 999 });
  expect(await documents.count(["a", "c"])).toBe(7);
  clock.advance({ seconds: 2 });
  expect(await documents.count(["a", "c"])).toBe(0);
  await put(opened, "8");
  expect(await documents.count(["a", "c"])).toBe(1);
});

test("an agent that the documents do not belong to is refused, and theirs is that of the session", async () => {
  const { cairn } = client;
  const documents = cairn.documents.of({ user_id: "agents", agent_id: "bot" });
  expect(() => new CairnChats(documents, { session: { cairn, agent_id: "other" } })).toThrow('session.agent_id must be "bot"');
  await new CairnChats(documents, { session: { cairn } }).saveChat({ chatId: "c", messages: [said("1", "user", "Hello?")] });
  expect(await sessionsOf("agents")).toMatchObject([{ agent_id: "bot", external_id: "ai-sdk:c@agents~bot" }]);
});

test("the session of a long name has a name that fits, and two that are written alike have two sessions", async () => {
  const { cairn } = client;
  const long = "x".repeat(300);
  const put = (root: string[], conversation: string, documents = cairn.documents) =>
    new Sessions(documents, root, "test", { cairn }).change(conversation, (given) => given.put(["names"], "k", {}));
  const before = (await Array.fromAsync(cairn.sessions.list())).length;
  for (const conversation of [long, `${long}y`, "é".repeat(256)]) await put(["a"], conversation);
  await put(["a"], "b:c");
  await put(["a", "b"], "c");
  await put(["a"], "b@ada");
  await put(["a"], "b", cairn.documents.of({ user_id: "ada" }));
  await put(["a"], "b", cairn.documents.of({ agent_id: "ada" }));
  await put(["a"], "b", cairn.documents.of({ user_id: "ada", agent_id: "ada" }));
  expect((await Array.fromAsync(cairn.sessions.list())).length - before).toBe(9);
});
