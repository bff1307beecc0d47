/**
 * Puts memories into the store directly, for tests that need more of them than they would want to send.
 *
 * @module
 */
import { partitionOf, withPrefix, type MemoryId, type SessionId } from "../../src/lib/ids.ts";
import { MEMORIES } from "../../src/storage/collections.ts";
import { storeVector } from "../../src/search/store-vector.ts";
import { generationOf } from "../../src/storage/memory-records.ts";
import { memories, type MemoryRow } from "../../src/storage/tables.ts";
import type { Cairn } from "./cairn.ts";
import { madeEmbedder } from "./made-embedder.ts";

/** One memory for each content, in one commit, as adding it to the session would make it; the session does not count them. */
export async function fillMemories(
  cairn: Cairn,
  session: { id: string; agent_id: string; user_id: string | null },
  contents: readonly string[],
  more: (i: number) => Partial<MemoryRow> = () => ({}),
): Promise<MemoryId[]> {
  const { store } = cairn.service;
  const filled = await store.commit(partitionOf(session.id), (tx) =>
    contents.map((content, i) => {
      const id = tx.id("mem");
      const memory = id.slice("mem_".length);
      const embedding = storeVector(tx, MEMORIES, memory, generationOf(tx), madeEmbedder.embedMemory(content), withPrefix("emb", memory));
      tx.add(memories, memory, {
        sessionId: session.id as SessionId,
        userId: session.user_id,
        agentId: session.agent_id,
        content,
        type: "general",
        tags: [],
        metadata: {},
        createdAt: tx.now,
        embed: true,
        embedding,
        ...more(i),
      });
      return id;
    }),
  );
  cairn.service.vectors.changed();
  return filled;
}

/** Texts of one pattern, each with a number of its own. */
export function numberedTexts(count: number): string[] {
  return Array.from(
    { length: count },
    (_, i) => `Parcel ${i + 1_000} for ${PEOPLE[i % PEOPLE.length]} arrived at gate ${i % 97} with seal ${(i * 7_919) % 10_007}.`,
  );
}

const PEOPLE = ["Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hiro"];
