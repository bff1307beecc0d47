/**
 * Compares a query with the rows of vectors: the inner loops of `src/vectors/vector-rows.ts`, which says how rows and places lie in memory
 * and writes them. Rows that lie apart are most of what a search of everything compares, so those that come next are asked for ahead.
 *
 * Pieces and chunks are the caller's, who keeps them where they are for as long as this is used.
 */
#pragma once

#include <napi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "huge-pages.h"

class RowComparer : public Napi::ObjectWrap<RowComparer> {
public:
  /** (dimension: numbers of a query, head: the place of a sparse row's first number, unit: what 1 is in a sum of products times a scale) */
  RowComparer(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<RowComparer>(info),
      dimension_(info[0].As<Napi::Number>().Uint32Value()),
      head_(info[1].As<Napi::Number>().Uint32Value()),
      unit_(info[2].As<Napi::Number>().DoubleValue()) {}

  static void Init(Napi::Env env, Napi::Object exports) {
    exports.Set("RowComparer", DefineClass(env, "RowComparer", {
      InstanceMethod("addPiece", &RowComparer::addPiece),
      InstanceMethod("addChunk", &RowComparer::addChunk),
      InstanceMethod("compare", &RowComparer::compare),
      InstanceMethod("bound", &RowComparer::bound),
    }));
  }

private:
  static constexpr uint32_t PIECE_BITS = 14;
  static constexpr uint32_t SLOT_MASK = (1u << PIECE_BITS) - 1;
  static constexpr uint32_t PLACE_WORDS = 4;
  static constexpr uint32_t PAIR_BITS = 12;
  static constexpr uint32_t PAIR_MASK = (1u << PAIR_BITS) - 1;
  static constexpr uint32_t LINE_BYTES = 64;
  /** How many rows ahead one is asked for, and how many more its place: the processor waits for some twenty lines, and a row has six. */
  static constexpr size_t AHEAD = 8;
  static constexpr size_t PLACE_AHEAD = 16;
  /** More than what a score may differ by that is made of the same numbers in another way. */
  static constexpr double ROUNDING = 1e-9;

  struct Chunk {
    const uint8_t* bytes;
    size_t length;
  };

  struct Row {
    const int8_t* numbers;
    const uint32_t* pairs;
    const uint32_t* terms;
    uint32_t numberCount;
    uint32_t pairCount;
    uint32_t termCount;
    /** The place of the first number. */
    uint32_t place;
    uint32_t scale;
  };

  const uint32_t dimension_;
  const uint32_t head_;
  const double unit_;
  std::vector<const uint32_t*> pieces_;
  std::vector<Chunk> chunks_;
  /** Scratch. */
  std::vector<double> ordered_;

  /** (piece: Uint32Array): the next one */
  void addPiece(const Napi::CallbackInfo& info) { pieces_.push_back(info[0].As<Napi::Uint32Array>().Data()); }

  /** (chunk: Uint8Array): the next one */
  void addChunk(const Napi::CallbackInfo& info) {
    Napi::Uint8Array chunk = info[0].As<Napi::Uint8Array>();
    // Not for the first one, which in most stores stays nearly empty.
    if (!chunks_.empty()) wantHugePages(chunk.Data(), chunk.ByteLength());
    chunks_.push_back(Chunk{chunk.Data(), chunk.ByteLength()});
  }

  /** (query: Int16Array, slots: Uint32Array, cosines: Float64Array): writes the cosines of the query with the rows of the slots. */
  void compare(const Napi::CallbackInfo& info) {
    Napi::Int16Array query = info[0].As<Napi::Int16Array>();
    Napi::Uint32Array slots = info[1].As<Napi::Uint32Array>();
    Napi::Float64Array found = info[2].As<Napi::Float64Array>();
    if (query.ElementLength() != dimension_ || found.ElementLength() != slots.ElementLength()) return refuse(info);
    const int16_t* const numbers = query.Data();
    double* const cosines = found.Data();
    if (!forEach<false>(slots, [=](const size_t i, const Row& row) { cosines[i] = cosine(row, numbers); })) refuse(info);
  }

  /**
   * (query: Int16Array, slots: Uint32Array, cosines: Float64Array, bounds: Float64Array, marks: Uint16Array, whole, last, share, unrelated,
   * same, count): number
   *
   * Writes the cosines, too, and what each row scores at most by its cosine and by what its terms are marked with, as `row-comparer.ts` says.
   * There are as many marks as a power of two. Returns the bound that as many as are counted have, or more.
   */
  Napi::Value bound(const Napi::CallbackInfo& info) {
    Napi::Int16Array query = info[0].As<Napi::Int16Array>();
    Napi::Uint32Array slots = info[1].As<Napi::Uint32Array>();
    Napi::Float64Array found = info[2].As<Napi::Float64Array>();
    Napi::Float64Array bounded = info[3].As<Napi::Float64Array>();
    Napi::Uint16Array marked = info[4].As<Napi::Uint16Array>();
    const double whole = info[5].As<Napi::Number>().DoubleValue();
    const uint32_t last = info[6].As<Napi::Number>().Uint32Value();
    const double share = info[7].As<Napi::Number>().DoubleValue();
    const double unrelated = info[8].As<Napi::Number>().DoubleValue();
    const double same = info[9].As<Napi::Number>().DoubleValue();
    const size_t count = info[10].As<Napi::Number>().Uint32Value();
    const size_t length = slots.ElementLength();
    const uint32_t mask = static_cast<uint32_t>(marked.ElementLength()) - 1;
    const bool areAlike = found.ElementLength() == length && bounded.ElementLength() == length && count > 0 && count <= length;
    const bool isShare = share >= 0 && share <= 1;
    if (query.ElementLength() != dimension_ || !areAlike || !isShare || marked.ElementLength() == 0 || (marked.ElementLength() & mask) != 0) {
      refuse(info);
      return info.Env().Undefined();
    }
    const int16_t* const numbers = query.Data();
    const uint16_t* const marks = marked.Data();
    double* const cosines = found.Data();
    double* const bounds = bounded.Data();
    const bool areRows = forEach<true>(slots, [=](const size_t i, const Row& row) {
      cosines[i] = cosine(row, numbers);
      if (row.termCount > 0 && row.terms[row.termCount - 1] == last) {
        bounds[i] = INFINITY;
        return;
      }
      uint64_t sum = 0;
      for (uint32_t term = 0; term < row.termCount; term++) sum += marks[row.terms[term] & mask];
      const double near = std::max(0.0, std::min(1.0, (cosines[i] - unrelated) / (same - unrelated)));
      bounds[i] = share * std::min(1.0, static_cast<double>(sum) / whole) + (1 - share) * near + ROUNDING;
    });
    if (!areRows) {
      refuse(info);
      return info.Env().Undefined();
    }
    ordered_.assign(bounds, bounds + length);
    std::nth_element(ordered_.begin(), ordered_.begin() + (count - 1), ordered_.end(), std::greater<double>());
    return Napi::Number::New(info.Env(), ordered_[count - 1]);
  }

  /** Does what is to be done with the row of each slot. @returns whether there is one of each */
  template <bool withTerms, typename Work> bool forEach(const Napi::Uint32Array& sought, const Work& work) const {
    const size_t count = sought.ElementLength();
    const uint32_t* const slots = sought.Data();
    Row rows[AHEAD];
    // Three at once: the place of one is asked for, the row of one before it, and one before that is compared.
    for (size_t i = 0; i < count + PLACE_AHEAD + AHEAD; i++) {
      if (i < count) {
        const uint32_t* const place = placeOf(slots[i]);
        if (place == nullptr) return false;
        __builtin_prefetch(place);
      }
      if (i >= PLACE_AHEAD + AHEAD) work(i - PLACE_AHEAD - AHEAD, rows[i % AHEAD]);
      if (i >= PLACE_AHEAD && i < count + PLACE_AHEAD) {
        Row& row = rows[i % AHEAD];
        if (!read(placeOf(slots[i - PLACE_AHEAD]), row)) return false;
        const char* const from = reinterpret_cast<const char*>(row.numbers);
        const char* const to = reinterpret_cast<const char*>(row.terms + (withTerms ? row.termCount : 0));
        for (const char* line = from; line < to; line += LINE_BYTES) __builtin_prefetch(line);
      }
    }
    return true;
  }

  /** @returns nullptr where there is none */
  const uint32_t* placeOf(const uint32_t slot) const {
    const size_t piece = slot >> PIECE_BITS;
    return piece < pieces_.size() ? pieces_[piece] + (slot & SLOT_MASK) * PLACE_WORDS : nullptr;
  }

  /** @returns whether it is where rows are, or of a vector that is gone, whose row is empty */
  bool read(const uint32_t* const place, Row& row) const {
    if (place[3] == 0) {
      row = Row{};
      return true;
    }
    const size_t chunk = place[1] >> 16;
    if (chunk >= chunks_.size()) return false;
    row.numberCount = place[1] & 0xffff;
    row.pairCount = place[2] & PAIR_MASK;
    row.termCount = place[2] >> PAIR_BITS;
    row.scale = place[3] & 0xffff;
    row.place = (place[3] >> 16) * head_;
    const size_t begin = place[0];
    const size_t pairs = begin + row.numberCount;
    const size_t terms = pairs + row.pairCount * sizeof(uint32_t);
    if (terms + row.termCount * sizeof(uint32_t) > chunks_[chunk].length) return false;
    const uint8_t* const bytes = chunks_[chunk].bytes;
    row.numbers = reinterpret_cast<const int8_t*>(bytes + begin);
    row.pairs = reinterpret_cast<const uint32_t*>(bytes + pairs);
    row.terms = reinterpret_cast<const uint32_t*>(bytes + terms);
    return true;
  }

  double cosine(const Row& row, const int16_t* const query) const { return static_cast<double>(product(row, query)) * row.scale / unit_; }

  /** The sum of products, exact in whatever order it is made. What is damaged may name places that a query has not: they count nothing. */
  int32_t product(const Row& row, const int16_t* const query) const {
    const int16_t* const partners = query + row.place;
    const int8_t* const numbers = row.numbers;
    const uint32_t count = std::min(row.numberCount, dimension_ - row.place);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += static_cast<uint32_t>(numbers[i] * partners[i]);
    for (uint32_t i = 0; i < row.pairCount; i++) {
      const uint32_t place = row.pairs[i] & 0xffff;
      if (place < dimension_) sum += static_cast<uint32_t>(query[place] * (static_cast<int32_t>(row.pairs[i]) >> 16));
    }
    return static_cast<int32_t>(sum);
  }

  static void refuse(const Napi::CallbackInfo& info) {
    Napi::RangeError::New(info.Env(), "there is no such row").ThrowAsJavaScriptException();
  }
};
