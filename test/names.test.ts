/**
 * Whom a name leads to: a session is found by its `external_id` within its user alone, by every operation that takes one or has one of
 * its own, so that nobody can plant a session that others are given for theirs.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { CairnChats } from "../src/adapters/ai-sdk.ts";
import { Cairn as Client } from "../src/client/index.ts";
import { NO_PARTITION } from "../src/lib/ids.ts";
import type { Owner } from "../src/storage/owner.ts";
import { NAMES_FILL } from "../src/sessions/names.ts";
import { ALL_FILLED, fillMark, meta, sessions } from "../src/storage/tables.ts";
import { errorOf, idsOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { DOCUMENT, resolved, type Schema } from "./support/documented.ts";
import { REQUESTS } from "./support/requests.ts";
import { startServer } from "./support/server.ts";

/** Who asks, and by which key: the application's own names the user, a bound one need not. */
interface Victim {
  key: string;
  user: string | null;
  /** What the request says of the user. */
  named: { user_id?: string };
}

const NAME = "thread-7";
const AGENT = "support-bot";
/** Each name that some operation looks up, for a user or without one. */
const PLANTED = [NAME, "mcp:mcp:", "mcp:mcp:ada", "global", "global:ada", "ai-sdk:c1", "ai-sdk:c1@ada"];

/** Those who plant, and what they say of the user. */
const PLANTERS: Record<string, { owner: Owner; agent_id: string; users: (string | undefined)[] }> = {
  "a key bound to another user": { owner: { userId: "bob" }, agent_id: "mcp", users: [undefined] },
  "a key bound to another user and an agent": { owner: { userId: "bob", agentId: "mcp" }, agent_id: "mcp", users: [undefined] },
  "a key bound to another agent, for every user": { owner: { agentId: "evil" }, agent_id: "evil", users: [undefined, "ada"] },
};

async function plant(cairn: Cairn, { owner, agent_id, users }: (typeof PLANTERS)[string]): Promise<string[]> {
  const key = await cairn.newKey({ owner });
  const bodies = users.flatMap((user_id) => PLANTED.map((external_id) => ({ agent_id, user_id, external_id })));
  const planted = [];
  for (const body of bodies)
    planted.push(await cairn.ok(cairn.post("/v1/sessions", { ...body, initial_state: { planted: true } }, { key })));
  return idsOf(planted);
}

const victimsOf = async (cairn: Cairn): Promise<Victim[]> => [
  { key: cairn.key, user: "ada", named: { user_id: "ada" } },
  { key: cairn.key, user: null, named: {} },
  { key: await cairn.newKey({ owner: { userId: "ada" } }), user: "ada", named: {} },
];

/** Everything of sessions, as an administrator reads it. */
const everythingOf = (cairn: Cairn, ids: readonly string[]): Promise<unknown[]> =>
  Promise.all(
    ids.flatMap((id) =>
      [`/v1/sessions/${id}`, `/v1/sessions/${id}/versions`, `/v1/sessions/${id}/timeline`, `/v1/memory?session_id=${id}`].map((path) =>
        cairn.ok(cairn.get(path)),
      ),
    ),
  );

const queryOf = (parameters: Record<string, unknown>) => new URLSearchParams(parameters as Record<string, string>).toString();

/**
 * What each operation by a name does for a victim, and the ids of the sessions that it led to. An operation that takes one, or chooses a
 * session by itself, has to be here: the document says which these are.
 */
