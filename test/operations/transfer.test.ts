import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { examineAll } from "../../src/operations/doctor.ts";
import { exportLines } from "../../src/operations/export.ts";
import { importLines } from "../../src/operations/import.ts";
import { FROM_MEMORIES, RECORDS } from "../../src/operations/records.ts";
import type { Store } from "../../src/storage/store.ts";
import { TABLES, vectors } from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { answersOf, startFilled, refusalOf } from "./everything.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "cairn-transfer-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const exported = (store: Store, secrets = true) => Array.from(exportLines(store, { secrets }));

/** In chunks of a few bytes, so that lines and characters are cut anywhere. */
async function* asFile(lines: readonly string[], chunkBytes = 1_000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

test("every table of the store is one of records, an index of one, or follows from memories", () => {
  const known = [...RECORDS.flatMap(({ table, indexes }) => [table, ...indexes]), ...FROM_MEMORIES];
  expect(known.map(({ name }) => name).toSorted()).toEqual([...TABLES, vectors].map(({ name }) => name).toSorted());
});

test("the store that these tests fill has rows in every table", async () => {
  await using cairn = (await startFilled()).cairn;
  const { store } = cairn.service;
  expect(TABLES.filter((table) => store.count(table) === 0).map(({ name }) => name)).toEqual([]);
});

test("what was exported and imported exports as the same lines, answers the same to the same key, and has nothing wrong with it", async () => {
  const filled = await startFilled();
  await using cairn = filled.cairn;
  const lines = exported(cairn.service.store);
  const answers = await answersOf(cairn, filled);

  expect(await importLines(asFile(lines, 333), directory, new FakeClock())).toBe(lines.length - 2);
  await using imported = await startCairn({ directory, clock: cairn.clock });
  expect(imported.key).toBe("");
  imported.key = cairn.key;
  expect(exported(imported.service.store)).toEqual(lines);
  expect(await answersOf(imported, filled)).toEqual(answers);
  expect((await examineAll(imported.service.store)).findings).toEqual([]);
});

test("without secrets webhooks are disabled and get a secret nobody knows, the provider's key is left out, and the lines stay the same", async () => {
  const { cairn } = await startFilled();
  await using _ = cairn;
  await cairn.ok(cairn.patch("/v1/settings", { embedding: { api_key: "sk-of-the-provider" } }));
  const secret = (await cairn.ok(cairn.post("/v1/webhooks", { url: "https://hooks.example.com/2", events: ["trace.created"] }))).secret;
  const lines = exported(cairn.service.store, false);
  expect(lines.filter((line) => line.includes(secret) || line.includes("sk-of-the-provider"))).toEqual([]);
  expect(exported(cairn.service.store, true).filter((line) => line.includes(secret) || line.includes("sk-of-the-provider"))).toHaveLength(
    2,
  );

  await importLines(asFile(lines), directory, new FakeClock());
  await using imported = await startCairn({ directory, clock: cairn.clock });
  imported.key = cairn.key;
  expect(exported(imported.service.store, false)).toEqual(lines);
  const { data } = await imported.ok(imported.get("/v1/webhooks"));
  expect(data).toMatchObject([
    { enabled: false, disabled_reason: expect.stringContaining("without its secret") },
    { enabled: false, disabled_reason: expect.stringContaining("without its secret") },
  ]);
  const secrets = exported(imported.service.store, true).flatMap((line) =>
    Array.from(line.matchAll(/"secret":"(whsec_[^"]+)"/g), (match) => match[1]),
  );
  expect({ made: secrets.length, different: new Set(secrets).size, isOld: secrets.includes(secret) }).toEqual({
    made: 2,
    different: 2,
    isOld: false,
  });
});

test("an export shows one moment, however much is written while it is read", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  for (let i = 0; i < 20; i++) await cairn.addMemory(session.id, `Memory ${i}`);
  const { store } = cairn.service;
  const expected = exported(store);
  const lines: string[] = [];
  for (const line of exportLines(store, { secrets: true })) {
    lines.push(line);
    if (lines.length % 10 === 0) {
      await cairn.addMemory(session.id, "Written meanwhile");
      await cairn.ok(cairn.delete(`/v1/memory/${(await cairn.ok(cairn.get("/v1/memory?limit=1"))).last_id}`));
      await cairn.setState(session.id, { written: lines.length });
    }
  }
  expect(lines).toEqual(expected);
});

