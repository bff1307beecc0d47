/**
 * The mutations: faults that would cost somebody data, order, privacy or money, each with the tests that are to notice it.
 *
 * When the code under a mutation changes, the mutation follows: `test/mutations.test.ts` names those that no longer apply.
 *
 * @module
 */
import type { Mutation } from "./mutation.ts";

const STORE = "test/unit/storage/store.test.ts";
const WALK = "test/unit/storage/walk.test.ts";
const DISK_ERRORS = "test/unit/storage/disk-errors.test.ts";
const DIRECTORY_LOCK = "test/unit/storage/directory-lock.test.ts";
const IDEMPOTENCY = "test/idempotency.test.ts";
const KEYS = "test/keys.test.ts";
const SIGN_IN = "test/sign-in.test.ts";
const OWNERS = "test/owners.test.ts";
const AUTHENTICATION = "test/authentication.test.ts";
const RATE_LIMIT = "test/rate-limit.test.ts";
const HTTP = "test/http.test.ts";
const SESSIONS = "test/sessions.test.ts";
const VERSIONS = "test/versions.test.ts";
const EXPIRY = "test/expiry.test.ts";
const MEMORIES = "test/memories.test.ts";
const STREAMS = "test/events.test.ts";
const TRACES = "test/traces.test.ts";
const TURNS = "test/turns.test.ts";
const SEARCH = "test/search.test.ts";
const PROVIDERS = "test/provider-changes.test.ts";
const WEBHOOKS = "test/webhooks.test.ts";
const EVENTS = "test/webhook-events.test.ts";
const RETRIES = "test/webhook-retries.test.ts";
const TARGETS = "test/webhook-targets.test.ts";
const QUEUE = "test/unit/webhooks/queue.test.ts";
const PLACES = "test/unit/webhooks/places.test.ts";
const MCP = "test/mcp.test.ts";
const STATEBASE = "test/statebase.test.ts";
const OUTCOME = "test/unit/webhooks/outcome.test.ts";
const BACKOFF = "test/unit/webhooks/backoff.test.ts";
const ATTEMPT = "test/unit/webhooks/attempt.test.ts";
const SIGNATURE = "test/unit/webhooks/signature.test.ts";
const TARGET = "test/unit/webhooks/target.test.ts";
const INDEXER = "test/unit/vectors/indexer.test.ts";
const SNAPSHOT = "test/unit/vectors/snapshot.test.ts";
const RESIDENT_SETS = "test/unit/vectors/resident-sets.test.ts";
const FILTERED_TOP_K = "test/unit/vectors/filtered-top-k.test.ts";
const ENCODING = "test/unit/vectors/encoding.test.ts";
const VECTOR_INDEX = "test/unit/vectors/vector-index.test.ts";

