/**
 * The traces that other servers have committed, for those who watch them here.
 *
 * A transaction can commit after one that has drawn higher ids. So each look begins where the last ten seconds do, and passes over
 * what was seen before; a trace that is committed later than ten seconds after its id was drawn is found by lists alone.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { firstBareIdAt, type BareId } from "../../../lib/ids.ts";
import { traces } from "../../tables.ts";
import type { AnswerRow, Statement } from "../connection/database.ts";
import { idOfRecord, relationOf } from "../schema.ts";

/** Time by which a trace may be committed later than those with higher ids. */
const LATE_MS = 10_000;
const TRACES_PER_STATEMENT = 5_000;

const idOf = (key: string): BareId => key.slice(1);
const ID = idOfRecord(traces.name, "key");
const LOOK = `select key from ${relationOf(traces.name)} where ${ID} >= $1 collate "C" order by ${ID} limit ${TRACES_PER_STATEMENT}`;

export class TraceFollower {
  readonly #query: (statement: Statement) => Promise<readonly AnswerRow[]>;
  readonly #clock: Clock;
  readonly lateMs = LATE_MS;
  /** Keys of the last seconds. */
  #seen = new Set<string>();

  constructor(query: (statement: Statement) => Promise<readonly AnswerRow[]>, clock: Clock) {
    this.#query = query;
    this.#clock = clock;
  }

  /** Traces of a commit that no look has found, and none will. */
  unseen(keys: readonly string[]): string[] {
    return keys.filter((key) => this.#isNew(key));
  }

  /** Traces committed since the last look, in the order of ids. @param since - Unix milliseconds; nothing earlier is looked for */
  async look(since: number): Promise<string[]> {
    const first = firstBareIdAt(Math.max(since, this.#clock.now() - LATE_MS));
    this.#seen = new Set(Array.from(this.#seen).filter((key) => idOf(key) >= first));
    const found: string[] = [];
    for (let from = first; ;) {
      const keys = (await this.#query({ text: LOOK, values: [from] })).map(({ key }) => String(key));
      found.push(...keys.filter((key) => this.#isNew(key)));
      const last = keys.at(-1);
      if (last === undefined || keys.length < TRACES_PER_STATEMENT) return found;
      from = `${idOf(last)}!`;
    }
  }

  /** Nobody watches any more. */
  forget(): void {
    this.#seen.clear();
  }

  #isNew(key: string): boolean {
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }
}
