/**
 * What was measured, as JSON has it and as a table.
 *
 * @module
 */
import type { EmbeddingCost } from "./embedding.ts";
import type { Memory } from "./subject.ts";
import type { Run } from "./timing.ts";

export interface Measured {
  operation: string;
  title: string;
  concurrency: number;
  cairn: Run;
  /** Processor time of the server for one, all its threads together. */
  cpuMsEach: number;
  /** Of the answers to one. */
  bytes: number;
  echo: Run | undefined;
  commits: (Run & { puts: number; bytes: number }) | undefined;
  neighbours: Run | undefined;
}

export interface Report {
  machine: { cpus: number; model: string; bun: string };
  sessions: number;
  fill: { seconds: number; writesPerSecond: number; indexMs: number };
  startMs: number;
  stopMs: number;
  memory: { started: Memory; filled: Memory; measured: Memory };
  measured: Measured[];
  embedding: EmbeddingCost[];
}

const COLUMNS = ["operation", "at once", "per s", "p50 ms", "p95 ms", "p99 ms", "errors", "CPU ms", "HTTP", "disk", "disk p50", "graph"];

export function printReport(report: Report): string {
  const { fill, memory, machine } = report;
  return [
    `${machine.cpus} × ${machine.model}, Bun ${machine.bun}; ${report.sessions} sessions`,
    `stored with ${whole(fill.writesPerSecond)} writes a second, index complete ${whole(fill.indexMs)} ms later`,
    `start ${whole(report.startMs)} ms, stop ${whole(report.stopMs)} ms`,
    `memory (RSS, of it own): ${Object.entries(memory)
      .map(([when, { rss, rssAnon }]) => `${when} ${rss} MB, ${rssAnon} MB`)
      .join("; ")}`,
    "",
    ...table([COLUMNS, ...report.measured.map(row)]),
    "",
    "HTTP   share of what a bare Bun.serve does that answers the same bytes",
    "disk   share of what lmdb-js alone commits of the same bytes, as many at once; beside it Cairn's p50 by its p50",
    "graph  share of what hnswlib alone answers, one at a time",
    ...(report.embedding.length === 0
      ? []
      : ["", ...table([["embedding", "µs", "", "µs", "ratio"], ...report.embedding.map(embeddingRow)])]),
  ].join("\n");
}

function row({ title, concurrency, cairn, cpuMsEach, echo, commits, neighbours }: Measured): string[] {
  const share = (limit: Run | undefined) => (limit === undefined ? "" : (cairn.perSecond / limit.perSecond).toFixed(2));
  return [
    title,
    String(concurrency),
    whole(cairn.perSecond),
    cairn.p50.toFixed(2),
    cairn.p95.toFixed(2),
    cairn.p99.toFixed(2),
    String(cairn.errors),
    cpuMsEach.toFixed(3),
    share(echo),
    share(commits),
    commits === undefined ? "" : `× ${(cairn.p50 / commits.p50).toFixed(2)}`,
    share(neighbours),
  ];
}

function embeddingRow({ title, microseconds, beside, besideMicroseconds, ratio }: EmbeddingCost): string[] {
  return [title, microseconds.toFixed(1), beside, besideMicroseconds.toFixed(1), ratio.toFixed(2)];
}

function whole(number: number): string {
  return Math.round(number).toLocaleString("en");
}

/** The first column to the left, the others to the right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
}
