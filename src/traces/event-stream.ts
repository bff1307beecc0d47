/**
 * The traces that one reader is sent, as server-sent events (`feed.ts`).
 *
 * @module
 */
import { nextTurn, type Clock } from "../lib/clock.ts";
import { bare, bareIdTime, firstBareIdAt, withPrefix, type BareId, type TraceId } from "../lib/ids.ts";
import type { LatestReader, Reader } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { isOwned, narrowed, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { traces, type TraceRow } from "../storage/tables.ts";
import { actionOf, isAdminAction, TRACE_ACTIONS, type TraceAction } from "./events.ts";
import { TraceEvent, type HeldEvents, type Partly } from "./held-events.ts";
import { keysAfter, type TraceFilter, type TraceReader } from "./traces.ts";
import { UnreadBytes, UNREAD_BYTES_MAX } from "./unread-bytes.ts";

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
  /** The header as it came; null for a client that wants only what is new. */
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

export class EventStream {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #held: HeldEvents;
  readonly #unread: UnreadBytes;
  readonly watcher: Watcher;
  readonly #onEnd: () => void;
  readonly #actions: readonly TraceAction[];
  /** Owner of its traces; undefined where the filter names somebody else than the key's owner. */
  readonly #owner: Owner | undefined;
  /** Everything up to this was sent, or is not for this reader; undefined for a client that wants only what is new. */
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
  /** True if it is dropped unless it has taken something since it fell behind, and what it had taken by then. */
  #mustTake: number | undefined;
  /** Bytes that it had taken when the last comment was due. */
  #takenBefore = 0;
  #readingOn: Promise<void> | undefined;
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
    this.#unread = new UnreadBytes({
      // Sending under way may have found no space before there was some.
      pull: async () => {
        await this.#readingOn;
        if (this.#isEnding) this.#endIfTaken();
        else await this.#readOn();
      },
      cancel: () => this.#ended(),
    });
    // With it the reader gets the headers of the response, and from where to continue if it gets nothing more.
    const begin = lastEventId ?? withPrefix("trace", firstBareIdAt(clock.now()));
    this.#unread.sendText(`retry: ${RETRY_MS}\nid: ${begin}\n\n`);
  }

  get readable(): ReadableStream<Uint8Array> {
    return this.#unread.stream;
  }

  /** Sends what was committed, in the order of ids. @param changesKeys - whether a key may have been revoked by it */
  async send(events: readonly TraceEvent[], changesKeys: boolean): Promise<void> {
    this.#batches++;
    if (!(await this.#isStillAllowed(changesKeys))) return;
    if (this.#isLive) return this.#sendNow(events);
    const takesNothing = this.#mustTake === this.#unread.taken;
    if (takesNothing && events.some(({ found }) => this.#isWanted(found))) this.drop();
    else this.#keep(events);
  }

  #sendNow(events: readonly TraceEvent[]): void {
    const wanted = events.filter(({ found }) => this.#isWanted(found));
    const hasTakenAll = this.#unread.isEmpty;
    let length = 0;
    const unfitting = wanted.findIndex(({ bytes }) => (length += bytes.byteLength) > this.#unread.room);
    const fitting = unfitting === -1 ? wanted : wanted.slice(0, unfitting);
    for (const { id } of fitting) this.#trackSent(id);
    this.#forgetSent();
    if (fitting.length > 0) this.#unread.send(Buffer.concat(fitting.map(({ bytes }) => bytes)));
    const [first, ...others] = wanted.slice(fitting.length);
    if (first !== undefined) this.#fallBehind(first, others, hasTakenAll);
  }

  /** Has what does not fit read from the store. A reader that had taken all before is not to blame. */
  #fallBehind(first: TraceEvent, others: readonly TraceEvent[], hasTakenAll: boolean): void {
    this.#trackSent(first.id);
    this.#isLive = false;
    this.#mustTake = hasTakenAll ? undefined : this.#unread.taken;
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
    const taken = this.#unread.taken;
    const hasTaken = taken > this.#takenBefore;
    this.#takenBefore = taken;
    if (this.#unread.room > 0 && this.#partly === undefined) this.#unread.sendText(":\n\n");
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
    if (this.#unread.hasEnded) return;
    this.#ended();
    this.#unread.close();
  }

  /** Ends it once its reader has taken what it was sent, or else a comment: what Bun holds for a reader is taken before that. */
  finish(): void {
    if (this.#unread.hasEnded || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#unread.isEmpty) this.#unread.sendText(":\n\n");
    this.#endIfTaken();
  }

  #endIfTaken(): void {
    if (this.#unread.isEmpty) this.end();
  }

  /** Reads on in the store. Where that cannot be read the reader asks again. */
  #readOn(): Promise<void> {
    const reading = this.#readingOn ?? this.#catchUp().catch(() => this.drop());
    this.#readingOn = reading;
    return reading.finally(() => (this.#readingOn = undefined));
  }

  /** Reads until there is something to send, or nothing is left, or no space. */
  async #catchUp(): Promise<void> {
    while (!this.#isLive && (await this.#isStillAllowed(false))) {
      // A reader that takes something asks this again. Each part of an event costs reading all of it.
      if (this.#unread.room < UNREAD_BYTES_MAX / 2) return;
      if (this.#partly !== undefined) {
        await this.#sendNextPart(this.#partly);
        continue;
      }
      if (this.#hasRead && this.#kept?.length === 0) return this.#beginLive();
      const batches = this.#batches;
      const settled = this.#settled();
      if (this.#from === undefined) [this.#from, this.#kept] = [this.#cursor, []];
      const passed = this.#keptAndPassed();
      const room = this.#unread.room;
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
      else if (first !== undefined) return this.#unread.send(Buffer.concat(events.map(({ bytes }) => bytes)));
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
    const part = bytes.subarray(partly.from, partly.from + this.#unread.room);
    partly.from += part.byteLength;
    if (partly.from === bytes.byteLength) this.#partly = undefined;
    const event = partly.of;
    if (!(event instanceof TraceEvent)) return this.#unread.send(part);
    this.#unread.sendHeld(part);
    if (this.#partly === undefined) this.#unread.whenTaken(() => this.#held.release(event));
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
    const wanted = { owner: this.#owner, sessionId: this.watcher.filter.sessionId, actions: this.#actions };
    return keysAfter(reader, wanted, this.#cursor ?? "", this.#atOnce);
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
    if (this.#unread.hasEnded || this.#isEnding) return false;
    const now = this.#clock.elapsed();
    if (!isDue && now - this.#checkedAt < KEY_CHECK_MS) return true;
    this.#checkedAt = now;
    if (await this.watcher.isAllowed()) return true;
    this.end();
    return false;
  }

  drop(): void {
    if (this.#unread.hasEnded) return;
    this.#ended();
    this.#unread.fail();
  }

  #ended(): void {
    this.#unread.stop();
    if (this.#partly?.of instanceof TraceEvent) this.#held.release(this.#partly.of);
    this.#partly = undefined;
    this.#onEnd();
  }
}
