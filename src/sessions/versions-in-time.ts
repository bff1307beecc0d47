/**
 * Version of a state that was current when another record of its session was created.
 *
 * Ids of a session's records rise in the order in which they were committed, so that the ids of versions say it: no time has to be
 * compared.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { versionKey } from "../storage/keys.ts";
import { versionHeads, versions } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { LiveSession } from "./live-session.ts";

/** The versions of a session, of one snapshot; each is read once. */
export class VersionsInTime {
  readonly #reader: Reader;
  readonly #session: LiveSession;
  readonly #ids = new Map<number, BareId>();
  #oldest: number | undefined;

  constructor(reader: Reader, session: LiveSession) {
    this.#reader = reader;
    this.#session = session;
  }

  /** Returns the version; where it is not kept any more the newest that it can have been, which is one before the oldest that is kept. */
  at(id: BareId): number {
    let [low, high] = [this.#oldestKept(), this.#session.row.version];
    if (low > high || this.#idOf(low) > id) return low - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#idOf(middle) > id) high = middle - 1;
      else low = middle;
    }
    return low;
  }

  /** The oldest version that is kept, besides the initial one. */
  #oldestKept(): number {
    const { key, row } = this.#session;
    const [oldest] =
      this.#oldest === undefined
        ? this.#reader.keys(versions, { from: versionKey(key, 1), to: versionKey(key, row.version + 1), limit: 1 })
        : [];
    return (this.#oldest ??= oldest === undefined ? 1 : fromBase62(oldest.slice(key.length)));
  }

  /** One that cannot be read has the place of the version before. */
  #idOf(version: number): BareId {
    const { key } = this.#session;
    if (version === 0) return key;
    const known = this.#ids.get(version);
    if (known !== undefined) return known;
    const id = unlessUnreadable(() => this.#reader.get(versionHeads, versionKey(key, version))?.id) ?? this.#idOf(version - 1);
    this.#ids.set(version, id);
    return id;
  }
}
