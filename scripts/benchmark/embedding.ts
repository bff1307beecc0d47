/**
 * Cost of the terms of a text compared with the least that anything can do with it: find its words once.
 *
 * @module
 */
import { WordWeights } from "../../src/embeddings/builtin/word-weights.ts";
import { BUILTIN_CALIBRATION } from "../../src/embeddings/score.ts";
import { memoryTerms, queryTerms } from "../../src/embeddings/words/terms.ts";
import { relevance } from "../../src/memories/relevance.ts";
import { obey } from "./child.ts";
import { denseVector } from "./dense.ts";
import { median } from "../../src/cli/bench/load/timing.ts";
import { memoryContent, prose, question } from "../../src/cli/bench/load/workload.ts";

export interface EmbeddingOrder {
  rounds: number;
}

/** Microseconds of processor time of one. */
export interface EmbeddingCost {
  title: string;
  microseconds: number;
  beside: string;
  besideMicroseconds: number;
  ratio: number;
}

const WORD = /[\p{L}\p{N}]+/gu;
const TEXTS = 256;
const CANDIDATES = 100;

const weights = new WordWeights();
const asked = (text: string) => queryTerms(text, (word) => weights.of(word));

/** The two in turn, so that both see the same machine; medians of each. */
function compare(title: string, beside: string, rounds: number, work: (index: number) => unknown, other: (index: number) => unknown) {
  const [own, theirs]: [number[], number[]] = [[], []];
  // The first round of each is for the compiler.
  for (let round = 0; round <= rounds * BATCHES; round++) {
    const pair = [processorTime(work), processorTime(other)] as const;
    if (round === 0) continue;
    own.push(pair[0]);
    theirs.push(pair[1]);
  }
  const [microseconds, besideMicroseconds] = [median(own), median(theirs)];
  return { title, microseconds, beside, besideMicroseconds, ratio: microseconds / besideMicroseconds };
}

const BATCHES = 3;
const BATCH_MS = 60;

/** Of one, in microseconds: of all threads of this process, over all texts again and again. */
function processorTime(work: (index: number) => unknown): number {
  const until = performance.now() + BATCH_MS;
  const before = process.cpuUsage();
  let count = 0;
  for (; performance.now() < until; count += TEXTS) for (let index = 0; index < TEXTS; index++) work(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

async function run({ rounds }: EmbeddingOrder): Promise<EmbeddingCost[]> {
  const texts = (make: (seed: number) => string) => Array.from({ length: TEXTS }, (_, seed) => make(seed));
  const kinds = [
    { title: "split a memory of 200 characters", texts: texts(memoryContent), split: (text: string): unknown => memoryTerms(text) },
    { title: "split a query", texts: texts(question), split: asked },
    {
      title: "split a memory of 10,000 characters",
      texts: texts((seed) => prose(10_000, seed)),
      split: memoryTerms,
    },
  ];
  const costs: EmbeddingCost[] = [];
  for (const { title, texts: all, split } of kinds) {
    const pass = "one pass of /[\\p{L}\\p{N}]+/gu";
    costs.push(
      compare(
        title,
        pass,
        rounds,
        (index) => split(all[index] as string),
        (index) => (all[index] as string).match(WORD),
      ),
    );
  }
  const memories = texts(memoryContent).slice(0, CANDIDATES).map(memoryTerms);
  const queries = texts(question).map((text) => ({ vector: denseVector(text), lexical: asked(text) }));
  costs.push(
    compare(
      `score ${CANDIDATES} candidates`,
      "split a memory of 200 characters",
      rounds,
      (index) => memories.reduce((sum, terms, i) => sum + relevance(queries[index]!, i / CANDIDATES, terms, BUILTIN_CALIBRATION), 0),
      (index) => memoryTerms(kinds[0]!.texts[index] as string),
    ),
  );
  return costs;
}

obey(run);
