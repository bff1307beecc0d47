/**
 * The traces that one reader is sent, as server-sent events (`feed.ts`).
 *
 * @module
 */
import { nextTurn, type Clock } from "../lib/clock.ts";
import { bare, bareIdTime, firstBareIdAt, withPrefix, type BareId, type SessionId, type TraceId } from "../lib/ids.ts";
import type { LatestReader, Reader } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import { isErased } from "../storage/erasure.ts";
import { MAX_KEY, successor, hashKey } from "../storage/keys.ts";
import { isOwned, narrowed, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { traces, type Index, type TraceRow } from "../storage/tables.ts";
import { actionCode, actionOf, isAdminAction, TRACE_ACTIONS, type TraceAction } from "./events.ts";
import { shownTrace, traceJson, type FoundTrace, type TraceFilter, type TraceReader } from "./traces.ts";

/** Bytes that a reader may have been sent and not taken yet. Bun holds as much again, in a buffer of the socket of up to 128 KiB. */
const UNREAD_BYTES_MAX = 64 * 1024;
/** Bytes that all streams together hold of events that they have sent in part. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that are sent at once: Bun holds it a second time until the socket has taken it. */
const PIECE_BYTES = 32 * 1024;
/** True if the keys of all streams are still valid is looked at as often, and whenever this server hears that a key has changed. */
export const KEY_CHECK_MS = 1_000;
/** Traces that are read at once while catching up: few at first, and twice as many each time that all of them were sent. */
const TRACES_AT_ONCE_MIN = 4;
const TRACES_AT_ONCE_MAX = 128;
const RETRY_MS = 2_000;
/** Number of traces committed while the last seconds are read from which these are read again. */
const KEPT_MAX = 10_000;

type EventFilter = Pick<TraceFilter, "sessionId" | "userId" | "action">;

export interface Watcher {
  /** Key that may have only a few streams. */
  readonly limitsId: string;
  readonly reader: TraceReader;
  readonly filter: EventFilter;
  /** The header as it came; null for who wants only what is new. */
  readonly lastEventId: string | null;
  /** Checks whether the key is still valid. */
  isAllowed(): boolean | Promise<boolean>;
}

/** State that the streams of a server share. */
export interface StreamDeps {
  readonly store: RecordStore;
  readonly clock: Clock;
  readonly held: HeldEvents;
  /** Time by which a trace may be committed later than those with higher ids: 0 where this server alone commits. */
  readonly lateMs: number;
}

/** A trace, and its event once that is needed, which all streams that have it share. */
export class TraceEvent {
  readonly found: FoundTrace;
  #bytes: Uint8Array | undefined;

  constructor(found: FoundTrace) {
    this.found = found;
  }

  get id(): BareId {
    return this.found.key.slice(1);
  }

  get bytes(): Uint8Array {
    return (this.#bytes ??= new TextEncoder().encode(
      `id: ${withPrefix("trace", this.id)}\nevent: trace\ndata: ${traceJson(this.found)}\n\n`,
    ));
  }
}

/** A row that cannot be read keeps no other from being sent. */
export function eventAt(reader: Reader, key: string): TraceEvent | undefined {
  const row = readable(() => reader.get(traces, key));
  return row === undefined ? undefined : new TraceEvent(shownTrace(reader, { key, row }));
}

/** Progress of sending an event, and its text then, or the event itself where that is held. */
interface Partly {
  readonly key: string;
  readonly of: TraceEvent | { readonly hash: number | bigint };
  from: number;
}

interface Held {
  readonly event: TraceEvent;
  /** The revision of its row, once that was found to be the same. */
  revision?: number | bigint | undefined;
  holders: number;
}

/** Events of which streams have sent a part, once for all of them. Those for which there is no room are read again for each part. */
export class HeldEvents {
  readonly #events = new Map<string, Held>();
  #bytes = 0;

  has(key: string): boolean {
    return this.#events.has(key);
  }

