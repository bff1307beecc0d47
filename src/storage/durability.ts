/**
 * Durability of a commit: strict, once it is on the disk; relaxed, once others see it, with the flush to follow.
 *
 * @module
 */
export const DURABILITIES = ["strict", "relaxed"] as const;
export type Durability = (typeof DURABILITIES)[number];
