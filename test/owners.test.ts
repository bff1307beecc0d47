/**
 * What a key that is bound to a user or an agent sees and changes: records of theirs, and of nobody else.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { LmdbReader } from "../src/storage/lmdb/reader.ts";
import type { Owner } from "../src/storage/owner.ts";
import type { AnyTable } from "../src/storage/tables.ts";
import { errorOf, idsOf, pagesOf, refusal, unknownId } from "./support/answers.ts";
import { startCairn, type Answer, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { Chance } from "./support/process.ts";
import { REQUESTS, type FieldSchema, type Ids } from "./support/requests.ts";
import { onEmbedded } from "./support/stores.ts";

const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 7);

/** The keys that somebody else can have, by what they are bound to. */
const BINDINGS: Record<string, Owner> = {
  "a user": { userId: "bo" },
  "an agent": { agentId: "bos-agent" },
  "an agent for a user": { userId: "ada-4711", agentId: "bos-agent" },
};

test("what a bound key creates is its user's and its agent's, and it cannot name another", async () => {
  await using cairn = await startCairn();
  const ofUser = { key: await cairn.newKey({ owner: { userId: "ada" } }) };
  const ofAgent = { key: await cairn.newKey({ owner: { agentId: "planner" } }) };
  const ofBoth = { key: await cairn.newKey({ owner: { userId: "ada", agentId: "planner" } }) };
  const create = (body: object, options: RequestOptions) => cairn.post("/v1/sessions", { agent_id: "planner", ...body }, options);
  for (const options of [ofUser, ofBoth]) {
    for (const body of [{}, { user_id: null }, { user_id: "ada" }])
      expect((await create(body, options)).body).toMatchObject({ user_id: "ada", agent_id: "planner" });
  }
  expect((await create({ user_id: "bo" }, ofAgent)).body).toMatchObject({ user_id: "bo", agent_id: "planner" });
  const refused = async (body: object, options: RequestOptions) => errorOf(await create(body, options));
  const message = (field: string) => `${field} is not the one that this key is bound to.`;
  const denied = (param: string) => ({ status: 403, code: "permission_denied", message: message(param), param });
  expect(await refused({ user_id: "bo" }, ofUser)).toEqual(denied("user_id"));
  expect(await refused({ user_id: "bo" }, ofBoth)).toEqual(denied("user_id"));
  expect(await refused({ agent_id: "helper" }, ofAgent)).toEqual(denied("agent_id"));
  expect(await refused({ agent_id: "helper", user_id: "ada" }, ofBoth)).toEqual(denied("agent_id"));
});

test("a binding is shown with the key, kept when it is rolled, and refused together with the scope admin", async () => {
  await using cairn = await startCairn();
  const bound = await cairn.ok(cairn.post("/v1/api_keys", { user_id: "ada", agent_id: "planner" }));
  expect(bound).toMatchObject({ user_id: "ada", agent_id: "planner", scopes: ["read", "write"] });
  const rolled = await cairn.ok(cairn.post(`/v1/api_keys/${bound.id}/roll`, {}));
  expect(rolled).toMatchObject({ user_id: "ada", agent_id: "planner" });
  const session = await cairn.createSession({ user_id: "bo" });
  for (const { key } of [bound, rolled]) expect(refusal(await cairn.get(`/v1/sessions/${session.id}`, { key })).status).toBe(404);
  for (const param of ["user_id", "agent_id"]) {
    const answer = await cairn.post("/v1/api_keys", { scopes: ["read", "admin"], [param]: "ada" });
    expect(refusal(answer)).toEqual({ status: 400, code: "invalid_request", param });
  }
});

test("a null where a key is to be bound makes no key that is bound to nothing", async () => {
  await using cairn = await startCairn();
  const messages = {
    user_id: "user_id must not be null: leave it out for a key to the records of all users.",
    agent_id: "agent_id must not be null: leave it out for a key to the records of all agents.",
  };
  const before = await cairn.list("/v1/api_keys");
  for (const [param, message] of Object.entries(messages)) {
    for (const more of [{}, { user_id: "ada", agent_id: "planner" }])
      expect(errorOf(await cairn.post("/v1/api_keys", { ...more, [param]: null }))).toEqual({
        status: 400,
        code: "invalid_request",
        message,
        param,
      });
  }
  expect(await cairn.list("/v1/api_keys")).toEqual(before);
  expect((await cairn.post("/v1/api_keys", { name: null, rate_limit: null, expires_at: null })).status).toBe(201);
});