const HEADER = '{"cairn_export":1,"cairn":"0.1.0","schema":1}';
const SESSION =
  '{"table":"sessions","key":"0VQk3aB4x1Zq","row":{"agentId":"a","userId":null,"createdAt":1,"updatedAt":1,"metadata":{},"memoryCount":0,"turnCount":0,"ttlSeconds":1,"expiresAt":1,"version":0}}';
const MEMORY = (row: string, more = "") =>
  `{"table":"memories","key":"0VQk3aB4x1Zq","row":{"sessionId":"sess_0VQk3aB4x1Zq","userId":null,"content":"c","type":"t","tags":[],"metadata":{},"createdAt":1,"embed":true${row}}${more}}`;
const TRACE =
  '{"table":"traces","key":"0VQk3aB4x1Zq","row":{"expiresAt":1,"adminOnly":true,"body":{"id":"trace_0VQk3aB4x1Zq","session_id":null,"action":"settings.updated","timestamp":"2026-05-07T08:00:00.000Z"}}}';
const VECTOR = Buffer.from(new Float32Array(1536).buffer).toString("base64");
const NOT_FINITE = Buffer.from(new Float32Array(1536).fill(Number.NaN).buffer).toString("base64");
const EMBEDDED = ',"embedding":{"id":"emb_0VQk3aB4x1Zq","label":0}';

const REFUSED: { name: string; lines: (string | Uint8Array)[]; says: string }[] = [
  { name: "an empty file", lines: [], says: "There is nothing to import." },
  { name: "another file", lines: ["hello"], says: "Line 1 cannot be imported: it is no JSON" },
  { name: "other JSON", lines: ['{"a":1}'], says: "Line 1 cannot be imported: it is not the first line of an export" },
  { name: "a newer format", lines: ['{"cairn_export":2,"cairn":"9.0.0","schema":1}'], says: "not format 2, schema 1 of Cairn 9.0.0" },
  { name: "another schema", lines: ['{"cairn_export":1,"cairn":"9.0.0","schema":99}'], says: "not format 1, schema 99 of Cairn 9.0.0" },
  { name: "a file that was cut short", lines: [HEADER, SESSION], says: "Line 2 cannot be imported: the end is missing" },
  { name: "a line that was cut short", lines: [HEADER, SESSION.slice(0, 50)], says: "Line 2 cannot be imported: it is no JSON" },
  { name: "a missing line", lines: [HEADER, SESSION, '{"end":2}'], says: "there should be 2 records, and there are 1" },
  { name: "lines after the end", lines: [HEADER, '{"end":0}', SESSION], says: "Line 3 cannot be imported: nothing may come after the end" },
  { name: "text that is not UTF-8", lines: [HEADER, Uint8Array.of(0x22, 0xff, 0x22)], says: "Line 2 cannot be imported: it is no JSON" },
  { name: "a list", lines: [HEADER, "[]"], says: "Line 2 cannot be imported: it is no JSON object" },
  {
    name: "an unknown table",
    lines: [HEADER, '{"table":"x","key":"k","row":{}}'],
    says: 'Line 2 cannot be imported: there is no table "x"',
  },
  { name: "an index", lines: [HEADER, '{"table":"sessions_by_user","key":"k","row":""}'], says: 'there is no table "sessions_by_user"' },
  { name: "a key that is none", lines: [HEADER, SESSION.replace("0VQk3aB4x1Zq", "../../x")], says: "the key has not the shape of one" },
  { name: "a missing member", lines: [HEADER, SESSION.replace('"version":0', '"x":0')], says: "row.version is not a whole number" },
  {
    name: "an inherited member",
    lines: [HEADER, '{"table":"removals","key":"0VQk3aB4x1Zq","row":{"__proto__":{"memories":true}}}'],
    says: "row.memories is not true or false",
  },
  { name: "a member of another type", lines: [HEADER, SESSION.replace('"agentId":"a"', '"agentId":7')], says: "row.agentId is not text" },
  {
    name: "a trace of no session that everybody could read",
    lines: [HEADER, TRACE.replace('"adminOnly":true,', "")],
    says: "row.adminOnly is not true exactly where session_id is null",
  },
  {
    name: "a trace of a session that is for admins only",
    lines: [HEADER, TRACE.replace("null", '"sess_0VQk3aB4x1Zq"')],
    says: "row.adminOnly is not true exactly where session_id is null",
  },
  {
    name: "a time that no key can hold",
    lines: [HEADER, SESSION.replace('"expiresAt":1', '"expiresAt":1e15')],
    says: "row.expiresAt is not a whole number",
  },
  {
    name: "a record twice",
    lines: [HEADER, SESSION, SESSION],
    says: "Line 3 cannot be imported: there was a row 0VQk3aB4x1Zq of sessions before",
  },
  { name: "a vector that is missing", lines: [HEADER, MEMORY(EMBEDDED)], says: "vector and terms must be base64" },
  {
    name: "a short vector",
    lines: [HEADER, MEMORY(EMBEDDED, ',"vector":"AAAA","terms":""')],
    says: "vector and terms are not those of a memory",
  },
  {
    name: "a vector of no numbers",
    lines: [HEADER, MEMORY(EMBEDDED, `,"vector":"${NOT_FINITE}","terms":""`)],
    says: "vector and terms are not those",
  },
  {
    name: "a label that would be given again",
    lines: [HEADER, MEMORY(EMBEDDED, `,"vector":"${VECTOR}","terms":""`), '{"end":1}'],
    says: "The next label is 0, and must be above 0",
  },
  ...["banana", "", "NaN", "-1", "1.5", "1e3", " 7", "4294967296"].map((row) => ({
    name: `a next label of ${JSON.stringify(row)}`,
    lines: [HEADER, JSON.stringify({ table: "meta", key: "nextLabel", row }), '{"end":1}'],
    says: "Line 2 cannot be imported: row is not the text of a whole number below 2^32",
  })),
  {
    name: "a first label that cannot be read",
    lines: [HEADER, '{"table":"meta","key":"firstLabel","row":"banana"}', '{"end":1}'],
    says: "Line 2 cannot be imported: row is not the text of a whole number below 2^32",
  },
  {
    name: "a first label above the next",
    lines: [HEADER, '{"table":"meta","key":"firstLabel","row":"7"}', '{"end":1}'],
    says: "The next label is 0, and must be 7 or more",
  },
  {
    name: "a row of meta that nobody reads",
    lines: [HEADER, '{"table":"meta","key":"lastLabel","row":"7"}', '{"end":1}'],
    says: "Line 2 cannot be imported: the key has not the shape of one",
  },
];

