import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { Store } from "../../../src/storage/store.ts";
import { meta, vectors } from "../../../src/storage/tables.ts";
import { TransactionWrites } from "../../../src/storage/transaction-writes.ts";
import { FakeClock } from "../../support/clock.ts";

test("LMDB gets keys and values of any length as they are, and a transaction reads what it has written and removed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cairn-writes-"));
  const store = await Store.open(directory, new FakeClock());
  // Of each length of a word, and around the memory that writes gather in; of one, two, three and four bytes a character.
  const lengths = [0, 1, 2, 3, 4, 5, 31, 32, 33, 4_095, 87_000, 262_100, 262_144, 400_000];
  const texts = lengths.flatMap((length) => ["a", "é", "字", "😀"].map((character) => character.repeat(length)));
  const keys = texts.map((_, i) => `${"k".repeat(i)}-${i}`);
  const bytes = lengths.map((length) => new Uint8Array(length).fill(200));
  await store.commit(NO_HOME, (tx) => {
    for (const [i, text] of texts.entries()) tx.put(meta, keys[i]!, text);
    for (const [i, vector] of bytes.entries()) tx.putVector(vectors, `v${i}`, vector);
    tx.put(meta, "gone", "soon");
    tx.remove(meta, "gone");
    tx.remove(meta, "never there");
  });
  // Two commits share a transaction: the second reads from LMDB what the first has written.
  const [, seen] = await Promise.all([
    store.commit(NO_HOME, (tx) => {
      tx.put(meta, "shared", "written");
      tx.remove(meta, keys[5]!);
    }),
    store.commit(NO_HOME, (tx) => [tx.get(meta, "shared"), tx.has(meta, keys[5]!), tx.get(meta, keys[6]!)]),
  ]);
  expect(seen).toEqual(["written", false, texts[6]]);
  expect(keys.map((key) => store.latest.get(meta, key))).toEqual(texts.map((text, i) => (i === 5 ? undefined : text)));
  expect(bytes.map((_, i) => store.latest.vectorBytes(vectors, `v${i}`))).toEqual(bytes);
  expect(store.latest.has(meta, "gone")).toBeFalse();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

test("when LMDB takes some writes not, no later call of the same transaction passes over it", () => {
  const full = new Error("MDB_MAP_FULL");
  let calls = 0;
  const writes = new TransactionWrites({
    wipeFree: () => true,
    writeMany: () => {
      if (calls++ === 0) throw full;
    },
  });
  writes.begin();
  writes.add(1, "key", "value");
  // A work that reads may catch it; the end of the transaction must not be reached.
  expect(() => writes.flush()).toThrow(full);
  writes.add(1, "another", "value");
  expect(() => writes.flush()).toThrow(full);
  writes.begin();
  writes.add(1, "key", "value");
  writes.flush();
  expect(calls).toBe(2);
});