const BY_NAME: Record<string, (cairn: Cairn, victim: Victim) => Promise<string[]>> = {
  "POST /v1/sessions": async (cairn, { key, named }) => {
    const create = (more: object) => cairn.post("/v1/sessions", { agent_id: AGENT, external_id: NAME, ...named, ...more }, { key });
    const first = await create({ if_exists: "return" });
    expect(refusal(await create({}))).toEqual({ status: 409, code: "already_exists", param: "external_id" });
    const again = await create({ if_exists: "return", agent_id: "another" });
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
    return [first.body.id, again.body.id];
  },
  "GET /v1/sessions": async (cairn, { key, user, named }) => {
    const found = await cairn.list(`/v1/sessions?${queryOf({ external_id: NAME, ...named, agent_id: AGENT, exact_user: "true" })}`, {
      key,
    });
    const ofAny = await cairn.list(`/v1/sessions?${queryOf({ external_id: NAME, ...named, exact_user: "true" })}`, { key });
    expect(ofAny.map(({ user_id }) => user_id)).toEqual(ofAny.map(() => user));
    expect(idsOf(ofAny)).toEqual(expect.arrayContaining(idsOf(found)));
    expect(found).toHaveLength(1);
    return idsOf(found);
  },
  "POST /v1/memory": async (cairn, { key, user, named }) => {
    const body = { content: "The PIN of Ada is 1234.", agent_id: AGENT, ...named };
    expect(await cairn.ok(cairn.post("/v1/memory", body, { key }))).toMatchObject({ session_id: null, user_id: user, agent_id: AGENT });
    return [];
  },
  "PATCH /v1/memory/{memory_id}": async (cairn, { key, user, named }) => {
    const body = { content: "The PIN of Ada is 1234.", agent_id: AGENT, ...named };
    const { id } = await cairn.ok(cairn.post("/v1/memory", body, { key }));
    // As somebody's session is named, which is no memory.
    expect(await cairn.ok(cairn.patch(`/v1/memory/${id}`, { external_id: NAME }, { key }))).toMatchObject({ id, user_id: user });
    await cairn.ok(cairn.delete(`/v1/memory/${id}`, { key }));
    return [];
  },
  "POST /v1/memories": async (cairn, { key, named }) => {
    const { session_id } = await cairn.ok(cairn.post("/v1/memories", { content: "The PIN of Ada is 1234.", ...named }, { key }));
    return [session_id];
  },
};

test("every operation that takes an external_id, or chooses a session by itself, is in the table of this test", () => {
  // A turn's name is one within the session of the path.
  const named = REQUESTS.filter(
    ({ template, query, fields = {} }) =>
      ("external_id" in fields && !template.includes("{session_id}")) ||
      query.some(({ name }) => name === "external_id" || name === "exact_user"),
  );
  const choosing = REQUESTS.filter(
    ({ scope, template, fields = {}, required }) =>
      scope === "write" && "session_id" in fields && !required.includes("session_id") && !template.includes("{session_id}"),
  );
  const operations = new Set([...named, ...choosing].map(({ method, template }) => `${method} ${template}`));
  expect(Array.from(operations).sort()).toEqual(Object.keys(BY_NAME).sort());
  // Nothing else in the document has a name by which it could be found.
  const schemas = Object.entries(DOCUMENT.components.schemas).filter(([, schema]) =>
    JSON.stringify(resolved<Schema>(DOCUMENT, schema)).includes('"external_id"'),
  );
  const ofTurns = ["NewStep", "NewTurn", "Step", "StepMemory", "Turn", "TurnResult"];
  expect(schemas.map(([name]) => name).sort()).toEqual(
    [
      "AddedMemory",
      "ForgetResult",
      "FoundMemories",
      "Memory",
      "MemoryBatch",
      "MemoryChanges",
      "NewMemory",
      "NewSession",
      "Session",
      ...ofTurns,
    ].sort(),
  );
});

const TOOL_CALLS: Record<string, Record<string, unknown>> = {
  add_memory: { content: "The PIN of Ada is 1234." },
  update_state: { changes: { pin: 1234 } },
  add_turn: { input: "What is my PIN?", output: "It is 1234." },
  rollback_state: {},
  get_context: { query: "pin" },
  get_state: {},
  list_versions: {},
  list_sessions: {},
  list_memories: {},
  search_memories: { query: "PIN" },
  search_turns: { query: "PIN" },
};
/** These name their record, or make one. */
const NO_LOOKUP = ["delete_memory", "start_session", "update_memory"];

