/**
 * Chains of traces in commits to the database: each transaction extends one that no other has meanwhile.
 *
 * @module
 */
import type { AuditWriter } from "../../audit/audit-writer.ts";
import type { AuditChain } from "../../audit/chain.ts";
import { traces } from "../../tables.ts";
import type { Database, Statement } from "../connection/database.ts";
import { SCHEMA_CHECK } from "../migrations.ts";
import { FetchedRows } from "../read/fetched-rows.ts";
import { writesOf, type Change } from "./commit-statements.ts";

const isNewTrace = ({ table, isNew, value }: Change): boolean => isNew && table === traces.name && value !== undefined;

/** The chain of one transaction. */
export class LinkedChanges {
  readonly #audit: AuditWriter | undefined;
  #chain: AuditChain | undefined;
  /** Fate of the transaction, as far as it is known. */
  outcome: "rolled back" | "unknown" | "committed" = "rolled back";

  constructor(audit: AuditWriter | undefined) {
    this.#audit = audit;
  }

  /** The same changes with each new trace linked, and with what that writes. */
  of(changes: readonly Change[], now: number): readonly Change[] {
    if (this.#audit === undefined || !changes.some(isNewTrace)) return changes;
    const chain = (this.#chain = this.#audit.take(now));
    return changes.flatMap((change) => (isNewTrace(change) ? chain.link({ ...change, row: undefined }, now) : [change]));
  }

  /** To be called once the transaction has ended. */
  end(): void {
    if (this.#chain !== undefined) this.#audit?.give(this.#chain, this.outcome);
  }
}

/** Signs what is linked, a chain at a time. @throws {DatabaseError} when one could not be signed */
export async function signChains(
  audit: AuditWriter,
  { database, first, now, newRevision }: { database: Database; first: Statement; now: number; newRevision: () => number },
): Promise<void> {
  for (let chain = audit.takeUnsigned(); chain !== undefined; chain = audit.takeUnsigned()) {
    let outcome: "unknown" | "committed" = "unknown";
    try {
      await database.transaction([first, ...writesOf([chain.sign(now)], new FetchedRows(), newRevision()), SCHEMA_CHECK]);
      outcome = "committed";
    } finally {
      audit.give(chain, outcome);
    }
  }
}
