/**
 * Rules of a row beyond the shape that `storage/tables.ts` declares, and what it becomes without what is wrong with it.
 *
 * The commands that take a store apart (export, import, doctor) go through the tables of records and their declarations alone.
 *
 * @module
 */
import { DIMENSION_MAX } from "../embeddings/embedder.ts";
import { BARE_ID_LENGTH } from "../lib/ids.ts";
import { storedSettingsProblem, withoutWrongSettings } from "../settings/stored-settings.ts";
import { isBound } from "../storage/owner.ts";
import { problemOf, Whole } from "../storage/row-types.ts";
import {
  ALL_FILLED,
  apiKeys,
  FILLED_FROM,
  fillMark,
  meta,
  provider,
  RECORD_TABLES,
  settings,
  traces,
  TRACES_WATERMARK,
  turns,
  webhooks,
  type AnyTable,
  type ApiKeyRow,
  type Index,
  type ProviderRow,
  type SettingsRow,
  type Table,
  type WebhookRow,
} from "../storage/tables.ts";
import { actionOf } from "../traces/events.ts";
import { checkUrl } from "../webhooks/target.ts";
import { secretProblem } from "../webhooks/signature.ts";

/** A table of records, whatever its rows are. */
export type RecordTable = Table<unknown>;

export const RECORDS = RECORD_TABLES as readonly unknown[] as readonly RecordTable[];

interface RowValidator<Row> {
  /** Says what is wrong with the values of a row of the right shape. */
  problemOf(row: Row, key: string): string | undefined;
  /** The row without what is wrong with it; undefined where nothing is right without it. */
  repaired?(row: Row): Row | undefined;
}

function validator<Row>(table: AnyTable, of: RowValidator<Row>): [string, RowValidator<unknown>] {
  return [table.name, of];
}

/** Keys of meta whose rows are ids; one is of a Cairn of before. */
const IDS: ReadonlySet<string> = new Set([TRACES_WATERMARK, "contentsMark"]);

const ROW_VALIDATORS = new Map<string, RowValidator<unknown>>([
  validator<string>(meta, {
    problemOf(row, key) {
      if (key.startsWith(fillMark("")))
        return row === ALL_FILLED || row.startsWith(FILLED_FROM) ? undefined : "row is not how far an index is filled";
      if (IDS.has(key)) return row.length === BARE_ID_LENGTH ? undefined : "row is not an id";
      return Number(row) < 2 ** 32 ? undefined : "row is not the text of a whole number below 2^32";
    },
  }),
  validator<SettingsRow>(settings, { problemOf: (row) => storedSettingsProblem(row)?.message, repaired: withoutWrongSettings }),
  validator<ApiKeyRow>(apiKeys, {
    problemOf: ({ kind, expiresAt, source, scopes, userId, agentId, oauth }) => {
      if (scopes.includes("admin") && isBound({ userId, agentId })) return "a key with the scope admin is bound to a user or an agent";
      if (kind !== "key" && problemOf(Whole, expiresAt) !== undefined) return `row.expiresAt is not ${Whole.description}`;
      if ((kind === "oauth") !== (oauth !== undefined)) return "row.oauth is of a grant alone, and no grant is without";
      if (kind === "oauth" && scopes.includes("admin")) return "a grant has the scope admin";
      return source === undefined || kind === "session" || kind === "oauth" ? undefined : "row.source is of a key that came from no other";
    },
  }),
  validator<ProviderRow>(provider, {
    problemOf: ({ vectorLength = 1 }) =>
      vectorLength >= 1 && vectorLength <= DIMENSION_MAX ? undefined : `vectorLength must be from 1 to ${DIMENSION_MAX}`,
    // All else is found out again from the provider, and which vectors are of earlier generations by looking at each.
    repaired: ({ identity, generation }) => ({ identity, generation, replacesUntil: "z".repeat(BARE_ID_LENGTH) }),
  }),
  validator<Partial<WebhookRow> & Pick<WebhookRow, "url" | "previousSecrets">>(webhooks, {
    problemOf: ({ url, secret, previousSecrets }) => {
      const checked = checkUrl(url);
      if ("problem" in checked) return `row.url cannot be used: ${checked.problem}`;
      const secrets = [...(secret === undefined ? [] : [secret]), ...previousSecrets.map((previous) => previous.secret)];
      const problem = secrets.map(secretProblem).find((one) => one !== undefined);
      return problem === undefined ? undefined : `row.secret cannot be used: ${problem}`;
    },
  }),
  validator<{ shown: { id: string }; rest: { session_id: string } }>(turns, {
    problemOf: ({ shown, rest }, key) =>
      rest.session_id.slice("sess_".length) + shown.id.slice("turn_".length) === key ? undefined : "the row says another id than its key",
  }),
  validator<unknown>(traces, { problemOf: (_, key) => (actionOf(key) === undefined ? "the key is of no action" : undefined) }),
]);

/** A table or index as what it holds, text for text. */
export function stored({ name }: AnyTable) {
  return { name, encode: (text: string) => text, decode: (text: string) => text, indexes: [] as readonly Index<string>[] };
}

/**
 * Problem of a row, if any.
 *
 * @param value - of the row's JSON in an export
 */
export function rowProblem(table: RecordTable, key: string, value: unknown): string | undefined {
  if (!table.key.test(key)) return "the key has not the shape of one";
  return problemOf(table.schema, value) ?? ROW_VALIDATORS.get(table.name)?.problemOf(value, key);
}

/** Parses a stored text as a row in an export, and says what is wrong with it. */
export function parseRow(table: RecordTable, key: string, text: string): { value?: unknown; problem: string | undefined } {
  let value: unknown;
  try {
    value = JSON.parse(table.toExport(text));
  } catch {
    return { problem: "it is not JSON" };
  }
  return { value, problem: rowProblem(table, key, value) };
}

/** The stored text of a wrong row without the values that make no sense; undefined where that is not all that is wrong with it. */
export function repairedText(table: RecordTable, key: string, text: string): string | undefined {
  const { value } = parseRow(table, key, text);
  if (problemOf(table.schema, value) !== undefined) return undefined;
  const repaired = ROW_VALIDATORS.get(table.name)?.repaired?.(value);
  return repaired === undefined || rowProblem(table, key, repaired) !== undefined ? undefined : table.fromExport(repaired);
}