/** A record of each kind, with texts that are found in no other, and what they are called. */
async function oneOfEachOfAda(cairn: Cairn): Promise<{ ids: Ids; names: Record<string, string> }> {
  const names = {
    user_id: "ada-4711",
    agent_id: "adas-agent",
    external_id: "adas-thread",
    type: "adas-type",
    tags: "adas-tag",
    query: "adas parcel",
  };
  const { user_id, agent_id, external_id, type } = names;
  const { id: session_id } = await cairn.createSession({ user_id, agent_id, external_id, initial_state: { secret: "adas-state" } });
  await cairn.setState(session_id, { secret: "adas-other-state" });
  const { id: turn_id } = await cairn.addTurn(session_id, "adas-question", "adas-answer");
  const { id: memory_id } = await cairn.addMemory(session_id, "adas parcel is blue", { type, tags: [names.tags] });
  await cairn.context(session_id, { query: names.query });
  const [{ id: trace_id }] = (await cairn.traces(session_id)) as [{ id: string }];
  const [{ id: retrieval_id }] = (await cairn.list(`/v1/sessions/${session_id}/retrievals`)) as [{ id: string }];
  const others = { key_id: unknownId("key"), webhook_id: unknownId("whk"), delivery_id: unknownId("dlv"), version: "1" };
  return { ids: { session_id, turn_id, memory_id, trace_id, retrieval_id, ...others }, names };
}

/** What was found for whom is logged too. */
const LOGGING = { environment: { retrieval_log: true } };

/** The same names of nothing. */
const NOBODY: { ids: Ids; names: Record<string, string> } = {
  ids: {
    session_id: unknownId("sess"),
    turn_id: unknownId("turn"),
    memory_id: unknownId("mem"),
    trace_id: unknownId("trace"),
    retrieval_id: unknownId("ret"),
    key_id: unknownId("key"),
    webhook_id: unknownId("whk"),
    delivery_id: unknownId("dlv"),
    version: "1",
  },
  names: {
    user_id: "eve-4711",
    agent_id: "eves-agent",
    external_id: "eves-thread",
    type: "eves-type",
    tags: "eves-tag",
    query: "eves parcel",
  },
};

interface Target {
  ids: Ids;
  names: Record<string, string>;
}

/** Values for a field or parameter that name something of the target's. */
function named(name: string, schema: FieldSchema, { ids, names }: Target): unknown[] {
  if (name === "starting_after") return schema.type === "string" ? Object.values(ids).filter((id) => id.includes("_")) : [];
  const value = ids[name] ?? names[name === "types" ? "type" : name];
  return value === undefined ? [] : [schema.type === "array" ? [value] : value];
}

/** Every request of the API that concerns the target: by its path, by each parameter of its query and each field of its body. */
function requestsAbout(target: Target, own: Record<string, unknown>) {
  return REQUESTS.flatMap(({ method, template, scope, path, body, query, fields = {} }) => {
    const at = path(target.ids);
    const example = body(target.ids);
    const base = example && { ...example, ...Object.fromEntries(Object.entries(own).filter(([name]) => name in fields)) };
    const about = (url: string, sent: Record<string, unknown> | undefined) => ({ method, template, scope, url, body: sent });
    return [
      about(at, base),
      ...query.flatMap(({ name, schema }) =>
        named(name, schema, target).map((value) => about(`${at}?${name}=${encodeURIComponent(String(value))}`, base)),
      ),
      ...Object.entries(fields).flatMap(([name, schema]) =>
        named(name, schema, target).map((value) => about(at, { ...base, [name]: value })),
      ),
    ];
  });
}

