/**
 * The terms of texts, for every provider: what a memory is stored with, and what a query asks for.
 *
 * @module
 */
import { distinct } from "../../lib/distinct.ts";
import { type Embedding, NO_VECTOR, type QueryTerms, type TermId } from "../embedder.ts";
import { kindAt, UNSPACED } from "./characters.ts";
import { Splitter } from "./splitter.ts";

/** Changes whenever the terms of the same text would change, so that stored ones are replaced. */
export const TERMS_VERSION = "terms-3";

const splitter = new Splitter();

/** Returns the terms of a memory as they are stored: ascending, with the fingerprint as the last. */
export function memoryTerms(text: string): Uint32Array {
  const { terms, symbols, fingerprint } = splitter.memory(text);
  return terms.length === 0 ? new Uint32Array(0) : distinct([...terms, ...symbols, fingerprint]);
}

/** A memory by its words alone. */
export function wordsOf(text: string): Embedding {
  return { vector: NO_VECTOR, terms: memoryTerms(text) };
}

/** @param weightOf - what a word weighs, as the query writes it */
export function queryTerms(text: string, weightOf: (word: string) => number): QueryTerms {
  const { terms, fingerprint } = splitter.query(text);
  const ids = distinct(terms);
  const written = spellings(text, "query");
  return { text, ids, weights: Float64Array.from(ids, (id) => weightOf(written.get(id) ?? "")), fingerprint };
}

/**
 * Returns how a text writes its terms, for readers, in the order of the text: `Caroline's` → "Caroline's" for the term `carolin`; the
 * first spelling of each. A piece of several terms gives each its own characters.
 */
export function spellings(text: string, kind: "memory" | "query"): Spellings {
  const spelled = new Spellings();
  splitter[kind](text, (term, surface) => {
    if (spelled.get(term) === undefined) spelled.set(term, surface);
  });
  const original = new Spellings();
  for (const [piece] of text.matchAll(WRITTEN_PIECE)) {
    if (piece.length > PAIR_LENGTH_MAX && kindAt(piece, 0) >= UNSPACED) continue;
    const { terms } = splitter.query(piece);
    const [term] = terms;
    if (terms.length !== 1 || term === undefined || original.get(term) !== undefined || spelled.get(term) === undefined) continue;
    spelled.set(term, piece);
    original.set(term, piece);
  }
  return spelled;
}

/** An odd multiplier, random in each process: without it texts could be made whose terms all meet in one place of a map. */
const KEY = crypto.getRandomValues(new Uint32Array(1))[0]! | 1;

/** Spellings by term, in the order in which the terms came. */
class Spellings implements Iterable<readonly [TermId, string]> {
  readonly #byKey = new Map<number, readonly [TermId, string]>();

  get(term: TermId): string | undefined {
    return this.#byKey.get(Math.imul(term, KEY))?.[1];
  }

  set(term: TermId, spelling: string): void {
    this.#byKey.set(Math.imul(term, KEY), [term, spelling]);
  }

  [Symbol.iterator](): Iterator<readonly [TermId, string]> {
    return this.#byKey.values();
  }
}

/** From the first to the last letter or digit of a run without spaces. */
const WRITTEN_PIECE = /[\p{L}\p{N}](?:[^\s]{0,80}[\p{L}\p{N}\p{M}])?/gu;

/** Two characters of a script without spaces are one term and have at most this many units; more are several terms. */
const PAIR_LENGTH_MAX = 8;
