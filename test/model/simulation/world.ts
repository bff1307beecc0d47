/**
 * Cairn as its contract tells it, small: all records in this process, every operation a few lines, and nothing of the
 * product's code. What is asked of it is answered whole, as the server has to answer; only ids and secrets, which nobody
 * can foretell, are taken from what the server gave, and looked at.
 *
 * What the server keeps count of is counted here each time, and what it has indexes for is filtered here.
 *
 * @module
 */
import type { Clock } from "../../../src/lib/clock.ts";
import { Access } from "./access.ts";
import { Ids } from "./ids.ts";
import { Trail } from "./trail.ts";
import { type Caller, diff, type Fields, iso, type Json, type ListFilter, merged, page, Refusal } from "./wire.ts";

/** Query to content to score; a query without words is not there. */
export type Scores = ReadonlyMap<string, ReadonlyMap<string, number>>;

interface Session {
  id: string;
  agentId: string;
  userId: string | null;
  createdAt: number;
  updatedAt: number;
  metadata: Fields;
  ttlSeconds: number;
  expiresAt: number;
  versions: { state: Fields; createdAt: string; actor: string; source: string; reasoning?: string | undefined; restored?: number }[];
  /** As they are answered. */
  turns: Json[];
}

interface Memory {
  userId: string | null;
  embed: boolean;
  /** As it is answered. */
  shown: Json;
}

export class World {
  readonly ids: Ids;
  readonly access: Access;
  readonly trail: Trail;
  readonly #scores: Scores;
  /** Until they are deleted or swept; oldest first, like memories. */
  sessions: Session[] = [];
  memories: Memory[] = [];

  constructor(clock: Pick<Clock, "now">, scores: Scores) {
    this.ids = new Ids(clock);
    this.access = new Access(this.ids);
    this.trail = new Trail(this.ids, this.access);
    this.#scores = scores;
  }

  // Keys and settings

  addFirstKey(shown: Json, secret: string): void {
    this.#keyCreated(undefined, this.access.addKey(shown, secret).shown);
  }

  createKey(caller: Caller, body: Fields, given: Json): Json {
    const key = this.access.createKey(body, given);
    this.#keyCreated(caller, key);
    return key;
  }

