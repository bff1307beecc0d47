/**
 * An export of what can still be read of a damaged store: what `import` takes, and a count of what is left out.
 *
 * The pages are walked without LMDB, so that neither a damaged page nor a disk that does not give one ends it. A row is
 * left out when it is not what the code reads. The vector of a memory is made again where it is lost, or where nobody
 * knows any more whether it is of the provider in use. What no longer agrees, an import mends as doctor does.
 *
 * @module
 */
import { Pages, type Entry } from "../storage/pages.ts";
import { memories, meta, vectors, type MemoryRow } from "../storage/tables.ts";
import { textOf } from "./damage.ts";
import { headerLine, lineOf, type ExportOptions, type VectorReader } from "./export.ts";
import { parseRow, RECORDS, type RecordTable } from "./records.ts";
import type { OnProgress } from "./report.ts";

/** How many rows of a table are not in the export. */
export interface LeftOut {
  table: string;
  rows: number;
  /** Those it has, as far as its record says. */
  of: number;
}

export interface SalvageOptions extends ExportOptions {
  /** Called with what is missing, after the last line. */
  onEnd: (leftOut: LeftOut[]) => void;
  onProgress?: OnProgress;
}

/** Each line, without its line feed. @param path - of the file of a store, whose pages stay as they are meanwhile */
export function* salvageLines(path: string, { onEnd, onProgress, ...options }: SalvageOptions): Generator<string, void, undefined> {
  using pages = new Pages(path);
  const tables = new Map(pages.tables().map((table) => [table.name, table]));
  const hasLostTables = tables.size < pages.tableCount;
  const total = RECORDS.reduce((sum, { name }) => sum + (tables.get(name)?.entries ?? 0), 0);
  const leftOut: LeftOut[] = [];
  const counters = new Map<string, string>();
  const labels = new Set<number>();
  let isMetaWhole = false;
  let done = 0;
  yield headerLine({ salvaged: true });
  for (const of of RECORDS) {
    const table = tables.get(of.name);
    const seen = new Set<string>();
    const vectorTable = of.name === memories.name && isMetaWhole ? tables.get(vectors.name) : undefined;
    const reader = new VectorsInOrder(vectorTable === undefined ? [] : pages.rows(vectorTable));
    for (const { key, value } of table === undefined ? [] : pages.rows(table)) {
      const text = textOf(value);
      const row = text === undefined ? undefined : parseRow(of, key, text);
      if (text === undefined || row === undefined || row.problem !== undefined || seen.has(key)) continue;
      seen.add(key);
      if (of.name === meta.name) {
        counters.set(key, text);
        continue;
      }
      if (of.name === memories.name) {
        const label = (row.value as MemoryRow).embedding?.label;
        reader.allow(label !== undefined && !labels.has(label));
        if (label !== undefined) labels.add(label);
      }
      yield lineOf(reader, of, key, text, options);
      onProgress?.(++done, total);
    }
    const rows = (table?.entries ?? 0) - seen.size;
    // There stands from which vector on they are of the provider in use.
    if (of.name === meta.name) isMetaWhole = table !== undefined && rows === 0;
    if ((table === undefined && hasLostTables) || rows > 0) leftOut.push({ table: of.name, rows, of: table?.entries ?? 0 });
  }
  // Those of the store as it was; where they are lost, what follows from the memories.
  let nextLabel = Number(counters.get("nextLabel") ?? 0);
  for (const label of labels) nextLabel = Math.max(nextLabel, label + 1);
  counters.set("nextLabel", String(nextLabel));
  counters.delete("schema");
  const metaTable = RECORDS.find(({ name }) => name === meta.name) as RecordTable;
  for (const [key, text] of counters) {
    yield lineOf(new VectorsInOrder([]), metaTable, key, text, options);
    done++;
  }
  yield JSON.stringify({ end: done });
  onEnd(leftOut);
}

/** Vectors in the order of their keys, for memories in the order of theirs. */
class VectorsInOrder implements VectorReader {
  readonly #rows: Iterator<Entry>;
  #current: Entry | undefined;
  #isAllowed = true;

  constructor(rows: Iterable<Entry>) {
    this.#rows = rows[Symbol.iterator]();
  }

  /** Whether the next memory gets its vector. */
  allow(isAllowed: boolean): void {
    this.#isAllowed = isAllowed;
  }

  vectorBytes(memory: string): Uint8Array | undefined {
    while (this.#current === undefined || this.#current.key < memory) {
      const next = this.#rows.next();
      if (next.done === true) return undefined;
      this.#current = next.value;
    }
    // Copied, so that its numbers begin at a multiple of four bytes.
    return this.#isAllowed && this.#current.key === memory ? new Uint8Array(this.#current.value) : undefined;
  }
}
