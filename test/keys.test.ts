import { join } from "node:path";
import { expect, spyOn, test } from "bun:test";
import { ApiError } from "../src/lib/errors.ts";
import { createKey, deleteKey, getKey as getKeyOf, rollKey } from "../src/keys/keys.ts";
import type { Scope } from "../src/lib/scopes.ts";
import { restoreBackup, writeBackup } from "../src/operations/backup.ts";
import { backupFile } from "../src/operations/backup-source.ts";
import { exportLines } from "../src/operations/export.ts";
import { importLines } from "../src/operations/import.ts";
import { openRecords } from "../src/operations/open-records.ts";
import { apiKeys } from "../src/storage/tables.ts";
import { errorOf, idsOf, unknownId, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { EVERYBODY } from "../src/storage/owner.ts";
import { onEmbedded } from "./support/stores.ts";

test("a key made without fields reads and writes, is of the tier enterprise and never ends", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/api_keys", {});
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    object: "api_key",
    id: expect.stringMatching(/^key_[0-9A-Za-z]{12}$/),
    kind: "key",
    name: null,
    prefix: made.body.key.slice(0, 8),
    key: expect.stringMatching(/^crn_[0-9A-Za-z]{24}$/),
    scopes: ["read", "write"],
    tier: "enterprise",
    user_id: null,
    agent_id: null,
    rate_limit: { per_minute: 60_000, burst: 120_000 },
    created_at: "2026-05-07T08:00:00.000Z",
    expires_at: null,
    last_used_at: null,
    rolled_from: null,
    rolled_to: null,
    source: null,
  });
});

test("a key keeps every field it is made with; the key itself is in that answer only", async () => {
  await using cairn = await startCairn();
  const { key, ...shown } = await cairn.ok(
    cairn.post("/v1/api_keys", {
      name: "support agent",
      scopes: ["read"],
      tier: "enterprise",
      rate_limit: { per_minute: 10, burst: 20 },
      expires_at: "2026-05-08T10:00:00+02:00",
    }),
  );
  expect(shown).toMatchObject({
    name: "support agent",
    scopes: ["read"],
    tier: "enterprise",
    rate_limit: { per_minute: 10, burst: 20 },
    expires_at: "2026-05-08T08:00:00.000Z",
  });
  expect(key).toStartWith(shown.prefix);
  const read = await cairn.get(`/v1/api_keys/${shown.id}`);
  expect([read.status, read.body]).toEqual([200, shown]);
  expect((await cairn.list("/v1/api_keys"))[0]).toEqual(shown);
});

test("a tier brings its rate limit; only an enterprise key may have one of its own", async () => {
  await using cairn = await startCairn();
  const limitOf = async (body: unknown) => (await cairn.ok(cairn.post("/v1/api_keys", body))).rate_limit;
  expect(await limitOf({ tier: "free" })).toEqual({ per_minute: 100, burst: 200 });
  expect(await limitOf({ tier: "pro" })).toEqual({ per_minute: 1_000, burst: 2_000 });
  expect(await limitOf({ tier: "enterprise" })).toEqual({ per_minute: 60_000, burst: 120_000 });
  expect(await limitOf({ rate_limit: { per_minute: 5, burst: 6 } })).toEqual({ per_minute: 5, burst: 6 });
  for (const tier of ["free", "pro"]) {
    const answer = await cairn.post("/v1/api_keys", { tier, rate_limit: { per_minute: 5, burst: 5 } });
    expect([tier, refusal(answer)]).toEqual([tier, { status: 400, code: "invalid_request", param: "rate_limit" }]);
  }
});

test("the first key is an enterprise key with the scope admin", async () => {
  await using cairn = await startCairn();
  expect(await cairn.list("/v1/api_keys")).toMatchObject([
    {
      name: "first key",
      prefix: cairn.key.slice(0, 8),
      scopes: ["admin"],
      tier: "enterprise",
      rate_limit: { per_minute: 60_000, burst: 120_000 },
      expires_at: null,
    },
  ]);
});

