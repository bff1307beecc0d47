/**
 * Remembers that turns are searched: under `index_turns: "words"`, which is the default, they are indexed from the first search on.
 *
 * To split a turn into words takes a sixth of the time that it takes to log it, which nobody is to pay for whom no search is made. So the
 * first search leaves a mark that stays. Each turn that is logged later is indexed with it, and those of before follow in the background,
 * as after a change of the setting (`index-task.ts`). A transaction that logs a turn looks at the mark, so that none is left out between.
 *
 * @module
 */
import { NO_PARTITION } from "../lib/ids.ts";
import type { Clock } from "../lib/clock.ts";
import type { Reader } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { meta, TURNS_SEARCHED, type TurnIndex } from "../storage/tables.ts";

/** Another server may have changed the setting there and back. */
const READY_FOR_MS = 10_000;

export class TurnSearches {
  readonly #clock: Clock;
  #areMade = false;
  #ready: { readonly index: TurnIndex; readonly until: number } | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if this server knows of one without a look at the store. */
  get areKnown(): boolean {
    return this.#areMade;
  }

  areMade(reader: Reader): boolean {
    return (this.#areMade ||= reader.has(meta, TURNS_SEARCHED));
  }

  /** Has the first one leave its mark. */
  async began(store: RecordStore): Promise<void> {
    if (this.#areMade || (await store.read((reader) => this.areMade(reader)))) return;
    await store.commit(NO_PARTITION, (tx) => tx.put(meta, TURNS_SEARCHED, "1"));
    this.#areMade = true;
  }

  /** True if every turn was indexed for a setting a moment ago. */
  isReady(index: TurnIndex): boolean {
    return this.#ready?.index === index && this.#clock.elapsed() < this.#ready.until;
  }

  becameReady(index: TurnIndex): void {
    this.#ready = { index, until: this.#clock.elapsed() + READY_FOR_MS };
  }

  /** Runs functions that index turns for a search one after the other. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