/** An answer as it is whatever the names in it are: ids by the order in which they come, and the target's names by theirs. */
function withoutNames({ status, body }: Answer, { ids, names }: Target): unknown {
  let text = JSON.stringify(body ?? null);
  for (const [name, value] of [...Object.entries(ids), ...Object.entries(names)])
    if (value.length > 1) text = text.replaceAll(JSON.stringify(value).slice(1, -1), `<${name}>`);
  const order: string[] = [];
  text = text.replaceAll(/\b([a-z]+_[0-9A-Za-z]{12}|crn_[0-9A-Za-z]{4,24})\b/g, (id) => {
    if (!order.includes(id)) order.push(id);
    return `<${order.indexOf(id)}>`;
  });
  return { status, body: JSON.parse(text) };
}

/** Everything of everybody, as an administrator reads it. */
async function everything(cairn: Cairn, { ids: { session_id } }: Target): Promise<unknown> {
  const paths = ["", "/state", "/versions", "/turns", "/retrievals", "/timeline"].map((end) => `/v1/sessions/${session_id}${end}`);
  return Promise.all(
    [...paths, `/v1/memory?session_id=${session_id}`, `/v1/traces?session_id=${session_id}`].map((path) => cairn.ok(cairn.get(path))),
  );
}

/** What a bound key is answered to every request about a target. */
async function answersAbout(cairn: Cairn, target: Target, owner: Owner): Promise<object[]> {
  const key = await cairn.newKey({ owner });
  const own = { agent_id: owner.agentId ?? "helper", ...(owner.userId === undefined ? {} : { user_id: owner.userId }) };
  const answers: object[] = [];
  for (const { method, template, scope, url, body } of requestsAbout(target, own)) {
    const answer = await cairn.request(method, url, { body, key });
    answers.push({ method, template, query: url.split("?")[1]?.split("=")[0], scope, answer: withoutNames(answer, target) });
  }
  return answers;
}

for (const [to, owner] of Object.entries(BINDINGS)) {
  test(`whatever endpoint a key bound to ${to} asks for records of others, the answer is as if there were none`, async () => {
    await using cairn = await startCairn(LOGGING);
    await using empty = await startCairn(LOGGING);
    const ada = await oneOfEachOfAda(cairn);
    const before = await everything(cairn, ada);
    // A key can be bound to the same user, and not to the same agent.
    const user_id = owner.userId === ada.names["user_id"] ? (owner.userId ?? "") : "eve-4711";
    const answers = await answersAbout(cairn, ada, owner);
    const expected = await answersAbout(empty, { ...NOBODY, names: { ...NOBODY.names, user_id } }, owner);
    for (const [i, answer] of answers.entries()) expect(answer).toEqual(expected[i]!);
    const admin = answers.filter((answer) => "scope" in answer && answer.scope === "admin");
    expect(admin.length).toBeGreaterThan(0);
    for (const answer of admin) expect(answer).toMatchObject({ answer: { status: 403, body: { error: { code: "permission_denied" } } } });
    expect(await everything(cairn, ada)).toEqual(before);
  });
}