test("a refused request changes nothing, and what it needs is checked before what it says", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read"] });
  const { id } = await cairn.createSession();
  const before = await cairn.session(id);
  for (const [method, path, body] of [
    ["POST", `/v1/sessions/${id}/state`, { state: { step: 1 } }],
    ["POST", `/v1/sessions/${id}/state`, {}],
    ["POST", `/v1/sessions/${unknownId("sess")}/state`, { state: {} }],
    ["POST", "/v1/sessions", []],
    ["DELETE", `/v1/sessions/${id}`, undefined],
    ["POST", "/v1/api_keys", { scopes: ["admin"] }],
  ] as const) {
    const answer = await cairn.request(method, path, { body, key: reader });
    const message = `This needs a key with the scope ${path === "/v1/api_keys" ? "admin" : "write"}; this one has read.`;
    expect(errorOf(answer)).toEqual({ status: 403, code: "permission_denied", message });
  }
  expect(await cairn.session(id)).toEqual(before);
  expect(await cairn.list("/v1/api_keys")).toHaveLength(2);
});

test("all keys see the same records", async () => {
  await using cairn = await startCairn();
  const writer = await cairn.newKey({ scopes: ["write"], tier: "free" });
  const reader = await cairn.newKey({ scopes: ["read"], tier: "pro" });
  const made = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { key: writer }));
  expect((await cairn.get(`/v1/sessions/${made.id}`, { key: reader })).body).toEqual(made);
});

test("from the moment a key is revoked no request with it passes, after a restart too", async () => {
  await using cairn = await startCairn();
  const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", {}));
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
  expect((await cairn.post("/v1/sessions", { agent_id: "a" }, { key })).status).toBe(201);
  const revoked = await cairn.delete(`/v1/api_keys/${id}`);
  expect([revoked.status, revoked.body]).toEqual([200, { object: "api_key", id, deleted: true }]);
  const expectRefused = async () => {
    const requests = [() => cairn.get("/v1/sessions", { key }), () => cairn.post("/v1/sessions", { agent_id: "a" }, { key })];
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => requests[i % 2]!()));
    for (const answer of answers) expect(refusal(answer)).toEqual({ status: 401, code: "authentication_failed" });
  };
  await expectRefused();
  expect((await cairn.get(`/v1/api_keys/${id}`)).status).toBe(404);
  expect(idsOf(await cairn.list("/v1/api_keys"))).not.toContain(id);
  await cairn.restart();
  await expectRefused();
  expect((await cairn.get("/v1/sessions")).status).toBe(200);
});

test("a key with an end works until that moment and not from it on", async () => {
  await using cairn = await startCairn();
  const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", { expires_at: "2026-05-07T08:01:00Z" }));
  cairn.clock.advance({ seconds: 60, ms: -1 });
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
  const post = () => cairn.post("/v1/sessions", { agent_id: 1 }, { key });
  expect((await post()).status).toBe(400);
  cairn.clock.advance({ ms: 1 });
  // In the same turn of the event loop, too.
  expect(refusal(await post())).toEqual({ status: 401, code: "authentication_failed" });
  expect(refusal(await cairn.get("/v1/sessions", { key }))).toEqual({ status: 401, code: "authentication_failed" });
  expect((await cairn.get(`/v1/api_keys/${id}`)).body).toMatchObject({ id, expires_at: "2026-05-07T08:01:00.000Z" });
});

const LAST_USE = "last use of keys";

