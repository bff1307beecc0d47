/**
 * The connections to a PostgreSQL database, and the only file that knows the driver.
 *
 * Statements are text with parameters and prepared by the driver, so that there must be few different texts. Those of one call are
 * sent at once and their answers awaited together: once a connection has prepared its statements, a transaction is one round trip.
 *
 * @module
 */
import { SQL, type ReservedSQL } from "bun";
import type { Clock } from "../../../lib/clock.ts";
import { messageOf } from "../../../lib/errors.ts";
import { connectionUrl, poolSize } from "./database-url.ts";

/** Arrays of texts, of whole numbers, or of bytes: one parameter for any number of values. */
type Parameter = string | number | null | readonly string[] | readonly (number | null)[] | readonly Uint8Array[];

export interface Statement {
  readonly text: string;
  readonly values: readonly Parameter[];
}

/** A row of an answer. Whole numbers of 8 bytes are texts. */
export type AnswerRow = Readonly<Record<string, string | number | boolean | null>>;

/**
 * Reason why statements failed. `conflict`: others have changed what the transaction builds on; `unsent`: there is no connection to a
 * primary, and none of them was done; `lost`: the connection went, and whether they were done is not known; `refused`: for another
 * reason of the database's, which has done none of them.
 */
type FailureKind = "conflict" | "unsent" | "lost" | "refused";

export class DatabaseError extends Error {
  override name = "DatabaseError";
  readonly kind: FailureKind;
  /** True if the database has no space left for what was to be written. */
  readonly isOutOfSpace: boolean;
  /** True if it takes no changes. */
  readonly isReadOnly: boolean;
  /** True if a newer Cairn has migrated the database since this server has opened it. */
  readonly isOutdated: boolean;
  /** True if a lock that it needs was held for too long. */
  readonly isLocked: boolean;

  constructor(kind: FailureKind, cause: unknown) {
    super(messageOf(cause), { cause });
    this.kind = kind;
    this.isOutOfSpace = stateOf(cause)?.startsWith("531") === true;
    this.isReadOnly = stateOf(cause) === READ_ONLY;
    this.isOutdated = stateOf(cause) === OUTDATED;
    this.isLocked = stateOf(cause) === LOCKED;
  }
}

/** Another transaction has held a lock for longer than this one was to wait. */
const LOCKED = "55P03";
/** Division by zero is how a statement of ours says that a row is another by now; the others are the database's own. */
const CONFLICTS: ReadonlySet<string> = new Set(["22012", "23505", "40001", "40P01", LOCKED]);
/** A text that is no number is how `SCHEMA_CHECK` says that there is a newer migration. */
const OUTDATED = "22P02";
/** The server ends, starts, or takes no more connections. */
const LOSSES = /^(08...|57P0[1-4]|53300)$/;
/** Code with which a standby refuses the first change of a transaction. */
const READ_ONLY = "25006";

/** A server that has not answered by then is as good as gone. */
const ANSWER_SECONDS_MAX = 20;
const CONNECT_SECONDS_MAX = 5;
/** Connections to a standby are replaced that often, until new ones lead to a primary. */
const RENEWAL_MS = 1_000;

type Pace = "answers soon" | "takes its time";

export class Database {
  readonly #clock: Clock;
  readonly #url: string;
  readonly #poolSize: number;
  #pool: SQL;
  /** On the clock that only counts on. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Number of answers that were waited for, the opening of connections left out; answers that were waited for together are one. */
  roundTrips = 0;
  #awaited = 0;
  /** Called before a new connection is used, and when one is lost. */
  onConnectionChange: () => void = () => undefined;

  /** @param url - one in which `databaseUrlProblem` finds nothing wrong */
  constructor(url: string, clock: Clock) {
    this.#url = connectionUrl(url);
    this.#poolSize = poolSize(url);
    this.#clock = clock;
    this.#pool = this.#newPool();
  }

  /** The database's time, in Unix milliseconds. @throws {DatabaseError} */
  async time(): Promise<number> {
    const [answer] = await this.query({ text: "select extract(epoch from clock_timestamp())::float8 * 1000 as ms", values: [] });
    return Number(answer?.["ms"]);
  }

  /** Runs one statement, which has to be one that can be run twice. @throws {DatabaseError} */
  async query(statement: Statement): Promise<readonly AnswerRow[]> {
    const pool = this.#pool;
    try {
      return await this.#answered(pool, ask(pool, statement));
    } catch (error) {
      throw new DatabaseError(kindOf(error), error);
    }
  }

  /**
   * Runs statements as one transaction.
   *
   * @param kind - `snapshot`: they only read, and all of one snapshot
   * @throws {DatabaseError}
   */
  async transaction(statements: readonly Statement[], kind: "changes" | "snapshot" = "changes"): Promise<(readonly AnswerRow[])[]> {
    const connection = await this.reserve();
    try {
      return (await connection.send([kind === "changes" ? BEGIN : BEGIN_SNAPSHOT, ...statements, COMMIT])).slice(1, -1);
    } finally {
      connection.release();
    }
  }

