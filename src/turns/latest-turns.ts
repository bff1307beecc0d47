/**
 * A cache of the newest turns of sessions, as their contexts show them: 30 µs of the 130 that a context takes without it. An
 * agent asks for them before each turn, and all but the last are those of the time before: so the text is cached, and only the
 * turns that were added since are read.
 *
 * A turn never changes once it is committed, so an entry is right for as long as the session has as many turns as it had then,
 * which its row says.
 *
 * @module
 */
import { Cache, type CacheUses, textBytes } from "../lib/cache.ts";
import type { BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { CACHE_BYTES_MAX, LIMITS } from "../lib/limits.ts";
import { memoizeWeak } from "../lib/memoize.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { behind, rowsOf } from "../storage/page.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { turns } from "../storage/tables.ts";

interface Latest {
  /** How many turns were asked for, and how many the session had. */
  limit: number;
  count: number;
  /** Key of the newest. */
  newest: string;
  /** Newest first, with commas between them; how long each is. */
  text: string;
  lengths: readonly number[];
}

const cacheOf = memoizeWeak<RecordStore, Cache<Latest>>(() => new Cache(CACHE_BYTES_MAX.recentTurns));

/** How the turns of sessions were found in their cache. */
export function latestTurnsUses({ store }: { readonly store: RecordStore }): CacheUses {
  return cacheOf(store).uses;
}

/** An entry of a session without turns, and the length of each turn. */
const LATEST_BYTES = 200;
const TURN_BYTES = 8;

/**
 * The newest turns of a session, newest first, as a JSON array; fewer than `limit` when they are large.
 *
 * @param count - how many turns its row says it has
 */
export function latestTurns(
  { store }: { readonly store: RecordStore },
  reader: Reader,
  session: BareId,
  count: number,
  limit: number,
): JsonText {
  if (limit === 0 || count === 0) return "[]" as JsonText;
  const cache = cacheOf(store);
  const known = cache.get(session);
  const before = known?.limit === limit ? known : { limit, count: 0, newest: session, text: "", lengths: [] };
  if (before.count === count) return `[${before.text}]` as JsonText;
  const items: string[] = [];
  let newest: string | undefined;
  let bytes = 0;
  for (const { key, row } of rowsOf(reader, turns, { from: behind(before.newest), to: session + AFTER_ALL, descending: true }, limit)) {
    newest ??= key;
    items.push(`{${row.shown}}`);
    bytes += Buffer.byteLength(row.shown);
    if (bytes > LIMITS.pageBytesMax) return `[${items.join(",")}]` as JsonText;
  }
  const added = items.length;
  const kept = before.lengths.slice(0, limit - added);
  if (kept.length > 0)
    items.push(
      before.text.slice(
        0,
        kept.reduce((sum, length) => sum + length + 1, -1),
      ),
    );
  const text = items.join(",");
  const lengths = [...items.slice(0, added).map(({ length }) => length), ...kept];
  const latest = { limit, count, newest: newest ?? before.newest, text, lengths };
  cache.set(session, latest, LATEST_BYTES + TURN_BYTES * lengths.length + textBytes(text));
  return `[${text}]` as JsonText;
}