/** Made by an admin, with what a list shows of it. */
const newKey = (cairn: Cairn, body: Record<string, unknown> = {}) => cairn.ok(cairn.post("/v1/api_keys", body));
const shownKey = (cairn: Cairn, id: string) => cairn.ok(cairn.get(`/v1/api_keys/${id}`));
const roll = (cairn: Cairn, id: string, body: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  cairn.post(`/v1/api_keys/${id}/roll`, body, { headers });
const statusWith = async (cairn: Cairn, key: string) => (await cairn.get("/v1/sessions", { key })).status;

test("a rolled key has a successor with its name, scopes, tier, rate limit and end, shown in full this once", async () => {
  await using cairn = await startCairn();
  const { key: before, ...old } = await newKey(cairn, {
    name: "support agent",
    scopes: ["read"],
    tier: "enterprise",
    rate_limit: { per_minute: 10, burst: 20 },
    expires_at: "2026-06-01T00:00:00Z",
  });
  expect(await statusWith(cairn, before)).toBe(200);
  await cairn.runTask(LAST_USE);
  cairn.clock.advance({ hours: 1 });
  const answer = await roll(cairn, old.id);
  expect([answer.status, answer.body]).toEqual([
    201,
    {
      ...old,
      id: expect.stringMatching(/^key_[0-9A-Za-z]{12}$/),
      prefix: answer.body.key.slice(0, 8),
      key: expect.stringMatching(/^crn_[0-9A-Za-z]{24}$/),
      created_at: "2026-05-07T09:00:00.000Z",
      last_used_at: null,
      rolled_from: old.id,
    },
  ]);
  const { key: after, ...successor } = answer.body;
  expect(after).not.toBe(before);
  expect(await shownKey(cairn, successor.id)).toEqual(successor);
  expect(await shownKey(cairn, old.id)).toEqual({
    ...old,
    expires_at: "2026-05-08T09:00:00.000Z",
    last_used_at: "2026-05-07T08:00:00.000Z",
    rolled_to: successor.id,
  });
  expect(idsOf(await cairn.list("/v1/api_keys")).slice(0, 2)).toEqual([successor.id, old.id]);
  const { headers } = await cairn.get("/v1/sessions", { key: after });
  expect([headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual(["10", "19"]);
  expect((await cairn.post("/v1/sessions", { agent_id: "bot" }, { key: after })).status).toBe(403);
});

for (const { says, body, seconds } of [
  { says: "a day unless it is said", body: {}, seconds: 86_400 },
  { says: "a day when null is said", body: { overlap_seconds: null }, seconds: 86_400 },
  { says: "as long as is said", body: { overlap_seconds: 90 }, seconds: 90 },
  { says: "at most seven days", body: { overlap_seconds: 604_800 }, seconds: 604_800 },
]) {
  test(`a rolled key keeps working with its successor until the overlap is over: ${says}`, async () => {
    await using cairn = await startCairn();
    const old = await newKey(cairn);
    const successor = (await roll(cairn, old.id, body)).body;
    cairn.clock.advance({ seconds, ms: -1 });
    expect([await statusWith(cairn, old.key), await statusWith(cairn, successor.key)]).toEqual([200, 200]);
    await cairn.restart();
    cairn.clock.advance({ ms: 1 });
    expect(refusal(await cairn.get("/v1/sessions", { key: old.key }))).toEqual({ status: 401, code: "authentication_failed" });
    expect(await statusWith(cairn, successor.key)).toBe(200);
    expect(await shownKey(cairn, successor.id)).toMatchObject({ expires_at: null });
  });
}

test("a key rolled without overlap is refused from the answer on, the caller's own too", async () => {
  await using cairn = await startCairn();
  const own = await newKey(cairn, { scopes: ["admin"] });
  const successor = await cairn.ok(cairn.post(`/v1/api_keys/${own.id}/roll`, { overlap_seconds: 0 }, { key: own.key }));
  expect([await statusWith(cairn, own.key), await statusWith(cairn, successor.key)]).toEqual([401, 200]);
});

test("an overlap never lets a key work for longer than it would have; the successor ends when it would have, or as is said", async () => {
  await using cairn = await startCairn();
  const end = "2026-05-07T08:30:00.000Z";
  const [same, later] = [await newKey(cairn, { expires_at: end }), await newKey(cairn, { expires_at: end })];
  const [ofSame, ofLater] = [
    await cairn.ok(roll(cairn, same.id)),
    await cairn.ok(roll(cairn, later.id, { expires_at: "2027-01-01T00:00:00Z" })),
  ];
  expect([ofSame.expires_at, ofLater.expires_at]).toEqual([end, "2027-01-01T00:00:00.000Z"]);
  for (const { id } of [same, later]) expect(await shownKey(cairn, id)).toMatchObject({ expires_at: end });
  cairn.clock.advance({ hours: 0.5 });
  const statuses = [];
  for (const { key } of [same, later, ofSame, ofLater]) statuses.push(await statusWith(cairn, key));
  expect(statuses).toEqual([401, 401, 401, 200]);
});

test("a key that was revoked or has ended cannot be rolled: 404 resource_not_found", async () => {
  await using cairn = await startCairn();
  const revoked = await newKey(cairn);
  await cairn.ok(cairn.delete(`/v1/api_keys/${revoked.id}`));
  const ended = await newKey(cairn, { expires_at: "2026-05-07T08:01:00Z" });
  const rolled = await newKey(cairn);
  await cairn.ok(roll(cairn, rolled.id, { overlap_seconds: 60 }));
  cairn.clock.advance({ seconds: 60 });
  const before = (await cairn.get("/v1/api_keys")).body;
  for (const id of [revoked.id, ended.id, rolled.id]) {
    const answer = refusal(await roll(cairn, id));
    expect([id, answer]).toEqual([id, { status: 404, code: "resource_not_found", param: "key_id" }]);
  }
  expect((await cairn.get("/v1/api_keys")).body).toMatchObject({ data: before.data.map(({ id }: { id: string }) => ({ id })) });
});

test("a key is rolled once, however many ask at once; later requests get the id of its successor, which can be rolled", async () => {
  await using cairn = await startCairn();
  const old = await newKey(cairn);
  const answers = await Promise.all(Array.from({ length: 8 }, () => roll(cairn, old.id)));
  const made = answers.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  const successor = made[0]!.body;
  for (const answer of answers.filter(({ status }) => status !== 201)) {
    expect(refusal(answer)).toEqual({ status: 400, code: "invalid_request", param: "key_id" });
    expect(answer.body.error.message).toContain(successor.id);
  }
  expect(await cairn.list("/v1/api_keys")).toHaveLength(3);
  const next = await cairn.ok(roll(cairn, successor.id));
  expect([next.rolled_from, (await shownKey(cairn, successor.id)).rolled_to]).toEqual([successor.id, next.id]);
});

test("nobody makes a key with more scopes than they have", async () => {
  await using cairn = await startCairn();
  const caller = {
    actor: "crn_test",
    keyId: null,
    owner: EVERYBODY,
    scopes: ["read", "write"],
    retentionDays: 7,
    requestId: null,
    startedAt: null,
  };
  const make = async (scopes: readonly Scope[]) => createKey(cairn.service, caller, { name: null, scopes, tier: "free" });
  const refused = await make(["read", "admin"]).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "permission_denied", detail: { param: "scopes" } });
  expect(await cairn.list("/v1/api_keys")).toHaveLength(1);
  expect(JSON.parse(await make(["write"]))).toMatchObject({ scopes: ["write"] });
});

test("nobody makes a key with more scopes by rolling one", async () => {
  await using cairn = await startCairn();
  const admin = await newKey(cairn, { scopes: ["admin"] });
  // HTTP lets nobody in here without the scope admin.
  const caller = { actor: "crn_test", keyId: null, owner: EVERYBODY, scopes: ["read"], retentionDays: 7, requestId: null, startedAt: null };
  const refused = await rollKey(cairn.service, caller, admin.id, { overlapMs: 0 }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "permission_denied", detail: { param: "scopes" } });
  expect(await shownKey(cairn, admin.id)).toMatchObject({ expires_at: null, rolled_to: null });
  expect(await statusWith(cairn, admin.key)).toBe(200);
});

