/**
 * The process that fills a store with as many memories as are asked for, and says what searches of it should find.
 *
 * It writes what adding them over HTTP would, in large commits and with no server running: a million take a minute or two. Each memory
 * is scored for every question as it is made; where not even the cosine 1 would bring it among the ten best, the vector is left alone.
 *
 * @module
 */
import { WordWeights } from "../../src/embeddings/builtin/word-weights.ts";
import { calibrationOf } from "../../src/embeddings/calibration.ts";
import type { EmbeddedQuery } from "../../src/embeddings/embedder.ts";
import type { Calibration } from "../../src/embeddings/score.ts";
import { memoryTerms, queryTerms } from "../../src/embeddings/words/terms.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { bare, partitionOf, withPrefix, type SessionId } from "../../src/lib/ids.ts";
import { relevance } from "../../src/memories/relevance.ts";
import type { Tx } from "../../src/storage/access.ts";
import { MEMORIES } from "../../src/storage/collections.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import { generationOf } from "../../src/storage/memory-records.ts";
import { memories, provider, PROVIDER_KEY, sessions as sessionTable } from "../../src/storage/tables.ts";
import { dotStored, encodeVector, quantize } from "../../src/search/encoding.ts";
import { storeVector } from "../../src/search/store-vector.ts";
import { obey } from "./child.ts";
import { denseVector } from "./dense.ts";
import { FILTER_NAMES, groupOf, metadataOf, SHARES, tagOf, type Asked, type FilterName } from "./filters.ts";
import { Collection, pick, type Random, randomOf, type TextKind } from "../../src/cli/bench/load/texts.ts";

export interface FillingOrder {
  directory: string;
  /** Ids of the sessions of each user. */
  users: string[][];
  count: number;
  texts: TextKind;
  asked: Asked[];
  /** Memories that are asked with: scores of others are not known afterwards. */
  filters: FilterName[];
}

export interface FillingResult {
  seconds: number;
  /** For each question and filter the scores of the ten best, best first. */
  right: Record<FilterName, number[]>[];
  /** Number of memories that pass, on average over the questions. */
  passing: Record<FilterName, number>;
}

const BEST = 10;
const COMMIT = 1_000;
/** Spread of the sizes of users: from 200 to 1,000 memories where there are 600 on average. */
const WEIGHT_MIN = 200;
const WEIGHT_MAX = 1_000;

/** The scores of the ten best, best first; places that are not taken have 0. */
class BestScores {
  readonly scores = new Float64Array(BEST);

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

const weights = new WordWeights();

function questionOf(asked: Asked): Question {
  const query = { vector: denseVector(asked.query), lexical: queryTerms(asked.query, (word) => weights.of(word)) };
  return { asked, query, numbers: quantize(query.vector), best: everyFilter(() => new BestScores()) };
}

function everyFilter<Value>(make: (name: FilterName) => Value): Record<FilterName, Value> {
  return Object.fromEntries(FILTER_NAMES.map((name) => [name, make(name)])) as Record<FilterName, Value>;
}

interface Offered {
  user: number;
  group: string;
  /** The filters of `SHARES` that it passes. */
  shares: readonly FilterName[];
  terms: Uint32Array;
  bytes: Uint8Array;
}

/** Offers a memory to a question, if it passes any of the filters. */
function offer({ asked, query, numbers, best }: Question, memory: Offered, calibration: Calibration | undefined): void {
  const isOfUser = asked.user === memory.user;
  const isOfGroup = asked.group !== "" && asked.group === memory.group;
  let bar = Infinity;
  for (const name of memory.shares) bar = Math.min(bar, best[name].bar);
  if (isOfUser) bar = Math.min(bar, best.user.bar);
  if (isOfGroup) bar = Math.min(bar, best.topics.bar);
  if (bar === Infinity || relevance(query, 1, memory.terms, calibration) <= bar) return;
  const score = relevance(query, dotStored(numbers, memory.bytes), memory.terms, calibration);
  for (const name of memory.shares) best[name].offer(score);
  if (isOfUser) best.user.offer(score);
  if (isOfGroup) best.topics.offer(score);
}

/** One filling of one store. */
class Filling {
  readonly #order: FillingOrder;
  readonly #store: Store;
  readonly #calibration: Calibration | undefined;
  readonly #questions: readonly Question[];
  readonly #questionsOfUser: ReadonlyMap<number, readonly Question[]>;
  readonly #collection: Collection;
  readonly #random: Random;
  readonly #drawUser: () => number;
  readonly #passing = everyFilter(() => 0);
  /** Number of memories of each session, user and group of topics. */
  readonly #ofSession = new Counts<SessionId>();
  readonly #ofUser = new Counts<number>();
  readonly #ofGroup = new Counts<string>();

