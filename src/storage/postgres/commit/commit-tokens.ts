/**
 * Commit tokens: what each transaction leaves in a table, by which it is found out whether it was committed.
 *
 * If the connection is lost before the answer has come, the token is put there as given up: that succeeds only if the transaction has
 * not committed, and never will. Tokens that nobody can ask for any more are removed now and then.
 *
 * @module
 */
import { HOUR_MS } from "../../../lib/duration.ts";
import { ApiError } from "../../../lib/errors.ts";
import { DatabaseError, type Database, type Statement } from "../connection/database.ts";
import { feedRemoval } from "../follow/change-feed.ts";
import { NAMES_LOCKED, namesLockedValues, type NameLocks } from "./commit-locks.ts";

/** Tokens are needed until those that wait for an answer know it. */
const TOKENS_KEPT_MS = HOUR_MS;
const TOKENS_REMOVED_MAX = 1_000;
const TRANSACTIONS_PER_REMOVAL = 256;

/** Does something again while there is no connection. */
type Again = <Result>(callback: () => Promise<Result>) => Promise<Result>;

export class CommitTokens {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #again: Again;
  #transactionsSinceRemoval = 0;

  constructor(database: Database, now: () => number, again: Again) {
    this.#database = database;
    this.#now = now;
    this.#again = again;
  }

  /** Locks names, leaves the token of the transaction, and now and then removes old ones. */
  tokenStatements(token: string, locks: NameLocks = new Map()): Statement[] {
    const now = this.#now();
    const leaving: Statement = {
      text: `insert into cairn.commits (id, given_up, at) select $3::uuid, false, $4::int8 from ${NAMES_LOCKED}`,
      values: [...namesLockedValues(locks), token, now],
    };
    if (++this.#transactionsSinceRemoval < TRANSACTIONS_PER_REMOVAL) return [leaving];
    this.#transactionsSinceRemoval = 0;
    return [
      leaving,
      {
        text: "delete from cairn.commits where id in (select id from cairn.commits where at < $1::int8 order by at limit $2::int8 for update skip locked)",
        values: [now - TOKENS_KEPT_MS, TOKENS_REMOVED_MAX],
      },
      feedRemoval(now),
    ];
  }

  /**
   * Returns whether a transaction was committed, also when its answer was lost.
   *
   * @throws {DatabaseError} when nothing of it was written
   */
  async settled(token: string, send: () => Promise<unknown>): Promise<boolean> {
    try {
      await send();
      return true;
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.kind !== "lost") throw error;
      try {
        return await this.#again(() => this.#wasCommitted(token));
      } catch (cause) {
        throw new ApiError(
          "internal_error",
          "Lost the database connection during commit, and it did not come back in time. It is not known whether the change was kept: send it again with the same Idempotency-Key.",
          { cause },
        );
      }
    }
  }

  /**
   * After this the transaction has been committed, or never will be. Another row is committed with the answer: the server that gives
   * it has to have passed the barrier itself, and none that takes its place.
   */
  async #wasCommitted(token: string): Promise<boolean> {
    const answers = await this.#database.transaction([
      {
        text: "insert into cairn.commits (id, given_up, at) values ($1::uuid, true, $2::int8) on conflict (id) do nothing",
        values: [token, this.#now()],
      },
      ...this.tokenStatements(crypto.randomUUID()),
      { text: "select given_up from cairn.commits where id = $1::uuid", values: [token] },
    ]);
    return answers.at(-1)?.[0]?.["given_up"] === false;
  }
}
