/**
 * `cairn audit verify`: says whether the traces of a store, or of an export, are as they were signed.
 *
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { parseFlags, UsageError } from "../config.ts";
import type { AuditReport } from "../audit/verify.ts";
import { systemClock } from "../lib/clock.ts";
import { parseHeads, trustedKeys, verifyExport, verifyStore } from "../operations/audit.ts";
import { withAnyStore } from "../operations/with-store.ts";
import { DirectoryInUseError, lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { assertPlace, assertReadable, prepareOnce, storeConfigOf } from "./command-line.ts";
import { escaped, print } from "./print.ts";
import { showProgress } from "./progress.ts";

const PUBLIC_KEY = /^[\w-]{43}$/;

export async function audit([word, ...args]: readonly string[]): Promise<number> {
  if (word !== "verify")
    throw new UsageError(word === undefined ? "cairn audit needs verify" : `there is no cairn audit ${word}: it is verify`);
  const { flags, positionals } = parseFlags(args, { flags: ["public-key", "head"], allowPositionals: true });
  const [file, ...more] = positionals;
  if (more.length > 0) throw new UsageError("cairn audit verify takes one file");
  const given = flags["public-key"]?.split(",") ?? [];
  const wrong = given.find((key) => !PUBLIC_KEY.test(key));
  if (wrong !== undefined) throw new UsageError(`--public-key must be 43 characters of base64url, or several with commas; got ${wrong}`);
  const { head } = flags;
  if (head !== undefined) assertReadable(head);
  const heads = head === undefined ? [] : parseHeads(head, readFileSync(head, "utf8"));
  const config = storeConfigOf(flags);
  if (file === undefined) assertPlace(config);
  else assertReadable(file);
  using _ = prepareOnce(config);
  using progress = showProgress("Verifying", file === undefined ? "rows" : "lines");
  let report: AuditReport;
  if (file === undefined) {
    const { dataDirectory, database } = config;
    const publicKeys = trustedKeys(given, database === undefined ? dataDirectory : undefined);
    const isSettled = database === undefined && !isServed(resolve(dataDirectory));
    report = await withAnyStore(config, systemClock, (store) => verifyStore(store, { publicKeys, heads, isSettled }, progress.show));
  } else {
    const total = statSync(file).size;
    report = await verifyExport(Bun.file(file).stream(), { publicKeys: given, heads, isSettled: false }, (_lines, bytes) =>
      progress.show(bytes, total),
    );
  }
  progress.clear();
  await show(report);
  return report.count === 0 ? 0 : 1;
}

function isServed(directory: string): boolean {
  try {
    lockDirectory(directory)[Symbol.dispose]();
    return false;
  } catch (error) {
    return error instanceof DirectoryInUseError;
  }
}

async function show(report: AuditReport): Promise<void> {
  const { findings, count, signed, unsigned, uncovered, expired, erased, chains, keys, heads } = report;
  for (const { text, trace } of findings) await print(escaped(trace === undefined ? text : `${trace} ${text}.`));
  if (count > findings.length) await print(`${count - findings.length} more are not shown.`);
  await print(`${signed} traces are as they were signed, in ${chains} ${chains === 1 ? "chain" : "chains"}.`);
  if (unsigned > 0) await print(`${unsigned} of the last seconds are linked, and not signed yet.`);
  if (expired + erased > 0) await print(`Removed since, which is signed: ${expired} expired, ${erased} erased.`);
  if (uncovered > 0) await print(`${uncovered} are of before the first chain: nothing shows whether they were changed.`);
  for (const { publicKey, chains: ofKey, isTrusted } of keys)
    await print(`Public key ${publicKey}${isTrusted ? "" : ", which is not trusted"}: ${ofKey} ${ofKey === 1 ? "chain" : "chains"}.`);
  for (const { chain, count: at, digest } of heads) await print(`Head of ${chain}: ${at} ${digest}`);
  await print(count === 0 ? "Nothing was changed." : `${count} ${count === 1 ? "finding" : "findings"}.`);
}
