"""Reads WordNet 3.0 and cuts its texts into stems, by the rules of src/embeddings/local/terms.ts.

Only the rules that matter for dictionary prose are here: lower case, no accents, stop words out, irregular forms, Porter
stems. Dates, identifiers and scripts without spaces do not occur in WordNet. Where the two disagree about a stem, its
meaning is not found at run time, so change both or neither.
"""

import collections
import os
import re
import unicodedata
from dataclasses import dataclass, field

WORDNET_DIRECTORY = os.environ.get("WORDNET_DIR", "/usr/share/wordnet")

PARTS_OF_SPEECH = (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r"))

STOP_WORDS = set(
    """
    a about after again all am also an and any are as at be been before being between both but by can cant could couldnt d
    did didnt do does doesnt doing done dont down during each else few for from further had has have having he her here hers
    him his how i if im in into is isnt it its just ll m may me might mine more most must my no nor not of off on once only or
    other our ours out over own re s same shall she should shouldnt so some such t than that the their theirs them then there
    these they this those to too up us ve very was wasnt we were werent what when where which who whom whose why will with
    within without wont would wouldnt you your yours arent
    """.split()
)

# The exception lists say found -> find, left -> leave, saw -> see, and that is what a reader means. For these few the
# base form is wrong more often than right.
NOT_IRREGULAR = set(
    """
    as best better bit bore born data does dove further ground has lay least less lice media more most rose stove wound
    """.split()
)


# ------------------------------------------------------------------------------------------------------------ text


def tokens(text):
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not 0x300 <= ord(c) <= 0x36F).lower()
    plain = plain.replace("’", "'").replace("‘", "'")
    plain = re.sub(r"'(s|re|ve|ll|d|m|t)\b", lambda ending: "t" if ending[1] == "t" else " ", plain)
    return re.findall(r"[^\W_]+", plain)


def stems(text):
    """The stems of a text in order, without stop words."""
    return [stem_of(token) for token in tokens(text) if token not in STOP_WORDS]


def stem_of(word):
    return stem(IRREGULAR.get(word, word))


# ---------------------------------------------------------------------------------------------- Porter's stemmer (1980)

_CONSONANTS, _VOWELS = "[^aeiou][^aeiouy]*", "[aeiouy][aeiou]*"
# Porter's measure m is how often vowels are followed by consonants.
MEASURE_OVER_0 = re.compile(f"^({_CONSONANTS})?{_VOWELS}{_CONSONANTS}")
MEASURE_OVER_1 = re.compile(f"^({_CONSONANTS})?{_VOWELS}{_CONSONANTS}{_VOWELS}{_CONSONANTS}")
MEASURE_IS_1 = re.compile(f"^({_CONSONANTS})?{_VOWELS}{_CONSONANTS}({_VOWELS})?$")
HAS_VOWEL = re.compile(f"^({_CONSONANTS})?[aeiouy]")
ENDS_SHORT = re.compile(f"^{_CONSONANTS}[aeiouy][^aeiouwxy]$")

STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
STEP_4 = "al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize".split()


def _ending(endings):
    return re.compile(f"^(.+?)({'|'.join(endings)})$")


_STEP_2, _STEP_3, _STEP_4 = _ending(STEP_2), _ending(STEP_3), _ending(STEP_4)
_stems = {}


def stem(word):
    if word not in _stems:
        _stems[word] = _porter(word)
    return _stems[word]


