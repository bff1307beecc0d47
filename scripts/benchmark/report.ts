/**
 * Results of measuring, as JSON and as a table.
 *
 * @module
 */
import type { EmbeddingCost } from "./embedding.ts";
import type { Memory } from "../../src/cli/bench/process-use.ts";
import type { Costed } from "../../src/cli/bench/load/timing.ts";

export interface Measured {
  operation: string;
  title: string;
  concurrency: number;
  cairn: Costed;
  /** From the last answer until all of it was in the index, in the slowest turn; undefined of what leaves nothing to be indexed. */
  indexedMs: number | undefined;
  /** Of the answers to one. */
  bytes: number;
  echo: Costed | undefined;
  commits: (Costed & { puts: number; bytes: number }) | undefined;
}

export interface Report {
  machine: { cpus: number; model: string; bun: string };
  memories: number;
  users: number;
  sessions: number;
  fill: { seconds: number; writesPerSecond: number };
  startMs: number;
  indexMs: number;
  stopMs: number;
  memory: { started: Memory; filled: Memory; measured: Memory };
  measured: Measured[];
  embedding: EmbeddingCost[];
}

const COLUMNS = ["operation", "at once", "per s", "p50 ms", "p95 ms", "p99 ms", "errors", "CPU ms", "HTTP", "CPU", "disk", "CPU", "p50"];

export function printReport(report: Report): string {
  const { fill, memory, machine } = report;
  return [
    `${machine.cpus} × ${machine.model}, Bun ${machine.bun}; ${whole(report.memories)} memories of ${whole(report.users)} users with ${whole(report.sessions)} sessions`,
    `sessions stored with ${whole(fill.writesPerSecond)} writes a second`,
    `start ${whole(report.startMs)} ms, all indexed ${whole(report.indexMs)} ms later, stop ${whole(report.stopMs)} ms`,
    `memory (RSS, of it own): ${Object.entries(memory)
      .map(([when, { rss, rssAnon }]) => `${when} ${rss} MB, ${rssAnon} MB`)
      .join("; ")}`,
    "",
    ...printTable([COLUMNS, ...report.measured.map(row)]),
    "",
    "HTTP   share of what a bare Bun.serve does that answers the same bytes; CPU: how many times its processor time for one",
    "disk   share of what lmdb-js alone commits of the same bytes, as many at once; CPU and p50: how many times its",
    "Sessions are drawn at random. While what searches is measured, memories are added: CPU counts them too.",
    ...report.measured.flatMap(({ title, concurrency, indexedMs }) =>
      indexedMs === undefined ? [] : [`${title}, ${concurrency} at once: all indexed at most ${whole(indexedMs)} ms after the last answer`],
    ),
    ...(report.embedding.length === 0
      ? []
      : ["", ...printTable([["embedding", "µs", "", "µs", "ratio"], ...report.embedding.map(embeddingRow)])]),
  ].join("\n");
}

function row({ title, concurrency, cairn, echo, commits }: Measured): string[] {
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
