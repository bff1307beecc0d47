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
 * base64 of little-endian float32 and uint32; of several `passages` of a text the vectors stand side by side. Indexes are left out:
 * they follow from the records. The last line says how many there are between it and the first, so that a file that was cut short is
 * noticed. The same store gives the same lines.
 *
 * Secrets are left out unless asked for: the API key of an embedding provider and the query of its URL, the secrets that
 * webhooks sign with, which for that are disabled, and the paths of their URLs, of which only the origin is shown
 * (`https://hooks.example/…`). API keys of Cairn's own are in it as the store has them, as hashes.
 *
 * @module
 */
import { bare } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import { unpacked } from "../lib/packed-json.ts";
import { isShortened, originOnly, withoutQuery } from "../lib/urls.ts";
import { version } from "../lib/version.ts";
import { withoutSecrets as settingsWithoutSecrets } from "../settings/settings.ts";
import { collectionOf, type Collection, type EmbeddedRow } from "../storage/collections.ts";
import { NotFetched, type Reader } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import {
  idempotency,
  meta,
  settings,
  webhooks,
  SCHEMA_VERSION,
  type AnyTable,
  type SettingsRow,
  type WebhookRow,
} from "../storage/tables.ts";
import { isEmbedding, passageCount, storedGeneration, storedMemory, storedTerms, storedVector } from "../search/encoding.ts";
import { OperationError, type OnProgress } from "./report.ts";
import { RECORDS, type RecordTable } from "./records.ts";

export const EXPORT_FORMAT = 1;

/** Tables that are exported. The rows of `meta` say nothing of records. */
export const EXPORTED: readonly RecordTable[] = RECORDS.filter(({ name }) => name !== meta.name);

export interface ExportOptions {
  secrets: boolean;
}

const WITHOUT_SECRET = "It was exported without its secret: rotate that, then enable it.";
const WITHOUT_URL = "It was exported without its secret and the path of its URL: set the URL, rotate the secret, then enable it.";

/** Yields each line, without its line feed. All of them show the store at one moment. */
export async function* exportLines(
  store: RecordStore,
  options: ExportOptions,
  onProgress?: OnProgress,
): AsyncGenerator<string, void, undefined> {
  await using snapshot = await store.snapshot();
  yield headerLine();
  let total = 0;
  for (const table of EXPORTED) total += await store.count(table);
  let done = 0;
  for (const table of EXPORTED) {
    for await (const rows of snapshot.rowBatches(table)) {
      yield* await snapshot.readEach(rows, (reader, { key, text }) => lineOf(reader, table, key, text, options));
      done += rows.length;
      onProgress?.(done, Math.max(done, total));
    }
  }
  yield JSON.stringify({ end: done });
}

/** @param marks - `salvaged`: rows may be missing, so that an import has to repair the others */
export function headerLine(marks: { salvaged?: true } = {}): string {
  return JSON.stringify({ cairn_export: EXPORT_FORMAT, cairn: version, schema: SCHEMA_VERSION, ...marks });
}

/** Reads what the line of a record with a vector needs. */
export type VectorReader = Pick<Reader, "vectorBytes">;

/** @throws {OperationError} for a row that cannot be read */
export function lineOf(reader: VectorReader, table: RecordTable, key: string, text: string, { secrets }: ExportOptions): string {
  try {
    const json = table.toExport(text);
    const row: unknown = JSON.parse(json);
    const collection = collectionOf(table);
    if (collection !== undefined) return embeddedLine(reader, collection, key, row as EmbeddedRow);
    const withoutSecrets = secrets ? undefined : WITHOUT_SECRETS.get(table.name);
    return line(table, key, withoutSecrets === undefined ? json : JSON.stringify(withoutSecrets(row as never)));
  } catch (error) {
    if (error instanceof NotFetched) throw error;
    throw new OperationError(`The row ${key} of ${table.name} cannot be read. cairn doctor says what else is wrong.`, { cause: error });
  }
}

function line({ name }: AnyTable, key: string, row: string, more = ""): string {
  return `{"table":"${name}","key":${JSON.stringify(key)},"row":${row}${more}}`;
}

/** A record whose vector is lost is embedded again where it is imported. */
function embeddedLine(reader: VectorReader, { records, vectors }: Collection, key: string, row: EmbeddedRow): string {
  const { embedding, ...rest } = row;
  const bytes = embedding === undefined ? undefined : reader.vectorBytes(vectors, bare(embedding.id));
  const isRight = bytes !== undefined && isEmbedding(bytes) && storedMemory(bytes) === key;
  if (!isRight || storedGeneration(bytes) !== embedding?.generation) return line(records, key, JSON.stringify(rest));
  const vector = base64(storedVector(bytes));
  const terms = base64(storedTerms(bytes));
  const passages = passageCount(bytes);
  const several = passages === 1 ? "" : `,"passages":${passages}`;
  return line(records, key, JSON.stringify(row), `,"vector":"${vector}"${several},"terms":"${terms}"`);
}

function webhookWithoutSecrets({ secret: _secret, previousSecrets: _previous, url: full, ...shown }: WebhookRow): object {
  const url = originOnly(full);
  const disabledReason = isShortened(url) ? WITHOUT_URL : WITHOUT_SECRET;
  return { ...shown, url, enabled: false, disabledReason, previousSecrets: [] };
}

/** The members of a stored answer that can show such a URL. */
interface Answer {
  object?: unknown;
  url?: string;
  embedding?: { base_url: { value: string } };
}

function answerWithoutSecrets(row: { body: Answer; packed?: true }): object {
  if (row.packed === true) {
    const { packed: _, ...rest } = row;
    const shown = { ...rest, body: JSON.parse(unpacked(toJson(row.body))) as Answer };
    const without = answerWithoutSecrets(shown);
    return without === shown ? row : without;
  }
  const { object, url, embedding } = row.body;
  if (object === "webhook" && url !== undefined) return { ...row, body: { ...row.body, url: originOnly(url) } };
  if (object !== "settings" || embedding === undefined) return row;
  const { base_url: shown, ...others } = embedding;
  return { ...row, body: { ...row.body, embedding: { ...others, base_url: { ...shown, value: withoutQuery(shown.value) } } } };
}

const WITHOUT_SECRETS: ReadonlyMap<string, (row: never) => object> = new Map<string, (row: never) => object>([
  [settings.name, (row: SettingsRow) => settingsWithoutSecrets(row)],
  [webhooks.name, webhookWithoutSecrets],
  [idempotency.name, answerWithoutSecrets],
]);

function base64(numbers: Float32Array | Uint32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString("base64");
}
