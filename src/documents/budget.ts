/**
 * Budget of what all operations of one query of documents may look at and hold.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { nextTurn } from "../lib/clock.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { PROBES_PER_TURN } from "../storage/walk.ts";
import type { Shown } from "./answers.ts";
import { Projection } from "./projection.ts";

/** Bytes that an answer holds in memory without a permit while a search waits for others. */
const HELD_BYTES_MAX = 64 * 1024;
/** A document that is read takes as long as this many looks at an index, … */
const PROBES_PER_DOCUMENT = 5;
/** … and as one for this many of its characters, … */
const CHARACTERS_PER_LOOK = 5_000;
/** … or a tenth of them where it is parsed, and of its filter where it is compared with that, or of the paths that are shown. */
const PROBES_WHERE_PARSED = 10;
/** A count takes as long as this many characters where much has just ended. */
export const COUNT_CHARACTERS = 100 * CHARACTERS_PER_LOOK;

export class Budget {
  #rows = 0;
  #probes = 0;
  /** Time of the event loop's turn since others were let through. */
  #turn = 0;
  #bytes = 0;
  #hasSome = false;
  #isSpent = false;
  #needsPermit = false;
  /** True if much may be held while other requests are let through: more than one turn of the event loop takes a permit for that. */
  readonly mayHoldMuch: boolean;
  /** Owner of the query, for the turns of those who wait. */
  readonly limitsId: string;

  constructor(mayHoldMuch: boolean, limitsId: string) {
    this.mayHoldMuch = mayHoldMuch;
    this.limitsId = limitsId;
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Checks whether it ended only for want of a permit. */
  get needsPermit(): boolean {
    return this.#needsPermit;
  }

  /** False for a result that makes the answer too large, which is the end of it. */
  takes(json: JsonText): boolean {
    this.#bytes += Buffer.byteLength(json);
    const isTooMuch = this.#hasSome && this.#bytes > LIMITS.pageBytesMax;
    this.#hasSome = true;
    this.#isSpent ||= isTooMuch;
    return !isTooMuch;
  }

  /** Counts a row that was read, and parsed for a filter or to show a part, and lets other requests through from time to time. */
  async look(characters: number, filter?: RecordFilter, shown: Shown = "all"): Promise<void> {
    const paths = (filter?.length ?? 0) + (shown instanceof Projection ? shown.length : 0);
    const isParsed = filter !== undefined || shown instanceof Projection;
    const compared = isParsed ? PROBES_WHERE_PARSED * (characters * (filter?.weight ?? 1) + paths) : characters;
    const probes = PROBES_PER_DOCUMENT + compared / CHARACTERS_PER_LOOK;
    this.#probes += probes;
    if (++this.#rows >= LIMITS.documentRowsMax || this.#probes >= LIMITS.documentProbesMax) this.#isSpent = true;
    await this.#takeTurn(probes / PROBES_PER_TURN);
  }

  /**
   * To be called before a text is scored, which lets other requests through from time to time.
   *
   * @param turn - how much of a turn of the event loop that takes
   * @returns whether it may be: not when all operations are to be begun again
   */
  async score(turn: number): Promise<boolean> {
    await this.#takeTurn(turn);
    return !this.#needsPermit;
  }

  async #takeTurn(part: number): Promise<void> {
    this.#turn += part;
    if (this.#turn < 1) return;
    this.#turn = 0;
    if (this.mayHoldMuch) return nextTurn();
    this.requirePermit();
  }

  /** To be asked before a wait for others: false ends all operations, as they hold what takes a permit. */
  mayWait(): boolean {
    if (this.mayHoldMuch || this.#bytes <= HELD_BYTES_MAX) return true;
    this.requirePermit();
    return false;
  }

  /** Ends all operations, to be begun again with a permit. */
  requirePermit(): void {
    this.#isSpent = true;
    this.#needsPermit = true;
  }
}
