/**
 * The loops in which the network spends its time, once for each kind of processor.
 *
 * All of them give the same bits: inside a block sums are exact integers, beyond it every path adds the same floats in the same order, in
 * `LANES` lanes and then by halves, without fused multiply-add (the sources are compiled with `-ffp-contract=off`), and computes `exp`
 * and `erf` by the same polynomials. So a text has the same vector on every machine.
 */
#pragma once

#include <vector>

#include "model.h"

/** Activations as numbers of 8 bits, in blocks: x = value x scale. */
struct Quantised {
  int8_t* values;
  float* scales;
  /** Of each block the sum of its values, times minus the offset of the weights. */
  int32_t* corrections;
};

struct Kernels {
  const char* name;
  bool (*isSupported)();
  void (*quantise)(const float* values, size_t count, const Quantised& quantised);
  /** result [tokens][outputs] = activations [tokens][inputs] x matrix + bias */
  void (*multiply)(const Matrix& matrix, const Quantised& activations, size_t tokens, float* result);
  /** One text: each token attends to all. @param scratch - `attentionScratch(tokens)` floats */
  void (*attend)(const float* queriesKeysValues, size_t tokens, float* result, float* scratch);
  /** rows = normalised(rows + added). @param added - may be null */
  void (*normalise)(float* rows, const float* added, const float* norm, size_t tokens);
  void (*gelu)(float* values, size_t count);
  /** The sum of rows, each times its weight, as a vector of length 1. */
  void (*pool)(const float* rows, const float* weights, size_t tokens, float* vector);
  /** The sum of products of a stored vector with a query, exact in whatever order it is made. */
  int32_t (*product)(const int8_t* numbers, const int16_t* query, size_t count);
};

/** Queries that are answered together: each load of a key serves all of them. */
constexpr size_t QUERIES = 4;

constexpr size_t roundedToLanes(const size_t count) { return (count + LANES - 1) / LANES * LANES; }

constexpr size_t attentionScratch(const size_t tokens) { return roundedToLanes(tokens) * (HEAD_WIDTH + QUERIES); }

/** Kernels that this program has and this processor supports, the best first; the last one runs everywhere. */
std::vector<const Kernels*> supportedKernels();
