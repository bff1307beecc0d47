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
#include <random>
#include <vector>

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

#include "huge-pages.h"

/** Values of many rows that passed a filter, in the order of rows. Scratch. */
struct Hits {
  std::vector<uint32_t> values;
  /** The row of each. */
  std::vector<uint32_t> rows;
  size_t count = 0;

  /** @param more - how many may be appended, and as many as are written at once */
  void makeRoom(const size_t more) {
    if (count + more <= values.size()) return;
    values.resize(2 * (count + more));
    rows.resize(values.size());
  }
};

#ifdef __AVX512BW__
/** A Bloom filter with one hash, the last bits, in the registers of the processor. */
class Filter {
public:
  void clear() { std::fill(std::begin(words_), std::end(words_), 0); }

  void add(const uint32_t value) { words_[(value >> 5) % WORDS] |= 1u << (value & 31); }

  /** Adds the place of each number that is not zero. */
  void addPlaces(const int16_t* const numbers, const uint32_t count) {
    for (uint32_t i = 0; i < count; i += 32) {
      const __m512i some = _mm512_maskz_loadu_epi16(_bzhi_u32(0xffffffff, std::min(count - i, 32u)), numbers + i);
      words_[i / 32 % WORDS] |= _mm512_test_epi16_mask(some, some);
    }
  }

  /**
   * Appends the values that may be among those that were added. Few are, nobody can predict which, and a wrong guess takes as long as
   * twenty values: so nothing branches.
   */
  inline __attribute__((always_inline)) void append(const uint32_t* const values, const uint32_t count, const uint32_t row, Hits& hits) const {
    hits.makeRoom(count + LANES);
    uint32_t* const found = hits.values.data();
    uint32_t* const rows = hits.rows.data();
    size_t at = hits.count;
    const __m512i first = _mm512_loadu_si512(words_), second = _mm512_loadu_si512(words_ + LANES);
    const __m512i third = _mm512_loadu_si512(words_ + 2 * LANES), fourth = _mm512_loadu_si512(words_ + 3 * LANES);
    const __m512i here = _mm512_set1_epi32(static_cast<int>(row));
    for (uint32_t i = 0; i < count; i += LANES) {
      const __mmask16 present = static_cast<__mmask16>(_bzhi_u32(0xffff, std::min(count - i, LANES)));
      const __m512i some = _mm512_maskz_loadu_epi32(present, values + i);
      const __m512i place = _mm512_srli_epi32(some, 5);
      const __m512i low = _mm512_permutex2var_epi32(first, place, second), high = _mm512_permutex2var_epi32(third, place, fourth);
      const __m512i words = _mm512_mask_blend_epi32(_mm512_test_epi32_mask(place, _mm512_set1_epi32(2 * LANES)), low, high);
      const __mmask16 passed = _mm512_mask_test_epi32_mask(present, _mm512_rorv_epi32(words, some), _mm512_set1_epi32(1));
      _mm512_storeu_si512(found + at, _mm512_maskz_compress_epi32(passed, some));
      _mm512_storeu_si512(rows + at, here);
      at += static_cast<size_t>(__builtin_popcount(passed));
    }
    hits.count = at;
  }

private:
  static constexpr uint32_t LANES = 16;
  static constexpr uint32_t WORDS = 4 * LANES;

  uint32_t words_[WORDS] = {};
};
#endif

/** The words of a query as `QueryTerms` in `embedder.ts` has them: what the terms of a row cover of them. */
class QueryWords {
public:
  /** @returns whether all that answers does so to one of the words */
  bool read(const Napi::Float64Array& weights, const Napi::Uint32Array& keys, const Napi::Uint32Array& answers, const uint32_t last) {
    const size_t size = weights.ElementLength();
    const size_t count = keys.ElementLength();
    if (answers.ElementLength() != count) return false;
    weights_ = weights.Data();
    keys_ = keys.Data();
    answers_ = answers.Data();
    last_ = last;
    double total = 0;
    for (size_t i = 0; i < size; i++) total += weights_[i];
    whole_ = total * WHOLE_WORTH;
    worths_.assign(size, 0);
#ifdef __AVX512BW__
    filter_.clear();
#endif
    std::fill(std::begin(some_), std::end(some_), 0);
    bits_ = 1;
    while ((size_t{1} << bits_) < 2 * count) bits_++;
    first_.assign(size_t{1} << bits_, 0);
    next_.resize(count);
    for (size_t entry = 1; entry < count; entry++) {
      if (answers_[entry] >> 8 >= size) return false;
      const uint32_t term = keys_[entry];
      add(term);
      uint32_t& first = first_[bucketOf(term)];
      next_[entry] = first;
      first = static_cast<uint32_t>(entry);
    }
    add(last_);
    return true;
  }

