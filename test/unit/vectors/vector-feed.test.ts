import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { VectorFeed } from "../../../src/vectors/vector-feed.ts";
import { storedVectors } from "./stored-vectors.ts";

/** Ids of a few milliseconds, in one in any order, but none before those of an earlier commit's milliseconds. */
const anyCommits = fc
  .array(fc.record({ advance: fc.nat(1), counters: fc.uniqueArray(fc.nat(99), { minLength: 1, maxLength: 8 }), removed: fc.nat(3) }), {
    minLength: 1,
    maxLength: 12,
  })
  .map((commits) => {
    let ms = 0;
    const given = new Set<string>();
    return commits.map(({ advance, counters, removed }) => {
      ms += advance;
      const ids = counters
        .map((counter) => `000000${ms.toString(36)}000${String(counter).padStart(2, "0")}`)
        .filter((id) => !given.has(id));
      for (const id of ids) given.add(id);
      return { ids, removed };
    });
  });

test("each vector that is stored is given once, in whatever order those of one millisecond are committed, and in pieces of any size", async () => {
  await fc.assert(
    fc.asyncProperty(anyCommits, fc.integer({ min: 1, max: 5 }), async (commits, max) => {
      await using vectors = await storedVectors();
      const feed = new VectorFeed();
      const given: string[] = [];
      const stored: string[] = [];
      for (const { ids, removed } of commits) {
        await vectors.store.commit(NO_HOME, (tx) => {
          for (const id of ids) tx.putVector(id, new Uint8Array(4));
          for (const id of stored.slice(0, removed)) tx.removeVector(id);
        });
        stored.splice(0, removed);
        stored.push(...ids);
        for (let found = [""]; found.length > 0; given.push(...found)) found = feed.next(vectors.store.latest, max);
      }
      expect(given.toSorted()).toEqual(commits.flatMap(({ ids }) => ids).toSorted());
    }),
    { numRuns: 30 },
  );
});
