/**
 * Removes documents that are gone for readers: those whose time has passed, and those of namespaces that were emptied.
 *
 * Documents of a session that has ended go with its other records (`sessions/removal.ts`). These tasks only free space: running late
 * or twice changes no answer.
 *
 * @module
 */
import type { Log } from "../lib/log.ts";
import { FIRST, type Span, type Tx } from "../storage/access.ts";
import { BadRows, rowOfEntry, type Isolate } from "../storage/bad-rows.ts";
import { DocumentWriter, isEmptied } from "../storage/document-records.ts";
import { MAX_KEY, successor, namespaceOfDocument, numberKey } from "../storage/keys.ts";
import { documentRemovals, documents, namespaces } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Deps } from "../traces/record.ts";

const DOCUMENTS_PER_COMMIT = 200;
/** A commit ends with the document that goes beyond this: each is read whole. */
const CHARACTERS_PER_COMMIT = 2 * 1024 * 1024;
const IDLE_MS = 1_000;

export function documentExpiry({ store }: Deps, log: Log): Task {
  const name = "document expiry";
  const bad = new BadRows(store, log, name);
  const { byExpiry } = documents.index;
  return {
    name,
    async run() {
      const now = await store.read((reader) => reader.now);
      const due = await bad.keysOfOthers(byExpiry, { from: "", to: numberKey(now + 1), limit: DOCUMENTS_PER_COMMIT });
      if (due.length === 0) return IDLE_MS;
      const isAll = await bad.commit((tx, isolate) => {
        const writer = new DocumentWriter(tx);
        let characters = 0;
        for (const entry of due) {
          if (characters > CHARACTERS_PER_COMMIT) break;
          isolate(entry, () => {
            const row = rowOfEntry(tx, documents, byExpiry, entry);
            // It may have been put again since, or removed.
            if (row === undefined) return;
            characters += row.body.length;
            writer.remove(byExpiry.recordOf(entry));
          });
        }
        writer.flush();
        return characters <= CHARACTERS_PER_COMMIT;
      });
      return due.length === DOCUMENTS_PER_COMMIT || !isAll ? 0 : IDLE_MS;
    },
  };
}

/** Takes the next piece of what emptied namespaces have left. */
export function documentRemoval({ store }: Deps, log: Log): Task {
  const name = "document removal";
  const bad = new BadRows(store, log, name);
  /** Progress of the first of them. What was put since stays, and is looked at once. */
  let done: { namespace: string; until: string; after: string | undefined } = { namespace: "", until: "", after: undefined };
  return {
    name,
    async run() {
      const [namespace] = await bad.keysOfOthers(documentRemovals, { ...FIRST, limit: 1 });
      if (namespace === undefined) return IDLE_MS;
      done = await bad.commit((tx, isolate) => {
        const next = { ...done };
        isolate(namespace, () => {
          const removal = tx.get(documentRemovals, namespace);
          // Emptied again meanwhile, all of it is looked at again.
          if (removal !== undefined && (next.namespace !== namespace || next.until !== removal.until))
            Object.assign(next, { namespace, until: removal.until, after: "" });
        });
        if (next.namespace !== namespace || next.after === undefined) return next;
        return { ...next, after: removeEmptied(tx, namespace, next.after, isolate) };
      });
      return 0;
    },
  };
}

/**
 * Removes the next piece of what a namespace had when it was emptied, documents first, and at the end the note that it was.
 *
 * @param after - what the call before has returned; empty at the beginning
 * @returns undefined at the end
 */
export function removeEmptied(tx: Tx, namespace: string, after: string, isolate: Isolate): string | undefined {
  const [table, last] = [after.slice(0, 1), after.slice(1)];
  const span = { from: last === "" ? namespace : successor(last), to: namespace + MAX_KEY, limit: DOCUMENTS_PER_COMMIT };
  return table === NAMESPACES ? removeNamespaces(tx, namespace, span, isolate) : removeDocuments(tx, span, isolate);
}

/** Each with one character of where a removal continues. */
const DOCUMENTS = "d";
const NAMESPACES = "n";

function removeDocuments(tx: Tx, span: Span, isolate: Isolate): string {
  const writer = new DocumentWriter(tx);
  let last: string | undefined;
  let characters = 0;
  for (const key of tx.keys(documents, span)) {
    if (characters > CHARACTERS_PER_COMMIT) break;
    isolate(key, () => {
      const row = tx.get(documents, key);
      characters += row?.body.length ?? 0;
      if (row !== undefined && isEmptied(tx, namespaceOfDocument(key), row.id)) writer.remove(key);
    });
    last = key;
  }
  writer.flush();
  return last === undefined ? NAMESPACES : DOCUMENTS + last;
}

function removeNamespaces(tx: Tx, namespace: string, span: Span, isolate: Isolate): string | undefined {
  const keys = tx.keys(namespaces, span);
  for (const key of keys) {
    // The removal of the same namespace has this key too.
    isolate(`${namespaces.name} ${key}`, () => {
      const row = tx.get(namespaces, key);
      if (row !== undefined && isEmptied(tx, key, row.id)) tx.remove(namespaces, key);
    });
  }
  if (keys.length > 0) return NAMESPACES + keys.at(-1);
  tx.remove(documentRemovals, namespace);
  return undefined;
}