  constructor(store: Store, order: FillingOrder) {
    const measured = store.latest.get(provider, PROVIDER_KEY)?.measured;
    this.#order = order;
    this.#store = store;
    this.#calibration = measured === undefined ? undefined : calibrationOf(measured);
    this.#questions = order.asked.map(questionOf);
    this.#questionsOfUser = Map.groupBy(this.#questions, ({ asked }) => asked.user);
    this.#collection = new Collection(order.texts);
    this.#random = randomOf(order.count);
    this.#drawUser = drawn(order.users.length, this.#random);
  }

  async run(): Promise<Omit<FillingResult, "seconds">> {
    const { count, asked } = this.#order;
    for (let from = 0; from < count; from += COMMIT) {
      const to = Math.min(count, from + COMMIT);
      await this.#store.commitExclusive((tx) => {
        for (let index = from; index < to; index++) this.#offer(this.#add(tx, index));
      });
      if (to % 100_000 === 0) console.error(`  ${to.toLocaleString("en")} memories …`);
    }
    await this.#store.commitExclusive((tx) => {
      for (const [session, memoryCount] of this.#ofSession) {
        const row = tx.get(sessionTable, bare(session));
        if (row !== undefined) tx.put(sessionTable, bare(session), { ...row, memoryCount: row.memoryCount + memoryCount });
      }
    });
    const mean = (counts: readonly number[]) => counts.reduce((sum, value) => sum + value, 0) / Math.max(1, counts.length);
    const user = mean(asked.map((one) => this.#ofUser.get(one.user) ?? 0));
    const topics = mean(asked.map((one) => this.#ofGroup.get(one.group) ?? 0));
    return {
      right: this.#questions.map(({ best }) => everyFilter((name) => Array.from(best[name].scores).filter((score) => score > 0))),
      passing: { ...this.#passing, user, topics },
    };
  }

  #add(tx: Tx, index: number): Offered {
    const { users } = this.#order;
    const { content, topic } = this.#collection.text(index);
    const user = this.#drawUser();
    const session = pick(users[user]!, this.#random) as SessionId;
    const shares = FILTER_NAMES.filter((name) => name in SHARES && this.#random() < SHARES[name as keyof typeof SHARES]);
    const group = groupOf(topic);
    this.#ofSession.add(session);
    this.#ofUser.add(user);
    this.#ofGroup.add(group);
    for (const name of shares) this.#passing[name]++;
    const terms = memoryTerms(content);
    const embedding = { vector: denseVector(content), terms };
    const memory = bare(tx.id("mem", partitionOf(session)));
    const generation = generationOf(tx);
    tx.add(memories, memory, {
      sessionId: session,
      userId: `user-${user}`,
      agentId: "agent",
      content,
      type: "fact",
      tags: [...shares.filter((name) => name !== "all").map(tagOf), ...(group === "" ? [] : [group])],
      metadata: metadataOf(shares.filter((name) => name !== "all")),
      createdAt: tx.now,
      embed: true,
      embedding: storeVector(tx, MEMORIES, memory, generation, embedding, withPrefix("emb", memory)),
    });
    return { user, group, shares, terms, bytes: encodeVector(embedding, { memory, generation }) };
  }

  #offer(memory: Offered): void {
    const { filters } = this.#order;
    const shares = memory.shares.filter((name) => filters.includes(name));
    const mayAllAsk = shares.length > 0 || filters.includes("topics");
    const questions = mayAllAsk ? this.#questions : (this.#questionsOfUser.get(memory.user) ?? []);
    const offered = { ...memory, shares };
    for (const question of questions) offer(question, offered, this.#calibration);
  }
}

class Counts<Key> extends Map<Key, number> {
  add(key: Key): void {
    this.set(key, (this.get(key) ?? 0) + 1);
  }
}

async function fill(order: FillingOrder): Promise<FillingResult> {
  const startedAt = performance.now();
  const store = await Store.open(order.directory, systemClock);
  const filled = await new Filling(store, order).run();
  await store.close();
  return { ...filled, seconds: (performance.now() - startedAt) / 1000 };
}

/** Draws users, large ones more often than small ones. */
function drawn(users: number, random: () => number): () => number {
  const weights = Array.from({ length: users }, () => WEIGHT_MIN + random() * (WEIGHT_MAX - WEIGHT_MIN));
  // As if each had one seat for each hundredth of a memory: drawing is one look.
  const seats = weights.flatMap((weight, user) => Array.from({ length: Math.round(weight / 4) }, () => user));
  return () => seats[Math.floor(random() * seats.length)]!;
}

obey(fill);
