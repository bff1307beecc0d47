/**
 * What changes leave behind: a trace each, and events.
 *
 * @module
 */
import type { Access } from "./access.ts";
import type { Ids } from "./ids.ts";
import { type Caller, DAY_MS, type Fields, iso, type Json, type ListFilter, page, Refusal } from "./wire.ts";

interface Trace {
  expiresAt: number;
  /** As it is answered; the id is known once the server has shown it. */
  shown: Json;
}

export class Trail {
  readonly #ids: Ids;
  readonly #access: Access;
  /** Oldest first. */
  traces: Trace[] = [];
  /** What waits in the outbox; an event of a trace carries no record. */
  events: { type: string; sessionId: string | null; createdAt: number; trace?: Trace; body: Json }[] = [];

  constructor(ids: Ids, access: Access) {
    this.#ids = ids;
    this.#access = access;
  }

  /**
   * Leaves the trace of a change, and its events.
   *
   * @param records - by the type of the event that carries it
   * @param traceEvents - those that carry the trace, beside the one that every trace has
   */
  record(
    caller: Caller | undefined,
    action: string,
    { id: sessionId, userId }: { id: string | null; userId: string | null },
    details: Fields,
    records: Fields = {},
    traceEvents: readonly string[] = [],
    retentionDays = this.#access.retentionDays(caller),
  ): void {
    const at = this.#ids.now;
    const shown = {
      object: "trace",
      id: undefined,
      session_id: sessionId,
      user_id: userId ?? undefined,
      action,
      actor: caller?.key.shown.prefix ?? "system",
      timestamp: iso(at),
      details,
      metadata: caller === undefined ? {} : { request_id: caller.requestId, latency_ms: 0 },
    };
    const trace: Trace = { expiresAt: at + retentionDays * DAY_MS, shown };
    this.traces.push(trace);
    for (const [type, body] of Object.entries(records)) this.events.push({ type, sessionId, createdAt: at, body });
    for (const type of ["trace.created", ...traceEvents]) this.events.push({ type, sessionId, createdAt: at, trace, body: null });
  }

  /** The trace of a change that concerns no session. */
  recordAdmin(caller: Caller | undefined, action: string, details: Fields, retentionDays?: number): void {
    this.record(caller, action, { id: null, userId: null }, details, {}, [], retentionDays);
  }

  /** The task removes whole days. */
  removeOld(): void {
    const dayOf = (ms: number) => Math.floor(ms / DAY_MS);
    this.traces = this.traces.filter(({ expiresAt }) => dayOf(expiresAt) >= dayOf(this.#ids.now));
  }

  /** @param caller - who reads; whoever is not an admin sees the traces of sessions alone */
  list(caller: Caller | undefined, filter: ListFilter & Fields): Json {
    const { session_id, user_id, action, created_after = "", created_before = "~" } = filter;
    const passing = this.traces.filter(
      ({ expiresAt, shown }) =>
        expiresAt > this.#ids.now &&
        isShownTo(caller, shown) &&
        [undefined, shown.session_id].includes(session_id) &&
        [undefined, shown.user_id].includes(user_id) &&
        [undefined, shown.action].includes(action) &&
        shown.timestamp > created_after &&
        shown.timestamp < created_before,
    );
    return page(
      passing.map(({ shown }) => shown),
      filter,
    );
  }

  get(caller: Caller, id: string): Json {
    const trace = this.traces.find(({ shown }) => shown.id === id);
    if (trace === undefined || trace.expiresAt <= this.#ids.now || !isShownTo(caller, trace.shown)) {
      throw new Refusal(404, "trace_not_found", "trace_id");
    }
    return trace.shown;
  }
}

function isShownTo(caller: Caller | undefined, { session_id }: Json): boolean {
  return session_id !== null || caller === undefined || caller.key.scopes.includes("admin");
}
