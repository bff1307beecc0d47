/**
 * Finds out what a provider's cosines mean, by pairs of texts of which it is known whether they have to do with each other.
 *
 * ```
 *  cosine   0.05        0.20         0.35                 0.60
 *  pairs    ×××××××××××××××  ×    ○  ○○○○○○○○○○○○○○○○○○○○○○○
 *                │           │                         │
 *        of unrelated     relevant                   of same
 * ```
 *
 * One model gives unrelated texts 0.1, another 0.7; a stretch from the one mark to the other makes them alike, and the
 * cosine that parts the pairs best becomes the score 0.7. The worse it parts them, the more words count. Pure but for
 * `embed`; nothing is stored here.
 *
 * @module
 */
import { RELATED_PROBES, UNRELATED_PROBES } from "./probes.ts";
import type { TextKind } from "./remote/batch-queue.ts";
import type { Calibration } from "./score.ts";

export interface MeasuredCosines {
  /** From here on a text is about the query. May be set by hand. */
  readonly relevantCosine: number;
  /** The middle one of unrelated pairs. */
  readonly cosineOfUnrelated: number;
  /** Cosine that one in ten related pairs reaches: there is little to be told apart beyond it. */
  readonly cosineOfSame: number;
  /** Share of the pairs on the right side of `relevantCosine`, 0 to 1; chance gives 0.5, and below 0.8 a model is of little use. */
  readonly separation: number;
}

/** @returns vectors of unit length, in the order of the texts */
export type Embed = (texts: string[], kind: TextKind) => Promise<Float32Array[]>;

/** Measures a provider with two calls of `embed`. The same vectors always give the same figures. */
export async function calibrate(embed: Embed): Promise<MeasuredCosines> {
  const pairs = [...RELATED_PROBES, ...UNRELATED_PROBES];
  const vectors = (kind: TextKind) =>
    embed(
      pairs.map((pair) => pair[kind]),
      kind,
    );
  const [queries, memories] = [await vectors("query"), await vectors("memory")];
  const cosines = queries.map((query, i) => cosine(query, memories[i]!));
  return measure(cosines.slice(0, RELATED_PROBES.length), cosines.slice(RELATED_PROBES.length));
}

/** The figures of two sets of cosines, each of at least one. */
export function measure(related: readonly number[], unrelated: readonly number[]): MeasuredCosines {
  const relevantCosine = bestBetween(related, unrelated);
  const right = related.filter((value) => value >= relevantCosine).length + unrelated.filter((value) => value < relevantCosine).length;
  return {
    relevantCosine: rounded(relevantCosine),
    cosineOfUnrelated: rounded(quantile(unrelated, 0.5)),
    cosineOfSame: rounded(quantile(related, 0.9)),
    separation: rounded(right / (related.length + unrelated.length)),
  };
}

/**
 * The middle of the gap between two neighbouring cosines that puts the greatest share of each kind on its side: of equally
 * good gaps the widest, of equally wide ones the lowest.
 */
function bestBetween(related: readonly number[], unrelated: readonly number[]): number {
  const all = Array.from(new Set([...related, ...unrelated])).sort((a, b) => a - b);
  let best = { accuracy: -1, width: 0, middle: all[0]! };
  for (let i = 1; i < all.length; i++) {
    const [below, above] = [all[i - 1]!, all[i]!];
    const accuracy =
      related.filter((value) => value >= above).length / related.length +
      unrelated.filter((value) => value <= below).length / unrelated.length;
    const width = above - below;
    if (accuracy > best.accuracy + 1e-9 || (accuracy > best.accuracy - 1e-9 && width > best.width)) {
      best = { accuracy: Math.max(accuracy, best.accuracy), width, middle: (below + above) / 2 };
    }
  }
  return best.middle;
}

/**
 * The weight of words in a score, by how well a model tells the probes apart. One that hardly does is helped most by as much weight as
 * the built-in provider gives them: with vectors of meaning alone, recall@10 of LoCoMo's questions is 66.8 % at a half and 61.4 % at a
 * quarter. A good model knows synonyms and context better than the table: there a half brings texts over the line that
 * only share words (19 of 100 probes on the wrong side, 8 at a quarter), and a quarter is enough for a name or an id to decide between
 * near equals.
 */
const LEXICAL_SHARE_MAX = 0.5;
const LEXICAL_SHARE_MIN = 0.25;
/** Up to the one separation words have their largest share, from the other on their smallest. */
const SEPARATION_LOW = 0.8;
const SEPARATION_HIGH = 0.9;

/** Share of the query that a memory on the line covers by its words; with this the probes fall right oftenest, words and all. */
const COVERED_ON_THE_LINE = 0.2;

/** Range of the line between the two marks, so that the score still rises on both sides of it. */
const LINE_MIN = 0.1;
const LINE_MAX = 0.8;

/** Marks that fall together are kept this far apart. */
const APART_MIN = 0.01;

/**
 * The calibration by what was measured. A memory whose cosine is `relevantCosine` scores 0.7 if a fifth
 * of the query is met by its words; the two marks give way where they leave no space for that.
 */
export function calibrationOf({ relevantCosine, cosineOfUnrelated, cosineOfSame, separation }: MeasuredCosines): Calibration {
  const above = Math.max((relevantCosine - cosineOfUnrelated) * (1 / LINE_MAX - 1), APART_MIN);
  const high = Math.max(cosineOfSame, relevantCosine + above);
  const low = Math.min(cosineOfUnrelated, relevantCosine - ((high - relevantCosine) * LINE_MIN) / (1 - LINE_MIN));
  const line = (relevantCosine - low) / (high - low);
  const lexicalShare = lexicalShareAt(separation);
  return {
    kind: "measured",
    lexicalShare,
    cosineOfUnrelated: low,
    cosineOfSame: high,
    relevant: (1 - lexicalShare) * line + lexicalShare * COVERED_ON_THE_LINE,
  };
}

function lexicalShareAt(separation: number): number {
  const good = Math.max(0, Math.min(1, (separation - SEPARATION_LOW) / (SEPARATION_HIGH - SEPARATION_LOW)));
  return LEXICAL_SHARE_MAX + good * (LEXICAL_SHARE_MIN - LEXICAL_SHARE_MAX);
}

/** @param share - 0.5 is the middle; between two values they are mixed */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)]!;
  return below + (sorted[Math.ceil(place)]! - below) * (place - Math.floor(place));
}

function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** Four decimals: more would be noise, and are no pleasure to read in settings. */
function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