  /** The event of a trace as it is now: the one that is held, where that is the same, without reading all of it again. */
  eventAt(reader: LatestReader, key: string): TraceEvent | undefined {
    const held = this.#events.get(key);
    if (held === undefined) return eventAt(reader, key);
    const revision = reader.revision(traces, key);
    const isSame = revision !== undefined && revision === held.revision && !isErased(reader, held.event.found.row, held.event.id);
    if (isSame) return held.event;
    const event = eventAt(reader, key);
    if (event?.found.row.body !== held.event.found.row.body) return event;
    held.revision = revision;
    return held.event;
  }

  /** The bytes of an event of which a part was sent, if it is what it was. */
  again(reader: LatestReader, { key, of }: Partly): Uint8Array | undefined {
    const event = this.eventAt(reader, key);
    if (of instanceof TraceEvent) return event === of ? of.bytes : undefined;
    return event !== undefined && Bun.hash(event.bytes) === of.hash ? event.bytes : undefined;
  }

  hold(event: TraceEvent): boolean {
    const { key } = event.found;
    const held = this.#events.get(key);
    if (held === undefined && this.#bytes + event.bytes.byteLength <= HELD_BYTES_MAX) {
      this.#bytes += event.bytes.byteLength;
      this.#events.set(key, { event, holders: 1 });
      return true;
    }
    if (held?.event !== event) return false;
    held.holders++;
    return true;
  }

  release(event: TraceEvent): void {
    const held = this.#events.get(event.found.key);
    if (held?.event !== event || --held.holders > 0) return;
    this.#events.delete(event.found.key);
    this.#bytes -= event.bytes.byteLength;
  }
}

