/**
 * Forgetting memories by a filter: a dry run first, then exactly what it counted.
 */
import { expect, test } from "bun:test";
import { startCairn, type Cairn } from "./support/cairn.ts";

const forget = (cairn: Cairn, body: object, options = {}) => cairn.post("/v1/memory/forget", body, options);
const refusal = ({ status, body }: { status: number; body: any }) => ({ status, param: body.error.param, code: body.error.code });

async function addAll(cairn: Cairn, memories: object[]): Promise<any[]> {
  return (await cairn.ok(cairn.post("/v1/memory/batch", { memories: memories.map((one) => ({ user_id: "ada", ...one })) }))).data;
}

const FROM_CRM = { "metadata.source": "crm" };
const crm = (n: number) => ({ content: `Row ${n}.`, metadata: { source: "crm", n } });
const kept = async (cairn: Cairn) => (await cairn.list("/v1/memory?limit=100&status=all")).map(({ content }) => content);

test("a dry run is the default: it counts, shows ten, and deletes nothing", async () => {
  await using cairn = await startCairn();
  await addAll(cairn, [...Array.from({ length: 12 }, (_, n) => crm(n)), { content: "Stays." }]);
  const body = await cairn.ok(forget(cairn, { filter: FROM_CRM }));
  expect(body).toMatchObject({ object: "forget_result", dry_run: true, count: 12, has_more: false });
  expect(body.examples.map(({ content }: any) => content)).toEqual(Array.from({ length: 10 }, (_, n) => `Row ${11 - n}.`));
  const cut = await cairn.ok(forget(cairn, { filter: FROM_CRM, limit: 5 }));
  expect(cut).toMatchObject({ count: 5, has_more: true });
  expect(await kept(cairn)).toHaveLength(13);
  expect(await cairn.list("/v1/traces?action=memory.deleted")).toEqual([]);
});

test("with the token of a dry run exactly those go that it counted, each with its trace, and what was added since stays", async () => {
  await using cairn = await startCairn();
  await addAll(cairn, [crm(1), crm(2), { content: "Stays." }]);
  const { token } = await cairn.ok(forget(cairn, { filter: FROM_CRM }));
  await addAll(cairn, [crm(3)]);
  const sent = { filter: FROM_CRM, dry_run: false, token, reason: "The CRM was left." };
  expect(await cairn.ok(forget(cairn, sent))).toEqual({ object: "forget_result", dry_run: false, count: 2, has_more: false });
  expect(await kept(cairn)).toEqual(["Row 3.", "Stays."]);
  const traces = await cairn.list("/v1/traces?action=memory.deleted");
  expect(traces.map(({ details }) => details.reason)).toEqual(["The CRM was left.", "The CRM was left."]);
  expect(refusal(await forget(cairn, sent))).toEqual({ status: 409, param: "token", code: "version_conflict" });
  expect(await cairn.findings()).toEqual([]);
});

test("nothing goes where one that was counted has changed or is gone, or the filter is another one", async () => {
  await using cairn = await startCairn();
  const [one, two] = await addAll(cairn, [crm(1), crm(2), crm(3)]);
  const ask = async () => (await cairn.ok(forget(cairn, { filter: FROM_CRM }))).token as string;
  const conflict = { status: 409, param: "token", code: "version_conflict" };
  const changed = await ask();
  await cairn.ok(cairn.patch(`/v1/memory/${two.id}`, { content: "Row 2, as it is now." }));
  expect(refusal(await forget(cairn, { filter: FROM_CRM, dry_run: false, token: changed }))).toEqual(conflict);
  const gone = await ask();
  await cairn.ok(cairn.delete(`/v1/memory/${one.id}`));
  expect(refusal(await forget(cairn, { filter: FROM_CRM, dry_run: false, token: gone }))).toEqual(conflict);
  const other = await ask();
  const filter = { "metadata.n": { $gt: 2 } };
  expect(refusal(await forget(cairn, { filter, dry_run: false, token: other }))).toEqual(conflict);
  expect(await kept(cairn)).toHaveLength(2);
});

test("a large one goes in slices, and can be repeated until nothing is left", async () => {
  await using cairn = await startCairn();
  for (let at = 0; at < 300; at += 100)
    await addAll(
      cairn,
      Array.from({ length: 100 }, (_, n) => crm(at + n)),
    );
  const counts: number[] = [];
  for (let hasMore = true; hasMore;) {
    const { count, has_more } = await cairn.ok(forget(cairn, { filter: FROM_CRM, dry_run: false, limit: 140 }));
    counts.push(count);
    hasMore = has_more;
  }
  expect(counts).toEqual([140, 140, 20]);
  expect(await kept(cairn)).toEqual([]);
});

