import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { stored } from "../../../src/operations/records.ts";
import type { Reader } from "../../../src/storage/access.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { deliveries, type DeliveryRow } from "../../../src/storage/tables.ts";
import { nextDue, putDelivery, removeDeliveries, type Queued } from "../../../src/webhooks/queue.ts";
import { FakeClock } from "../../support/clock.ts";

const WEBHOOK = "0VQk39zYxWvU";
const OTHER = "0VQk39zYxWvV";
const NOW = 1_000_000;

let directory = "";
let store: Store;
const clock = new FakeClock();
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-queue-"));
  clock.set(NOW);
  store = await Store.open(directory, clock);
});
afterAll(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Twelve characters that rise with the number. */
function id(number: number): string {
  return `dlv${String(number).padStart(9, "0")}`;
}

/** As the outbox makes it, of the session `a`, `b` … or none. */
function fresh(session: string | null): DeliveryRow {
  return {
    payload: "",
    eventId: "",
    type: "turn.added",
    sessionId: session === null ? null : `sess_${session.repeat(12)}`,
    createdAt: 0,
    status: "pending",
    attempts: 0,
    failures: 0,
    nextAttemptAt: session === null ? NOW : null,
    recent: [],
  };
}

/** Puts these, in this order, as the only ones. */
async function fill(sessions: readonly (string | null)[], webhook = WEBHOOK): Promise<void> {
  clock.set(NOW);
  await store.commit(NO_PARTITION, (tx) => removeDeliveries(tx, tx.keys(deliveries, { from: webhook, to: `${webhook}~` })));
  for (let from = 0; from < sessions.length; from += 500) {
    await store.commit(NO_PARTITION, (tx) => {
      for (const [i, session] of sessions.slice(from, from + 500).entries()) {
        putDelivery(tx, { webhook, delivery: id(from + i), row: fresh(session) });
      }
    });
  }
}

/** What an attempt made of a delivery. */
async function change(number: number, changes: Partial<DeliveryRow>, now = NOW): Promise<void> {
  clock.set(now);
  await store.commit(NO_PARTITION, (tx) => {
    const row = tx.get(deliveries, WEBHOOK + id(number)) as DeliveryRow;
    putDelivery(tx, { webhook: WEBHOOK, delivery: id(number), row: { ...row, ...changes } });
  });
  clock.set(NOW);
}

const DELIVERED = { status: "delivered", nextAttemptAt: null } as const;

function next(now = NOW, inFlight: readonly number[] = []): number | string {
  const found = nextDue(store.latest, WEBHOOK, now, (delivery) => inFlight.includes(numberOf(delivery)));
  return found.kind === "now" ? numberOf(found.queued.delivery) : found.kind === "later" ? `at ${found.at - NOW}` : "none";
}

function numberOf(delivery: string): number {
  return Number(delivery.slice(3));
}

/** All that can be in flight at once, in the order in which they are due. */
function allDue(now = NOW): number[] {
  const due: number[] = [];
  for (let one = next(now); typeof one === "number" && !due.includes(one); one = next(now, due)) due.push(one);
  return due;
}

test("of each session the first one is due, of no session every one", async () => {
  await fill([]);
  expect(next()).toBe("none");
  await fill(["a", "a", "b", null, "a", "b", null]);
  expect(allDue()).toEqual([0, 2, 3, 6]);
  expect(next(NOW - 1)).toBe("at 0");
});

test("while one is in flight the next one of its session waits; once it is delivered that is due, behind all that are due already", async () => {
  await fill(["a", "a", "b", "c"]);
  expect(next(NOW, [0])).toBe(2);
  await change(0, DELIVERED, NOW + 5);
  expect(allDue(NOW + 5)).toEqual([2, 3, 1]);
  for (const delivered of [2, 1, 3]) await change(delivered, DELIVERED, NOW + 6);
  expect(next(NOW + 6)).toBe("none");
});

test("one that waits for its next attempt blocks its session, and nobody else", async () => {
  await fill(["a", "a", "b"]);
  await change(0, { nextAttemptAt: NOW + 5_000 });
  expect(allDue()).toEqual([2]);
  await change(2, DELIVERED);
  expect(next()).toBe("at 5000");
  expect(next(NOW + 5_000)).toBe(0);
  await change(0, { status: "failed", nextAttemptAt: null });
  expect(next()).toBe(1);
});

test("one that is overtaken leaves its session to the others, and is due at its own time", async () => {
  await fill(["a", "a", "a"]);
  await change(0, { nextAttemptAt: NOW + 300_000, unordered: true });
  expect(allDue()).toEqual([1]);
  expect(allDue(NOW + 300_000)).toEqual([1, 0]);
  await change(0, { nextAttemptAt: NOW + 400_000, unordered: true });
  await change(1, DELIVERED);
  await change(2, DELIVERED);
  expect(next()).toBe("at 400000");
});

test("when deliveries are removed, whatever their place, those left of their sessions are due", async () => {
  await fill(["a", "a", "a", "b", "b"]);
  await store.commit(NO_PARTITION, (tx) => removeDeliveries(tx, [WEBHOOK + id(0), WEBHOOK + id(1), WEBHOOK + id(4), `${WEBHOOK}unknown`]));
  expect(allDue()).toEqual([2, 3]);
});

test("a line without a first one, as in a damaged store, goes on with the next event", async () => {
  await fill(["a", "a"]);
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of tx.keys(deliveries.index.due, { from: WEBHOOK, to: `${WEBHOOK}~` })) tx.remove(stored(deliveries.index.due), key);
    tx.put(deliveries, WEBHOOK + id(0), fresh("a"));
    tx.remove(deliveries, WEBHOOK + id(1));
  });
  expect(next()).toBe("none");
  await store.commit(NO_PARTITION, (tx) => putDelivery(tx, { webhook: WEBHOOK, delivery: id(2), row: fresh("a") }));
  expect(next()).toBe(0);
});

