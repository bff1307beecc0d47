/**
 * Reads an export into a store of its own, which becomes the data directory's once the last line is found right; or into a database
 * without records, in one transaction that is committed then.
 *
 * Every line is checked before it is written, and all of them together as `cairn doctor` checks a store. Indexes are written
 * from the records.
 *
 * @module
 */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storedKey } from "../keys/stored-key.ts";
import type { Clock } from "../lib/clock.ts";
import { bare, NO_PARTITION, withPrefix, type BareId } from "../lib/ids.ts";
import { jsonDepth } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { isShortened } from "../lib/urls.ts";
import type { GivenSettings } from "../settings/schema.ts";
import { eachFetched, type Tx } from "../storage/access.ts";
import { collectionOf, hasVector, wantsVector, type EmbeddedRow } from "../storage/collections.ts";
import { Store } from "../storage/lmdb/store.ts";
import type { PostgresStore } from "../storage/postgres/postgres-store.ts";
import type { ChangedStore } from "../storage/record-store.ts";
import {
  apiKeys,
  SCHEMA_VERSION,
  settings,
  type VectorTable,
  webhooks,
  type AnyTable,
  type ApiKeyRow,
  type WebhookRow,
} from "../storage/tables.ts";
import { encodeVector, isComparable, type VectorOwner } from "../search/encoding.ts";
import { newSecret } from "../webhooks/signature.ts";
import { CHECKS } from "./checks.ts";
import { repairAll } from "./doctor.ts";
import { EXPORTED, EXPORT_FORMAT } from "./export.ts";
import { cleanUpAfter } from "./files.ts";
import { putStore } from "./new-store.ts";
import { rowProblem, type RecordTable } from "./records.ts";
import { OperationError, type Finding } from "./report.ts";

const BYTES_PER_COMMIT = 1024 * 1024;
/** No export has longer lines, and a line must not fill the memory. */
const LINE_BYTES_MAX = 256 * 1024 * 1024;

/** Levels that a caller may nest, and those of the trace or event around them. */
const ROW_DEPTH_MAX = LIMITS.jsonDepthMax + 16;

const BY_NAME = new Map(EXPORTED.map((table) => [table.name, table]));

/** Called with how many lines were read, and how many bytes of the file. */
export type OnRead = (lines: number, bytes: number) => void;

export interface Imported {
  records: number;
  /** Texts that say what was exported without its secrets, and what to do. */
  setAgain: string[];
  /** Damage that could not be repaired; only of a salvaged export. */
  left: Finding[];
}

/** @throws {OperationError} naming the line that is wrong; then nothing was changed */
export async function importLines(
  source: AsyncIterable<Uint8Array>,
  dataDirectory: string,
  clock: Clock,
  onRead?: OnRead,
): Promise<Imported> {
  const refusal = `There is a store in ${dataDirectory} already. An import needs a data directory without one.`;
  return putStore(dataDirectory, refusal, async (incoming) => {
    const store = await Store.open(incoming, clock);
    try {
      return await fill(store, source, join(incoming, "records"), onRead);
    } finally {
      await store.close();
    }
  });
}

/** @throws {OperationError} naming the line that is wrong, or where there are records; then nothing was changed */
export async function importIntoDatabase(source: AsyncIterable<Uint8Array>, database: PostgresStore, onRead?: OnRead): Promise<Imported> {
  const directory = mkdtempSync(join(tmpdir(), "cairn-import-"));
  using _ = cleanUpAfter(() => rmSync(directory, { recursive: true, force: true }));
  const imported = await database.alone(async (store) => {
    await assertEmpty(store);
    return fill(store, source, join(directory, "records"), onRead);
  });
  await database.analyze();
  return imported;
}

async function assertEmpty(store: ChangedStore): Promise<void> {
  await using snapshot = await store.snapshot();
  const areEmpty = await snapshot.readEach(EXPORTED, (reader, table) => reader.isEmpty(table));
  const used = EXPORTED.filter((_, i) => areEmpty[i] !== true).map(({ name }) => name);
  if (used.length > 0)
    throw new OperationError(
      `There are records in the database already (${used.join(", ")}). An import needs a database without any: one that no server was started on.`,
    );
}

/** @param list - file for the record of each line */
async function fill(store: ChangedStore, source: AsyncIterable<Uint8Array>, list: string, onRead: OnRead | undefined): Promise<Imported> {
  const setAgain: string[] = [];
  const { count: records, isSalvaged } = await readInto(store, source, list, setAgain, onRead);
  if (isSalvaged) return { records, setAgain, left: (await repairAll(store)).left };
  await checkTogether(store, list);
  return { records, setAgain, left: [] };
}

