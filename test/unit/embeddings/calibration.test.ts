import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { calibrate, calibrationOf, type Embed, measure } from "../../../src/embeddings/calibration.ts";
import { OpenAiEmbedder } from "../../../src/embeddings/remote/openai.ts";
import { type ProbePair, RELATED_PROBES, UNRELATED_PROBES } from "../../../src/embeddings/probes.ts";
import { calibrated, type Calibration } from "../../../src/embeddings/score.ts";
import { memoryTerms } from "../../../src/embeddings/words/terms.ts";
import { explainer, relevance } from "../../../src/memories/relevance.ts";
import { startEmbeddingServer } from "../../support/embedding-server.ts";
import { FakeClock } from "../../support/clock.ts";
import { madeQueryTerms } from "../../support/made-embedder.ts";
import { embeddedQuery } from "../../support/meaning.ts";

const PAIRS = [...RELATED_PROBES, ...UNRELATED_PROBES];
/** The cosine is given: that there is a vector is enough. */
const ANY_VECTOR = new Float32Array(1);

function score({ query, memory }: ProbePair, cosine: number, calibration: Calibration): number {
  return relevance({ vector: ANY_VECTOR, lexical: madeQueryTerms(query) }, cosine, memoryTerms(memory), calibration);
}

/** How many standard deviations a pair lies from the middle of its kind: the quantiles of a normal distribution, shuffled. */
function deviation(place: number): number {
  const share = (((place * 7) % 30) + 0.5) / 30;
  // The logistic curve's, which is close enough.
  return Math.log(share / (1 - share)) / 1.702;
}

/** An imitation provider: what it says of each pair, and an `embed` whose vectors have just those cosines. */
function provider({ related, unrelated }: { related: number; unrelated: number }): { cosines: number[]; embed: Embed } {
  const cosines = PAIRS.map((_, i) => (i < RELATED_PROBES.length ? related : unrelated) + 0.2 * (related - unrelated) * deviation(i));
  const axisOf = (query: string) => PAIRS.findIndex((pair) => pair.query === query);
  return {
    cosines,
    embed: async (texts, kind) =>
      texts.map((text) => {
        const vector = new Float32Array(2 * PAIRS.length);
        const i = PAIRS.findIndex((pair) => pair[kind] === text);
        const cosine = kind === "query" ? 1 : cosines[i]!;
        vector[axisOf(PAIRS[i]!.query)] = cosine;
        vector[PAIRS.length + i] = Math.sqrt(1 - cosine * cosine);
        return vector;
      }),
  };
}

/** What different models say of the same pairs. */
const DISTRIBUTIONS = [
  { related: 0.35, unrelated: 0.1 },
  { related: 0.85, unrelated: 0.7 },
  { related: 0.6, unrelated: 0.3 },
];

describe("the probes", () => {
  test("are thirty related pairs and thirty that are not, none of them twice", () => {
    expect([RELATED_PROBES.length, UNRELATED_PROBES.length]).toEqual([30, 30]);
    expect(new Set(PAIRS.map(({ memory }) => memory)).size).toBe(60);
    expect(PAIRS.every(({ query, memory }) => madeQueryTerms(query).ids.length > 0 && memory.length <= 100)).toBe(true);
  });

  test("say related things in other words, and unrelated ones sometimes in the same", () => {
    const covered = ({ query, memory }: ProbePair) =>
      explainer({ vector: ANY_VECTOR, lexical: embeddedQuery(query).lexical })(0, memoryTerms(memory), memory).lexical;
    const related = RELATED_PROBES.map(covered);
    expect(related.reduce((sum, value) => sum + value, 0) / related.length).toBeLessThan(0.2);
    expect(UNRELATED_PROBES.map(covered).filter((value) => value > 0.4).length).toBe(10);
  });
});