test("a webhook's deliveries are its own", async () => {
  await fill([]);
  await fill(["a"], OTHER);
  expect(next()).toBe("none");
});

test("however many wait in front, of one session or of many, as much is read to find the next one, to add one and to go on", async () => {
  const cost = async (sessions: (string | null)[]) => {
    await fill(sessions);
    let read = 0;
    const counting = <Some extends Reader>(reader: Some): Some =>
      new Proxy(reader, {
        get: (target, name) => {
          const method: unknown = Reflect.get(target, name);
          if (typeof method !== "function") return method;
          return (...given: unknown[]) => {
            const result: unknown = Reflect.apply(method, target, given);
            read += Array.isArray(result) ? result.length : 1;
            return result;
          };
        },
      });
    const last = { webhook: WEBHOOK, delivery: id(900_000), row: fresh("z") } satisfies Queued;
    clock.set(NOW + 1);
    await store.commit(NO_PARTITION, (tx) => putDelivery(counting(tx), last));
    const inFlight = new Set([id(0)]);
    const found = nextDue(counting(store.latest), WEBHOOK, NOW + 1, (delivery) => inFlight.has(delivery));
    clock.set(NOW + 2);
    await store.commit(NO_PARTITION, (tx) =>
      putDelivery(counting(tx), { webhook: WEBHOOK, delivery: id(0), row: { ...fresh("a"), ...DELIVERED } }),
    );
    return { read, found: found.kind === "now" ? found.queued.delivery : found.kind };
  };
  const few = await cost(["a", "a"]);
  const many = await cost(Array.from({ length: 1_000 }, () => "a"));
  expect(many).toEqual(few);
  expect(few.found).toBe(id(900_000));
});

test("whatever fails and however many are in flight, each session's deliveries go out in their order, one at a time, and each once", async () => {
  const sessions = fc.array(fc.constantFrom("a", "b", "c", null), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(sessions, fc.array(fc.nat({ max: 9 }), { minLength: 1 }), async (of, choices) => {
      await fill(of);
      const delivered: number[] = [];
      let inFlight: number[] = [];
      for (let step = 0; delivered.length < of.length && step < 1_000; step++) {
        // In the end all goes well.
        const choice = (step < 100 ? choices[step % choices.length] : step % 2) ?? 0;
        const now = NOW + step;
        const one = next(now, inFlight);
        if (typeof one === "number" && inFlight.length < 3 && choice % 2 === 0) {
          const busy = inFlight.map((number) => of[number]).filter((session) => session !== null);
          expect(busy).not.toContain(of[one]);
          inFlight.push(one);
          continue;
        }
        const ended = inFlight[choice % Math.max(1, inFlight.length)];
        if (ended === undefined) continue;
        inFlight = inFlight.filter((number) => number !== ended);
        const fails = choice > 6;
        await change(ended, fails ? { nextAttemptAt: now + 2 } : DELIVERED, now);
        if (!fails) delivered.push(ended);
      }
      const orderOf = (session: string) => delivered.filter((number) => of[number] === session);
      for (const session of ["a", "b", "c"]) expect(orderOf(session)).toEqual(orderOf(session).toSorted((a, b) => a - b));
      expect(delivered.toSorted((a, b) => a - b)).toEqual(of.map((_, number) => number));
      expect(
        [deliveries.index.due, deliveries.index.inLine].map((table) => store.latest.keys(table, { from: WEBHOOK, to: `${WEBHOOK}~` })),
      ).toEqual([[], []]);
    }),
    { numRuns: 30 },
  );
});
