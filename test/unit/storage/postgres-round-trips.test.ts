/**
 * How often a request waits for the database: on PostgreSQL that decides how quick it is.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { startCairn, type Cairn } from "../../support/cairn.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";
import { REQUESTS, type Ids } from "../../support/requests.ts";

/** What is asked for most: not once more than this. */
const OFTEN: Readonly<Record<string, number>> = {
  "GET /v1/sessions/{session_id}": 1,
  "GET /v1/sessions/{session_id}/state": 1,
  // It signs each chain of the server first.
  "GET /v1/audit/head": 8,
  "POST /v1/sessions": 2,
  "POST /v1/sessions/{session_id}/turns": 2,
  "POST /v1/sessions/{session_id}/state": 2,
  "PATCH /v1/sessions/{session_id}/state": 2,
  "GET /v1/sessions/{session_id}/turns": 2,
  // One of them, for what is pinned, at the same time as the search.
  "POST /v1/sessions/{session_id}/context": 4,
  "POST /v1/memory": 3,
  "POST /v1/memory/batch": 3,
  "POST /v1/memory/search": 3,
  // One of them, for the words of its turns.
  "DELETE /v1/sessions/{session_id}": 5,
};

/** The body without what makes one request do the work of several: memories like one that is added, and a step's besides its turn. */
function plain(name: string, body: object): object {
  const { similar: _, ...alone } = body as { similar?: unknown; memories?: unknown; state_patch?: unknown };
  if (name !== "POST /v1/sessions/{session_id}/turns") return alone;
  const { memories: __, state_patch: ___, ...turn } = alone;
  return turn;
}

/** Once the turns that are there are indexed: until then a search indexes those that it is about. */
const OF_INDEXED_TURNS: ReadonlySet<string> = new Set(["POST /v1/turns/search", "GET /v1/turns"]);

/** It ends once all that the user had is gone, a piece at a time. */
const AS_LONG_AS_IT_TAKES: ReadonlySet<string> = new Set(["DELETE /v1/users/{user_id}"]);

const ALL_OTHERS = 4;
/** A batch of documents, however many there are. */
const BATCH = 5;

/** On a busy machine a request reads again what it has read, and connections are opened meanwhile: the best of a few counts. */
const ATTEMPTS = 6;