export class EventStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #held: HeldEvents;
  readonly watcher: Watcher;
  readonly #onEnd: () => void;
  readonly #actions: readonly TraceAction[];
  /** Owner of its traces; undefined where the filter names somebody else than the key's owner. */
  readonly #owner: Owner | undefined;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Everything up to this was sent, or is not for this reader; undefined for who wants only what is new. */
  #cursor: BareId | undefined;
  #isLive: boolean;
  /** Time by which a trace may be committed later than those with higher ids: 0 where this server alone commits. */
  readonly #lateMs: number;
  /** Events sent lately, which the store or another server's commit may report once more. */
  readonly #sentLately = new Set<BareId>();
  /** While traces are read before which others may still be committed: what is newer than this may be read again, … */
  #from: BareId | undefined;
  /** … and the keys of what was committed since, in whatever order; undefined when that was too much. */
  #kept: string[] | undefined;
  /** True if that is all that is left to be sent. */
  #hasRead = false;
  /** Number of traces that the next read looks at. A database gives all of them, however large they are. */
  #atOnce = TRACES_AT_ONCE_MIN;
  /** Number of calls of `send`. */
  #batches = 0;
  /** An event of which a part was sent: the rest is read again when there is room. */
  #partly: Partly | undefined;
  /** Held events of which the last part waits to be taken, with what the reader will have taken by then. */
  #waiting: { readonly event: TraceEvent; readonly until: number }[] = [];
  /** True if it is dropped unless it has taken something since it fell behind, and what it had taken by then. */
  #mustTake: number | undefined;
  #queuedBytes = 0;
  /** Bytes that it had taken when the last comment was due. */
  #takenBefore = 0;
  #readingOn: Promise<void> | undefined;
  #hasEnded = false;
  /** True if it ends once its reader has taken what it was sent. */
  #isEnding = false;
  #isChecking = false;
  #checkedAt: number;

  constructor({ store, clock, held, lateMs }: StreamDeps, watcher: Watcher, onEnd: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#held = held;
    this.watcher = watcher;
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
          this.#enqueue(new TextEncoder().encode(`retry: ${RETRY_MS}\nid: ${begin}\n\n`));
        },
        // Sending under way may have found no space before there was some.
        pull: async () => {
          this.#releaseTaken();
          await this.#readingOn;
          if (this.#isEnding) this.#endIfTaken();
          else await this.#readOn();
        },
        cancel: () => this.#ended(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES_MAX }),
    );
  }

  /** Sends what was committed, in the order of ids. @param changesKeys - whether a key may have been revoked by it */
  async send(events: readonly TraceEvent[], changesKeys: boolean): Promise<void> {
    this.#batches++;
    if (!(await this.#isStillAllowed(changesKeys))) return;
    if (this.#isLive) return this.#sendNow(events);
    const takesNothing = this.#mustTake === this.#takenBytes();
    if (takesNothing && events.some(({ found }) => this.#isWanted(found))) this.drop();
    else this.#keep(events);
  }

  #sendNow(events: readonly TraceEvent[]): void {
    const wanted = events.filter(({ found }) => this.#isWanted(found));
    const hasTakenAll = this.#room === UNREAD_BYTES_MAX;
    let length = 0;
    const unfitting = wanted.findIndex(({ bytes }) => (length += bytes.byteLength) > this.#room);
    const fitting = unfitting === -1 ? wanted : wanted.slice(0, unfitting);
    for (const { id } of fitting) this.#trackSent(id);
    this.#forgetSent();
    if (fitting.length > 0) this.#enqueue(Buffer.concat(fitting.map(({ bytes }) => bytes)));
    const [first, ...others] = wanted.slice(fitting.length);
    if (first !== undefined) this.#fallBehind(first, others, hasTakenAll);
  }

  /** Has what does not fit read from the store. A reader that had taken all before is not to blame. */
  #fallBehind(first: TraceEvent, others: readonly TraceEvent[], hasTakenAll: boolean): void {
    this.#trackSent(first.id);
    this.#isLive = false;
    this.#mustTake = hasTakenAll ? undefined : this.#takenBytes();
    if (this.#lateMs > 0) {
      this.#goBack(others);
      // These keys are all that is left, unless they become too many.
      [this.#from, this.#kept, this.#hasRead] = [this.#cursor, others.map(({ found }) => found.key), true];
    }
    this.#sendFirstPart(first);
    void this.#readOn();
  }

  /** Sends a comment, unless there is something else to be taken; drops a reader that takes nothing from one comment to the next. */
  comment(): void {
    const taken = this.#takenBytes();
    const hasTaken = taken > this.#takenBefore;
    this.#takenBefore = taken;
    if (this.#room > 0 && this.#partly === undefined) this.#enqueue(new TextEncoder().encode(":\n\n"));
    else if (!hasTaken) this.drop();
  }

  /** Ends the stream of a key that is not valid any more. Where that cannot be found out, it is asked again later. */
  endUnlessAllowed(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const checked = this.#isStillAllowed(true).catch(() => true);
    void checked.finally(() => (this.#isChecking = false));
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#ended();
    this.#controller.close();
  }

  /** Ends it once its reader has taken what it was sent, or else a comment: what Bun holds for a reader is taken before that. */
  finish(): void {
    if (this.#hasEnded || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#room === UNREAD_BYTES_MAX) this.#enqueue(new TextEncoder().encode(":\n\n"));
    this.#endIfTaken();
  }

  #endIfTaken(): void {
    if (this.#room === UNREAD_BYTES_MAX) this.end();
  }

  /** Reads on in the store. Where that cannot be read the reader asks again. */
  #readOn(): Promise<void> {
    const reading = this.#readingOn ?? this.#catchUp().catch(() => this.drop());
    this.#readingOn = reading;
    return reading.finally(() => (this.#readingOn = undefined));
  }

  /** Reads until there is something to send, or nothing is left, or no room. */
  async #catchUp(): Promise<void> {
    while (!this.#isLive && (await this.#isStillAllowed(false))) {
      // A reader that takes something asks this again. Each part of an event costs reading all of it.
      if (this.#room < UNREAD_BYTES_MAX / 2) return;
      if (this.#partly !== undefined) {
        await this.#sendNextPart(this.#partly);
        continue;
      }
      if (this.#hasRead && this.#kept?.length === 0) return this.#beginLive();
      const batches = this.#batches;
      const settled = this.#settled();
      if (this.#from === undefined) [this.#from, this.#kept] = [this.#cursor, []];
      const passed = this.#keptAndPassed();
      const room = this.#room;
      const { events, looked, isEnd, isFull } = await this.#store.read((reader) => this.#next(reader, passed, room));
      this.#atOnce = isFull ? Math.max(1, looked.size) : Math.min(TRACES_AT_ONCE_MAX, 2 * this.#atOnce);
      if (passed.length > 0) this.#kept = this.#kept?.filter((key) => !looked.has(key));
      else for (const key of looked) this.#cursor = key.slice(1);
      for (const { id } of events) this.#trackSent(id);
      if (this.#lateMs > 0) this.#lookAtEnd(isEnd && passed.length === 0, settled);
      // Traces committed while that was read are neither read nor sent: then it is read again.
      else if (looked.size === 0 && this.#batches === batches) this.#beginLive();
      const [first] = events;
      if (first !== undefined && first.bytes.byteLength > room) this.#sendFirstPart(first);
      else if (first !== undefined) return this.#enqueue(Buffer.concat(events.map(({ bytes }) => bytes)));
      await nextTurn();
    }
  }

  #sendFirstPart(event: TraceEvent): void {
    const isHeld = this.#held.hold(event);
    this.#partly = { key: event.found.key, of: isHeld ? event : { hash: Bun.hash(event.bytes) }, from: 0 };
    this.#sendPart(this.#partly, event.bytes);
  }

  /** Sends more of an event. It may have gone meanwhile, or lost its content: then the reader asks again. */
  async #sendNextPart(partly: Partly): Promise<void> {
    const bytes = await this.#store.read((reader) => this.#held.again(reader, partly));
    if (bytes === undefined) this.drop();
    else this.#sendPart(partly, bytes);
  }

  /** Sends as much more of an event as there is room for. */
  #sendPart(partly: Partly, bytes: Uint8Array): void {
    const part = bytes.subarray(partly.from, partly.from + this.#room);
    partly.from += part.byteLength;
    if (partly.from === bytes.byteLength) this.#partly = undefined;
    if (!(partly.of instanceof TraceEvent)) return this.#enqueue(part);
    this.#enqueueHeld(part);
    if (this.#partly === undefined) this.#waiting.push({ event: partly.of, until: this.#queuedBytes });
  }

  /** Releases the held events of which all was taken. */
  #releaseTaken(): void {
    const taken = this.#takenBytes();
    while (this.#waiting.length > 0 && this.#waiting[0]!.until <= taken) this.#held.release(this.#waiting.shift()!.event);
  }

  /**
   * The next of those that are kept which no read will give. They come before what is read: a reader that continues after a trace gets
   * again what is a few seconds older, and so must have been given what is older still.
   */
  #keptAndPassed(): string[] {
    if (this.#kept === undefined || this.#kept.length === 0) return [];
    const [kept, cursor] = [this.#kept, this.#cursor ?? ""];
    return (this.#hasRead ? kept : kept.filter((key) => key.slice(1) <= cursor)).slice(0, this.#atOnce);
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
    this.#mustTake = undefined;
    this.#hasRead = false;
    this.#from = this.#kept = undefined;
  }

  /** Goes back to before what may still be committed, and to before what was not sent. */
  #goBack(unsent: readonly TraceEvent[]): void {
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

  #trackSent(id: BareId): void {
    if (this.#isLive && (this.#cursor === undefined || id > this.#cursor)) this.#cursor = id;
    if (this.#lateMs > 0) this.#sentLately.add(id);
  }

  /** Forgets the ids that neither the commit of another server nor the store can bring again. */
  #forgetSent(): void {
    if (this.#lateMs === 0) return;
    const told = firstBareIdAt(Math.max(0, this.#clock.now() - 2 * this.#lateMs));
    const read = this.#from ?? (this.#isLive ? MAX_KEY : (this.#cursor ?? ""));
    for (const oldest of this.#sentLately) {
      if (oldest >= told || oldest > read) break;
      this.#sentLately.delete(oldest);
    }
  }

  /**
   * The next traces that are for this reader, how far that went, whether the store has no more, and whether more are not looked at since
   * these are much. There is one at least, if there are any, and no more than there is room for.
   *
   * @param passed - the keys of those that come before what is read
   */
  #next(
    reader: LatestReader,
    passed: readonly string[],
    room: number,
  ): { events: TraceEvent[]; looked: ReadonlySet<string>; isEnd: boolean; isFull: boolean } {
    const events: TraceEvent[] = [];
    let length = 0;
    let looked = 0;
    const keys = passed.length > 0 ? passed : this.#nextKeys(reader);
    reader.ahead(
      traces,
      keys.filter((key) => !this.#held.has(key)),
    );
    for (const key of keys) {
      const event = this.#held.eventAt(reader, key);
      if (event !== undefined && event.found.row.expiresAt > reader.now && this.#isWanted(event.found)) {
        length += event.bytes.byteLength;
        if (length > room && events.length > 0) break;
        events.push(event);
      }
      looked++;
      if (length > UNREAD_BYTES_MAX / 2) break;
    }
    const isEnd = looked === keys.length && looked < this.#atOnce;
    return { events, looked: new Set(keys.slice(0, looked)), isEnd, isFull: length > UNREAD_BYTES_MAX / 2 };
  }

  #nextKeys(reader: Reader): string[] {
    if (this.#owner === undefined) return [];
    const { userId, agentId } = this.#owner;
    const { sessionId } = this.watcher.filter;
    const after = this.#cursor ?? "";
    const { byUser, byAgent, bySession } = traces.index;
    const limit = this.#atOnce;
    const keysIn = (index: Index<TraceRow>, of: string) =>
      // Entries end with the action, which comes before what sorts behind all of them.
      reader.keys(index, { from: `${of}${after}${MAX_KEY}`, to: of + MAX_KEY, limit }).map((entry) => index.recordOf(entry));
    if (userId !== undefined) return keysIn(byUser, hashKey(userId));
    if (agentId !== undefined) return keysIn(byAgent, hashKey(agentId));
    if (sessionId !== undefined) return keysIn(bySession, bare(sessionId as SessionId));
    return this.#actions
      .flatMap((action) => reader.keys(traces, { from: successor(actionCode(action) + after), to: actionCode(action) + MAX_KEY, limit }))
      .toSorted((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1))
      .slice(0, limit);
  }

  #isWanted({ key, row }: { key: string; row: TraceRow }): boolean {
    const { filter } = this.watcher;
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
    if (this.#hasEnded || this.#isEnding) return false;
    const now = this.#clock.elapsed();
    if (!isDue && now - this.#checkedAt < KEY_CHECK_MS) return true;
    this.#checkedAt = now;
    if (await this.watcher.isAllowed()) return true;
    this.end();
    return false;
  }

  /** Number of bytes more that may wait for the reader. */
  get #room(): number {
    return this.#controller.desiredSize ?? 0;
  }

  #takenBytes(): number {
    return this.#queuedBytes - (UNREAD_BYTES_MAX - this.#room);
  }

  /** Without a reason, with which Bun would write a line to standard error. */
  drop(): void {
    if (this.#hasEnded) return;
    this.#ended();
    this.#controller.error(undefined);
  }

  #ended(): void {
    this.#hasEnded = true;
    if (this.#partly?.of instanceof TraceEvent) this.#held.release(this.#partly.of);
    for (const { event } of this.#waiting) this.#held.release(event);
    this.#partly = undefined;
    this.#waiting = [];
    this.#onEnd();
  }

  /** Copies them piece by piece: a view would hold all of what it is of. */
  #enqueue(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength && !this.#hasEnded; at += PIECE_BYTES)
      this.#enqueueHeld(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)));
  }

  /** Avoids a copy of what is held anyway. */
  #enqueueHeld(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    this.#queuedBytes += bytes.byteLength;
    this.#controller.enqueue(bytes);
  }
}
