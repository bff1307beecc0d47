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
#include <random>
#include <vector>

#include "huge-pages.h"

/** The words of a query as `QueryTerms` in `embedder.ts` has them: what the terms of a row cover of them. */
class QueryWords {
public:
  /** @returns whether all that answers does so to one of the words */
  bool read(const Napi::Float64Array& weights, const Napi::Uint32Array& keys, const Napi::Uint32Array& answers) {
    const size_t size = weights.ElementLength();
    const size_t count = keys.ElementLength();
    if (answers.ElementLength() != count) return false;
    weights_ = weights.Data();
    keys_ = keys.Data();
    answers_ = answers.Data();
    double total = 0;
    for (size_t i = 0; i < size; i++) total += weights_[i];
    whole_ = total * WHOLE_WORTH;
    worths_.assign(size, 0);
    std::fill(std::begin(some_), std::end(some_), 0);
    bits_ = 1;
    while ((size_t{1} << bits_) < 2 * count) bits_++;
    first_.assign(size_t{1} << bits_, 0);
    next_.resize(count);
    for (size_t entry = 1; entry < count; entry++) {
      if (answers_[entry] >> 8 >= size) return false;
      const uint32_t term = keys_[entry];
      some_[wordOf(term)] |= bitOf(term);
      uint32_t& first = first_[bucketOf(term)];
      next_[entry] = first;
      first = static_cast<uint32_t>(entry);
    }
    return true;
  }

  /** The share of the query's weight that these terms cover, 0 to 1. */
  double covered(const uint32_t* const terms, const uint32_t count) {
    double have = 0;
    bool isAny = false;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t term = terms[i];
      // Hardly any term answers: to see that takes a look at 2 KB that are always near.
      if ((some_[wordOf(term)] & bitOf(term)) == 0) continue;
      for (uint32_t entry = first_[bucketOf(term)]; entry != 0; entry = next_[entry]) {
        if (keys_[entry] != term) continue;
        uint8_t& best = worths_[answers_[entry] >> 8];
        const uint8_t worth = answers_[entry] & 255;
        if (worth <= best) continue;
        have += weights_[answers_[entry] >> 8] * (worth - best);
        best = worth;
        isAny = true;
      }
    }
    if (!isAny) return 0;
    std::fill(worths_.begin(), worths_.end(), 0);
    return std::min(1.0, have / whole_);
  }