  /** Appends the terms of a row that may cover something, or be the last of the query. */
  inline __attribute__((always_inline)) void append(const uint32_t* const terms, const uint32_t count, const uint32_t row, Hits& hits) const {
#ifdef __AVX512BW__
    filter_.append(terms, count, row, hits);
#else
    hits.makeRoom(count);
    for (uint32_t i = 0; i < count; i++) {
      if (!mayAnswer(terms[i])) continue;
      hits.values[hits.count] = terms[i];
      hits.rows[hits.count++] = row;
    }
#endif
  }

  /** Calls back with each row of which some terms do, the share of the query's weight that they cover, and whether the last one is there. */
  template <typename Found> void cover(Hits& hits, const Found& found) {
    size_t count = 0;
    for (size_t i = 0; i < hits.count; i++) {
      const uint32_t term = hits.values[i];
      hits.values[count] = term;
      hits.rows[count] = hits.rows[i];
      count += mayAnswer(term);
    }
    for (size_t i = 0; i < count;) {
      const uint32_t row = hits.rows[i];
      double have = 0;
      bool isLast = false;
      for (; i < count && hits.rows[i] == row; i++) {
        isLast = hits.values[i] == last_;
        have += answered(hits.values[i]);
      }
      std::fill(worths_.begin(), worths_.end(), 0);
      found(row, have > 0 ? std::min(1.0, have / whole_) : 0, isLast);
    }
  }

private:
  static constexpr uint32_t WHOLE_WORTH = 255;
  /** So many that each stem of the table of meanings has a bit of its own. */
  static constexpr uint32_t SOME_WORDS = 512;

  const double* weights_ = nullptr;
  const uint32_t* keys_ = nullptr;
  const uint32_t* answers_ = nullptr;
  uint32_t last_ = 0;
  double whole_ = 0;
#ifdef __AVX512BW__
  Filter filter_;
#endif
  /** By last bits: whether there is a term with these. */
  uint64_t some_[SOME_WORDS];
  /** A hash table of the entries, with chaining; keyed, as in `embedder.ts`. */
  const uint32_t key_ = std::random_device()() | 1;
  uint32_t bits_ = 1;
  std::vector<uint32_t> first_;
  std::vector<uint32_t> next_;
  /** By word: how well the best of a row's terms answers to it. All zero between two rows. */
  std::vector<uint8_t> worths_;

  static uint32_t wordOf(const uint32_t term) { return (term >> 6) % SOME_WORDS; }
  uint32_t bucketOf(const uint32_t term) const { return term * key_ >> (32 - bits_); }

  bool mayAnswer(const uint32_t term) const { return some_[wordOf(term)] >> (term & 63) & 1; }

  void add(const uint32_t term) {
#ifdef __AVX512BW__
    filter_.add(term);
#endif
    some_[wordOf(term)] |= uint64_t{1} << (term & 63);
  }

  /** What a term covers beyond those of its row before it. */
  double answered(const uint32_t term) {
    double have = 0;
    for (uint32_t entry = first_[bucketOf(term)]; entry != 0; entry = next_[entry]) {
      if (keys_[entry] != term) continue;
      uint8_t& best = worths_[answers_[entry] >> 8];
      const uint8_t worth = answers_[entry] & 255;
      if (worth <= best) continue;
      have += weights_[answers_[entry] >> 8] * (worth - best);
      best = worth;
    }
    return have;
  }
};

