/**
 * An export of what can still be read of a damaged store: what `import` takes, and a count of what is left out.
 *
 * The pages are walked without LMDB, so that neither a damaged page nor one that the disk cannot read ends the export. Rows
 * that the code could not read are left out. So are vectors whose provider is unknown, since its row is lost: an import embeds
 * their memories again. Rows that no longer agree are repaired by the import, as doctor does.
 *
 * @module
 */
import { collectionOf } from "../storage/collections.ts";
import { Pages, type Entry } from "../storage/lmdb/file/pages.ts";
import { provider, type ProviderRow, type VectorTable } from "../storage/tables.ts";
import { storedGeneration } from "../search/encoding.ts";
import { textOf } from "./damage.ts";
import { EXPORTED, headerLine, lineOf, type ExportOptions, type VectorReader } from "./export.ts";
import { parseRow } from "./records.ts";
import type { OnProgress } from "./report.ts";

/** Rows of a table that are not in the export. */
export interface LeftOut {
  table: string;
  rows: number;
  /** Rows that the table has according to its record; undefined where that cannot be. */
  of: number | undefined;
}

export interface SalvageOptions extends ExportOptions {
  /** Called with what is missing, after the last line. */
  onEnd: (leftOut: LeftOut[]) => void;
  onProgress?: OnProgress;
}

/** Yields each line, without its line feed. @param path - of a data file whose present pages stay as they are */
export function* salvageLines(path: string, { onEnd, onProgress, ...options }: SalvageOptions): Generator<string, void, undefined> {
  using pages = new Pages(path);
  const trees = new Map(pages.tables().map((tree) => [tree.name, tree]));
  const hasLostTables = trees.size < pages.tableCount;
  const total = EXPORTED.reduce((sum, { name }) => sum + (trees.get(name)?.entries ?? 0), 0);
  const leftOut: LeftOut[] = [];
  /** The provider's; without its row nobody knows what the vectors are of. */
  let generation = 0;
  let done = 0;
  yield headerLine({ salvaged: true });
  for (const table of EXPORTED) {
    const tree = trees.get(table.name);
    const seen = new Set<string>();
    const vectorTree = trees.get(collectionOf(table)?.vectors.name ?? "");
    const reader = new SalvagedVectors(vectorTree === undefined ? [] : pages.rows(vectorTree), generation);
    for (const { key, value } of tree === undefined ? [] : pages.rows(tree)) {
      const text = textOf(value);
      const row = text === undefined ? undefined : parseRow(table, key, text);
      if (text === undefined || row === undefined || row.problem !== undefined || seen.has(key)) continue;
      seen.add(key);
      if (table.name === provider.name) generation = (row.value as ProviderRow).generation;
      yield lineOf(reader, table, key, text, options);
      onProgress?.(++done, total);
    }
    const entries = tree?.entries ?? 0;
    const rows = entries - seen.size;
    const of = entries > pages.rowsMax ? undefined : entries;
    if (rows > 0 || (tree === undefined && hasLostTables)) leftOut.push({ table: table.name, rows, of });
  }
  yield JSON.stringify({ end: done });
  onEnd(leftOut);
}

/** Vectors by id, asked for in about the order of ids: those that are passed by are kept until they are asked for. */
class SalvagedVectors implements VectorReader {
  readonly #rows: Iterator<Entry>;
  readonly #generation: number;
  readonly #passed = new Map<string, Uint8Array>();
  #last = "";

  /** @param generation - the newest there can be */
  constructor(rows: Iterable<Entry>, generation: number) {
    this.#rows = rows[Symbol.iterator]();
    this.#generation = generation;
  }

  vectorBytes(_table: VectorTable, id: string): Uint8Array | undefined {
    while (this.#last < id) {
      const next = this.#rows.next();
      if (next.done === true) break;
      this.#last = next.value.key;
      // Copied, so that its numbers begin at a multiple of four bytes.
      this.#passed.set(this.#last, new Uint8Array(next.value.value));
    }
    const bytes = this.#passed.get(id);
    this.#passed.delete(id);
    return bytes !== undefined && storedGeneration(bytes) <= this.#generation ? bytes : undefined;
  }
}
