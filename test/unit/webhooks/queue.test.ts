import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { Store } from "../../../src/storage/store.ts";
import { deliveries, deliveriesBySession, deliveriesDue, type DeliveryRow } from "../../../src/storage/tables.ts";
import { nextOf, putDelivery, removeDelivery } from "../../../src/webhooks/queue.ts";
import { FakeClock } from "../../support/clock.ts";

const WEBHOOK = "0VQk39zYxWvU";
const OTHER = "0VQk39zYxWvV";
const NOW = 1_000_000;
const HOLD_MS = 10_000;

let directory = "";
let store: Store;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-queue-"));
  store = await Store.open(directory, new FakeClock());
});
afterAll(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Twelve characters that rise with the number. */
function id(number: number): string {
  return `dlv${String(number).padStart(9, "0")}`;
}

function pending(sessionId: string | null, nextAttemptAt: number | null): DeliveryRow {
  const status = nextAttemptAt === null ? "delivered" : "pending";
  return {
    payload: "",
    eventId: "",
    type: "turn.added",
    sessionId,
    createdAt: 0,
    status,
    attempts: 0,
    failures: 0,
    nextAttemptAt,
    last: null,
  };
}

/** Puts these, of sessions `a`, `b` … or none, as the only ones. */
async function fill(rows: readonly { session: string | null; at: number | null }[], webhook = WEBHOOK): Promise<void> {
  await store.commit((tx) => {
    for (const key of tx.keys(deliveries, { from: webhook, to: `${webhook}~` })) removeDelivery(tx, key);
    rows.forEach(({ session, at }, index) =>
      putDelivery(tx, { webhook, delivery: id(index), row: pending(session === null ? null : `sess_${session.repeat(12)}`, at) }),
    );
  });
}

function next(settling: readonly number[] = []): number | string {
  const found = nextOf(store, WEBHOOK, NOW, (delivery) => settling.map(id).includes(delivery));
  return found.kind === "now" ? Number(found.queued.delivery.slice(3)) : found.kind === "later" ? `at ${found.at - NOW}` : "none";
}

const CASES: { name: string; rows: [session: string | null, at: number | null][]; settling?: number[]; next: number | string }[] = [
  { name: "nothing", rows: [], next: "none" },
  { name: "all of them delivered", rows: [["a", null]], next: "none" },
  {
    name: "the first that is due",
    rows: [
      ["a", -2],
      ["b", -1],
    ],
    next: 0,
  },
  { name: "one that is due right now", rows: [["a", 0]], next: 0 },
  { name: "one that will be due", rows: [["a", 300]], next: "at 300" },
  {
    name: "of one session the first, though its retry came later than the second",
    rows: [
      ["a", -1],
      ["a", -5],
    ],
    next: 0,
  },
  {
    name: "held back by one whose retry is near",
    rows: [
      ["a", 5_000],
      ["a", -5],
    ],
    next: "at 5000",
  },
  {
    name: "another session, while one is held back",
    rows: [
      ["a", 5_000],
      ["a", -5],
      ["b", -4],
    ],
    next: 2,
  },
  {
    name: "past one whose retry is far",
    rows: [
      ["a", HOLD_MS + 1],
      ["a", -5],
    ],
    next: 1,
  },
  {
    name: "past a far one, held back by a near one",
    rows: [
      ["a", 20_000],
      ["a", HOLD_MS],
      ["a", -5],
    ],
    next: `at ${HOLD_MS}`,
  },
  {
    name: "one of no session, held back by nobody",
    rows: [
      ["a", 5_000],
      [null, -1],
    ],
    next: 1,
  },
  {
    name: "not one that is being settled",
    rows: [
      ["a", -2],
      ["a", -1],
    ],
    settling: [0],
    next: 1,
  },
  {
    name: "nothing when all are being settled",
    rows: [
      ["a", -2],
      ["b", -1],
    ],
    settling: [0, 1],
    next: "none",
  },
];

for (const { name, rows, settling, next: expected } of CASES) {
  test(`the next delivery is ${name}`, async () => {
    await fill(rows.map(([session, at]) => ({ session, at: at === null ? null : NOW + at })));
    expect(next(settling)).toBe(expected);
  });
}

test("one that is due is found behind a hundred that are held back or being settled", async () => {
  await fill([
    { session: "a", at: NOW + 5_000 },
    ...Array.from({ length: 100 }, () => ({ session: "a", at: NOW - 5 })),
    { session: "b", at: NOW - 1 },
  ]);
  expect(next()).toBe(101);
  await fill(Array.from({ length: 101 }, () => ({ session: "a", at: NOW - 5 })));
  expect(next(Array.from({ length: 100 }, (_, index) => index))).toBe(100);
});

test("a webhook's deliveries are its own", async () => {
  await fill([]);
  await fill([{ session: "a", at: NOW }], OTHER);
  expect(next()).toBe("none");
});

test("with retries that are never far, every session's deliveries go out in their order, and each once", async () => {
  const delivery = fc.record({ session: fc.constantFrom("a", "b", "c", null), at: fc.integer({ min: NOW - 20, max: NOW }) });
  await fc.assert(
    fc.asyncProperty(fc.array(delivery, { maxLength: 40 }), async (rows) => {
      await fill(rows);
      const order: number[] = [];
      for (;;) {
        const found = nextOf(store, WEBHOOK, NOW, () => false);
        if (found.kind !== "now") break;
        order.push(Number(found.queued.delivery.slice(3)));
        await store.commit((tx) => putDelivery(tx, { ...found.queued, row: { ...found.queued.row, nextAttemptAt: null } }));
      }
      const of = (session: string) => order.filter((index) => rows[index]?.session === session);
      for (const session of ["a", "b", "c"]) expect(of(session)).toEqual(of(session).toSorted((a, b) => a - b));
      expect(order.toSorted((a, b) => a - b)).toEqual(rows.map((_, index) => index));
      expect([deliveriesDue, deliveriesBySession].map((table) => store.keys(table, { from: WEBHOOK, to: `${WEBHOOK}~` }))).toEqual([
        [],
        [],
      ]);
    }),
    { numRuns: 30 },
  );
});
