/**
 * A cache of the newest turns of sessions, as their contexts show them: 30 µs of the 130 that a context takes without it. An
 * agent asks for them before each turn, and all but the last are those of the time before: so they are cached, and only the
 * turns that were added since are read.
 *
 * A turn never changes once it is committed, so an entry is right for as long as the session has the branch and the last turn that it
 * had then, which its row says.
 *
 * @module
 */
import { countQuoted } from "../embeddings/builtin/token-count.ts";
import { Cache, type CacheUses } from "../lib/cache.ts";
import { BARE_ID_LENGTH, type BareId, type Id } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { CACHE_BYTES_MAX, LIMITS } from "../lib/limits.ts";
import type { Reader } from "../storage/access.ts";
import type { LiveSession } from "../sessions/live-session.ts";
import { newestTurns } from "./order.ts";

interface Recent {
  /** Number of turns that were asked for, the branch that was current, and the number of the last turn of the session. */
  limit: number;
  branch: number | undefined;
  number: number;
  /** The newest. */
  newest: BareId;
  /** Newest first. */
  items: readonly RecentTurn[];
}

/** A turn as a context shows it. */
export interface RecentTurn {
  /** Members of the JSON object, without its braces. */
  readonly shown: string;
  /** Tokens of its input and output; undefined where that is still to be counted. */
  readonly tokens: number | undefined;
}

const ID_FROM = '"id":"'.length;

export function idOfTurn({ shown }: RecentTurn): Id<"turn"> {
  return shown.slice(ID_FROM, ID_FROM + "turn_".length + BARE_ID_LENGTH) as Id<"turn">;
}

/** Tokens of the texts of a turn in a context. */
export async function countTurn(input: string, output: string): Promise<number> {
  return (await countQuoted(input, LIMITS.contextTokensMax)) + (await countQuoted(output, LIMITS.contextTokensMax));
}

/** An entry of a session without turns, and what a turn takes besides what is shown of it. */
const RECENT_BYTES = 200;
const TURN_BYTES = 200;

export class RecentTurns {
  readonly #cache = new Cache<Recent>(CACHE_BYTES_MAX.recentTurns);

  /** Hits and misses of the turns of sessions. */
  get uses(): CacheUses {
    return this.#cache.uses;
  }

  /** Forgets those of all sessions, also of sessions that are gone. */
  forget(): void {
    this.#cache.clear();
  }

  /**
   * The newest turns of a session, newest first; fewer than `limit` when they are large.
   */
  of(reader: Reader, session: LiveSession, limit: number): readonly RecentTurn[] {
    const { turnCount, turnNumber: number = turnCount, branch, timedFrom } = session.row;
    if (limit === 0 || turnCount === 0) return [];
    const known = this.#cache.get(session.key);
    const isOfBranch = known?.limit === limit && known.branch === branch;
    if (isOfBranch && known.number === number) return known.items;
    // One that was added need not be newer than those of before where turns have times of their own.
    const before = isOfBranch && timedFrom === undefined ? known : { newest: "", items: [] };
    const items: RecentTurn[] = [];
    let newest: BareId | undefined;
    let bytes = 0;
    for (const { id, row } of newestTurns(reader, session, before.newest, limit)) {
      newest ??= id;
      items.push({ shown: row.shown, tokens: row.more?.tokens });
      bytes += Buffer.byteLength(row.shown);
      if (bytes > LIMITS.pageBytesMax) return items;
    }
    items.push(...before.items.slice(0, limit - items.length));
    this.#cache.set(session.key, { limit, branch, number, newest: newest ?? before.newest, items }, bytesOf(items));
    return items;
  }
}

/** Put together with the rest of the answer, and not before: all of it is copied once so. */
export function turnsJson(turns: readonly Pick<RecentTurn, "shown">[]): JsonText {
  let text = "[";
  for (const { shown } of turns) text += `${text === "[" ? "" : ","}{${shown}}`;
  return `${text}]` as JsonText;
}

/** Bytes that they take in memory: a character is a byte, or two where one of the text is beyond Latin-1. */
function bytesOf(items: readonly RecentTurn[]): number {
  return items.reduce(
    (sum, { shown }) => sum + TURN_BYTES + (Buffer.byteLength(shown) === shown.length ? shown.length : 2 * shown.length),
    RECENT_BYTES,
  );
}
