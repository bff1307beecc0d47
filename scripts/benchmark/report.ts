/**
 * What was measured, as JSON has it and as a table.
 *
 * @module
 */
import type { EmbeddingCost } from "./embedding.ts";
import type { Memory } from "../executable.ts";
import type { Costed } from "./timing.ts";

export interface Measured {
  operation: string;
  title: string;
  concurrency: number;
  cairn: Costed;
  /** Of the answers to one. */
  bytes: number;
  echo: Costed | undefined;
  commits: (Costed & { puts: number; bytes: number }) | undefined;
  neighbours: Costed | undefined;
}

export interface Report {
  machine: { cpus: number; model: string; bun: string };
  sessions: number;
  fill: { seconds: number; writesPerSecond: number; indexMs: number };
  startMs: number;
  stopMs: number;
  memory: { started: Memory; filled: Memory; measured: Memory };
  /** Of the ten best of everything: what share Cairn finds, and what share of the ten nearest hnswlib. */
  neighbours: { recall: number; questions: number; graphEf: number; graphRecall: number } | undefined;
  measured: Measured[];
  embedding: EmbeddingCost[];
}

const COLUMNS = [
  "operation",
  "at once",
  "per s",
  "p50 ms",
  "p95 ms",
  "p99 ms",
  "errors",
  "CPU ms",
  "HTTP",
  "CPU",
  "disk",
  "CPU",
  "p50",
  "graph",
];

export function printReport(report: Report): string {
  const { fill, memory, machine } = report;
  return [
    `${machine.cpus} × ${machine.model}, Bun ${machine.bun}; ${report.sessions} sessions`,
    `stored with ${whole(fill.writesPerSecond)} writes a second, index complete ${whole(fill.indexMs)} ms later`,
    `start ${whole(report.startMs)} ms, stop ${whole(report.stopMs)} ms`,
    `memory (RSS, of it own): ${Object.entries(memory)
      .map(([when, { rss, rssAnon }]) => `${when} ${rss} MB, ${rssAnon} MB`)
      .join("; ")}`,
    ...recalls(report),
    "",
    ...printTable([COLUMNS, ...report.measured.map(row)]),
    "",
    "HTTP   share of what a bare Bun.serve does that answers the same bytes; CPU: how many times its processor time for one",
    "disk   share of what lmdb-js alone commits of the same bytes, as many at once; CPU and p50: how many times its",
    "graph  share of what hnswlib alone answers, one at a time, searching as widely as it has to for that recall",
    ...(report.embedding.length === 0
      ? []
      : ["", ...printTable([["embedding", "µs", "", "µs", "ratio"], ...report.embedding.map(embeddingRow)])]),
  ].join("\n");
}

function recalls({ neighbours }: Report): string[] {
  if (neighbours === undefined) return [];
  const { recall, questions, graphEf, graphRecall } = neighbours;
  return [
    `recall@10 of search of everything, ${questions} questions: ${recall.toFixed(3)}; hnswlib alone: ${graphRecall.toFixed(3)} at ef ${graphEf}`,
  ];
}

function row({ title, concurrency, cairn, echo, commits, neighbours }: Measured): string[] {
  const ratio = (figure: "perSecond" | "p50" | "cpuMsEach", limit: Costed | undefined) =>
    limit === undefined ? "" : (cairn[figure] / limit[figure]).toFixed(2);
  return [
    title,
    String(concurrency),
    whole(cairn.perSecond),
    cairn.p50.toFixed(2),
    cairn.p95.toFixed(2),
    cairn.p99.toFixed(2),
    String(cairn.errors),
    cairn.cpuMsEach.toFixed(3),
    ratio("perSecond", echo),
    ratio("cpuMsEach", echo),
    ratio("perSecond", commits),
    ratio("cpuMsEach", commits),
    ratio("p50", commits),
    ratio("perSecond", neighbours),
  ];
}

function embeddingRow({ title, microseconds, beside, besideMicroseconds, ratio }: EmbeddingCost): string[] {
  return [title, microseconds.toFixed(1), beside, besideMicroseconds.toFixed(1), ratio.toFixed(2)];
}

function whole(number: number): string {
  return Math.round(number).toLocaleString("en");
}

/** The first column to the left, the others to the right. */
export function printTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
}