  #keyCreated(caller: Caller | undefined, key: Json): void {
    const { rate_limit, expires_at } = key;
    this.trail.recordAdmin(caller, "api_key.created", { ...tracedKey(key), source: null, rate_limit, expires_at });
  }

  rollKey(caller: Caller, id: string, body: Fields, given: Json): Json {
    const after = this.access.rollKey(id, body, given);
    const before = this.access.getKey(id, undefined);
    this.trail.recordAdmin(caller, "api_key.rolled", {
      ...tracedKey(before),
      rolled_to: after.id,
      rolled_to_prefix: after.prefix,
      ends_at: before.expires_at,
      expires_at: after.expires_at,
    });
    return after;
  }

  deleteKey(caller: Caller, id: string, reason: string | undefined): Json {
    const before = this.access.keys.find((key) => key.id === id);
    const answer = this.access.deleteKey(id);
    this.trail.recordAdmin(caller, "api_key.revoked", { ...tracedKey(before?.shown), reason: reason ?? null });
    return answer;
  }

  changeSettings(caller: Caller, body: Fields, given: Json): Json {
    const before = this.access.showSettings({});
    const retentionDays = this.access.retentionDays(caller);
    const answer = this.access.changeSettings(body, given);
    const after = this.access.showSettings({});
    // A setting that is set to its default has changed: it says so itself now.
    const names = Object.keys(after).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
    const changes = Object.fromEntries(names.map((name) => [name, { from: before[name].value, to: after[name].value }]));
    if (names.length > 0) this.trail.recordAdmin(caller, "settings.updated", { changes }, retentionDays);
    return answer;
  }

  // Sessions

  live(id: string): Session {
    const session = this.sessions.find((one) => one.id === id);
    if (session === undefined || session.expiresAt <= this.ids.now) throw new Refusal(404, "session_not_found", "session_id");
    return session;
  }

  showSession(session: Session): Json {
    return {
      object: "session",
      id: session.id,
      agent_id: session.agentId,
      user_id: session.userId,
      created_at: iso(session.createdAt),
      updated_at: iso(session.updatedAt),
      state: session.versions.at(-1)?.state,
      state_version: session.versions.length - 1,
      metadata: session.metadata,
      memory_count: this.memories.filter(({ shown }) => shown.session_id === session.id).length,
      turn_count: session.turns.length,
      ttl_expires_at: iso(session.expiresAt),
    };
  }

  createSession(caller: Caller, body: Fields, given: Json): Json {
    const state = body["initial_state"] ?? {};
    const session = this.#newSession(caller, given, {
      agentId: body["agent_id"],
      userId: body["user_id"] ?? null,
      metadata: body["metadata"] ?? {},
      ttlSeconds: body["ttl_seconds"] ?? 86_400,
      state,
    });
    const details = { agent_id: session.agentId, user_id: session.userId, initial_state: state };
    return this.#changed(caller, "session.created", session, details);
  }

  forkSession(caller: Caller, id: string, body: Fields, given: Json): Json {
    const source = this.live(id);
    const version = versionOf(source, body["version"] ?? source.versions.length - 1);
    const fork = this.#newSession(caller, given, {
      ...source,
      metadata: { ...source.metadata, forked_from: id, forked_version: version },
      state: source.versions[version]?.state ?? {},
    });
    const details = { source_session_id: id, source_session: id, fork_version: version };
    return this.#changed(caller, "session.forked", fork, details);
  }

  #newSession(
    { key }: Caller,
    given: Json,
    { agentId, userId, metadata, ttlSeconds, state }: Pick<Session, "agentId" | "userId" | "metadata" | "ttlSeconds"> & { state: Fields },
  ): Session {
    const id = this.ids.take("sess", given.id);
    const now = this.ids.now;
    const versions = [{ state, createdAt: iso(now), actor: key.shown.prefix, source: "initial" }];
    const times = { createdAt: now, updatedAt: now, expiresAt: now + ttlSeconds * 1000 };
    const session: Session = { id, agentId, userId, metadata, ttlSeconds, ...times, versions, turns: [] };
    this.sessions.push(session);
    return session;
  }

  listSessions(filter: ListFilter & { agent_id?: string | undefined; user_id?: string | undefined }): Json {
    const passing = this.sessions.filter(
      ({ agentId, userId, expiresAt }) =>
        expiresAt > this.ids.now && [undefined, agentId].includes(filter.agent_id) && [undefined, userId].includes(filter.user_id),
    );
    return page(
      passing.map((session) => this.showSession(session)),
      filter,
    );
  }

  updateSession(caller: Caller, id: string, body: Fields): Json {
    const session = this.live(id);
    const before = session.metadata;
    const ttlSeconds = body["ttl_seconds"] ?? undefined;
    const end = ttlSeconds === undefined ? {} : { ttlSeconds, expiresAt: this.ids.now + ttlSeconds * 1000 };
    const metadata = merged(before, body["metadata"] ?? {});
    const metadata_diff = diff(before, metadata);
    if (isNothing(metadata_diff) && isSame({ ...session, ...end }, session)) return this.showSession(session);
    Object.assign(session, end, { metadata, updatedAt: this.#later(session) });
    const details = { metadata_diff, ttl_seconds: ttlSeconds };
    return this.#changed(caller, "session.updated", session, details);
  }

  deleteSession(caller: Caller, id: string, reason: string | undefined): Json {
    const session = this.live(id);
    const { turn_count, memory_count } = this.showSession(session);
    const details = { session_id: id, reason: reason ?? null, turn_count, memory_count };
    this.#changed(caller, "session.deleted", session, details);
    this.#removeSession(session, true);
    return { object: "session", id, deleted: true };
  }

  /** Leaves the trace of a change. @returns the session as it is now */
  #changed(caller: Caller | undefined, action: string, session: Session, details: Fields): Json {
    this.trail.record(caller, action, session, details);
    return this.showSession(session);
  }

  /** A change is never before an earlier one, even when the clock was set back. */
  #later({ updatedAt }: Session): number {
    return Math.max(updatedAt, this.ids.now);
  }

  #removeSession(session: Session, withMemories: boolean): void {
    this.sessions = this.sessions.filter((one) => one !== session);
    if (withMemories) this.memories = this.memories.filter(({ shown }) => shown.session_id !== session.id);
  }

  // States

  updateState(caller: Caller, id: string, body: Fields): Json {
    const session = this.#expecting(id, body);
    const before = session.versions.at(-1)?.state ?? {};
    const reasoning = body["reasoning"] ?? undefined;
    this.#addVersion(caller, session, { state: body["state"], source: "update", reasoning });
    const details = { reasoning, state_diff: diff(before, body["state"]), version: session.versions.length - 1 };
    return this.#changed(caller, "state.updated", session, details);
  }

  rollback(caller: Caller, id: string, body: Fields): Json {
    const session = this.#expecting(id, body);
    const from = session.versions.length - 1;
    const to = versionOf(session, body["version"]);
    const reason = body["reason"] ?? undefined;
    this.#addVersion(caller, session, { state: session.versions[to]?.state ?? {}, source: "rollback", reasoning: reason, restored: to });
    const details = { from_version: from, to_version: to, reason: reason ?? null };
    return this.#changed(caller, "state.rolled_back", session, details);
  }

  #expecting(id: string, { expected_version: expected }: Fields): Session {
    const session = this.live(id);
    if (![undefined, null, session.versions.length - 1].includes(expected)) throw new Refusal(409, "version_conflict", "expected_version");
    return session;
  }

  #addVersion({ key }: Caller, session: Session, added: Omit<Session["versions"][number], "createdAt" | "actor">): void {
    session.updatedAt = this.#later(session);
    session.versions.push({ ...added, createdAt: iso(this.ids.now), actor: key.shown.prefix });
  }

  listVersions(id: string, { limit = 20, starting_after }: { limit?: number | undefined; starting_after?: number | undefined }): Json {
    const before = Math.min(starting_after ?? Infinity, this.live(id).versions.length);
    const shown = Array.from({ length: before }, (_, version) => ({ ...this.showVersion(id, version), state: undefined }));
    const data = shown.toReversed().slice(0, limit);
    const [first, last] = [data[0], data.at(-1)].map((one: Json) => (one === undefined ? null : String(one.version)));
    return { object: "list", data, has_more: shown.length > limit, first_id: first, last_id: last };
  }

  showVersion(id: string, version: number): Json {
    const found = this.live(id).versions[version];
    if (found === undefined) throw new Refusal(404, "version_not_found", "version");
    const { state, createdAt, actor, source, reasoning, restored } = found;
    return { object: "version", version, created_at: createdAt, reasoning, actor, source, restored_from_version: restored, state };
  }

  // Turns

  addTurn(
    caller: Caller,
    session_id: string,
    { input, output, reasoning, metadata, state_before, state_after }: Fields,
    given: Json,
  ): Json {
    const session = this.live(session_id);
    const id = this.ids.take("turn", given.id);
    const turn = {
      object: "turn",
      id,
      session_id,
      turn_number: session.turns.length + 1,
      state_version: session.versions.length - 1,
      created_at: iso(this.ids.now),
      input,
      output: { ...output, type: output.type === "tool_response" ? "tool_result" : output.type },
      reasoning: reasoning ?? undefined,
      metadata: metadata ?? {},
      state_before: state_before ?? null,
      state_after: state_after ?? null,
    };
    session.turns.push(turn);
    session.updatedAt = this.#later(session);
    const details = { turn_number: turn.turn_number, input_type: input.type, output_type: turn.output.type, reasoning: turn.reasoning };
    this.trail.record(caller, "turn.added", session, details);
    return turn;
  }

  listTurns(id: string, filter: ListFilter & { order?: string | undefined }): Json {
    return page(this.live(id).turns, filter, filter.order);
  }

  getTurn(sessionId: string, id: string): Json {
    const turn = this.live(sessionId).turns.find((one) => one.id === id);
    if (turn === undefined) throw new Refusal(404, "turn_not_found", "turn_id");
    return turn;
  }

  // Memories

  addMemory(caller: Caller, body: Fields, given: Json): Json {
    const session = this.live(body["session_id"]);
    const id = this.ids.take("mem", given.id);
    const embed = body["embed"] ?? true;
    const shown = {
      object: "memory",
      id,
      session_id: session.id,
      user_id: session.userId,
      agent_id: session.agentId,
      content: body["content"],
      type: body["type"] ?? "general",
      tags: body["tags"] ?? [],
      metadata: body["metadata"] ?? {},
      external_id: null,
      source: "agent",
      importance: null,
      pinned: false,
      occurred_at: null,
      created_at: iso(this.ids.now),
      updated_at: iso(this.ids.now),
      expires_at: null,
      valid_from: null,
      valid_until: null,
      supersedes: [],
      superseded_by: null,
      superseded_at: null,
      // A vector that is made with its memory has the memory's own id.
      embedding_id: embed ? id.replace("mem_", "emb_") : undefined,
      vector_available: embed,
    };
    this.memories.push({ userId: session.userId, embed, shown });
    session.updatedAt = this.#later(session);
    const { type, tags } = shown;
    const details = { memory_id: id, content_preview: preview(shown), type, tags, embedded: embed };
    this.trail.record(caller, "memory.created", session, details);
    return shown;
  }

  memory(id: string): Memory {
    const memory = this.memories.find(({ shown }) => shown.id === id);
    if (memory === undefined) throw new Refusal(404, "memory_not_found", "memory_id");
    return memory;
  }

  updateMemory(caller: Caller, id: string, body: Fields, given: Json): Json {
    const memory = this.memory(id);
    const before = memory.shown;
    const content = body["content"] ?? before.content;
    const isChanged = content !== before.content;
    const metadata = merged(before.metadata, body["metadata"] ?? {});
    const others = { content, type: body["type"] ?? before.type, tags: body["tags"] ?? before.tags };
    if (isSame({ ...before, ...others }, before) && isNothing(diff(before.metadata, metadata))) return before;
    memory.shown = {
      ...before,
      ...others,
      metadata,
      updated_at: iso(Math.max(Date.parse(before.updated_at), this.ids.now)),
      embedding_id: isChanged && memory.embed ? this.ids.take("emb", given.embedding_id) : before.embedding_id,
    };
    const tags_changed = JSON.stringify(memory.shown.tags) !== JSON.stringify(before.tags);
    this.#recordOfMemory(caller, "memory.updated", memory, { memory_id: id, content_changed: isChanged, tags_changed });
    return memory.shown;
  }

  deleteMemory(caller: Caller, id: string, reason: string | undefined): Json {
    const memory = this.memory(id);
    this.memories = this.memories.filter((one) => one !== memory);
    const details = { memory_id: id, content_preview: preview(memory.shown), reason: reason ?? null };
    this.#recordOfMemory(caller, "memory.deleted", memory, details);
    return { object: "memory", id, deleted: true };
  }

  /** A memory's session may be gone, or past its time: then nothing happens in it any more. */
  #recordOfMemory(caller: Caller, action: string, { shown, userId }: Memory, details: Fields): void {
    const session = this.sessions.find(({ id }) => id === shown.session_id);
    if (session !== undefined && session.expiresAt > this.ids.now) session.updatedAt = this.#later(session);
    this.trail.record(caller, action, { id: shown.session_id, userId }, details);
  }

  /** Those that pass a filter; `tags` passes with any of them. */
  #passing(filter: Fields): Memory[] {
    if ((filter["session_id"] ?? undefined) !== undefined) this.live(filter["session_id"]);
    const is = (name: string, value: unknown) => [undefined, null, value].includes(filter[name]);
    const tags: string[] = filter["tags"] ?? [];
    return this.memories.filter(
      ({ userId, shown }) =>
        is("session_id", shown.session_id) &&
        is("user_id", userId) &&
        is("type", shown.type) &&
        (tags.length === 0 || tags.some((tag) => shown.tags.includes(tag))),
    );
  }

  listMemories(filter: Fields): Json {
    return page(
      this.#passing(filter).map(({ shown }) => shown),
      filter,
    );
  }

  search(body: Fields): Json {
    const { query, limit, threshold } = body;
    const found = this.#ranked(query, this.#passing(body), threshold ?? 0.7, limit ?? 10);
    const data = found.map(({ score, shown: { id, session_id, user_id, agent_id, content, type, source, tags, created_at } }) => ({
      id,
      session_id,
      user_id,
      agent_id,
      content,
      type,
      source,
      tags,
      score,
      created_at,
    }));
    return { object: "list", query, data };
  }

  /** Best first, of equal ones the newest. */
  #ranked(query: string, memories: readonly Memory[], threshold: number, limit: number): { score: number; shown: Json }[] {
    const scores = this.#scores.get(query);
    return memories
      .filter(({ embed }) => embed && scores !== undefined)
      .map(({ shown }) => ({ score: scores?.get(shown.content) ?? NaN, shown }))
      .filter(({ score }) => !(score < threshold))
      .toSorted((a, b) => b.score - a.score || (a.shown.id < b.shown.id ? 1 : -1))
      .slice(0, limit);
  }

  context(id: string, body: Fields): Json {
    const session = this.live(id);
    const query = body["query"] ?? undefined;
    const limit = body["memory_limit"] ?? 5;
    const memories = this.#passing(session.userId === null ? { session_id: id } : { user_id: session.userId });
    const found = this.#scores.has(query)
      ? this.#ranked(query, memories, 0, limit)
      : memories
          .toReversed()
          .slice(0, limit)
          .map(({ shown }) => ({ score: 0, shown }));
    const turns = session.turns.toReversed().slice(0, body["turn_limit"] ?? 10);
    return {
      state: session.versions.at(-1)?.state,
      memories: found.map(({ score, shown: { id: memory, content, type, source, created_at } }) => ({
        id: memory,
        content,
        type,
        source,
        score,
        created_at,
      })),
      recent_turns: turns.map(({ id: turn, input, output, created_at }) => ({ id: turn, input, output, created_at })),
    };
  }

  // What happens by itself

  /** Each timer's work, by the timer's name. */
  readonly tasks: Record<string, () => void> = {
    "session expiry": () => {
      const due = this.sessions.filter(({ expiresAt }) => expiresAt <= this.ids.now);
      for (const session of due.toSorted((a, b) => a.expiresAt - b.expiresAt || (a.id < b.id ? -1 : 1))) {
        const details = { ttl_seconds: session.ttlSeconds, last_activity: iso(session.updatedAt) };
        this.#changed(undefined, "session.expired", session, details);
        this.#removeSession(session, this.access.areMemoriesDeletedOnExpiry);
      }
    },
    // What these do, nobody sees.
    "session removal": () => {},
    "last use of keys": () => {},
    activity: () => {},
    "trace retention": () => this.trail.removeOld(),
    "idempotency retention": () => this.access.forgetKept(),
    "webhook outbox": () => {},
  };
}

/** What traces say of a key. */
const tracedKey = ({ id, prefix, name, scopes, tier }: Json): Fields => ({ key_id: id, kind: "key", prefix, name, scopes, tier });

const preview = ({ content }: Json) => Array.from<string>(content).slice(0, 100).join("");

/** A negative number counts back from the current version. */
function versionOf({ versions }: Session, version: number): number {
  const meant = version < 0 ? versions.length - 1 + version : version;
  if (meant < 0 || meant >= versions.length) throw new Refusal(404, "version_not_found", "version");
  return meant;
}

const isSame = (one: object, other: object) => JSON.stringify(one) === JSON.stringify(other);
/** Whether a difference is none. */
const isNothing = (difference: object) => Object.values(difference).every((part) => Object.keys(part as object).length === 0);
