/**
 * Has the turns that are there found by what the setting `index_turns` says, after a change of it and in a store of before.
 *
 * ```
 * setting ──▶ turns in the order of their keys, a slice for each commit ──▶ turn_indexing: up to where, and for which setting
 * ```
 * Each slice writes its place into the store, so that whatever ends the process, the next start continues there. It works a share
 * of its time that a setting says. By their words they are indexed once turns are searched (`turn-searches.ts`). Turns that are
 * logged meanwhile are indexed as they come; of one that was not the slice sees it.
 *
 * @module
 */
import type { Embedding } from "../embeddings/embedder.ts";
import { BARE_ID_LENGTH, NO_PARTITION, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { storedSettings, type Settings } from "../settings/settings.ts";
import { eachFetched, eachRead, type Reader, type Tx } from "../storage/access.ts";
import { TURNS } from "../storage/collections.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { removeRecord } from "../storage/memory-records.ts";
import {
  branches,
  indexedTurns,
  sessions,
  TURN_INDEXING_KEY,
  turnIndexing,
  turns,
  type SessionRow,
  type TurnIndex,
  type TurnIndexingRow,
} from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Task } from "../tasks/task.ts";
import { indexedText, textsOf, wordsOfTurn } from "./indexed-text.ts";
import { indexTurn, leaveWords, wantMeaning, type TurnDeps } from "./indexed-turns.ts";

const NAME = "index of turns";
const TURNS_PER_COMMIT = 100;
const CHARACTERS_PER_COMMIT = 200_000;
/** It is not woken: a server that has it woken looks each second whether it was, and would not rest longer. */
const IDLE_MS = 10_000;

type IndexingDeps = Pick<TurnDeps, "store" | "turnVectors" | "turnBackfill">;

export interface IndexTaskDeps extends IndexingDeps, Pick<TurnDeps, "clock" | "turnSearches"> {
  readonly settings: Pick<Settings, "values" | "with">;
}

/** The place of the task; undefined before it has begun. */
export function turnIndexingIn(reader: Reader): TurnIndexingRow | undefined {
  return reader.get(turnIndexing, TURN_INDEXING_KEY);
}

/** Checks whether every turn is indexed as a setting says. */
export function isIndexedFor(reader: Reader, index: TurnIndex): boolean {
  const stored = turnIndexingIn(reader);
  return stored?.index === index && stored.after === undefined;
}

export function turnIndexTask(deps: IndexTaskDeps, log: Log): Task {
  const { clock, settings, store, turnSearches } = deps;
  return {
    name: NAME,
    async run() {
      const startedAt = clock.elapsed();
      // Another server may have changed the setting.
      const { stored, row } = await store.readNewest((reader) => ({ stored: turnIndexingIn(reader), row: storedSettings(reader) }));
      const { index_turns: index, index_turns_share: share } = settings.with({}, row).values;
      if (index === "words" && !(await store.readNewest((reader) => turnSearches.areMade(reader)))) return IDLE_MS;
      const isOfSetting = stored?.index === index;
      if (isOfSetting && stored.after === undefined) return IDLE_MS;
      const before = isOfSetting ? stored : { index, after: "", done: 0 };
      const after = await indexSome(deps, before);
      if (after === undefined) log.info("turns are indexed", { index_turns: index });
      const worked = clock.elapsed() - startedAt;
      return after === undefined ? IDLE_MS : worked / share - worked;
    },
  };
}

/** @returns the key of the last turn; undefined at the end */
async function indexSome(deps: IndexingDeps, { index, after = "", done }: TurnIndexingRow): Promise<string | undefined> {
  const { store } = deps;
  const span = { from: after === "" ? "" : successor(after), to: MAX_KEY, limit: TURNS_PER_COMMIT };
  const keys = await store.read((reader) => reader.keys(turns, span));
  const words = await wordsOfSome(deps, index, keys);
  const looked = keys.slice(0, words.length);
  const last = looked.at(-1);
  const isEnd = looked.length === keys.length && keys.length < TURNS_PER_COMMIT;
  await store.commit(NO_PARTITION, (tx) => {
    bringAllUpToDate(tx, index, looked, words);
    tx.put(turnIndexing, TURN_INDEXING_KEY, { index, done: done + looked.length, ...(isEnd || last === undefined ? {} : { after: last }) });
  });
  wasIndexed(deps);
  return isEnd ? undefined : last;
}

