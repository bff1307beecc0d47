/**
 * Yardstick of search: hnswlib alone, with a graph of the same vectors that is searched just as widely as it has to be
 * to find as much, and its comparison with all of them. Nothing is around it, and scoring the candidates is not counted.
 *
 * @module
 */
import hnswlib from "hnswlib-node";
import { WordWeights } from "../../src/embeddings/builtin/word-weights.ts";
import { calibrationOf } from "../../src/embeddings/calibration.ts";
import type { EmbeddedQuery } from "../../src/embeddings/embedder.ts";
import { queryTerms } from "../../src/embeddings/words/terms.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { relevance } from "../../src/memories/relevance.ts";
import { MAX_KEY } from "../../src/storage/keys.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import { provider, PROVIDER_KEY, vectors } from "../../src/storage/tables.ts";
import { dotStored, quantize, storedTerms, storedVector } from "../../src/search/encoding.ts";
import { obey } from "./child.ts";
import { DENSE_DIMENSION, denseVector } from "./dense.ts";
import { measure, type Run } from "../../src/cli/bench/load/timing.ts";

export type NeighboursOrder =
  | { kind: "open"; directory: string; queries: string[]; right: number[][]; recall: number }
  | { kind: "graph" | "all"; seconds: number };

/** Breadth of a search of the graph, and the share of the ten best scores that it finds. */
export interface Neighbours {
  ef: number;
  recall: number;
}

export type NeighboursResult = Neighbours | Run;

/** Candidates that are scored. */
const CANDIDATES = 100;
const EFS = [CANDIDATES, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096];
/** As Cairn builds its graph. */
const LINKS = 16;
const EF_CONSTRUCTION = 100;

let graph: hnswlib.HierarchicalNSW;
let all: hnswlib.BruteforceSearch;
let queries: number[][];

async function start({ directory, queries: texts, right, recall }: Extract<NeighboursOrder, { kind: "open" }>) {
  const store = await Store.open(directory, systemClock);
  const ids = store.latest.keys(vectors, { from: "", to: MAX_KEY });
  graph = new hnswlib.HierarchicalNSW("ip", DENSE_DIMENSION);
  graph.initIndex({ maxElements: ids.length, m: LINKS, efConstruction: EF_CONSTRUCTION, randomSeed: 100 });
  all = new hnswlib.BruteforceSearch("ip", DENSE_DIMENSION);
  all.initIndex(ids.length);
  for (const [label, id] of ids.entries()) {
    const stored = storedVector(store.latest.vectorBytes(vectors, id)!);
    const vector = Array.from({ length: DENSE_DIMENSION }, (_, place) => stored[place] ?? 0);
    graph.addPoint(vector, label);
    all.addPoint(vector, label);
  }
  const measured = store.latest.get(provider, PROVIDER_KEY)?.measured;
  const calibration = measured === undefined ? undefined : calibrationOf(measured);
  const weights = new WordWeights();
  const asked = texts.map((text) => ({ vector: denseVector(text), lexical: queryTerms(text, (word) => weights.of(word)) }));
  queries = asked.map(({ vector }) => Array.from(vector));
  const scoreOf = (query: EmbeddedQuery, label: number) => {
    const bytes = store.latest.vectorBytes(vectors, ids[label]!)!;
    return relevance(query, dotStored(quantize(query.vector), bytes), storedTerms(bytes), calibration);
  };
  const recallAt = (ef: number) => {
    graph.setEf(ef);
    let [found, wanted] = [0, 0];
    for (const [i, best] of right.entries()) {
      if (best.length === 0) continue;
      const scores = search(graph, i).map((label) => scoreOf(asked[i]!, label));
      found += Math.min(best.length, scores.filter((score) => score >= best.at(-1)!).length);
      wanted += best.length;
    }
    return found / wanted;
  };
  try {
    for (const ef of EFS) {
      const reached = recallAt(ef);
      if (reached >= recall || ef === EFS.at(-1)) return { ef, recall: reached };
    }
  } finally {
    await store.close();
  }
  throw new Error("unreachable");
}

function search(index: hnswlib.HierarchicalNSW | hnswlib.BruteforceSearch, question: number): number[] {
  return index.searchKnn(queries[question % queries.length]!, Math.min(CANDIDATES, index.getCurrentCount())).neighbors;
}

obey(async (order: NeighboursOrder): Promise<NeighboursResult> => {
  if (order.kind === "open") return start(order);
  const index = order.kind === "graph" ? graph : all;
  return measure(1, order.seconds, async (question) => {
    search(index, question);
    return Promise.resolve();
  });
});
