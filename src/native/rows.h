/**
 * Compares a query with the rows of vectors: the inner loop of `src/search/vector-rows.ts`, which says how rows and places lie in memory
 * and writes them. Rows that lie apart are most of what a search of everything compares, so those that come next are asked for ahead.
 *
 * Pieces and chunks are the caller's, who keeps them where they are for as long as this is used.
 */
#pragma once

#include <napi.h>

#include <vector>

#include "kernels.h"

class RowComparer : public Napi::ObjectWrap<RowComparer> {
public:
  static Napi::Function define(Napi::Env env);

  /**
   * (unit: what 1 is in a sum of products times a scale, emptyScale: the scale of a row without a vector, noCosine: what is written as
   * its cosine)
   */
  explicit RowComparer(const Napi::CallbackInfo& info);

private:
  struct Chunk {
    const uint8_t* bytes;
    size_t length;
  };

  const Kernels& kernels_;
  const double unit_;
  const uint32_t emptyScale_;
  const double noCosine_;
  std::vector<const uint32_t*> pieces_;
  std::vector<Chunk> chunks_;

  /** (piece: Uint32Array): the next one */
  void addPiece(const Napi::CallbackInfo& info);
  /** (chunk: Uint8Array): the next one */
  void addChunk(const Napi::CallbackInfo& info);
  /** (query: Int16Array, slots: Uint32Array, cosines: Float64Array): writes the cosines of the query with the rows of the slots. */
  void compare(const Napi::CallbackInfo& info);
  /** (ids: Uint32Array, slots: Uint32Array, found: Uint8Array): writes 1 where the row of a slot has one of the terms, its fingerprint apart, and else 0. */
  void match(const Napi::CallbackInfo& info);

  const uint32_t* placeOf(uint32_t slot) const;
  void askFor(const uint32_t* place) const;
  bool areRows(const Napi::Uint32Array& slots) const;
  bool cosineOf(const uint32_t* place, const int16_t* query, size_t numbers, double& cosine) const;
};
