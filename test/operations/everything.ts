/**
 * A store with something in every table, made through the front door, and the answers that show it.
 *
 * @module
 */
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { hashKey } from "../../src/storage/keys.ts";
import { MEMORIES, TURNS, type Collection } from "../../src/storage/collections.ts";
import { removeVector } from "../../src/storage/memory-records.ts";
import { auditRemovals, erasures } from "../../src/storage/tables.ts";
import { type Cairn, type Options, startCairn } from "../support/cairn.ts";

/** Texts that have gone wrong somewhere: halves of surrogate pairs, NUL, line ends, names of the language's own. */
const ODD_TEXTS = ["\ud800", "\udfff x", "a\u0000b", "line\nfeed\r\u2028", "__proto__", "constructor", '"\\', "😀", "~", "\u007f"];

/** As a client sends it: `__proto__` is a member like any other. */
const ODD_OBJECT = JSON.parse('{"__proto__":{"a":1},"2":"two","1":"one","constructor":null,"number":1e-7}') as Record<string, unknown>;

/** So long that it has several vectors. */
const OF_PASSAGES = "The parcel is still on its way, and nobody knows where it is by now. ".repeat(12);

export interface Filled {
  cairn: Cairn;
  sessions: string[];
  memories: string[];
}

export async function startFilled(options: Pick<Options, "directory" | "database"> = {}): Promise<Filled> {
  const cairn = await startCairn(options);
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true, index_turns: "meaning" }));
  const sessions: string[] = [];
  const memories: string[] = [];
  for (const [i, text] of ODD_TEXTS.entries()) {
    const session = await cairn.createSession({
      agent_id: `agent ${text}`,
      ...(i % 3 === 0 ? {} : { user_id: `user ${text}` }),
      initial_state: { ...ODD_OBJECT, text },
      metadata: { [text]: ODD_OBJECT },
      ttl_seconds: 1000 + i,
      external_id: `thread ${text}`,
    });
    sessions.push(session.id);
    await cairn.setState(session.id, { [text]: text }, { reasoning: text });
    await cairn.rollback(session.id, 0, { reason: text });
    await cairn.addTurn(session.id, `Say ${text}`, text, { metadata: { text }, state_before: ODD_OBJECT, reasoning: text });
    await cairn.addTurn(session.id, "in", "out");
    const memory = await cairn.addMemory(session.id, `The parcel number ${i} ${text} is blue.`, {
      type: `type ${text}`,
      tags: [text, "common", "common"],
      metadata: ODD_OBJECT,
    });
    const plain = await cairn.addMemory(session.id, `Nobody embeds ${text}`, { embed: false });
    memories.push(memory.id, plain.id);
    await cairn.context(session.id, { query: `What colour is the parcel ${text}?` });
    cairn.clock.advance({ ms: 7 });
  }
  // The clock is set back for a moment.
  cairn.clock.set(cairn.clock.now() - 5_000);
  await cairn.setState(sessions.at(-1) ?? "", { behind: true });
  const behind = await cairn.createSession({ user_id: "behind" });
  sessions.push(behind.id);
  memories.splice(-1, 0, (await cairn.addMemory(behind.id, "Made while the clock was behind.")).id);
  cairn.clock.set(cairn.clock.now() + 5_000);
  const [first = "", second = ""] = sessions;
  await cairn.addTurn(first, "Moved in.", "", { external_id: "message-1", occurred_at: "2020-02-29T12:00:00Z" });
  sessions.push((await cairn.ok(cairn.post(`/v1/sessions/${first}/fork`, { turns: "all", memories: "session" }))).id);
  await cairn.ok(cairn.patch(`/v1/memory/${memories[0]}`, { content: "Changed, with another vector.", tags: ["changed"] }));
  await cairn.ok(cairn.delete(`/v1/memory/${memories.pop()}`));
  await cairn.ok(cairn.delete(`/v1/sessions/${second}?reason=gone`));
  await cairn.runTask("users");
  sessions.splice(1, 1);
  memories.splice(2, 2);
  const named = { external_id: "row-7", expires_at: "9999-12-31T23:59:59Z", importance: 0.5, occurred_at: "1960-01-01T00:00:00Z" };
  const old = await cairn.addMemory(first, "The parcel is in Rome.", { valid_until: "9999-12-31T23:59:59Z" });
  memories.push(old.id, (await cairn.addMemory(first, "The parcel is in Oslo.", { ...named, pinned: true, supersedes: [old.id] })).id);
  memories.push((await cairn.addMemory(first, "The parcel was in Bari.", { valid_until: "2020-02-29T12:00:00Z" })).id);
  memories.push((await cairn.addMemory(first, OF_PASSAGES)).id);
  await cairn.ok(cairn.post("/v1/sessions", { agent_id: "once", user_id: "once" }, { headers: { "Idempotency-Key": "once" } }));
  const key = await cairn.ok(cairn.post("/v1/api_keys", { expires_at: "9999-12-31T23:59:59Z" }));
  await cairn.ok(cairn.post(`/v1/api_keys/${key.id}/roll`, { expires_at: "1960-01-01T00:00:00Z" }));
  await cairn.ok(cairn.delete(`/v1/api_keys/${(await cairn.ok(cairn.post("/v1/api_keys", {}))).id}`));
  await cairn.ok(cairn.post("/v1/sign_in", { name: "a browser" }));
  await cairn.runTask("last use of keys");
  await cairn.runTask("activity");
  // Nobody listens there.
  const failing = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/", events: ["trace.rollback"] }));
  await cairn.ok(cairn.post(`/v1/webhooks/${failing.id}/test`));
  cairn.clock.set(cairn.clock.now() - 5_000);
  await cairn.ok(cairn.post(`/v1/webhooks/${failing.id}/test`));
  cairn.clock.set(cairn.clock.now() + 5_000);
  await cairn.runTask("webhook deliveries");
  await cairn.ok(cairn.post("/v1/webhooks", { url: "https://hooks.example.com/in", events: ["session.created", "turn.added"] }));
  sessions.push((await cairn.createSession({ agent_id: "after the webhook", user_id: "ada" })).id);
  await cairn.runTask("webhook outbox");
  const { id: lateTurn } = await cairn.addTurn(first, "an event", "that stays in the outbox");
  await cairn.runTask("embeddings of turns");
  await makePending(cairn, TURNS, lateTurn);
  await cairn.runTask("index of turns");
  await cairn.ok(cairn.patch("/v1/settings", { memories_on_expiry: "delete", trace_retention_days: 30 }));
  await putDocuments(cairn, first);
  await cairn.context(behind.id, { query: "Made while the clock was behind?" });
  await cairn.search("What colour is the parcel?", { user_id: "behind", agent_id: "agent" });
  await cairn.search("What colour is the parcel?", { agent_id: "agent", filter: { user_id: { $in: ["behind", "ada"] } } });
  await cairn.service.retrievals.settled();
  // What is read from here on changes nothing.
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: null }));
  // More than a commit removes: a note says that some is left.
  const large = await cairn.createSession();
  await Promise.all(Array.from({ length: 210 }, (_, i) => cairn.setState(large.id, { i })));
  await cairn.ok(cairn.delete(`/v1/sessions/${large.id}`));
  // One whose vector is pending, as when a provider does not answer.
  const late = await cairn.addMemory(first, "Not embedded in time.");
  memories.push(late.id);
  await makePending(cairn, MEMORIES, late.id);
  await beginErasure(cairn);
  return { cairn, sessions, memories };
}