export const MUTATIONS: readonly Mutation[] = [
  // Storage
  {
    breaks: "what a work that threw has written reaches the store with the next work",
    file: "src/storage/store.ts",
    find: "      commit.outcome = { thrown };\n      return [];",
    replace: "      commit.outcome = { thrown };",
    tests: [STORE],
  },
  {
    breaks: "a row is cached while a transaction that changes it is under way",
    file: "src/storage/row-cache.ts",
    find: "if (this.#uncacheable.size > 0 && this.#uncacheable.has(table + key)) return;",
    replace: "",
    tests: [STORE],
  },
  {
    breaks: "a commit leaves the cached row as it was",
    file: "src/storage/row-cache.ts",
    find: "    this.#tables.get(table)?.delete(key);",
    replace: "",
    tests: [STORE],
  },
  {
    breaks: "a table that was empty counts as empty for good",
    file: "src/storage/row-cache.ts",
    find: "    this.#isEmpty.delete(table);\n",
    replace: "",
    tests: [STORE, EXPIRY, SESSIONS],
  },
  {
    breaks: "a work that throws is answered before the transaction it saw is on disk",
    file: "src/storage/store.ts",
    find: "    let tx = new WriteBuffer(stored, moment);\n    try {",
    replace: "    let tx = new WriteBuffer(stored, moment);\n    commit.resolve(undefined);\n    try {",
    tests: [STORE],
  },
  {
    breaks: "a change is answered before it is on the disk",
    file: "src/storage/store.ts",
    find: ": { overlappingSync: false };",
    replace: ": { overlappingSync: false, noSync: true };",
    tests: ["test/process/power-cut.test.ts"],
  },
  {
    breaks: "a store of a newer version is opened",
    file: "src/storage/store.ts",
    find: "if (schema === SCHEMA_VERSION || (older && schema < SCHEMA_VERSION)) return store;",
    replace: "if (schema >= SCHEMA_VERSION || (older && schema < SCHEMA_VERSION)) return store;",
    tests: [STORE],
  },
  {
    breaks: "the files of the store can be read by others",
    file: "src/storage/store.ts",
    find: "chmodSync(join(directory, file), 0o600)",
    replace: "chmodSync(join(directory, file), 0o644)",
    tests: [STORE],
  },
  {
    breaks: "a descending span loses its first key",
    file: "src/storage/lmdb-reader.ts",
    find: "exclusiveStart: true, inclusiveEnd: true }",
    replace: "exclusiveStart: true, inclusiveEnd: false }",
    tests: [STORE, WALK],
  },
  {
    breaks: "a commit does not see what it removed itself",
    file: "src/storage/write-buffer.ts",
    find: "...stored.filter((key) => !own.has(key)), ...put]",
    replace: "...stored, ...put]",
    tests: [STORE],
  },
  {
    breaks: "a limited read inside a commit comes short behind what the commit removed",
    file: "src/storage/write-buffer.ts",
    find: "limit: limit + own.size - put.length }",
    replace: "limit }",
    tests: [STORE],
  },
  {
    breaks: "a walk through two indexes passes over ids that are in both",
    file: "src/storage/walk.ts",
    find: 'const done = (candidate: string) => (where === "at" ? candidate <= key : candidate < key);',
    replace: "const done = (candidate: string) => candidate < key;",
    tests: [WALK],
  },
  {
    breaks: "of a union of ranges only the first is walked",
    file: "src/storage/walk.ts",
    find: "if (head !== undefined && (newest === undefined || head > newest)) newest = head;",
    replace: "newest ??= head;",
    tests: [WALK],
  },
  {
    breaks: "a filter passes what meets one of its conditions",
    file: "src/storage/walk.ts",
    find: "return filter.every(({ table, prefixes }) =>",
    replace: "return filter.some(({ table, prefixes }) =>",
    tests: [WALK, INDEXER],
  },
  {
    breaks: "two processes serve from one directory",
    file: "src/storage/directory-lock.ts",
    find: '    lock.run("BEGIN EXCLUSIVE");',
    replace: "",
    tests: [DIRECTORY_LOCK],
  },
  {
    breaks: "a full disk is found out by the commit that damages something, not before",
    file: "src/storage/disk-errors.ts",
    find: "return freeBytes(directory) >= FREE_BYTES_MIN;",
    replace: "return freeBytes(directory) >= 0;",
    tests: [DISK_ERRORS, STORE],
  },
  {
    breaks: "a vector is given to the index twice",
    file: "src/vectors/vector-feed.ts",
    find: "this.#from = behind(last);",
    replace: "this.#from = last;",
    tests: ["test/unit/vectors/vector-feed.test.ts"],
  },
  {
    breaks: "a deleted memory leaves its vector",
    file: "src/storage/memory-records.ts",
    find: "  removeVector(tx, row);",
    replace: "",
    tests: [MEMORIES, INDEXER],
  },
  {
    breaks: "a changed memory is still found by its old tags",
    file: "src/storage/write-buffer.ts",
    find: "if (!entries.includes(entry)) this.#write(index, entry, undefined);",
    replace: ";",
    tests: [MEMORIES, SEARCH],
  },
  {
    breaks: "a page says that there is no more when there is",
    file: "src/storage/page.ts",
    find: "for (const record of records) if (!page.takes(record)) return page.json(true);",
    replace: "for (const record of records) if (!page.takes(record)) return page.json(false);",
    tests: [TURNS, VERSIONS],
  },

  {
    breaks: "a session is answered as it was before its last change",
    file: "src/storage/row-cache.ts",
    find: "if (cached?.row !== row) return make();",
    replace: "if (cached === undefined) return make();",
    tests: [STORE, SESSIONS],
  },

  {
    breaks: "a cache grows without bound",
    file: "src/lib/cache.ts",
    find: "    this.#generationBytesMax = bytesMax / 2;",
    replace: "    this.#generationBytesMax = Number.POSITIVE_INFINITY;",
    tests: ["test/unit/lib/cache.test.ts"],
  },

  // Ids
  {
    breaks: "ids go back when the clock does",
    file: "src/lib/ids.ts",
    find: "} else if (this.#counter + 1 < COUNTERS) {",
    replace: "} else if (((this.#lastMs = now), this.#counter + 1) < COUNTERS) {",
    tests: ["test/model/ids.test.ts", "test/clock-changes.test.ts"],
  },

  // Idempotency
  {
    breaks: "an Idempotency-Key is shared by all API keys",
    file: "src/http/idempotency.ts",
    find: 'hashKey(`${Bun.CryptoHasher.hash("sha256", presentedKey, "hex")} ${idempotencyKey}`)',
    replace: "hashKey(idempotencyKey + presentedKey.slice(0, 0))",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "another request under the same Idempotency-Key gets the first one's answer",
    file: "src/http/idempotency.ts",
    find: "if (row.fingerprint !== fingerprint) throw usedForAnother(request.idempotencyKey);",
    replace: "",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "the path is no part of what identifies a request",
    file: "src/http/idempotency.ts",
    find: ".update(`${method} ${path}\\n`)",
    replace: ".update(`${method}\\n`)",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "the body is no part of what identifies a request",
    file: "src/http/idempotency.ts",
    find: ".update(body).digest(",
    replace: ".digest(",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "two requests at once under one Idempotency-Key both make the change",
    file: "src/traces/record.ts",
    find: "    once?.claim(tx);",
    replace: "",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "an answer is kept for longer than 24 hours",
    file: "src/http/idempotency.ts",
    find: "Math.abs(reader.now - row.createdAt) >= KEPT_MS",
    replace: "row.createdAt === 0",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "the answer of a request that changed nothing is not kept",
    file: "src/http/idempotency.ts",
    find: "      if (!isSaved) {",
    replace: "      if (!isSaved && status === 0) {",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "a change is committed without its answer",
    file: "src/traces/record.ts",
    find: "    once?.save(tx, given, how);",
    replace: "",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "the secret of a new key is kept in clear for its replay",
    file: "src/http/idempotency.ts",
    find: "const body = hasSecret ?",
    replace: "const body = !hasSecret ?",
    tests: [IDEMPOTENCY],
  },
  {
    breaks: "a kept secret can be read by whoever knows the Idempotency-Key",
    file: "src/http/seal.ts",
    find: 'hkdfSync("sha256", presentedKey, idempotencyKey,',
    replace: 'hkdfSync("sha256", "", idempotencyKey,',
    tests: ["test/unit/http/seal.test.ts"],
  },

  // Keys and requests
  {
    breaks: "a key that has ended still passes",
    file: "src/keys/keys.ts",
    find: "return expiresAt !== null && expiresAt <= now;",
    replace: "return false;",
    tests: [KEYS],
  },
  {
    breaks: "a key passes at the moment of its end",
    file: "src/keys/keys.ts",
    find: "return expiresAt !== null && expiresAt <= now;",
    replace: "return expiresAt !== null && expiresAt < now;",
    tests: [KEYS],
  },
  {
    breaks: "a key without admin makes one with admin",
    file: "src/keys/keys.ts",
    find: "  refuseMoreScopes(caller, input.scopes);",
    replace: "",
    tests: [KEYS],
  },
  {
    breaks: "a key rolls one with more scopes than it has",
    file: "src/keys/keys.ts",
    find: "    refuseMoreScopes(caller, before.scopes);",
    replace: "",
    tests: [KEYS],
  },
  {
    breaks: "the overlap of a rolled key can outlast its own end",
    file: "src/keys/keys.ts",
    find: "Math.min(now + overlapMs, before.expiresAt ?? Infinity)",
    replace: "now + overlapMs",
    tests: [KEYS],
  },
  {
    breaks: "a key can be rolled twice",
    file: "src/keys/keys.ts",
    find: "if (before.rolledTo !== undefined) {",
    replace: "if (before.rolledTo === null) {",
    tests: [KEYS],
  },
  {
    breaks: "a revoked key goes on working",
    file: "src/keys/keys.ts",
    find: "  tx.remove(apiKeys, hash);\n",
    replace: "",
    tests: [KEYS],
  },
  {
    breaks: "a session key works on when the key it came from is revoked",
    file: "src/keys/keys.ts",
    find: "for (const session of sessionKeysOf(tx, row.id)) tx.remove(apiKeys, session.hash);",
    replace: "",
    tests: [SIGN_IN],
  },
  {
    breaks: "the key of a sign-in link may do all that its session may",
    file: "src/keys/keys.ts",
    find: 'return row.kind === "link" ? { ...row, scopes: [] } : row;',
    replace: "return row;",
    tests: [SIGN_IN],
  },
  {
    breaks: "a sign-in link is good twice",
    file: "src/keys/sign-in.ts",
    find: "      tx.remove(apiKeys, hash);\n      return",
    replace: "      return",
    tests: [SIGN_IN],
  },
  {
    breaks: "signing in gives a rate limit more",
    file: "src/http/pipeline.ts",
    find: "function limitsIdOf({ id, source = id }: ApiKeyRow)",
    replace: "function limitsIdOf({ id: source }: ApiKeyRow)",
    tests: [SIGN_IN],
  },
  {
    breaks: "every key may do everything",
    file: "src/http/operation.ts",
    find: "if (hasAccess(scopes, scope)) return;",
    replace: "if (hasAccess([...scopes, scope], scope)) return;",
    tests: [AUTHENTICATION],
  },
  {
    breaks: "an operation that is called without HTTP needs no scope",
    file: "src/http/operation.ts",
    find: "this.authorize(caller.scopes);",
    replace: "",
    tests: ["test/calls.test.ts"],
  },
  {
    breaks: "an operation that is called without HTTP forgets its idempotency key",
    file: "src/http/operation.ts",
    find: "const once = this.isIdempotent ? retry : undefined;",
    replace: "const once = this.isIdempotent ? undefined : retry;",
    tests: ["test/calls.test.ts"],
  },
  {
    breaks: "a change needs no more than a key that reads",
    file: "src/http/endpoint.ts",
    find: 'scope: groupScope ?? (method === "GET" ? "read" : "write"),',
    replace: 'scope: groupScope ?? "read",',
    tests: [AUTHENTICATION],
  },
  {
    breaks: "a field that a schema does not know reaches its operation",
    file: "src/http/validate.ts",
    find: "    const fields: Record<string, unknown> = {};",
    replace: "    const fields: Record<string, unknown> = { ...input };",
    tests: ["test/unit/http/validate.test.ts"],
  },
  {
    breaks: "write implies admin",
    file: "src/lib/scopes.ts",
    find: 'return scopes.includes(scope) || scopes.includes("admin");',
    replace: 'return scopes.includes(scope) || scopes.includes("write");',
    tests: [AUTHENTICATION, KEYS],
  },
  {
    breaks: "a key that is revoked while its body arrives still passes",
    file: "src/http/pipeline.ts",
    find: "if (this.#keyOf(request) === undefined) throw notAuthenticated(KEY_NOT_VALID);",
    replace: "",
    tests: [AUTHENTICATION, KEYS, "test/sockets.test.ts"],
  },
  {
    breaks: "a bucket gives a token that it does not have",
    file: "src/http/bucket.ts",
    find: "const allowed = bucket.parts >= count * PARTS_PER_TOKEN;",
    replace: "const allowed = bucket.parts >= (count - 1) * PARTS_PER_TOKEN && bucket.parts >= 0;",
    tests: [RATE_LIMIT],
  },
  {
    breaks: "a bucket fills beyond its burst",
    file: "src/http/bucket.ts",
    find: "Math.min(full, bucket.parts + (now - bucket.at) * perMinute)",
    replace: "bucket.parts + (now - bucket.at) * perMinute",
    tests: [RATE_LIMIT, "test/unit/http/bucket.test.ts"],
  },
  {
    breaks: "all keys share one bucket",
    file: "src/http/rate-limit.ts",
    find: "return this.#keys.take(keyId, rate,",
    replace: 'return this.#keys.take("", rate,',
    tests: [RATE_LIMIT],
  },
  {
    breaks: "a body may be larger than the limit when it does not say its length",
    file: "src/http/body.ts",
    find: "    if (needed > maxBytes) throw tooLarge(maxBytes);",
    replace: "",
    tests: ["test/unit/http/body.test.ts", HTTP],
  },
  {
    breaks: "an answer of an error shows what went wrong inside",
    file: "src/http/errors.ts",
    find: 'new ApiError("internal_error", "Something went wrong on our side; the operator\'s log has the request id.", { cause: thrown })',
    replace: 'new ApiError("internal_error", String(thrown), { cause: thrown })',
    tests: [HTTP],
  },

  // Sessions and what belongs to them
  {
    breaks: "an expired session is there until the task has come by",
    file: "src/sessions/live-session.ts",
    find: "if (row !== undefined && isLive(reader, row)) return { id, key, row };",
    replace: "if (row !== undefined) return { id, key, row };",
    tests: [EXPIRY],
  },
  {
    breaks: "a session lives a millisecond too long",
    file: "src/sessions/live-session.ts",
    find: "return expiresAt > now;",
    replace: "return expiresAt >= now;",
    tests: [EXPIRY],
  },
  {
    breaks: "a session that got more time expires at its old time",
    file: "src/sessions/expiry.ts",
    find: "const row = rowOfEntry(tx, sessions, byExpiry, expiryKey);",
    replace: "const row = tx.get(sessions, key);",
    tests: [EXPIRY],
  },
  {
    breaks: "a session's new time to live is not what expiry goes by",
    file: "src/storage/write-buffer.ts",
    find: 'if (!old.includes(entry)) this.#write(index, entry, "");',
    replace: ";",
    tests: [EXPIRY, SESSIONS],
  },
  {
    breaks: "memories of a session that is being removed are found",
    file: "src/sessions/removal.ts",
    find: "return reader.get(removals, bare(session))?.memories === true;",
    replace: "return false;",
    tests: [SESSIONS, MEMORIES],
  },
  {
    breaks: "expected_version is not looked at",
    file: "src/sessions/versions.ts",
    find: "if (expected !== undefined && expected !== row.version) {",
    replace: "if (expected !== undefined && expected > row.version) {",
    tests: [VERSIONS],
  },
  {
    breaks: "a diff is against another state than the one that is replaced",
    file: "src/sessions/versions.ts",
    find: "return JSON.parse(readState(reader, key, row.version)) as JsonObject;",
    replace: "return JSON.parse(readState(reader, key, Math.max(0, row.version - 1))) as JsonObject;",
    tests: [VERSIONS],
  },
  {
    breaks: "a session that has expired keeps its external id until it is swept",
    file: "src/sessions/sessions.ts",
    find: "if (row !== undefined && isLive(reader, row)) return { id: withPrefix",
    replace: "if (row !== undefined) return { id: withPrefix",
    tests: [SESSIONS],
  },
  {
    breaks: "who names a user gets the session of another one by its external id",
    file: "src/sessions/sessions.ts",
    find: 'if (ifExists === "return" && (userId === null || userId === row.userId))',
    replace: 'if (ifExists === "return")',
    tests: [SESSIONS],
  },
  {
    breaks: "two requests at once create two sessions of one external id",
    file: "src/sessions/sessions.ts",
    find: "if (other !== undefined) return other;",
    replace: "",
    tests: [SESSIONS],
  },
  {
    breaks: "a bound key reads a record of others by its id",
    file: "src/storage/owner.ts",
    find: "return !isBound(owner) || matches(reader, ownedPostings(owner, index), id);",
    replace: "return reader.now > 0 || matches(reader, ownedPostings(owner, index), id);",
    tests: [OWNERS],
  },
  {
    breaks: "a key that is bound to a user and an agent sees what either has",
    file: "src/storage/owner.ts",
    find: "if (agentId !== undefined) postings.push(posting(byAgent, hashKey(agentId)));",
    replace: "else if (agentId !== undefined) postings.push(posting(byAgent, hashKey(agentId)));",
    tests: [OWNERS],
  },
  {
    breaks: "the context of a bound key shows memories of other agents of its user",
    file: "src/context/context.ts",
    find: "ownedPostings({ userId: row.userId, agentId }, index)",
    replace: "ownedPostings({ userId: row.userId, agentId: agentId && undefined }, index)",
    tests: [OWNERS],
  },
  {
    breaks: "a bound key learns that somebody else has an external id",
    file: "src/sessions/sessions.ts",
    find: "[posting(byExternalId, externalIdKey(externalId, owner.userId, owner.agentId))]",
    replace: "[posting(byExternalId, externalIdKey(externalId, undefined, undefined))]",
    tests: [OWNERS],
  },
  {
    breaks: "a bound key creates sessions of another user",
    file: "src/storage/owner.ts",
    find: "if (narrow !== undefined) return narrow;",
    replace: "if (narrow !== undefined || owner.userId !== undefined) return named;",
    tests: [OWNERS],
  },
  {
    breaks: "the cursor of a page that looked at too much names a record of others",
    file: "src/storage/list.ts",
    find: 'return id.slice(0, -HOME_WIDTH) + "z".repeat(HOME_WIDTH);',
    replace: "return id.padEnd(HOME_WIDTH);",
    tests: [OWNERS],
  },
  {
    breaks: "an admin key is bound, and makes others that are not",
    file: "src/keys/keys.ts",
    find: 'if (!scopes.includes("admin") || owner === undefined || !isBound(owner)) return;',
    replace: 'if (scopes.includes("read") || owner === undefined || !isBound(owner)) return;',
    tests: [OWNERS],
  },
  {
    breaks: "a state grows for ever, a body at a time",
    file: "src/sessions/versions.ts",
    find: "if (bytes > bytesMax && bytes > Buffer.byteLength(before)) {",
    replace: "if (bytes > bytesMax * bytesMax && bytes > Buffer.byteLength(before)) {",
    tests: [VERSIONS],
  },
  {
    breaks: "a negative version counts from 0",
    file: "src/sessions/versions.ts",
    find: "const resolved = version < 0 ? row.version + version : version;",
    replace: "const resolved = Math.abs(version);",
    tests: [VERSIONS],
  },
  {
    breaks: "a key that was removed from the state is in no diff",
    file: "src/sessions/diff.ts",
    find: "if (!Object.hasOwn(after, key)) removed.push([key, from]);",
    replace: "",
    tests: ["test/model/diff.test.ts", VERSIONS],
  },
  {
    breaks: "a turn of another session is found",
    file: "src/turns/turns.ts",
    find: "reader.get(turns, turnKey(session.key, bare(turnId)))",
    replace: "reader.rows(turns, { from: '', to: '~' }).find(({ key }) => key.endsWith(bare(turnId)))?.row",
    tests: [TURNS],
  },
  {
    breaks: "the memory counter of a session does not follow a deletion",
    file: "src/memories/memories.ts",
    find: "touchSession(tx, memory.row.sessionId, -1);",
    replace: "touchSession(tx, memory.row.sessionId, 0);",
    tests: [MEMORIES, "test/model/counters.test.ts"],
  },
  {
    breaks: "a memory is stored under a session that expired while its vector was made",
    file: "src/memories/memories.ts",
    find: "    const session = liveSession(tx, caller.owner, input.sessionId);",
    replace:
      "    const session = liveSession(Object.assign(Object.create(tx), { now: 0, get: tx.get.bind(tx) }), caller.owner, input.sessionId);",
    tests: [EXPIRY, MEMORIES],
  },
  {
    breaks: "traces are kept for ever",
    file: "src/traces/record.ts",
    find: "expiresAt: tx.now + caller.retentionDays * DAY_MS,",
    replace: "expiresAt: tx.now + 36_500 * DAY_MS,",
    tests: [TRACES],
  },
  {
    breaks: "two actions have their traces under one code",
    file: "src/traces/events.ts",
    find: '"session.updated": { code: "u"',
    replace: '"session.updated": { code: "c"',
    tests: [TRACES],
  },

  {
    breaks: "traces of keys and settings are shown to every key",
    file: "src/traces/traces.ts",
    find: "action !== undefined && !isAdminAction(action)));",
    replace: "action !== undefined));",
    tests: ["test/admin-traces.test.ts"],
  },

  // Search and vectors
  {
    breaks: "a search judges a memory by what it was before it changed",
    file: "src/memories/search.ts",
    find: 'if (row.embedding?.id !== withPrefix("emb", id) && !reader.has(vectors, id)) return undefined;',
    replace: "",
    tests: [SEARCH],
  },
  {
    breaks: "vectors of two providers are compared",
    file: "src/vectors/candidates.ts",
    find: "if (storedGeneration(bytes) !== this.#generation) return undefined;",
    replace: "",
    tests: ["test/unit/vectors/candidates.test.ts"],
  },
  {
    breaks: "a search answers with what another provider's vectors found",
    file: "src/memories/search.ts",
    find: "const isSame = deps.embeddings.active.generation === active.generation;",
    replace: "const isSame = true;",
    tests: [PROVIDERS],
  },
  {
    breaks: "the index does not see what was committed since its last look",
    file: "src/vectors/indexer.ts",
    find: "  catchUp(): void {\n    this.#store.refresh();\n",
    replace: "  catchUp(): void {\n",
    tests: [INDEXER],
  },
  {
    breaks: "a vector that is in no graph yet is not found",
    file: "src/vectors/indexer.ts",
    find: "    found.push(...pending.filter(({ memory }) => matches(this.#store.latest, filter, memory)));",
    replace: "",
    tests: [INDEXER],
  },
  {
    breaks: "a deleted vector stays in the int8 index",
    file: "src/vectors/indexer.ts",
    find: "  #forget(id: BareId): void {\n    this.#int8.remove(id);",
    replace: "  #forget(id: BareId): void {",
    tests: [INDEXER],
  },
  {
    breaks: "points of a snapshot that are not of the store count as indexed",
    file: "src/vectors/indexer.ts",
    find: "for (const id of this.#hnsw.ids) if (id !== undefined && !stored.has(id)) this.#forget(id);",
    replace: "",
    tests: [SNAPSHOT],
  },
  {
    breaks: "a snapshot of another provider's vectors is gone on from",
    file: "src/vectors/snapshot.ts",
    find: "if (verified.generation !== generation)",
    replace: "if (verified.generation > generation)",
    tests: [SNAPSHOT],
  },
  {
    breaks: "a damaged snapshot is loaded",
    file: "src/vectors/snapshot.ts",
    find: "if (found.bytes !== manifest.bytes || found.sha256 !== manifest.sha256)",
    replace: "if (found.bytes !== manifest.bytes)",
    tests: [SNAPSHOT],
  },
  {
    breaks: "a deleted memory is still compared in a session that is kept in memory",
    file: "src/vectors/resident-sets.ts",
    find: "      else this.#deleted.push(id);",
    replace: "",
    tests: [RESIDENT_SETS],
  },
  {
    breaks: "what a transaction has removed is gone before the transaction is",
    file: "src/vectors/resident-sets.ts",
    find: "if (reader.has(vectors, id) !== isPut) continue;",
    replace: "",
    tests: [RESIDENT_SETS],
  },
  {
    breaks: "a new memory is missing in a session that is kept in memory",
    file: "src/vectors/resident-sets.ts",
    find: "if (this.#entries.size > 0) for (const id of added) this.#addToAll(id);",
    replace: "",
    tests: [RESIDENT_SETS],
  },
  {
    breaks: "of equal vectors the newest are not looked at",
    file: "src/vectors/filtered-top-k.ts",
    find: "if (!isTied || asked === max) return found;",
    replace: "return found;",
    tests: [FILTERED_TOP_K],
  },
  {
    breaks: "a filter that few pass is given up too early",
    file: "src/vectors/filtered-top-k.ts",
    find: "asked = Math.min(max, 2 * asked);",
    replace: "return undefined;",
    tests: [FILTERED_TOP_K],
  },
  {
    breaks: "a vector comes out of the store with its head and tail changed round",
    file: "src/vectors/encoding.ts",
    find: "  all.set(numbers, place);",
    replace: "  all.set(numbers);",
    tests: [ENCODING],
  },
  {
    breaks: "a worker that failed is never replaced",
    file: "src/vectors/vector-index.ts",
    find: "    void connection.ended.then((reason) => {\n      this.#connection = undefined;",
    replace: "    void connection.ended.then((reason) => {",
    tests: [VECTOR_INDEX],
  },

  // Webhooks
  {
    breaks: "two events of a session are delivered at once",
    file: "src/storage/tables.ts",
    find: "sessionId === null || unordered === true ? key :",
    replace: "sessionId === null || unordered !== true ? key :",
    tests: [QUEUE],
  },
  {
    breaks: "the next event of a session is never due",
    file: "src/webhooks/queue.ts",
    find: "  for (const line of lines) makeFirstDue(tx, line);\n}\n\n/** Removes deliveries",
    replace: "}\n\n/** Removes deliveries",
    tests: [QUEUE],
  },
  {
    breaks: "a delivery is attempted again while it is in flight",
    file: "src/webhooks/queue.ts",
    find: "      if (isInFlight(delivery)) continue;",
    replace: "",
    tests: [QUEUE],
  },
  {
    breaks: "a retry is made before its time",
    file: "src/webhooks/queue.ts",
    find: 'if (at > now) return { kind: "later", at };',
    replace: "",
    tests: [QUEUE],
  },
  {
    breaks: "a delivery that was put off while the clock was ahead waits for that time",
    file: "src/webhooks/retention.ts",
    find: "  if (isAhead(row, now)) {",
    replace: "  if (row.createdAt === 0) {",
    tests: [RETRIES],
  },
  {
    breaks: "a pause that was set while the clock was ahead holds until that time",
    file: "src/webhooks/worker.ts",
    find: "pausedUntil > now && pausedUntil <= now + RETRY_AFTER_MS_MAX",
    replace: "pausedUntil > now",
    tests: [RETRIES],
  },
  {
    breaks: "one event that the receiver does not take blocks its session for hours",
    file: "src/webhooks/outcome.ts",
    find: "...(isNear ? {} : { unordered: true })",
    replace: "",
    tests: [RETRIES],
  },
  {
    breaks: "a failed event is overtaken at once",
    file: "src/webhooks/outcome.ts",
    find: "...(isNear ? {} : { unordered: true })",
    replace: "unordered: true",
    tests: [RETRIES],
  },
  {
    breaks: "Retry-After holds for one delivery alone",
    file: "src/webhooks/worker.ts",
    find: "if (isPaused) return",
    replace: "if (isPaused && now === 0) return",
    tests: [RETRIES],
  },
  {
    breaks: "a redirect counts as delivered",
    file: "src/webhooks/outcome.ts",
    find: "status >= 200 && status <= 299",
    replace: "status >= 200 && status <= 399",
    tests: [OUTCOME],
  },
  {
    breaks: "410 does not disable a webhook",
    file: "src/webhooks/outcome.ts",
    find: "    status === GONE\n      ?",
    replace: "    status === 0\n      ?",
    tests: [OUTCOME, RETRIES],
  },
  {
    breaks: "a test event is tried again and again",
    file: "src/webhooks/outcome.ts",
    find: "row.once === true || ",
    replace: "",
    tests: [OUTCOME, WEBHOOKS],
  },
  {
    breaks: "a receiver can ask for a retry sooner than the schedule",
    file: "src/webhooks/backoff.ts",
    find: "Math.max(Math.round(wait * (1 + JITTER * random)), retryAfterMs ?? 0)",
    replace: "(retryAfterMs ?? Math.round(wait * (1 + JITTER * random)))",
    tests: [BACKOFF],
  },
  {
    breaks: "while results cannot be saved events are sent again and again",
    file: "src/webhooks/worker.ts",
    find: "if (this.#unrecorded.length > 0 || this.#stop.signal.aborted) return IDLE_MS;",
    replace: "if (this.#stop.signal.aborted) return IDLE_MS;",
    tests: [RETRIES],
  },
  {
    breaks: "a result that the store refused is forgotten",
    file: "src/webhooks/worker.ts",
    find: "() => this.#unrecorded.push([queued, attempt])",
    replace: "() => undefined",
    tests: [RETRIES],
  },
  {
    breaks: "a webhook has any number of attempts in flight",
    file: "src/webhooks/places.ts",
    find: "if (taken >= LIMITS.webhookSessionsAtOnceMax) return false;",
    replace: "",
    tests: [PLACES],
  },
  {
    breaks: "webhooks that fail take the places of the others",
    file: "src/webhooks/places.ts",
    find: "(!isFailing || this.#poolTaken((other) => other.isFailing) < POOL_OF_FAILING_MAX)",
    replace: "true",
    tests: [PLACES],
  },
  {
    breaks: "webhooks that are slow leave no place to one that has nothing in flight",
    file: "src/webhooks/places.ts",
    find: "    if (taken === 0) return true;",
    replace: "",
    tests: [PLACES],
  },
  {
    breaks: "what a private service answers is shown",
    file: "src/webhooks/attempt.ts",
    find: 'addressKind(address) === "public" ?',
    replace: 'address !== "" ?',
    tests: [TARGETS],
  },
  {
    breaks: "a name of which one address is private is dialled",
    file: "src/lib/outbound.ts",
    find: "const forbidden = addresses.find((",
    replace: "const forbidden = addresses.slice(0, 1).find((",
    tests: [TARGET],
  },
  {
    breaks: "private addresses are allowed where loopback is",
    file: "src/webhooks/target.ts",
    find: "    private: rules.private,",
    replace: "    private: rules.private || rules.loopback,",
    tests: [TARGET],
  },
  {
    breaks: "an IPv4 address wrapped in IPv6 passes as public",
    file: "src/lib/addresses.ts",
    find: "if (embedded !== undefined) return",
    replace: 'if (embedded === "") return',
    tests: [TARGET],
  },
  {
    breaks: "an answer without end is read to its end",
    file: "src/lib/outbound.ts",
    find: '        if (bytes > max) end("limit");',
    replace: "",
    tests: [ATTEMPT],
  },
  {
    breaks: "a cloud's metadata service is called where every address is allowed",
    file: "src/lib/outbound.ts",
    find: 'addressKind(address) === "metadata" || ',
    replace: "",
    tests: ["test/unit/embeddings/remote/openai.test.ts"],
  },
  {
    breaks: "a task that is woken while it runs waits for its next time",
    file: "src/tasks/driver.ts",
    find: "running.isWoken ? YIELD_MS : ms",
    replace: "ms",
    tests: ["test/unit/tasks/driver.test.ts"],
  },
  {
    breaks: "a delivery that another receiver may have got is sent to the next address",
    file: "src/lib/outbound.ts",
    find: 'if (reply.kind !== "failed" || !NOBODY_THERE.has(reply.code) || signal.aborted) break;',
    replace: "if (signal.aborted) break;",
    tests: [ATTEMPT],
  },
  {
    breaks: "the Standard Webhooks signature leaves out the time",
    file: "src/webhooks/signature.ts",
    find: "`${id}.${timestampSeconds}.${body}`",
    replace: "`${id}.${body}`",
    tests: [SIGNATURE],
  },
  {
    breaks: "a secret signs on after the end of its overlap",
    file: "src/webhooks/attempt.ts",
    find: ".filter(({ until }) => until > at)",
    replace: "",
    tests: [WEBHOOKS],
  },
  {
    breaks: "a change is queued for webhooks though none wants it",
    file: "src/traces/record.ts",
    find: "  if (types.length === 0) return;",
    replace: "",
    tests: [EVENTS],
  },
  {
    breaks: "an event becomes deliveries twice",
    file: "src/webhooks/outbox.ts",
    find: "      tx.remove(outbox, key);\n",
    replace: "",
    tests: [EVENTS],
  },
  {
    breaks: "the secret of a webhook is shown by GET",
    file: "src/webhooks/webhooks.ts",
    find: "    secret,\n    created_at: toIso(row.createdAt),",
    replace: "    secret: row.secret,\n    created_at: toIso(row.createdAt),",
    tests: [WEBHOOKS],
  },
  {
    breaks: "pages of any origin may use MCP",
    file: "src/app.ts",
    find: "      refuseForeignOrigin(request.headers, corsOrigins);\n      return pipeline.answerCalls",
    replace: "      return pipeline.answerCalls",
    tests: [MCP],
  },
  {
    breaks: "a key that only reads is shown every tool",
    file: "src/mcp/server.ts",
    find: "(options.mayWrite || hints.readOnlyHint) && ",
    replace: "",
    tests: [MCP],
  },
  {
    breaks: "two agents share a session because of how they are called",
    file: "src/mcp/use.ts",
    find: '.replaceAll(":", "%3A")',
    replace: "",
    tests: [MCP],
  },
  {
    breaks: "a change that is sent again after a takeover is made twice",
    file: "src/app.ts",
    find: "(isLocal(row) ? row.id : presented)",
    replace: "presented",
    tests: ["test/process/mcp.test.ts"],
  },
  {
    breaks: "everybody on the machine can read the key of local programs",
    file: "src/cli/announcement.ts",
    find: "mode: 0o600",
    replace: "mode: 0o644",
    tests: ["test/process/mcp.test.ts"],
  },
  {
    breaks: "a memory that is sent again with its session made is never answered",
    file: "src/compat/statebase.ts",
    find: "createSession(deps, caller, session)",
    replace: "createSession(deps, asking, session)",
    tests: [STATEBASE],
  },
  {
    breaks: "memories of two users are kept in one session",
    file: "src/compat/statebase.ts",
    find: "`${GLOBAL}:${userId}`",
    replace: "GLOBAL",
    tests: [STATEBASE],
  },
  // Streams of events
  {
    breaks: "a stream of events goes on with a key that was revoked",
    file: "src/traces/feed.ts",
    find: "if (this.#watcher.isAllowed()) return true;",
    replace: "if (this.#checkedAt >= 0) return true;",
    tests: [STREAMS],
  },
  {
    breaks: "a stream of events shows changes of keys to a key that may only read",
    file: "src/traces/feed.ts",
    find: "(reader.isAdmin || !isAdminAction(action))",
    replace: "(reader.isAdmin || action !== undefined)",
    tests: [STREAMS],
  },
  {
    breaks: "events are buffered for a reader that takes nothing",
    file: "src/traces/feed.ts",
    find: '    if (text === "") return;\n    if (this.#isUnread()) this.#drop();\n    else this.#enqueue(text);',
    replace: '    if (text !== "") this.#enqueue(text);',
    tests: [STREAMS],
  },
  {
    breaks: "spans hold the ids that callers send, whatever these are",
    file: "src/http/pipeline.ts",
    find: 'typeof sessionId === "string" && isId("sess", sessionId)',
    replace: 'typeof sessionId === "string"',
    tests: ["test/process/telemetry.test.ts"],
  },
];
