import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { toJson } from "../../src/lib/json.ts";
import { packed } from "../../src/lib/packed-json.ts";
import { examineAll } from "../../src/operations/doctor.ts";
import { exportLines } from "../../src/operations/export.ts";
import { importLines } from "../../src/operations/import.ts";
import type { RecordStore } from "../../src/storage/record-store.ts";
import { MAX_KEY } from "../../src/storage/keys.ts";
import { generationOf } from "../../src/storage/memory-records.ts";
import { idempotency, TABLES, vectors } from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { startEmbeddingServer } from "../support/embedding-server.ts";
import { answersOf, startFilled, refusalOf } from "./everything.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "cairn-transfer-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const exported = (store: RecordStore, secrets = true) => Array.fromAsync(exportLines(store, { secrets }));

/** In chunks of a few bytes, so that lines and characters are cut anywhere. */
async function* asFile(lines: readonly string[], chunkBytes = 1_000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

test("the store that these tests fill has rows in every table", async () => {
  await using cairn = (await startFilled()).cairn;
  const { embedded: store } = cairn;
  expect(TABLES.filter((table) => store.count(table) === 0).map(({ name }) => name)).toEqual([]);
});

test("what was exported and imported exports as the same lines, answers the same to the same key, and has nothing wrong with it", async () => {
  const filled = await startFilled();
  await using cairn = filled.cairn;
  const lines = await exported(cairn.embedded);
  const answers = await answersOf(cairn, filled);

  expect(await importLines(asFile(lines, 333), directory, new FakeClock())).toEqual({ records: lines.length - 2, setAgain: [], left: [] });
  await using imported = await startCairn({ directory, clock: cairn.clock });
  expect(imported.key).toBe("");
  imported.key = cairn.key;
  expect(await exported(imported.embedded)).toEqual(lines);
  expect(await answersOf(imported, filled)).toEqual(answers);
  expect((await examineAll(imported.embedded)).findings).toEqual([]);
});

test("without secrets webhooks are disabled and get a secret nobody knows, the provider's key is left out, and the lines stay the same", async () => {
  const { cairn } = await startFilled();
  await using _ = cairn;
  await cairn.ok(cairn.patch("/v1/settings", { embedding: { api_key: "sk-of-the-provider" } }));
  const secret = (await cairn.ok(cairn.post("/v1/webhooks", { url: "https://hooks.example.com/2", events: ["trace.created"] }))).secret;
  const lines = await exported(cairn.embedded, false);
  expect(lines.filter((line) => line.includes(secret) || line.includes("sk-of-the-provider"))).toEqual([]);
  expect(
    (await exported(cairn.embedded, true)).filter((line) => line.includes(secret) || line.includes("sk-of-the-provider")),
  ).toHaveLength(2);

  await importLines(asFile(lines), directory, new FakeClock());
  await using imported = await startCairn({ directory, clock: cairn.clock });
  imported.key = cairn.key;
  expect(await exported(imported.embedded, false)).toEqual(lines);
  const { data } = await imported.ok(imported.get("/v1/webhooks"));
  expect(data).toMatchObject([
    { enabled: false, disabled_reason: expect.stringContaining("without its secret") },
    { enabled: false, disabled_reason: expect.stringContaining("without its secret") },
    { enabled: false, disabled_reason: expect.stringContaining("without its secret") },
  ]);
  const secrets = (await exported(imported.embedded, true)).flatMap((line) =>
    Array.from(line.matchAll(/"secret":"(whsec_[^"]+)"/g), (match) => match[1]),
  );
  expect({ made: secrets.length, different: new Set(secrets).size, isOld: secrets.includes(secret) }).toEqual({
    made: 3,
    different: 3,
    isOld: false,
  });
});

test("without secrets no URL has its path or query, kept answers included, and an import says what is to be set again", async () => {
  await using server = startEmbeddingServer();
  await using cairn = await startCairn();
  const once = { headers: { "Idempotency-Key": "once" } };
  const hook = (url: string) => cairn.ok(cairn.post("/v1/webhooks", { url, events: ["session.created"] }, once));
  const { id } = await hook("https://hooks.example.com/services/T000/B000/TOP-SECRET?token=TOP-SECRET");
  const embedding = { provider: "openai", base_url: `${server.baseUrl}?key=TOP-SECRET`, model: "m", api_key: "TOP-SECRET" };
  await cairn.ok(cairn.patch("/v1/settings", { embedding }, { headers: { "Idempotency-Key": "twice" } }));
  // As an answer is kept that is longer.
  const answers = await cairn.read((reader) => reader.rows(idempotency, { from: "", to: MAX_KEY }));
  const { key, row } = answers.find(({ row: { body } }) => body.includes('"object":"settings"'))!;
  const long = toJson({ ...(JSON.parse(row.body) as object), more: "x".repeat(9_000) });
  await cairn.embedded.commit(NO_PARTITION, (tx) => tx.put(idempotency, `${key.slice(1)}_`, { ...row, body: packed(long)!, packed: true }));
  expect((await exported(cairn.embedded, true)).filter((line) => line.includes('"packed"')).length).toBe(1);
  const lines = await exported(cairn.embedded, false);
  expect(lines.filter((line) => line.includes("TOP-SECRET") || line.includes('"packed"'))).toEqual([]);
  expect((await exported(cairn.embedded, true)).filter((line) => line.includes("TOP-SECRET")).length).toBeGreaterThanOrEqual(3);

  expect(await importLines(asFile(lines), directory, new FakeClock())).toMatchObject({
    setAgain: [
      `embedding.base_url in the settings: the query of ${server.baseUrl}?…`,
      "embedding.api_key in the settings, if the embedding provider wants one",
      `webhook ${id}: the path of its URL (https://hooks.example.com/…) and its secret; it is disabled until you enable it`,
    ],
  });
  await using imported = await startCairn({ directory, clock: cairn.clock });
  imported.key = cairn.key;
  expect(await exported(imported.embedded, false)).toEqual(lines);
  expect(await imported.ok(imported.get(`/v1/webhooks/${id}`))).toMatchObject({
    url: "https://hooks.example.com/…",
    enabled: false,
    disabled_reason: "It was exported without its secret and the path of its URL: set the URL, rotate the secret, then enable it.",
  });
  // The same provider as before, whose vectors stay.
  const generation = imported.embedded.read(generationOf);
  await imported.ok(imported.patch("/v1/settings", { embedding }));
  expect(imported.embedded.read(generationOf)).toBe(generation);
});

test("an export shows one moment, however much is written while it is read", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  for (let i = 0; i < 20; i++) await cairn.addMemory(session.id, `Memory ${i}`);
  const { embedded: store } = cairn;
  const expected = await exported(store);
  const lines: string[] = [];
  for await (const line of exportLines(store, { secrets: true })) {
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
  `{"table":"memories","key":"0VQk3aB4x1Zq","row":{"sessionId":"sess_0VQk3aB4x1Zq","userId":null,"agentId":"a","content":"c","type":"t","tags":[],"metadata":{},"createdAt":1,"embed":true${row}}${more}}`;
const base64 = (value: number) => Buffer.from(new Float32Array(1536).fill(value).buffer).toString("base64");
const VECTOR = `,"vector":"${base64(0)}","terms":""`;
const EMBEDDED = ',"embedding":{"id":"emb_0VQk3aB4x1Zq","generation":1}';

const VERSION = (number: string) =>
  `{"table":"versions","key":"0VQk3aB4x1Zq${number}","row":{"id":"0VQk3aB4x1Zq","createdAt":1,"actor":"system","source":"initial","body":{}}}`;
const SETTINGS = (row: unknown) => JSON.stringify({ table: "settings", key: "current", row });
const WEBHOOK =
  '{"table":"webhooks","key":"0VQk3aB4x1Zq","row":{"url":"https://hooks.example.com","events":[],"description":null,"enabled":true,"disabledReason":null,"secret":"whsec_AAAAAAAAAAAAAAAAAAAAAAAA","previousSecrets":[],"createdAt":1,"updatedAt":1,"since":"0VQk3aB4x1Zq","failingSince":null}}';
const DELIVERY =
  '{"table":"deliveries","key":"0VQk3aB4x1Zq0VQk3aB4x1Zr","row":{"payload":"0VQk3aB4x1Zs","eventId":"0VQk3aB4x1Zr","type":"session.created","sessionId":null,"createdAt":1,"status":"delivered","attempts":1,"failures":0,"nextAttemptAt":null,"recent":[]}}';
const API_KEY = (hash: string) =>
  `{"table":"api_keys","key":"${hash.repeat(64)}","row":{"id":"key_0VQk3aB4x1Zq","kind":"key","name":null,"prefix":"crn_AAAA","scopes":["admin"],"tier":"pro","perMinute":1,"burst":1,"createdAt":1,"expiresAt":null}}`;
const whole = (...lines: string[]) => [HEADER, ...lines, `{"end":${lines.length}}`];
const META = (key: string, row: string) => JSON.stringify({ table: "meta", key, row });

type Refused = [name: string, says: string, ...lines: (string | Uint8Array)[]];

const FIRST_LINES: Refused[] = [
  ["an empty file", "There is nothing to import."],
  ["another file", "Line 1 cannot be imported: it is not JSON", "hello"],
  ["other JSON", "Line 1 cannot be imported: it is not the first line of an export", '{"a":1}'],
  ["a newer format", 'not format 2, schema 1 of Cairn "9.0.0"', '{"cairn_export":2,"cairn":"9.0.0","schema":1}'],
  ["another schema", 'not format 1, schema 99 of Cairn "9.0.0"', '{"cairn_export":1,"cairn":"9.0.0","schema":99}'],
];

/** Refused while they are read; the last line need not come. */
const LINES: Refused[] = [
  ["a file that was cut short", "Line 2 cannot be imported: the end is missing", SESSION],
  ["a line that was cut short", "Line 2 cannot be imported: it is not JSON", SESSION.slice(0, 50)],
  ["a missing line", "there should be 2 records, and there are 1", SESSION, '{"end":2}'],
  ["lines after the end", "Line 3 cannot be imported: nothing may come after the end", '{"end":0}', SESSION],
  ["text that is not UTF-8", "Line 2 cannot be imported: it is not JSON", Uint8Array.of(0x22, 0xff, 0x22)],
  ["a list", "Line 2 cannot be imported: it is not a JSON object", "[]"],
  ["an unknown table", 'Line 2 cannot be imported: there is no table "x"', '{"table":"x","key":"k","row":{}}'],
  ["an index", 'there is no table "sessions.byUser"', '{"table":"sessions.byUser","key":"k","row":""}'],
  ["a key that is none", "the key has not the shape of one", SESSION.replace("0VQk3aB4x1Zq", "../../x")],
  ["a missing member", "row.version is not a whole number", SESSION.replace('"version":0', '"x":0')],
  [
    "an inherited member",
    "row.memories is not true or false",
    '{"table":"removals","key":"0VQk3aB4x1Zq","row":{"__proto__":{"memories":true}}}',
  ],
  ["a member of another type", "row.agentId is not text", SESSION.replace('"agentId":"a"', '"agentId":7')],
  ["a time that no key can hold", "row.expiresAt is not a whole number", SESSION.replace('"expiresAt":1', '"expiresAt":1e15')],
  ["a record twice", "Line 3 cannot be imported: there was a row 0VQk3aB4x1Zq of sessions before", SESSION, SESSION],
  ["a vector that is missing", "vector and terms must be base64", MEMORY(EMBEDDED)],
  ["a short vector", "vector and terms are not those of a record", MEMORY(EMBEDDED, ',"vector":"AAAA","terms":""')],
  ["a vector of no numbers", "vector and terms are not those", MEMORY(EMBEDDED, `,"vector":"${base64(Number.NaN)}","terms":""`)],
];

/** Refused once all of them are there, or for what is in a row. */
const RECORDS: Refused[] = [
  ["a vector that is too long", "vector and terms are not those", MEMORY(EMBEDDED, `,"vector":"${base64(1)}","terms":""`)],
  [
    "a vector that two memories have",
    "another vector has the id emb_0VQk3aB4x1Zq",
    MEMORY(EMBEDDED, VECTOR),
    MEMORY(EMBEDDED, VECTOR).replace("0VQk3aB4x1Zq", "0VQk3aB4x1Zr"),
  ],
  ["a vector of a provider that was not set yet", "vectors: of another record or provider than it says", MEMORY(EMBEDDED, VECTOR)],
  ...[-1, 1.5, "1", 4_294_967_296].map((generation): Refused => [
    `a generation of ${JSON.stringify(generation)}`,
    "Line 2 cannot be imported: row.generation is not a whole number below 2^32",
    JSON.stringify({ table: "provider", key: "current", row: { identity: "", generation } }),
  ]),
  ["a row of the store itself", 'Line 2 cannot be imported: there is no table "meta"', META("backupNumber", "7")],
  ["a session without a state", "Line 3 cannot be imported: sessions: all versions", MEMORY(""), SESSION],
  [
    "a session without its current state",
    "Line 2 cannot be imported: sessions: the current version is not the last one (sess_0VQk3aB4x1Zq)",
    SESSION.replace('"version":0', '"version":3'),
    VERSION("0000000"),
  ],
  [
    "a session without its first state",
    "Line 2 cannot be imported: sessions: versions of the state are missing",
    SESSION.replace('"version":0', '"version":1'),
    VERSION("0000001"),
  ],
  ["a state of no session", "Line 2 cannot be imported: versions: rows of a session that is", VERSION("0000000")],
  [
    "a count that is wrong",
    "Line 2 cannot be imported: sessions: the count of turns is wrong",
    SESSION.replace('"turnCount":0', '"turnCount":2'),
    VERSION("0000000"),
  ],
  [
    "a memory of another user than its session's",
    "Line 4 cannot be imported: memories: of another user than their session",
    SESSION.replace('"memoryCount":0', '"memoryCount":1'),
    VERSION("0000000"),
    MEMORY("").replace('"userId":null', '"userId":"b"'),
  ],
  [
    "a memory of another agent than its session's",
    "Line 4 cannot be imported: memories: of another agent than their session",
    SESSION.replace('"memoryCount":0', '"memoryCount":1'),
    VERSION("0000000"),
    MEMORY("").replace('"agentId":"a"', '"agentId":"b"'),
  ],
  [
    "an admin key that is bound",
    "Line 2 cannot be imported: a key with the scope admin is bound",
    API_KEY("a").replace('"tier"', '"userId":"ada","tier"'),
  ],
  ["a delivery of nothing", "Line 3 cannot be imported: deliveries: what was to be delivered", WEBHOOK, DELIVERY],
  ["an id twice", "Line 3 cannot be imported: another row of api_keys says the same id", API_KEY("a"), API_KEY("b")],
  ...Object.entries({
    '{"embedding.base_url":"nope"}': "embedding.base_url cannot be used. It is not a URL.",
    '{"embedding.provider":"other"}': "embedding.provider must be one of builtin, words, openai, local",
    '{"webhooks.retry_schedule":"soon"}': "webhooks.retry_schedule must be times such as",
    '{"trace_retention_days":0}': "trace_retention_days must be an integer from 1",
    '{"max_body_bytes":3}': "max_body_bytes must be an integer from 1024",
    '{"region":""}': "region is not set, and must be left out",
  }).map(([row, says]): Refused => [`settings of ${row}`, `Line 2 cannot be imported: ${says}`, SETTINGS(JSON.parse(row))]),
  ["a scope that is none", "row.scopes[0] is not one of read, write, admin", API_KEY("a").replace("admin", "all")],
  ["an end that is no time", "row.expiresAt is not a time in milliseconds", API_KEY("a").replace('"expiresAt":null', '"expiresAt":1e300')],
  [
    "a webhook that leads nowhere",
    "row.url cannot be used: It must be a complete URL",
    WEBHOOK.replace("https://hooks.example.com", "hooks"),
  ],
  [
    "objects inside each other without end",
    "row nests more than 80 levels",
    SESSION.replace('"metadata":{}', `"metadata":${'{"a":'.repeat(200)}1${"}".repeat(200)}`),
  ],
];

const REFUSED: Refused[] = [
  ...FIRST_LINES,
  ...LINES.map(([name, says, ...lines]): Refused => [name, says, HEADER, ...lines]),
  ...RECORDS.map(([name, says, ...lines]): Refused => [name, says, HEADER, ...lines, `{"end":${lines.length}}`]),
];

for (const [name, says, ...lines] of REFUSED) {
  test(`an import refuses ${name}, says where, and leaves no store`, async () => {
    const bytes = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")]));
    const source = (async function* () {
      yield bytes;
    })();
    expect(await refusalOf(importLines(source, directory, new FakeClock()))).toContain(says);
    expect(["store", "incoming"].filter((left) => existsSync(join(directory, left)))).toEqual([]);
  });
}

test("an import takes a session whose old versions were removed, and memories whose session has expired", async () => {
  const lines = whole(SESSION.replace('"version":0', '"version":3'), ...["0", "2", "3"].map((number) => VERSION(`000000${number}`)));
  const other = MEMORY("").replaceAll("0VQk3aB4x1Zq", "0VQk3aB4x1Zz");
  expect(await importLines(asFile([...lines.slice(0, -1), other, '{"end":5}']), directory, new FakeClock())).toEqual({
    records: 5,
    setAgain: [],
    left: [],
  });
});

test("an import into a directory with a store, or one that is served, is refused and changes nothing", async () => {
  await using cairn = await startCairn({ directory });
  const session = await cairn.createSession();
  const lines = await exported(cairn.embedded);
  expect(await refusalOf(importLines(asFile(lines), directory, new FakeClock()))).toContain("Another Cairn is using");
  await cairn.close();
  expect(await refusalOf(importLines(asFile(lines), directory, new FakeClock()))).toContain("There is a store in");
  await cairn.open();
  expect(await cairn.session(session.id)).toEqual(session);
});

test("a memory whose vector is lost is exported without one, and is pending where it is imported", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const { id } = await cairn.addMemory(session.id, "The parcel is blue.");
  await cairn.embedded.commit(NO_PARTITION, (tx) => tx.removeVector(vectors, id.slice("mem_".length)));
  await importLines(asFile(await exported(cairn.embedded)), directory, new FakeClock());
  await using imported = await startCairn({ directory, clock: cairn.clock });
  imported.key = cairn.key;
  await imported.runTask("embeddings");
  expect(await imported.search("What colour is the parcel?", { threshold: 0 })).toMatchObject({ data: [{ id }] });
});
