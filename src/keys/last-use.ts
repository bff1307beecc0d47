/**
 * Time of the last use of each key.
 *
 * A request only notes the time in memory. A task writes what is pending into the rows of the keys about once a minute, and a
 * stop writes the rest; so a crash forgets a minute at most. Answers show the newer of memory and row.
 *
 * Of the row that is there at that moment only the time is changed: a key that was revoked meanwhile, here or by another
 * process, stays revoked, and what else was changed stays changed. What could not be written is kept for the next time.
 *
 * @module
 */
import { bare, type KeyId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import type { Tx } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { apiKeys } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { storedKey } from "./stored-key.ts";

const NAME = "last use of keys";
const WRITE_EVERY_MS = 60_000;
/** One commit holds the request thread for a few milliseconds at most. */
const KEYS_PER_COMMIT = 500;

export class LastUses {
  readonly name = NAME;
  readonly #bad: BadRows;
  /** By id of the key, Unix milliseconds: since the last writing began, … */
  #pending = new Map<string, number>();
  /** … and what that has yet to write. */
  #writing = new Map<string, number>();

  constructor(store: RecordStore, log: Log) {
    this.#bad = new BadRows(store, log, NAME);
  }

  /** Called for every request: no more than an entry in a map. @param now - Unix milliseconds */
  note(keyId: string, now: number): void {
    this.#pending.set(keyId, now);
  }

  /** The last use that no row has yet, in Unix milliseconds. It is the last one, not the latest: the clock may have been set back. */
  pending(keyId: string): number | undefined {
    return this.#pending.get(keyId) ?? this.#writing.get(keyId);
  }

  task(): Task {
    return {
      name: NAME,
      run: async () => {
        await this.#writeSome();
        return this.#writing.size > 0 ? 0 : WRITE_EVERY_MS;
      },
    };
  }

  /** For a stop, when no request comes any more and the task has ended. */
  async writeAll(): Promise<void> {
    while (this.#writing.size + this.#pending.size > 0) await this.#writeSome();
  }

  async #writeSome(): Promise<void> {
    if (this.#writing.size === 0) [this.#writing, this.#pending] = [this.#pending, this.#writing];
    if (this.#writing.size === 0) return;
    const due = [...this.#writing].slice(0, KEYS_PER_COMMIT);
    await this.#bad.commit((tx, isolate) => {
      for (const [id, at] of due) isolate(id, () => putLastUse(tx, id, at));
    });
    for (const [id] of due) this.#writing.delete(id);
  }
}

function putLastUse(tx: Tx, id: string, at: number): void {
  const found = storedKey(tx, bare(id as KeyId));
  if (found !== undefined) tx.put(apiKeys, found.hash, { ...found.row, lastUsedAt: at });
}
