/**
 * The thread that the index lives in, so that building and saving it never hold up a request.
 *
 * A search is answered between two steps of the work, which take a millisecond or so. While a snapshot is written the graph
 * stays as it is, and what is new is found without it.
 *
 * @module
 */
import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import { DAY_MS } from "../lib/duration.ts";
import { describeError } from "../lib/log.ts";
import { COLLECTIONS } from "../storage/collections.ts";
import { Store } from "../storage/lmdb/store.ts";
import type { Filter } from "../storage/walk.ts";
import { pack, type Candidate } from "./candidates.ts";
import { Indexer } from "./indexer.ts";
import { DamagedListsError } from "./words/posting-lists.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";
import { unpackQuery } from "./query.ts";
import type { Shared } from "./scopes/shared-vectors.ts";

declare const self: Worker;

/** Duration of the work between two looks at messages: longer after long searches, or the work would never be done. */
const STEP_MIN_MS = 1;
const STEP_MAX_MS = 12;
/** Debounces new vectors, as each start of the work costs more than a vector; a search does not wait for it. */
const GATHER_MS = 20;
/** Interval of the upkeep: sweeping deleted vectors, writing snapshots. */
const TICK_MS = 10_000;
const STATUS_MS = 500;
/** A snapshot is written when this share of the graph is new, or after a while if anything is; rarely during other work. */
const SAVE_MIN = 1_000;
const SAVE_SHARE = 0.1;
const SAVE_GAP_IDLE_MS = 10_000;
const SAVE_GAP_BUSY_MS = 60_000;
const SAVE_GAP_MAX_MS = 600_000;
/** A few new vectors go into the graph at the next start as quickly as into a snapshot now. */
const SAVE_AT_CLOSE_SHARE = 0.01;
/** After this time deleted vectors leave memory and disk, even when they are too few to be in the way. */
const PURGE_MS = DAY_MS;

let store: Store | undefined;
let indexer: Indexer | undefined;
/** While the index is being loaded. */
let starting: Promise<void> | undefined;
const stopping = new AbortController();
/** Latest message to the request thread about where vectors are. */
let told: Shared | undefined;
let working = false;
/** Milliseconds that searches took since the last step. */
let searchedMs = 0;
let saving: Promise<void> | undefined;
let savedAt = systemClock.elapsed();
let postedAt = 0;
/** Time at which the oldest point of a deleted vector was noticed. */
let removedAt: number | undefined;
let timer: ReturnType<typeof setInterval> | undefined;

const post = (message: FromWorker) => self.postMessage(message);
const tell = ({ shared }: Indexer) => {
  if (shared === told) return;
  told = shared;
  post({ kind: "shared", shared });
};
const warn = (message: string) => post({ kind: "warning", message });

async function start({ dataDirectory, collection: name, useSnapshot, graphFrom }: Extract<ToWorker, { kind: "start" }>): Promise<void> {
  // A search refreshes it, so nothing would stay in a cache.
  store = await Store.open(dataDirectory, systemClock, { cachesRows: false });
  const collection = COLLECTIONS[name];
  const opened = new Indexer(store, join(dataDirectory, collection.directory), { collection, graphFrom });
  const rebuilding = await opened.start({ useSnapshot, signal: stopping.signal });
  if (stopping.signal.aborted) return;
  indexer = opened;
  post({ kind: "ready", rebuilding, status: opened.status, bytes: opened.bytes });
  timer = setInterval(tick, TICK_MS);
  work();
}

function tick(): void {
  guarded(() => {
    if (indexer === undefined) return;
    indexer.sweep();
    const now = systemClock.elapsed();
    removedAt = indexer.status.removed === 0 ? undefined : (removedAt ?? now);
    if (removedAt !== undefined && now - removedAt > PURGE_MS) {
      removedAt = undefined;
      indexer.rebuild();
    }
    work();
  });
}

interface Search {
  readonly call: number;
  readonly steps: Generator<undefined, Candidate[]>;
}

/** Searches that are not done after their first step. They run round-robin, with messages in between. */
const searches: Search[] = [];

function nearest({ call, query, filter }: Extract<ToWorker, { kind: "nearest" }>): void {
  if (indexer === undefined) return post({ kind: "error", call, reason: "the index is not open" });
  const search = { call, steps: indexer.nearest(unpackQuery(query), JSON.parse(filter) as Filter) };
  if (isDone(search) || searches.push(search) > 1) return;
  setImmediate(searchOn);
}

