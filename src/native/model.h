/** Sizes of the network (multilingual-e5-small), for which alone this code is written: as constants they let loops unroll. */
#pragma once

#include <cstddef>
#include <cstdint>

constexpr size_t WIDTH = 384;
constexpr size_t LAYERS = 12;
constexpr size_t HEADS = 12;
constexpr size_t HEAD_WIDTH = WIDTH / HEADS;
constexpr size_t INNER_WIDTH = 1536;
/** Query, key and value of a token, one after the other. */
constexpr size_t ATTENTION_WIDTH = 3 * WIDTH;
/** Positions that the network knows; first and last are the marks of begin and end. */
constexpr size_t TOKENS_MAX = 512;

/** Values that share a scale, of weights and of activations. */
constexpr size_t BLOCK = 32;
/** Outputs that a kernel computes side by side, and lanes in which every sum is made: the same on all processors. */
constexpr size_t LANES = 16;
/** Bytes of the 4-bit weights of one block for `LANES` outputs. */
constexpr size_t BLOCK_BYTES = BLOCK * LANES / 2;
/** A 4-bit weight w is stored as w + 8, which is never negative. */
constexpr int32_t WEIGHT_OFFSET = 8;

/**
 * A matrix of 4-bit weights.
 *
 * ```
 * weights   [outputs / 16][inputs / 32][4] of 64 bytes: byte 4 o + i has, for output o, the weight of input i of a group of four in
 *           its low half and that of the next group in its high half
 * scales    [outputs / 16][inputs / 32][16]
 * ```
 */
struct Matrix {
  const uint8_t* weights;
  const float* scales;
  const float* bias;
  size_t inputs;
  size_t outputs;
};

/** A layer normalisation has `WIDTH` factors, then `WIDTH` summands. */
struct Layer {
  Matrix attention;
  Matrix joined;
  const float* attentionNorm;
  Matrix inner;
  Matrix outer;
  const float* outputNorm;
};
