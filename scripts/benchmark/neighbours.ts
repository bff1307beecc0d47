/**
 * The limit of search: one hnswlib query and nothing around it, in a graph of the same vectors that is searched just widely
 * enough to find at least 95 % of what is nearest. And the answers that are right, by comparing with every vector.
 *
 * @module
 */
import hnswlib from "hnswlib-node";
import { DIMENSION, type EmbeddedQuery } from "../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../src/embeddings/local/local.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { relevance } from "../../src/memories/relevance.ts";
import { Store } from "../../src/storage/store.ts";
import { vectors } from "../../src/storage/tables.ts";
import { dotStored } from "../../src/vectors/brute-force.ts";
import { quantize, storedMemory, storedTerms, storedVector } from "../../src/vectors/encoding.ts";
import { byNearness, TopK, type Neighbour } from "../../src/vectors/top-k.ts";
import { obey } from "./child.ts";
import { measure, type Run } from "./timing.ts";
import { question } from "./workload.ts";

export type NeighboursOrder = { kind: "open"; directory: string } | { kind: "load"; seconds: number };

export interface Neighbours {
  /** For each of `question(0)`, `question(1)`, … the ids of the ten best memories, bare. */
  right: string[][];
  /** How widely the graph is searched, and what share of the ten nearest it finds so. */
  ef: number;
  recall: number;
}

export type NeighboursResult = Neighbours | Run;

/** What a search of Cairn asks for. */
const CANDIDATES = 100;
const BEST = 10;
const QUESTIONS = 100;
const RECALL_MIN = 0.95;
const EFS = [CANDIDATES, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096];
/** As Cairn builds its graph. */
const LINKS = 16;
const EF_CONSTRUCTION = 100;

let graph: hnswlib.HierarchicalNSW;
const queries: number[][] = [];

async function start(directory: string): Promise<Neighbours> {
  const store = await Store.open(directory, systemClock);
  const ids = store.latest.keys(vectors, { from: "", to: "~" });
  const embedder = localEmbedder;
  const asked = Array.from({ length: QUESTIONS }, (_, seed) => embedder.embedQuery(question(seed)));
  const quantized = asked.map(({ vector }) => quantize(vector));
  const nearest = asked.map(() => new TopK<Neighbour>(CANDIDATES, byNearness));
  graph = new hnswlib.HierarchicalNSW("ip", DIMENSION);
  graph.initIndex({ maxElements: ids.length, m: LINKS, efConstruction: EF_CONSTRUCTION, randomSeed: 100 });
  for (const [label, id] of ids.entries()) {
    const bytes = store.latest.vectorBytes(id) as Uint8Array;
    const memory = storedMemory(bytes);
    for (const [i, query] of quantized.entries()) nearest[i]?.offer({ id, memory, cosine: dotStored(query, bytes) });
    // As Cairn does: where short texts give up some of their length, queries have nothing.
    graph.addPoint([...storedVector(bytes).subarray(0, -1), 0], label);
  }
  for (const query of asked) queries.push(Array.from(query.vector));
  const found = nearest.map((one) => one.best());
  const labelOf = new Map(ids.map((id, label) => [id, label]));
  const wanted = found.map((near) => near.slice(0, BEST).map(({ id }) => labelOf.get(id) as number));
  const right = found.map((near, i) => best(store, asked[i] as EmbeddedQuery, near));
  await store.close();
  for (const ef of EFS) {
    const recall = recallAt(ef, wanted);
    if (recall >= RECALL_MIN || ef === EFS.at(-1)) return { right, ef, recall };
  }
  throw new Error("unreachable");
}

/** The second step of a search. */
function best(store: Store, query: EmbeddedQuery, near: readonly Neighbour[]): string[] {
  return near
    .map(({ id, memory, cosine }) => ({ memory, score: relevance(query, cosine, storedTerms(store.latest.vectorBytes(id) as Uint8Array)) }))
    .sort((a, b) => b.score - a.score || (a.memory < b.memory ? 1 : -1))
    .slice(0, BEST)
    .map(({ memory }) => memory);
}

function recallAt(ef: number, wanted: readonly (readonly number[])[]): number {
  graph.setEf(ef);
  let found = 0;
  let all = 0;
  for (const [i, labelsWanted] of wanted.entries()) {
    const answer = new Set(search(i));
    found += labelsWanted.filter((label) => answer.has(label)).length;
    all += labelsWanted.length;
  }
  return found / all;
}

function search(index: number): number[] {
  return graph.searchKnn(queries[index % QUESTIONS] as number[], Math.min(CANDIDATES, graph.getCurrentCount())).neighbors;
}

obey(async (order: NeighboursOrder): Promise<NeighboursResult> => {
  if (order.kind === "open") return start(order.directory);
  return measure(1, order.seconds, async (index) => {
    search(index);
    return Promise.resolve();
  });
});