class RowComparer : public Napi::ObjectWrap<RowComparer> {
public:
  /**
   * (dimension: numbers of a query, head: the place of a sparse row's first number, unit: what 1 is in a sum of products times a scale,
   * emptyScale: the scale of a row without a vector, noCosine: what is written as its cosine)
   */
  RowComparer(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<RowComparer>(info),
      dimension_(info[0].As<Napi::Number>().Uint32Value()),
      head_(info[1].As<Napi::Number>().Uint32Value()),
      unit_(info[2].As<Napi::Number>().DoubleValue()),
      emptyScale_(info[3].As<Napi::Number>().Uint32Value()),
      noCosine_(info[4].As<Napi::Number>().DoubleValue()) {}

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
  /** How many rows ahead one is asked for, and how many more its place: the processor waits for some twenty lines, and a row has nine. */
  static constexpr size_t AHEAD = 8;
  static constexpr size_t PLACE_AHEAD = 16;
  /**
   * So many rows that lie apart are asked for together. On a virtual machine to look up where a page is takes as long as the memory itself,
   * and the processor does it for several at once only where next to nothing is in between.
   */
  static constexpr size_t GROUP = 8;
  /** So many are asked for of each row, however long it is: that nobody can predict. What follows the processor itself asks for. */
  static constexpr size_t LINES = 8;
  /** Longer ones are asked for to their end: in a store that has any nearly all are. */
  static constexpr size_t LONG_BYTES = 1024;
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

  struct Bound {
    double bound;
    uint32_t row;
  };

  const uint32_t dimension_;
  const uint32_t head_;
  const double unit_;
  const uint32_t emptyScale_;
  const double noCosine_;
  std::vector<const uint32_t*> pieces_;
  std::vector<Chunk> chunks_;
  /** Scratch. */
  std::vector<Bound> ordered_;
  std::vector<uint32_t> sums_;
  std::vector<uint32_t> scales_;
  Hits pairs_;
  Hits terms_;
#ifdef __AVX512BW__
  Filter places_;
#endif
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
    if (!compareAll<false>(PlacesOfSlots{pieces_, slots.Data()}, slots.ElementLength(), query.Data(), found.Data())) refuse(info);
  }

  /**
   * (query: Int16Array, places: Uint32Array, length, cosines: Float64Array, bounds: Float64Array, best: Uint32Array, weights: Float64Array,
   * keys: Uint32Array, answers: Uint32Array, last, share, unrelated, same): number
   *
   * Writes the cosines, too, what each row scores at most by its cosine and by what its terms cover, as `row-comparer.ts` says, and which
   * rows have the largest bounds. Returns the largest bound of the others.
   */
  Napi::Value bound(const Napi::CallbackInfo& info) {
    Napi::Int16Array query = info[0].As<Napi::Int16Array>();
    Napi::Uint32Array places = info[1].As<Napi::Uint32Array>();
    const size_t length = info[2].As<Napi::Number>().Uint32Value();
    Napi::Float64Array found = info[3].As<Napi::Float64Array>();
    Napi::Float64Array bounded = info[4].As<Napi::Float64Array>();
    Napi::Uint32Array chosen = info[5].As<Napi::Uint32Array>();
    const bool areWords = words_.read(info[6].As<Napi::Float64Array>(), info[7].As<Napi::Uint32Array>(),
                                      info[8].As<Napi::Uint32Array>(), info[9].As<Napi::Number>().Uint32Value());
    const double share = info[10].As<Napi::Number>().DoubleValue();
    const double unrelated = info[11].As<Napi::Number>().DoubleValue();
    const double same = info[12].As<Napi::Number>().DoubleValue();
    const size_t count = chosen.ElementLength();
    const bool areAlike = places.ElementLength() / PLACE_WORDS >= length && found.ElementLength() >= length && bounded.ElementLength() >= length;
    const bool isShare = share >= 0 && share <= 1;
    if (query.ElementLength() != dimension_ || !areAlike || count > length || !isShare || !areWords) {
      refuse(info);
      return info.Env().Undefined();
    }
    double* const cosines = found.Data();
    double* const bounds = bounded.Data();
    if (!compareAll<true>(Places{places.Data()}, length, query.Data(), cosines)) {
      refuse(info);
      return info.Env().Undefined();
    }
    for (size_t i = 0; i < length; i++) {
      const double near = std::max(0.0, std::min(1.0, (cosines[i] - unrelated) / (same - unrelated)));
      bounds[i] = (cosines[i] == noCosine_ ? 0 : (1 - share) * near) + ROUNDING;
    }
    words_.cover(terms_, [this, bounds, cosines, share](const uint32_t row, const double covered, const bool isLast) {
      bounds[row] = isLast ? INFINITY : bounds[row] + (cosines[row] == noCosine_ ? 1 : share) * covered;
    });
    ordered_.resize(length);
    for (size_t i = 0; i < length; i++) ordered_[i] = Bound{bounds[i], static_cast<uint32_t>(i)};
    const auto isLarger = [](const Bound& a, const Bound& b) { return a.bound > b.bound; };
    // Few of many: a heap of the largest is hardly ever changed.
    std::partial_sort(ordered_.begin(), ordered_.begin() + std::min(count + 1, length), ordered_.end(), isLarger);
    uint32_t* const best = chosen.Data();
    for (size_t i = 0; i < count; i++) best[i] = ordered_[i].row;
    return Napi::Number::New(info.Env(), count < length ? ordered_[count].bound : -INFINITY);
  }

