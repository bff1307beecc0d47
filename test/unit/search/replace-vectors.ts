/**
 * A process of its own that deletes a memory of a store, adds another one and prints its id: `replace-vectors.ts DIRECTORY MEMORY`.
 *
 * @module
 */
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { MEMORIES } from "../../../src/storage/collections.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { removeRecord } from "../../../src/storage/memory-records.ts";
import { chance, StoredVectors, unitVector } from "./stored-vectors.ts";

const [directory = "", memory = ""] = process.argv.slice(2);
const vectors = new StoredVectors();
vectors.clock.advance({ seconds: 1 });
vectors.store = await Store.open(directory, vectors.clock);
await vectors.store.commit(NO_PARTITION, (tx) => removeRecord(tx, MEMORIES, memory));
const [added] = await vectors.add([unitVector(chance(10))]);
console.log(added?.memory);
await vectors[Symbol.asyncDispose]();