test("without a limit a request takes a hundred", async () => {
  await using cairn = await startCairn();
  await addAll(
    cairn,
    Array.from({ length: 100 }, (_, n) => crm(n)),
  );
  await addAll(cairn, [crm(100)]);
  expect(await cairn.ok(forget(cairn, { filter: FROM_CRM }))).toMatchObject({ count: 100, has_more: true });
});

test("past memories go too, and what a forgotten one superseded is current again", async () => {
  await using cairn = await startCairn();
  const [paris] = await addAll(cairn, [{ content: "Lives in Paris.", type: "home" }]);
  await addAll(cairn, [{ content: "Lives in Rome.", type: "home", supersedes: [paris.id], tags: ["wrong"] }]);
  await cairn.ok(forget(cairn, { filter: { tags: { $contains: "wrong" } }, dry_run: false }));
  expect((await cairn.list("/v1/memory")).map(({ content }) => content)).toEqual(["Lives in Paris."]);
  await addAll(cairn, [{ content: "Lives in Oslo.", type: "home", supersedes: [paris.id] }]);
  expect(await cairn.ok(forget(cairn, { filter: { type: "home" }, dry_run: false }))).toMatchObject({ count: 2 });
  expect(await kept(cairn)).toEqual([]);
  expect(await cairn.findings()).toEqual([]);
});

test("a bound key forgets its user's alone, one without read is shown nothing, and memories of sessions are counted off", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  await cairn.addMemory(session.id, "Row 0.", { metadata: { source: "crm" } });
  await addAll(cairn, [crm(1), { ...crm(2), user_id: "bo" }]);
  const bound = await cairn.ok(cairn.post("/v1/api_keys", { name: "ada", user_id: "ada", scopes: ["read", "write"] }));
  expect(await cairn.ok(forget(cairn, { filter: FROM_CRM }, { key: bound.key }))).toMatchObject({ count: 2 });
  expect(await cairn.ok(forget(cairn, { filter: FROM_CRM, dry_run: false }, { key: bound.key }))).toMatchObject({ count: 2 });
  expect((await cairn.list("/v1/memory")).map(({ user_id }) => user_id)).toEqual(["bo"]);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 0 });
  const writer = await cairn.ok(cairn.post("/v1/api_keys", { name: "writer", scopes: ["write"] }));
  expect(await cairn.ok(forget(cairn, { filter: FROM_CRM }, { key: writer.key }))).toEqual({ object: "forget_result" });
  await cairn.ok(forget(cairn, { filter: FROM_CRM, dry_run: false }, { key: writer.key }));
  expect(await kept(cairn)).toEqual([]);
});

test("a request that is sent again with its Idempotency-Key has the first answer, and deletes nothing more", async () => {
  await using cairn = await startCairn();
  await addAll(cairn, [crm(1)]);
  const headers = { "Idempotency-Key": "once" };
  const first = await forget(cairn, { filter: FROM_CRM, dry_run: false }, { headers });
  await addAll(cairn, [crm(2)]);
  expect((await forget(cairn, { filter: FROM_CRM, dry_run: false }, { headers })).body).toEqual(first.body);
  expect(await kept(cairn)).toEqual(["Row 2."]);
  const dry = { "Idempotency-Key": "dry" };
  const looked = await forget(cairn, { filter: FROM_CRM }, { headers: dry });
  await addAll(cairn, [crm(3)]);
  expect((await forget(cairn, { filter: FROM_CRM }, { headers: dry })).body).toEqual(looked.body);
});

test("an empty filter, a wrong token and a token of a dry run that counted more than the limit are refused by their names", async () => {
  await using cairn = await startCairn();
  await addAll(cairn, [crm(1), crm(2)]);
  const { token } = await cairn.ok(forget(cairn, { filter: FROM_CRM }));
  const refused = async (body: object) => refusal(await forget(cairn, body));
  const wrong = { status: 400, code: "invalid_request" };
  expect(await refused({ filter: {} })).toEqual({ ...wrong, param: "filter" });
  expect(await refused({})).toEqual({ ...wrong, param: "filter" });
  expect(await refused({ filter: { colour: "blue" } })).toMatchObject(wrong);
  expect(await refused({ filter: FROM_CRM, dry_run: false, token: "yesterday's" })).toEqual({ ...wrong, param: "token" });
  expect(await refused({ filter: FROM_CRM, dry_run: false, token: "x".repeat(65) })).toEqual({ ...wrong, param: "token" });
  expect(await refused({ filter: FROM_CRM, token })).toEqual({ ...wrong, param: "token" });
  expect(await refused({ filter: FROM_CRM, dry_run: false, token, limit: 1 })).toEqual({ ...wrong, param: "limit" });
  expect(await refused({ filter: FROM_CRM, limit: 1_001 })).toEqual({ ...wrong, param: "limit" });
  expect(await kept(cairn)).toHaveLength(2);
});