/** Calls a method of MCP with the headers that the page on MCP gives to Claude Code. */
async function mcp(cairn: Cairn, { key, named }: Victim, method: string, params: object): Promise<any> {
  const headers = {
    "x-api-key": key,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
    ...(named.user_id === undefined ? {} : { "x-cairn-user": named.user_id }),
  };
  const { status, text } = await cairn.plain("POST", "/mcp", { headers, raw: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  expect(status).toBe(200);
  return JSON.parse(text).result;
}

for (const [planter, plan] of Object.entries(PLANTERS)) {
  test(`nothing that ${planter} has named leads others to its sessions, whichever operation looks for the name`, async () => {
    await using cairn = await startCairn();
    const planted = await plant(cairn, plan);
    const before = await everythingOf(cairn, planted);
    for (const victim of await victimsOf(cairn)) {
      for (const [operation, run] of Object.entries(BY_NAME)) {
        const ids = await run(cairn, victim);
        const users = await Promise.all(ids.map(async (id) => (await cairn.session(id)).user_id));
        expect({ operation, users, planted: ids.filter((id) => planted.includes(id)) }).toEqual({
          operation,
          users: ids.map(() => victim.user),
          planted: [],
        });
      }
    }
    expect(await everythingOf(cairn, planted)).toEqual(before);
  });

  test(`every tool of MCP, as its page sets it up, uses the session of its user beside what ${planter} has named`, async () => {
    await using cairn = await startCairn();
    const planted = await plant(cairn, plan);
    const before = await everythingOf(cairn, planted);
    for (const victim of await victimsOf(cairn)) {
      const { tools } = await mcp(cairn, victim, "tools/list", {});
      expect(tools.map(({ name }: { name: string }) => name).sort()).toEqual([...Object.keys(TOOL_CALLS), ...NO_LOOKUP].sort());
      for (const [name, input] of Object.entries(TOOL_CALLS)) {
        const { structuredContent, isError, content } = await mcp(cairn, victim, "tools/call", { name, arguments: input });
        expect({ name, isError, content }).toMatchObject({ name, isError: undefined });
        if (!("session_id" in structuredContent)) continue;
        const { session_id, user_id } = structuredContent;
        // What is kept for a user is in no session.
        if (name === "add_memory" && victim.user !== null && session_id === null) {
          expect(user_id).toBe(victim.user);
          continue;
        }
        expect({ name, session_id, user: (await cairn.session(session_id)).user_id }).toEqual({ name, session_id, user: victim.user });
        expect(planted).not.toContain(session_id);
      }
    }
    expect(await everythingOf(cairn, planted)).toEqual(before);
  });

  test(`an adapter keeps, and deletes, the conversation of its user beside what ${planter} has named`, async () => {
    await using server = await startServer();
    const { cairn } = server;
    const planted = await plant(cairn, plan);
    const before = await everythingOf(cairn, planted);
    for (const { key, user, named } of await victimsOf(cairn)) {
      const client = new Client({ apiKey: key, baseUrl: `http://127.0.0.1:${server.port}`, retries: 0 });
      const chats = new CairnChats(client.documents.of(named), { session: { cairn: client } });
      const messages = [{ id: "1", role: "user" as const, parts: [{ type: "text" as const, text: "My PIN is 1234." }] }];
      await chats.saveChat({ chatId: "c1", messages });
      const all = (await client.sessions.list({ agent_id: "ai-sdk" })).data;
      const own = all.filter(({ id, user_id }) => user_id === user && !planted.includes(id));
      expect(own).toHaveLength(1);
      expect(await chats.loadChat("c1")).toEqual(messages);
      await chats.deleteChat("c1");
      expect(refusal(await cairn.get(`/v1/sessions/${own[0]!.id}`)).status).toBe(404);
      expect(await chats.loadChat("c1")).toEqual([]);
    }
    expect(await everythingOf(cairn, planted)).toEqual(before);
  });
}

test("a list shows every session of a name that the key may see, each with its user", async () => {
  await using cairn = await startCairn();
  const create = (more: object, key = cairn.key) =>
    cairn.ok(cairn.post("/v1/sessions", { agent_id: AGENT, external_id: NAME, ...more }, { key }));
  const ofAgent = await cairn.newKey({ owner: { agentId: "planner" } });
  const [ada, bo, nobody] = [await create({ user_id: "ada" }), await create({ user_id: "bo" }), await create({})];
  const planned = await create({ user_id: "ada", agent_id: "planner" }, ofAgent);
  const planless = await create({ agent_id: "planner" }, ofAgent);
  const listed = async (query: object, key = cairn.key) => {
    const found = await cairn.list(`/v1/sessions?${queryOf({ external_id: NAME, ...query })}`, { key });
    return found.map(({ id, user_id }) => [id, user_id]);
  };
  const shown = (...found: { id: string; user_id: string | null }[]) => found.map(({ id, user_id }) => [id, user_id]);
  expect(await listed({})).toEqual(shown(planless, planned, nobody, bo, ada));
  expect(await listed({ user_id: "ada" })).toEqual(shown(planned, ada));
  // With exactly a user it is a look-up: at most one, which no key of an agent has named for others.
  expect(await listed({ exact_user: "true" })).toEqual(shown(nobody));
  expect(await listed({ exact_user: "true", agent_id: AGENT })).toEqual(shown(nobody));
  expect(await listed({ exact_user: "false" })).toHaveLength(5);
  expect(await listed({ exact_user: "true", user_id: "ada" })).toEqual(shown(ada));
  expect(await listed({}, ofAgent)).toEqual(shown(planless, planned));
  expect(await listed({ exact_user: "true" }, ofAgent)).toEqual(shown(planless));
  const ofAda = await cairn.newKey({ owner: { userId: "ada" } });
  expect(await listed({}, ofAda)).toEqual(shown(planned, ada));
  expect(await listed({ exact_user: "true" }, ofAda)).toEqual(shown(ada));
  expect(refusal(await cairn.get(`/v1/sessions?exact_user=yes`))).toEqual({ status: 400, code: "invalid_request", param: "exact_user" });
  // Also of sessions that have no name.
  const unnamed = await cairn.createSession();
  expect(idsOf(await cairn.list("/v1/sessions?exact_user=true"))).toEqual(idsOf([unnamed, planless, nobody]));
});

test("with exact_user a list of a name has the session that if_exists: return gives, whichever agent asks, and no other", async () => {
  await using cairn = await startCairn();
  const keys = {
    application: cairn.key,
    user: await cairn.newKey({ owner: { userId: "ada" } }),
    agent: await cairn.newKey({ owner: { agentId: "evil" } }),
    both: await cairn.newKey({ owner: { userId: "ada", agentId: "evil" } }),
  };
  const looked = (key: string, query: object) =>
    cairn.list(`/v1/sessions?${queryOf({ external_id: NAME, exact_user: "true", ...query })}`, { key });
  const opened = (key: string, body: object) =>
    cairn.ok(cairn.post("/v1/sessions", { external_id: NAME, if_exists: "return", ...body }, { key }));
  for (const named of [{ user_id: "ada" }, {}]) {
    expect(await looked(keys.application, named)).toEqual([]);
    const made = await opened(keys.application, { agent_id: AGENT, ...named });
    // Newer, and of the same user.
    const planted = await opened(keys.agent, { agent_id: "evil", ...named });
    expect(planted.id).not.toBe(made.id);
    for (const agent of [{}, { agent_id: AGENT }, { agent_id: "changed since" }, { agent_id: "evil" }])
      for (const more of [{}, { limit: "1" }]) expect(await looked(keys.application, { ...named, ...agent, ...more })).toEqual([made]);
    expect(await looked(keys.agent, named)).toEqual([planted]);
    expect(await looked(keys.agent, { ...named, agent_id: AGENT })).toEqual([]);
  }
  const [adas] = await looked(keys.application, { user_id: "ada" });
  for (const [key, agent_id] of [
    [keys.application, "changed since"],
    [keys.user, "changed since"],
    [keys.agent, "evil"],
    [keys.both, "evil"],
  ] as const) {
    const query = { agent_id, user_id: "ada" };
    expect(await looked(key, query)).toEqual([await opened(key, query)]);
  }
  expect(await looked(keys.user, {})).toEqual([adas]);
  // What else is asked for narrows it.
  const other = { user_id: "ada", agent_id: "other" };
  const before = new Date(Date.parse(adas.created_at) + 1).toISOString();
  const { id } = adas;
  for (const [query, found] of [
    [{ created_before: before }, [adas]],
    [{ created_after: adas.created_at }, []],
    [{ created_before: adas.created_at }, []],
    [{ starting_after: id }, []],
    [{ starting_after: (await cairn.createSession()).id }, [adas]],
    [{ forked_from: id }, []],
    [{ forked_from: "none" }, []],
  ] as const)
    expect({ query, found: await looked(keys.application, { ...other, ...query }) }).toEqual({ query, found: [...found] });
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  // Of the agent that named one itself, that is left.
  expect(await looked(keys.application, other)).toEqual([]);
  expect(await looked(keys.application, { user_id: "ada" })).toEqual([]);
  expect(await looked(keys.application, { user_id: "ada", agent_id: "evil" })).toMatchObject([{ agent_id: "evil", user_id: "ada" }]);
});

test("the tools of MCP that look for the session, and those that open it, use the same one where another agent has made it", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ agent_id: "before", user_id: "ada", external_id: "mcp:mcp:ada" });
  await cairn.addMemory(ada.id, "The PIN of Ada is 1234.");
  const victim = { key: cairn.key, user: "ada", named: { user_id: "ada" } };
  for (const [name, input] of Object.entries({ get_context: { query: "PIN" }, ...TOOL_CALLS })) {
    const { structuredContent } = await mcp(cairn, victim, "tools/call", { name, arguments: input });
    const id = name === "add_memory" ? null : ada.id;
    if ("session_id" in structuredContent) expect({ name, id: structuredContent.session_id }).toEqual({ name, id });
  }
  expect(idsOf(await cairn.list("/v1/sessions"))).toEqual([ada.id]);
});

