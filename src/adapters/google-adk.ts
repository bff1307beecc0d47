/**
 * Google's Agent Development Kit on Cairn: `CairnSessionService` keeps sessions with their events and their state.
 *
 * ```
 * […, "sessions", app, user, session]               "head" → { generation, events, lastUpdateTime }, "state" → { state }
 * […, "sessions", app, user, session, "events"]     number of the event → event
 * […, "sessions", app, user, session, "event ids"]  event id → { key } of the event
 * […, "sessions by time", app]                      time of the last event, user and session; of each user too
 * […, "app state", app]                             name with its prefix → { value }
 * […, "user state", app, user]                      name with its prefix → { value }
 * ```
 *
 * Each change of a session puts its head, and names the version that it has read of it. The values of an app and of a user are documents of
 * their own, so that sessions that set them at the same time do not wait for each other.
 *
 * @example
 * const runner = new Runner({ appName: "support", agent, sessionService: new CairnSessionService(cairn.documents) });
 *
 * @module
 */
import {
  BaseSessionService,
  createEvent,
  createSession,
  State,
  trimTempDeltaState,
  type AppendEventRequest,
  type CreateSessionRequest,
  type DeleteSessionRequest,
  type Event,
  type GetSessionRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type Session,
} from "@google/adk";
import type { Document, DocumentChange, DocumentPage, Documents, JsonObject } from "../client/index.ts";
import { Clock } from "./shared/clock.ts";
import { check, getAll, PAGE_MAX, readAll, rootOf, untilUnchanged, type DocumentAddress } from "./shared/documents.ts";
import { countOf, sliceOf } from "./shared/slices.ts";
import { fromStored, toStored } from "./shared/stored-json.ts";

export interface CairnSessionServiceOptions {
  /** Namespace of sessions; `["google-adk"]` unless given. */
  namespace?: string[];
}

/** Numbers of events sort as texts. */
const NUMBER_DIGITS = 12;
/** Number of reads of a session that others change meanwhile. */
const READS_MAX = 20;
/** Number of other changes of an event that fit into the same request. */
const SHARED_VALUES_MAX = 90;
/** Number of events read at once to find those after a time. */
const EVENTS_AT_ONCE = 100;

type Values = Record<string, unknown>;
type SessionKey = Pick<GetSessionRequest, "appName" | "userId" | "sessionId">;

interface Head {
  /** Tells a session from one of the same id that was deleted. */
  readonly generation: string;
  /** Number of its events. */
  readonly events: number;
  readonly lastUpdateTime: number;
}

export class CairnSessionService extends BaseSessionService {
  readonly #documents: Documents;
  readonly #root: readonly string[];
  readonly #clock: Clock;

  /** @param documents - `cairn.documents`, or those of a user: `cairn.documents.of({ user_id })`; @param clock - for tests */
  constructor(documents: Documents, { namespace = ["google-adk"] }: CairnSessionServiceOptions = {}, clock = new Clock()) {
    super();
    this.#documents = documents;
    this.#root = rootOf(namespace);
    this.#clock = clock;
  }

