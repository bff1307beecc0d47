/**
 * Collects what a commit announces in this process: the keys of new rows of tables that notify.
 *
 * @module
 */
import type { CommittedChanges } from "./record-store.ts";
import { RECORD_TABLES } from "./tables.ts";
import type { Write } from "./write-buffer.ts";

const NOTIFIES = new Map(RECORD_TABLES.flatMap(({ name, notifies }) => (notifies === undefined ? [] : [[name, notifies] as const])));

export class Announced implements CommittedChanges {
  traces: string[] = [];
  hasEvents = false;

  add({ table, key, isNew }: Pick<Write, "table" | "key" | "isNew">): void {
    if (!isNew) return;
    const what = NOTIFIES.get(table);
    if (what === "traces") this.traces.push(key);
    else if (what === "events") this.hasEvents = true;
  }

  get isEmpty(): boolean {
    return this.traces.length === 0 && !this.hasEvents;
  }
}
