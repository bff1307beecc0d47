/**
 * Walks records newest first through any combination of indexes.
 *
 * A filter is a conjunction of postings; a posting is a union of ranges of one index ("tag is a or b"). All of them are
 * in the order of ids, so that the walk can leapfrog: the stream that is furthest waits, the others jump to it. It reads the keys of
 * the rarest condition and about as many of each other one, never a record, and holds no cursor open between steps.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { MAX_KEY } from "./keys.ts";
import type { Reader } from "./access.ts";
import type { AnyTable } from "./tables.ts";

/** Ids under any of the prefixes of a table or an index, whatever follows them. Plain data: it can be sent to another thread. */
export interface Posting {
  table: string;
  prefixes: readonly string[];
  /** All other ids instead. */
  isExcluded?: true;
}

/** All postings must have the id; none at all means every record. */
export type Filter = readonly Posting[];

export function posting(table: AnyTable, ...prefixes: string[]): Posting {
  return { table: table.name, prefixes: [...new Set(prefixes)] };
}

/** Passes what has no entry in an index whose entries are ids. */
export function except(table: AnyTable): Posting {
  return { table: table.name, prefixes: [""], isExcluded: true };
}

/** Checks whether one id passes a filter: a look-up per condition. */
export function matches(reader: Reader, filter: Filter, id: BareId): boolean {
  return filter.every(
    ({ table, prefixes, isExcluded = false }) => prefixes.some((prefix) => reader.has({ name: table }, prefix + id)) !== isExcluded,
  );
}

/** Ids from `from` (included) to `before` (excluded). */
export interface Bounds {
  from?: BareId | undefined;
  before?: BareId | undefined;
  /** Number of ids that will do, if all pass: as many are read at first. */
  few?: number | undefined;
}

/** Progress of an unfinished walk: other requests can be answered first, or the rest be left to another walk. */
export interface Pause {
  /** Whatever is not older than this id was looked at: what follows begins `before` it. */
  readonly passed: BareId;
  /** At ranges of indexes, since the pause before. */
  readonly probes: number;
}

/** Looks at ranges of indexes between two turns of the event loop: one or two milliseconds. */
export const PROBES_PER_TURN = 1_000;

/**
 * The ids that pass a filter, newest first. It can take long where many pass one condition and few all of them, or few are there to
 * be shown: there is a pause whenever there were more than `probes` at a range, whatever was found.
 *
 * @param records - the table whose keys are the ids: what is walked when there is no filter
 */
export function* leapfrogJoin(
  reader: Reader,
  records: AnyTable,
  filter: Filter,
  bounds: Bounds = {},
  probes = PROBES_PER_TURN,
): Generator<BareId | Pause, void, undefined> {
  const [excluded, wanted] = [filter.filter(({ isExcluded }) => isExcluded), filter.filter(({ isExcluded }) => isExcluded !== true)];
  const streams =
    wanted.length === 0
      ? [new Stream(reader, records, "", bounds)]
      : wanted.map(({ table, prefixes }) => unionStream(prefixes.map((prefix) => new Stream(reader, { name: table }, prefix, bounds))));
  const looksPerStep = Math.max(
    1,
    filter.reduce((sum, { prefixes }) => sum + prefixes.length, 0),
  );
  let passed: BareId | undefined;
  let last: BareId | undefined;
  for (let done = looksPerStep; ; done += looksPerStep) {
    let target: BareId = MAX_KEY;
    for (const stream of streams) {
      const head = stream.head();
      if (head === undefined) return;
      if (head < target) target = head;
    }
    // The one before was found out to be missing somewhere, or was given.
    if (last !== undefined && target < last) passed = last;
    last = target;
    if (done > probes && passed !== undefined) {
      yield { passed, probes: done };
      passed = undefined;
      done = 0;
    }
    if (streams.every((stream) => stream.head() === target)) {
      if (excluded.length === 0 || matches(reader, excluded, target)) yield target;
      for (const stream of streams) stream.skipTo(target, "past");
    } else {
      for (const stream of streams) stream.skipTo(target, "at");
    }
  }
}

/** One step of a walk: at most `limit` ids, and where the next step begins. */
export function walkStep(
  reader: Reader,
  records: AnyTable,
  filter: Filter,
  bounds: Omit<Bounds, "few">,
  limit: number,
): { ids: BareId[]; next: BareId | undefined } {
  const ids: BareId[] = [];
  for (const found of leapfrogJoin(reader, records, filter, { ...bounds, few: limit })) {
    if (typeof found !== "string") return { ids, next: found.passed };
    if (ids.push(found) === limit) return { ids, next: found };
  }
  return { ids, next: undefined };
}

interface IdStream {
  head(): BareId | undefined;
  /** Moves on to the first id that is not newer than `target`, or `past` it. */
  skipTo(target: BareId, where: "at" | "past"): void;
}

const CHUNK_FIRST = 32;
const CHUNK_MAX = 512;

/** One range of one index, read in chunks that grow while they are used, and become small where only a few keys of each are. */
class Stream implements IdStream {
  #chunk: string[] = [];
  #position = 0;
  #size: number;
  /** Number of keys of the chunk that were looked at. */
  #used = 0;
  /** Start of the next chunk (excluded); undefined when the range is read to its end. */
  #next: string | undefined;
  readonly #reader: Reader;
  readonly #table: AnyTable;
  readonly #prefix: string;
  readonly #from: string;

  constructor(reader: Reader, table: AnyTable, prefix: string, { from = "", before = MAX_KEY, few = CHUNK_FIRST }: Bounds) {
    this.#reader = reader;
    this.#table = table;
    this.#prefix = prefix;
    this.#from = prefix + from;
    this.#next = prefix + before;
    this.#size = few;
  }

  head(): BareId | undefined {
    if (this.#position === this.#chunk.length && this.#next !== undefined) this.#read(this.#next);
    return this.#chunk[this.#position]?.slice(this.#prefix.length);
  }

  skipTo(target: BareId, where: "at" | "past"): void {
    const key = this.#prefix + target;
    const done = (candidate: string) => (where === "at" ? candidate <= key : candidate < key);
    while (this.#position < this.#chunk.length && !done(this.#chunk[this.#position] as string)) this.#position++;
    this.#used++;
    if (this.#position < this.#chunk.length || this.#next === undefined) return;
    // Beyond this chunk: jump there instead of reading what lies between. Right after it, reading on is all there is to do.
    if (this.#next > key) {
      this.#size = Math.min(CHUNK_MAX, 2 * this.#used);
      this.#next = where === "at" ? key + MAX_KEY : key;
    }
  }

  #read(to: string): void {
    const keys = this.#reader.keys(this.#table, { from: this.#from, to, limit: this.#size, descending: true });
    const length = this.#prefix.length + BARE_ID_LENGTH;
    this.#chunk = (keys[0]?.length ?? 0) > length ? keys.map((key) => key.slice(0, length)) : keys;
    this.#position = 0;
    this.#used = 0;
    this.#next = this.#chunk.length < this.#size ? undefined : this.#chunk.at(-1);
    this.#size = Math.min(CHUNK_MAX, this.#size * 2);
  }
}

function unionStream(streams: Stream[]): IdStream {
  const [only] = streams;
  if (streams.length === 1 && only !== undefined) return only;
  return {
    head: () => {
      let newest: BareId | undefined;
      for (const stream of streams) {
        const head = stream.head();
        if (head !== undefined && (newest === undefined || head > newest)) newest = head;
      }
      return newest;
    },
    skipTo: (target, where) => {
      for (const stream of streams) stream.skipTo(target, where);
    },
  };
}