test("last_used_at is null until a request comes with the key, then when the last one did, whatever became of it", async () => {
  await using cairn = await startCairn();
  const { id, key } = await newKey(cairn, { scopes: ["read"] });
  const lastUse = async () => (await shownKey(cairn, id)).last_used_at as string | null;
  expect(await lastUse()).toBe(null);
  await cairn.get("/v1/sessions", { key: "crn_000000000000000000000000" });
  expect(await lastUse()).toBe(null);
  cairn.clock.advance({ seconds: 5 });
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  expect(await lastUse()).toBe("2026-05-07T08:00:05.000Z");
  cairn.clock.advance({ ms: 250 });
  expect((await cairn.post("/v1/sessions", { agent_id: "bot" }, { key })).status).toBe(403);
  expect(await lastUse()).toBe("2026-05-07T08:00:05.250Z");
  // Written or not, it is the same.
  await cairn.runTask(LAST_USE);
  expect(await lastUse()).toBe("2026-05-07T08:00:05.250Z");
  cairn.clock.advance({ ms: 250 });
  expect((await cairn.get("/v1/nothing", { key })).status).toBe(404);
  expect(await lastUse()).toBe("2026-05-07T08:00:05.500Z");
  const listed = await cairn.list("/v1/api_keys");
  expect(listed.map((one: { last_used_at: string }) => one.last_used_at)).toEqual(["2026-05-07T08:00:05.500Z", "2026-05-07T08:00:05.500Z"]);
  // The clock is set back: the last use is the last one, whatever the clock showed at those before.
  await cairn.runTask(LAST_USE);
  cairn.clock.set("2026-05-07T07:00:00.000Z");
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  expect(await lastUse()).toBe("2026-05-07T07:00:00.000Z");
  await cairn.runTask(LAST_USE);
  expect(await lastUse()).toBe("2026-05-07T07:00:00.000Z");
});

