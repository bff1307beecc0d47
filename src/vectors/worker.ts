/**
 * The thread that the index lives in, so that building and saving it never hold up a request.
 *
 * A search is answered between two steps of the work, which take a few milliseconds at most. While a snapshot is written
 * new vectors wait and are compared exactly.
 *
 * @module
 */
import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import { describeError } from "../lib/log.ts";
import { Store } from "../storage/store.ts";
import { Indexer } from "./indexer.ts";
import type { FromWorker, ToWorker } from "./protocol.ts";

declare const self: Worker;

const STEP_BUDGET_MS = 3;
const SWEEP_MS = 30_000;
/** Written when this share of the graph is new, or after a while if anything is. */
const SAVE_SHARE = 0.1;
const SAVE_MIN = 1_000;
const SAVE_MS = 600_000;

let indexer: Indexer | undefined;
let store: Store | undefined;
let working = false;
let savedAt = systemClock.elapsed();
let sweepTimer: ReturnType<typeof setInterval> | undefined;

const tell = (message: FromWorker) => self.postMessage(message);

async function start(dataDirectory: string): Promise<void> {
  store = await Store.open(dataDirectory, systemClock);
  const opened = new Indexer(store, join(dataDirectory, "vectors"));
  const rebuilding = await opened.start();
  indexer = opened;
  tell({ kind: "ready", rebuilding, status: opened.status });
  sweepTimer = setInterval(() => {
    opened.sweep();
    work();
  }, SWEEP_MS);
  work();
}

/** Works off what is pending, a few milliseconds at a time with messages in between. */
function work(): void {
  if (working || indexer === undefined) return;
  working = true;
  setImmediate(step);
}

function step(): void {
  if (indexer === undefined) return;
  const until = systemClock.elapsed() + STEP_BUDGET_MS;
  indexer.catchUp();
  let more = true;
  while (more && systemClock.elapsed() < until) more = indexer.step();
  const { indexed, unsaved } = indexer.status;
  const due = unsaved >= Math.max(SAVE_MIN, indexed * SAVE_SHARE) || (unsaved > 0 && systemClock.elapsed() - savedAt > SAVE_MS);
  if (due) void save();
  if (more) {
    setImmediate(step);
  } else {
    working = false;
    tell({ kind: "status", status: indexer.status });
  }
}

let saving: Promise<void> | undefined;

function save(): Promise<void> {
  saving ??= (async () => {
    try {
      await indexer?.save();
    } catch (error) {
      tell({ kind: "warning", message: `The snapshot of the vector index could not be written: ${describeError(error)}` });
    }
    savedAt = systemClock.elapsed();
    saving = undefined;
    work();
  })();
  return saving;
}

async function close(): Promise<void> {
  clearInterval(sweepTimer);
  const last = indexer;
  indexer = undefined;
  await saving;
  await last?.save().catch((error: unknown) => tell({ kind: "warning", message: describeError(error) }));
  await store?.close();
  tell({ kind: "closed" });
}

self.addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  switch (message.kind) {
    case "start":
      start(message.dataDirectory).catch((error: unknown) => tell({ kind: "failed", call: 0, reason: describeError(error) }));
      break;
    case "nearest":
      try {
        if (indexer === undefined) throw new Error("the index is not open");
        tell({ kind: "answer", call: message.call, neighbours: indexer.nearest(message.query, message.filter, message.limit) });
      } catch (error) {
        tell({ kind: "failed", call: message.call, reason: describeError(error) });
      }
      work();
      break;
    case "changed":
      work();
      break;
    case "save":
      void save().then(() => tell({ kind: "saved", call: message.call }));
      break;
    case "close":
      void close();
      break;
  }
});
