/**
 * The namespaces of all adapters.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { Cairn } from "../../src/client/index.ts";
import { CairnChats } from "../../src/adapters/ai-sdk.ts";
import { CairnSessionStore } from "../../src/adapters/claude-agent-sdk.ts";
import { CairnSessionService } from "../../src/adapters/google-adk.ts";
import { CairnChatHistory } from "../../src/adapters/langchain.ts";
import { CairnSaver, CairnStore } from "../../src/adapters/langgraph.ts";
import { CairnMemory } from "../../src/adapters/mastra.ts";
import { CairnSession } from "../../src/adapters/openai-agents.ts";

const { documents } = new Cairn({ apiKey: "crn_test" });
const namespace: string[] = [];

for (const [name, make] of Object.entries({
  CairnChats: () => new CairnChats(documents, { namespace }),
  CairnChatHistory: () => new CairnChatHistory(documents, "c", { namespace }),
  CairnSaver: () => new CairnSaver(documents, { namespace }),
  CairnStore: () => new CairnStore(documents, { namespace }),
  CairnMemory: () => new CairnMemory(documents, { namespace }),
  CairnSessionService: () => new CairnSessionService(documents, { namespace }),
  CairnSessionStore: () => new CairnSessionStore(documents, { namespace }),
  CairnSession: () => new CairnSession(documents, "c", { namespace }),
}))
  test(`${name} refuses a namespace without a part when it is made`, () => {
    expect(make).toThrow(new RangeError('namespace must have at least one part, such as ["my-graph"]; got [].'));
  });