if (isHere(POSTGRES, "how often each request waits for the database")) {
  let postgres: Postgres;
  let cairn: Cairn;
  beforeAll(async () => {
    postgres = await Postgres.start();
    cairn = await startCairn({ database: await postgres.database() });
    // The pool opens its connections, each of which has a row committed.
    const { id } = await cairn.createSession();
    await Promise.all(Array.from({ length: 40 }, () => cairn.get(`/v1/sessions/${id}`)));
  });
  afterAll(async () => {
    await cairn[Symbol.asyncDispose]();
    postgres.stop();
  });

  const records = async (): Promise<Ids> => {
    const { id: session_id } = await cairn.createSession({ user_id: "user-42" });
    await cairn.setState(session_id, { step: 1 });
    const { id: turn_id } = await cairn.addTurn(session_id);
    const { id: memory_id } = await cairn.addMemory(session_id, "The customer prefers e-mail to phone calls.");
    const [{ id: trace_id }] = (await cairn.traces(session_id)) as [{ id: string }];
    const { id: key_id } = await cairn.ok(cairn.post("/v1/api_keys", { name: "another" }));
    return { user_id: "user-42", session_id, turn_id, memory_id, version: "0", trace_id, key_id };
  };

  const indexTurns = async () => {
    await cairn.ok(cairn.post("/v1/turns/search", { query: "parcel" }));
    await cairn.runTask("index of turns");
  };

  /** How often requests wait for the database that `make` makes, at best. */
  const leastOf = async (most: number, make: () => Promise<() => Promise<unknown>>): Promise<number> => {
    const { store } = cairn.service;
    if (!(store instanceof PostgresStore)) throw new Error("this test is of PostgreSQL");
    let best = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < ATTEMPTS && best > most; attempt++) {
      const ask = await make();
      const before = store.roundTrips;
      await ask();
      best = Math.min(best, store.roundTrips - before);
    }
    return best;
  };

  for (const { method, template, path, body } of REQUESTS) {
    const name = `${method} ${template}`;
    if (AS_LONG_AS_IT_TAKES.has(name)) continue;
    const most = OFTEN[name] ?? ALL_OTHERS;
    test(`${name} waits for the database at most ${most} times`, async () => {
      const best = await leastOf(most, async () => {
        const ids = await records();
        if (OF_INDEXED_TURNS.has(name)) await indexTurns();
        const headers = { "Idempotency-Key": crypto.randomUUID() };
        const sent = body(ids);
        return () => cairn.request(method, path(ids), { body: sent && plain(name, sent), headers });
      });
      expect(best).toBeLessThanOrEqual(most);
    });
  }

  /** A search among few memories of an owner, and then the addition. */
  const WITH_SIMILAR = 5;
  for (const [whose, ofIds] of Object.entries<(ids: Ids) => object>({
    "a user": ({ user_id }) => ({ user_id }),
    "an agent": () => ({ agent_id: "agent" }),
    "a session": ({ session_id }) => ({ session_id }),
  })) {
    test(`a memory of ${whose} that asks for similar ones waits at most ${WITH_SIMILAR} times`, async () => {
      const best = await leastOf(WITH_SIMILAR, async () => {
        const memory = { ...ofIds(await records()), content: "The customer prefers e-mail to all.", similar: { limit: 3 } };
        await cairn.ok(cairn.post("/v1/memory", memory));
        return async () => {
          const { similar } = await cairn.ok(cairn.post("/v1/memory", memory));
          expect(similar).not.toEqual([]);
        };
      });
      expect(best).toBeLessThanOrEqual(WITH_SIMILAR);
    });
  }

  const HUNDRED = Array.from({ length: 100 }, (_, i) => `n${i}`);
  const OPERATIONS: Readonly<Record<string, (namespace: string, i: number) => object>> = {
    "puts into one namespace": (namespace) => ({ op: "put", namespace: [namespace], value: { text: "tea" }, index: true }),
    "puts into as many": (namespace, i) => ({ op: "put", namespace: [`new ${namespace}`, "a", "b", `n${i}`], key: "k", value: {} }),
    pops: (namespace) => ({ op: "pop", namespace: [namespace], order: "asc" }),
    "pops of as many namespaces": (namespace, i) => ({ op: "pop", namespace: [namespace, "a", "b", `n${i}`] }),
    "removals of namespaces": (namespace, i) => ({ op: "delete_all", namespace: [namespace, "a", "b", `n${i}`] }),
  };
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    test(`a batch of a hundred ${name} waits as often as one of two`, async () => {
      const best = await leastOf(BATCH, async () => {
        const user_id = crypto.randomUUID();
        const put = (namespace: string[]) => ({ op: "put", namespace, value: {}, key: "k" });
        const before = [HUNDRED.map((n) => put(["x", "a", "b", n])), HUNDRED.map((n) => ({ ...put(["x"]), key: n }))];
        for (const operations of before) await cairn.ok(cairn.post("/v1/documents/batch", { user_id, operations }));
        return () => cairn.ok(cairn.post("/v1/documents/batch", { user_id, operations: HUNDRED.map((_, i) => operation("x", i)) }));
      });
      expect(best).toBeLessThanOrEqual(BATCH);
    });
  }

  const HUNDRED_GETS = HUNDRED.map((key) => ({ op: "get", namespace: ["x"], key }));
  /** All documents are looked at, in parts, and once more where that takes a permit. */
  const AS_FAR_AS_IT_LOOKS: Readonly<Record<string, number>> = { "documents of which few pass": 20 };
  const QUERIES: Readonly<Record<string, object[]>> = {
    "documents of which few pass": [{ op: "search", namespace: ["x"], query: "tea", filter: { i: { $gt: 97 } } }],
    gets: HUNDRED_GETS,
    counts: HUNDRED.map((name) => ({ op: "count", namespace: ["x", name] })),
    lists: HUNDRED.map((name) => ({ op: "list", namespace: ["x", name], limit: 10 })),
    "documents in a list": [{ op: "list", namespace: ["x"], limit: 100 }],
    "documents of a list that few pass": [{ op: "list", namespace: ["x"], limit: 100, filter: { i: { $gt: 97 } } }],
    "documents that are found": [{ op: "search", namespace: ["x"], query: "tea", limit: 100 }],
    namespaces: [{ op: "namespaces", limit: 100 }],
  };
  for (const [name, operations] of Object.entries(QUERIES)) {
    const most = AS_FAR_AS_IT_LOOKS[name] ?? ALL_OTHERS;
    test(`a query of a hundred ${name} waits at most ${most} times`, async () => {
      const user_id = crypto.randomUUID();
      const put = (namespace: string[], key: string, i: number) => ({
        op: "put",
        namespace,
        key,
        value: { text: "tea", i },
        index: ["text"],
      });
      for (const puts of [HUNDRED.map((key, i) => put(["x"], key, i)), HUNDRED.map((key, i) => put(["x", key], key, i))])
        await cairn.ok(cairn.post("/v1/documents/batch", { user_id, operations: puts }));
      const best = await leastOf(most, async () => () => cairn.ok(cairn.post("/v1/documents/query", { user_id, operations })));
      expect(best).toBeLessThanOrEqual(most);
    });
  }

  /** More than a page has. */
  const RECORDS = 105;
  const each = (make: (i: number) => Promise<unknown>) => Promise.all(Array.from({ length: RECORDS }, (_, i) => make(i)));
  let full: Promise<string> | undefined;
  /** A session with more than a page of everything, and more than a page of sessions, each of another user and agent. */
  const fullSession = () =>
    (full ??= (async () => {
      await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
      const { id } = await cairn.createSession({ user_id: "of much" });
      for (let step = 0; step < RECORDS; step++) await cairn.setState(id, { step });
      await each(() => cairn.addTurn(id));
      await each((i) => cairn.addMemory(id, `She takes tea ${i}.`));
      await each(() => cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, {})));
      await each(() => cairn.search("tea", { session_id: id, limit: 1, threshold: 0 }));
      await each((i) => cairn.createSession({ user_id: `user ${i}`, agent_id: `agent ${i}` }));
      await each((i) => cairn.addMemories(id, [`More of ${i}.`]));
      await each((i) => cairn.ok(cairn.post("/v1/api_keys", { name: `key ${i}` })));
      const hooks = { url: "http://127.0.0.1:9/hook", events: ["session.deleted"] };
      for (let i = 0; i < 80; i++) await cairn.ok(cairn.post("/v1/webhooks", hooks));
      await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: null }));
      return id;
    })());
  const LISTS = [
    "/v1/sessions?",
    "/v1/sessions?user_id=of%20much&",
    "/v1/sessions/{id}/turns?",
    "/v1/sessions/{id}/turns?order=asc&",
    "/v1/sessions/{id}/versions?",
    "/v1/memory?user_id=of%20much&",
    "/v1/memories?",
    "/v1/traces?",
    "/v1/traces?session_id={id}&",
    "/v1/users?",
    "/v1/agents?",
    "/v1/sessions/{id}/timeline?",
    "/v1/sessions/{id}/timeline?order=asc&",
    "/v1/sessions/{id}/timeline?kinds=version&",
    "/v1/sessions/{id}/timeline?kinds=retrieval&",
    "/v1/sessions/{id}/retrievals?",
    "/v1/api_keys?",
    "/v1/webhooks?",
    "/v1/webhook_stats?",
  ];
  for (const list of LISTS) {
    test(`a full page of ${list.slice(0, -1)}, and the next, wait at most ${ALL_OTHERS} times`, async () => {
      const id = await fullSession();
      const path = list.replace("{id}", id).replace("{id}", id);
      const [first] = await cairn.list(`${path}limit=1`);
      for (const cursor of ["", `&starting_after=${first.id ?? first.webhook_id}`]) {
        let length = 0;
        const best = await leastOf(ALL_OTHERS, async () => async () => {
          ({ length } = await cairn.list(`${path}limit=100${cursor}`));
        });
        expect({ best, length }).toEqual({ best: Math.min(best, ALL_OTHERS), length: Math.max(length, 60) });
        if (path.endsWith("versions?")) break;
      }
    });
  }

  test("a page of long records is read in parts, with the same records", async () => {
    const userId = crypto.randomUUID();
    const metadata = { note: "long".repeat(15_000) };
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) ids.unshift((await cairn.createSession({ user_id: userId, metadata, initial_state: { i } })).id);
    const { store } = cairn.service;
    if (!(store instanceof PostgresStore)) throw new Error("this test is of PostgreSQL");
    const before = store.roundTrips;
    const found = await cairn.list(`/v1/sessions?user_id=${userId}&limit=100`);
    expect(found.map(({ id, state }) => [id, state.i])).toEqual(ids.map((id, i) => [id, 59 - i]));
    expect(store.roundTrips - before).toBeGreaterThan(ALL_OTHERS);
    // They would be on pages of other tests.
    await cairn.ok(cairn.delete(`/v1/users/${userId}`));
  });

  test("a list of retrievals waits as often for those with ten memories as for those with one", async () => {
    await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
    const timesFor = async (memories: number): Promise<number> => {
      const { id } = await cairn.createSession();
      for (let i = 0; i < memories; i++) await cairn.addMemory(id, `She takes tea ${i}.`);
      for (let i = 0; i < 5; i++) await cairn.search("tea", { session_id: id, limit: 10, threshold: 0 });
      return leastOf(0, async () => () => cairn.ok(cairn.get(`/v1/sessions/${id}/retrievals`)));
    };
    expect(await timesFor(10)).toBeLessThanOrEqual(await timesFor(1));
    await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: null }));
  });
}
