/**
 * Checks a store, and repairs what its records say how to repair.
 *
 * A check reads one snapshot, so that it is right also while a server is running. Repairing writes: on the embedded store its caller has
 * locked the directory; in a database servers may be running, too.
 *
 * @module
 */
import { join } from "node:path";
import { NO_PARTITION } from "../lib/ids.ts";
import { eachFetched } from "../storage/access.ts";
import { DATA_FILE } from "../storage/lmdb/file/data-file.ts";
import { Store } from "../storage/lmdb/store.ts";
import type { ChangedStore, RecordStore } from "../storage/record-store.ts";
import { TABLES, VECTOR_TABLES } from "../storage/tables.ts";
import type { Problem } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { checkFile } from "./damage.ts";
import { examineGraph, removeGraph } from "./graph.ts";
import { RECORDS } from "./records.ts";
import { Findings, type Finding, type OnProgress } from "./report.ts";

const MENDED_PER_COMMIT = 200;

export interface Examination {
  findings: Finding[];
  /** Rows of records. */
  rows: number;
  /** Points of the vector index on disk; undefined where that is none. */
  points: number | undefined;
}

/** Finds what is wrong in a store; of the embedded one also in its indexes on disk. */
export async function examineAll(store: RecordStore, onProgress?: OnProgress): Promise<Examination> {
  const { findings, rows } = await examine(store, onProgress);
  const graph = isEmbedded(store) ? await examineGraph(store) : undefined;
  return { findings: [...findings, ...(graph?.findings ?? [])], rows, points: graph?.points };
}

/**
 * Repairs what can be repaired. Removes a wrong vector index, which the next start builds again.
 *
 * @returns what was wrong, and what is so still: all is looked at again, of the embedded store also as a backup does it
 */
export async function repairAll(store: ChangedStore, onProgress?: OnProgress): Promise<{ found: Finding[]; left: Finding[] }> {
  const found = await repair(store, onProgress);
  if (isEmbedded(store)) {
    const graph = await examineGraph(store);
    if (graph.findings.length > 0) removeGraph(store.directory);
    found.push(...graph.findings);
  }
  const { findings: left } = await examine(store, onProgress);
  if (!isEmbedded(store)) return { found, left };
  const seen = new Set(left.map(({ what }) => what));
  const others = [...(await examineGraph(store)).findings, ...checkFile(join(store.directory, DATA_FILE), { decode: true }).findings];
  return { found, left: [...left, ...others.filter(({ what }) => !seen.has(what))] };
}

function isEmbedded(store: ChangedStore): store is Store {
  return store instanceof Store;
}

async function examine(store: ChangedStore, onProgress: OnProgress | undefined): Promise<{ findings: Finding[]; rows: number }> {
  await using snapshot = await store.snapshot();
  const report = new Report(await rowsOf(store), onProgress);
  let all = 0;
  for (const [i, check] of CHECKS.entries()) {
    for await (const { problems, rows } of check(snapshot)) {
      report.add(problems, rows);
      // The first checks look at every row once.
      if (i < RECORDS.length) all += rows;
    }
  }
  return { findings: report.findings, rows: all };
}

/** Repairs a bounded number of problems a commit. @returns what was wrong */
async function repair(store: ChangedStore, onProgress: OnProgress | undefined): Promise<Finding[]> {
  const report = new Report(await rowsOf(store), onProgress);
  for (const check of CHECKS) {
    // A later check sees what an earlier one has put right.
    await using snapshot = await store.snapshot();
    const repairs: NonNullable<Problem["repair"]>[] = [];
    for await (const { problems, rows } of check(snapshot)) {
      report.add(problems, rows);
      repairs.push(...problems.flatMap((problem) => problem.repair ?? []));
      while (repairs.length >= MENDED_PER_COMMIT) await commitAll(store, repairs.splice(0, MENDED_PER_COMMIT));
    }
    if (repairs.length > 0) await commitAll(store, repairs);
  }
  return report.findings;
}

async function commitAll(store: ChangedStore, repairs: readonly NonNullable<Problem["repair"]>[]): Promise<void> {
  await store.commit(NO_PARTITION, (tx) => eachFetched(repairs, (one) => one(tx)));
}

async function rowsOf(store: ChangedStore): Promise<number> {
  let rows = 0;
  for (const table of [...TABLES, ...VECTOR_TABLES]) rows += await store.count(table);
  return rows;
}

/** Counts the rows that were checked, and collects problems. */
class Report {
  readonly #total: number;
  readonly #onProgress: OnProgress | undefined;
  readonly #findings = new Findings();
  #done = 0;

  constructor(total: number, onProgress: OnProgress | undefined) {
    this.#total = total;
    this.#onProgress = onProgress;
  }

  add(problems: readonly Problem[], rows: number): void {
    this.#done += rows;
    this.#onProgress?.(this.#done, Math.max(this.#done, this.#total));
    for (const { what, example, repair: canMend } of problems) this.#findings.add(what, [example], { canBeMended: canMend !== undefined });
  }

  get findings(): Finding[] {
    return this.#findings.all;
  }
}
