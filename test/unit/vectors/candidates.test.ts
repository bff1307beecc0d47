import { expect, test } from "bun:test";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { meta } from "../../../src/storage/tables.ts";
import { Reading } from "../../../src/vectors/candidates.ts";
import { chance, storedVectors, unitVector } from "./stored-vectors.ts";

test("a vector of the provider before is no candidate, nor is one that was deleted", async () => {
  await using vectors = await storedVectors();
  const random = chance(1);
  const [before, deleted, current] = await vectors.add(Array.from({ length: 3 }, () => unitVector(random)));
  await vectors.remove([deleted!]);
  const candidates = () => {
    const reading = new Reading(vectors.store.latest, unitVector(random));
    return [before, deleted, current].map((one) => reading.candidate(one!.memory)?.label);
  };
  expect(candidates()).toEqual([0, undefined, 2]);
  await vectors.store.commit(NO_HOME, (tx) => tx.put(meta, "firstLabel", "2"));
  expect(candidates()).toEqual([undefined, undefined, 2]);
});
