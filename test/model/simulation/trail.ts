/**
 * What changes leave behind: a trace each.
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

  constructor(ids: Ids, access: Access) {
    this.#ids = ids;
    this.#access = access;
  }

  /** Leaves the trace of a change. */
  record(
    caller: Caller | undefined,
    action: string,
    { id: sessionId, userId }: { id: string | null; userId: string | null },
    details: Fields,
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
    this.traces.push({ expiresAt: at + retentionDays * DAY_MS, shown });
  }

  /** The trace of a change that concerns no session. */
  recordAdmin(caller: Caller | undefined, action: string, details: Fields, retentionDays?: number): void {
    this.record(caller, action, { id: null, userId: null }, details, retentionDays);
  }

  removeOld(): void {
    this.traces = this.traces.filter(({ expiresAt }) => expiresAt > this.#ids.now);
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
