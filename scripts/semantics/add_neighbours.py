"""Adds to the table of train.py, for each stem, the stems nearest in meaning, so that a search compares no vectors of words.

Usage: add_neighbours.py IN OUT [neighbours]

The result is the file that src/embeddings/local/semantics.ts reads: "CSV2", the header of CSV1 with u32 neighbours after the
dimensions, the body of CSV1, and then, little endian:
    u16[rows * neighbours] rows, nearest first, 65535 = no more
    u8[rows * neighbours] worth: worth / 255 = 0.7 * (cosine - 0.3) / 0.7, for cosines above 0.3
"""

import struct
import sys

import numpy as np

HEADER_BYTES = 20
NO_NEIGHBOUR = 65535
ROWS_AT_A_TIME = 1000


def read_vectors(table):
    """The rows at length 1."""
    assert table[:4] == b"CSV1", "not a table of train.py"
    rows, dimensions, vocabulary_bytes, irregular_bytes = struct.unpack("<4I", table[4:HEADER_BYTES])
    codes_at = HEADER_BYTES + vocabulary_bytes + irregular_bytes + rows
    codes = np.frombuffer(table, np.uint8, rows * dimensions // 2, codes_at).reshape(rows, dimensions // 2)
    vectors = np.empty((rows, dimensions), np.float32)
    vectors[:, 0::2] = (codes & 15).astype(np.int16) - 8
    vectors[:, 1::2] = (codes >> 4).astype(np.int16) - 8
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest(vectors, neighbours):
    rows = len(vectors)
    ids = np.full((rows, neighbours), NO_NEIGHBOUR, "<u2")
    worths = np.zeros((rows, neighbours), np.uint8)
    for start in range(0, rows, ROWS_AT_A_TIME):
        cosines = vectors[start : start + ROWS_AT_A_TIME] @ vectors.T
        here = np.arange(len(cosines))
        cosines[here, start + here] = -1  # not itself
        best = np.argpartition(-cosines, neighbours, axis=1)[:, :neighbours]
        values = np.take_along_axis(cosines, best, 1)
        order = np.argsort(-values, axis=1, kind="stable")
        best, values = np.take_along_axis(best, order, 1), np.take_along_axis(values, order, 1)
        worth = np.clip(np.round(255 * 0.7 * (values - 0.3) / 0.7), 0, 255).astype(np.uint8)
        kept = worth > 0
        ids[start : start + ROWS_AT_A_TIME][kept] = best[kept]
        worths[start : start + ROWS_AT_A_TIME][kept] = worth[kept]
    return ids, worths


def main(source, out, neighbours):
    with open(source, "rb") as file:
        table = file.read()
    ids, worths = nearest(read_vectors(table), neighbours)
    rows, dimensions, vocabulary_bytes, irregular_bytes = struct.unpack("<4I", table[4:HEADER_BYTES])
    with open(out, "wb") as file:
        file.write(b"CSV2" + struct.pack("<5I", rows, dimensions, neighbours, vocabulary_bytes, irregular_bytes))
        file.write(table[HEADER_BYTES:] + ids.tobytes() + worths.tobytes())
    print(out, rows, "stems,", neighbours, "neighbours each,", float((worths > 0).sum(1).mean()), "filled on average")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 24)
