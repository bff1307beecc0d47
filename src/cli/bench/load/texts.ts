/**
 * Texts that look like what agents remember, as many as are asked for, and questions about them. A seed decides all of it.
 *
 * ```
 * varied  each text is about one of 3,000 topics, popular or rare: 120 words of a made-up vocabulary. A third of its words are function
 *         words; of the others half are of the topic, a third are drawn by frequency (Zipf's law), the rest are names, ids, dates,
 *         amounts, addresses and files. In 3 of 100 the words are an earlier text's with other names and numbers.
 * apart   a few rare words drawn evenly, and words of no vocabulary: two texts have next to nothing in common.
 * ```
 *
 * Four words of the vocabulary at a time mean nearly the same (`meaningOf`). A question takes a few words of one text, some of them
 * replaced by one of the same meaning, and often a name or an id of it; one in seven is about a topic and no certain text.
 *
 * @module
 */

export type TextKind = "varied" | "apart";
export const TEXT_KINDS: readonly TextKind[] = ["varied", "apart"];

export const TOPICS = 3_000;
const TOPIC_WORDS_MAX = 120;
const NEAR_COPIES = 0.03;
const QUESTIONS_WITHOUT_TEXT = 1 / 7;

const VOCABULARY = 20_000;
const WORDS_OF_A_MEANING = 4;
/** Words from this rank on are rare: fewer than one word in 5,000. */
const RARE_FROM = 500;
/** As in texts, the words of the first ranks are less frequent than Zipf's law says. */
const RANK_SHIFT = 10;

const FUNCTION_WORDS =
  "a about after and at before but by for from had has have he in is it its not of on or our she that the their they this to was we with".split(
    " ",
  );
const FIRST_NAMES =
  "Amara Bruno Chiara Dmitri Elif Farid Greta Hiro Ines Jonas Kofi Leila Marta Nadia Oscar Priya Quentin Rosa Sven Tomas Uma Viktor Wanda Ximena Yusuf Zofia".split(
    " ",
  );
const SYLLABLES = "ba do ka lin mar ne ro sha ti vel wen zu hol ber stra mo qui far del gun".split(" ");
const MONTHS = "January February March April May June July August September October November December".split(" ");
const OPENINGS = ["What about", "When did we talk about", "Who mentioned", "Where is", "Which one was", "What did they say of", "How was"];

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pick<Item>(items: readonly Item[], random: Random): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

interface Vocabulary {
  /** The most frequent first. */
  readonly words: readonly string[];
  readonly rankOf: ReadonlyMap<string, number>;
  /** Sums of the frequencies of the words. */
  readonly frequencies: Float64Array;
  /** The words of each topic, the topic's own first. */
  readonly topics: readonly (readonly string[])[];
}

const vocabulary = once(newVocabulary);

function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}

function newVocabulary(): Vocabulary {
  const random = randomOf(TOPICS);
  const rankOf = new Map<string, number>();
  while (rankOf.size < VOCABULARY) {
    // Ends in a letter that no stemmer takes away.
    const word = `${madeUpWord(random).toLowerCase()}${pick(["k", "p", "b", "v"], random)}`;
    if (!rankOf.has(word)) rankOf.set(word, rankOf.size);
  }
  const words = [...rankOf.keys()];
  const frequencies = sums(words.map((_, rank) => 1 / (rank + RANK_SHIFT)));
  const popularity = sums(words.map((_, rank) => 1 / Math.sqrt(rank + RANK_SHIFT)));
  const topics = Array.from({ length: TOPICS }, () => {
    const own = new Set<string>();
    while (own.size < TOPIC_WORDS_MAX) for (const near of sameMeaning(words, placeIn(popularity, random))) own.add(near);
    return [...own];
  });
  return { words, rankOf, frequencies, topics };
}

/** The words that mean nearly the same as the word of a rank, that word included. */
function sameMeaning(words: readonly string[], rank: number): readonly string[] {
  const from = rank - (rank % WORDS_OF_A_MEANING);
  return words.slice(from, from + WORDS_OF_A_MEANING);
}

/** A number for what a word means, which others share; undefined for a word that is not of the vocabulary. */
export function meaningOf(word: string): number | undefined {
  const rank = vocabulary().rankOf.get(word);
  return rank === undefined ? undefined : Math.floor(rank / WORDS_OF_A_MEANING);
}

function sums(values: readonly number[]): Float64Array {
  let sum = 0;
  return Float64Array.from(values, (value) => (sum += value));
}

