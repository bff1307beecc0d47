/**
 * Verifies the traces of a store, or of an export.
 *
 * @module
 */
import { publicKeyIn } from "../storage/audit/audit-key.ts";
import type { Head } from "../storage/audit/chain.ts";
import type { RecordStore } from "../storage/record-store.ts";
import {
  auditChains,
  auditRemovals,
  auditSegments,
  traces,
  type AuditChainRow,
  type AuditRemovalsRow,
  type AuditSegmentRow,
} from "../storage/tables.ts";
import { Verification, type AuditReport, type VerifyOptions } from "../audit/verify.ts";
import { isHeaderOfSalvaged, linesOf, parseLine, wrongLine } from "./import.ts";
import { parseRow, RECORDS, type RecordTable } from "./records.ts";
import { OperationError, type OnProgress } from "./report.ts";

const VERIFIED: readonly RecordTable[] = [auditChains, auditSegments, auditRemovals, traces].map(({ name }) =>
  RECORDS.find((table) => table.name === name)!,
);

export async function verifyStore(store: RecordStore, options: VerifyOptions, onProgress?: OnProgress): Promise<AuditReport> {
  await using snapshot = await store.snapshot();
  const verification = new Verification();
  let total = 0;
  for (const table of VERIFIED) total += await store.count(table);
  let done = 0;
  for (const table of VERIFIED) {
    for await (const rows of snapshot.rowBatches(table)) {
      for (const { key, text } of rows) {
        const { value, problem } = checked(table, key, text);
        if (problem === undefined) addTo(verification, table, key, value, () => table.toExport(text));
        else verification.found(`The row ${key} of ${table.name} cannot be read: ${problem}.`);
      }
      done += rows.length;
      onProgress?.(done, Math.max(done, total));
    }
  }
  return verification.report(options);
}

/** @throws {OperationError} for a file that is no export, or was cut short */
export async function verifyExport(
  source: AsyncIterable<Uint8Array>,
  options: VerifyOptions,
  onRead?: (lines: number, bytes: number) => void,
): Promise<AuditReport> {
  const verification = new Verification();
  let number = 0;
  let end: unknown;
  for await (const { bytes, readBytes } of linesOf(source)) {
    number++;
    const value = parseLine(bytes, number);
    if (number === 1) isHeaderOfSalvaged(value);
    else if (Object.hasOwn(value, "end")) end = value["end"];
    else addLine(verification, value, Buffer.from(bytes).toString());
    onRead?.(number, readBytes);
  }
  if (number === 0) throw new OperationError("There is nothing to verify.");
  if (end === undefined) throw wrongLine(number, "the end is missing, so the file was cut short");
  if (end !== number - 2) verification.found(`There should be ${JSON.stringify(end)} records, and there are ${number - 2}.`);
  return verification.report(options);
}

function addLine(verification: Verification, { table: name, key, row }: Record<string, unknown>, line: string): void {
  const table = VERIFIED.find((one) => one.name === name);
  if (table === undefined || typeof key !== "string") return;
  const start = `{"table":"${table.name}","key":${JSON.stringify(key)},"row":`;
  const json = line.startsWith(start) ? line.slice(start.length, -1) : JSON.stringify(row);
  const { problem } = checked(table, key, table.fromExport(row));
  if (problem === undefined) addTo(verification, table, key, row, () => json);
  else verification.found(`The row ${key} of ${table.name} cannot be read: ${problem}.`);
}

/** Parses a row, which has no members besides those of its table: nobody would miss them. */
function checked(table: RecordTable, key: string, text: string): { value?: unknown; problem: string | undefined } {
  const { value, problem } = parseRow(table, key, text);
  const known = (table.schema as { properties?: object }).properties ?? {};
  const unknown =
    problem === undefined && table.name !== traces.name
      ? Object.keys(value as object).find((name) => !Object.hasOwn(known, name))
      : undefined;
  return { value, problem: problem ?? (unknown === undefined ? undefined : `it has a member ${unknown}`) };
}

function addTo(verification: Verification, { name }: RecordTable, key: string, row: unknown, json: () => string): void {
  if (name === traces.name) verification.addTrace(key, json());
  else if (name === auditChains.name) verification.addChain(key, row as AuditChainRow);
  else if (name === auditSegments.name) verification.addSegment(key, row as AuditSegmentRow);
  else verification.addRemovals(key, row as AuditRemovalsRow);
}

/** Public keys that a verification trusts: those given, or else that of the data directory. */
export function trustedKeys(given: readonly string[], dataDirectory: string | undefined): readonly string[] {
  if (given.length > 0 || dataDirectory === undefined) return given;
  const own = publicKeyIn(dataDirectory);
  return own === undefined ? [] : [own];
}

/** Reads heads as `GET /v1/audit/head` answers them. @throws {OperationError} for a text that is none */
export function parseHeads(file: string, text: string): Head[] {
  let value: { chains?: unknown } | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch (error) {
    throw new OperationError(`${file} is not JSON.`, { cause: error });
  }
  const heads = Array.isArray(value?.chains) ? (value.chains as Partial<Head>[]) : undefined;
  const isHead = (head: Partial<Head> | null): head is Head =>
    typeof head?.chain === "string" && Number.isSafeInteger(head.count) && typeof head.digest === "string";
  if (heads?.every(isHead) !== true)
    throw new OperationError(`${file} is not what GET /v1/audit/head answers: its chains have a chain, a count and a digest each.`);
  return heads.map(({ chain, count, digest }) => ({ chain, count, digest }));
}
