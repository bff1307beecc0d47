/**
 * The turns that a search finds: those with a row in `indexed_turns`, and words, or vectors, of its own.
 *
 * A turn never changes, so it is indexed once, in the transaction that logs it: by its words. A vector, where turns are found by meaning,
 * is made later by a task (`memories/backfill.ts`), so that logging a turn waits for no encoder. Turns of another time follow in the
 * background (`index-task.ts`). What removes a turn removes this with it (`sessions/removal.ts`).
 *
 * @module
 */
import type { Embedding } from "../embeddings/embedder.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import { backfill, type Embedded } from "../memories/backfill.ts";
import type { MemoryDeps } from "../memories/deps.ts";
import type { SettingValues } from "../settings/schema.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { hasVector, TURNS } from "../storage/collections.ts";
import { turnKey } from "../storage/keys.ts";
import { generationOf, removeVector } from "../storage/memory-records.ts";
import { ownerOfTurns } from "../storage/turn-owner.ts";
import { indexedTurns, turns, type IndexedTurnRow, type SessionRow, type TurnIndex } from "../storage/tables.ts";
import type { Activator, Task } from "../tasks/task.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";
import { storeVector } from "../search/store-vector.ts";
import { indexedText, textsOf } from "./indexed-text.ts";
import type { TurnSearches } from "./turn-searches.ts";

export interface IndexSettings {
  readonly values: Pick<SettingValues, "index_turns" | "index_turns_share">;
}

/** Dependencies of logging a turn, for it to be found. */
export interface TurnIndexDeps {
  readonly settings: IndexSettings;
  readonly turnVectors: Pick<CandidateIndex, "changed">;
  /** Has the pending vectors of turns made soon. */
  readonly turnBackfill: Activator;
  readonly turnSearches: TurnSearches;
}

export interface TurnDeps extends MemoryDeps, TurnIndexDeps {
  readonly turnVectors: CandidateIndex;
}

/** By what the turns of a session are found. */
export function turnIndexOf({ settings }: Pick<TurnIndexDeps, "settings">, session: Pick<SessionRow, "indexTurns"> | undefined): TurnIndex {
  return session?.indexTurns ?? settings.values.index_turns;
}

/** By what a turn that is logged now is found: by its words not before turns are searched at all, unless its session says so. */
export function indexOfNew(reader: Reader, deps: TurnIndexDeps, session: Pick<SessionRow, "indexTurns">): TurnIndex {
  const index = turnIndexOf(deps, session);
  return index !== "words" || session.indexTurns !== undefined || deps.turnSearches.areMade(reader) ? index : "off";
}

/** Has a turn found by its words, and pending where it is to be found by meaning, too. */
export function indexTurn(
  tx: Tx,
  turn: BareId,
  session: { key: BareId; row: Pick<SessionRow, "userId" | "agentId"> },
  words: Embedding,
  index: Exclude<TurnIndex, "off">,
): void {
  const embedding = storeVector(tx, TURNS, turn, generationOf(tx), words, withPrefix("emb", turn));
  const owned = { session: session.key, ...ownerOfTurns(session.row) };
  tx.add(indexedTurns, turn, { ...owned, ...(index === "meaning" ? {} : { embed: false }), embedding });
  if (index === "meaning") tx.put(TURNS.pending, turn, "");
}

/** Has a turn that is found by its words found by meaning, once its vector is made. */
export function wantMeaning(tx: Tx, turn: BareId, row: IndexedTurnRow): void {
  const { embed: _, ...wanting } = row;
  tx.put(indexedTurns, turn, wanting);
  tx.put(TURNS.pending, turn, "");
}

/** Leaves a turn its words alone. */
export function leaveWords(tx: Tx, turn: BareId, row: IndexedTurnRow, words: Embedding): void {
  removeVector(tx, TURNS, row);
  const embedding = storeVector(tx, TURNS, turn, generationOf(tx), words);
  tx.put(indexedTurns, turn, { ...row, embed: false, embedding });
  tx.remove(TURNS.pending, turn);
}

/** The turns whose vectors are to be made. */
export function turnTexts({ turnVectors: index }: Pick<TurnDeps, "turnVectors">): Embedded {
  return {
    collection: TURNS,
    index,
    textOf(reader, turn, isMadeAgain = false) {
      const row = reader.get(indexedTurns, turn);
      if (row === undefined || (!isMadeAgain && (row.embed === false || hasVector(row)))) return undefined;
      const stored = reader.get(turns, turnKey(row.session, turn));
      return stored === undefined ? undefined : indexedText(textsOf(stored));
    },
    nameOf: (turn) => withPrefix("turn", turn),
  };
}

/** Makes them, within the share of its time that a setting says. */
export function turnBackfills(deps: TurnDeps): Task {
  const share = () => deps.settings.values.index_turns_share;
  return backfill({ ...deps, backfill: deps.turnBackfill }, { name: "embeddings of turns", kinds: [turnTexts(deps)], share });
}