  /** Places side by side. */
  struct Places {
    static constexpr bool LIE_APART = false;
    const uint32_t* places;

    bool ask(const size_t i) const {
      __builtin_prefetch(at(i));
      return true;
    }
    const uint32_t* at(const size_t i) const { return places + i * PLACE_WORDS; }
  };

  struct PlacesOfSlots {
    static constexpr bool LIE_APART = true;
    const std::vector<const uint32_t*>& pieces;
    const uint32_t* slots;

    /** Asks for a place. @returns whether there is one */
    bool ask(const size_t i) const {
      if (slots[i] >> PIECE_BITS >= pieces.size()) return false;
      __builtin_prefetch(at(i));
      return true;
    }
    const uint32_t* at(const size_t i) const { return pieces[slots[i] >> PIECE_BITS] + (slots[i] & SLOT_MASK) * PLACE_WORDS; }
  };

  /**
   * Writes the cosines of the query with the rows at the places; with terms, `terms_` has those that pass the filter of the words.
   *
   * @returns whether there is a row at each
   */
  template <bool withTerms, typename Source>
  bool compareAll(const Source& places, const size_t count, const int16_t* const query, double* const cosines) {
    if (sums_.size() < count) {
      sums_.resize(count);
      scales_.resize(count);
    }
    pairs_.count = 0;
    terms_.count = 0;
#ifdef __AVX512BW__
    places_.clear();
    places_.addPlaces(query, dimension_);
#endif
    // Three at once, or groups of them: the places of one are asked for, the rows of one before it, and one before that is compared.
    if constexpr (Source::LIE_APART) {
      for (size_t end = GROUP; end < count + 3 * GROUP; end += GROUP) {
        for (size_t i = end - GROUP; i < std::min(count, end); i++)
          if (!places.ask(i)) return false;
        for (size_t i = end - std::min(end, 2 * GROUP); i < std::min(count, end - GROUP); i++) askForPages(places.at(i));
        for (size_t at = end - std::min(end, 3 * GROUP); at < std::min(count, end - std::min(end, 2 * GROUP)); at++) {
          if (at + GROUP < count) askFor(places.at(at + GROUP));
          if (!compareOne<withTerms>(places.at(at), at, query)) return false;
        }
      }
    } else {
      for (size_t i = 0; i < count + PLACE_AHEAD + AHEAD; i++) {
        if (i < count && !places.ask(i)) return false;
        if (i >= PLACE_AHEAD && i < count + PLACE_AHEAD) askFor(places.at(i - PLACE_AHEAD));
        if (i < PLACE_AHEAD + AHEAD) continue;
        const size_t at = i - PLACE_AHEAD - AHEAD;
        if (!compareOne<withTerms>(places.at(at), at, query)) return false;
      }
    }
    for (size_t i = 0; i < pairs_.count; i++) sums_[pairs_.rows[i]] += product(pairs_.values[i], query);
    for (size_t i = 0; i < count; i++) {
      cosines[i] = scales_[i] == emptyScale_ ? noCosine_ : static_cast<double>(static_cast<int32_t>(sums_[i])) * scales_[i] / unit_;
    }
    return true;
  }