describe("the relevant cosine", () => {
  const cases: { name: string; related: number[]; unrelated: number[]; cosine: number; separation: number }[] = [
    { name: "is the middle between two sets that lie apart", related: [0.6, 0.8], unrelated: [0.1, 0.4], cosine: 0.5, separation: 1 },
    {
      name: "puts as few as can be on the wrong side",
      related: [0.2, 0.6, 0.8],
      unrelated: [0.1, 0.3, 0.4],
      cosine: 0.5,
      separation: 0.8333,
    },
    {
      name: "is the middle of the widest of equally good gaps",
      related: [0.2, 0.6],
      unrelated: [0.1, 0.5],
      cosine: 0.15,
      separation: 0.75,
    },
    {
      name: "weighs both kinds alike, however many there are",
      related: [0.5],
      unrelated: [0.1, 0.2, 0.3, 0.6],
      cosine: 0.4,
      separation: 0.8,
    },
    { name: "stands where all cosines are the same", related: [0.5, 0.5], unrelated: [0.5, 0.5], cosine: 0.5, separation: 0.5 },
  ];
  for (const { name, related, unrelated, cosine, separation } of cases) {
    test(name, () => {
      expect(measure(related, unrelated)).toMatchObject({ relevantCosine: cosine, separation });
    });
  }

  test("is the best of all, and does not depend on the order of the pairs", () => {
    const some = fc.array(fc.integer({ min: -10, max: 10 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(some, some, (related, unrelated) => {
        const [near, far] = [related.map((value) => value / 10), unrelated.map((value) => value / 10)];
        const { relevantCosine } = measure(near, far);
        expect(measure(near.toReversed(), far.toReversed()).relevantCosine).toBe(relevantCosine);
        const accuracy = (line: number) =>
          near.filter((value) => value >= line).length / near.length + far.filter((value) => value < line).length / far.length;
        const lines = Array.from({ length: 21 }, (_, i) => (i - 10) / 10 + 0.05).filter((line) => line > Math.min(...near, ...far));
        const inside = lines.filter((line) => line < Math.max(...near, ...far));
        for (const line of inside) expect(accuracy(relevantCosine)).toBeGreaterThanOrEqual(accuracy(line) - 1e-9);
      }),
    );
  });
});

test("the other marks are the middle of unrelated pairs and what one in ten related ones reaches", () => {
  const tenths = Array.from({ length: 11 }, (_, i) => i / 10);
  expect(measure(tenths, [0.1, 0.2, 0.4])).toMatchObject({ cosineOfUnrelated: 0.2, cosineOfSame: 0.9 });
  expect(measure(tenths, [0.1, 0.2, 0.4, 0.5])).toMatchObject({ cosineOfUnrelated: 0.3 });
});

test("a memory on the line scores 0.7 with a fifth of the query's words, whatever the marks are", () => {
  const cosine = fc.double({ min: -1, max: 1, noNaN: true });
  fc.assert(
    fc.property(cosine, cosine, cosine, fc.double({ min: 0.5, max: 1, noNaN: true }), (relevantCosine, unrelated, same, separation) => {
      const calibration = calibrationOf({ relevantCosine, cosineOfUnrelated: unrelated, cosineOfSame: same, separation });
      const { lexicalShare, cosineOfUnrelated, cosineOfSame, relevant } = calibration;
      expect(cosineOfSame).toBeGreaterThan(cosineOfUnrelated);
      expect(relevant).toBeGreaterThan(0);
      expect(relevant).toBeLessThan(0.7);
      const nearness = (relevantCosine - cosineOfUnrelated) / (cosineOfSame - cosineOfUnrelated);
      expect(calibrated(lexicalShare * 0.2 + (1 - lexicalShare) * nearness, relevant)).toBeCloseTo(0.7, 6);
    }),
  );
});

test("marks that were measured are used as they are", () => {
  expect(calibrationOf({ relevantCosine: 0.2, cosineOfUnrelated: 0.1, cosineOfSame: 0.5, separation: 1 })).toEqual({
    kind: "measured",
    lexicalShare: 0.25,
    cosineOfUnrelated: 0.1,
    cosineOfSame: 0.5,
    relevant: expect.closeTo(0.75 * 0.25 + 0.05, 9),
  });
});

test("the worse a provider tells the probes apart, the more words count: from a quarter of the score to a half", () => {
  const shareAt = (separation: number) =>
    calibrationOf({ relevantCosine: 0.2, cosineOfUnrelated: 0.1, cosineOfSame: 0.5, separation }).lexicalShare;
  const shares = [1, 0.95, 0.9, 0.85, 0.8, 0.5].map(shareAt);
  for (const [i, share] of [0.25, 0.25, 0.25, 0.375, 0.5, 0.5].entries()) expect(shares[i]).toBeCloseTo(share, 9);
});

describe("a provider whose related pairs are about", () => {
  for (const distribution of DISTRIBUTIONS) {
    const { related, unrelated } = distribution;
    test(`${related} and others about ${unrelated}: related pairs score 0.7 and more, others less`, async () => {
      const { cosines, embed } = provider(distribution);
      const measured = await calibrate(embed);
      expect(measured.relevantCosine).toBeGreaterThan(unrelated);
      expect(measured.relevantCosine).toBeLessThan(related);
      expect(measured.separation).toBeGreaterThan(0.95);
      const scores = PAIRS.map((pair, i) => score(pair, cosines[i]!, calibrationOf(measured)));
      expect(scores.every((value) => value >= 0 && value <= 1)).toBe(true);
      expect(scores.slice(0, 30).filter((value) => value >= 0.7).length).toBeGreaterThanOrEqual(27);
      expect(scores.slice(30, 50).filter((value) => value < 0.7).length).toBeGreaterThanOrEqual(19);
      expect(scores.slice(50).filter((value) => value < 0.7).length).toBeGreaterThanOrEqual(7);
    });
  }
});

test("a pair scores alike, whichever provider measured it", async () => {
  const scores = await Promise.all(
    DISTRIBUTIONS.map(async (distribution) => {
      const { cosines, embed } = provider(distribution);
      const calibration = calibrationOf(await calibrate(embed));
      return PAIRS.map((pair, i) => score(pair, cosines[i]!, calibration));
    }),
  );
  const spread = PAIRS.map((_, i) => Math.max(...scores.map((of) => of[i]!)) - Math.min(...scores.map((of) => of[i]!)));
  expect(Math.max(...spread)).toBeLessThan(0.02);
});

test("a text scores exactly 1 for itself and no other text does, for every provider", async () => {
  for (const distribution of DISTRIBUTIONS) {
    const calibration = calibrationOf(await calibrate(provider(distribution).embed));
    for (const { memory } of PAIRS) expect(score({ query: memory, memory }, 0.99999, calibration)).toBe(1);
    for (const pair of PAIRS) expect(score(pair, 0.999, calibration)).toBeLessThan(1);
  }
});

test("a greater cosine never scores less, and scores stay between 0 and 1", async () => {
  const pair = { query: "tea for the doctor", memory: "the physician drinks tea" };
  for (const distribution of DISTRIBUTIONS) {
    const calibration = calibrationOf(await calibrate(provider(distribution).embed));
    const scores = Array.from({ length: 201 }, (_, i) => score(pair, (i - 100) / 100, calibration));
    expect(scores).toEqual(scores.toSorted((a, b) => a - b));
    expect(scores[0]).toBeGreaterThanOrEqual(0);
    expect(scores.at(-1)).toBeLessThanOrEqual(1);
  }
});

test("an id decides between memories that are equally near in meaning, and does not make up for distance", async () => {
  for (const distribution of DISTRIBUTIONS) {
    const calibration = calibrationOf(await calibrate(provider(distribution).embed));
    const query = "What about ORD-4471?";
    const right = score({ query, memory: "ORD-4471 was sent on Monday." }, distribution.related, calibration);
    const wrong = score({ query, memory: "ORD-4472 was sent on Monday." }, distribution.related, calibration);
    expect(right - wrong).toBeGreaterThan(0.05);
    expect(score({ query, memory: "ORD-4471 was sent on Monday." }, distribution.unrelated, calibration)).toBeLessThan(0.75);
  }
});

test("a provider is measured through its API with the prefixes of each kind, and a shift of its cosines changes no score", async () => {
  const scoresAt = async (unrelated: number) => {
    await using server = startEmbeddingServer({ unrelated });
    const clock = new FakeClock();
    const embedder = new OpenAiEmbedder({ base_url: server.baseUrl, query_prefix: "q: ", document_prefix: "d: " }, undefined, {
      clock,
      random: () => 1,
      resolve: () => Promise.resolve([]),
    });
    const calibration = calibrationOf(await calibrate((texts, kind) => embedder.embed(texts, kind)));
    expect(server.batches.flat().map((text) => text.slice(0, 3))).toEqual([...Array(60).fill("q: "), ...Array(60).fill("d: ")]);
    return await Promise.all(
      PAIRS.map(async ({ query, memory }) => {
        const [asked, { vector, terms }] = await Promise.all([embedder.embedQuery(query), embedder.embedMemory(memory)]);
        const cosine = asked.vector.reduce((sum, value, i) => sum + value * vector[i]!, 0);
        return relevance(asked, cosine, terms, calibration);
      }),
    );
  };
  const [plain, shifted] = [await scoresAt(0), await scoresAt(0.7)];
  const differences = plain.map((value, i) => Math.abs(value - shifted[i]!));
  expect(Math.max(...differences)).toBeLessThan(0.03);
});
