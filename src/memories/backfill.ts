/**
 * Makes the vectors that are owed: those that a provider could not give in time, and all of them after a change of provider.
 *
 * After a change every memory is looked through once, in pieces: a vector of the provider before goes, and a new one is owed.
 * Owed memories stand in an index of their own, so nothing is forgotten when the process ends, and what changed or went
 * meanwhile is found out in the transaction that stores the vector. While the provider is down it is asked now and then.
 *
 * @module
 */
import type { Embeddings, Active } from "../embeddings/embeddings.ts";
import type { Embedding } from "../embeddings/embedder.ts";
import { ProviderError } from "../embeddings/provider-error.ts";
import type { BareId } from "../lib/ids.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { firstLabelOf, putMemory, removeVector } from "../storage/memory-records.ts";
import { labels, memories, meta, owed } from "../storage/tables.ts";
import type { Tx } from "../storage/store.ts";
import type { Task } from "../tasks/task.ts";
import { newEmbedding, type MemoryParts } from "./memories.ts";

const LOOKED_AT_PER_COMMIT = 200;
/** The built-in provider makes these in a few milliseconds; another takes them as one request. */
const MADE_PER_COMMIT = 64;
const IDLE_MS = 60_000;
export const BACKFILL = "embeddings";
/** When the provider refuses some texts, they are offered again after a while. */
const REFUSED_MS = 60_000;
const PROGRESS_MS = 5_000;

export function backfill(parts: MemoryParts): Task {
  let from = "";
  let toldAt = Number.NEGATIVE_INFINITY;
  const tell = () => {
    const now = parts.clock.elapsed();
    if (now - toldAt < PROGRESS_MS) return;
    toldAt = now;
    parts.log.info("making vectors", progress(parts));
  };
  return {
    name: BACKFILL,
    async run() {
      if (await lookThrough(parts)) return 0;
      const waiting = await recovered(parts.embeddings, parts.clock.now());
      if (waiting > 0) return waiting;
      const keys = parts.store.keys(owed, { from, to: AFTER_ALL, limit: MADE_PER_COMMIT });
      if (keys.length === 0) {
        // The end: those left are what was refused on the way.
        from = "";
        return parts.store.count(owed) === 0 ? IDLE_MS : REFUSED_MS;
      }
      tell();
      from = `${keys.at(-1)}!`;
      await make(parts, keys);
      if (parts.store.count(owed) === 0) parts.log.info("all vectors are made", progress(parts));
      return 0;
    },
  };
}

/** How many memories have a vector of the provider that is set, and how many are to get one. */
function progress({ store }: MemoryParts): { ready: number; owed: number; looking_through: boolean } {
  return {
    ready: store.count(labels),
    owed: store.count(owed),
    looking_through: store.get(meta, "lookThroughFrom") !== undefined,
  };
}

/** @returns whether there may be more to look through */
async function lookThrough({ store, vectors }: MemoryParts): Promise<boolean> {
  if (store.get(meta, "lookThroughFrom") === undefined) return false;
  await store.commit((tx) => {
    const from = tx.get(meta, "lookThroughFrom");
    if (from === undefined) return;
    const line = firstLabelOf(tx);
    const rows = tx.rows(memories, { from, to: AFTER_ALL, limit: LOOKED_AT_PER_COMMIT });
    for (const { key, row } of rows) {
      if (row.embedding === undefined || row.embedding.label >= line) continue;
      removeVector(tx, key, row.embedding.label);
      const { embedding: _gone, ...rest } = row;
      tx.put(memories, key, rest);
      tx.put(owed, key, "");
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < LOOKED_AT_PER_COMMIT) tx.remove(meta, "lookThroughFrom");
    else tx.put(meta, "lookThroughFrom", `${last.key}!`);
  });
  vectors.changed();
  return true;
}

/** Sees to it that the provider can be asked. @returns how long to wait before it makes sense to try; 0: it can be */
async function recovered(embeddings: Embeddings, now: number): Promise<number> {
  const { remote, calibration } = embeddings.active;
  if (remote === undefined || (!remote.isDown && calibration !== undefined)) return 0;
  const wait = (remote.retryAtMs ?? now) - now;
  if (wait > 0) return Math.min(wait, IDLE_MS);
  try {
    await embeddings.recover();
    return 0;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return Math.max(1_000, (remote.retryAtMs ?? now) - now);
  }
}

async function make(parts: MemoryParts, keys: readonly BareId[]): Promise<void> {
  const { active } = parts.embeddings;
  const texts = keys.map((key) => parts.store.get(memories, key)?.content);
  const made = await Promise.all(texts.map((text) => (text === undefined ? undefined : embeddingOf(active, text))));
  await parts.store.commit((tx) => {
    keys.forEach((key, i) => {
      settle(tx, parts, active, key, texts[i], made[i]);
    });
  });
  parts.vectors.changed();
}

/** undefined when the provider fails or refuses the text. */
async function embeddingOf({ embedder }: Active, text: string): Promise<Embedding | undefined> {
  try {
    return await embedder.embedMemory(text);
  } catch (error) {
    if (error instanceof ProviderError) return undefined;
    throw error;
  }
}

/** Stores a vector, unless the memory or the provider is another one by now. */
function settle(tx: Tx, parts: MemoryParts, active: Active, key: BareId, text: string | undefined, embedding: Embedding | undefined): void {
  const row = tx.get(memories, key);
  if (row === undefined || !row.embed || row.embedding !== undefined) {
    tx.remove(owed, key);
    return;
  }
  if (embedding === undefined || row.content !== text || firstLabelOf(tx) !== active.firstLabel) return;
  tx.remove(owed, key);
  putMemory(tx, key, { ...row, embedding: newEmbedding(tx, parts, key, embedding) }, row);
}
