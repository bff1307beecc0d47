/**
 * Removes traces whose time has passed.
 *
 * Readers hide an expired trace at once, so this task only frees space; it may run late or twice. The traces of an action are
 * in the order of time, and are kept for one of a few lengths: for each of both the task remembers how far it has come, and
 * looks at a trace once for each length until it is expired. Traces whose ids are ahead of the clock are looked at again and
 * again; there are none as a rule.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { bareIdTime, firstBareIdAt } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Span } from "../storage/access.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { traces, type AnyTable } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { Removals } from "../audit/removals.ts";
import { actionCode, TRACE_ACTIONS } from "./events.ts";
import type { Deps } from "./record.ts";

const TRACES_PER_RUN = 200;
const IDLE_MS = 60_000;

/** @param lengths - in days, for which traces are kept; others are found out */
export function traceRetention({ store, clock }: Deps, lengths: () => readonly number[], log: Log): Task {
  const name = "trace retention";
  const bad = new BadRows(store, log, name);
  const { ahead } = traces.index;
  const found = new Set<number>();
  /** Position at which each sweep continues. */
  const cursors = new Map<string, string>();

  /** @returns whether there may be more */
  async function sweep(id: string, table: AnyTable, span: Span, recordOf = (key: string) => key): Promise<boolean> {
    const keys = await store.read((reader) => reader.keys(table, { ...span, from: cursors.get(id) ?? span.from, limit: TRACES_PER_RUN }));
    const last = keys.at(-1);
    if (last === undefined) return false;
    const kept = await bad.commit((tx, isolate) => {
      const left: number[] = [];
      const removals = new Removals(tx, store);
      for (const key of keys.map(recordOf)) {
        isolate(key, () => {
          const row = tx.get(traces, key);
          if (row === undefined) return;
          if (row.expiresAt <= tx.now) removals.remove(key, row);
          else left.push(Math.ceil((row.expiresAt - (row.at ?? bareIdTime(key.slice(1)))) / DAY_MS));
        });
      }
      removals.write();
      return left;
    });
    for (const days of kept) found.add(days);
    cursors.set(id, successor(last));
    return true;
  }

  return {
    name,
    async run() {
      for (const days of new Set([...lengths(), ...found])) {
        const until = firstBareIdAt(clock.now() - days * DAY_MS + 1);
        for (const code of TRACE_ACTIONS.map(actionCode))
          if (await sweep(`${code}${days}`, traces, { from: code, to: code + until })) return 0;
      }
      if (await sweep("ahead", ahead, { from: "", to: MAX_KEY }, (entry) => ahead.recordOf(entry))) return 0;
      cursors.delete("ahead");
      return IDLE_MS;
    },
  };
}
