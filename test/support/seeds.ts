/**
 * Steps by chance, repeated with many seeds: what an adapter does and what its framework's own implementation in memory does.
 *
 * @module
 */
import { Chance, inTurns } from "./process.ts";
import { longRounds } from "./rounds.ts";

const ASKED_SEED = process.env["CAIRN_TEST_SEED"];
const SEEDS = ASKED_SEED === undefined ? Array.from({ length: longRounds(50, 500) }, (_, i) => i + 1) : [Number(ASKED_SEED)];
const AT_ONCE = 5;

/** Runs `steps` with 50 seeds, or many more with `scripts/test --all`, or with that of CAIRN_TEST_SEED. A failure says which seed it was. */
export async function withSeeds(steps: (chance: Chance, seed: number) => Promise<void>): Promise<void> {
  await inTurns(SEEDS, AT_ONCE, async (seed) => {
    try {
      await steps(new Chance(seed), seed);
    } catch (error) {
      if (error instanceof Error) error.message = `Seed ${seed}: ${error.message}\n\nCAIRN_TEST_SEED=${seed} repeats it.`;
      throw error;
    }
  });
}

/** One of several, which are at least one. */
export function pick<Item>(chance: Chance, items: readonly Item[]): Item {
  return items[chance.below(items.length)] as Item;
}