/**
 * @param list - file with the record of each line: there may be more than the memory holds
 * @throws {OperationError} naming the line of the first record that does not agree with the others
 */
async function checkTogether(store: ChangedStore, list: string): Promise<void> {
  await using snapshot = await store.snapshot();
  for (const check of CHECKS) {
    for await (const { problems } of check(snapshot)) {
      const [first] = problems;
      if (first === undefined) continue;
      const { what, example, record } = first;
      if (record !== undefined) throw wrongLine(await lineOf(record, list), `${what} (${example})`);
      throw new OperationError(`The records do not agree: ${what} (${example}). Nothing was changed.`);
    }
  }
}

/** The number of a record's line. The first line is no record. */
async function lineOf({ table, key }: { table: AnyTable; key: string }, list: string): Promise<number> {
  const wanted = `${table.name} ${key}`;
  let number = 1;
  for await (const { bytes } of linesOf(Bun.file(list).stream())) {
    number++;
    if (utf8.decode(bytes) === wanted) break;
  }
  return number;
}

async function readInto(
  store: ChangedStore,
  source: AsyncIterable<Uint8Array>,
  list: string,
  setAgain: string[],
  onRead: OnRead | undefined,
): Promise<{ count: number; isSalvaged: boolean }> {
  let isSalvaged = false;
  let number = 0;
  let end: unknown;
  const batch: ImportLine[] = [];
  let batchBytes = 0;
  for await (const { bytes, readBytes } of linesOf(source)) {
    number++;
    const value = parseLine(bytes, number);
    if (end !== undefined) throw wrongLine(number, "nothing may come after the end");
    if (number === 1) isSalvaged = isHeaderOfSalvaged(value);
    else if (Object.hasOwn(value, "end")) end = value["end"];
    else {
      const line = checkLine(value, number);
      setAgain.push(...leftOutOf(line.table, line.key, value["row"]));
      batch.push(line);
      batchBytes += bytes.byteLength;
    }
    if (batchBytes > BYTES_PER_COMMIT) {
      await commitLines(store, list, batch.splice(0));
      batchBytes = 0;
    }
    onRead?.(number, readBytes);
  }
  await commitLines(store, list, batch);
  const count = number - 2;
  if (number === 0) throw new OperationError("There is nothing to import.");
  if (end === undefined) throw wrongLine(number, "the end is missing, so the file was cut short");
  if (end !== count) throw wrongLine(number, `there should be ${JSON.stringify(end)} records, and there are ${count}`);
  return { count, isSalvaged };
}

async function commitLines(store: ChangedStore, list: string, lines: readonly ImportLine[]): Promise<void> {
  await store.commit(NO_PARTITION, (tx) => eachFetched(lines, (line) => add(tx, line)));
  appendFileSync(list, lines.map(({ table, key }) => `${table.name} ${key}\n`).join(""), { mode: 0o600 });
}

/** Yields the lines of a stream of bytes, each with the number of bytes read so far. */
export async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<{ bytes: Uint8Array; readBytes: number }> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  let readBytes = 0;
  let number = 1;
  for await (const chunk of source) {
    readBytes += chunk.byteLength;
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const last = chunk.subarray(start, end);
      yield { bytes: pieces.length === 0 ? last : Buffer.concat([...pieces, last]), readBytes };
      number++;
      pieces = [];
      length = 0;
      start = end + 1;
    }
    if (start === chunk.byteLength) continue;
    // Copied, because the reader may fill the same buffer again.
    pieces.push(chunk.slice(start));
    length += chunk.byteLength - start;
    if (length > LINE_BYTES_MAX) throw wrongLine(number, `it is longer than ${LINE_BYTES_MAX} bytes`);
  }
  if (pieces.length > 0) yield { bytes: Buffer.concat(pieces), readBytes };
}

