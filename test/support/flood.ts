/**
 * Texts made to be slow: hash flooding.
 *
 * @module
 */
import { SYMBOL } from "../../src/embeddings/embedder.ts";
import { mix } from "../../src/lib/hash.ts";

const SYLLABLES_FROM = 0xac00;
const SYLLABLES = 11_172;

/** Different Korean syllables, as any text of them: nearly every pair is a term of its own. */
export function syllables(length: number, seed = 1): string {
  let state = seed;
  let text = "";
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    text += String.fromCharCode(SYLLABLES_FROM + ((state >>> 8) % SYLLABLES));
  }
  return text;
}

/**
 * Korean syllables whose pairs have ids that Fibonacci hashing, the usual one without a key, puts into 8 neighbouring slots of
 * a table of 32,768.
 */
export function floodingSyllables(length: number): string {
  const used = new Set<string>();
  let text = String.fromCharCode(SYLLABLES_FROM);
  while (text.length < length) {
    const last = text.at(-1)!;
    const hash = Math.imul(mix(last.charCodeAt(0)), 31);
    let found: string | undefined;
    for (let unit = SYLLABLES_FROM; unit < SYLLABLES_FROM + SYLLABLES && found === undefined; unit++) {
      const id = mix(hash + unit);
      const slot = (Math.imul(id < SYMBOL ? id : id - SYMBOL, 0x9e3779b1) >>> 12) & 32_767;
      if (slot >>> 3 === 128 && !used.has(last + String.fromCharCode(unit))) found = last + String.fromCharCode(unit);
    }
    // From here no pair leads on.
    found ??= last + syllables(1, text.length);
    used.add(found);
    text += found[1];
  }
  return text;
}
