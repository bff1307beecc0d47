/**
 * Choice of the text that the encoder takes through its next layer. Pure: the length of a text stands for what a layer of it takes.
 *
 * Questions come before memories, which get a layer now and then all the same. Each API key has a line of its own, and the line that
 * was served least is next (start-time fair queueing), so that no key's flood delays another's question for more than two layers. In a
 * line short texts overtake long ones, and none waits for ever: a text stands where it would if it had come later by what it costs.
 *
 * @see https://doi.org/10.1109/90.649569 (Goyal, Vin, Cheng: Start-time Fair Queueing)
 * @module
 */
/** Position of a text in the queue. */
export interface Queued {
  /** The API key that it is for. */
  readonly owner: string;
  readonly isQuery: boolean;
  /** In characters. */
  readonly length: number;
}

/** After 16 layers of questions comes one of a memory, if any waits. */
const LAYERS_OF_QUERIES_IN_A_ROW = 16;

/** Credit of a text of an empty queue before it has to share, in characters times layers: a question of 400 characters. */
const HEAD_START = 12 * 400;

/** A text of that many characters is overtaken by those that come within this many others. */
const CHARACTERS_PER_PLACE = 100;

/** Texts under way hold memory: no more of them are begun. */
const BEGUN_MAX = 8;

interface KeyQueue<Text> {
  readonly waiting: { readonly text: Text; readonly rank: number }[];
  begun: Text | undefined;
  served: number;
}

class Lines<Text extends Queued> {
  readonly #lines = new Map<string, KeyQueue<Text>>();
  #arrivals = 0;
  begun = 0;

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  add(text: Text): void {
    let line = this.#lines.get(text.owner);
    if (line === undefined) {
      const least = Math.min(...Array.from(this.#lines.values(), ({ served }) => served));
      line = { waiting: [], begun: undefined, served: (Number.isFinite(least) ? least : 0) - HEAD_START };
      this.#lines.set(text.owner, line);
    }
    const rank = this.#arrivals++ + text.length / CHARACTERS_PER_PLACE;
    const behind = line.waiting.findIndex((other) => other.rank > rank);
    line.waiting.splice(behind === -1 ? line.waiting.length : behind, 0, { text, rank });
  }

  /** @param mayBegin - whether a text may be begun that is not under way */
  next(mayBegin: boolean): Text | undefined {
    let best: KeyQueue<Text> | undefined;
    for (const line of this.#lines.values()) {
      if ((mayBegin || line.begun !== undefined) && (best === undefined || line.served < best.served)) best = line;
    }
    if (best === undefined) return undefined;
    if (best.begun === undefined) {
      best.begun = best.waiting.shift()!.text;
      this.begun++;
    }
    best.served += best.begun.length;
    return best.begun;
  }

  remove(text: Text): void {
    const line = this.#lines.get(text.owner);
    if (line === undefined) return;
    const at = line.waiting.findIndex((other) => other.text === text);
    if (at !== -1) line.waiting.splice(at, 1);
    if (line.begun === text) {
      line.begun = undefined;
      this.begun--;
    }
    if (line.begun === undefined && line.waiting.length === 0) this.#lines.delete(text.owner);
  }
}

export class EncoderQueue<Text extends Queued> {
  readonly #queries = new Lines<Text>();
  readonly #memories = new Lines<Text>();
  #queriesInARow = 0;

  add(text: Text): void {
    this.#linesOf(text).add(text);
  }

  /** Returns the text whose next layer is due, and counts that layer; undefined when none waits. */
  next(): Text | undefined {
    const isTurnOfMemories = this.#queries.isEmpty || this.#queriesInARow >= LAYERS_OF_QUERIES_IN_A_ROW;
    const mayBegin = this.#queries.begun + this.#memories.begun < BEGUN_MAX;
    const memory = isTurnOfMemories ? this.#memories.next(mayBegin) : undefined;
    const text = memory ?? this.#queries.next(mayBegin);
    this.#queriesInARow = text?.isQuery === true ? this.#queriesInARow + 1 : 0;
    return text;
  }

  /** Takes out a text that is done, or no longer wanted. */
  remove(text: Text): void {
    this.#linesOf(text).remove(text);
  }

  #linesOf({ isQuery }: Queued): Lines<Text> {
    return isQuery ? this.#queries : this.#memories;
  }
}