/** Documents of several owners, of a session, some that are found by meaning, with a time, and those of a namespace that was emptied and is not yet removed. */
async function putDocuments(cairn: Cairn, session_id: string): Promise<void> {
  const change = (operations: object[], more: object = {}) => cairn.ok(cairn.post("/v1/documents/batch", { operations, ...more }));
  const put = (namespace: string[], key: string | undefined, more: object = {}) => ({
    op: "put",
    namespace,
    key,
    value: ODD_OBJECT,
    ...more,
  });
  const texts = ODD_TEXTS.filter((text) => text.isWellFormed());
  await change(texts.map((text) => put(["odd", text], text, { session_id })));
  await change([put(["log"], undefined), put(["log"], undefined, { ttl_seconds: 100 })], { user_id: "ada" });
  await change([put(["found"], "whole", { index: true }), put(["found", "below"], "in part", { index: Object.keys(ODD_OBJECT) })]);
  for (let i = 0; i < 3; i++) await change(Array.from({ length: 100 }, () => put(["emptied", "below"], undefined)));
  await change([{ op: "delete_all", namespace: ["emptied"] }, put(["emptied", "below"], "new")]);
}

/** As if the process had ended right after the first commit of an erasure. */
async function beginErasure({ service: { store } }: Cairn): Promise<void> {
  const counts = { sessions: 0, turns: 0, versions: 0, retrievals: 0, memories: 0, documents: 0, traces: 0, deliveries: 0, answers: 0 };
  await store.commit(NO_PARTITION, (tx) => {
    const begun = {
      userId: "nobody",
      startedAt: tx.now,
      until: tx.bareId(),
      phase: "sessions" as const,
      after: "",
      actor: "crn_abcd",
      retentionDays: 7,
      counts,
    };
    tx.put(erasures, hashKey("nobody"), begun);
    const expired = { place: 0, cause: "expired" as const, at: 1, leaf: "A".repeat(43) };
    tx.put(auditRemovals, "0VQk3aB4x1Zq0000000", { publicKey: "B".repeat(43), signature: "C".repeat(86), removed: [expired] });
  });
}