  /** @throws {Error} when there is a session of this id already */
  override async createSession({ appName, userId, state = {}, sessionId }: CreateSessionRequest): Promise<Session> {
    const id = sessionId || crypto.randomUUID();
    const of = checked({ appName, userId, sessionId: id });
    const own = byScope(state);
    const lastUpdateTime = this.#clock.time().getTime();
    const head: Head = { generation: crypto.randomUUID(), events: 0, lastUpdateTime };
    const shared = this.#shared(of, own);
    return untilUnchanged(async () => {
      const { found, lists } = await readAll(this.#documents, [this.#head(of)], [this.#appState(of), this.#userState(of)]);
      if ((found[0] ?? null) !== null) throw new Error(`Session with id ${id} already exists.`);
      await this.#documents.batch([
        { op: "put", ...this.#head(of), value: toStored(head), if_version: 0 },
        { op: "put", ...this.#state(of), value: toStored({ state: own.session }) },
        ...this.#listed(of, undefined, lastUpdateTime),
        ...shared,
      ]);
      const [app = [], user = []] = lists;
      const merged = { ...own.session, ...valuesOf(app), ...valuesOf(user), ...own.app, ...own.user };
      return createSession({ id, appName, userId, state: fromStored(toStored(merged)) as Values, events: [], lastUpdateTime });
    });
  }

  /** Returns a session, or makes one: of several that make it at the same time all return that of one. */
  override async getOrCreateSession(request: CreateSessionRequest): Promise<Session> {
    const { appName, userId, sessionId } = request;
    if (!sessionId) return this.createSession(request);
    const of = { appName, userId, sessionId };
    const found = await this.getSession(of);
    if (found !== undefined) return found;
    try {
      return await this.createSession(request);
    } catch (error) {
      const made = await this.getSession(of);
      if (made === undefined) throw error;
      return made;
    }
  }

  override async getSession({ config = {}, ...of }: GetSessionRequest): Promise<Session | undefined> {
    checked(of);
    const control = { op: "list", namespace: this.#session(of) } as const;
    const ofApp = { op: "list", namespace: this.#appState(of), limit: PAGE_MAX } as const;
    const ofUser = { op: "list", namespace: this.#userState(of), limit: PAGE_MAX } as const;
    for (let reads = 1; reads <= READS_MAX; reads++) {
      const events = new NewestEvents(config);
      const list = { op: "list", namespace: this.#events(of), order: "desc", limit: events.page } as const;
      // A session is not read at one time: what every change of it changes is read before and after it.
      const [before, app, user, page, after] = await this.#documents.query([control, ofApp, ofUser, list, control]);
      const [head, state] = before.data;
      if (head === undefined) return undefined;
      events.add(page.data);
      let cursor = page.next_cursor;
      const isRead = (cursor === null || events.isFull) && !after.has_more;
      while (cursor !== null && !events.isFull) {
        const [next] = await this.#documents.query([{ ...list, cursor }]);
        events.add(next.data);
        cursor = next.next_cursor;
      }
      const [last] = isRead ? [after] : await this.#documents.query([control]);
      if (versionsOf(before.data) !== versionsOf(last.data)) continue;
      return createSession({
        id: of.sessionId,
        appName: of.appName,
        userId: of.userId,
        state: { ...stateOf(state), ...valuesOf(await this.#whole(ofApp, app)), ...valuesOf(await this.#whole(ofUser, user)) },
        events: events.inOrder(),
        lastUpdateTime: headOf(head).lastUpdateTime,
      });
    }
    throw new Error(`The session ${JSON.stringify(of.sessionId)} was changed each of the ${READS_MAX} times it was read.`);
  }

  /** Returns sessions without their events and state. Those of an order come by the time of their last event. */
  override async listSessions({
    appName,
    userId,
    limit,
    offset = 0,
    page,
    order = "asc",
  }: ListSessionsRequest): Promise<ListSessionsResponse> {
    check(appName, "appName");
    if (userId !== undefined) check(userId, "userId");
    for (const [name, least, value] of [
      ["limit", 0, limit],
      ["offset", 0, offset],
      ["page", 1, page],
    ] as const)
      if (value !== undefined && !(Number.isSafeInteger(value) && value >= least))
        throw new RangeError(`${name} must be a whole number from ${least}; got ${value}.`);
    const namespace = this.#byTime(appName, userId);
    const first = limit !== undefined && page !== undefined ? (page - 1) * limit : offset;
    const [found, totalItems] = await Promise.all([
      sliceOf(this.#documents, [namespace], { order }, { offset: first, limit: limit ?? Infinity }),
      countOf(this.#documents, [namespace]),
    ]);
    const sessions = found.map(({ value }) =>
      createSession({ ...(value as { userId: string; id: string; lastUpdateTime: number }), appName }),
    );
    if (limit === undefined) return { sessions, page: 1, limit: totalItems, totalItems, totalPages: totalItems === 0 ? 0 : 1 };
    const number = page ?? (limit === 0 ? 1 : Math.floor(first / limit) + 1);
    return { sessions, page: number, limit, totalItems, totalPages: limit === 0 ? 0 : Math.ceil(totalItems / limit) };
  }

  /** Deletes a session with its events and its own state. The state of the app and of the user stay. */
  override async deleteSession(request: DeleteSessionRequest): Promise<void> {
    const of = checked(request);
    await untilUnchanged(async () => {
      const [head = null] = await getAll(this.#documents, [this.#head(of)]);
      if (head === null) return;
      await this.#documents.batch([
        { op: "delete", ...this.#head(of), if_version: head.version },
        ...this.#listed(of, headOf(head).lastUpdateTime, undefined),
        { op: "delete_all", namespace: this.#session(of) },
      ]);
    });
  }

  /**
   * Appends an event, or replaces the one of its id; then makes the session that was given what it is now, as others have changed it too.
   *
   * @throws {Error} when there is no such session: an event that is not kept would be missed later
   */
  override async appendEvent({ session, event }: AppendEventRequest): Promise<Event> {
    if (event.partial) return event;
    check(event.id, "event.id");
    if (!Number.isFinite(event.timestamp)) throw new TypeError(`event.timestamp must be a number; got ${event.timestamp}.`);
    const of = checked({ appName: session.appName, userId: session.userId, sessionId: session.id });
    const trimmed = trimTempDeltaState(event);
    const before = await untilUnchanged(() => this.#append(of, trimmed));
    const fresh = before.lastUpdateTime > session.lastUpdateTime ? await this.getSession(of) : undefined;
    if (fresh === undefined) await super.appendEvent({ session, event: trimmed });
    else Object.assign(session, { state: fresh.state, events: fresh.events });
    session.lastUpdateTime = event.timestamp;
    return event;
  }

  /** Returns the head as it was before. */
  async #append(of: SessionKey, event: Event): Promise<Head> {
    const { id, timestamp } = event;
    const delta = byScope(event.actions?.stateDelta ?? {});
    const changesState = Object.keys(delta.session).length > 0;
    const places = [this.#head(of), this.#eventId(of, id), ...(changesState ? [this.#state(of)] : [])];
    const [stored = null, known = null, state = null] = await getAll(this.#documents, places);
    if (stored === null) throw new Error(`Session ${of.sessionId} not found for appendEvent`);
    const head = headOf(stored);
    const events = known === null ? head.events + 1 : head.events;
    const key = known === null ? String(events).padStart(NUMBER_DIGITS, "0") : (known.value["key"] as string);
    await this.#documents.batch([
      { op: "put", ...this.#head(of), value: toStored({ ...head, events, lastUpdateTime: timestamp }), if_version: stored.version },
      { op: "put", namespace: this.#events(of), key, value: toStored(event), ...(known === null ? { if_version: 0 } : {}) },
      ...(known === null ? [{ op: "put", ...this.#eventId(of, id), value: { key } } as const] : []),
      ...this.#listed(of, head.lastUpdateTime, timestamp),
      ...(changesState ? [this.#stateWith(of, state, delta.session)] : []),
      ...this.#shared(of, delta),
    ]);
    return head;
  }

  /** Returns the changes that move a session in the lists by time; the entries of one that was deleted are not there any more. */
  #listed(of: SessionKey, from: number | undefined, to: number | undefined): DocumentChange[] {
    if (from === to) return [];
    const { appName, userId, sessionId: id } = of;
    return [undefined, userId].flatMap((user) => {
      const namespace = this.#byTime(appName, user);
      const keyOf = (time: number) => `${sortable(time)} ${user === undefined ? JSON.stringify([userId, id]) : id}`;
      return [
        ...(from === undefined ? [] : [{ op: "delete", namespace, key: keyOf(from), if_version: 1 } as const]),
        ...(to === undefined ? [] : [{ op: "put", namespace, key: keyOf(to), value: { userId, id, lastUpdateTime: to } } as const]),
      ];
    });
  }

  #session({ appName, userId, sessionId }: SessionKey): string[] {
    return [...this.#root, "sessions", appName, userId, sessionId];
  }

  #events(of: SessionKey): string[] {
    return [...this.#session(of), "events"];
  }

  #head(of: SessionKey): DocumentAddress {
    return { namespace: this.#session(of), key: "head" };
  }

  #state(of: SessionKey): DocumentAddress {
    return { namespace: this.#session(of), key: "state" };
  }

  #eventId(of: SessionKey, id: string): DocumentAddress {
    return { namespace: [...this.#session(of), "event ids"], key: id };
  }

  #appState({ appName }: Pick<SessionKey, "appName">): string[] {
    return [...this.#root, "app state", appName];
  }

  #userState({ appName, userId }: Pick<SessionKey, "appName" | "userId">): string[] {
    return [...this.#root, "user state", appName, userId];
  }

  /** Returns the change that gives the state of a session these values, too. */
  #stateWith(of: SessionKey, before: Document | null, values: Values): DocumentChange {
    return {
      op: "put",
      ...this.#state(of),
      value: toStored({ state: { ...stateOf(before), ...values } }),
      if_version: before?.version ?? 0,
    };
  }

  /** Returns the changes that give the app and the user these values. @throws {RangeError} for more than are set in one piece */
  #shared(of: SessionKey, { app, user }: Readonly<Record<"app" | "user", Values>>): DocumentChange[] {
    const put = (namespace: string[], values: Values) =>
      Object.entries(values).map(([key, value]) => ({ op: "put", namespace, key, value: toStored({ value }) }) as const);
    const changes = [...put(this.#appState(of), app), ...put(this.#userState(of), user)];
    if (changes.length <= SHARED_VALUES_MAX) return changes;
    throw new RangeError(`At most ${SHARED_VALUES_MAX} values of app: and user: can be set at once; got ${changes.length}.`);
  }

  async #whole({ namespace }: { namespace: string[] }, { data, next_cursor: cursor }: DocumentPage): Promise<Document[]> {
    const found = [...data];
    if (cursor !== null) for await (const document of this.#documents.list(namespace, { limit: PAGE_MAX, cursor })) found.push(document);
    return found;
  }

  #byTime(appName: string, userId: string | undefined): string[] {
    return [...this.#root, "sessions by time", appName, ...(userId === undefined ? [] : [userId])];
  }
}

/** The events that are asked for, from the last one on. */
class NewestEvents {
  readonly #limit: number;
  readonly #after: number;
  readonly #found: Event[] = [];
  /** Number that is read at once. */
  readonly page: number;
  isFull = false;

  constructor({ numRecentEvents, afterTimestamp }: NonNullable<GetSessionRequest["config"]>) {
    this.#limit = numRecentEvents && numRecentEvents > 0 ? numRecentEvents : Infinity;
    this.#after = afterTimestamp || -Infinity;
    this.page = Math.min(this.#limit, afterTimestamp ? EVENTS_AT_ONCE : PAGE_MAX);
  }

  add(documents: readonly Document[]): void {
    for (const { value } of documents) {
      const event = eventOf(value);
      this.isFull ||= this.#found.length >= this.#limit || event.timestamp < this.#after;
      if (this.isFull) return;
      this.#found.push(event);
    }
    this.isFull = this.#found.length >= this.#limit;
  }

  inOrder(): Event[] {
    return this.#found.reverse();
  }
}

/** @throws {TypeError} for an id by which nothing can be kept */
function checked(of: SessionKey): SessionKey {
  for (const name of ["appName", "userId", "sessionId"] as const) check(of[name], name);
  return of;
}

/** Returns state by whose it is, without what is temporary. */
function byScope(state: Values): Readonly<Record<"app" | "user" | "session", Values>> {
  const of = (isWanted: (name: string) => boolean) => Object.fromEntries(Object.entries(state).filter(([name]) => isWanted(name)));
  const prefixes = [State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX];
  return {
    app: of((name) => name.startsWith(State.APP_PREFIX)),
    user: of((name) => name.startsWith(State.USER_PREFIX)),
    session: of((name) => !prefixes.some((prefix) => name.startsWith(prefix))),
  };
}

function stateOf(document: Document | null | undefined): Values {
  return fromStored(document?.value["state"] ?? {}) as Values;
}

function valuesOf(documents: readonly Document[]): Values {
  return Object.fromEntries(documents.map(({ key, value }) => [key, fromStored(value["value"])]));
}

function headOf({ value }: Document): Head {
  return value as unknown as Head;
}

/** Returns an event with what tells ADK that it is one, which JSON has not. */
function eventOf(value: JsonObject): Event {
  const event = fromStored(value) as Event;
  return { ...createEvent(event), ...event };
}

function versionsOf(documents: readonly Document[]): string {
  return JSON.stringify(documents.map(({ key, version, value }) => [key, version, value["generation"]]));
}

/** Returns a number as a text that sorts as it does: the bits of the number, of a negative one inverted. */
function sortable(number: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  const bits = view.getBigUint64(0);
  const sign = 1n << 63n;
  return BigInt.asUintN(64, number < 0 ? ~bits : bits | sign)
    .toString(16)
    .padStart(16, "0");
}