test("an agent's key and the application's find the same session of their agent, whichever named it", async () => {
  await using cairn = await startCairn();
  const ofAgent = await cairn.newKey({ owner: { agentId: "planner" } });
  const open = async (external_id: string, agent_id: string, key: string) => {
    const { body } = await cairn.post("/v1/sessions", { agent_id, user_id: "ada", external_id, if_exists: "return" }, { key });
    return body.id;
  };
  const byApplication = await open("a", "planner", cairn.key);
  expect(await open("a", "planner", ofAgent)).toBe(byApplication);
  const byAgent = await open("b", "planner", ofAgent);
  expect(await open("b", "planner", cairn.key)).toBe(byAgent);
  // Of another agent it is another session: who named the first one could be reading it.
  const ofOther = await open("b", "support-bot", cairn.key);
  expect(ofOther).not.toBe(byAgent);
  expect(await open("b", "helper", cairn.key)).toBe(ofOther);
  expect(await open("b", "planner", ofAgent)).toBe(byAgent);
  expect(
    errorOf(await cairn.post("/v1/sessions", { agent_id: "planner", user_id: "ada", external_id: "b" }, { key: ofAgent })),
  ).toMatchObject({
    status: 409,
    message: `Session ${byAgent} has the external_id "b" already. Nothing was changed.`,
  });
});

