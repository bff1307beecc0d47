/**
 * The built-in provider: embeds text in microseconds, without a network, a model file or a key.
 *
 * A vector has three parts. Words are hashed into places, so texts that share a rare word are near whatever its meaning;
 * the meanings of the words are summed, so texts about the same thing are near without sharing a word; and a memory that
 * says little gives up part of its length to the last place, because one shared word would otherwise be nearly all of it:
 *
 * ```
 * [0, 1279)  words, two signed places each  |  [1279, 1535)  meaning  |  [1535]  length; always 0 in a query
 * ```
 *
 * Deterministic: sums are exact, `Math.sqrt` is rounded correctly everywhere, and the few values of `Math.log` and
 * `Math.pow` are rounded to 20 bits before use, so that an engine's last bit cannot show. Nothing depends on other
 * memories; the same text has the same vector for ever, or `version` changes.
 *
 * @module
 */
import { kindAt, UNSPACED } from "./characters.ts";
import {
  bucketOf,
  DIMENSION_MAX,
  type EmbeddedQuery,
  type Embedder,
  type Embedding,
  LENGTH_PLACE,
  NO_VECTOR,
  type QueryParts,
  type QueryTerms,
  type TermId,
  WHOLE_WORTH,
  WORD_PLACES,
} from "../embedder.ts";
import { MEANING_DIMENSION, mix, type Semantics, semantics } from "./semantics.ts";
import type { Term } from "./term-table.ts";
import { type Cut, TermCutter } from "./terms.ts";

/** Share of meaning in the square of a vector's length; words have the rest. */
const MEANING_SHARE = 0.35;
const WORD_LENGTH = Math.sqrt(1 - MEANING_SHARE);
const MEANING_LENGTH = Math.sqrt(MEANING_SHARE);

/** The least length of a memory of one common word, and its cosine with a query of that word: longer memories are nearer. */
const LENGTH_MIN = 0.3;

/** What signs have of the square of the length that a memory of words gives up: so they change no cosine with words. */
const SIGN_SHARE = 0.8;
/** Signs that weigh less are in nearly every text, and have no part in it. */
const SIGN_WEIGHT_MIN = 0.5;

/** What makes two places of one hash. */
const FIRST_PLACE = 0x2545f491;
const SECOND_PLACE = 0x51ed270b;

/** A word that occurs n times counts 1 + 0.5 × ln n times. */
const REPEAT = 0.5;
const repeats = Float64Array.from({ length: 64 }, (_, count) => (count === 0 ? 0 : 1 + REPEAT * rounded(Math.log(count))));

function rounded(value: number): number {
  return Math.round(value * 2 ** 20) / 2 ** 20;
}

/** Scratch of one embedding, all zero between two: embedding is synchronous, so one of each is enough. */
const words = new Float64Array(WORD_PLACES);
const meaning = new Float64Array(MEANING_DIMENSION);

/** What terms come to, of at least one: their words and meaning are in the scratch of this embedding until they are taken. */
interface Sums {
  /** Two of each term. */
  readonly places: Uint16Array;
  readonly meaningScale: number;
  /** By which words and meaning are multiplied. */
  readonly scale: number;
  /** What words and meaning together are long. */
  readonly length: number;
}

