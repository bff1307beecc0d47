import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { VectorFeed } from "../../../src/vectors/vector-feed.ts";
import { storedVectors } from "./stored-vectors.ts";
import { MEMORIES } from "../../../src/storage/collections.ts";

/** Some vectors are added and some of the first removed. */
const anyCommits = fc.array(fc.record({ added: fc.nat(8), removed: fc.nat(3) }), { minLength: 1, maxLength: 12 });

test("each vector that is stored is given once, in pieces of any size", async () => {
  await fc.assert(
    fc.asyncProperty(anyCommits, fc.integer({ min: 1, max: 5 }), async (commits, max) => {
      await using vectors = await storedVectors();
      const feed = new VectorFeed(MEMORIES.vectors);
      const given: string[] = [];
      const stored: string[] = [];
      const all: string[] = [];
      for (const { added, removed } of commits) {
        const ids = await vectors.store.commit(NO_HOME, (tx) => {
          const made = Array.from({ length: added }, () => tx.bareId());
          for (const id of made) tx.putVector(MEMORIES.vectors, id, new Uint8Array(4));
          for (const id of stored.slice(0, removed)) tx.removeVector(MEMORIES.vectors, id);
          return made;
        });
        all.push(...ids);
        stored.splice(0, removed);
        stored.push(...ids);
        for (let found = [""]; found.length > 0; given.push(...found)) found = feed.next(vectors.store.latest, max);
      }
      expect(given).toEqual(all);
    }),
    { numRuns: 30 },
  );
});
