/**
 * Traces as they happen, for those who watch: server-sent events.
 *
 * ```
 * Last-Event-ID ──▶ catching up: the next traces are read from the store when the reader has taken the last ones
 *                          │ nothing left
 *                          ▼
 *                        live: what a commit has written is sent at once
 * ```
 * At most 64 KiB wait for a reader here, and as much in Bun. What does not fit is read from the store once there is space, and of a large
 * event a part is sent at a time: all streams that send it hold it once. A live reader that has not taken what it was sent is dropped when
 * the next event comes: it asks again with the id of the last trace that it got, and misses none.
 *
 * With several servers on one store, what the others commit is looked for twice a second while anybody watches. It can come after a
 * trace with a higher id: so who continues is given again what is only a few seconds older than the last trace that it got, and while the
 * last seconds are read the keys of what is committed are kept, and sent before the stream is live.
 *
 * @module
 */
import { nextTurn, type Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { isId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { eachFetched } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { Task } from "../tasks/task.ts";
import { actionOf } from "./events.ts";
import { EventStream, KEY_CHECK_MS, type StreamDeps, type Watcher } from "./event-stream.ts";
import { eventAt, HeldEvents } from "./held-events.ts";

/** A comment is sent as often, so that no proxy takes the connection for a dead one; Bun closes one after 60 s of silence. */
const COMMENT_MS = LIMITS.eventCommentSeconds * 1000;
const RETRY_AFTER_SECONDS = 1;
/** Interval at which traces of other servers are looked for. */
const FOLLOW_MS = 500;

/** Finds what other servers commit. */
export interface Follower {
  /** Traces of a commit of this server that it has not found, and will not find. */
  unseen(keys: readonly string[]): string[];
  /** Traces committed since the last look, in the order of ids. @param since - Unix milliseconds; nothing earlier is looked for */
  look(since: number): Promise<string[]>;
  /** Nobody watches any more. */
  forget(): void;
  /** Time by which a trace may be committed later than those with higher ids. */
  readonly lateMs: number;
}

export class TraceFeed {
  readonly #store: RecordStore;
  readonly #clock: Clock;
  readonly #follower: Follower | undefined;
  readonly #shared: StreamDeps;
  /** `clock.now()` when the first of the streams that are open began. */
  #watchedSince = 0;
  readonly #streams = new Set<EventStream>();
  /** Keys of traces that are committed and not sent yet. */
  #committed: string[] = [];
  #cancelTimers: (() => void)[] = [];
  #isClosed = false;

  /** @param follower - where other servers commit, too */
  constructor(store: RecordStore, clock: Clock, follower?: Follower) {
    this.#store = store;
    this.#clock = clock;
    this.#follower = follower;
    this.#shared = { store, clock, held: new HeldEvents(), lateMs: follower?.lateMs ?? 0 };
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
    // Traces committed until then are sent together.
    if (this.#committed.length === 0) void nextTurn().then(async () => this.#send());
    this.#committed.push(...keys);
  }

  /**
   * Begins a stream; it ends with its reader, with its key, with the server, and where another key has to have its place.
   *
   * @throws {ApiError} `invalid_request` for a Last-Event-ID that is none, `rate_limit_exceeded` when its owner has as many streams as
   * there may be, `service_unavailable` when all together have, and none of them gives way
   */
  open(watcher: Watcher): ReadableStream<Uint8Array> {
    const { lastEventId, limitsId } = watcher;
    if (lastEventId !== null && !isId("trace", lastEventId)) {
      throw new ApiError("invalid_request", "Last-Event-ID must be the id of an event: trace_ and 12 characters.", {
        param: "Last-Event-ID",
      });
    }
    const byOwner = Map.groupBy(this.#streams, ({ watcher: { limitsId: owner } }) => owner);
    const own = byOwner.get(limitsId)?.length ?? 0;
    if (own >= LIMITS.eventStreamsOfKeyMax) {
      throw new ApiError("rate_limit_exceeded", `This key has ${LIMITS.eventStreamsOfKeyMax} streams of events already. End one first.`, {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    if (this.#isClosed) throw noPlace("The server is stopping.");
    if (this.#streams.size >= LIMITS.eventStreamsMax) {
      const stream = givesWay([...byOwner.values()], own, watcher.reader.isAdmin);
      if (stream === undefined) throw noPlace("There are too many streams of events, and no key has more than a fair share of them.");
      stream.end();
    }
    const stream = new EventStream(this.#shared, watcher, () => this.#removed(stream));
    if (this.#streams.size === 0) this.#watchedSince = this.#clock.now();
    this.#streams.add(stream);
    if (this.#streams.size === 1) this.#startTimers();
    return stream.readable;
  }

  /** Ends all streams as soon as their readers have taken what they were sent, and begins none any more. */
  drain(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.finish();
  }

  /** Ends all streams, and begins none any more. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.end();
  }

  /** Number of streams that have not ended. While it is drained: whose readers do not read, or are behind. */
  get unended(): number {
    return this.#streams.size;
  }

  #removed(stream: EventStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) for (const cancel of this.#cancelTimers.splice(0)) cancel();
  }

  #startTimers(): void {
    this.#every(COMMENT_MS, (stream) => stream.comment());
    // Another process may have changed a key, of which nothing comes here.
    this.#every(KEY_CHECK_MS, (stream) => stream.endUnlessAllowed());
  }

  /** Does something with every stream again and again, for as long as there are any. */
  #every(ms: number, work: (stream: EventStream) => void): void {
    const next = () => {
      const cancel = this.#clock.timer(ms, () => {
        this.#cancelTimers = this.#cancelTimers.filter((other) => other !== cancel);
        for (const stream of this.#streams) work(stream);
        if (this.#streams.size > 0) next();
      });
      this.#cancelTimers.push(cancel);
    };
    next();
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

function noPlace(why: string): ApiError {
  return new ApiError("service_unavailable", `${why} Try again later.`, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/**
 * Says which stream ends where there is no place for another: the newest of the owner that has the most, if that still has as many as the
 * new one's owner afterwards. An admin takes a place of the others in any case: who has to end what they do must see it.
 *
 * @param own - how many streams the new one's owner has
 */
function givesWay(owners: readonly EventStream[][], own: number, isAdmin: boolean): EventStream | undefined {
  const most = (some: readonly EventStream[][]) => some.reduce<EventStream[]>((a, b) => (b.length > a.length ? b : a), []);
  const largest = most(owners);
  if (largest.length > own + 1) return largest.at(-1);
  return isAdmin ? most(owners.filter((streams) => streams.some(({ watcher }) => !watcher.reader.isAdmin))).at(-1) : undefined;
}