  /**
   * A connection for the caller alone, until it is released.
   *
   * @param pace - `takes its time`: what is sent on it may be answered as late as it likes
   * @throws {DatabaseError}
   */
  async reserve(pace: Pace = "answers soon"): Promise<Connection> {
    const pool = this.#pool;
    try {
      const reserved = await this.#limited(pool, pool.reserve());
      return new Connection(reserved, (answer) => this.#answered(pool, answer, pace));
    } catch (error) {
      throw new DatabaseError(kindOf(error) === "refused" ? "refused" : "unsent", error);
    }
  }

  async close(): Promise<void> {
    await this.#pool.close({ timeout: 1 });
  }

  #newPool(): SQL {
    return new SQL({
      url: this.#url,
      max: this.#poolSize,
      connectionTimeout: CONNECT_SECONDS_MAX,
      onconnect: () => this.onConnectionChange(),
      onclose: () => this.onConnectionChange(),
    });
  }

  async #answered<Result>(pool: SQL, answer: Promise<Result>, pace: Pace = "answers soon"): Promise<Result> {
    if (this.#awaited++ === 0) this.roundTrips++;
    try {
      return await (pace === "answers soon" ? this.#limited(pool, answer) : answer);
    } catch (error) {
      if (stateOf(error) === READ_ONLY && this.#clock.elapsed() - this.#renewedAt >= RENEWAL_MS) this.#renew(pool, 1);
      throw error;
    } finally {
      this.#awaited--;
    }
  }

  /** Rejects when there is no answer for too long; then all connections are given up. */
  async #limited<Result>(pool: SQL, answer: Promise<Result>): Promise<Result> {
    const late = Promise.withResolvers<never>();
    const cancel = this.#clock.timer(ANSWER_SECONDS_MAX * 1_000, () => {
      this.#renew(pool, 0);
      late.reject(new Error(`The database has not answered for ${ANSWER_SECONDS_MAX} s.`, { cause: { code: "LATE" } }));
    });
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      cancel();
    }
  }

  /**
   * Makes new connections, which can lead elsewhere, in place of those of a pool.
   *
   * @param seconds - how long what is under way on the old ones may take
   */
  #renew(pool: SQL, seconds: number): void {
    if (pool !== this.#pool) return;
    this.#renewedAt = this.#clock.elapsed();
    this.#pool = this.#newPool();
    void pool.close({ timeout: seconds }).catch(() => undefined);
  }
}

/** Isolation in which a statement sees what others committed while the transaction waited for a lock, whatever the database's default. */
export const BEGIN: Statement = { text: "begin isolation level read committed", values: [] };
export const BEGIN_SNAPSHOT: Statement = { text: "begin isolation level repeatable read read only", values: [] };
export const COMMIT: Statement = { text: "commit", values: [] };
export const ROLLBACK: Statement = { text: "rollback", values: [] };

export class Connection {
  readonly #reserved: ReservedSQL;
  readonly #limited: <Result>(answer: Promise<Result>) => Promise<Result>;

  constructor(reserved: ReservedSQL, limited: <Result>(answer: Promise<Result>) => Promise<Result>) {
    this.#reserved = reserved;
    this.#limited = limited;
  }

  /** @returns the rows of each statement @throws {DatabaseError} for the first of them that fails */
  async send(statements: readonly Statement[]): Promise<(readonly AnswerRow[])[]> {
    const answers = statements.map((statement) => ask(this.#reserved, statement));
    try {
      return await this.#limited(Promise.allSettled(answers).then((settled) => settled.map(valueOf)));
    } catch (error) {
      throw new DatabaseError(kindOf(error), error);
    }
  }

  release(): void {
    void this.#reserved.release();
  }
}

function valueOf<Value>(settled: PromiseSettledResult<Value>): Value {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

/** A text alone would be a simple query, written only once all before it was answered; a template is prepared like the others. */
function ask(sql: SQL, { text, values }: Statement): SQL.Query<AnswerRow[]> {
  if (values.length > 0) return sql.unsafe<AnswerRow[]>(text, parametersOf(sql, values));
  return sql<AnswerRow[]>(Object.defineProperty([text], "raw", { value: [text] }) as unknown as TemplateStringsArray);
}

function parametersOf(sql: SQL, values: readonly Parameter[]): unknown[] {
  return values.map((value) => {
    if (!Array.isArray(value)) return value;
    const [first] = value as readonly unknown[];
    if (first instanceof Uint8Array)
      return sql.array(
        value.map((bytes: Uint8Array) => Buffer.from(bytes)),
        "BYTEA",
      );
    return sql.array([...(value as unknown[])], typeof first === "string" || first === undefined ? "TEXT" : "INT8");
  });
}

function stateOf(error: unknown): string | undefined {
  const { errno } = error as { errno?: unknown };
  return typeof errno === "string" && /^[0-9A-Z]{5}$/.test(errno) ? errno : undefined;
}

function kindOf(error: unknown): FailureKind {
  const state = stateOf(error);
  if (state === undefined) return "lost";
  if (state === READ_ONLY) return "unsent";
  return CONFLICTS.has(state) ? "conflict" : LOSSES.test(state) ? "lost" : "refused";
}
