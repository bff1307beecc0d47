/**
 * From a word to its stem: which words are left out, which are the same, and which endings go.
 *
 * English is done well, by lists and Porter's stemmer. Of other languages a few endings and articles go, so that a word is found in
 * another case.
 *
 * @module
 */
import { stemmer } from "stemmer";

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

/** Forms of everyday verbs and nouns that no rule leads to, each after its base. */
const IRREGULAR_FORMS = new Map(
  `awake awoke awoken, be am are been is was were, bear bore borne, beat beaten, become became, begin began begun, bend bent, bite bit bitten,
    bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch caught,
    choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, do did done, draw drew drawn, dream dreamt,
    drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled,
    fly flew flown, forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
    give gave given, go went gone, grow grew grown, hang hung, have had, hear heard, hide hid hidden, hold held, keep kept, know knew known,
    lay laid, lead led, learn learnt, leave left, lend lent, light lit, lose lost, make made, mean meant, meet met, pay paid, ride rode ridden,
    ring rang rung, rise rose risen, run ran, say said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shook shaken,
    shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, slide slid, smell smelt,
    speak spoke spoken, speed sped, spell spelt, spend spent, spill spilt, spin spun, spoil spoilt, stand stood, steal stole stolen,
    stick stuck, sting stung, strike struck, swear swore sworn, sweep swept, swell swollen, swim swam swum, swing swung, take took taken,
    teach taught, tear tore torn, tell told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn,
    weave wove woven, weep wept, win won, wind wound, withdraw withdrew withdrawn, write wrote written,
    analysis analyses, bad worse worst, basis bases, big bigger biggest, calf calves, cactus cacti, child children, crisis crises,
    criterion criteria, diagnosis diagnoses, easy easier easiest, early earlier earliest, far farther farthest further furthest, foot feet,
    good better best, goose geese, half halves, happy happier happiest, hypothesis hypotheses, knife knives,
    loaf loaves, louse lice, man men, mouse mice, ox oxen, phenomenon phenomena, shelf shelves, thief thieves, tooth teeth,
    wife wives, wolf wolves, woman women`
    .split(/,\s+/)
    .flatMap((line) => {
      const [base = "", ...forms] = line.split(" ");
      return forms.map((form) => [form, base] as const);
    }),
);

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
export function stemOf(token: string): string {
  if (/^[0-9]/.test(token)) return ORDINAL.exec(token)?.[0] ?? token;
  const word = ALIASES.get(token) ?? token;
  if (!ASCII_WORD.test(word)) return foreignStem(word);
  const base = IRREGULAR_FORMS.get(word) ?? word;
  return base.length <= STEMMED_LENGTH_MAX && MAY_HAVE_SUFFIX.test(base) ? stemmer(base) : base;
}
