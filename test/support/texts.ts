/**
 * Texts by chance.
 *
 * @module
 */
import type { Chance } from "./process.ts";

export const letters = (chance: Chance, length: number, alphabet = "abcdefghijklmnopqrstuvwxyz"): string =>
  Array.from({ length }, () => alphabet[chance.below(alphabet.length)]).join("");

/** Returns a text of words that no other has. */
export function manyRareWords(chance: Chance, length: number): string {
  let text = "";
  while (text.length < length) text += `${letters(chance, 8)} `;
  return text.slice(0, length);
}