function sumsOf(table: Semantics, terms: readonly Term[], isQuery: boolean): Sums {
  const places = new Uint16Array(2 * terms.length);
  const rows = new Int32Array(terms.length);
  const weights = new Float64Array(terms.length);
  let wordSquares = 0;
  for (let i = 0; i < terms.length; i++) {
    const { hash, row, weight: base, count } = terms[i]!;
    const weight = base * repeats[count < repeats.length ? count : repeats.length - 1]!;
    const [first, second] = [mix(hash ^ FIRST_PLACE), mix(hash ^ SECOND_PLACE)];
    const place = placeOf(first);
    const otherPlace = otherPlaceOf(second, place);
    wordSquares += addWord(place, first, weight) + addWord(otherPlace, second, weight);
    places[2 * i] = place;
    places[2 * i + 1] = otherPlace;
    rows[i] = row;
    weights[i] = weight;
  }
  table.sum(rows, weights, meaning);
  let meaningSquares = 0;
  for (let i = 0; i < MEANING_DIMENSION; i++) meaningSquares += meaning[i]! * meaning[i]!;

  // The square of the meaning's length becomes the geometric mean of its own and the words': what has little meaning says little.
  const meaningScale = meaningSquares > 0 ? MEANING_LENGTH * Math.sqrt(Math.sqrt(wordSquares / meaningSquares)) : 0;
  const square = wordSquares * WORD_LENGTH * WORD_LENGTH + meaningSquares * meaningScale * meaningScale;
  const length = isQuery ? 1 : lengthOf(square);
  const scale = length / Math.sqrt(square);
  return { places, meaningScale, scale, length };
}

/** Takes the words: the number of each place, or zero where a word before it had the same place. */
function takeWords({ places, scale }: Sums): Float32Array {
  const wordScale = WORD_LENGTH * scale;
  const numbers = new Float32Array(places.length);
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!;
    numbers[i] = words[place]! * wordScale;
    words[place] = 0;
  }
  return numbers;
}

/** Takes the meaning. @param from - the place of its first number */
function takeMeaning({ meaningScale, scale }: Sums, vector: Float32Array, from: number): void {
  for (let i = 0; i < MEANING_DIMENSION; i++) vector[from + i] = meaning[i]! * meaningScale * scale;
  meaning.fill(0);
}

function memoryVector(table: Semantics, { terms, signs }: Cut): Float32Array {
  if (terms.length === 0) return emptyVector();
  const sums = sumsOf(table, terms, false);
  const { places, length } = sums;
  const vector = new Float32Array(DIMENSION_MAX);
  putWords(places, takeWords(sums), vector);
  takeMeaning(sums, vector, WORD_PLACES);
  vector[LENGTH_PLACE] = Math.sqrt(1 - length * length - putSigns(signs, SIGN_SHARE * (1 - length * length), vector));
  return vector;
}

function putWords(places: Uint16Array, numbers: Float32Array, vector: Float32Array): void {
  for (let i = 0; i < places.length; i++) if (numbers[i] !== 0) vector[places[i]!] = numbers[i]!;
}

/** Keeps the few numbers that are not zero: hardly anybody asks for the vector, which is memory that has to be cleared for each search. */
class LocalQuery implements EmbeddedQuery {
  readonly lexical: QueryTerms;
  readonly #parts: QueryParts;

  constructor(table: Semantics, text: string, cut: Cut) {
    this.lexical = queryTermsOf(table, text, cut);
    // A query that says nothing is equally far from everything.
    this.#parts = cut.terms.length === 0 ? NO_PARTS : queryParts(table, cut);
  }

  get parts(): QueryParts {
    return this.#parts;
  }

  get vector(): Float32Array {
    const { places, numbers, rest, restFrom } = this.#parts;
    const vector = new Float32Array(DIMENSION_MAX);
    putWords(places, numbers, vector);
    vector.set(rest, restFrom);
    return vector;
  }
}

const NO_PARTS: QueryParts = { places: new Uint16Array(0), numbers: new Float32Array(0), rest: new Float32Array(0), restFrom: WORD_PLACES };

function queryParts(table: Semantics, { terms }: Cut): QueryParts {
  const sums = sumsOf(table, terms, true);
  const rest = new Float32Array(MEANING_DIMENSION);
  takeMeaning(sums, rest, 0);
  return { places: sums.places, numbers: takeWords(sums), rest, restFrom: WORD_PLACES };
}

