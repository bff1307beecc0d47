/**
 * What the built-in embedding costs beside the least that anything can do with a text: find its words once.
 *
 * @module
 */
import { localEmbedder } from "../../src/embeddings/local/local.ts";
import { relevance } from "../../src/memories/relevance.ts";
import { dotStored, encodeVector, quantize } from "../../src/vectors/encoding.ts";
import { obey } from "./child.ts";
import { median } from "./timing.ts";
import { memoryContent, prose, question } from "./workload.ts";

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

const embedder = localEmbedder;

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
    { title: "embed a memory of 200 characters", texts: texts(memoryContent), embed: (text: string) => embedder.embedMemory(text) },
    { title: "embed a query", texts: texts(question), embed: (text: string) => embedder.embedQuery(text) },
    {
      title: "embed a memory of 10,000 characters",
      texts: texts((seed) => prose(10_000, seed)),
      embed: (text: string) => embedder.embedMemory(text),
    },
  ];
  const costs: EmbeddingCost[] = [];
  for (const { title, texts: all, embed } of kinds) {
    const pass = "one pass of /[\\p{L}\\p{N}]+/gu";
    costs.push(
      compare(
        title,
        pass,
        rounds,
        (index) => embed(all[index] as string),
        (index) => (all[index] as string).match(WORD),
      ),
    );
  }
  const memories = texts(memoryContent)
    .slice(0, CANDIDATES)
    .map((text) => embedder.embedMemory(text));
  const stored = memories.map((embedding) => encodeVector(embedding, { memory: "000000000000", generation: 0 }));
  const queries = texts(question).map((text) => {
    const query = embedder.embedQuery(text);
    const vector = quantize(query.vector);
    return { query, cosines: stored.map((bytes) => dotStored(vector, bytes)) };
  });
  costs.push(
    compare(
      `score ${CANDIDATES} candidates`,
      "embed a memory of 200 characters",
      rounds,
      (index) => {
        const { query, cosines } = queries[index] as (typeof queries)[number];
        let sum = 0;
        for (let i = 0; i < CANDIDATES; i++) sum += relevance(query, cosines[i] as number, memories[i]!.terms);
        return sum;
      },
      (index) => embedder.embedMemory(kinds[0]!.texts[index] as string),
    ),
  );
  return costs;
}

obey(run);
