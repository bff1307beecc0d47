#!/usr/bin/env python3
"""Writes the weights of the built-in embedding, as `src/native/weights.h` reads them. README.md has the recipe.

    convert.py e5-small-q4.bin DIRECTORY

`network.bin` is mapped and used in place. All numbers are little-endian; every section begins at a multiple of 64 bytes.

    head        "cairnenc", u32 format, u32 rows of tokens, u32 pieces, u32 tokens of begin, end and unknown, f32 score of unknown
                characters, u32 0, u64 bytes of the file, u64 checksum of all that follows
    sections    u64 offset, u64 bytes of each, in the order in which they are made below

`tokens-1.bin` and `tokens-2.bin` have the rows of tokens, the most frequent pieces first: 4-bit values in blocks of 32, low halves
first, then a scale of 16 bits for each block.
"""

import hashlib
import os
import struct
import sys
import unicodedata

import numpy as np

from source import BLOCK, Source

FORMAT = 1
HEAD = struct.Struct("<8s6IfIQQ")
LANES = 16


def vocabulary(source):
    """Pieces in the order of their bytes, which is that of their characters, with an index by first character."""
    order = sorted((i for i in range(len(source.pieces)) if i not in source.marks), key=lambda i: source.pieces[i])
    characters = []
    for at, i in enumerate(order):
        first = ord(source.pieces[i].decode()[0])
        if not characters or characters[-1][0] != first:
            characters.append((first, at))
    characters.append((0xFFFFFFFF, len(order)))
    begins = np.cumsum([0] + [len(source.pieces[i]) for i in order])
    text = b"".join(source.pieces[i] for i in order)
    sections = [
        begins.astype("<u4"),
        source.scores[order].astype("<f4"),
        np.array(order, "<u4"),
        np.frombuffer(text, "u1"),
        np.array(characters, "<u4"),
    ]
    return len(order), sections


def replacements(source):
    known = sorted(source.replacements.items())
    return [
        np.array([character for character, _ in known], "<u4"),
        np.cumsum([0] + [len(by) for _, by in known]).astype("<u4"),
        np.array([one for _, by in known for one in by], "<u4"),
    ]


def compositions():
    """Pairs of characters with what they compose to; Hangul is computed."""
    found = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            continue
        first, second = (int(part, 16) for part in parts)
        if unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
            found.append((first, second, code))
    return np.array(sorted(found), "<u4")


def packed(values):
    """[outputs, inputs] to [outputs / 16][inputs / 32][4] of 64 bytes, as `model.h` describes them."""
    outputs, inputs = values.shape
    groups = (values + 8).astype(np.uint8).reshape(outputs // LANES, LANES, inputs // 4, 4).transpose(0, 2, 1, 3)
    pairs = groups.reshape(outputs // LANES, inputs // BLOCK, 4, 2, 4 * LANES)
    return pairs[:, :, :, 0] | (pairs[:, :, :, 1] << 4)


def matrix(source, names, inputs):
    parts = [source.blocks(f"{name}.w", inputs) for name in names]
    values = np.concatenate([values for values, _ in parts])
    scales = np.concatenate([scales for _, scales in parts])
    bias = np.concatenate([source.floats(f"{name}.b") for name in names])
    by_lanes = scales.reshape(-1, LANES, inputs // BLOCK).transpose(0, 2, 1)
    return [packed(values), by_lanes.astype("<f2"), bias.astype("<f4")]


def norm(source, name):
    return np.concatenate([source.floats(f"{name}.w"), source.floats(f"{name}.b")]).astype("<f4")


def layer(source, number):
    at = f"l{number}"
    return [
        *matrix(source, [f"{at}.q", f"{at}.k", f"{at}.v"], source.width),
        *matrix(source, [f"{at}.ao"], source.width),
        norm(source, f"{at}.aln"),
        *matrix(source, [f"{at}.fi"], source.width),
        *matrix(source, [f"{at}.fo"], source.inner_width),
        norm(source, f"{at}.oln"),
    ]


def token_rows(source):
    """Without the mark that only training uses, which is the last piece, and what is behind it."""
    values, scales = source.blocks("emb.word", source.width)
    kept = slice(0, source.mask)
    halves = (values[kept] + 8).astype(np.uint8).reshape(-1, source.width // BLOCK, 2, BLOCK // 2)
    nibbles = (halves[:, :, 0] | (halves[:, :, 1] << 4)).reshape(-1, source.width // 2)
    return np.concatenate([nibbles, scales[kept].astype("<f2").view("u1")], axis=1)


def checksum(data):
    factor, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    words = np.frombuffer(data, "<u8", len(data) // 32 * 4).reshape(-1, 4).T.tolist()
    whole = 0
    for lane, column in enumerate(words, 1):
        for word in column:
            lane = ((lane ^ word) * factor) & mask
            lane ^= lane >> 32
        whole = ((whole ^ lane) * factor) & mask
    return whole


def network(source):
    pieces, sections = vocabulary(source)
    sections += [*replacements(source), compositions()]
    kind = source.floats("emb.type")[: source.width]
    sections.append((source.floats("emb.pos").reshape(source.positions, source.width) + kind).astype("<f4"))
    sections.append(norm(source, "emb.ln"))
    for number in range(source.layers):
        sections += layer(source, number)
    body = bytearray(HEAD.size + 16 * len(sections))
    for i, section in enumerate(sections):
        body += bytes(-len(body) % 64)
        data = np.ascontiguousarray(section).tobytes()
        struct.pack_into("<QQ", body, HEAD.size + 16 * i, len(body), len(data))
        body += data
    # The checksum is over whole groups of 32 bytes.
    body += bytes((HEAD.size - len(body)) % 32)
    unknown_score = float(min(source.scores.min(), 0) - 10)
    tokens = (source.begin, source.end, source.unknown)
    HEAD.pack_into(
        body, 0, b"cairnenc", FORMAT, source.mask, pieces, *tokens, unknown_score, 0, len(body), checksum(body[HEAD.size :])
    )
    return bytes(body)


def main():
    source = Source(sys.argv[1])
    rows = token_rows(source)
    middle = (len(rows) + 1) // 2
    files = {"network.bin": network(source), "tokens-1.bin": rows[:middle].tobytes(), "tokens-2.bin": rows[middle:].tobytes()}
    for name, data in files.items():
        with open(os.path.join(sys.argv[2], name), "wb") as file:
            file.write(data)
        print(name, len(data), hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
