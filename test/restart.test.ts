/**
 * What an answer says holds after a restart. Where several servers share a database, each of them is restarted while the others serve.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { idsOf, newestFirst } from "./support/answers.ts";
import { startCairn, type Answer } from "./support/cairn.ts";
import { startReceiver } from "./support/receiver.ts";
import { oneOfEach } from "./support/requests.ts";

const SESSIONS = 4;
const TURNS_OF_A_WAVE = 5;

const turn = (content: string) => ({ input: { type: "text", content }, output: { type: "text", content: "" } });

test("every record is shown as before, and found as before, by each server", async () => {
  await using cairn = await startCairn();
  const ids = await oneOfEach(cairn);
  const session = `/v1/sessions/${ids["session_id"]}`;
  const document = { op: "put", namespace: ["notes"], key: "tea", value: { text: "Tea, not coffee." }, index: true };
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [document] }));
  await cairn.ok(cairn.patch("/v1/settings", { region: "eu", webhooks: { allow_private: true } }));
  const reads: [method: string, path: string, body?: unknown][] = [
    ...["", "/versions/0", "/versions", "/turns", "/retrievals", "/timeline"].map((part): [string, string] => ["GET", session + part]),
    ...["memory", "sessions", "traces", "webhooks", "settings"].map((list): [string, string] => ["GET", `/v1/${list}`]),
    ["GET", `/v1/memory/${ids["memory_id"]}`],
    ["GET", `/v1/api_keys/${ids["key_id"]}`],
    ["GET", `/v1/traces/${ids["trace_id"]}`],
    ["GET", `/v1/webhooks/${ids["webhook_id"]}/deliveries`],
    ["POST", "/v1/memory/search", { query: "How does the customer want to be contacted?" }],
    [
      "POST",
      "/v1/documents/query",
      {
        operations: [
          { op: "list", namespace: ["notes"] },
          { op: "search", namespace: ["notes"], query: "Tea, not coffee." },
        ],
      },
    ],
  ];
  const before: unknown[] = [];
  for (const [method, path, body] of reads) before.push(await cairn.ok(cairn.request(method, path, { body })));
  const [first] = cairn.services;
  await cairn.restartEach(async () => {
    for (const [i, [method, path, body]] of reads.entries())
      for (const server of cairn.services.keys())
        expect([path, await cairn.ok(cairn.request(method, path, { body, server }))]).toEqual([path, before[i]]);
  });
  expect(cairn.services).not.toContain(first);
});

test("changes are made once each and numbered without a gap, ids rise, and events arrive in order, while servers stop and start", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const sessions: any[] = [];
  for (let i = 0; i < SESSIONS; i++) sessions.push(await cairn.createSession());
  const sent: { path: string; key: string; body: object; answer: Promise<Answer> }[] = [];
  const addTurns = async () => {
    const wave = Array.from({ length: SESSIONS * TURNS_OF_A_WAVE }, (_, i) => {
      const [path, key] = [`/v1/sessions/${sessions[i % SESSIONS].id}/turns`, `turn ${sent.length + i}`];
      const body = turn(key);
      return { path, key, body, answer: cairn.post(path, body, { headers: { "Idempotency-Key": key } }) };
    });
    sent.push(...wave);
    await Promise.all(wave.map(({ answer }) => answer));
  };
  await cairn.restartEach(addTurns, addTurns);

  const made = await Promise.all(sent.map(async ({ answer }) => cairn.ok(answer)));
  for (const [i, { path, key, body }] of sent.entries()) {
    const again = await cairn.post(path, body, { headers: { "Idempotency-Key": key } });
    expect([again.body, again.headers.get("idempotency-replayed")]).toEqual([made[i], "true"]);
  }
  const numbers = Array.from({ length: sent.length / SESSIONS }, (_, i) => i + 1);
  for (const { id } of sessions) {
    const turns = newestFirst(made.filter(({ session_id }) => session_id === id)).reverse();
    expect(turns.map(({ turn_number }) => turn_number)).toEqual(numbers);
    expect(await cairn.list(`/v1/sessions/${id}/turns?order=asc&limit=100`)).toEqual(turns);
    expect((await cairn.traces(id, "turn.added")).map(({ details }) => details.turn_number)).toEqual(numbers.toReversed());
  }
  // Where several servers share a store, the changes of a session are a millisecond apart at least.
  cairn.clock.advance({ seconds: 1 });
  await cairn.deliver();
  for (const { id } of sessions) {
    const events = receiver.events.filter(({ data }) => data.session_id === id);
    expect(events.map(({ data }) => data.turn_number)).toEqual(numbers);
    expect(idsOf(events)).toEqual(idsOf(events).toSorted());
  }
});

test("sessions expire and events are delivered whichever server is away, and what was left is done when it is back", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["session.created", "session.expired"] });
  const ids: string[] = [];
  const live = async () => {
    await cairn.runTask("session expiry");
    await cairn.deliver();
    // One lives on when the next server stops.
    ids.push((await cairn.createSession({ ttl_seconds: 60 })).id);
    cairn.clock.advance({ seconds: 61 });
  };
  await live();
  await cairn.restartEach(live);
  await cairn.runTask("session expiry");
  await cairn.deliver();
  const seen = ids.map((id) => receiver.events.filter(({ data }) => data.id === id).map(({ type }) => type));
  expect(seen).toEqual(ids.map(() => ["session.created", "session.expired"]));
});
