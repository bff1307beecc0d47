/**
 * What searches of a database look at where the replica cannot say.
 */
import { expect, test } from "bun:test";
import { MEMORIES } from "../../../src/storage/collections.ts";
import type { RecordStore } from "../../../src/storage/record-store.ts";
import { DatabaseIndex } from "../../../src/search/database-index.ts";
import type { Replica } from "../../../src/search/replica/replica.ts";
import { byNearness, chance, queryFor, storedVectors, unitVector } from "./stored-vectors.ts";

const LIMIT = 50;

test("without a replica all are compared, and few held at once; of equal ones the newest are the candidates", async () => {
  await using vectors = await storedVectors();
  const next = chance(7);
  const same = unitVector(next);
  await vectors.add(Array.from({ length: 3_000 }, (_, i) => (i % 3 === 0 ? same : unitVector(next))));
  const { store } = vectors;
  let compared = 0;
  let walked = 0;
  let heldMost = 0;
  const watched: Pick<RecordStore, "read" | "walk"> = {
    read: (work) => store.read(work),
    walk: (table, filter, bounds, limit) => {
      heldMost = Math.max(heldMost, walked - compared);
      const found = store.walk(table, filter, bounds, limit);
      walked += found.ids.length;
      return found;
    },
  };
  const replica: Pick<Replica, "indexOf" | "followed"> = { indexOf: () => undefined, followed: () => Promise.resolve(undefined) };
  const index = new DatabaseIndex({ store: watched as RecordStore, replica: replica as Replica, collection: MEMORIES, compared: [] });
  const { calibration, ...rest } = queryFor(same, LIMIT);
  const query = {
    ...rest,
    // Each comparison asks for it.
    get calibration() {
      compared++;
      return calibration;
    },
  };
  expect(await index.nearest(query, [], false)).toBeUndefined();
  expect(walked).toBe(250);
  walked = 0;
  const found = (await index.nearest(query, [], true))!;
  expect(found.toSorted(byNearness).map(({ memory }) => memory)).toEqual(vectors.exact(same, [], LIMIT));
  expect(walked).toBe(3_000);
  expect(heldMost).toBeLessThan(2_000);
});