/** Puts signs of this square of a length where no word is. @returns that square, or 0 where there are no signs */
function putSigns(signs: readonly Term[], square: number, vector: Float32Array): number {
  const places: number[] = [];
  const put = (at: number, hash: number) => {
    if (vector[at] !== 0) return;
    vector[at] = (hash & 1) === 0 ? 1 : -1;
    places.push(at);
  };
  for (const { hash, weight } of signs) {
    if (weight < SIGN_WEIGHT_MIN) continue;
    const [first, second] = [mix(hash ^ FIRST_PLACE), mix(hash ^ SECOND_PLACE)];
    const place = placeOf(first);
    put(place, first);
    put(otherPlaceOf(second, place), second);
  }
  if (places.length === 0) return 0;
  const scale = Math.sqrt(square / places.length);
  for (const place of places) vector[place]! *= scale;
  return square;
}

/** A hash's place: its upper 16 bits spread over them. The lowest bit is the sign. */
function placeOf(hash: number): number {
  return ((hash >>> 16) * WORD_PLACES) >>> 16;
}

/** A word's second place, never its first: with opposite signs nothing would be left of the word. */
function otherPlaceOf(hash: number, first: number): number {
  const place = placeOf(hash);
  return place === first ? (place + 1) % WORD_PLACES : place;
}

/** Adds a word to its place, with the sign of its hash. @returns how much the sum of squares grew: two words may share a place */
function addWord(place: number, hash: number, weight: number): number {
  const signed = (hash & 1) === 0 ? weight * Math.SQRT1_2 : -weight * Math.SQRT1_2;
  const before = words[place]!;
  words[place] = before + signed;
  return signed * (2 * before + signed);
}

/**
 * What a memory keeps of its length 1, by the square of what its words weigh: 0.34 of one rare word, 0.67 of ten, 0.93 of a
 * hundred. Plain cosine takes the shortest text that has a word for the best; this takes part of that back.
 */
function lengthOf(square: number): number {
  return Math.max(LENGTH_MIN, Math.min(1, rounded(Math.sqrt(square) / Math.pow(square + 3, 0.4) / 1.688)));
}

/** Ids and fingerprint as they are stored: ascending. */
function termsOf({ terms, signs, fingerprint }: Cut): Uint32Array {
  if (terms.length === 0) return new Uint32Array(0);
  const ids = new Uint32Array(terms.length + signs.length + 1);
  for (let i = 0; i < terms.length; i++) ids[i] = terms[i]!.id;
  for (let i = 0; i < signs.length; i++) ids[terms.length + i] = signs[i]!.id;
  ids[ids.length - 1] = fingerprint;
  return ids.sort();
}

/** A neighbour worth less than this (of 255) decides nothing; without them a query is a third quicker to prepare. */
const NEIGHBOUR_WORTH_MIN = 40;

/** A roomy table says "not here" at the first look, and nearly every look is for a term that is not there; while it is small. */
const ROOMY = 8;
const FEW_ANSWERS = 2000;

/** @param weightOf - where words weigh by something else than the table, which then says nothing of what is near to them either */
function queryTermsOf(table: Semantics, text: string, { terms, fingerprint }: Cut, weightOf?: (term: TermId) => number): QueryTerms {
  const { neighboursPerRow, neighbourRows, neighbourWorths } = table;
  const ids = new Uint32Array(terms.length);
  const weights = new Float64Array(terms.length);
  let answerCount = terms.length;
  for (const term of terms) if (term.row >= 0 && weightOf === undefined) answerCount += neighboursPerRow;
  let bucketCount = 16;
  while (bucketCount < (answerCount < FEW_ANSWERS ? ROOMY : 2) * answerCount) bucketCount *= 2;
  const buckets = new Uint32Array(bucketCount);
  const keys = new Uint32Array(answerCount + 1);
  const answers = new Uint32Array(answerCount + 1);
  const next = new Uint32Array(answerCount + 1);
  let entries = 0;
  const put = (key: TermId, answer: number): void => {
    const bucket = bucketOf(key, bucketCount - 1);
    entries++;
    keys[entries] = key;
    answers[entries] = answer;
    next[entries] = buckets[bucket]!;
    buckets[bucket] = entries;
  };
  for (let index = 0; index < terms.length; index++) {
    const { id, row, weight } = terms[index]!;
    ids[index] = id;
    weights[index] = weightOf === undefined ? weight : weightOf(id);
    put(id, index * 256 + WHOLE_WORTH);
    if (row < table.wordsFrom || weightOf !== undefined) continue; // Only the number itself will do: 1912 is not 1913, however near in meaning.
    for (let i = row * neighboursPerRow, end = i + neighboursPerRow; i < end && neighbourWorths[i]! >= NEIGHBOUR_WORTH_MIN; i++) {
      put(neighbourRows[i]!, index * 256 + neighbourWorths[i]!);
    }
  }
  return { text, size: terms.length, ids, weights, fingerprint, buckets, keys, answers, next };
}