/** What the store is asked for while a request is answered: which table, and how. */
async function readsOf(cairn: Cairn, request: () => Promise<Answer>): Promise<{ status: number; reads: string[] }> {
  const reads: string[] = [];
  // What was found in this turn of the event loop is not looked for again, and the log of what was found before is written with the next
  // commit: neither request has anything of another one.
  await cairn.service.retrievals.settled();
  await Bun.sleep(0);
  const spies = (["get", "has", "keys", "rows", "vectorBytes", "isEmpty"] as const).map((method) => {
    const read = LmdbReader.prototype[method] as (this: unknown, table: AnyTable, ...more: unknown[]) => unknown;
    return spyOn(LmdbReader.prototype, method).mockImplementation(function (this: unknown, table: AnyTable, ...more: unknown[]) {
      reads.push(`${method} ${table.name}`);
      return read.call(this, table, ...more);
    } as never);
  });
  try {
    return { status: (await request()).status, reads };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

for (const [to, owner] of Object.entries(BINDINGS)) {
  test(`what a key bound to ${to} is refused as not there takes the same reads whether it is another's or nobody's`, async () => {
    await using cairn = await startCairn(LOGGING);
    const ada = await oneOfEachOfAda(cairn);
    const user_id = owner.userId === ada.names["user_id"] ? (owner.userId ?? "") : "eve-4711";
    const nobody = { ...NOBODY, names: { ...NOBODY.names, user_id } };
    const key = await cairn.newKey({ owner });
    const own = { agent_id: owner.agentId ?? "helper", ...(owner.userId === undefined ? {} : { user_id: owner.userId }) };
    const [ofAda, ofNobody] = [requestsAbout(ada, own), requestsAbout(nobody, own)];
    let refused = 0;
    for (const [i, { method, template, url, body }] of ofAda.entries()) {
      const other = ofNobody[i]!;
      const theirs = await readsOf(cairn, () => cairn.request(method, url, { body, key }));
      const none = await readsOf(cairn, () => cairn.request(other.method, other.url, { body: other.body, key }));
      if (theirs.status === 404) refused++;
      if (theirs.status >= 400) expect({ method, template, url, ...theirs }).toEqual({ method, template, url, ...none });
    }
    expect(refused).toBeGreaterThan(30);
  });
}

const TEXTS = ["Ada drinks green tea in the morning.", "Tea is what she orders.", "The invoice was paid twice.", "He prefers e-mail."];
const QUERIES = ["What does she drink?", "green tea", "the invoice", ""];
const THREADS = ["thread-1", "thread-2", "default"];

interface Move {
  who: "ada" | "bo";
  method: string;
  path: string;
  body?: object;
}

/** What is known of the ids that each of the two was given, by prefix, in their order. */
type Given = Record<Move["who"], Record<string, string[]>>;

/**
 * A request by one of the two: on what is theirs, on what is the other's, or on nothing in particular. As much chance is used for it
 * whatever there is, so that who is left out of a run does not change what the other one does.
 */
function move(chance: Chance, given: Given): Move {
  const who = chance.pick(["ada", "bo"] as const)!;
  const [kind, whose, which, text, query, thread, small] = Array.from({ length: 7 }, () => chance.next());
  const one = <Item>(items: readonly Item[], at = 0) => items[Math.floor(at * items.length)] as Item;
  const other = who === "ada" ? "bo" : "ada";
  const id = (prefix: string) => one(given[whose! < 0.7 ? who : other][prefix] ?? [], which) ?? unknownId(prefix);
  const session = `/v1/sessions/${id("sess")}`;
  // A cursor is a time as well: where that lies is no secret.
  const cursor = (prefix: string) => `starting_after=${one(given[who][prefix] ?? [], which) ?? unknownId(prefix)}`;
  const limit = 1 + Math.floor(small! * 5);
  const user_id = one([undefined, "ada", "bo"], small);
  const namespace = [one(THREADS, thread)];
  const filters = `limit=${limit}${user_id === undefined ? "" : `&user_id=${user_id}`}`;
  const post = (path: string, body: object) => ({ who, method: "POST", path, body });
  const get = (path: string) => ({ who, method: "GET", path });
  return one<() => Move>(
    [
      () => post("/v1/sessions", { agent_id: who, external_id: one(THREADS, thread), if_exists: one(["error", "return"], text) }),
      () => post("/v1/sessions", { agent_id: who, user_id, metadata: { note: one(TEXTS, text) } }),
      () => get(`/v1/sessions?${filters}`),
      () => get(`/v1/sessions?external_id=${one(THREADS, thread)}`),
      () => get(`/v1/sessions?limit=${limit}&${cursor("sess")}`),
      () => get(session),
      () => ({ who, method: "PATCH", path: `${session}/state`, body: { state: { [`k${limit}`]: one(TEXTS, text) } } }),
      () => post(`${session}/rollback`, { version: -1 }),
      () => post(`${session}/fork`, {}),
      () => get(`${session}/versions`),
      () => post(`${session}/turns`, { input: { type: "text", content: one(TEXTS, text) }, output: { type: "error", content: "no" } }),
      () => get(`${session}/turns?${cursor("turn")}`),
      ...[1, 2, 3].map(() => () => post("/v1/memory", { session_id: id("sess"), content: one(TEXTS, text), tags: [one(THREADS, thread)] })),
      () => ({ who, method: "PATCH", path: `/v1/memory/${id("mem")}`, body: { content: one(TEXTS, text) } }),
      () => ({ who, method: "DELETE", path: `/v1/memory/${id("mem")}` }),
      () => get(`/v1/memory?${filters}&tags=${one(THREADS, thread)}`),
      () => get(`/v1/memory?session_id=${id("sess")}`),
      () => get(`/v1/memory/${id("mem")}`),
      ...[1, 2].map(() => () => post("/v1/memory/search", { query: one(QUERIES, query), threshold: 0, user_id, limit })),
      () => post("/v1/memory/search", { query: one(QUERIES, query), threshold: 0, session_id: id("sess") }),
      () => post(`${session}/context`, { query: one(QUERIES, query) }),
      () => get(`${session}/retrievals?limit=${limit}`),
      () => get(`/v1/traces?${filters}`),
      () => get(`/v1/traces?limit=${limit}&session_id=${id("sess")}`),
      () => get(`/v1/traces?limit=${limit}&action=memory.created&${cursor("trace")}`),
      () => get(`/v1/traces/${id("trace")}`),
      () => ({ who, method: "DELETE", path: `${session}?reason=done` }),
      () =>
        post("/v1/documents/batch", {
          operations: [{ op: "put", namespace, key: one(THREADS, text), value: { limit }, if_version: one([undefined, 0], whose) }],
        }),
      ...[1, 2].map(
        () => () =>
          post("/v1/documents/batch", {
            operations: [
              {
                op: "put",
                namespace,
                key: one(TEXTS, text),
                value: { text: one(TEXTS, text), limit },
                index: one([true, ["text"]], whose),
              },
            ],
          }),
      ),
      ...[1, 2].map(
        () => () =>
          post("/v1/documents/query", {
            operations: [
              { op: "search", namespace, query: one(QUERIES, query), limit, filter: one([undefined, { limit: { $gt: 2 } }], which) },
            ],
            user_id: one([undefined, user_id], text),
          }),
      ),
      () => post("/v1/documents/batch", { operations: [{ op: "put", namespace, key: "of a session", value: {}, session_id: id("sess") }] }),
      () => post("/v1/documents/batch", { operations: [{ op: one(["pop", "delete_all"], text), namespace }], user_id }),
      ...[1, 2].map(
        () => () =>
          post("/v1/documents/query", {
            operations: [{ op: "list", namespace, deep: true }, { op: "count", namespace, deep: true }, { op: "namespaces" }],
            user_id: one([undefined, user_id], text),
          }),
      ),
    ],
    kind,
  )();
}

/** What one of the two is answered to a sequence of requests, in which the other one takes part or not. */
async function answersOf(seed: number, owners: Record<Move["who"], object>, alone: Move["who"] | undefined): Promise<unknown[]> {
  await using cairn = await startCairn(LOGGING);
  const keys = { ada: await cairn.newKey({ owner: owners.ada }), bo: await cairn.newKey({ owner: owners.bo }) };
  const given: Given = { ada: {}, bo: {} };
  const chance = new Chance(seed);
  const seen = new Map<string, string>();
  const answers: unknown[] = [];
  for (let i = 0; i < 300; i++) {
    const { who, method, path, body } = move(chance, given);
    // As in that time: otherwise the next request of the other one would write what waits.
    await cairn.runTaskOnce("log of retrievals");
    cairn.clock.advance({ seconds: 1 });
    if (alone !== undefined && who !== alone) continue;
    const answer = await cairn.request(method, path, { body, key: keys[who] });
    const text = JSON.stringify(answer.body).replaceAll(keys[who].slice(0, 8), "<key>");
    for (const [found] of text.matchAll(/\b(sess|mem|turn|trace|ret)_[0-9A-Za-z]{12}\b/g)) {
      const [prefix = ""] = found.split("_");
      // What it asked for is not what it was given.
      if (answer.status >= 400 || (given[who][prefix] ??= []).includes(found)) continue;
      given[who][prefix].push(found);
    }
    if (who !== "bo") continue;
    const names = text.replaceAll(/\b(sess|mem|turn|trace|ret|emb|req)_[0-9A-Za-z]{12}\b/g, (id) => {
      // An id that it was never given is one of many that it could have guessed.
      const isOwn = given.bo[id.split("_")[0]!]?.includes(id) === true || id.startsWith("emb_");
      if (!isOwn) return "<guessed>";
      if (!seen.has(id)) seen.set(id, `<${id.split("_")[0]} ${seen.size}>`);
      return seen.get(id)!;
    });
    answers.push({ i, method, path: path.replaceAll(/_[0-9A-Za-z]{12}/g, "_id"), status: answer.status, body: JSON.parse(names) });
  }
  return answers;
}

const OWNERS = {
  "two users": { ada: { userId: "ada" }, bo: { userId: "bo" } },
  "two agents": { ada: { agentId: "ada" }, bo: { agentId: "bo" } },
  "two agents of one user": { ada: { userId: "bo", agentId: "ada" }, bo: { userId: "bo", agentId: "bo" } },
};

for (const [whose, owners] of Object.entries(OWNERS)) {
  test(`of the keys of ${whose} neither is answered anything that the other one's requests have changed (seed ${SEED})`, async () => {
    for (const seed of [SEED, SEED + 1]) {
      const together = await answersOf(seed, owners, undefined);
      const alone = await answersOf(seed, owners, "bo");
      expect(together.length).toBeGreaterThan(100);
      for (const [i, answer] of together.entries()) expect({ seed, ...(answer as object) }).toEqual({ seed, ...(alone[i] as object) });
    }
  });
}

onEmbedded("it looks at ranges of indexes one by one")(
  "no cursor of a bound key's list names a record of others, however much of them lies between its own",
  async () => {
    await using cairn = await startCairn({ listProbesMax: 2 });
    const key = await cairn.newKey({ owner: { userId: "bo" } });
    const [ada, bo] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "bo" })];
    const others: string[] = [];
    for (let i = 0; i < 30; i++) {
      others.push((await cairn.addMemory(ada.id, `Her ${i}`, { type: "rare", embed: false })).id);
      await cairn.addMemory(bo.id, `His ${i}`, { type: i === 0 ? "rare" : "general", embed: false });
    }
    const pages = await pagesOf(cairn, "/v1/memory?type=rare", { key });
    expect(pages.flatMap(({ data }) => data)).toHaveLength(1);
    expect(pages.length).toBeGreaterThan(3);
    const named = pages.map(({ last_id }) => last_id).filter((id) => id !== null);
    expect(named.filter((id) => others.includes(id))).toEqual([]);
  },
);

