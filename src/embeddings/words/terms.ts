/**
 * The terms of texts, for every provider: what a memory is stored with, and what a query asks for.
 *
 * @module
 */
import { distinct } from "../../lib/distinct.ts";
import { memoize } from "../../lib/memoize.ts";
import { type Embedding, NO_VECTOR, type QueryTerms, type TermId } from "../embedder.ts";
import { kindAt, UNSPACED } from "./characters.ts";
import { Splitter } from "./splitter.ts";

/** Changes whenever the terms of the same text would change, so that stored ones are replaced. */
export const TERMS_VERSION = "terms-3";

const splitter = new Splitter();

/** Forgets the words that texts were split into. */
export const wordsSplit = { forget: () => splitter.forget() };

/** Returns the terms of a memory as they are stored: ascending, with the fingerprint as the last. */
export function memoryTerms(text: string): Uint32Array {
  const { terms, symbols, fingerprint } = splitter.memory(text);
  if (terms.length === 0) return new Uint32Array(0);
  const all = new Uint32Array(terms.length + symbols.length + 1);
  all.set(terms);
  all.set(symbols, terms.length);
  all[all.length - 1] = fingerprint;
  return distinct(all);
}

/** A memory by its words alone. */
export function wordsOf(text: string): Embedding {
  return { vector: NO_VECTOR, terms: memoryTerms(text) };
}

/** @param weightOf - what a word weighs, as the query writes it */
export function queryTerms(text: string, weightOf: (word: string) => number): QueryTerms {
  const written = new Spellings();
  const { terms, fingerprint } = splitter.query(text, (term, surface) => written.add(term, surface));
  const ids = distinct(terms);
  writeAsIn(text, written);
  const weights = new Float64Array(ids.length);
  for (let i = 0; i < ids.length; i++) weights[i] = weightOf(written.get(ids[i]!) ?? "");
  return { text, ids, weights, fingerprint };
}

/**
 * Returns how a text writes its terms, for readers, in the order of the text: `Caroline's` → "Caroline's" for the term `carolin`; the
 * first spelling of each. A piece of several terms gives each its own characters.
 */
export function spellings(text: string, kind: "memory" | "query"): Spellings {
  const spelled = new Spellings();
  splitter[kind](text, (term, surface) => spelled.add(term, surface));
  writeAsIn(text, spelled);
  return spelled;
}

/** Has terms spelled as the text writes them: by the first piece that is such a term alone. */
function writeAsIn(text: string, spelled: Spellings): void {
  for (const [piece] of text.matchAll(WRITTEN_PIECE)) {
    if (piece.length > PAIR_LENGTH_MAX && kindAt(piece, 0) >= UNSPACED) continue;
    spelled.write(onlyTermOf(piece), piece);
  }
}

/** Mark of a piece of several terms. */
const SEVERAL = -1;
/** The term that a piece is, where it is one alone. Most pieces are words that come again. */
const onlyTermOf = memoize((piece: string): TermId => {
  const { terms } = splitter.query(piece);
  return terms.length === 1 ? terms[0]! : SEVERAL;
});

/** An odd multiplier, random in each process: without it texts could be made whose terms all meet in one place of a map. */
const KEY = crypto.getRandomValues(new Uint32Array(1))[0]! | 1;

interface Spelling {
  readonly term: TermId;
  spelling: string;
  isAsWritten: boolean;
}

/** Spellings by term, in the order in which the terms came. */
class Spellings implements Iterable<readonly [TermId, string]> {
  readonly #byKey = new Map<number, Spelling>();

  get(term: TermId): string | undefined {
    return this.#byKey.get(Math.imul(term, KEY))?.spelling;
  }

  /** Adds a term that is none of them yet. */
  add(term: TermId, spelling: string): void {
    const key = Math.imul(term, KEY);
    if (!this.#byKey.has(key)) this.#byKey.set(key, { term, spelling, isAsWritten: false });
  }

  /** Spells one of the terms as the text does, the first time. */
  write(term: TermId, spelling: string): void {
    const known = this.#byKey.get(Math.imul(term, KEY));
    if (known === undefined || known.isAsWritten) return;
    known.spelling = spelling;
    known.isAsWritten = true;
  }

  *[Symbol.iterator](): Iterator<readonly [TermId, string]> {
    for (const { term, spelling } of this.#byKey.values()) yield [term, spelling];
  }
}

/** From the first to the last letter or digit of a run without spaces. */
const WRITTEN_PIECE = /[\p{L}\p{N}](?:[^\s]{0,80}[\p{L}\p{N}\p{M}])?/gu;

/** Two characters of a script without spaces are one term and have at most this many units; more are several terms. */
const PAIR_LENGTH_MAX = 8;