for (const { name, lines, says } of REFUSED) {
  test(`an import refuses ${name}, says where, and leaves no store`, async () => {
    const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")]));
    const source = (async function* () {
      yield bytes;
    })();
    expect(await refusalOf(importLines(source, directory, new FakeClock()))).toContain(says);
    expect({ store: existsSync(join(directory, "store")), draft: existsSync(join(directory, "incoming")) }).toEqual({
      store: false,
      draft: false,
    });
  });
}

test("an import into a directory with a store, or one that is served, is refused and changes nothing", async () => {
  await using cairn = await startCairn({ directory });
  const session = await cairn.createSession();
  const lines = exported(cairn.service.store);
  expect(await refusalOf(importLines(asFile(lines), directory, new FakeClock()))).toContain("Another Cairn is using");
  await cairn.close();
  expect(await refusalOf(importLines(asFile(lines), directory, new FakeClock()))).toContain("There is a store in");
  await cairn.open();
  expect(await cairn.session(session.id)).toEqual(session);
});

test("a memory whose vector is lost is exported without one, and owed it where it is imported", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const { id } = await cairn.addMemory(session.id, "The parcel is blue.");
  await cairn.service.store.commit((tx) => tx.removeVector(id.slice("mem_".length)));
  await importLines(asFile(exported(cairn.service.store)), directory, new FakeClock());
  await using imported = await startCairn({ directory, clock: cairn.clock });
  imported.key = cairn.key;
  await imported.runTask("embeddings");
  expect(await imported.search("What colour is the parcel?", { threshold: 0 })).toMatchObject({ data: [{ id }] });
});