test("of the name of a user and that of an agent of the user, a request without a bound key finds the user's, whichever is older", async () => {
  await using cairn = await startCairn();
  const agent = await cairn.newKey({ owner: { agentId: AGENT } });
  const find = async (agent_id: string, external_id: string, key = cairn.key): Promise<string> => {
    const body = { agent_id, user_id: "ada", external_id, if_exists: "return" };
    return (await cairn.ok(cairn.post("/v1/sessions", body, { key }))).id;
  };
  for (const isOlder of [true, false]) {
    const name = `is older: ${isOlder}`;
    const makers = { user: () => find("another agent", name), agent: () => find(AGENT, name, agent) };
    const made: Record<string, string> = {};
    for (const who of isOlder ? (["user", "agent"] as const) : (["agent", "user"] as const)) made[who] = await makers[who]();
    expect(made["user"]).not.toBe(made["agent"]);
    expect([await find(AGENT, name), await find(AGENT, name, agent)]).toEqual([made["user"]!, made["agent"]!]);
  }
});

test("names that an earlier Cairn has stored are found within their users after a start, which completes them once", async () => {
  await using cairn = await startCairn();
  const bob = await cairn.newKey({ owner: { userId: "bob" } });
  const made = await cairn.createSession({ external_id: NAME, agent_id: "mcp" });
  const ada = await cairn.createSession({ external_id: "mcp:mcp:ada", agent_id: "mcp", user_id: "ada" });
  for (const external_id of PLANTED) await cairn.ok(cairn.post("/v1/sessions", { agent_id: "mcp", external_id }, { key: bob }));
  const ids = idsOf(await cairn.list("/v1/sessions"));
  // As they were: without what a name is unique within, and without the mark that all say so.
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    for (const id of ids) {
      const key = id.slice("sess_".length) as never;
      const { namedWithin: _, ...before } = tx.get(sessions, key)!;
      tx.put(sessions, key, before);
    }
    tx.remove(meta, fillMark(NAMES_FILL.name));
  });
  expect(await cairn.findings()).toEqual([]);
  await cairn.restart();
  expect(await cairn.findings()).toEqual([]);
  expect(await cairn.read((reader) => reader.get(meta, fillMark(NAMES_FILL.name)))).toBe(ALL_FILLED);
  const open = async (external_id: string, more: object) =>
    (await cairn.post("/v1/sessions", { agent_id: "mcp", external_id, if_exists: "return", ...more })).body;
  expect((await open(NAME, {})).id).toBe(made.id);
  expect((await open("mcp:mcp:ada", { user_id: "ada" })).id).toBe(ada.id);
  expect(await open("mcp:mcp:ada", {})).toMatchObject({ user_id: null });
  expect(await open(NAME, { user_id: "ada" })).toMatchObject({ user_id: "ada" });
  const { structuredContent } = await mcp(cairn, { key: cairn.key, user: "ada", named: { user_id: "ada" } }, "tools/call", {
    name: "get_context",
    arguments: {},
  });
  expect(structuredContent.session_id).toBe(ada.id);
  const after = await cairn.read((reader) => ids.map((id) => reader.get(sessions, id.slice("sess_".length) as never)?.namedWithin));
  expect(after).toEqual(ids.map(() => "user"));
});
