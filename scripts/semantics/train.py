"""Computes a meaning vector for every English stem: latent semantic analysis of WordNet 3.0 and topics.txt.

One document per meaning (synset): its words, its definition, its examples and the words of its relatives, each with a
weight; and one document per line of topics.txt. A stem's vector is its row in the truncated singular value decomposition of
the tf-idf matrix, so stems are near when they keep the same company.

Usage: train.py OUT [name=value ...]      see WEIGHTS for the names; then add_neighbours.py

Writes, little endian:
    "CSV1" | u32 rows | u32 dimensions | u32 vocabulary bytes | u32 irregular bytes
    vocabulary: stems, sorted, \\n between | irregular forms: "went go", \\n between
    u8[rows] rarity q: frequency = 2^(-q/10)
    u8[rows * dimensions / 2] two 4-bit numbers a byte, low first, each 8 too high (-7 ... 7); used at length 1
"""

import collections
import math
import os
import re
import struct
import sys

import numpy as np
import scipy.sparse as sparse

from wn_common import IRREGULAR, read_senses, read_synsets, stem, stem_of, stems

WEIGHTS = dict(
    lemma=2.0,  # a synset's own words
    gloss=1.0,  # the words of its definition
    example=0.5,
    hypernym=1.0,  # the words of "a kind of what"
    hyponym=0.5,
    related=0.7,  # any other relative but the next
    remote=0.1,  # instances; marks of usage and region
    topic=3.0,  # a line of topics.txt
    power=0.75,  # of the singular values: how much the main directions count above the fine ones
    dimensions=256,
    documents_min=2,  # of a stem in the matrix
    count_min=3,  # of a stem in the table
)
RELATIVES_MAX = 30
REMOTE_SIGNS = {"~i", "-u", "-r", ";u"}

# Words that fill agents' memories, and seldom a dictionary.
FREQUENCIES = {"user": 0.03, "assist": 0.003, "agent": 0.004, "custom": 0.002}


def weight_of(sign, weights):
    if sign in ("@", "@i"):
        return weights["hypernym"]
    if sign == "~":
        return weights["hyponym"]
    return weights["remote"] if sign in REMOTE_SIGNS else weights["related"]


def shares_of_senses(senses):
    """(synset, word) -> the share of the word's uses that mean this synset; untagged senses by their place."""
    shares = {}
    for lemma, list_of_senses in senses.items():
        total = sum(sense.tagged + 1 / sense.place for sense in list_of_senses)
        for sense in list_of_senses:
            shares[(sense.synset, lemma)] = (sense.tagged + 1 / sense.place) / total
    return shares


def make_documents(synsets, senses, weights):
    """A bag of weighted stems per synset, and how many definitions or examples each stem was seen in."""
    words_of = {name: collections.Counter(s for lemma in synset.lemmas for s in stems(lemma.replace("_", " "))) for name, synset in synsets.items()}
    shares = shares_of_senses(senses)
    documents, seen = [], collections.Counter()
    for name, synset in synsets.items():
        document = collections.Counter()
        defined = stems(synset.definition)
        shown = [s for example in synset.examples for s in stems(example)]
        seen.update(set(defined) | set(shown))
        for lemma in synset.lemmas:
            for s in stems(lemma.replace("_", " ")):
                document[s] += weights["lemma"] * (0.3 + 0.7 * shares.get((name, lemma.lower()), 0.5))
        for s in defined:
            document[s] += weights["gloss"]
        for s in shown:
            document[s] += weights["example"]
        relatives = collections.defaultdict(list)
        for sign, other in synset.pointers:
            relatives[sign].append(other)
        for sign, others in relatives.items():
            weight = weight_of(sign, weights)
            for other in others[:RELATIVES_MAX]:
                for s, count in words_of[other].items():
                    document[s] += weight * count / max(1, len(others) ** 0.5)
        documents.append(document)
    return documents, seen


def make_topics(weights):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "topics.txt")) as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    return [collections.Counter({s: weights["topic"] for s in stems(line)}) for line in lines]


