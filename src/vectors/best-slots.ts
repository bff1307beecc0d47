/**
 * The best of the slots that it is offered, of equal ones the newest: a binary heap with the worst at its top.
 *
 * @module
 */
export class BestSlots {
  readonly #limit: number;
  readonly #scores: Float64Array;
  readonly #slots: Uint32Array;
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#scores = new Float64Array(limit);
    this.#slots = new Uint32Array(limit);
  }

  /** What comes with a lower score, or from an older slot with the same, is not among the best. */
  get bar(): number {
    return this.#count < this.#limit ? 0 : this.#scores[0]!;
  }

  /** Whether a slot would be among the best: a score of 0 never is. */
  accepts(slot: number, score: number): boolean {
    return score > 0 && (this.#count < this.#limit || this.#isBetter(slot, score, 0));
  }

  /** Takes a slot that it accepts, in place of the worst when it is full. */
  offer(slot: number, score: number): void {
    let at = this.#count;
    if (at < this.#limit) {
      this.#count++;
      for (let parent = (at - 1) >> 1; at > 0 && !this.#isBetter(slot, score, parent); parent = (at - 1) >> 1) {
        this.#move(parent, at);
        at = parent;
      }
    } else {
      at = 0;
      for (let child = 1; child < this.#count; child = 2 * at + 1) {
        if (child + 1 < this.#count && !this.#isBetter(this.#slots[child + 1]!, this.#scores[child + 1]!, child)) child++;
        if (!this.#isBetter(slot, score, child)) break;
        this.#move(child, at);
        at = child;
      }
    }
    this.#slots[at] = slot;
    this.#scores[at] = score;
  }

  /** In no order. */
  get found(): { slots: Uint32Array; scores: Float64Array } {
    return { slots: this.#slots.subarray(0, this.#count), scores: this.#scores.subarray(0, this.#count) };
  }

  /** Whether a slot comes before the one at a place. */
  #isBetter(slot: number, score: number, at: number): boolean {
    return score > this.#scores[at]! || (score === this.#scores[at]! && slot > this.#slots[at]!);
  }

  #move(from: number, to: number): void {
    this.#slots[to] = this.#slots[from]!;
    this.#scores[to] = this.#scores[from]!;
  }
}