onEmbedded("commands open its directory")("last_used_at survives a stop at once, and anything else once the task has come by", async () => {
  await using cairn = await startCairn();
  const { id, key } = await newKey(cairn);
  const onDisk = async () => {
    const beside = await openRecords(cairn.place, cairn.clock, cairn.place);
    try {
      return JSON.parse(await getKeyOf(beside, id)).last_used_at as string | null;
    } finally {
      await beside.store.close();
    }
  };
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  expect(await onDisk()).toBe(null);
  await cairn.runTask(LAST_USE);
  expect(await onDisk()).toBe("2026-05-07T08:00:00.000Z");
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.get("/v1/sessions", { key }));
  await cairn.restart();
  expect(await shownKey(cairn, id)).toMatchObject({ last_used_at: "2026-05-07T08:00:01.000Z" });
});

onEmbedded("commands open its directory")(
  "writing last uses changes nothing else: what was revoked stays so, and what another process changed stays changed",
  async () => {
    await using cairn = await startCairn();
    const [kept, revoked, revokedBeside, rolledBeside] = [
      await newKey(cairn, { name: "kept" }),
      await newKey(cairn),
      await newKey(cairn),
      await newKey(cairn),
    ];
    cairn.clock.advance({ seconds: 1 });
    for (const { key } of [kept, revoked, revokedBeside, rolledBeside]) expect(await statusWith(cairn, key)).toBe(200);
    await cairn.ok(cairn.delete(`/v1/api_keys/${revoked.id}`));
    const beside = await openRecords(cairn.place, cairn.clock, cairn.place);
    await deleteKey(beside, beside.operator, revokedBeside.id);
    const successor = JSON.parse(await rollKey(beside, beside.operator, rolledBeside.id, { overlapMs: 60_000 }));
    await beside.store.close();

    await cairn.runTask(LAST_USE);
    await cairn.restart();
    const { key: _, ...asMade } = kept;
    expect(await shownKey(cairn, kept.id)).toEqual({ ...asMade, last_used_at: "2026-05-07T08:00:01.000Z" });
    expect(await shownKey(cairn, rolledBeside.id)).toMatchObject({
      last_used_at: "2026-05-07T08:00:01.000Z",
      expires_at: "2026-05-07T08:01:01.000Z",
      rolled_to: successor.id,
    });
    for (const { id, key } of [revoked, revokedBeside]) {
      expect([(await cairn.get(`/v1/api_keys/${id}`)).status, await statusWith(cairn, key)]).toEqual([404, 401]);
    }
    expect(await cairn.counts([apiKeys, apiKeys.index.byId])).toEqual([4, 4]);
  },
);

