import { expect, test } from "bun:test";
import { DIMENSION_MAX } from "../../../src/embeddings/embedder.ts";
import type { JsonText } from "../../../src/lib/json.ts";
import { rowProblem } from "../../../src/operations/records.ts";
import * as tables from "../../../src/storage/tables.ts";
import { RECORD_TABLES, SCHEMA_VERSION, type Table } from "../../../src/storage/tables.ts";
import { encodeVector } from "../../../src/search/encoding.ts";

/**
 * The stored form of a row of each table, as this schema version has it. A release that stores anything in another form needs
 * another version and a migration; then this is the hash of the new one.
 */
const FORMS = { schema: 1, sha256: "cedeefda00298fb7bf69cc87e4036436783d8b59f04c74e6c9a4ec688a1fd767" };

const SESSION = "sess_0VQk3aB4x1Zq";
const body = '{"a":1}' as JsonText;
const ROWS: Record<string, [key: string, row: unknown]> = {
  meta: ["schema", "1"],
  settings: ["current", { region: "eu", "webhooks.timeout": "15s" }],
  provider: [
    "current",
    {
      identity: "openai",
      generation: 2,
      replacesUntil: "0VQk3aB4x1Zc",
      vectorLength: 8,
      measured: { relevantCosine: 0.5, cosineOfUnrelated: 0.1, cosineOfSame: 0.9, separation: 1 },
    },
  ],
  api_keys: [
    "ab".repeat(32),
    {
      id: "key_0VQk3aB4x1Zr",
      kind: "oauth",
      source: "key_0VQk3aB4x1Zs",
      name: null,
      prefix: "crn_abcd",
      scopes: ["write"],
      tier: "pro",
      userId: "ada",
      agentId: "bot",
      perMinute: 1,
      burst: 2,
      createdAt: 3,
      expiresAt: 5,
      lastUsedAt: 4,
      rolledFrom: "key_0VQk3aB4x1Zs",
      rolledTo: "key_0VQk3aB4x1Zt",
      oauth: {
        clientId: "https://app.example/client.json",
        redirectUri: "http://127.0.0.1/callback",
        resource: "http://127.0.0.1:8700/mcp",
        challenge: "x",
        code: "cd".repeat(32),
        isRedeemed: true,
        isRefreshable: true,
        endsAt: 6,
        access: [{ hash: "ab".repeat(32), endsAt: 5 }],
        refresh: "ef".repeat(32),
        former: { hash: "01".repeat(32), salt: "y", until: 7 },
      },
    },
  ],
  sessions: [
    "0VQk3aB4x1Zq",
    {
      agentId: "bot",
      userId: "ada",
      externalId: "thread-7",
      namedWithin: "user",
      createdAt: 1,
      updatedAt: 2,
      occurredAt: -3,
      timedFrom: "0VQk3aB4x1Zu",
      metadata: { a: 1 },
      memoryCount: 3,
      turnCount: 4,
      ttlSeconds: 5,
      expiresAt: 6,
      version: 7,
      branch: 8,
      turnNumber: 9,
      rollbackCount: 1,
      indexTurns: "meaning",
      secrets: ["jwt"],
      forkedFrom: { sessionId: "sess_0VQk3aB4x1Zp", version: 2 },
    },
  ],
  versions: [
    "0VQk3aB4x1Zq0000007",
    {
      id: "0VQk3aB4x1Z7",
      until: "0VQk3aB4x1Z8",
      createdAt: 1,
      reasoning: "why",
      actor: "crn_abcd",
      source: "rollback",
      restoredFrom: 5,
      secrets: ["jwt"],
      body,
    },
  ],
  turns: [
    "0VQk3aB4x1Zq0VQk3aB4x1Zu",
    {
      shown: '"id":"turn_0VQk3aB4x1Zu","input":{},"output":{},"created_at":"2026-05-07T08:00:00.000Z"',
      rest: `"session_id":"${SESSION}","turn_number":1`,
      more: { stateVersion: 7, externalId: "message-7", time: -4, tokens: 9, secrets: ["jwt"] },
    },
  ],
  indexed_turns: [
    "0VQk3aB4x1Zu",
    {
      session: "0VQk3aB4x1Zq",
      user: "A".repeat(22),
      agent: "B".repeat(22),
      embed: false,
      embedding: { id: "emb_0VQk3aB4x1Zu", generation: 2, hasNoVector: true },
    },
  ],
  turn_indexing: ["current", { index: "words", after: "0VQk3aB4x1Zq0VQk3aB4x1Zu", done: 7 }],
  branches: [
    "0VQk3aB4x1Zq0000008",
    {
      start: "0VQk3aB4x1Zu",
      before: { session: "0VQk3aB4x1Zp", branch: 2, until: "0VQk3aB4x1Zt" },
      from: "0VQk3aB4x1Zs",
      count: 3,
      number: 4,
      at: 5,
      was: 6,
      memories: [{ session: "0VQk3aB4x1Zp", until: "0VQk3aB4x1Zq" }],
      isDeleted: true,
    },
  ],
  memories: [
    "0VQk3aB4x1Zv",
    {
      sessionId: SESSION,
      userId: "ada",
      agentId: "bot",
      content: "tea",
      type: "fact",
      tags: ["x"],
      metadata: { a: 1 },
      createdAt: 1,
      updatedAt: 2,
      externalId: "row-7",
      namedWithin: "owner",
      source: "import",
      importance: 0.5,
      pinned: true,
      occurredAt: -3,
      expiresAt: 4,
      validFrom: -5,
      validUntil: 6,
      supersedes: ["mem_0VQk3aB4x1Zt"],
      supersededBy: "mem_0VQk3aB4x1Zw",
      supersededAt: 7,
      supersededUntil: 8,
      actor: "crn_abcd",
      reason: "why",
      writtenAt: 2,
      edits: 1,
      tokens: 10,
      secrets: ["jwt"],
      embed: true,
      embedding: { id: "emb_0VQk3aB4x1Zd", generation: 2 },
    },
  ],
  memory_versions: ["0VQk3aB4x1Zv0000000", { content: "coffee", writtenAt: 1, actor: "crn_abcd", reason: "why" }],
  retrievals: [
    "0VQk3aB4x1Zg",
    {
      expiresAt: 1,
      at: 2,
      sessionId: SESSION,
      userId: "ada",
      agentId: "bot",
      actor: "crn_abcd",
      operation: "search",
      query: "tea?",
      limit: 5,
      threshold: 0.7,
      filtered: true,
      request: { explain: true },
      stateVersion: 7,
      turns: ["turn_0VQk3aB4x1Zu"],
      feedback: { at: 3, useful: ["mem_0VQk3aB4x1Zv"], notUseful: ["mem_0VQk3aB4x1Zw"], note: "close" },
      others: ["AAAAAAAAAAAAAAAAAAAAAA"],
      memories: [{ id: "mem_0VQk3aB4x1Zv", score: 0.9, rankingScore: 0.8, userId: null, agentId: "bot" }],
      pinned: [{ id: "mem_0VQk3aB4x1Zw", userId: "bob", agentId: null }],
    },
  ],
  traces: [
    "t0VQk3aB4x1Zw",
    {
      link: `0VQk3aB4x1Zq.7.${"A".repeat(22)}.${"B".repeat(43)}`,
      expiresAt: 1,
      at: 2,
      actor: "crn_abcd",
      sessionId: SESSION,
      userId: "ada",
      agentId: "bot",
      requestId: "req_1",
      latencyMs: 0.5,
      body,
    },
  ],
  audit_chains: [
    "0VQk3aB4x1Zq",
    {
      publicKey: "A".repeat(43),
      startedAt: 1,
      after: "0VQk3aB4x1Zw",
      previous: [{ chain: "0VQk3aB4x1Zp", count: 2, digest: "B".repeat(43) }],
      isClosed: true,
    },
  ],
  audit_segments: [
    "0VQk3aB4x1Zq0000001",
    {
      count: 257,
      digest: "A".repeat(43),
      names: "B".repeat(43),
      at: 1,
      signature: "C".repeat(86),
      traces: "t0VQk3aB4x1Zw",
      leaves: "D".repeat(43),
    },
  ],
  audit_removals: [
    "0VQk3aB4x1Zq0000001",
    {
      publicKey: "A".repeat(43),
      signature: "C".repeat(86),
      removed: [{ place: 0, cause: "erased", at: 1, leaf: "D".repeat(43), now: "E".repeat(43) }],
      all: { expired: 1, erased: 2, firstAt: 1, lastAt: 2 },
    },
  ],
  outbox: [
    "0VQk3aB4x1Zx",
    {
      types: ["turn.added"],
      webhooks: ["0VQk3aB4x1Zy"],
      createdAt: 1,
      sessionId: SESSION,
      user: "B".repeat(22),
      record: "0VQk3aB4x1Zv",
      trace: "t0VQk3aB4x1Zw",
      body,
    },
  ],
  webhooks: [
    "0VQk3aB4x1Zy",
    {
      url: "https://hooks.example/",
      events: ["turn.added"],
      description: null,
      enabled: true,
      disabledReason: null,
      secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2Vj",
      previousSecrets: [{ secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2Vk", until: 1 }],
      createdAt: 1,
      updatedAt: 2,
      failingSince: 3,
      pausedUntil: 4,
    },
  ],
  webhook_failures: [
    "0VQk3aB4x1Zy",
    { hours: [{ start: 3_600_000, attempts: 2 }], last: { at: 3_600_001, status: 500, error: "The receiver answered 500." } },
  ],
  payloads: ["0VQk3aB4x1Zz", body],
  deliveries: [
    "0VQk3aB4x1Zy0VQk3aB4x1Za",
    {
      payload: "0VQk3aB4x1Zz",
      eventId: "0VQk3aB4x1Zb",
      type: "turn.added",
      sessionId: SESSION,
      user: "B".repeat(22),
      record: "0VQk3aB4x1Zv",
      createdAt: 1,
      status: "pending",
      unordered: true,
      once: true,
      attempts: 1,
      failures: 1,
      nextAttemptAt: 2,
      recent: [{ at: 1, durationMs: 0.5, status: 500, body: "no", error: "it answered 500" }],
    },
  ],
  idempotency: ["A".repeat(22), { fingerprint: "f", status: 201, createdAt: 1, sealed: true, packed: true, users: ["B".repeat(22)], body }],
  deleted_keys: ["cd".repeat(32), { deletedAt: 1 }],
  removals: ["0VQk3aB4x1Zq", { memories: true, ofUser: true }],
  documents: [
    `${"A".repeat(44)}61!c3a9!.6b`,
    {
      id: "0VQk3aB4x1Ze",
      version: 1,
      createdAt: 2,
      updatedAt: 3,
      expiresAt: 4,
      ttlSeconds: 0.5,
      sessionId: SESSION,
      index: ["a"],
      body,
    },
  ],
  indexed_documents: ["0VQk3aB4x1Ze", { document: `${"A".repeat(44)}61!c3a9!.6b`, embedding: { id: "emb_0VQk3aB4x1Ze", generation: 2 } }],
  namespaces: [`${"A".repeat(44)}61!c3a9!`, { own: 1, all: 2, id: "0VQk3aB4x1Ze" }],
  document_removals: [`${"A".repeat(44)}61!`, { until: "0VQk3aB4x1Ze" }],
  last_document_id: ["Ze", "0VQk3aB4x1Ze"],
  users: ["ab".repeat(11), { userId: "ada", seenAt: 1 }],
  erasures: [
    "B".repeat(22),
    {
      userId: "ada",
      startedAt: 1,
      until: "0VQk3aB4x1Z8",
      phase: "traces",
      after: "",
      actor: "crn_abcd",
      retentionDays: 7,
      counts: { sessions: 1, turns: 2, versions: 3, retrievals: 9, memories: 4, documents: 8, traces: 5, deliveries: 6, answers: 7 },
    },
  ],
  activity: ["h0VQk3aB", { requests: 3, errors: 1, changes: 2, memories: 1, searches: 1, bins: [0, 3] }],
};

test("rows and the entries of their indexes are stored in the form of the schema version", () => {
  expect(Object.keys(ROWS)).toEqual(RECORD_TABLES.map(({ name }) => name));
  const stored = (RECORD_TABLES as readonly unknown[] as readonly Table<unknown>[]).map((table) => {
    const [key, row] = ROWS[table.name]!;
    const text = table.encode(row);
    expect(table.decode(text)).toEqual(row);
    expect(table.fromExport(JSON.parse(table.toExport(text)))).toBe(text);
    const exported: unknown = JSON.parse(table.toExport(text));
    expect(rowProblem(table, key, exported)).toBeUndefined();
    // A row has every field, so that none changes unnoticed.
    const { properties = {} } = table.schema as { properties?: object };
    expect(Object.keys(Object(exported))).toEqual(expect.arrayContaining(Object.keys(properties)));
    const entries = table.indexes.map((index) => [index.name, index.entriesOf(key, row)]);
    for (const index of table.indexes) for (const entry of index.entriesOf(key, row)) expect(index.recordOf(entry)).toBe(key);
    return [table.name, key, text, entries];
  });
  const sparse = Float32Array.from({ length: DIMENSION_MAX }, (_, i) => (i % 97 === 0 || i === DIMENSION_MAX - 1 ? 0.1 : 0));
  const forms = [sparse, sparse.slice().fill(0.01, 0, 700)].map((vector) =>
    encodeVector({ vector, terms: Uint32Array.of(1, 2 ** 31) }, { memory: "0VQk3aB4x1Zv", generation: 2 }).toHex(),
  );
  const others = [...tables.PENDING_TABLES.map(({ name }) => name), ...tables.VECTOR_TABLES.map(({ name }) => name), forms];
  const sha256 = new Bun.CryptoHasher("sha256").update(JSON.stringify([stored, others])).digest("hex");
  expect({ schema: SCHEMA_VERSION, sha256 }).toEqual(FORMS);
});
