/**
 * How much all operations of one query of documents may look at and hold.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { LOOKS_PER_TURN } from "../storage/walk.ts";

/** What an answer holds in memory without a permit while other requests are let through. */
const HELD_BYTES_MAX = 64 * 1024;
/** A document that is read takes as long as this many looks at an index, … */
const LOOKS_PER_DOCUMENT = 5;
/** … and as one for this many of its characters, or a tenth of them where it is parsed. */
const CHARACTERS_PER_LOOK = 5_000;
/** A count takes as long as this many characters where much has just ended. */
export const COUNT_CHARACTERS = 100 * CHARACTERS_PER_LOOK;

export class Budget {
  #rows = 0;
  #looks = 0;
  #bytes = 0;
  #hasSome = false;
  #isSpent = false;
  #needsPermit = false;
  readonly #mayHoldMuch: boolean;

  /** @param mayHoldMuch - while other requests are let through */
  constructor(mayHoldMuch: boolean) {
    this.#mayHoldMuch = mayHoldMuch;
  }

  get mayHoldMuch(): boolean {
    return this.#mayHoldMuch;
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Whether it ended only because more is held than without a permit. */
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

  /** Counts a row that was read, and lets other requests through from time to time. */
  async look(characters: number): Promise<void> {
    this.#looks += LOOKS_PER_DOCUMENT + characters / CHARACTERS_PER_LOOK;
    if (++this.#rows >= LIMITS.documentRowsMax) this.#isSpent = true;
    if (this.#looks < LOOKS_PER_TURN) return;
    this.#looks = 0;
    if (this.#mayHoldMuch || this.#bytes <= HELD_BYTES_MAX) return nextTurn();
    this.requirePermit();
  }

  /** Ends all operations, to be begun again with a permit. */
  requirePermit(): void {
    this.#isSpent = true;
    this.#needsPermit = true;
  }
}