test("a last use that the disk does not take is shown all the same, written the next time, and keeps no stop from ending", async () => {
  await using cairn = await startCairn();
  const { id, key } = await newKey(cairn);
  const full = () => spyOn(cairn.service.store, "commit").mockRejectedValue(new ApiError("service_unavailable", "The disk is full."));
  expect(await statusWith(cairn, key)).toBe(200);
  {
    using _ = full();
    expect(await cairn.runTask(LAST_USE).catch(String)).toContain("The disk is full.");
    expect(await shownKey(cairn, id)).toMatchObject({ last_used_at: "2026-05-07T08:00:00.000Z" });
    // One that has to wait, and a newer one meanwhile.
    cairn.clock.advance({ seconds: 1 });
    expect(await statusWith(cairn, key)).toBe(200);
    expect(await cairn.runTask(LAST_USE).catch(String)).toContain("The disk is full.");
  }
  expect(await shownKey(cairn, id)).toMatchObject({ last_used_at: "2026-05-07T08:00:01.000Z" });
  await cairn.runTask(LAST_USE);
  await cairn.restart();
  expect(await shownKey(cairn, id)).toMatchObject({ last_used_at: "2026-05-07T08:00:01.000Z" });

  cairn.clock.advance({ seconds: 1 });
  expect(await statusWith(cairn, key)).toBe(200);
  {
    using _ = full();
    await cairn.close();
  }
  expect(cairn.logged.filter((line) => line.includes("could not write the last use of keys"))).toHaveLength(1);
  await cairn.open();
  expect(await shownKey(cairn, id)).toMatchObject({ last_used_at: "2026-05-07T08:00:01.000Z" });
  expect(await statusWith(cairn, key)).toBe(200);
});

test("last uses are written together, once a minute, in as few commits as may be; a stop does not leave them", async () => {
  await using cairn = await startCairn();
  const keys = await Promise.all(Array.from({ length: 501 }, () => cairn.newKey()));
  const useAll = async () => {
    for (const key of keys) expect(await statusWith(cairn, key)).toBe(200);
  };
  const usesOf = async () => {
    await cairn.restart();
    const listed = (await pagesOf(cairn, "/v1/api_keys?limit=100")).flatMap(({ data }) => data);
    return Array.from(new Set(listed.map(({ last_used_at }) => last_used_at as string | null)));
  };
  await useAll();
  {
    using commits = spyOn(cairn.service.store, "commit");
    const run = () => cairn.runTaskOnce(LAST_USE);
    expect([await run(), await run(), await run(), commits.mock.calls.length]).toEqual([0, 60_000, 60_000, 2]);
  }
  expect(await usesOf()).toEqual(["2026-05-07T08:00:00.000Z"]);
  cairn.clock.advance({ seconds: 1 });
  await useAll();
  expect(await usesOf()).toEqual(["2026-05-07T08:00:01.000Z"]);
});

const CHOSEN = "crn_ChosenByTheOperator00001";

const refusedAtStart = (cairn: Cairn) =>
  cairn.logged
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message.startsWith("CAIRN_API_KEY is not registered:"))
    .map(({ level, reason, prefix }) => ({ level, reason, prefix }));