private:
  static constexpr uint32_t WHOLE_WORTH = 255;
  static constexpr uint32_t SOME_WORDS = 256;

  const double* weights_ = nullptr;
  const uint32_t* keys_ = nullptr;
  const uint32_t* answers_ = nullptr;
  double whole_ = 0;
  /** By last bits: whether a term with these answers. */
  uint64_t some_[SOME_WORDS];
  /** A hash table of the entries, with chaining; keyed, as in `embedder.ts`. */
  const uint32_t key_ = std::random_device()() | 1;
  uint32_t bits_ = 1;
  std::vector<uint32_t> first_;
  std::vector<uint32_t> next_;
  /** By word: how well the best of a row's terms answers to it. All zero between two rows. */
  std::vector<uint8_t> worths_;

  static uint32_t wordOf(const uint32_t term) { return (term >> 6) % SOME_WORDS; }
  static uint64_t bitOf(const uint32_t term) { return uint64_t{1} << (term & 63); }
  uint32_t bucketOf(const uint32_t term) const { return term * key_ >> (32 - bits_); }
};

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
  QueryWords words_;

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
    const auto work = [=](const size_t i, const Row& row) { cosines[i] = cosine(row, numbers); };
    if (!forEach<false>(PlacesOfSlots{pieces_, slots.Data()}, slots.ElementLength(), work)) refuse(info);
  }

  /**
   * (query: Int16Array, places: Uint32Array, cosines: Float64Array, bounds: Float64Array, weights: Float64Array, keys: Uint32Array,
   * answers: Uint32Array, last, share, unrelated, same, count): number
   *
   * Writes the cosines, too, and what each row scores at most by its cosine and by what its terms cover, as `row-comparer.ts` says. Returns
   * the bound that as many as are counted have, or more.
   */
  Napi::Value bound(const Napi::CallbackInfo& info) {
    Napi::Int16Array query = info[0].As<Napi::Int16Array>();
    Napi::Uint32Array places = info[1].As<Napi::Uint32Array>();
    Napi::Float64Array found = info[2].As<Napi::Float64Array>();
    Napi::Float64Array bounded = info[3].As<Napi::Float64Array>();
    const bool areWords = words_.read(info[4].As<Napi::Float64Array>(), info[5].As<Napi::Uint32Array>(), info[6].As<Napi::Uint32Array>());
    const uint32_t last = info[7].As<Napi::Number>().Uint32Value();
    const double share = info[8].As<Napi::Number>().DoubleValue();
    const double unrelated = info[9].As<Napi::Number>().DoubleValue();
    const double same = info[10].As<Napi::Number>().DoubleValue();
    const size_t count = info[11].As<Napi::Number>().Uint32Value();
    const size_t length = found.ElementLength();
    const bool areAlike = places.ElementLength() == length * PLACE_WORDS && bounded.ElementLength() == length && count > 0 && count <= length;
    const bool isShare = share >= 0 && share <= 1;
    if (query.ElementLength() != dimension_ || !areAlike || !isShare || !areWords) {
      refuse(info);
      return info.Env().Undefined();
    }
    const int16_t* const numbers = query.Data();
    double* const cosines = found.Data();
    double* const bounds = bounded.Data();
    const bool areRows = forEach<true>(Places{places.Data()}, length, [=](const size_t i, const Row& row) {
      cosines[i] = cosine(row, numbers);
      if (row.termCount > 0 && row.terms[row.termCount - 1] == last) {
        bounds[i] = INFINITY;
        return;
      }
      const double near = std::max(0.0, std::min(1.0, (cosines[i] - unrelated) / (same - unrelated)));
      bounds[i] = share * words_.covered(row.terms, row.termCount) + (1 - share) * near + ROUNDING;
    });
    if (!areRows) {
      refuse(info);
      return info.Env().Undefined();
    }
    ordered_.assign(bounds, bounds + length);
    std::nth_element(ordered_.begin(), ordered_.begin() + (count - 1), ordered_.end(), std::greater<double>());
    return Napi::Number::New(info.Env(), ordered_[count - 1]);
  }

  /** Places side by side. */
  struct Places {
    const uint32_t* places;

    const uint32_t* at(const size_t i) const { return places + i * PLACE_WORDS; }
  };

  struct PlacesOfSlots {
    const std::vector<const uint32_t*>& pieces;
    const uint32_t* slots;

    /** @returns nullptr where there is none */
    const uint32_t* at(const size_t i) const {
      const size_t piece = slots[i] >> PIECE_BITS;
      return piece < pieces.size() ? pieces[piece] + (slots[i] & SLOT_MASK) * PLACE_WORDS : nullptr;
    }
  };

  /** Does what is to be done with the row at each place. @returns whether there is one at each */
  template <bool withTerms, typename Source, typename Work> bool forEach(const Source& places, const size_t count, const Work& work) const {
    Row rows[AHEAD];
    // Three at once: the place of one is asked for, the row of one before it, and one before that is compared.
    for (size_t i = 0; i < count + PLACE_AHEAD + AHEAD; i++) {
      if (i < count) {
        const uint32_t* const place = places.at(i);
        if (place == nullptr) return false;
        __builtin_prefetch(place);
      }
      if (i >= PLACE_AHEAD + AHEAD) work(i - PLACE_AHEAD - AHEAD, rows[i % AHEAD]);
      if (i >= PLACE_AHEAD && i < count + PLACE_AHEAD) {
        Row& row = rows[i % AHEAD];
        if (!read(places.at(i - PLACE_AHEAD), row)) return false;
        const char* const from = reinterpret_cast<const char*>(row.numbers);
        const char* const to = reinterpret_cast<const char*>(row.terms + (withTerms ? row.termCount : 0));
        for (const char* line = from; line < to; line += LINE_BYTES) __builtin_prefetch(line);
      }
    }
    return true;
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