function searchOn(): void {
  const search = searches.shift();
  if (search !== undefined && !isDone(search)) searches.push(search);
  if (searches.length > 0) setImmediate(searchOn);
}

/** Runs one step of a search, and answers it after the last one. */
function isDone({ call, steps }: Search): boolean {
  const began = systemClock.elapsed();
  try {
    if (indexer === undefined) throw new Error("the index was closed");
    const { done, value } = steps.next();
    if (done === true) {
      tell(indexer);
      post({ kind: "answer", call, ...pack(value) });
    }
    return done === true;
  } catch (error) {
    // Rebuilt without the snapshot, which the damage came from, the index is whole again.
    if (error instanceof DamagedListsError) void fail(error);
    else post({ kind: "error", call, reason: describeError(error) });
    return true;
  } finally {
    searchedMs += systemClock.elapsed() - began;
  }
}

/** Does pending work, a few milliseconds at a time with messages in between. */
function work(afterMs = 0): void {
  if (working || indexer === undefined) return;
  working = true;
  if (afterMs === 0) setImmediate(step);
  else setTimeout(step, afterMs);
}

function step(): void {
  guarded(() => {
    if (indexer === undefined) return;
    const until = systemClock.elapsed() + Math.min(STEP_MAX_MS, Math.max(STEP_MIN_MS, searchedMs));
    searchedMs = 0;
    indexer.catchUp();
    let more = true;
    while (more && systemClock.elapsed() < until) more = indexer.step();
    tell(indexer);
    if (isSaveDue(indexer, more)) void save();
    postStatus(indexer, !more);
    working = more;
    if (more) setImmediate(step);
  });
}

function postStatus({ status, bytes }: Indexer, idle: boolean): void {
  const now = systemClock.elapsed();
  if (!idle && now - postedAt < STATUS_MS) return;
  postedAt = now;
  post({ kind: "status", status, bytes, idle });
}

function isSaveDue({ status: { indexed, unsaved } }: Indexer, busy: boolean): boolean {
  const gap = systemClock.elapsed() - savedAt;
  if (unsaved >= Math.max(SAVE_MIN, indexed * SAVE_SHARE)) return gap > (busy ? SAVE_GAP_BUSY_MS : SAVE_GAP_IDLE_MS);
  return unsaved > 0 && gap > SAVE_GAP_MAX_MS;
}

/** A failed save backs off like a successful one. */
function save(): Promise<void> {
  saving ??= (async () => {
    try {
      await indexer?.save();
    } catch (error) {
      warn(`The snapshot of the vector index could not be written: ${describeError(error)}`);
    }
    savedAt = systemClock.elapsed();
    saving = undefined;
    work();
  })();
  return saving;
}

async function close(): Promise<void> {
  // This thread must not end while hnswlib reads its file, or writes it.
  stopping.abort();
  await starting;
  clearInterval(timer);
  await saving;
  const { indexed, unsaved } = indexer?.status ?? { indexed: 0, unsaved: 0 };
  if (unsaved > indexed * SAVE_AT_CLOSE_SHARE) await save();
  indexer = undefined;
  await store?.close();
  post({ kind: "closed" });
  process.exit(0);
}

/** Runs a piece of work. When it throws, this worker ends, and a new one builds the index again. */
function guarded(action: () => void): void {
  try {
    action();
  } catch (error) {
    void fail(error);
  }
}

async function fail(error: unknown): Promise<void> {
  clearInterval(timer);
  // As in `close`: hnswlib may be writing its file.
  await saving;
  indexer = undefined;
  // Without this its view of the store would be kept open for good, and with it the pages that the view can see.
  await store?.close().catch(() => undefined);
  post({ kind: "fatal", reason: describeError(error) });
  process.exit(1);
}

self.addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.kind) {
    case "start":
      starting = start(message).catch(fail);
      break;
    case "nearest":
      nearest(message);
      // Stored and deleted vectors are announced; a search finds work where it has taken something in, or has a filter of its own.
      if (indexer?.isBehind === true) work();
      break;
    case "updated":
      indexer?.updated(message.memories);
      break;
    case "changed":
      work(GATHER_MS);
      break;
    case "save":
      void save().then(() => post({ kind: "saved", call: message.call }));
      break;
    case "close":
      void close().catch(fail);
      break;
  }
});