onEmbedded("commands open its directory")(
  "a key of CAIRN_API_KEY that was deleted is not registered again, here, in a backup or in an export, and a start says so",
  async () => {
    await using cairn = await startCairn({ apiKey: CHOSEN });
    await using scratch = await startCairn();
    cairn.key = await cairn.newKey({ scopes: ["admin"] });
    const own = (await cairn.list("/v1/api_keys")).find(({ name }: { name: string }) => name === "from the environment");
    expect(await statusWith(cairn, CHOSEN)).toBe(200);
    await cairn.restart();
    expect([await statusWith(cairn, CHOSEN), refusedAtStart(cairn)]).toEqual([200, []]);
    await cairn.ok(cairn.delete(`/v1/api_keys/${own.id}`));

    const refused = { level: "warn", reason: "it was deleted", prefix: "crn_Chos" };
    await cairn.restart();
    expect([await statusWith(cairn, CHOSEN), refusedAtStart(cairn)]).toEqual([401, [refused]]);

    const file = join(scratch.directory, "copy");
    await writeBackup(cairn.embedded, cairn.clock, file, { force: false });
    await restoreBackup(backupFile(file), join(scratch.directory, "restored"), cairn.clock, { force: false });
    const lines = Buffer.from((await Array.fromAsync(exportLines(cairn.embedded, { secrets: false }), (line) => `${line}\n`)).join(""));
    const source = (async function* () {
      yield lines;
    })();
    await importLines(source, join(scratch.directory, "imported"), cairn.clock);
    for (const name of ["restored", "imported"]) {
      await using copy = await startCairn({ directory: join(scratch.directory, name), clock: cairn.clock, apiKey: CHOSEN });
      expect([await statusWith(copy, CHOSEN), refusedAtStart(copy)]).toEqual([401, [refused]]);
    }
  },
);

test("a key of CAIRN_API_KEY that was rolled opens nothing once its overlap has ended, and a start says so", async () => {
  await using cairn = await startCairn({ apiKey: CHOSEN });
  cairn.key = await cairn.newKey({ scopes: ["admin"] });
  const own = (await cairn.list("/v1/api_keys")).find(({ name }: { name: string }) => name === "from the environment");
  await cairn.ok(cairn.post(`/v1/api_keys/${own.id}/roll`, { overlap_seconds: 60 }));
  await cairn.restart();
  expect([await statusWith(cairn, CHOSEN), refusedAtStart(cairn)]).toEqual([200, []]);
  cairn.clock.advance({ seconds: 61 });
  await cairn.restart();
  expect([await statusWith(cairn, CHOSEN), refusedAtStart(cairn)]).toEqual([
    401,
    [{ level: "warn", reason: "it has ended", prefix: "crn_Chos" }],
  ]);
});

test("the last admin key that works is revoked, or given an end, only with force", async () => {
  await using cairn = await startCairn();
  const [{ id }] = await cairn.list("/v1/api_keys");
  const last = { status: 400, error: { code: "invalid_request", param: "force" } };
  const refused = async (answer: Promise<{ status: number; body: any }>) => {
    const { status, body } = await answer;
    expect({ status, error: body.error }).toMatchObject(last);
  };
  // A key without that scope, one that has ended, and one that was rolled do not count.
  await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["read", "write"] }));
  const brief = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["admin"], expires_at: "2026-05-07T09:00:00Z" }));
  const rolled = await cairn.ok(cairn.post(`/v1/api_keys/${brief.id}/roll`, {}));
  cairn.clock.advance({ hours: 2 });
  await refused(cairn.delete(`/v1/api_keys/${id}`));
  await refused(cairn.delete(`/v1/api_keys/${id}?force=false`));
  await refused(cairn.post(`/v1/api_keys/${id}/roll`, { expires_at: "2026-05-09T00:00:00Z" }));
  await cairn.ok(cairn.delete(`/v1/api_keys/${rolled.id}`));

  // One that is made with an end counts until then.
  const other = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["admin"], expires_at: "2026-05-09T00:00:00Z" }));
  await cairn.ok(cairn.delete(`/v1/api_keys/${id}`));
  cairn.key = other.key;
  await refused(cairn.delete(`/v1/api_keys/${other.id}`));
  await refused(cairn.post(`/v1/api_keys/${other.id}/roll`, { expires_at: "2026-05-08T00:00:00Z" }));
  const successor = await cairn.ok(
    cairn.post(`/v1/api_keys/${other.id}/roll`, { overlap_seconds: 0, expires_at: "2026-05-08T00:00:00Z", force: true }),
  );
  cairn.key = successor.key;
  await cairn.ok(cairn.delete(`/v1/api_keys/${successor.id}?force=true`));
  expect((await cairn.get("/v1/api_keys")).status).toBe(401);
});