test("two owners can have sessions of one external_id, and each finds its own", async () => {
  await using cairn = await startCairn();
  const keys = [
    { key: cairn.key, body: { agent_id: "agent" } },
    { key: await cairn.newKey({ owner: { userId: "ada" } }), body: { agent_id: "agent" } },
    { key: await cairn.newKey({ owner: { userId: "bo" } }), body: { agent_id: "agent" } },
    { key: await cairn.newKey({ owner: { agentId: "planner" } }), body: { agent_id: "planner", user_id: "cy" } },
  ];
  const ids: string[] = [];
  const send = (body: object, key: string) => cairn.post("/v1/sessions", { ...body, external_id: "default", if_exists: "return" }, { key });
  for (const { key, body } of keys) {
    const { status, body: made } = await send(body, key);
    expect(status).toBe(201);
    ids.push(made.id);
  }
  for (const [i, { key, body }] of keys.entries().drop(1)) {
    const again = await send(body, key);
    expect([again.status, again.body.id]).toEqual([200, ids[i]]);
    expect(idsOf(await cairn.list("/v1/sessions?external_id=default", { key }))).toEqual([ids[i]!]);
  }
  expect(idsOf(await cairn.list("/v1/sessions?external_id=default"))).toEqual(ids.toReversed());
});