  /** Adds up what stands side by side of a row, and keeps what may count of its pairs and terms. @returns whether there is one */
  template <bool withTerms>
  inline __attribute__((always_inline)) bool compareOne(const uint32_t* const place, const size_t at, const int16_t* const query) {
    Row row;
    if (!read(place, row)) return false;
    sums_[at] = product(row, query);
    scales_[at] = row.scale;
#ifdef __AVX512BW__
    // Hardly any of the query's numbers that stand in pairs is not zero.
    places_.append(row.pairs, row.pairCount, static_cast<uint32_t>(at), pairs_);
#else
    for (uint32_t pair = 0; pair < row.pairCount; pair++) sums_[at] += product(row.pairs[pair], query);
#endif
    if (withTerms) words_.append(row.terms, row.termCount, static_cast<uint32_t>(at), terms_);
    return true;
  }

  /** Asks for the first and the last of the lines that `askFor` asks for: they are on all of its pages. */
  void askForPages(const uint32_t* const place) const {
    const size_t chunk = place[1] >> 16;
    if (chunk >= chunks_.size()) return;
    const uint8_t* const from = chunks_[chunk].bytes + place[0];
    __builtin_prefetch(from);
    __builtin_prefetch(from + (LINES - 1) * LINE_BYTES);
  }

  /** Asks for what is at a place, if anything can be. */
  void askFor(const uint32_t* const place) const {
    const size_t chunk = place[1] >> 16;
    if (chunk >= chunks_.size()) return;
    const uint8_t* const from = chunks_[chunk].bytes + place[0];
    for (size_t line = 0; line < LINES; line++) __builtin_prefetch(from + line * LINE_BYTES);
    const size_t numbers = place[1] & 0xffff;
    if (numbers >= LONG_BYTES) askForRest(from, numbers);
  }

  /** Not within the loop over rows, which the compiler would make a fifth slower for it. */
  __attribute__((noinline)) static void askForRest(const uint8_t* const from, const size_t length) {
    for (size_t at = LINES * LINE_BYTES; at < length; at += LINE_BYTES) __builtin_prefetch(from + at);
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

  /** The sum of products with numbers that stand side by side, exact in whatever order it is made. */
  uint32_t product(const Row& row, const int16_t* const query) const {
    const int16_t* const partners = query + row.place;
    const int8_t* const numbers = row.numbers;
    const uint32_t count = std::min(row.numberCount, dimension_ - row.place);
    uint32_t sum = 0;
    uint32_t i = 0;
#ifdef __AVX512BW__
    __m512i sums = _mm512_setzero_si512();
    for (; i + 32 <= count; i += 32) {
      const __m512i some = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + i)));
      sums = _mm512_add_epi32(sums, _mm512_madd_epi16(some, _mm512_loadu_si512(partners + i)));
    }
    sum = static_cast<uint32_t>(_mm512_reduce_add_epi32(sums));
#endif
    for (; i < count; i++) sum += static_cast<uint32_t>(numbers[i] * partners[i]);
    return sum;
  }

  /** The product of a pair. What is damaged may name places that a query has not: they count nothing. */
  uint32_t product(const uint32_t pair, const int16_t* const query) const {
    const uint32_t place = pair & 0xffff;
    return place < dimension_ ? static_cast<uint32_t>(query[place] * (static_cast<int32_t>(pair) >> 16)) : 0;
  }

  static void refuse(const Napi::CallbackInfo& info) {
    Napi::RangeError::New(info.Env(), "there is no such row").ThrowAsJavaScriptException();
  }
};
