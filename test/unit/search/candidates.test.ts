import { expect, test } from "bun:test";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { provider, PROVIDER_KEY } from "../../../src/storage/tables.ts";
import { CandidateReader } from "../../../src/search/candidates.ts";
import { chance, queryFor, storedVectors, unitVector } from "./stored-vectors.ts";
import { MEMORIES } from "../../../src/storage/collections.ts";

test("a vector of the previous provider is no candidate, nor is one that was deleted", async () => {
  await using vectors = await storedVectors();
  const random = chance(1);
  const added = await vectors.add(Array.from({ length: 2 }, () => unitVector(random)));
  const startGeneration = (generation: number) =>
    vectors.store.commit(NO_PARTITION, (tx) => tx.put(provider, PROVIDER_KEY, { identity: "", generation }));
  const ids = added.map((one) => vectors.idOf(one));
  const candidates = () => {
    const reader = new CandidateReader(vectors.store.latest, MEMORIES, queryFor(unitVector(random), 10));
    return ids.map((id) => reader.candidate(id)?.memory);
  };
  expect(candidates()).toEqual(added.map(({ memory }) => memory));
  await vectors.remove(added.slice(0, 1));
  expect(candidates()).toEqual([undefined, added[1]!.memory]);
  await startGeneration(1);
  expect(candidates()).toEqual([undefined, undefined]);
});