/** Has turns found by what a setting says, wherever the task is. */
export async function indexTurns(deps: IndexingDeps, index: TurnIndex, keys: readonly string[]): Promise<void> {
  for (let from = 0; from < keys.length;) {
    const some = keys.slice(from, from + TURNS_PER_COMMIT);
    const words = await wordsOfSome(deps, index, some);
    await deps.store.commit(NO_PARTITION, (tx) => bringAllUpToDate(tx, index, some.slice(0, words.length), words));
    from += words.length;
  }
  if (keys.length > 0) wasIndexed(deps);
}

function wasIndexed({ turnVectors, turnBackfill }: IndexingDeps): void {
  turnVectors.changed();
  turnBackfill.wake();
}

type Words = Embedding | undefined;

/** The words of the first of some turns, as many as are indexed in one commit. */
async function wordsOfSome({ store }: IndexingDeps, index: TurnIndex, keys: readonly string[]): Promise<Words[]> {
  const words: Words[] = [];
  let characters = 0;
  for await (const texts of eachRead(store, keys, (reader) => (key) => textToSplit(reader, index, key))) {
    for (const text of texts) {
      words.push(text === undefined ? undefined : await wordsOfTurn(text));
      characters += text?.length ?? 0;
      if (characters >= CHARACTERS_PER_COMMIT) return words;
    }
  }
  return words;
}

function bringAllUpToDate(tx: Tx, index: TurnIndex, keys: readonly string[], words: readonly Words[]): void {
  eachFetched([...keys.keys()], (i) => unlessUnreadable(() => bringUpToDate(tx, index, keys[i]!, words[i])));
}

/** The text of a turn whose words are missing, or are all that it is to be found by from now on. */
function textToSplit(reader: Reader, setting: TurnIndex, key: string): string | undefined {
  return unlessUnreadable(() => {
    const session = shownBy(reader, key);
    if (session === undefined) return undefined;
    const index = session.indexTurns ?? setting;
    const row = reader.get(indexedTurns, turnOf(key));
    const hasAll = row?.embedding !== undefined && (index === "meaning" || row.embed === false);
    if (index === "off" || hasAll) return undefined;
    const turn = reader.get(turns, key);
    return turn && indexedText(textsOf(turn));
  });
}

function bringUpToDate(tx: Tx, setting: TurnIndex, key: string, words: Embedding | undefined): void {
  const session = shownBy(tx, key);
  if (session === undefined || !tx.has(turns, key)) return;
  const turn = turnOf(key);
  const index = session.indexTurns ?? setting;
  const row = tx.get(indexedTurns, turn);
  if (index === "off") removeRecord(tx, TURNS, turn);
  else if (row === undefined) {
    if (words !== undefined) indexTurn(tx, turn, { key: key.slice(0, BARE_ID_LENGTH), row: session }, words, index);
  } else if (index === "meaning") {
    if (row.embed === false) wantMeaning(tx, turn, row);
  } else if (row.embed !== false && words !== undefined) leaveWords(tx, turn, row, words);
}

function turnOf(key: string): BareId {
  return key.slice(BARE_ID_LENGTH);
}

/** The session of a turn; where that is gone one that shows the turn, which is of the same user and agent. */
function shownBy(reader: Reader, key: string): SessionRow | undefined {
  const session = key.slice(0, BARE_ID_LENGTH);
  const own = reader.get(sessions, session);
  if (own !== undefined) return own;
  const { byParent } = branches.index;
  const [entry] = reader.keys(byParent, { from: session + successor(turnOf(key)), to: session + MAX_KEY, limit: 1 });
  return entry === undefined ? undefined : reader.get(sessions, byParent.recordOf(entry).slice(0, BARE_ID_LENGTH));
}
