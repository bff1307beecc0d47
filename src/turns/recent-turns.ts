/**
 * A cache of the newest turns of sessions, as their contexts show them: 30 µs of the 130 that a context takes without it. An
 * agent asks for them before each turn, and all but the last are those of the time before: so they are cached, and only the
 * turns that were added since are read.
 *
 * A turn never changes once it is committed, so an entry is right for as long as the session has as many turns as it had then,
 * which its row says.
 *
 * @module
 */
import { Cache, type CacheUses } from "../lib/cache.ts";
import type { BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { CACHE_BYTES_MAX, LIMITS } from "../lib/limits.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL, behind } from "../storage/keys.ts";
import { rowsOf } from "../storage/page.ts";
import { turns } from "../storage/tables.ts";

interface Recent {
  /** How many turns were asked for, and how many the session had. */
  limit: number;
  count: number;
  /** Key of the newest. */
  newest: string;
  /** What is shown of each, newest first. */
  items: readonly string[];
}

/** An entry of a session without turns, and what a turn takes besides what is shown of it. */
const RECENT_BYTES = 200;
const TURN_BYTES = 200;

export class RecentTurns {
  readonly #cache = new Cache<Recent>(CACHE_BYTES_MAX.recentTurns);

  /** How the turns of sessions were found. */
  get uses(): CacheUses {
    return this.#cache.uses;
  }

  /**
   * The newest turns of a session, newest first, as a JSON array; fewer than `limit` when they are large.
   *
   * @param count - how many turns its row says it has
   */
  of(reader: Reader, session: BareId, count: number, limit: number): JsonText {
    if (limit === 0 || count === 0) return "[]" as JsonText;
    const known = this.#cache.get(session);
    const before = known?.limit === limit ? known : { limit, count: 0, newest: session, items: [] };
    if (before.count === count) return arrayOf(before.items);
    const items: string[] = [];
    let newest: string | undefined;
    let bytes = 0;
    for (const { key, row } of rowsOf(reader, turns, { from: behind(before.newest), to: session + AFTER_ALL, descending: true }, limit)) {
      newest ??= key;
      items.push(row.shown);
      bytes += Buffer.byteLength(row.shown);
      if (bytes > LIMITS.pageBytesMax) return arrayOf(items);
    }
    items.push(...before.items.slice(0, limit - items.length));
    this.#cache.set(session, { limit, count, newest: newest ?? before.newest, items }, bytesOf(items));
    return arrayOf(items);
  }
}

/** Put together with the rest of the answer, and not before: all of it is copied once so. */
function arrayOf(items: readonly string[]): JsonText {
  let text = "[";
  for (const item of items) text += `${text === "[" ? "" : ","}{${item}}`;
  return `${text}]` as JsonText;
}

/** What they take in memory: a character is a byte, or two where one of the text is beyond Latin-1. */
function bytesOf(items: readonly string[]): number {
  return items.reduce(
    (sum, item) => sum + TURN_BYTES + (Buffer.byteLength(item) === item.length ? item.length : 2 * item.length),
    RECENT_BYTES,
  );
}
