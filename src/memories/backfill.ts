/**
 * Makes the vectors that are owed: those that a provider could not give in time, and all of them after a change of provider.
 *
 * After a change the vectors of the provider before, known by their labels, are taken out in pieces, and their memories are
 * owed new ones. All that is to be done stands in the store, so nothing is forgotten when the process ends; what changed or
 * went meanwhile is found out in the transaction that stores the vector.
 *
 * ```
 * labels below the line ──takeOut──▶ owed ──make──▶ labels above the line
 *                                     │ ▲
 *                       refused for itself: left until an hour later, or until another provider is set
 * ```
 * While the provider is down it is asked now and then, and nothing is sent to it.
 *
 * @module
 */
import type { Active } from "../embeddings/embeddings.ts";
import type { Embedding } from "../embeddings/embedder.ts";
import { ProviderError } from "../embeddings/remote/provider-error.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { NO_HOME, withPrefix, type BareId } from "../lib/ids.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf, removeVector } from "../storage/memory-records.ts";
import { labels, memories, owed, type MemoryRow } from "../storage/tables.ts";
import type { Tx } from "../storage/access.ts";
import type { Store } from "../storage/store.ts";
import type { Task } from "../tasks/task.ts";
import { newEmbedding, type MemoryParts } from "./memories.ts";

const NAME = "embeddings";

const TAKEN_OUT_PER_COMMIT = 200;
/** The built-in provider makes these in a few milliseconds; another takes them as one request, which leaves room for others. */
const MADE_PER_COMMIT = 64;
const CHARACTERS_PER_COMMIT = 100_000;
const LOOKED_AT_PER_RUN = 1_000;

const IDLE_MS = 60_000;
/** After a failure that is not the texts' own fault, and did not bring the provider down. */
const AGAIN_MS = 5_000;
/** A text that the provider refuses may be taken when it is set up in another way, which nobody tells us. */
const OFFERED_AGAIN_MS = HOUR_MS;
const PROGRESS_MS = 5_000;

export function backfill(parts: MemoryParts): Task {
  const { store, clock, embeddings } = parts;
  const watch = new Watch(parts);
  const bad = new BadRows(store, parts.log, NAME);
  /** Where in the owed ones this pass is, and what it came to. */
  let from = "";
  let made = 0;
  let failed = 0;
  /** Whether this pass offers again what was refused before, and when the next one does. */
  let isOfferingAll = false;
  let offerAllAt = Number.NEGATIVE_INFINITY;
  return {
    name: NAME,
    activator: parts.backfill,
    async run() {
      await embeddings.startGenerationIfNeeded();
      if (await takeOut(parts, bad)) {
        watch.tellProgress();
        return 0;
      }
      const waiting = await recovered(parts, watch);
      if (waiting > 0) return waiting;
      if (from === "") {
        made = failed = 0;
        isOfferingAll = clock.elapsed() >= offerAllAt;
        if (isOfferingAll) offerAllAt = clock.elapsed() + OFFERED_AGAIN_MS;
      }
      const { active } = embeddings;
      const batch = nextBatch(store, active, from, isOfferingAll, bad);
      if (batch.owed.length > 0) {
        if (batch.next !== undefined) watch.tellProgress();
        const outcomes = await make(parts, active, batch.owed, bad);
        made += outcomes.filter((outcome) => outcome === "made").length;
        failed += outcomes.filter((outcome) => outcome === "failed").length;
        watch.noteRefused(batch.owed.filter((_, i) => outcomes[i] === "refused").map(({ key }) => key));
      }
      from = batch.next ?? "";
      if (batch.next !== undefined) return 0;
      // The end of a pass. Memories changed meanwhile may be owed again, so only one that makes nothing is the last.
      if (made > 0) return 0;
      watch.tellEnd();
      return failed > 0 ? AGAIN_MS : IDLE_MS;
    },
  };
}

/** Tells the operator how it goes, not too often. */
class Watch {
  readonly #parts: MemoryParts;
  #toldAt = Number.NEGATIVE_INFINITY;
  #hasToldProgress = false;
  /** Why the provider does not work, as it was told last; undefined while it does. */
  #reason: string | undefined;

  constructor(parts: MemoryParts) {
    this.#parts = parts;
  }