/** The vector of a memory that says nothing: near to no query, since a query's last place is 0. */
export function emptyVector(): Float32Array {
  const vector = new Float32Array(DIMENSION_MAX);
  vector[LENGTH_PLACE] = 1;
  return vector;
}

let loadedCutter: TermCutter | undefined;

function cutter(): TermCutter {
  loadedCutter ??= new TermCutter(semantics());
  return loadedCutter;
}

/** The terms of a memory, as `Embedding.terms`; for providers that bring a vector of their own. */
export function memoryTerms(text: string): Uint32Array {
  return termsOf(cutter().memory(text));
}

/** The terms of a query that count alone, without what is near to them. @param weightOf - what a word weighs, as the query writes it */
export function plainQueryTerms(text: string, weightOf: (word: string) => number): QueryTerms {
  const cut = cutter().query(text);
  const written = spellings(text, "query");
  return queryTermsOf(semantics(), text, cut, (id) => weightOf(written.get(id) ?? ""));
}

/** The terms of a query, as `EmbeddedQuery.lexical`; for providers that bring a vector of their own. */
export function queryTerms(text: string): QueryTerms {
  return queryTermsOf(semantics(), text, cutter().query(text));
}

/**
 * How a text writes its terms, for readers: `Caroline's` → "Caroline's" for the term `carolin`; the first spelling of each.
 * A piece of several terms gives each its own characters.
 */
export function spellings(text: string, kind: "memory" | "query"): Map<TermId, string> {
  const spelled = new Map<TermId, string>();
  cutter()[kind](text, (term, surface) => {
    if (!spelled.has(term.id)) spelled.set(term.id, surface);
  });
  const original = new Set<TermId>();
  for (const [piece] of text.matchAll(WRITTEN_PIECE)) {
    if (piece.length > PAIR_LENGTH_MAX && kindAt(piece, 0) >= UNSPACED) continue;
    const { terms } = cutter().query(piece);
    const id = terms[0]?.id;
    if (terms.length !== 1 || id === undefined || original.has(id) || !spelled.has(id)) continue;
    spelled.set(id, piece);
    original.add(id);
  }
  return spelled;
}

/** From the first to the last letter or digit of a run without spaces. */
const WRITTEN_PIECE = /[\p{L}\p{N}](?:[^\s]{0,80}[\p{L}\p{N}\p{M}])?/gu;

/** Two characters of a script without spaces are one term and have at most this many units; more are several terms. */
const PAIR_LENGTH_MAX = 8;

/** A memory by its words alone. */
export function wordsOf(text: string): Embedding {
  return { vector: NO_VECTOR, terms: memoryTerms(text) };
}

/** The built-in embedder. The table of meanings is read with the first text, once per process. */
export const localEmbedder = {
  /** Changes whenever the vector or the terms of the same text would change, so that stored ones are replaced. */
  version: "local-2",
  embedMemory(text: string): Embedding {
    const cut = cutter().memory(text);
    return { vector: memoryVector(semantics(), cut), terms: termsOf(cut) };
  },
  embedQuery(text: string): EmbeddedQuery {
    return new LocalQuery(semantics(), text, cutter().query(text));
  },
} satisfies Embedder & { version: string };