def _porter(word):
    if len(word) < 3 or not re.fullmatch("[a-z]+", word):
        return word
    # A first y is a consonant.
    begins_with_y = word[0] == "y"
    if begins_with_y:
        word = "Y" + word[1:]

    # Step 1: plurals, -ed, -ing, y.
    if re.search("(ss|i)es$", word):
        word = word[:-2]
    elif re.search("[^s]s$", word):
        word = word[:-1]
    if word.endswith("eed"):
        if MEASURE_OVER_0.search(word[:-3]):
            word = word[:-1]
    else:
        match = re.match("^(.+?)(ed|ing)$", word)
        if match and HAS_VOWEL.search(match[1]):
            word = match[1]
            if re.search("(at|bl|iz)$", word) or ENDS_SHORT.search(word):
                word += "e"
            elif re.search(r"([^aeiouylsz])\1$", word):
                word = word[:-1]
    match = re.match("^(.+?)y$", word)
    if match and HAS_VOWEL.search(match[1]):
        word = match[1] + "i"

    # Steps 2 and 3: double endings become single ones.
    for pattern, replacements in ((_STEP_2, STEP_2), (_STEP_3, STEP_3)):
        match = pattern.match(word)
        if match and MEASURE_OVER_0.search(match[1]):
            word = match[1] + replacements[match[2]]

    # Step 4: single endings go.
    match = _STEP_4.match(word)
    if match:
        if MEASURE_OVER_1.search(match[1]):
            word = match[1]
    else:
        match = re.match("^(.+?[st])ion$", word)
        if match and MEASURE_OVER_1.search(match[1]):
            word = match[1]

    # Step 5: a last e, a double l.
    match = re.match("^(.+?)e$", word)
    if match and (MEASURE_OVER_1.search(match[1]) or (MEASURE_IS_1.search(match[1]) and not ENDS_SHORT.search(match[1]))):
        word = match[1]
    if word.endswith("ll") and MEASURE_OVER_1.search(word):
        word = word[:-1]
    return word.lower() if begins_with_y else word


# --------------------------------------------------------------------------------------------------------- WordNet's files


@dataclass
class Synset:
    """One meaning: the words that have it, what it is related to, its definition and examples."""

    lemmas: list
    definition: str
    examples: list
    # (kind of relation, the other's id), in WordNet's signs: "@" hypernym, "~" hyponym, "+" derived, ";u" usage, …
    pointers: list = field(default_factory=list)


@dataclass
class Sense:
    """One meaning of a word: the synset's id, its place among the word's meanings from 1, and how often it was tagged."""

    synset: str
    place: int
    tagged: int


def lines_of(name):
    """The lines of a file without the licence, which is indented by two spaces."""
    with open(os.path.join(WORDNET_DIRECTORY, name), encoding="latin-1") as file:
        return [line for line in file if not line.startswith("  ")]


def read_irregular():
    """`went` -> `go` for verbs, nouns and adjectives; the first list that has a form decides."""
    irregular = {}
    for part in ("verb", "noun", "adj"):
        for line in lines_of(part + ".exc"):
            words = line.split()
            if len(words) >= 2 and all(re.fullmatch("[a-z]+", word) for word in words[:2]):
                irregular.setdefault(words[0], words[1])
    return {form: base for form, base in irregular.items() if form not in NOT_IRREGULAR}


def read_synsets():
    synsets = {}
    for name, part in PARTS_OF_SPEECH:
        for line in lines_of("data." + name):
            data, gloss = line.split("|", 1)
            fields = data.split()
            lemma_count = int(fields[3], 16)
            lemmas = [re.sub(r"\(.*\)$", "", fields[4 + 2 * i]) for i in range(lemma_count)]
            at = 4 + 2 * lemma_count
            pointers = []
            for i in range(int(fields[at])):
                sign, offset, other_part = fields[at + 1 + 4 * i : at + 4 + 4 * i]
                pointers.append((sign, ("a" if other_part == "s" else other_part) + offset))
            examples = re.findall(r'"([^"]*)"', gloss)
            definition = re.sub(r'"[^"]*"', "", gloss).strip(" ;\n")
            synsets[part + fields[0]] = Synset(lemmas, definition, examples, pointers)
    return synsets


def read_senses():
    """Each word's senses, most usual first within a part of speech."""
    tagged = collections.Counter()
    for line in lines_of("cntlist.rev"):
        key, place, count = line.split()
        lemma, rest = key.split("%")
        # The part of speech is a number; 5 is an adjective too.
        tagged[(lemma, " nvara"[int(rest[0])], int(place))] += int(count)
    senses = collections.defaultdict(list)
    for name, part in PARTS_OF_SPEECH:
        for line in lines_of("index." + name):
            fields = line.split()
            lemma, sign_count = fields[0], int(fields[3])
            for place, offset in enumerate(fields[4 + sign_count + 2 :], 1):
                senses[lemma].append(Sense(part + offset, place, tagged[(lemma, part, place)]))
    return senses


IRREGULAR = read_irregular()
