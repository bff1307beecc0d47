/**
 * Evicts the vectors of earlier generations: their records get pending ones, and keep their words.
 *
 * @module
 */
import type { Embedding } from "../embeddings/embedder.ts";
import { wordsOf } from "../embeddings/words/terms.ts";
import { nextTurn } from "../lib/clock.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { Reader, Tx } from "../storage/access.ts";
import type { BadRows } from "../storage/bad-rows.ts";
import type { Collection } from "../storage/collections.ts";
import { successor } from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { provider, PROVIDER_KEY } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";
import { storedGeneration, storedMemory } from "../search/encoding.ts";
import { storeVector } from "../search/store-vector.ts";

const EVICTED_PER_COMMIT = 200;
/** To split as many into words takes a few milliseconds. */
const CHARACTERS_PER_TURN = 50_000;

/** The records of a collection, for what concerns their vectors. */
export interface Embedded {
  readonly collection: Collection;
  readonly index: CandidateIndex;
  /**
   * Text that the vector of a record is made of; undefined for one that is gone, has a vector or wants none.
   *
   * @param isMadeAgain - whether it may have one
   */
  textOf(reader: Reader, record: BareId, isMadeAgain?: boolean): string | undefined;
  /** Name of a record in the log. */
  nameOf(record: BareId): string;
}

/** Progress of evicting the vectors of generations before this one, one kind after the other. */
export interface Eviction {
  generation: number;
  kind: number;
  after: BareId;
}

/** Evicts some vectors of earlier generations. @returns whether there may be more */
export async function evict(
  { store }: { readonly store: RecordStore },
  kinds: readonly Embedded[],
  bad: BadRows,
  eviction: Eviction,
): Promise<boolean> {
  const { generation, replacesUntil: until } = (await store.read((reader) => reader.get(provider, PROVIDER_KEY))) ?? { generation: 0 };
  if (until === undefined) return false;
  if (eviction.generation !== generation) Object.assign(eviction, { generation, kind: 0, after: "" });
  let { kind, after } = eviction;
  const found: { of: Embedded; id: BareId }[] = [];
  for (; kind < kinds.length; kind++, after = "") {
    const of = kinds[kind]!;
    const limit = EVICTED_PER_COMMIT - found.length;
    const ids = await bad.keysOfOthers(of.collection.vectors, { from: successor(after), to: successor(until), limit });
    for (const id of ids) found.push({ of, id });
    after = ids.at(-1) ?? after;
    if (ids.length === limit) break;
  }
  const isEnd = kind === kinds.length;
  const words = await wordsOfFound(store, found);
  await bad.commit((tx, isolate) => {
    for (const [i, { of, id }] of found.entries()) isolate(id, () => evictOne(tx, of, id, words[i]));
    const row = tx.get(provider, PROVIDER_KEY);
    if (!isEnd || row?.generation !== generation) return;
    const { replacesUntil: _, ...done } = row;
    tx.put(provider, PROVIDER_KEY, done);
  });
  Object.assign(eviction, isEnd ? { kind: 0, after: "" } : { kind, after });
  for (const index of new Set(found.map(({ of }) => of.index))) index.changed();
  return found.length > 0;
}

/** Embedding that a record is found by until its vector is made. */
interface Words {
  readonly text: string;
  readonly embedding: Embedding;
}

/** Splits the texts of the records that some vectors are of into words, with other requests in between. */
async function wordsOfFound(store: RecordStore, found: readonly { of: Embedded; id: BareId }[]): Promise<(Words | undefined)[]> {
  const words: (Words | undefined)[] = [];
  let characters = 0;
  for (const { of, id } of found) {
    const text = await store.read((reader) => textOfVector(reader, of, id));
    words.push(text === undefined ? undefined : { text, embedding: wordsOf(text) });
    characters += text?.length ?? 0;
    if (characters < CHARACTERS_PER_TURN) continue;
    characters = 0;
    await nextTurn();
  }
  return words;
}

/** The text of the record that a vector is of; undefined where that cannot be read. */
function textOfVector(reader: Reader, of: Embedded, id: BareId): string | undefined {
  return unlessUnreadable(() => {
    const bytes = reader.vectorBytes(of.collection.vectors, id);
    return bytes === undefined ? undefined : of.textOf(reader, storedMemory(bytes), true);
  });
}

/** Leaves a record its words, where it still says what these were made of. */
function evictOne(tx: Tx, of: Embedded, id: BareId, words: Words | undefined): void {
  const { vectors, records } = of.collection;
  const bytes = tx.vectorBytes(vectors, id);
  const generation = generationOf(tx);
  if (bytes === undefined || storedGeneration(bytes) === generation) return;
  const record = storedMemory(bytes);
  tx.removeVector(vectors, id);
  const row = tx.get(records, record);
  if (row?.embedding?.id !== withPrefix("emb", id)) return;
  const { embedding: _, ...rest } = row;
  const isSame = words !== undefined && of.textOf(tx, record, true) === words.text;
  const embedding = isSame ? storeVector(tx, of.collection, record, generation, words.embedding) : undefined;
  tx.put(records, record, embedding === undefined ? rest : { ...rest, embedding });
  tx.put(of.collection.pending, record, "");
}
