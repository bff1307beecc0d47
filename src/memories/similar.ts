/**
 * Lists what an owner has said that is like a new memory, as it was before that is written: its caller can have it supersede some of them.
 *
 * @module
 */
import { BACKGROUND } from "../embeddings/embeddings.ts";
import { jsonArray, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { memoriesIn, shownMemoryRanges } from "../sessions/shared-memories.ts";
import type { Reader } from "../storage/access.ts";
import { ownedPostings } from "../storage/owner.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import type { Caller } from "../traces/record.ts";
import { inPlace, ownerOf, type MemoryOwner, type NewMemory } from "./create.ts";
import type { MemoryDeps } from "./deps.ts";
import type { MemoryScope } from "./memories.ts";
import { refuseLongContent } from "./record.ts";
import { rank, resultJson } from "./search.ts";

/** Leaves room for memories of an agent that are a user's. */
const RANKED_OF_AGENT = 50;

/**
 * Gives new memories what they are like, each that asks for it.
 *
 * @param place - as in `prepareMemories`
 * @throws {ApiError} of the first that is wrong
 */
export async function withSimilar(deps: MemoryDeps, caller: Caller, inputs: readonly NewMemory[], place?: string): Promise<NewMemory[]> {
  const found: NewMemory[] = [];
  for (const [i, input] of inputs.entries()) {
    const { similar } = input;
    if (similar === undefined) found.push(input);
    else {
      const owner = await deps.store.read((reader) =>
        inPlace(place, i, () => (refuseLongContent(input.content), ownerOf(reader, caller, input))),
      );
      found.push({ ...input, similarFound: await similarTo(deps, caller, owner, input.content, similar) });
    }
  }
  return found;
}

async function similarTo(
  deps: MemoryDeps,
  { limitsId = BACKGROUND.limitsId, owner }: Caller,
  of: MemoryOwner,
  content: string,
  { limit = LIMITS.similarDefault, threshold = LIMITS.searchThresholdDefault }: NonNullable<NewMemory["similar"]>,
): Promise<JsonText> {
  using permit = deps.searches.permitOf(limitsId);
  const scope = await deps.store.read((reader) => scopeOf(reader, of, owner.agentId));
  const isOfAgent = of.userId === null && of.session === undefined;
  const options = { threshold, limit: isOfAgent ? RANKED_OF_AGENT : limit, explain: false, limitsId, shown: {} };
  const { matches } = await rank(deps, content, scope, options, permit);
  const isOwn = ({ userId }: MemoryRow) => userId === of.userId;
  return deps.store.read((reader) =>
    jsonArray(
      matches
        .filter(({ row }) => isOwn(row))
        .slice(0, limit)
        .map((match) => resultJson(reader, match)),
    ),
  );
}

/** The memories of an owner: a user's, of whom a key may see those of one agent alone, or else a session's or an agent's. */
function scopeOf(reader: Reader, { userId, agentId, session }: MemoryOwner, boundTo: string | undefined): MemoryScope {
  if (userId !== null) return { filter: ownedPostings({ userId, agentId: boundTo }, memories.index) };
  if (session === undefined) return { filter: ownedPostings({ agentId: agentId ?? undefined }, memories.index) };
  const ranges = shownMemoryRanges(reader, session);
  return { filter: [memoriesIn(ranges)], ranges };
}
