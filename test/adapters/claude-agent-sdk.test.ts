/**
 * Transcripts of the Claude Agent SDK on Cairn: by the contract of its reference stores, by chance beside its `InMemorySessionStore`, and
 * by the functions of the SDK that read a store.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  deleteSession,
  forkSession,
  getSessionMessages,
  InMemorySessionStore,
  listSessions,
  listSubagents,
  type SessionKey,
  type SessionStore,
  type SessionStoreEntry,
} from "@anthropic-ai/claude-agent-sdk";
import { CairnSessionStore } from "../../src/adapters/claude-agent-sdk.ts";
import { Cairn } from "../../src/client/index.ts";
import { startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const storeOf = (name: string) => new CairnSessionStore(client.cairn.documents, { namespace: ["claude", name] });
const newStore = () => storeOf(crypto.randomUUID());
const KEY: SessionKey = { projectKey: "p*", sessionId: "s.1" };

// The contract of the SDK's reference stores, whose suite is in its repository and not in its package.
const MAIN: SessionKey = { projectKey: "proj", sessionId: "sess" };
const SUB: SessionKey = { ...MAIN, subpath: "subagents/a" };
const OTHERS: readonly SessionKey[] = [
  { ...MAIN, sessionId: "other", subpath: "subagents/c" },
  { ...MAIN, sessionId: "other" },
  { ...MAIN, projectKey: "proj2" },
  { ...MAIN, subpath: "subagents/b" },
];
const some = (...types: string[]): SessionStoreEntry[] => types.map((type, n) => ({ type, n, nested: { x: [1, 2] } }));

test("transcripts are those of their keys alone, in the order of appends; of an unknown key there is none", async () => {
  const store = newStore();
  expect([await store.load(MAIN), await store.load(SUB)]).toEqual([null, null]);
  await store.append(MAIN, []);
  expect(await store.load(MAIN)).toBe(null);
  for (const key of OTHERS) await store.append(key, some(JSON.stringify(key)));
  expect(await store.load(MAIN)).toBe(null);
  await store.append(MAIN, some("a"));
  await store.append(MAIN, some("b", "c"));
  await store.append(MAIN, []);
  await store.append(SUB, some("s"));
  await store.append(MAIN, some("d"));
  expect([await store.load(MAIN), await store.load(SUB)]).toEqual([[...some("a"), ...some("b", "c"), ...some("d")], some("s")]);
  for (const key of OTHERS) expect(await store.load(key)).toEqual(some(JSON.stringify(key)));
});

test("a list has the sessions of a project, with a time, without those that have subagents alone; subkeys are those of a session", async () => {
  const store = newStore();
  await store.append({ ...MAIN, sessionId: "s1" }, some("a"));
  await store.append(MAIN, some("a"));
  for (const key of [SUB, ...OTHERS.slice(0, 1), ...OTHERS.slice(2)]) await store.append(key, some("a"));
  const listed = await store.listSessions("proj");
  expect(listed.map(({ sessionId }) => sessionId).toSorted()).toEqual(["s1", "sess"]);
  expect(listed.every(({ mtime }) => Number.isInteger(mtime) && mtime > 1e12)).toBe(true);
  expect([await store.listSessions("never"), await store.listSubkeys({ ...MAIN, sessionId: "never" })]).toEqual([[], []]);
  expect((await store.listSubkeys(MAIN)).toSorted()).toEqual(["subagents/a", "subagents/b"]);
});

test("a session is deleted with its subagents, and a subagent alone; others stay", async () => {
  const store = newStore();
  await store.delete(MAIN);
  for (const key of [MAIN, SUB, ...OTHERS]) await store.append(key, some("a"));
  await store.delete(SUB);
  expect([await store.load(MAIN), await store.load(SUB), await store.listSubkeys(MAIN)]).toEqual([some("a"), null, ["subagents/b"]]);
  await store.delete(MAIN);
  expect([await store.load(MAIN), await store.listSubkeys(MAIN)]).toEqual([null, []]);
  expect((await Promise.all(OTHERS.map((key) => store.load(key)))).map((found) => found?.length)).toEqual([1, 1, 1, undefined]);
});

const KEYS: readonly SessionKey[] = ["p", "*"].flatMap((projectKey) =>
  ["s", "ü 1", "*"].flatMap((sessionId) => [
    { projectKey, sessionId },
    { projectKey, sessionId, subpath: "subagents/agent-1" },
  ]),
);

function entryOf(chance: Chance, step: number): SessionStoreEntry {
  const content = pick(chance, ["hello", "é😀\ud800\n", [{ type: "text", text: "Hi." }], { nested: [1, null, { __deep: -0.5 }] }]);
  const message = { role: pick(chance, ["user", "assistant"]), content };
  return pick(chance, [
    { type: "user", uuid: `u${step}`, timestamp: "2026-05-07T08:00:00.000Z", message },
    { type: "custom-title", customTitle: `Title ${chance.below(3)}` },
    { type: "tag", tag: "" },
  ]);
}

/** What both give: times are of their clocks, and the order of lists is nobody's. */
function plain(value: unknown): unknown {
  const untimed: unknown = JSON.parse(JSON.stringify(value ?? null, (name, member: unknown) => (name === "mtime" ? 0 : member)));
  const isOfSessions = Array.isArray(value) && value.some((one) => typeof one === "string" || "sessionId" in (one as object));
  return isOfSessions ? (untimed as unknown[]).map((one) => JSON.stringify(one)).toSorted() : untimed;
}

