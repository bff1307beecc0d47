#!/usr/bin/env python3
"""Computes vectors to test the encoder against, from the source file and not from ours, with numpy: README.md has the recipe.

    reference.py e5-small-q4.bin texts.json reference.json

Shares no code with the encoder: text is cut as a whole, composed by Python's Unicode tables, and the network is computed in 64 bits.
Activations are rounded to 8 bits in blocks of 32, as those of the encoder: a value between two integers may come out as either, so that
vectors agree to some .9999 and no further.
"""

import base64
import json
import math
import sys
import unicodedata

import numpy as np

from source import BLOCK, Source

PIECE_CHARACTERS_MAX = 16
WORD_BEGIN = "\u2581"


class Tokenizer:
    def __init__(self, source):
        self.source = source
        self.tokens = {piece.decode(): i for i, piece in enumerate(source.pieces) if i not in source.marks}
        self.unknown_score = float(source.scores.min()) - 10

    def prepared(self, text):
        replacements = self.source.replacements
        codes = [by for character in text for by in replacements.get(ord(character), (ord(character),))]
        words = unicodedata.normalize("NFC", "".join(map(chr, codes))).split(" ")
        return "".join(WORD_BEGIN + word for word in words if word)

    def tokenize(self, text):
        text = self.prepared(text)
        best = [(0.0, None, 0)] + [(-math.inf, None, 0)] * len(text)
        for begin in range(len(text)):
            score = best[begin][0]
            ends = range(begin + 1, min(len(text), begin + PIECE_CHARACTERS_MAX) + 1)
            known = [(end, self.tokens[text[begin:end]]) for end in ends if text[begin:end] in self.tokens]
            candidates = [(end, score + float(self.source.scores[token]), token) for end, token in known]
            candidates.append((begin + 1, score + self.unknown_score, self.source.unknown))
            for end, reached, token in candidates:
                if reached > best[end][0]:
                    best[end] = (reached, token, begin)
        tokens, at = [], len(text)
        while at > 0:
            _, token, at = best[at]
            if not (token == self.source.unknown and tokens and tokens[-1] == token):
                tokens.append(token)
        return tokens[::-1]


def rounded(values):
    """Values as 8 bits in blocks of 32 with a scale each."""
    blocks = values.reshape(len(values), -1, BLOCK)
    scales = np.maximum(np.abs(blocks).max(axis=2, keepdims=True), 1e-20) / 127
    return (np.round(blocks / scales) * scales).reshape(values.shape)


def normalised(values, weight, bias):
    centred = values - values.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12) * weight + bias


def softmax(values):
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


gelu = np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)


class Network:
    def __init__(self, source):
        self.source = source
        self.rows, self.row_scales = source.blocks("emb.word", source.width)
        self.matrices = {}

    def linear(self, values, name):
        if name not in self.matrices:
            self.matrices[name] = self.source.matrix(f"{name}.w", values.shape[1])
        return rounded(values) @ self.matrices[name].T + self.source.floats(f"{name}.b")

    def norm(self, values, name):
        return normalised(values, self.source.floats(f"{name}.w"), self.source.floats(f"{name}.b"))

    def encode(self, tokens, marks):
        source = self.source
        positions = source.floats("emb.pos").reshape(-1, source.width)[: len(tokens)]
        rows = self.rows[tokens] * np.repeat(self.row_scales[tokens].astype(np.float64), BLOCK, axis=1)
        values = self.norm(rows + positions + source.floats("emb.type")[: source.width], "emb.ln")
        for number in range(source.layers):
            values = self.layer(values, f"l{number}")
        total = self.weights(tokens, marks) @ values
        return total / np.linalg.norm(total)

    def weights(self, tokens, marks):
        """What each token counts: rare ones more, the first `marks` and the last nothing."""
        costs = np.array([-self.source.scores[token] if token != self.source.unknown else np.inf for token in tokens])
        weights = np.clip((costs - 4) / 8, 0, 1)
        own = np.zeros(len(tokens), bool)
        own[marks:-1] = True
        return np.where(own, weights if weights[own].any() else 1, 0)

    def layer(self, values, at):
        heads = lambda name: self.linear(values, f"{at}.{name}").reshape(len(values), self.source.heads, -1).transpose(1, 0, 2)
        query, key, value = heads("q"), heads("k"), heads("v")
        weights = softmax(query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[2]))
        joined = (weights @ value).transpose(1, 0, 2).reshape(values.shape)
        values = self.norm(values + self.linear(joined, f"{at}.ao"), f"{at}.aln")
        inner = gelu(self.linear(values, f"{at}.fi"))
        return self.norm(values + self.linear(inner, f"{at}.fo"), f"{at}.oln")


def encoded(vector):
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


def main():
    path, texts_path, to = sys.argv[1:]
    source = Source(path)
    tokenizer, network = Tokenizer(source), Network(source)
    with open(texts_path, encoding="utf-8") as file:
        texts = json.load(file)
    made = []
    for name, text in texts.items():
        for kind in ("query", "passage"):
            tokens = [source.begin, *tokenizer.tokenize(f"{kind}: {text}")[: source.positions - 2], source.end]
            vector = network.encode(tokens, 1 + len(tokenizer.tokenize(f"{kind}:")))
            made.append({"name": name, "kind": kind, "text": text, "tokens": tokens, "vector": encoded(vector)})
    with open(to, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(line) for line in made) + "\n]\n")


if __name__ == "__main__":
    main()
