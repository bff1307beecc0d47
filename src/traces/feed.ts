/**
 * Traces as they happen, for those who watch: server-sent events.
 *
 * ```
 * Last-Event-ID ──▶ catching up: the next traces are read from the store when the reader has taken the last ones
 *                          │ nothing left
 *                          ▼
 *                        live: what a commit has written is sent at once
 * ```
 * Nothing waits in memory for a reader: while catching up the store holds what is still to come, and live a reader that has not
 * taken what it was sent is dropped. It asks again with the id of the last trace that it got, and misses none.
 *
 * Where several servers share a store, what the others commit is looked for twice a second while anybody watches. It can come after a
 * trace with a higher id: so who continues is given again what is only a few seconds older than the last trace that it got, and while the
 * last seconds are read the keys of what is committed are kept, and sent before the stream is live.
 *
 * @module
 */
import { nextTurn, type Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, bareIdTime, firstBareIdAt, isId, withPrefix, type BareId, type SessionId, type TraceId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import { AFTER_ALL, behind, hashKey } from "../storage/keys.ts";
import { isOwned, narrowed, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { Task } from "../tasks/task.ts";
import { traces, type Index, type TraceRow } from "../storage/tables.ts";
import { actionCode, actionOf, isAdminAction, TRACE_ACTIONS, type TraceAction } from "./events.ts";
import { shownTrace, traceJson, type FoundTrace, type TraceFilter, type TraceReader } from "./traces.ts";

/** A comment is sent as often, so that no proxy takes the connection for a dead one; Bun closes one after 60 s of silence. */
const COMMENT_MS = LIMITS.eventCommentSeconds * 1000;
/** What a reader may have been sent and not taken yet. */
const UNREAD_BYTES_MAX = 256 * 1024;
/** Whether the key is still valid is looked at as often, and whenever this process changes a key. */
const KEY_CHECK_MS = 1_000;
/** Traces that are read at once while catching up. */
const TRACES_AT_ONCE = 100;
const RETRY_MS = 2_000;
/** When more traces than that are committed while the last seconds are read, these are read again. */
const KEPT_MAX = 10_000;
/** How often traces of other servers are looked for. */
const FOLLOW_MS = 500;

type EventFilter = Pick<TraceFilter, "sessionId" | "userId" | "action">;

export interface Watcher {
  /** Who may have only a few streams. */
  readonly limitsId: string;
  readonly reader: TraceReader;
  readonly filter: EventFilter;
  /** The header as it came; null for who wants only what is new. */
  readonly lastEventId: string | null;
  /** Whether the key is still valid. */
  isAllowed(): boolean | Promise<boolean>;
}

/** Finds what other servers commit. */
export interface Follower {
  /** Those among the traces of a commit of this server that it has not found, and will not find. */
  unseen(keys: readonly string[]): string[];
  /** What was committed since the last look, in the order of ids. @param since - Unix milliseconds; nothing earlier is looked for */
  look(since: number): Promise<string[]>;
  /** Nobody watches any more. */
  forget(): void;
  /** How much later than with lower ids a trace may be committed. */
  readonly lateMs: number;
}

export class TraceFeed {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #follower: Follower | undefined;
  /** `clock.now()` when the first of the streams that are open began. */
  #watchedSince = 0;
  readonly #streams = new Set<EventStream>();
  readonly #ofOwner = new Map<string, number>();
  /** Keys of traces that are committed and not sent yet. */
  #committed: string[] = [];
  #cancelComments: (() => void) | undefined;
  #isClosed = false;

  /** @param follower - where other servers commit, too */
  constructor(store: RecordStore, clock: Clock, follower?: Follower) {
    this.#store = store;
    this.#clock = clock;
    this.#follower = follower;
  }

  /** Follows other servers while there are streams. */
  followTask(): Task {
    return {
      name: "traces of other servers",
      run: async () => {
        if (this.#streams.size === 0) this.#follower?.forget();
        else this.#publish((await this.#follower?.look(this.#watchedSince)) ?? []);
        return FOLLOW_MS;
      },
    };
  }

  /** To be called after a commit, with the keys of its traces in the order of their ids. */
  published(keys: readonly string[]): void {
    if (this.#streams.size > 0) this.#publish(this.#follower?.unseen(keys) ?? keys);
  }

  #publish(keys: readonly string[]): void {
    if (keys.length === 0) return;
    // What is committed until then is sent together.
    if (this.#committed.length === 0) void nextTurn().then(async () => this.#send());
    this.#committed.push(...keys);
  }

  /**
   * Begins a stream; it ends with its reader, with its key, and with the server.
   *
   * @throws {ApiError} `invalid_request` for a Last-Event-ID that is none, `rate_limit_exceeded` and `service_unavailable` when its
   * owner, or all together, have as many streams as there may be
   */
  open(watcher: Watcher): ReadableStream<Uint8Array> {
    const { lastEventId, limitsId } = watcher;
    if (lastEventId !== null && !isId("trace", lastEventId)) {
      throw new ApiError("invalid_request", "Last-Event-ID must be the id of an event: trace_ and 12 characters.", {
        param: "Last-Event-ID",
      });
    }
    const ofOwner = this.#ofOwner.get(limitsId) ?? 0;
    if (ofOwner >= LIMITS.eventStreamsOfKeyMax) {
      throw new ApiError("rate_limit_exceeded", `This key has ${LIMITS.eventStreamsOfKeyMax} streams of events already. End one first.`, {
        retryAfterSeconds: 1,
      });
    }
    if (this.#isClosed || this.#streams.size >= LIMITS.eventStreamsMax) {
      throw new ApiError("service_unavailable", "There are too many streams of events. Try again later.", { retryAfterSeconds: 1 });
    }
    const { lateMs = 0 } = this.#follower ?? {};
    const stream = new EventStream(this.#store, this.#clock, watcher, lateMs, () => this.#removed(stream, limitsId));
    if (this.#streams.size === 0) this.#watchedSince = this.#clock.now();
    this.#streams.add(stream);
    this.#ofOwner.set(limitsId, ofOwner + 1);
    if (this.#streams.size === 1) this.#commentLater();
    return stream.readable;
  }

  /** Ends all streams, and begins none any more. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.end();
  }

  #removed(stream: EventStream, limitsId: string): void {
    if (!this.#streams.delete(stream)) return;
    const left = (this.#ofOwner.get(limitsId) ?? 1) - 1;
    if (left === 0) this.#ofOwner.delete(limitsId);
    else this.#ofOwner.set(limitsId, left);
    if (this.#streams.size === 0) this.#cancelComments?.();
  }

  #commentLater(): void {
    this.#cancelComments = this.#clock.timer(COMMENT_MS, () => {
      for (const stream of this.#streams) void stream.comment();
      if (this.#streams.size > 0) this.#commentLater();
    });
  }

  /** One batch after the other: what is committed meanwhile is the next one. */
  async #send(): Promise<void> {
    while (this.#committed.length > 0) {
      const keys = this.#committed.slice();
      const changesKeys = keys.some((key) => actionOf(key)?.startsWith("api_key.") === true);
      const streams = Array.from(this.#streams);
      try {
        const events = await this.#store.read((reader) => eachFetched(keys, (key) => eventAt(reader, key)));
        const found = events.filter((event) => event !== undefined);
        await Promise.all(streams.map((stream) => stream.send(found, changesKeys)));
      } catch {
        // The store cannot be read: a reader that misses these asks again.
        for (const stream of streams) stream.drop();
      }
      this.#committed = this.#committed.slice(keys.length);
    }
  }
}

/** A trace, and its event once that is needed. */
class TraceEvent {
  readonly found: FoundTrace;
  #text: string | undefined;

  constructor(found: FoundTrace) {
    this.found = found;
  }

  get id(): BareId {
    return this.found.key.slice(1);
  }

  get text(): string {
    return (this.#text ??= `id: ${withPrefix("trace", this.id)}\nevent: trace\ndata: ${traceJson(this.found)}\n\n`);
  }
}

/** A row that cannot be read keeps no other from being sent. */
function eventAt(reader: Reader, key: string): TraceEvent | undefined {
  const row = readable(() => reader.get(traces, key));
  return row === undefined ? undefined : new TraceEvent(shownTrace(reader, { key, row }));
}

class EventStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #watcher: Watcher;
  readonly #onEnd: () => void;
  readonly #actions: readonly TraceAction[];
  /** Whose traces it has; undefined where the filter names somebody else than the key's owner. */
  readonly #owner: Owner | undefined;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Everything up to this was sent, or is not for this reader; undefined for who wants only what is new. */
  #cursor: BareId | undefined;
  #isLive: boolean;
  /** How much later than with lower ids a trace may be committed: 0 where this server alone commits. */
  readonly #lateMs: number;
  /** What was sent lately, of which the store or another server's commit may tell once more. */
  readonly #sentLately = new Set<BareId>();
  /** While traces are read before which others may still be committed: what is newer than this may be read again, … */
  #from: BareId | undefined;
  /** … and the keys of what was committed since, in whatever order; undefined when that was too much. */
  #kept: string[] | undefined;
  /** Whether that is all that is left to be sent. */
  #hasRead = false;
  /** How often `send` was called. */
  #batches = 0;
  #hasEnded = false;
  #checkedAt: number;

  constructor(store: RecordStore, clock: Clock, watcher: Watcher, lateMs: number, onEnd: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#watcher = watcher;
    this.#onEnd = onEnd;
    const { lastEventId, reader, filter } = watcher;
    const isWanted = (action: TraceAction) => (filter.action ?? action) === action && (reader.isAdmin || !isAdminAction(action));
    this.#actions = TRACE_ACTIONS.filter(isWanted);
    this.#owner = narrowed(reader.owner, { userId: filter.userId });
    this.#lateMs = lateMs;
    this.#cursor = lastEventId === null ? undefined : bare(lastEventId as TraceId);
    if (this.#cursor !== undefined && lateMs > 0) {
      this.#sentLately.add(this.#cursor);
      this.#cursor = firstBareIdAt(Math.max(0, bareIdTime(this.#cursor) - lateMs));
    }
    this.#isLive = lastEventId === null;
    this.#checkedAt = clock.elapsed();
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          // With it the reader gets the headers of the response, and from where to continue if it gets nothing more.
          const begin = lastEventId ?? withPrefix("trace", firstBareIdAt(clock.now()));
          this.#enqueue(`retry: ${RETRY_MS}\nid: ${begin}\n\n`);
        },
        // Where the store cannot be read the reader asks again.
        pull: () => this.#catchUp().catch(() => this.drop()),
        cancel: () => this.#ended(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES_MAX }),
    );
  }

  /** Sends what was committed, in the order of ids. @param changesKeys - whether a key may have been revoked by it */
  async send(events: readonly TraceEvent[], changesKeys: boolean): Promise<void> {
    this.#batches++;
    if (!(await this.#isStillAllowed(changesKeys))) return;
    if (this.#isLive) this.#sendNow(events);
    else this.#keep(events);
  }

  #sendNow(events: readonly TraceEvent[]): void {
    let text = "";
    for (const [i, event] of events.entries()) {
      if (!this.#isWanted(event.found)) continue;
      // More at once than a reader may leave unread is no fault of the reader: it gets the rest from the store.
      if (text.length + event.text.length > UNREAD_BYTES_MAX && text !== "") {
        this.#isLive = false;
        this.#goBack(events.slice(i));
        break;
      }
      text += event.text;
      if (this.#cursor === undefined || event.id > this.#cursor) this.#cursor = event.id;
      this.#noteSent(event.id);
    }
    this.#forgetSent();
    if (text === "") return;
    if (this.#isUnread()) this.drop();
    else this.#enqueue(text);
  }

  async comment(): Promise<void> {
    if (!(await this.#isStillAllowed(true).catch(() => true))) return;
    if (this.#isUnread()) this.drop();
    else this.#enqueue(":\n\n");
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#ended();
    this.#controller.close();
  }

  /** Reads on in the store until there is something to send, or nothing is left. */
  async #catchUp(): Promise<void> {
    while (!this.#isLive && (await this.#isStillAllowed(false))) {
      if (this.#hasRead && this.#kept?.length === 0) return this.#beginLive();
      const batches = this.#batches;
      const settled = this.#settled();
      if (this.#from === undefined) [this.#from, this.#kept] = [this.#cursor, []];
      const passed = this.#keptAndPassed();
      const { events, looked, isEnd } = await this.#store.read((reader) => this.#next(reader, passed));
      if (passed.length > 0) this.#kept = this.#kept?.filter((key) => !looked.has(key));
      else for (const key of looked) this.#cursor = key.slice(1);
      for (const { id } of events) this.#noteSent(id);
      if (this.#lateMs > 0) this.#lookAtEnd(isEnd && passed.length === 0, settled);
      // What was committed while that was read is neither read nor sent: then it is read again.
      else if (looked.size === 0 && this.#batches === batches) this.#beginLive();
      if (events.length > 0) return this.#enqueue(events.map(({ text }) => text).join(""));
      await nextTurn();
    }
  }

  /**
   * The next of those that are kept which no read will give. They come before what is read: a reader that continues after a trace gets
   * again what is a few seconds older, and so must have been given what is older still.
   */
  #keptAndPassed(): string[] {
    if (this.#kept === undefined || this.#kept.length === 0) return [];
    const [kept, cursor] = [this.#kept, this.#cursor ?? ""];
    return (this.#hasRead ? kept : kept.filter((key) => key.slice(1) <= cursor)).slice(0, TRACES_AT_ONCE);
  }

  /** @param settled - before this nothing could be committed any more when the last traces were read */
  #lookAtEnd(isEnd: boolean, settled: BareId): void {
    if (this.#kept === undefined) {
      this.#cursor = this.#from;
      this.#from = undefined;
      this.#hasRead = false;
    } else if (isEnd || this.#hasRead) this.#hasRead = true;
    else if ((this.#cursor ?? "") <= settled) this.#from = this.#kept = undefined;
    this.#forgetSent();
  }

  #beginLive(): void {
    this.#isLive = true;
    this.#hasRead = false;
    this.#from = this.#kept = undefined;
  }

  /** Has the store read again from before what may still be committed, and from before what was not sent. */
  #goBack(unsent: readonly TraceEvent[]): void {
    if (this.#lateMs === 0) return;
    const ids = [this.#settled(), ...unsent.map(({ id }) => firstBareIdAt(bareIdTime(id) - 1))];
    for (const id of ids) if (this.#cursor !== undefined && id < this.#cursor) this.#cursor = id;
  }

  #settled(): BareId {
    return firstBareIdAt(Math.max(0, this.#clock.now() - this.#lateMs));
  }

  /** Keeps what is committed while the last seconds are read; when it is much they are read once more. */
  #keep(events: readonly TraceEvent[]): void {
    if (this.#kept === undefined || this.#lateMs === 0) return;
    for (const { found } of events) if (this.#isWanted(found)) this.#kept.push(found.key);
    if (this.#kept.length > KEPT_MAX) this.#kept = undefined;
  }

  #noteSent(id: BareId): void {
    if (this.#lateMs > 0) this.#sentLately.add(id);
  }

  /** Forgets the ids that neither the commit of another server nor the store can bring again. */
  #forgetSent(): void {
    if (this.#lateMs === 0) return;
    const told = firstBareIdAt(Math.max(0, this.#clock.now() - 2 * this.#lateMs));
    const read = this.#from ?? (this.#isLive ? AFTER_ALL : (this.#cursor ?? ""));
    for (const oldest of this.#sentLately) {
      if (oldest >= told || oldest > read) break;
      this.#sentLately.delete(oldest);
    }
  }

  /**
   * The next traces that are for this reader, how far that went, and whether the store has no more.
   *
   * @param passed - the keys of those that come before what is read
   */
  #next(reader: Reader, passed: readonly string[]): { events: TraceEvent[]; looked: ReadonlySet<string>; isEnd: boolean } {
    const events: TraceEvent[] = [];
    let length = 0;
    let looked = 0;
    const keys = passed.length > 0 ? passed : this.#nextKeys(reader);
    reader.ahead(traces, keys);
    for (const key of keys) {
      looked++;
      const event = eventAt(reader, key);
      if (event === undefined || event.found.row.expiresAt <= reader.now || !this.#isWanted(event.found)) continue;
      events.push(event);
      length += event.text.length;
      if (length > UNREAD_BYTES_MAX / 2) break;
    }
    return { events, looked: new Set(keys.slice(0, looked)), isEnd: looked === keys.length && looked < TRACES_AT_ONCE };
  }

  #nextKeys(reader: Reader): string[] {
    if (this.#owner === undefined) return [];
    const { userId, agentId } = this.#owner;
    const { sessionId } = this.#watcher.filter;
    const after = this.#cursor ?? "";
    const { byUser, byAgent, bySession } = traces.index;
    const limit = TRACES_AT_ONCE;
    const keysIn = (index: Index<TraceRow>, of: string) =>
      // Entries end with the action, which comes before what sorts behind all of them.
      reader.keys(index, { from: `${of}${after}${AFTER_ALL}`, to: of + AFTER_ALL, limit }).map((entry) => index.recordOf(entry));
    if (userId !== undefined) return keysIn(byUser, hashKey(userId));
    if (agentId !== undefined) return keysIn(byAgent, hashKey(agentId));
    if (sessionId !== undefined) return keysIn(bySession, bare(sessionId as SessionId));
    return this.#actions
      .flatMap((action) => reader.keys(traces, { from: behind(actionCode(action) + after), to: actionCode(action) + AFTER_ALL, limit }))
      .toSorted((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1))
      .slice(0, limit);
  }

  #isWanted({ key, row }: { key: string; row: TraceRow }): boolean {
    const { filter } = this.#watcher;
    const action = actionOf(key);
    return (
      action !== undefined &&
      this.#actions.includes(action) &&
      this.#isUnsent(key.slice(1)) &&
      (filter.sessionId === undefined || row.sessionId === filter.sessionId) &&
      this.#owner !== undefined &&
      isOwned(this.#owner, row)
    );
  }

  #isUnsent(id: BareId): boolean {
    if (this.#sentLately.has(id)) return false;
    return this.#lateMs > 0 || this.#cursor === undefined || id > this.#cursor;
  }

  /** Ends the stream of a key that is not valid any more. */
  async #isStillAllowed(isDue: boolean): Promise<boolean> {
    if (this.#hasEnded) return false;
    const now = this.#clock.elapsed();
    if (!isDue && now - this.#checkedAt < KEY_CHECK_MS) return true;
    this.#checkedAt = now;
    if (await this.#watcher.isAllowed()) return true;
    this.end();
    return false;
  }

  #isUnread(): boolean {
    return (this.#controller.desiredSize ?? 0) <= 0;
  }

  /** Without a reason, with which Bun would write a line to standard error. */
  drop(): void {
    if (this.#hasEnded) return;
    this.#ended();
    this.#controller.error(undefined);
  }

  #ended(): void {
    this.#hasEnded = true;
    this.#onEnd();
  }

  #enqueue(text: string): void {
    if (!this.#hasEnded) this.#controller.enqueue(new TextEncoder().encode(text));
  }
}
