import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { meta, vectors } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";

test("LMDB gets keys and values of any length as they are, and a transaction reads what it has written and removed", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cairn-writes-"));
  const store = await Store.open(directory, new FakeClock());
  // Of each length of a word, and around the memory that writes gather in; of one, two, three and four bytes a character.
  const lengths = [0, 1, 2, 3, 4, 5, 31, 32, 33, 4_095, 87_000, 262_100, 262_144, 400_000];
  const texts = lengths.flatMap((length) => ["a", "é", "字", "😀"].map((character) => character.repeat(length)));
  const keys = texts.map((_, i) => `${"k".repeat(i)}-${i}`);
  const bytes = lengths.map((length) => new Uint8Array(length).fill(200));
  await store.commit(NO_PARTITION, (tx) => {
    for (const [i, text] of texts.entries()) tx.put(meta, keys[i]!, text);
    for (const [i, vector] of bytes.entries()) tx.putVector(vectors, `v${i}`, vector);
    tx.put(meta, "gone", "soon");
    tx.remove(meta, "gone");
    tx.remove(meta, "never there");
  });
  // Two commits share a transaction: the second reads from LMDB what the first has written.
  const [, seen] = await Promise.all([
    store.commit(NO_PARTITION, (tx) => {
      tx.put(meta, "shared", "written");
      tx.remove(meta, keys[5]!);
    }),
    store.commit(NO_PARTITION, (tx) => [tx.get(meta, "shared"), tx.has(meta, keys[5]!), tx.get(meta, keys[6]!)]),
  ]);
  expect(seen).toEqual(["written", false, texts[6]]);
  expect(keys.map((key) => store.latest.get(meta, key))).toEqual(texts.map((text, i) => (i === 5 ? undefined : text)));
  expect(bytes.map((_, i) => store.latest.vectorBytes(vectors, `v${i}`))).toEqual(bytes);
  expect(store.latest.has(meta, "gone")).toBeFalse();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

test("nothing is kept of a transaction of which LMDB has refused a write, even where the callback has caught that", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cairn-writes-"));
  const store = await Store.open(directory, new FakeClock());
  const longerThanAnyKey = "k".repeat(10_000);
  const commit = store.commitExclusive((tx) => {
    tx.put(meta, "before", "value");
    expect(() => tx.put(meta, longerThanAnyKey, "value")).toThrow("Key size is larger than the maximum key size");
    tx.put(meta, "after", "value");
  });
  expect(commit).rejects.toThrow("Nothing was changed");
  await commit.catch(() => undefined);
  expect(["before", "after"].map((key) => store.latest.has(meta, key))).toEqual([false, false]);
  await store.commit(NO_PARTITION, (tx) => tx.put(meta, "before", "value"));
  expect(store.latest.get(meta, "before")).toBe("value");
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});
