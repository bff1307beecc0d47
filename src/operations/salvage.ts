/**
 * An export of what can still be read of a damaged store: what `import` takes, and a count of what is left out.
 *
 * The pages are walked without LMDB, so that neither a damaged page nor one that the disk cannot read ends the export. Rows
 * that the code could not read are left out. So are vectors when `meta` is damaged, since their provider is unknown then; an
 * import embeds their memories again. Rows that no longer agree are mended by the import, as doctor does.
 *
 * @module
 */
import { Pages, type Entry } from "../storage/pages.ts";
import { memories, meta, vectors, type MemoryRow } from "../storage/tables.ts";
import { textOf } from "./damage.ts";
import { headerLine, lineOf, type ExportOptions, type VectorReader } from "./export.ts";
import { parseRow, RECORDS, type RecordTable } from "./records.ts";
import type { OnProgress } from "./report.ts";

/** Rows of a table that are not in the export. */
export interface LeftOut {
  table: string;
  rows: number;
  /** Rows that the table has according to its record. */
  of: number;
}

export interface SalvageOptions extends ExportOptions {
  /** Called with what is missing, after the last line. */
  onEnd: (leftOut: LeftOut[]) => void;
  onProgress?: OnProgress;
}

/** Yields each line, without its line feed. @param path - of a data file whose present pages stay as they are */
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
    // It says which vectors are of the provider in use.
    if (of.name === meta.name) isMetaWhole = table !== undefined && rows === 0;
    if ((table === undefined && hasLostTables) || rows > 0) leftOut.push({ table: of.name, rows, of: table?.entries ?? 0 });
  }
  // Counters are those of the store, or follow from the memories where they are lost.
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

/** Reads vectors in the order of keys, for memories in the same order. */
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
