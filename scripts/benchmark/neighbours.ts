/**
 * The limit of search: one hnswlib query in the graph that Cairn wrote, by the calls Cairn makes and nothing around them.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import hnswlib from "hnswlib-node";
import { DIMENSION } from "../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../src/embeddings/local.ts";
import { obey } from "./child.ts";
import { measure } from "./timing.ts";
import { question } from "./workload.ts";

export type NeighboursOrder = { kind: "open"; vectors: string } | { kind: "load"; seconds: number };

/** What a search of Cairn asks for. */
const CANDIDATES = 100;
const EF_SEARCH = 128;
const QUERIES = 500;

const graph = new hnswlib.HierarchicalNSW("ip", DIMENSION);
const queries: number[][] = [];

function start(vectors: string): void {
  const { file } = JSON.parse(readFileSync(join(vectors, "manifest.json"), "utf8")) as { file: string };
  graph.readIndexSync(join(vectors, file));
  graph.setEf(EF_SEARCH);
  const embedder = localEmbedder();
  for (let seed = 0; seed < QUERIES; seed++) queries.push(Array.from(embedder.embedQuery(question(seed)).vector));
}

obey(async (order: NeighboursOrder) => {
  if (order.kind === "open") {
    start(order.vectors);
    return undefined;
  }
  return measure(1, order.seconds, async (index) => {
    graph.searchKnn(queries[index % QUERIES] as number[], Math.min(CANDIDATES, graph.getCurrentCount()));
    return Promise.resolve();
  });
});