def tf_idf(documents, vocabulary, document_frequency, topic_count, weights):
    """Stems by documents, log(1 + weight) × idf, documents at length 1, topics above that."""
    row_of = {s: i for i, s in enumerate(vocabulary)}
    rows, columns, values = [], [], []
    for column, document in enumerate(documents):
        for s, weight in document.items():
            if s in row_of:
                rows.append(row_of[s])
                columns.append(column)
                values.append(math.log1p(weight) * math.log(len(documents) / document_frequency[s]))
    matrix = sparse.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(len(vocabulary), len(documents)))
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(0)).ravel())
    scale = 1 / np.maximum(lengths, 1e-9)
    scale[-topic_count:] *= weights["topic"]
    return (matrix @ sparse.diags(scale.astype(np.float32))).tocsr()


def left_singular(matrix, dimensions):
    """The first left singular vectors and values, by a randomised range finder with four power steps."""
    random = np.random.default_rng(0)
    sample = matrix @ random.standard_normal((matrix.shape[1], dimensions + 32), dtype=np.float32)
    for _ in range(4):
        sample, _ = np.linalg.qr(sample)
        sample = matrix @ (matrix.T @ sample)
    basis, _ = np.linalg.qr(sample)
    small = (matrix.T @ basis).T
    vectors, squares, _ = np.linalg.svd(small @ small.T)
    return (basis @ vectors)[:, :dimensions], np.sqrt(squares)[:dimensions]


def count_uses(senses, seen, vocabulary):
    """How often each stem is used: documents seen in, and twice the times that WordNet's texts were tagged with it."""
    tagged = collections.Counter()
    for lemma, list_of_senses in senses.items():
        if re.fullmatch("[a-z]+", lemma):
            tagged[stem_of(lemma)] += sum(sense.tagged for sense in list_of_senses)
    return {s: seen.get(s, 0) + 2 * tagged.get(s, 0) for s in set(vocabulary) | set(seen)}


def in_four_bits(vectors):
    """Steps of 2.6 standard deviations / 7: the few larger numbers are cut off. Two numbers a byte."""
    steps = np.round(vectors * 7 / (2.6 * vectors.std(1, keepdims=True)))
    codes = np.clip(steps, -7, 7).astype(int) + 8
    return (codes[:, 0::2] | (codes[:, 1::2] << 4)).astype(np.uint8)


def main(out, settings):
    weights = WEIGHTS | {name: float(value) for name, value in (setting.split("=") for setting in settings)}
    dimensions = int(weights["dimensions"])
    synsets, senses = read_synsets(), read_senses()
    documents, seen = make_documents(synsets, senses, weights)
    topics = make_topics(weights)
    in_topics = {s for topic in topics for s in topic}
    documents += topics

    document_frequency = collections.Counter(s for document in documents for s in document)
    often_enough = lambda s: document_frequency[s] >= weights["documents_min"] or s in in_topics
    vocabulary = sorted(s for s in document_frequency if often_enough(s) and s.isascii() and len(s) > 1)
    matrix = tf_idf(documents, vocabulary, document_frequency, len(topics), weights)
    print("matrix", matrix.shape, "filled", matrix.nnz, flush=True)
    vectors, values = left_singular(matrix, dimensions)

    uses = count_uses(senses, seen, vocabulary)
    total = sum(count + 1 for count in uses.values())
    kept = [i for i, s in enumerate(vocabulary) if uses[s] >= weights["count_min"] or s in in_topics]
    meaning = vectors[kept] * values ** weights["power"]
    meaning /= np.maximum(np.linalg.norm(meaning, axis=1, keepdims=True), 1e-9)

    rows = [vocabulary[i] for i in kept]
    frequencies = np.array([FREQUENCIES.get(s, (uses[s] + 1) / total) for s in rows])
    rarities = np.clip(np.round(-10 * np.log2(frequencies)), 0, 255).astype(np.uint8)
    known = set(rows)
    irregular = [f"{form} {base}" for form, base in sorted(IRREGULAR.items()) if stem(base) in known and stem(form) != stem(base) and len(form) < 14]
    words, forms = "\n".join(rows).encode(), "\n".join(irregular).encode()
    with open(out, "wb") as file:
        file.write(b"CSV1" + struct.pack("<4I", len(rows), dimensions, len(words), len(forms)))
        file.write(words + forms + rarities.tobytes() + in_four_bits(meaning).tobytes())
    print(out, len(rows), "stems of", dimensions, "dimensions,", os.path.getsize(out), "bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
