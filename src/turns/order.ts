/**
 * The turns of a session in the order in which they happened.
 *
 * That is the order of their ids unless some were given a time of their own (`occurred_at`). From the first of these on the turns of the
 * session are in an index by time; those before it stay in the order of their ids.
 *
 * @module
 */
import { BARE_ID_LENGTH, bareIdTime, type BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL, behind } from "../storage/keys.ts";
import { rowsOf, rowsOfEntries } from "../storage/page.ts";
import { turns, type TurnRow } from "../storage/tables.ts";
import type { LiveSession } from "../sessions/live-session.ts";

interface Turn {
  readonly id: BareId;
  readonly row: TurnRow;
}

/**
 * The newest turns that can be read, newest first, read as they are asked for.
 *
 * @param after - only those with a later id, where no turn has a time of its own; all of them where it is empty
 */
export function* newestTurns(reader: Reader, { key: session, row }: LiveSession, after: BareId, limit: number): Generator<Turn> {
  const { timedFrom } = row;
  const untimed = { from: after === "" ? session : behind(session + after), to: session + (timedFrom ?? AFTER_ALL), descending: true };
  const plain = turnsOf(rowsOf(reader, turns, untimed, limit));
  if (timedFrom === undefined) {
    yield* plain;
    return;
  }
  const timed = turnsOf(
    rowsOfEntries(reader, turns, turns.index.byTime, { from: session, to: session + AFTER_ALL, descending: true }, limit),
  );
  let [one, other] = [plain.next().value, timed.next().value];
  for (let left = limit; left > 0; left--) {
    if (one !== undefined && (other === undefined || isLater(one, other))) {
      yield one;
      one = plain.next().value;
    } else if (other !== undefined) {
      yield other;
      other = timed.next().value;
    } else return;
  }
}

function* turnsOf(rows: Iterable<{ key: string; row: TurnRow }>): Generator<Turn, undefined> {
  for (const { key, row } of rows) yield { id: key.slice(-BARE_ID_LENGTH), row };
}

function isLater(one: Turn, other: Turn): boolean {
  const [at, otherAt] = [timeOf(one), timeOf(other)];
  return at === otherAt ? one.id > other.id : at > otherAt;
}

function timeOf({ id, row }: Turn): number {
  return row.more?.time ?? bareIdTime(id);
}