async function makePending({ service: { store } }: Cairn, collection: Collection, id: string): Promise<void> {
  const key = id.slice(id.indexOf("_") + 1);
  await store.commit(NO_PARTITION, (tx) => {
    const row = tx.get(collection.records, key);
    if (row?.embedding === undefined) throw new Error("there is no vector to take away");
    const { embedding: _, ...rest } = row;
    removeVector(tx, collection, row);
    tx.put(collection.records, key, rest);
    tx.put(collection.pending, key, "");
  });
}

/** Everything that a client can read, as it reads it. */
export async function answersOf(cairn: Cairn, { sessions, memories }: Pick<Filled, "sessions" | "memories">): Promise<unknown> {
  const read = async (path: string) => (await cairn.get(path)).body as unknown;
  return {
    lists: await Promise.all(["sessions", "memory", "traces", "api_keys", "webhooks"].map((list) => read(`/v1/${list}?limit=100`))),
    sessions: await Promise.all(
      sessions.map(async (id) => [
        await read(`/v1/sessions/${id}`),
        await read(`/v1/sessions/${id}/versions?limit=100`),
        await read(`/v1/sessions/${id}/versions/0`),
        await read(`/v1/sessions/${id}/turns?limit=100`),
        await read(`/v1/memory?limit=100&session_id=${id}`),
        await read(`/v1/traces?limit=100&session_id=${id}`),
        await read(`/v1/sessions/${id}/retrievals?limit=100`),
        await cairn.context(id, { query: "What colour is the parcel?" }),
      ]),
    ),
    memories: await Promise.all(memories.map((id) => read(`/v1/memory/${id}`))),
    byTag: await Promise.all(
      [...ODD_TEXTS.filter((text) => text.isWellFormed()), "common"].map((tag) =>
        read(`/v1/memory?limit=100&tags=${encodeURIComponent(tag)}`),
      ),
    ),
    search: (await cairn.search("What colour is the parcel?", { threshold: 0, limit: 50 })).data,
    settings: await read("/v1/settings"),
    documents: await Promise.all([{}, { user_id: "ada" }].map((owner) => documentsOf(cairn, owner))),
  };
}

async function documentsOf(cairn: Cairn, owner: object): Promise<unknown> {
  const query = async (operations: object[]) => (await cairn.ok(cairn.post("/v1/documents/query", { operations, ...owner }))).data;
  const [{ data: namespaces }] = await query([{ op: "namespaces" }]);
  const each = namespaces
    .map((namespace: string[]) => [
      { op: "list", namespace },
      { op: "count", namespace },
    ])
    .flat();
  return [namespaces, namespaces.length === 0 ? [] : await query(each)];
}

/** What somebody was told who asked for what is refused. */
export function refusalOf(refused: Promise<unknown>): Promise<string> {
  return refused.then(
    () => "it was not refused",
    (error: unknown) => String(error),
  );
}
