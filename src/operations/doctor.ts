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
import { TABLES, vectors } from "../storage/tables.ts";
import { examineGraph, removeGraph } from "./graph.ts";
import { EXAMPLES_MAX, type Finding, type OnProgress } from "./report.ts";
import { CHECKS, type Check, type Problem } from "./checks.ts";

const MENDED_PER_COMMIT = 200;

export interface Examination {
  findings: Finding[];
  rows: number;
  /** In the vector index on disk. */
  points: number;
}

/** What is wrong in a data directory. */
export async function examineAll(store: Store, onProgress?: OnProgress): Promise<Examination> {
  const findings = examine(store, onProgress);
  const graph = await examineGraph(store);
  return { findings: [...findings, ...graph.findings], rows: rowsOf(store), points: graph.points };
}

/** Mends what can be mended. A vector index that is wrong is removed: the next start builds another one. */
export async function mendAll(store: Store, onProgress?: OnProgress): Promise<{ found: Finding[]; left: Finding[] }> {
  const found = await mend(store, onProgress);
  const graph = await examineGraph(store);
  if (graph.findings.length > 0) removeGraph(store.directory);
  return { found: [...found, ...graph.findings], left: examine(store, onProgress) };
}

function examine(store: Store, onProgress: OnProgress | undefined): Finding[] {
  using reader = store.snapshot();
  const findings = new Findings();
  const counted = counter(store, onProgress);
  for (const check of CHECKS) {
    for (const problem of check(reader)) counted(problem, findings);
  }
  return findings.all();
}

/** A bounded number of problems a commit. @returns what was wrong */
async function mend(store: Store, onProgress: OnProgress | undefined): Promise<Finding[]> {
  const findings = new Findings();
  const counted = counter(store, onProgress);
  for (const check of CHECKS) await mendOne(store, check, (problem) => counted(problem, findings));
  return findings.all();
}

async function mendOne(store: Store, check: Check, count: (problem: Problem | undefined) => void): Promise<void> {
  // One for each check, so that a later one sees what an earlier one has put right.
  using reader = store.snapshot();
  let mends: NonNullable<Problem["mend"]>[] = [];
  const flush = async () => {
    const now = mends;
    mends = [];
    await store.commit(NO_HOME, (tx) => {
      for (const one of now) one(tx);
    });
  };
  for (const problem of check(reader)) {
    count(problem);
    if (problem?.mend !== undefined) mends.push(problem.mend);
    if (mends.length === MENDED_PER_COMMIT) await flush();
  }
  if (mends.length > 0) await flush();
}

function counter(store: Store, onProgress: OnProgress | undefined): (problem: Problem | undefined, findings: Findings) => void {
  const total = rowsOf(store);
  let done = 0;
  return (problem, findings) => {
    if (problem === undefined) onProgress?.(++done, Math.max(done, total));
    else findings.add(problem);
  };
}

function rowsOf(store: Store): number {
  return [...TABLES, vectors].reduce((sum, table) => sum + store.count(table), 0);
}

class Findings {
  readonly #byKind = new Map<string, Finding>();

  add({ what, example, mend }: Problem): void {
    const finding = this.#byKind.get(what) ?? { what, count: 0, examples: [], canBeMended: mend !== undefined };
    this.#byKind.set(what, finding);
    finding.count++;
    if (finding.examples.length < EXAMPLES_MAX) finding.examples.push(example);
  }

  all(): Finding[] {
    return [...this.#byKind.values()];
  }
}
