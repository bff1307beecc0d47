/**
 * The only source of chance that is no secret: it spreads retries and starts ids. A test can hand in another.
 *
 * @module
 */
export type Chance = () => number;

/** 0 (included) to 1 (excluded). */
export const chance: Chance = () => Math.random();
