/**
 * Lists turns, newest first, or those that have all the words of a query.
 *
 * Nothing is scored: the stored words of each turn are looked at, a hundred turns at once, as far as one page may look.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, type BareId, type TurnId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { rowsAtOnce } from "../memories/filter.ts";
import { eachRead, type Reader } from "../storage/access.ts";
import { TURNS } from "../storage/collections.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import type { Owner } from "../storage/owner.ts";
import { entriesOf, entryAt, type ListItem } from "../storage/list.ts";
import { pageOf, pageOfBatches, type Page, type PageEntry } from "../storage/page.ts";
import { indexedTurns } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { storedGeneration, storedTerms } from "../search/encoding.ts";
import { catchUp } from "./catch-up.ts";
import { compareTurn } from "./filter.ts";
import { turnIndexOf, type TurnDeps } from "./indexed-turns.ts";
import { scopeOf, shownTurnReader, type ShownTurn, type TurnFilter } from "./scope.ts";

export interface WordFilter extends TurnFilter {
  /** The words; all turns pass without. */
  readonly q?: string | undefined;
  readonly filter?: RecordFilter | undefined;
}

const TURNS_AT_ONCE = 100;
const RETRY_AFTER_SECONDS = 5;

export async function listTurnsByWords(deps: TurnDeps, owner: Owner, filter: WordFilter, page: Page<TurnId>): Promise<JsonText> {
  const { store, listProbesMax } = deps;
  const scope = await scopeOf(store, owner, filter);
  const wanted = filter.q === undefined ? undefined : deps.embeddings.wordsQuery(filter.q).lexical.ids;
  if (scope === undefined || wanted?.length === 0) return pageOf([], page.limit);
  if (turnIndexOf(deps, scope.session?.row) !== "off" && !(await catchUp(deps, owner, filter, scope)))
    throw new ApiError("service_unavailable", "Turns are still being indexed. Try again.", { retryAfterSeconds: RETRY_AFTER_SECONDS });
  const listing = { prefix: "turn", owner } as const;
  const atOnce = filter.filter === undefined ? TURNS_AT_ONCE : rowsAtOnce(filter.filter);
  const batches = async function* (): AsyncGenerator<PageEntry[], void, undefined> {
    for (let before = page.startingAfter && bare(page.startingAfter), isEnd = false; !isEnd;) {
      const { ids, next } = await store.walk(indexedTurns, scope.filter, { before }, atOnce);
      const read = eachRead(store, ids, (reader) => {
        const hasWords = wanted === undefined ? () => true : wordReader(reader, wanted);
        const find = shownTurnReader(reader, owner, filter, scope.ranges);
        reader.ahead(indexedTurns, ids);
        return (turn): PageEntry[] => entriesOf(listing, turn, hasWords(turn) ? itemOf(find(turn), filter) : undefined);
      });
      for await (const entries of read) yield entries.flat();
      if (next !== undefined) yield [entryAt(listing, next, undefined)];
      before = next;
      isEnd = next === undefined;
    }
  };
  return pageOfBatches(batches(), page.limit, listProbesMax);
}

function itemOf(turn: ShownTurn | undefined, { filter }: WordFilter): ListItem {
  if (turn === undefined || filter === undefined) return turn?.json;
  const { isPassing, rows } = compareTurn(filter, turn);
  return { json: isPassing ? turn.json : undefined, rows };
}

/** Tells whether a turn has all of some terms, which ascend. */
function wordReader(reader: Reader, wanted: Uint32Array): (turn: BareId) => boolean {
  const generation = generationOf(reader);
  return (turn) =>
    unlessUnreadable(() => {
      const bytes = vectorOf(reader, TURNS, turn)?.bytes;
      if (bytes === undefined || storedGeneration(bytes) !== generation) return false;
      return hasAll(storedTerms(bytes), wanted);
    }) === true;
}

function hasAll(terms: Uint32Array, wanted: Uint32Array): boolean {
  let at = 0;
  for (const id of wanted) {
    while (at < terms.length && terms[at]! < id) at++;
    if (terms[at] !== id) return false;
  }
  return true;
}
