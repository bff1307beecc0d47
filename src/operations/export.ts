/**
 * An export: everything in the store as lines of JSON, for other programs and other versions.
 *
 * ```
 * {"cairn_export":1,"cairn":"0.1.0","schema":1}
 * {"table":"sessions","key":"0VQk3aB4x1Zq","row":{…}}
 * {"table":"memories","key":"0VQk3aB4x1Zr","row":{…},"vector":"…","terms":"…"}
 * {"end":2}
 * ```
 * Tables, keys and rows are those of `storage/tables.ts`, with `body` and the halves of a turn as JSON; `vector` and `terms` are
 * base64 of little-endian float32 and uint32. Indexes are left out: they follow from the records. The last line says how
 * many there are between it and the first, so that a file that was cut short is noticed. The same store gives the same lines.
 *
 * Secrets are left out unless asked for: the API key of an embedding provider and the query of its URL, the secrets that
 * webhooks sign with, which for that are disabled, and the paths of their URLs, of which only the origin is shown
 * (`https://hooks.example/…`). API keys of Cairn's own are in it as the store has them, as hashes.
 *
 * @module
 */
import { bare } from "../lib/ids.ts";
import { isShortened, originOnly, withoutQuery } from "../lib/urls.ts";
import { version } from "../lib/version.ts";
import { withoutSecrets } from "../settings/settings.ts";
import type { Snapshot, Store } from "../storage/store.ts";
import {
  BACKUP_NUMBER,
  idempotency,
  memories,
  meta,
  settings,
  webhooks,
  SCHEMA_VERSION,
  type AnyTable,
  type MemoryRow,
  type SettingsRow,
  type WebhookRow,
} from "../storage/tables.ts";
import { isEmbedding, storedGeneration, storedMemory, storedTerms, storedVector } from "../vectors/encoding.ts";
import { OperationError, type OnProgress } from "./report.ts";
import { RECORDS, type RecordTable } from "./records.ts";

export const EXPORT_FORMAT = 1;

/** Rows of `meta` that say nothing of records. */
const OF_THIS_STORE: ReadonlySet<string> = new Set(["schema", BACKUP_NUMBER]);

export interface ExportOptions {
  secrets: boolean;
}

const WITHOUT_SECRET = "It was exported without its secret: rotate that, then enable it.";
const WITHOUT_URL = "It was exported without its secret and the path of its URL: set the URL, rotate the secret, then enable it.";

/** Yields each line, without its line feed. All of them show the store at one moment. */
export function* exportLines(store: Store, options: ExportOptions, onProgress?: OnProgress): Generator<string, void, undefined> {
  using reader = store.snapshot();
  yield headerLine();
  const total = RECORDS.reduce((sum, table) => sum + store.count(table), 0);
  let done = 0;
  for (const table of RECORDS) {
    for (const { key, text } of reader.entries(table)) {
      if (table.name === meta.name && OF_THIS_STORE.has(key)) continue;
      yield lineOf(reader, table, key, text, options);
      done++;
      onProgress?.(done, total);
    }
  }
  yield JSON.stringify({ end: done });
}

/** @param marks - `salvaged`: rows may be missing, so that an import has to mend the others */
export function headerLine(marks: { salvaged?: true } = {}): string {
  return JSON.stringify({ cairn_export: EXPORT_FORMAT, cairn: version, schema: SCHEMA_VERSION, ...marks });
}

/** Reads what a memory's line needs. */
export type VectorReader = Pick<Snapshot, "vectorBytes">;

/** @throws {OperationError} for a row that cannot be read */
export function lineOf(reader: VectorReader, table: RecordTable, key: string, text: string, { secrets }: ExportOptions): string {
  try {
    if (table.name === memories.name) return memoryLine(reader, key, JSON.parse(text) as MemoryRow);
    if (!secrets && table.name === settings.name)
      return line(settings, key, JSON.stringify(withoutSecrets(JSON.parse(text) as SettingsRow)));
    if (!secrets && table.name === webhooks.name) return line(webhooks, key, webhookWithoutSecret(JSON.parse(text) as WebhookRow));
    const row = table.toExport(text);
    const value: unknown = JSON.parse(row);
    if (!secrets && table.name === idempotency.name) return line(idempotency, key, answerWithoutSecret(value as { body: Answer }, row));
    return line(table, key, row);
  } catch (error) {
    throw new OperationError(`The row ${key} of ${table.name} cannot be read. cairn doctor says what else is wrong.`, { cause: error });
  }
}

function line({ name }: AnyTable, key: string, row: string, more = ""): string {
  return `{"table":"${name}","key":${JSON.stringify(key)},"row":${row}${more}}`;
}

/** A memory whose vector is lost is embedded again where it is imported. */
function memoryLine(reader: VectorReader, key: string, row: MemoryRow): string {
  const { embedding, ...rest } = row;
  const bytes = embedding === undefined ? undefined : reader.vectorBytes(bare(embedding.id));
  const isRight = bytes !== undefined && isEmbedding(bytes) && storedMemory(bytes) === key;
  if (!isRight || storedGeneration(bytes) !== embedding?.generation) return line(memories, key, JSON.stringify(rest));
  const vector = base64(storedVector(bytes));
  const terms = base64(storedTerms(bytes));
  return line(memories, key, JSON.stringify(row), `,"vector":"${vector}","terms":"${terms}"`);
}

function webhookWithoutSecret({ secret: _secret, previousSecrets: _previous, url: full, ...shown }: WebhookRow): string {
  const url = originOnly(full);
  const disabledReason = isShortened(url) ? WITHOUT_URL : WITHOUT_SECRET;
  return JSON.stringify({ ...shown, url, enabled: false, disabledReason, previousSecrets: [] });
}

/** The members of a stored answer that can show such a URL. */
interface Answer {
  object?: unknown;
  url?: string;
  embedding?: { base_url: { value: string } };
}

function answerWithoutSecret(row: { body: Answer }, json: string): string {
  const { body } = row;
  if (body.object === "webhook" && typeof body.url === "string") {
    return JSON.stringify({ ...row, body: { ...body, url: originOnly(body.url) } });
  }
  if (body.object === "settings" && body.embedding !== undefined) {
    const { base_url: url, ...others } = body.embedding;
    return JSON.stringify({ ...row, body: { ...body, embedding: { ...others, base_url: { ...url, value: withoutQuery(url.value) } } } });
  }
  return json;
}

function base64(numbers: Float32Array | Uint32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString("base64");
}