/** A place of a list, each as often as its share of the sums says. */
function placeIn(all: Float64Array, random: Random): number {
  const wanted = random() * all.at(-1)!;
  let low = 0;
  for (let high = all.length - 1; low < high;) {
    const middle = (low + high) >> 1;
    if (all[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A word as often as people use it. */
function commonWord(random: Random): string {
  const { frequencies, words } = vocabulary();
  return words[placeIn(frequencies, random)]!;
}

/** The first of a topic's words come most often. */
function topicWord(topic: number, random: Random): string {
  const words = vocabulary().topics[topic]!;
  return words[Math.floor(random() ** 2 * words.length)]!;
}

/** One topic in 100 has a fifth of the texts. */
function anyTopic(random: Random): number {
  return Math.floor(random() ** 3 * TOPICS);
}

function madeUpWord(random: Random): string {
  const word = Array.from({ length: 2 + Math.floor(random() * 3) }, () => pick(SYLLABLES, random)).join("");
  return word.charAt(0).toUpperCase() + word.slice(1);
}

const digits = (count: number, random: Random) => String(Math.floor(10 ** (count - 1) + random() * 9 * 10 ** (count - 1)));

/** A name, an id, a date or whatever else is looked for by itself. */
const ENTITIES: readonly ((random: Random) => string)[] = [
  (random) => pick(FIRST_NAMES, random),
  (random) => `${pick(FIRST_NAMES, random)} ${madeUpWord(random)}`,
  (random) => `${madeUpWord(random)} GmbH`,
  madeUpWord,
  (random) => `${pick(["ORD", "INV", "TCK", "CASE", "PR"], random)}-${digits(5, random)}`,
  (random) => `#${digits(6, random)}`,
  (random) => `${1 + Math.floor(random() * 28)} ${pick(MONTHS, random)} ${2015 + Math.floor(random() * 12)}`,
  (random) => `2024-0${1 + Math.floor(random() * 9)}-1${Math.floor(random() * 10)}`,
  (random) => `${8 + Math.floor(random() * 12)}:${pick(["00", "15", "30", "45"], random)}`,
  (random) => `$${digits(2, random)}.${digits(2, random)}`,
  (random) => String(2 + Math.floor(random() * 40)),
  (random) => `${pick(FIRST_NAMES, random).toLowerCase()}@${madeUpWord(random).toLowerCase()}.example`,
  (random) => `${madeUpWord(random).toLowerCase()}_${digits(4, random)}.${pick(["pdf", "xlsx", "ts", "csv"], random)}`,
  (random) => `get${madeUpWord(random)}${madeUpWord(random)}()`,
];

interface Draft {
  /** -1: none. */
  topic: number;
  sentences: string[][];
  /** Its words with a meaning, and its names and numbers. */
  words: string[];
  entities: string[];
}

/** @param words - decides topic and words; `own` decides names and numbers */
function draftOf(kind: TextKind, words: Random, own: Random): Draft {
  const draft: Draft = { topic: kind === "varied" ? anyTopic(words) : -1, sentences: [], words: [], entities: [] };
  const put = (list: string[], sentence: string[], word: string) => {
    list.push(word);
    sentence.push(word);
  };
  if (kind === "apart") {
    const { words: known } = vocabulary();
    const sentence: string[] = [];
    for (let left = 4 + Math.floor(words() * 9); left > 0; left--) {
      if (words() < 0.3) put(draft.entities, sentence, madeUpWord(own) + madeUpWord(own).toLowerCase());
      else put(draft.words, sentence, known[RARE_FROM + Math.floor(words() * (VOCABULARY - RARE_FROM))]!);
    }
    draft.sentences.push(sentence);
    return draft;
  }
  // Half of the texts are one sentence; few are long.
  const sentences = 1 + Math.floor(-Math.log2(1 - words() * 0.99));
  for (let count = 0; count < sentences; count++) {
    const sentence: string[] = [];
    for (let left = 8 + Math.floor(words() * 14); left > 0; left--) {
      const chance = words();
      if (chance < 0.34) sentence.push(pick(FUNCTION_WORDS, words));
      else if (chance < 0.67) put(draft.words, sentence, topicWord(draft.topic, words));
      else if (chance < 0.89) put(draft.words, sentence, commonWord(words));
      else put(draft.entities, sentence, pick(ENTITIES, own)(own));
    }
    draft.sentences.push(sentence);
  }
  return draft;
}

export interface Text {
  content: string;
  /** -1: none. */
  topic: number;
}

/** An endless collection of texts, by index. */
export class Collection {
  readonly #kind: TextKind;
  readonly #seed: number;

  constructor(kind: TextKind, seed = 1) {
    this.#kind = kind;
    this.#seed = seed;
  }

  text(index: number): Text {
    const { topic, sentences } = this.#draft(index);
    const content = sentences.map((words) => {
      const sentence = words.join(" ");
      return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
    });
    return { content: content.join(" "), topic };
  }

  /** A question about one of the first `count` texts, or about none. */
  question(index: number, count: number): string {
    const random = this.#random(index, 3);
    const asked: string[] = [];
    if (this.#kind === "varied" && random() < QUESTIONS_WITHOUT_TEXT) {
      const topic = anyTopic(random);
      for (let left = 2 + Math.floor(random() * 3); left > 0; left--) asked.push(topicWord(topic, random));
    } else {
      const { words, entities } = this.#draft(Math.floor(random() * count));
      const all = [...new Set(words)];
      for (let left = Math.min(all.length, 2 + Math.floor(random() * 4)); left > 0; left--) {
        const [word] = all.splice(Math.floor(random() * all.length), 1);
        asked.push(random() < 0.3 ? nearWord(word!, random) : word!);
      }
      if (entities.length > 0 && (asked.length === 0 || random() < 0.5)) asked.push(pick(entities, random));
    }
    return `${pick(OPENINGS, random)} ${asked.join(" ")}?`;
  }

  #draft(index: number): Draft {
    const random = this.#random(index, 1);
    const isCopy = this.#kind === "varied" && index > 0 && random() < NEAR_COPIES;
    const like = isCopy ? Math.floor(random() * index) : index;
    return draftOf(this.#kind, this.#random(like, 2), random);
  }

  #random(index: number, purpose: number): Random {
    return randomOf(Math.imul(index, 4) + purpose + Math.imul(this.#seed, 0x3c6ef372));
  }
}

function nearWord(word: string, random: Random): string {
  const { words, rankOf } = vocabulary();
  const rank = rankOf.get(word);
  return rank === undefined ? word : pick(sameMeaning(words, rank), random);
}
