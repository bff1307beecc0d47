/**
 * Histories of LangChain on Cairn, by chance beside the one in memory of LangChain.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { InMemoryChatMessageHistory } from "@langchain/core/chat_history";
import { AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { CairnChatHistory, type CairnChatHistoryOptions } from "../../src/adapters/langchain.ts";
import { sessionsBy, startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const historyOf = (id: string, options: CairnChatHistoryOptions = {}) => new CairnChatHistory(client.cairn.documents, id, options);

function message(chance: Chance): BaseMessage {
  return pick<() => BaseMessage>(chance, [
    () => new HumanMessage(`hello ${chance.below(9)} é😀\ud800`),
    () =>
      new HumanMessage({
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        ],
        name: "ada",
      }),
    () => new AIMessage({ content: "", tool_calls: [{ id: "1", name: "look", args: { q: chance.below(9), deep: [null] } }], id: "m1" }),
    () => new AIMessage({ content: "Hi.", additional_kwargs: { refusal: null }, response_metadata: { model: "m" } }),
    () => new ToolMessage({ content: "found", tool_call_id: "1", artifact: { rows: [1, 2] }, status: "success" }),
    () => new SystemMessage("Be kind."),
  ])();
}

test("it gives what InMemoryChatMessageHistory gives, whatever is asked of both", async () => {
  await withSeeds(async (chance, seed) => {
    const histories = [historyOf(`seed ${seed}`, sessionsBy(seed, client)), new InMemoryChatMessageHistory()] as const;
    for (let i = 0; i < 30; i++) {
      const act = chance.below(10);
      const messages = Array.from({ length: chance.below(4) }, () => message(chance));
      const one = message(chance);
      for (const history of histories) {
        if (act < 3) await history.addMessages(messages);
        else if (act < 5) await history.addMessage(one);
        else if (act === 5) await history.addUserMessage(`asked ${i}`);
        else if (act === 6) await history.addAIMessage(`answered ${i}`);
        else if (act === 7 && i % 3 === 0) await history.clear();
      }
      const [ours, theirs] = await Promise.all(histories.map((history) => history.getMessages()));
      expect(ours!.map((kept) => kept.toDict())).toEqual(theirs!.map((kept) => JSON.parse(JSON.stringify(kept.toDict()))));
      expect(ours!.map((kept) => kept.constructor)).toEqual(theirs!.map((kept) => kept.constructor));
    }
  });
});

test("a conversation goes on in another process, each with its own history", async () => {
  const model = RunnableLambda.from((messages: BaseMessage[]) => new AIMessage(`${messages.length} messages`));
  const ask = async (text: string, id: string) => {
    const history = historyOf(id);
    await history.addUserMessage(text);
    const answer = await model.invoke(await history.getMessages());
    await history.addMessage(answer);
    return answer.content;
  };
  expect(await ask("Hello", "one")).toBe("1 messages");
  expect(await ask("And now?", "one")).toBe("3 messages");
  expect(await ask("Hello", "two")).toBe("1 messages");
});

test("a message that LangChain could not read again is refused, with all that are added with it", async () => {
  const history = historyOf("unreadable");
  await history.addMessage(new HumanMessage("Hello"));
  const refused = history.addMessages([new HumanMessage("And now?"), new RemoveMessage({ id: "m1" })]);
  await expect(refused).rejects.toThrow('messages[1], of the type "remove"');
  expect((await history.getMessages()).map(({ content }) => content)).toEqual(["Hello"]);
});
