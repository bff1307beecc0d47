/**
 * From a cosine and what words cover to one score: the only place where that is decided. Pure.
 *
 * ```
 *               closeness                                              score
 * builtin       (cosine + 0.6 × coverage²) / 1.6                       straight to 0.7, then ever slower towards 1
 * others        a share of coverage, the rest of nearness: cosine      a smooth bend through 0.7
 *               stretched so that what is about the same reaches 1
 * no vector     coverage alone, 0.7 where half is covered              as of the provider
 * ```
 *
 * Closeness tells which of many texts score best, and is at most what `vectors/row-comparer.ts` takes for its bound. The score depends on
 * the two texts alone, and 0.7 says "this is about it" for every provider.
 *
 * @module
 */
import { NO_COSINE } from "./embedder.ts";

/** What has to be known of a provider. */
export interface Calibration {
  readonly kind: "builtin" | "measured";
  /** How much words count, against meaning, 0 to 1. */
  readonly lexicalShare: number;
  /** The cosine of texts that have nothing to do with each other, and that of texts about the same thing. */
  readonly cosineOfUnrelated: number;
  readonly cosineOfSame: number;
  /** The closeness that is shown as 0.7, between 0 and 0.7. */
  readonly relevant: number;
}

const RELEVANT_SCORE = 0.7;

/**
 * Measured on everyday memories in English and 16 languages, and on long conversations: squared coverage leaves most to meaning, and has
 * names and ids decide. At 0.7 one in five questions about something else entirely still gets an answer.
 */
const COVERAGE_WEIGHT = 0.6;
const BOTH = 1 + COVERAGE_WEIGHT;
/** By how much more than is relevant the rest of the way to 1 becomes a third. */
const DECAY = 0.3 / BOTH;

export const BUILTIN_CALIBRATION: Calibration = {
  kind: "builtin",
  lexicalShare: COVERAGE_WEIGHT / BOTH,
  cosineOfUnrelated: 0,
  cosineOfSame: 1,
  relevant: 0.219 / BOTH,
};

/** The provider `words`. */
export const WORDS_CALIBRATION: Calibration = { kind: "measured", lexicalShare: 1, cosineOfUnrelated: 0, cosineOfSame: 1, relevant: 0.5 };

/** The provider `local`, measured on public sets of conversations, questions and sentence pairs. */
export const LOCAL_CALIBRATION: Calibration = {
  kind: "measured",
  lexicalShare: 0.5,
  cosineOfUnrelated: 0,
  cosineOfSame: 0.4,
  relevant: 0.5,
};

/** Words alone never make a text the query's own. */
const WORDS_ALONE_MAX = 0.99;

/**
 * Says how close a text is to a query.
 *
 * @param coverage - share of the query's words that the text has, 0 to 1
 * @param cosine - of their vectors; `NO_COSINE` where one of them has none
 */
export function closenessOf(calibration: Calibration, coverage: number, cosine: number): number {
  const { kind, lexicalShare, relevant } = calibration;
  if (cosine === NO_COSINE) return Math.min(WORDS_ALONE_MAX, Math.min(1, 2 * relevant) * coverage);
  if (kind === "builtin") return (cosine + COVERAGE_WEIGHT * coverage * coverage) / BOTH;
  return lexicalShare * coverage + (1 - lexicalShare) * nearnessOf(calibration, cosine);
}

/** What is left of the way to 1 beyond `cosineOfSame`: little, so that only order changes there. */
const REST = 0.03;

/** How near two vectors are, 0 to 1. */
export function nearnessOf({ cosineOfUnrelated, cosineOfSame }: Calibration, cosine: number): number {
  const stretched = (cosine - cosineOfUnrelated) / (cosineOfSame - cosineOfUnrelated);
  return Math.max(0, Math.min(stretched, 1 - REST + REST * Math.min(1, cosine)));
}

/** The score of a closeness: 0 to 1, rising with it, to six decimals. */
export function scoreOfCloseness({ kind, relevant }: Calibration, closeness: number): number {
  return rounded(kind === "builtin" ? straightThenSlower(closeness, relevant) : calibrated(closeness, relevant));
}

function straightThenSlower(closeness: number, relevant: number): number {
  if (closeness <= relevant) return Math.max(0, (RELEVANT_SCORE * closeness) / relevant);
  return RELEVANT_SCORE + (1 - RELEVANT_SCORE) * (1 - Math.exp((relevant - closeness) / DECAY));
}

/** A smooth rising map of 0 … 1 onto itself that takes `relevant` to 0.7. */
export function calibrated(both: number, relevant: number): number {
  const bend = ((1 - RELEVANT_SCORE) * relevant) / (RELEVANT_SCORE - relevant);
  return (both * (1 + bend)) / (both + bend);
}

/** Hides the last bits, in which machines may differ: how a cosine is summed up, how an engine takes a logarithm. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
