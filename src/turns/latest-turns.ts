/**
 * The newest turns of a session as its context shows them. An agent asks for them before each turn, and all but the last are
 * those of the time before: so the text is kept, and only what has been added since is read.
 *
 * A turn never changes once it is committed, so what is kept is right for as long as the session has so many, which its row
 * says.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { rememberingFor } from "../lib/remember.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { behind, rowsOf } from "../storage/page.ts";
import { Remembered } from "../storage/remembered.ts";
import type { Store } from "../storage/store.ts";
import { turns } from "../storage/tables.ts";

/** Characters, of all texts and of one. */
const LENGTH_MAX = 32 * 1024 * 1024;
const LENGTH_MAX_EACH = 256 * 1024;

interface Latest {
  /** The most it may be, and how many turns the session had. */
  limit: number;
  count: number;
  /** Key of the newest. */
  newest: string;
  /** Newest first, with commas between them; how long each is. */
  text: string;
  lengths: readonly number[];
}

const textsOf = rememberingFor<Store, Remembered<Latest>>(() => new Remembered(LENGTH_MAX, ({ text }) => text.length));

/**
 * The newest turns of a session, newest first, as a JSON array; fewer than `limit` when they are large.
 *
 * @param count - how many turns its row says it has
 */
export function latestTurns(store: Store, session: BareId, count: number, limit: number): JsonText {
  if (limit === 0 || count === 0) return "[]" as JsonText;
  const texts = textsOf(store);
  const known = texts.get(session);
  const before = known?.limit === limit ? known : { limit, count: 0, newest: session, text: "", lengths: [] };
  if (before.count === count) return `[${before.text}]` as JsonText;
  const items: string[] = [];
  let newest: string | undefined;
  let bytes = 0;
  for (const { key, row } of rowsOf(store, turns, { from: behind(before.newest), to: session + AFTER_ALL, descending: true }, limit)) {
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
  if (text.length <= LENGTH_MAX_EACH) {
    const lengths = [...items.slice(0, added).map(({ length }) => length), ...kept];
    texts.set(session, { limit, count, newest: newest ?? before.newest, text, lengths });
  }
  return `[${text}]` as JsonText;
}