async function steps(chance: Chance, stores: readonly [Required<SessionStore>, Required<SessionStore>]): Promise<void> {
  const both = async (what: string, ask: (store: Required<SessionStore>) => Promise<unknown>) =>
    expect({ what, result: plain(await ask(stores[0])) }).toEqual({ what, result: plain(await ask(stores[1])) });
  for (let step = 1; step <= 30; step++) {
    const key = pick(chance, KEYS);
    const entries = Array.from({ length: 1 + chance.below(3) }, (_, i) => entryOf(chance, step * 10 + i));
    const act = chance.below(10);
    if (act < 5) await both("append", (store) => store.append(key, entries));
    else if (act === 5) await both("delete", (store) => store.delete(key));
    else if (act === 6) await both("sessions", (store) => store.listSessions(key.projectKey));
    else if (act === 7) await both("summaries", (store) => store.listSessionSummaries(key.projectKey));
    else if (act === 8) await both("subkeys", (store) => store.listSubkeys(key));
    await both(`load ${JSON.stringify(key)}`, (store) => store.load(key));
  }
}

test("it gives what the store in memory gives, whatever is appended and deleted", () =>
  withSeeds((chance, seed) => steps(chance, [storeOf(`seed ${seed}`), new InMemorySessionStore()])));

const typeOf: Record<string, string> = { tag: "tag", customTitle: "custom-title", lastPrompt: "last-prompt" };

test("appends that race all stay, none counts twice, and the summary has all of them", async () => {
  const store = newStore();
  const entries = Array.from({ length: 12 }, (_, i) => ({ type: "user", uuid: String(i), message: { content: `${i}` } }));
  await Promise.all(entries.map((entry) => store.append(KEY, [entry])));
  await store.append(KEY, entries.slice(0, 2));
  expect((await store.load(KEY))?.map(({ uuid }) => Number(uuid)).toSorted((a, b) => a - b)).toEqual(entries.map((_, i) => i));
  const title = { type: "custom-title", customTitle: "A title" };
  await store.append(KEY, [title]);
  await store.append(KEY, [title]);
  expect((await store.load(KEY))?.slice(-2)).toEqual([title, title]);
  const facts = { tag: "blue", customTitle: "Another title", gitBranch: "main", lastPrompt: "And then?" };
  await Promise.all(Object.entries(facts).map(([name, value]) => store.append(KEY, [{ type: typeOf[name] ?? "user", [name]: value }])));
  const [summary] = await store.listSessionSummaries(KEY.projectKey);
  expect(summary).toMatchObject({ ...(await store.listSessions(KEY.projectKey))[0], data: facts });
});

test("an append larger than a request comes back as it was, and goes with its session", async () => {
  const store = newStore();
  const large = [
    { type: "user", uuid: "u", message: { content: `${'"\\'.repeat(500_000)}${"😀".repeat(300_000)}\ud800` } },
    { type: "user", uuid: "v" },
  ];
  await store.append({ ...KEY, subpath: "agents/a" }, [{ type: "user", uuid: "s" }]);
  await store.append(KEY, large);
  expect(await store.load(KEY)).toEqual(large);
  expect(await store.listSubkeys(KEY)).toEqual(["agents/a"]);
  await store.delete(KEY);
  expect([await store.load(KEY), await store.listSubkeys(KEY), await store.listSessions(KEY.projectKey)]).toEqual([null, [], []]);
});

test("a transcript that is deleted while it is read is gone, and no error", async () => {
  const name = crypto.randomUUID();
  const store = storeOf(name);
  await store.append(KEY, [{ type: "user", uuid: "u", text: "a".repeat(1_000_000) }]);
  let reads = 0;
  const { key: apiKey } = client.server.cairn;
  const cairn = new Cairn({
    apiKey,
    baseUrl: `http://127.0.0.1:${client.server.port}`,
    fetch: async (request) => {
      // The second request is for the parts of what the first has found.
      if (++reads === 2) await store.delete(KEY);
      return fetch(request);
    },
  });
  expect(await new CairnSessionStore(cairn.documents, { namespace: ["claude", name] }).load(KEY)).toBe(null);
});

test("the SDK lists, reads, forks and deletes sessions of the store", async () => {
  const sessionStore = storeOf("sdk");
  const dir = "/tmp";
  const sessionId = crypto.randomUUID();
  const entryAt = (i: number, role: "user" | "assistant", parentUuid: string | null) => ({
    type: role,
    uuid: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
    parentUuid,
    sessionId,
    timestamp: "2026-05-07T08:00:00.000Z",
    message: { role, content: role === "user" ? `message ${i}` : [{ type: "text", text: `message ${i}` }] },
  });
  const first = entryAt(1, "user", null);
  const key = { projectKey: "-tmp", sessionId };
  await sessionStore.append(key, [first]);
  await sessionStore.append(key, [entryAt(2, "assistant", first.uuid)]);
  await sessionStore.append({ ...key, subpath: "subagents/agent-1" }, [{ ...first, isSidechain: true, agentId: "1" }]);
  const fork = await forkSession(sessionId, { dir, sessionStore });
  const listed = await listSessions({ dir, sessionStore });
  expect(listed.map((one) => one.sessionId).toSorted()).toEqual([sessionId, fork.sessionId].toSorted());
  expect(listed.find((one) => one.sessionId === sessionId)).toMatchObject({ firstPrompt: "message 1" });
  for (const id of [sessionId, fork.sessionId]) expect(await getSessionMessages(id, { dir, sessionStore })).toHaveLength(2);
  expect(await listSubagents(sessionId, { dir, sessionStore })).toEqual(["1"]);
  await deleteSession(sessionId, { dir, sessionStore });
  expect((await listSessions({ dir, sessionStore })).map((one) => one.sessionId)).toEqual([fork.sessionId]);
});
