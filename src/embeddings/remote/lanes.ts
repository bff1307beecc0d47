/**
 * Where texts wait to be embedded: queries in one lane, memories in the other.
 *
 * What comes within a few milliseconds travels together. Four requests are under way at most, three of one lane, so that a
 * query never stands behind a thousand memories and memories get on while queries pour in. Knows nothing of the network.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { type BatchLimits, takeBatch } from "./batching.ts";

const LANES = ["query", "memory"] as const;
export type Lane = (typeof LANES)[number];

const GATHER_MS = 3;
const UNDER_WAY_MAX = 4;
const UNDER_WAY_OF_LANE_MAX = 3;
/** Enough for ten requests; beyond that the caller is better told than kept waiting. */
const WAITING_MAX = 1000;

export interface Waiting {
  readonly tokens: number;
  /** Its caller has an answer, or has stopped waiting for one. */
  readonly isSettled: boolean;
}

interface LaneState<Item> {
  queue: Item[];
  /** Gathering is over: the queue goes as soon as a request may. */
  isDue: boolean;
  underWay: number;
}

export class Lanes<Item extends Waiting> {
  readonly #clock: Clock;
  readonly #limits: () => BatchLimits;
  readonly #serve: (items: Item[]) => Promise<void>;
  readonly #lanes: Record<Lane, LaneState<Item>> = {
    query: { queue: [], isDue: false, underWay: 0 },
    memory: { queue: [], isDue: false, underWay: 0 },
  };

  /** @param parts.serve - settles every item and never rejects */
  constructor(parts: { clock: Clock; limits: () => BatchLimits; serve: (items: Item[]) => Promise<void> }) {
    this.#clock = parts.clock;
    this.#limits = parts.limits;
    this.#serve = parts.serve;
  }

  /** @returns false when the lane is full */
  add(lane: Lane, item: Item): boolean {
    const state = this.#lanes[lane];
    if (state.queue.length >= WAITING_MAX) state.queue = state.queue.filter(({ isSettled }) => !isSettled);
    if (state.queue.length >= WAITING_MAX) return false;
    state.queue.push(item);
    if (state.queue.length >= this.#limits().textsMax) {
      state.isDue = true;
      this.#start();
    } else if (state.queue.length === 1) {
      void this.#gather(state);
    }
    return true;
  }

  /** Takes out everything that waits; requests in flight continue. */
  clear(): Item[] {
    return LANES.flatMap((lane) => this.#lanes[lane].queue.splice(0));
  }

  async #gather(state: LaneState<Item>): Promise<void> {
    await this.#clock.sleep(GATHER_MS);
    state.isDue = true;
    this.#start();
  }

  #start(): void {
    for (const lane of LANES) {
      const state = this.#lanes[lane];
      while (
        state.isDue &&
        this.#lanes.query.underWay + this.#lanes.memory.underWay < UNDER_WAY_MAX &&
        state.underWay < UNDER_WAY_OF_LANE_MAX
      ) {
        const items = takeBatch(state.queue, this.#limits()).filter(({ isSettled }) => !isSettled);
        if (state.queue.length === 0) state.isDue = false;
        if (items.length > 0) void this.#run(state, items);
      }
    }
  }

  async #run(state: LaneState<Item>, items: Item[]): Promise<void> {
    state.underWay++;
    try {
      await this.#serve(items);
    } finally {
      state.underWay--;
      this.#start();
    }
  }
}
