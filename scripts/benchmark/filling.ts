/**
 * The process that fills a store with as many memories as are asked for, and says what searches of it should find.
 *
 * It writes what adding them over HTTP would, in large commits and with no server running: a million take a minute or two. Each memory
 * is scored for every question as it is made; where not even the cosine 1 would bring it among the ten best, the vector is left alone.
 *
 * @module
 */
import { calibrationOf, type ProviderCalibration } from "../../src/embeddings/calibration.ts";
import type { EmbeddedQuery } from "../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../src/embeddings/local/local.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { bare, homeOf, withPrefix, type SessionId } from "../../src/lib/ids.ts";
import { putVector } from "../../src/memories/memories.ts";
import { relevance } from "../../src/memories/relevance.ts";
import type { Tx } from "../../src/storage/access.ts";
import { generationOf } from "../../src/storage/memory-records.ts";
import { Store } from "../../src/storage/store.ts";
import { memories, provider, PROVIDER_KEY, sessions as sessionTable } from "../../src/storage/tables.ts";
import { dotStored } from "../../src/vectors/brute-force.ts";
import { encodeVector, quantize } from "../../src/vectors/encoding.ts";
import { obey } from "./child.ts";
import { denseVector } from "./dense.ts";
import { FILTER_NAMES, groupOf, SHARES, tagOf, type Asked, type FilterName } from "./filters.ts";
import { Collection, randomOf, type TextKind } from "./texts.ts";

export type VectorKind = "built-in" | "dense";

export interface FillingOrder {
  directory: string;
  /** Ids of the sessions of each user. */
  users: string[][];
  count: number;
  texts: TextKind;
  vectors: VectorKind;
  asked: Asked[];
}

export interface FillingResult {
  seconds: number;
  /** For each question and filter the scores of the ten best, best first. */
  right: Record<FilterName, number[]>[];
  /** How many memories pass, on average over the questions. */
  passing: Record<FilterName, number>;
}

const BEST = 10;
const COMMIT = 1_000;
/** How unlike in size users are: from 200 to 1,000 memories where there are 600 on average. */
const WEIGHT_MIN = 200;
const WEIGHT_MAX = 1_000;

/** The scores of the ten best, best first; places that are not taken have 0. */
class BestScores {
  readonly scores = new Float64Array(BEST);
  passing = 0;

  get bar(): number {
    return this.scores[BEST - 1]!;
  }

  offer(score: number): void {
    if (score <= this.bar) return;
    let at = BEST - 1;
    for (; at > 0 && this.scores[at - 1]! < score; at--) this.scores[at] = this.scores[at - 1]!;
    this.scores[at] = score;
  }
}

interface Question {
  asked: Asked;
  query: EmbeddedQuery;
  numbers: Int16Array;
  best: Record<FilterName, BestScores>;
}

function questionOf(asked: Asked, vectors: VectorKind): Question {
  const query = localEmbedder.embedQuery(asked.query);
  const numbers = quantize(vectors === "dense" ? denseVector(asked.query) : query.vector);
  return { asked, query, numbers, best: everyFilter(() => new BestScores()) };
}

function everyFilter<Value>(make: (name: FilterName) => Value): Record<FilterName, Value> {
  return Object.fromEntries(FILTER_NAMES.map((name) => [name, make(name)])) as Record<FilterName, Value>;
}

/** Offers a memory to the questions whose filters it passes. */
function offer(
  questions: readonly Question[],
  memory: { user: number; group: string; shares: readonly FilterName[]; terms: Uint32Array; bytes: Uint8Array },
  calibration: ProviderCalibration | undefined,
): void {
  for (const { asked, query, numbers, best } of questions) {
    const passed = memory.shares.map((name) => best[name]);
    if (asked.user === memory.user) passed.push(best.user);
    if (asked.group === memory.group) passed.push(best.topics);
    let bar = Infinity;
    for (const of of passed) {
      of.passing++;
      bar = Math.min(bar, of.bar);
    }
    if (relevance(query, 1, memory.terms, calibration) <= bar) continue;
    const score = relevance(query, dotStored(numbers, memory.bytes), memory.terms, calibration);
    for (const of of passed) of.offer(score);
  }
}

function calibrationIn(store: Store): ProviderCalibration | undefined {
  const measured = store.latest.get(provider, PROVIDER_KEY)?.measured;
  return measured === undefined ? undefined : calibrationOf(measured);
}

async function fill({ directory, users, count, texts, vectors, asked }: FillingOrder): Promise<FillingResult> {
  const startedAt = performance.now();
  const store = await Store.open(directory, systemClock);
  const calibration = calibrationIn(store);
  const questions = asked.map((one) => questionOf(one, vectors));
  const collection = new Collection(texts);
  const random = randomOf(count);
  const userOf = drawn(users.length, random);
  const memoryCounts = new Map<SessionId, number>();

  const add = (tx: Tx, index: number) => {
    const { content, topic } = collection.text(index);
    const user = userOf();
    const session = users[user]![Math.floor(random() * users[user]!.length)]! as SessionId;
    memoryCounts.set(session, (memoryCounts.get(session) ?? 0) + 1);
    const shares = FILTER_NAMES.filter((name) => name in SHARES && random() < SHARES[name as keyof typeof SHARES]);
    const group = groupOf(topic);
    const embedding = localEmbedder.embedMemory(content);
    if (vectors === "dense") Object.assign(embedding, { vector: denseVector(content) });
    const id = tx.id("mem", homeOf(session));
    const generation = generationOf(tx);
    const stored = putVector(tx, bare(id), generation, embedding, withPrefix("emb", bare(id)));
    tx.add(memories, bare(id), {
      sessionId: session,
      userId: `user-${user}`,
      content,
      type: "fact",
      tags: [...shares.filter((name) => name !== "all").map(tagOf), ...(group === "" ? [] : [group])],
      metadata: {},
      createdAt: tx.now,
      embed: true,
      embedding: stored,
    });
    const bytes = encodeVector(embedding, { memory: bare(id), generation });
    offer(questions, { user, group, shares, terms: embedding.terms, bytes }, calibration);
  };

  for (let from = 0; from < count; from += COMMIT) {
    const to = Math.min(count, from + COMMIT);
    await store.commitExclusive((tx) => {
      for (let index = from; index < to; index++) add(tx, index);
    });
    if (to % 100_000 === 0) console.error(`  ${to.toLocaleString("en")} memories, ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
  await store.commitExclusive((tx) => {
    for (const [session, memoryCount] of memoryCounts) {
      const row = tx.get(sessionTable, bare(session));
      if (row !== undefined) tx.put(sessionTable, bare(session), { ...row, memoryCount: row.memoryCount + memoryCount });
    }
  });
  await store.close();
  const mean = (name: FilterName) => questions.reduce((sum, { best }) => sum + best[name].passing, 0) / Math.max(1, questions.length);
  return {
    seconds: (performance.now() - startedAt) / 1000,
    right: questions.map(({ best }) => everyFilter((name) => Array.from(best[name].scores).filter((score) => score > 0))),
    passing: everyFilter(mean),
  };
}

/** Draws users, large ones more often than small ones. */
function drawn(users: number, random: () => number): () => number {
  const weights = Array.from({ length: users }, () => WEIGHT_MIN + random() * (WEIGHT_MAX - WEIGHT_MIN));
  // As if each had one seat for each hundredth of a memory: drawing is one look.
  const seats = weights.flatMap((weight, user) => Array.from({ length: Math.round(weight / 4) }, () => user));
  return () => seats[Math.floor(random() * seats.length)]!;
}

obey(fill);
