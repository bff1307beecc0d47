/**
 * From a word to what it is counted as: which words are left out or count little, which mean the same, and stems.
 *
 * English is done well, by lists and Porter's stemmer; the table of meanings was made with the same rules. Of other
 * languages a few endings and articles go, so that a word is found in another case; their meaning is not known here.
 *
 * @module
 */
import { stemmer } from "stemmer";
import type { Semantics } from "./semantics.ts";

/** Longer words are ids, hashes or addresses: they have no stem, and the stemmer's patterns would take long. */
const STEMMED_LENGTH_MAX = 30;

const ASCII_WORD = /^[a-z]+$/;
/** Porter's rules only change words that end in one of these letters; the others are spared the stemmer. */
const MAY_HAVE_SUFFIX = /[cdeglmnrstyi]$|ou$/;

export const STOP_WORDS = new Set(
  `a about after again all also am an and any are arent as at be been before being between both but by can cant could
  couldnt d did didnt do does doesnt doing done dont down during each else few for from further had has have having he
  her here hers him his how i if im in into is isnt it its just ll m may me might mine more most must my no nor not of
  off on once only or other our ours out over own re s same shall she should shouldnt so some such t than that the their
  theirs them then there these they this those to too up us ve very was wasnt we were werent what when where which who
  whom whose why will with within without wont would wouldnt you your yours`.split(/\s+/),
);

/**
 * Words that fill talk and that a dictionary seldom uses: the table's frequencies, counted in WordNet, make too much of
 * them. They count, but little.
 */
export const SMALL_WORDS =
  `already also although always anybody anyone anything back because cannot come even ever every everybody everyone everything
  get go gonna got hello hey hi know let like look lot make many maybe much need never nobody nothing often oh ok okay perhaps
  please quite really say see since somebody someone something sometimes still tell thing think though unless until upon
  usually wanna want well whether wow yeah yes yet`.split(/\s+/);
export const SMALL_WORD_WEIGHT = 0.4;

export const MONTHS = "january february march april may june july august september october november december".split(" ");

/** Short forms and number words, with what they stand for. */
const ALIASES = new Map([
  ...MONTHS.filter((month) => month.length > 5 || month === "april").map((month) => [month.slice(0, 3), month] as const),
  ...`jun june, jul july, sept september, mon monday, tue tuesday, tues tuesday, wed wednesday, thu thursday, thurs thursday,
    fri friday, admin administrator, auth authentication, config configuration, db database, docs documentation,
    env environment, info information, pic picture, pics pictures, prod production, pwd password, repo repository`
    .split(/,\s+/)
    .map((pair) => pair.split(" ") as [string, string]),
  ...`zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty`
    .split(/\s+/)
    .map((word, number) => [word, String(number)] as const),
]);

/** Endings of Russian nouns, adjectives and verbs, long ones first, й written и: enough for one word's cases to meet. */
const RUSSIAN_ENDING =
  /(?<=[а-я]{3})(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|иях|ях|ах|иеи|ием|иям|ов|ев|еи|ои|ыи|ии|ая|яя|ое|ее|ые|ие|ую|юю|ым|им|ых|их|ом|ем|ам|ям|ия|ию|а|я|о|е|и|ы|у|ю|ь)$/;
/** The forms of "the", "and the" and "for the" before an Arabic noun. */
const ARABIC_ARTICLE = /^(?:و?ال|لل)(?=[\u0620-\u064a]{3})/;
const GREEK_LETTER = /^[\u0370-\u03ff]/;
const CYRILLIC_LETTER = /^[\u0400-\u04ff]/;
const ARABIC_LETTER = /^[\u0620-\u064a]/;

function foreignStem(word: string): string {
  if (GREEK_LETTER.test(word)) return word.replaceAll("ς", "σ");
  if (CYRILLIC_LETTER.test(word)) return word.replace(RUSSIAN_ENDING, "");
  if (ARABIC_LETTER.test(word)) return word.replace(ARABIC_ARTICLE, "");
  return word;
}

const ORDINAL = /^\d{1,2}(?=(?:st|nd|rd|th)$)/;

/** The stem of a lower-case token: `went` → `go`, `7th` → `7`, `tuesdays` → `tuesdai`, `кошками` → `кошк`. */
export function stemOf(table: Semantics, token: string): string {
  if (/^[0-9]/.test(token)) return ORDINAL.exec(token)?.[0] ?? token;
  const word = ALIASES.get(token) ?? token;
  if (!ASCII_WORD.test(word)) return foreignStem(word);
  const base = table.irregular(word) ?? word;
  return base.length <= STEMMED_LENGTH_MAX && MAY_HAVE_SUFFIX.test(base) ? stemmer(base) : base;
}