const LINE_FEED = 0x0a;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws {OperationError} for a line that is not an object of JSON */
export function parseLine(bytes: Uint8Array, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw wrongLine(number, "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrongLine(number, "it is not a JSON object");
  return value as Record<string, unknown>;
}

/** @throws {OperationError} for a first line that is not that of an export */
export function isHeaderOfSalvaged(value: Record<string, unknown>): boolean {
  const { cairn_export: format, schema, cairn, salvaged } = value;
  if (typeof format !== "number" || typeof schema !== "number") throw wrongLine(1, "it is not the first line of an export of Cairn's");
  if (format !== EXPORT_FORMAT || schema !== SCHEMA_VERSION) {
    throw wrongLine(
      1,
      `this Cairn reads format ${EXPORT_FORMAT}, schema ${SCHEMA_VERSION}, not format ${format}, schema ${schema} of Cairn ${JSON.stringify(cairn)?.slice(0, 80)}`,
    );
  }
  return salvaged === true;
}

interface ImportLine {
  number: number;
  table: RecordTable;
  key: string;
  row: unknown;
  vector: { table: VectorTable; id: BareId; bytes: Uint8Array } | undefined;
}

function checkLine(value: Record<string, unknown>, number: number): ImportLine {
  const { table: name, key, row } = value;
  const table = typeof name === "string" ? BY_NAME.get(name) : undefined;
  if (table === undefined) throw wrongLine(number, `there is no table ${JSON.stringify(name)?.slice(0, 80)}`);
  if (typeof key !== "string") throw wrongLine(number, "key is not text");
  const problem = jsonDepth(row) > ROW_DEPTH_MAX ? `row nests more than ${ROW_DEPTH_MAX} levels` : rowProblem(table, key, row);
  if (problem !== undefined) throw wrongLine(number, problem);
  const collection = collectionOf(table);
  const { embedding } = collection === undefined ? {} : (row as EmbeddedRow);
  return {
    number,
    table,
    key,
    row: table.decode(table.fromExport(table.name === webhooks.name ? withSecret(row as WebhookRow) : row)),
    vector: embedding && {
      table: collection!.vectors,
      id: bare(embedding.id),
      bytes: readVector(value, { memory: key, generation: embedding.generation }, number),
    },
  };
}

/** Says what an export without secrets has left out of a row. */
function leftOutOf({ name }: RecordTable, key: string, row: unknown): string[] {
  if (name === settings.name) {
    const { "embedding.provider": provider, "embedding.base_url": baseUrl = "", "embedding.api_key": apiKey } = row as GivenSettings;
    const [url, secret] = [isShortened(baseUrl), provider === "openai" && apiKey === undefined];
    return [
      ...(url ? [`embedding.base_url in the settings: the query of ${baseUrl}`] : []),
      ...(secret ? ["embedding.api_key in the settings, if the embedding provider wants one"] : []),
    ];
  }
  if (name !== webhooks.name || (row as Partial<WebhookRow>).secret !== undefined) return [];
  const { url } = row as WebhookRow;
  const what = isShortened(url) ? `the path of its URL (${url}) and its secret` : `its secret (${url})`;
  return [`webhook ${withPrefix("whk", key)}: ${what}; it is disabled until you enable it`];
}

/** A webhook that was exported without its secret gets one that nobody knows, and is disabled until it is given another. */
function withSecret(row: WebhookRow): WebhookRow {
  return (row as Partial<WebhookRow>).secret === undefined ? { ...row, secret: newSecret() } : row;
}

/** The bytes of a vector as the store has them. */
function readVector({ vector, passages = 1, terms }: Record<string, unknown>, owner: VectorOwner, number: number): Uint8Array {
  if (typeof vector !== "string" || typeof terms !== "string") throw wrongLine(number, "vector and terms must be base64");
  if (!Number.isInteger(passages)) throw wrongLine(number, "passages must be a whole number");
  const values = Buffer.from(vector, "base64");
  const words = Buffer.from(terms, "base64");
  const embedding =
    values.byteLength % Float32Array.BYTES_PER_ELEMENT === 0 && words.byteLength % Uint32Array.BYTES_PER_ELEMENT === 0
      ? {
          vector: new Float32Array(new Uint8Array(values).buffer),
          passages: Number(passages),
          terms: new Uint32Array(new Uint8Array(words).buffer),
        }
      : undefined;
  if (embedding === undefined || !isComparable(embedding.vector, embedding.passages))
    throw wrongLine(number, "vector and terms are not those of a record");
  return encodeVector(embedding, owner);
}

function add(tx: Tx, { number, table, key, row, vector }: ImportLine): void {
  if (tx.has(table, key)) throw wrongLine(number, `there was a row ${key} of ${table.name} before`);
  if (table.name === apiKeys.name && storedKey(tx, bare((row as ApiKeyRow).id)) !== undefined)
    throw wrongLine(number, `another row of ${table.name} says the same id`);
  tx.add(table, key, row);
  if (vector !== undefined) {
    if (tx.has(vector.table, vector.id)) throw wrongLine(number, `another vector has the id ${withPrefix("emb", vector.id)}`);
    tx.putVector(vector.table, vector.id, vector.bytes);
  }
  const collection = collectionOf(table);
  if (collection !== undefined && wantsVector(row as EmbeddedRow) && !hasVector(row as EmbeddedRow)) tx.put(collection.pending, key, "");
}

export function wrongLine(number: number, reason: string): OperationError {
  return new OperationError(`Line ${number} cannot be imported: ${reason}. Nothing was changed.`);
}