  tellProgress(): void {
    const now = this.#parts.clock.elapsed();
    if (now - this.#toldAt < PROGRESS_MS) return;
    this.#toldAt = now;
    this.#hasToldProgress = true;
    const { ready, owed: left } = this.#parts.embeddings.progress();
    this.#parts.log.info("making vectors", { ready, owed: left, percent: Math.floor((100 * ready) / Math.max(1, ready + left)) });
  }

  tellEnd(): void {
    if (!this.#hasToldProgress) return;
    this.#hasToldProgress = false;
    this.#toldAt = Number.NEGATIVE_INFINITY;
    const { ready, owed: left } = this.#parts.embeddings.progress();
    this.#parts.log.info(left === 0 ? "all vectors are made" : "all vectors are made that could be", { ready, owed: left });
  }

  /** A probe may say more than what failed first: words that quote nobody. */
  noteDown({ message: reason }: ProviderError): void {
    if (this.#reason === reason) return;
    this.#reason = reason;
    this.#parts.log.warn("the embedding provider does not work", { reason });
  }

  noteUp(): void {
    if (this.#reason === undefined) return;
    this.#reason = undefined;
    this.#parts.log.info("the embedding provider works again", { ...this.#parts.embeddings.progress() });
  }

  /** What the provider says of a text may repeat it, so it is not logged. */
  noteRefused([first, ...others]: readonly BareId[]): void {
    if (first === undefined) return;
    this.#parts.log.warn("the embedding provider refuses a memory for what it says; it is not found by searches", {
      memory: withPrefix("mem", first),
      others: others.length,
    });
  }
}

/** Takes out some vectors of a provider before. @returns whether there were any */
async function takeOut({ store, vectors }: MemoryParts, bad: BadRows): Promise<boolean> {
  const old = bad.keysOfOthers(labels, { from: "", to: numberKey(store.read(firstLabelOf)), limit: TAKEN_OUT_PER_COMMIT });
  if (old.length === 0) return false;
  await bad.commit((tx, isolate) => {
    for (const label of old) isolate(label, () => takeOutOne(tx, label));
  });
  vectors.changed();
  return true;
}

function takeOutOne(tx: Tx, label: string): void {
  const memory = tx.get(labels, label);
  if (memory === undefined) return;
  const row = tx.get(memories, memory);
  if (row?.embedding === undefined || numberKey(row.embedding.label) !== label) {
    tx.remove(labels, label);
    return;
  }
  const { embedding, ...rest } = row;
  removeVector(tx, memory, embedding.label);
  tx.put(memories, memory, rest);
  tx.put(owed, memory, "");
}

/** Sees to it that the provider can be asked. @returns how long to wait before it makes sense to try; 0: it can be */
async function recovered({ embeddings, clock }: MemoryParts, watch: Watch): Promise<number> {
  const { remote, calibration } = embeddings.active;
  if (remote === undefined || (remote.openCircuit === undefined && calibration !== undefined)) {
    watch.noteUp();
    return 0;
  }
  if (remote.openCircuit !== undefined) watch.noteDown(remote.openCircuit.error);
  const untilRetry = () => (remote.openCircuit?.retryAtMs ?? 0) - clock.elapsed();
  if (untilRetry() > 0) return Math.min(untilRetry(), IDLE_MS);
  try {
    await embeddings.recover();
    watch.noteUp();
    return 0;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (embeddings.active.remote === remote && !embeddings.isClosed) watch.noteDown(error);
    return Math.max(AGAIN_MS, Math.min(untilRetry(), IDLE_MS));
  }
}

interface Owed {
  key: BareId;
  /** undefined: there is nothing to be made after all. */
  text: string | undefined;
  wasRefused: boolean;
}

/** What the provider can be asked for at once, and where to go on; no `next` at the end. */
function nextBatch(
  store: Store,
  active: Active,
  from: string,
  isOfferingAll: boolean,
  bad: BadRows,
): { owed: Owed[]; next: string | undefined } {
  const batch: Owed[] = [];
  let characters = 0;
  const reader = store.latest;
  const rows = reader.rows(owed, { from, to: AFTER_ALL, limit: LOOKED_AT_PER_RUN });
  for (const { key, row: mark } of rows) {
    const wasRefused = mark === markOf(active);
    if ((wasRefused && !isOfferingAll) || bad.has(key)) continue;
    let text: string | undefined;
    try {
      text = textOf(reader.get(memories, key));
    } catch (error) {
      bad.note(key, error);
      continue;
    }
    batch.push({ key, text, wasRefused });
    characters += text?.length ?? 0;
    if (batch.length === MADE_PER_COMMIT || characters >= CHARACTERS_PER_COMMIT) return { owed: batch, next: `${key}!` };
  }
  const last = rows.at(-1);
  return { owed: batch, next: last === undefined || rows.length < LOOKED_AT_PER_RUN ? undefined : `${last.key}!` };
}

function textOf(row: MemoryRow | undefined): string | undefined {
  return row === undefined || !row.embed || row.embedding !== undefined ? undefined : row.content;
}

/** What stands beside an owed memory that this provider refused. */
function markOf({ firstLabel }: Active): string {
  return String(firstLabel);
}

type Outcome = "made" | "refused" | "failed";

async function make(parts: MemoryParts, active: Active, batch: readonly Owed[], bad: BadRows): Promise<(Outcome | undefined)[]> {
  // What cannot be stored need not be paid for: this finds out if the disk is full.
  if (active.remote !== undefined) await parts.store.commit(NO_HOME, () => undefined);
  const embedded = async ({ key, text }: Owed) => {
    try {
      return text === undefined ? undefined : await embeddingOf(active, text);
    } catch (error) {
      bad.note(key, error);
      return "failed";
    }
  };
  const made = await Promise.all(batch.map(embedded));
  const outcomes = await parts.store.commit(NO_HOME, (tx) => batch.map((item, i) => settle(tx, active, item, made[i])));
  parts.vectors.changed();
  return outcomes;
}

async function embeddingOf({ embedder, remote }: Active, text: string): Promise<Embedding | "refused" | "failed"> {
  try {
    return await embedder.embedMemory(text);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return error.facts.inputRejected === true && remote?.openCircuit === undefined ? "refused" : "failed";
  }
}

/**
 * Stores a vector, unless the memory or the provider is another one by now.
 *
 * @returns undefined where nothing was to be done, or nothing new is to be said
 */
function settle(
  tx: Tx,
  active: Active,
  { key, text, wasRefused }: Owed,
  made: Embedding | "refused" | "failed" | undefined,
): Outcome | undefined {
  const row = tx.get(memories, key);
  if (row === undefined || textOf(row) === undefined) {
    tx.remove(owed, key);
    return undefined;
  }
  if (made === undefined || made === "failed" || row.content !== text || firstLabelOf(tx) !== active.firstLabel) return "failed";
  if (made === "refused") {
    tx.put(owed, key, markOf(active));
    return wasRefused ? undefined : "refused";
  }
  tx.remove(owed, key);
  tx.put(memories, key, { ...row, embedding: newEmbedding(tx, key, made) });
  return "made";
}
