/**
 * Indexes that are newer than the rows of a store are filled by a start: in slices, and each one once, wherever the last start ended.
 */
import { expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { createLog } from "../src/lib/log.ts";
import type { Tx } from "../src/storage/access.ts";
import { fillStore } from "../src/storage/fills.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import type { RecordStore } from "../src/storage/record-store.ts";
import { ALL_FILLED, documents, fillMark, memories, meta, type AnyTable, type Index } from "../src/storage/tables.ts";
import { type Cairn, startCairn } from "./support/cairn.ts";

const silent = createLog({ level: "silent", pretty: false, now: () => 0, write: () => undefined });
const MEMORIES = 1_200;

async function withMemories(cairn: Cairn): Promise<void> {
  const all = Array.from({ length: MEMORIES }, (_, i) => ({ user_id: "ada", content: `Note ${i}.`, embed: false }));
  for (let at = 0; at < MEMORIES; at += 100) await cairn.ok(cairn.post("/v1/memory/batch", { memories: all.slice(at, at + 100) }));
}

async function forget(cairn: Cairn, index: Index<never>): Promise<void> {
  await cairn.dropEntries(index, "");
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(meta, fillMark(index.name)));
}

const markOf = (cairn: Cairn, index: AnyTable) => cairn.read((reader) => reader.get(meta, fillMark(index.name)));

/** The store, which says after each commit how many rows of a table that has read, and how many it has written. */
function watched(store: RecordStore, table: AnyTable, onCommit: (rows: { read: number; written: number }) => void): RecordStore {
  const commit: RecordStore["commit"] = async (partition, work) => {
    let rows = { read: 0, written: 0 };
    const result = await store.commit(partition, (tx) => {
      const read = new Set<string>();
      rows = { read: 0, written: 0 };
      const seen: Pick<Tx, "get" | "add"> = {
        get(from, key) {
          if (from.name === table.name) read.add(key);
          rows.read = read.size;
          return tx.get(from, key);
        },
        add(to, key, row) {
          if (to.name === table.name) rows.written++;
          tx.add(to, key, row);
        },
      };
      return work(new Proxy(tx, { get: (of, name) => bound(name in seen ? seen : of, name) }));
    });
    onCommit(rows);
    return result;
  };
  return new Proxy(store, { get: (of, name) => (name === "commit" ? commit : bound(of, name)) });
}

function bound(of: object, name: string | symbol): unknown {
  const member: unknown = Reflect.get(of, name, of);
  return typeof member === "function" ? member.bind(of) : member;
}

test("an index is filled in slices, and what ends between two of them is continued where it was", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  await withMemories(cairn);
  const { byContent } = memories.index;
  await forget(cairn, byContent);
  const slices: { read: number; written: number }[] = [];
  let backups = 0;
  const fill = (endsAfter: number) =>
    fillStore({
      store: watched(cairn.service.store, memories, (rows) => {
        slices.push(rows);
        if (rows.read > 0 && --endsAfter === 0) throw new Error("ended");
      }),
      log: silent,
      others: [],
      backUp: () => Promise.resolve(backups++),
    });
  expect(await fill(1).catch((error: Error) => error.message)).toBe("ended");
  expect(await markOf(cairn, byContent)).toStartWith("from ");
  await fill(0);
  expect(await markOf(cairn, byContent)).toBe(ALL_FILLED);
  // No row is looked at twice, and no more of them are held than those of a slice.
  const whole = slices.filter(({ read }) => read > 0);
  expect(whole).toEqual([500, 500, 200].map((rows) => ({ read: rows, written: rows })));
  expect(await cairn.findings()).toEqual([]);
  await fill(0);
  expect([slices.filter(({ read }) => read > 0).length, backups]).toEqual([3, 1]);
});

test("rows that change and come while an index is filled have their entries", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  await withMemories(cairn);
  const { byContent } = memories.index;
  const [first, last] = await cairn.read((reader) =>
    [false, true].map((descending) => reader.keys(memories, { from: "", to: MAX_KEY, limit: 1, descending })[0]!),
  );
  await forget(cairn, byContent);
  const changes = [
    () => cairn.request("PATCH", `/v1/memory/mem_${first}`, { body: { content: "The first." } }),
    () => cairn.request("PATCH", `/v1/memory/mem_${last}`, { body: { content: "The last." } }),
    () => cairn.post("/v1/memory", { user_id: "ada", content: "New." }),
  ];
  const made: Promise<unknown>[] = [];
  await fillStore({
    store: watched(cairn.service.store, memories, () => made.push(cairn.ok(changes.shift()?.() ?? cairn.get("/v1/memory")))),
    log: silent,
    others: [],
    backUp: () => Promise.resolve(),
  });
  await Promise.all(made);
  expect(changes).toEqual([]);
  expect(await cairn.findings()).toEqual([]);
  for (const content of ["the first.", "The last.", "new.", "Note 600."])
    expect(await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content, on_duplicate: "return" }))).toMatchObject({
      duplicate: true,
    });
});

test("large rows are filled in smaller slices", async () => {
  await using cairn = await startCairn();
  const put = (i: number) => ({ op: "put", namespace: ["n"], key: `k${i}`, value: { i } });
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: Array.from({ length: 60 }, (_, i) => put(i)) }));
  await forget(cairn, documents.index.byChange);
  const slices: number[] = [];
  const store = watched(cairn.service.store, documents, ({ read }) => read > 0 && slices.push(read));
  await fillStore({ store, log: silent, others: [], backUp: () => Promise.resolve() });
  expect(slices).toEqual([25, 25, 10]);
  expect(await cairn.findings()).toEqual([]);
});

test("what cannot be backed up is not changed, and is tried again", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Note." }));
  const { byContent } = memories.index;
  await forget(cairn, byContent);
  let backups = 0;
  const backUp = () => (backups++ === 0 ? Promise.reject(new Error("no room")) : Promise.resolve());
  const task = await fillStore({ store: cairn.service.store, log: silent, others: [], backUp });
  expect(await markOf(cairn, byContent)).toBeUndefined();
  await task.run();
  expect([await markOf(cairn, byContent), backups]).toEqual([ALL_FILLED, 2]);
  await task.run();
  expect(backups).toBe(2);
});
