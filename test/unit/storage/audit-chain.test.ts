import { expect, test } from "bun:test";
import { AuditWriter } from "../../../src/storage/audit/audit-writer.ts";
import { traces } from "../../../src/storage/tables.ts";

const NOW = 1_778_140_800_000;
const key = { publicKey: "A".repeat(43), sign: () => "B".repeat(86) };
const write = (place: number) => ({
  table: traces.name,
  key: `s${String(place).padStart(12, "0")}`,
  value: '{"expiresAt":1,"actor":"crn_abcd"}\n{}',
  isNew: true,
  row: undefined,
});
const placesOf = (writes: readonly { table: string; value: unknown }[]) =>
  writes.flatMap(({ table, value }) => (table === traces.name ? [Number(String(value).split(".")[1])] : []));

test("a transaction that was rolled back leaves no gap in its chain, and one whose fate nobody knows ends it", () => {
  const writer = new AuditWriter({ key, after: "0".repeat(12), previous: [], closing: [] });
  const first = writer.take(NOW);
  expect(placesOf(first.link(write(0), NOW))).toEqual([0]);
  writer.give(first, "rolled back");
  const again = writer.take(NOW);
  expect(again).toBe(first);
  // 300 traces end a segment on the way.
  const all = Array.from({ length: 300 }, (_, i) => again.link(write(i), NOW)).flat();
  expect(placesOf(all)).toEqual(Array.from({ length: 300 }, (_, i) => i));
  writer.give(again, "rolled back");
  const kept = writer.take(NOW);
  expect(placesOf(kept.link(write(0), NOW))).toEqual([0]);
  const meanwhile = writer.take(NOW);
  expect(meanwhile.id).not.toBe(kept.id);
  writer.give(kept, "committed");
  writer.give(meanwhile, "rolled back");
  const taken = [writer.take(NOW), writer.take(NOW)].find(({ id }) => id === kept.id)!;
  expect(placesOf(taken.link(write(1), NOW))).toEqual([1]);
  writer.give(taken, "unknown");
  const next = writer.take(NOW);
  const begun = next.link(write(2), NOW).find(({ table }) => table === "audit_chains");
  expect(JSON.parse(String(begun?.value)).previous).toMatchObject([{ chain: kept.id, count: 1 }]);
});
