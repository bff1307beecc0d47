/**
 * Checks a store, and mends what its records say how to mend.
 *
 * A check reads one snapshot, so that it is right also while a server is running. Mending writes: its caller has locked the
 * directory.
 *
 * @module
 */
import { NO_HOME } from "../lib/ids.ts";
import type { Store } from "../storage/store.ts";
import { TABLES, VECTOR_TABLES } from "../storage/tables.ts";
import { examineGraph, removeGraph } from "./graph.ts";
import { Findings, type Finding, type OnProgress } from "./report.ts";
import { CHECKS, type Problem } from "./checks.ts";

const MENDED_PER_COMMIT = 200;

export interface Examination {
  findings: Finding[];
  rows: number;
  /** Points of the vector index on disk. */
  points: number;
}

/** Finds what is wrong in a data directory. */
export async function examineAll(store: Store, onProgress?: OnProgress): Promise<Examination> {
  const findings = examine(store, onProgress);
  const graph = await examineGraph(store);
  return { findings: [...findings, ...graph.findings], rows: rowsOf(store), points: graph.points };
}

/** Mends what can be mended. Removes a wrong vector index, which the next start builds again. */
export async function mendAll(store: Store, onProgress?: OnProgress): Promise<{ found: Finding[]; left: Finding[] }> {
  const found = await mend(store, onProgress);
  const graph = await examineGraph(store);
  if (graph.findings.length > 0) removeGraph(store.directory);
  return { found: [...found, ...graph.findings], left: examine(store, onProgress) };
}

function examine(store: Store, onProgress: OnProgress | undefined): Finding[] {
  using reader = store.snapshot();
  const report = new Report(store, onProgress);
  for (const check of CHECKS) for (const problem of check(reader)) report.add(problem);
  return report.findings;
}

/** Mends a bounded number of problems a commit. @returns what was wrong */
async function mend(store: Store, onProgress: OnProgress | undefined): Promise<Finding[]> {
  const report = new Report(store, onProgress);
  for (const check of CHECKS) {
    // A later check sees what an earlier one has put right.
    using reader = store.snapshot();
    const mends: NonNullable<Problem["mend"]>[] = [];
    for (const problem of check(reader)) {
      report.add(problem);
      if (problem?.mend !== undefined) mends.push(problem.mend);
      if (mends.length === MENDED_PER_COMMIT) await commitAll(store, mends.splice(0));
    }
    if (mends.length > 0) await commitAll(store, mends);
  }
  return report.findings;
}

async function commitAll(store: Store, mends: readonly NonNullable<Problem["mend"]>[]): Promise<void> {
  await store.commit(NO_HOME, (tx) => {
    for (const one of mends) one(tx);
  });
}

function rowsOf(store: Store): number {
  return [...TABLES, ...VECTOR_TABLES].reduce((sum, table) => sum + store.count(table), 0);
}

/** Counts the rows that were checked, and collects problems. */
class Report {
  readonly #total: number;
  readonly #onProgress: OnProgress | undefined;
  readonly #findings = new Findings();
  #done = 0;

  constructor(store: Store, onProgress: OnProgress | undefined) {
    this.#total = rowsOf(store);
    this.#onProgress = onProgress;
  }

  /** @param problem - undefined for one more row */
  add(problem: Problem | undefined): void {
    if (problem === undefined) this.#onProgress?.(++this.#done, Math.max(this.#done, this.#total));
    else this.#findings.add(problem.what, [problem.example], { canBeMended: problem.mend !== undefined });
  }

  get findings(): Finding[] {
    return this.#findings.all;
  }
}
