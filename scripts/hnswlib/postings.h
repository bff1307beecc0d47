/**
 * The inner loops of a search by words (`src/vectors/term-search.ts`): they add up what the posting lists of a query come to, window by
 * window, and keep the best. In JavaScript a search of a million memories takes twice as long.
 *
 * Blocks are as in `src/vectors/posting-lists.ts`. Chunks, what a search is begun with and where its results go are the caller's, who keeps
 * them where they are: chunks for as long as this is used, the others until the next search. Which lists are followed is decided there.
 *
 * Lists come from a file and may be damaged: each block is checked when it is entered, so that nothing is read or written elsewhere. Where
 * one is not sound the list ends, and `state` says so.
 */
#pragma once

#include <napi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "huge-pages.h"

class PostingScorer : public Napi::ObjectWrap<PostingScorer> {
public:
  /**
   * (window: slots that are scored together, slots: Uint32Array, scores: Float64Array, state: Float64Array)
   *
   * `slots` and `scores` have room for a window. `state` is how many slots of this one are touched, how many postings the last call looked
   * at, the bar, which is to say that what comes with a lower score is not among the best, whether a damaged list was met, and the bar
   * that was expected.
   */
  PostingScorer(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<PostingScorer>(info),
      window_(info[0].As<Napi::Number>().Int32Value()),
      slots_(info[1].As<Napi::Uint32Array>().Data()),
      scores_(info[2].As<Napi::Float64Array>().Data()),
      state_(info[3].As<Napi::Float64Array>().Data()),
      cells_(window_),
      touched_(window_ + 1),
      kept_(window_ + 1),
      buckets_(BUCKETS) {}

  static void Init(Napi::Env env, Napi::Object exports) {
    exports.Set("PostingScorer", DefineClass(env, "PostingScorer", {
      InstanceMethod("setChunk", &PostingScorer::setChunk),
      InstanceMethod("begin", &PostingScorer::begin),
      InstanceMethod("follow", &PostingScorer::follow),
      InstanceMethod("collect", &PostingScorer::collect),
      InstanceMethod("offer", &PostingScorer::offer),
      InstanceMethod("expect", &PostingScorer::expect),
      InstanceMethod("found", &PostingScorer::found),
      StaticMethod("wantHugePages", &PostingScorer::wantPages),
    }));
  }

private:
  static constexpr uint32_t CHUNK_SHIFT = 18;
  static constexpr uint32_t CHUNK_BYTES = 1u << CHUNK_SHIFT;
  static constexpr uint32_t ADDRESS_MASK = CHUNK_BYTES - 16;
  static constexpr uint32_t CLASS_MASK = 15;
  static constexpr uint32_t CLASS_MAX = 8;
  static constexpr int COUNT_HALF = 4;
  static constexpr int DISTANCES_HALF = 5;
  /** More slots than a block has. */
  static constexpr uint32_t BLOCK_SLOTS = (16u << CLASS_MAX) / sizeof(uint16_t);
  /** So many lines of a block are asked for where a window ends: the next window hardly ever comes to more of it. */
  static constexpr int LINES_AHEAD = 4;
  static constexpr int LINE_HALVES = 32;
  /** And so many slots ahead the length of a memory is asked for. */
  static constexpr uint32_t LENGTHS_AHEAD = 16;
  /** The distances where there is no block. */
  static constexpr uint16_t NONE[1] = {0};

  static constexpr int TOUCHED = 0;
  static constexpr int LOOKS = 1;
  static constexpr int BAR = 2;
  static constexpr int IS_DAMAGED = 3;
  static constexpr int EXPECTED = 4;

  /** Scores are up to 2^24, or a little more by rounding. Those that are nearly equal are counted together. */
  static constexpr uint32_t BUCKETS = 4096;
  static constexpr uint32_t BUCKET_SIZE = 4096;

  /** What a slot has so far: a bit for each word, and their sum. */
  struct Cell {
    uint32_t words;
    uint32_t sum;
  };

  /** How far a search has come in a list. */
  struct List {
    /** The newest slot that was not passed; -1 when all were. */
    int32_t next;
    uint32_t score;
    /** The block before, or 0, and the newest slot before this one, or -1. */
    uint32_t before;
    int32_t slotBefore;
    /** Of the distances in the block the first, and that of `next`. */
    const uint16_t* first;
    const uint16_t* at;
  };

  /** Some lists of a word, as the caller writes them down. */
  struct Span {
    uint32_t word;
    uint32_t from;
    uint32_t to;
  };

  /** A slot that may come above the bar, and what it keeps of its sum. */
  struct Kept {
    int32_t at;
    Cell cell;
    double share;
  };

  struct Hit {
    double score;
    uint32_t slot;
    uint8_t length;
    /** Of equal ones the newest is better. */
    bool operator<(const Hit& other) const { return score != other.score ? score > other.score : slot > other.slot; }
  };

  /** The lowest bucket such that as many as `rank` of what was offered are in it or above. */
  struct Rank {
    uint32_t rank;
    uint32_t bucket;
    uint32_t above;
    bool rises(const uint32_t at, const std::vector<uint32_t>& buckets) {
      if (at <= bucket || ++above < rank) return false;
      rise(buckets);
      return true;
    }
    void rise(const std::vector<uint32_t>& buckets) {
      while (above >= rank) above -= buckets[++bucket];
    }
  };

  const int32_t window_;
  uint32_t* const slots_;
  double* const scores_;
  double* const state_;
  std::vector<const uint8_t*> chunks_;
  std::vector<Cell> cells_;
  std::vector<int32_t> touched_;
  /** The touched slots that one block of a list has. */
  uint16_t met_[BLOCK_SLOTS];
  std::vector<Kept> kept_;
  uint32_t touchedCount_ = 0;
  std::vector<List> lists_;
  const Span* spans_ = nullptr;
  const uint8_t* lengths_ = nullptr;
  const double* shares_ = nullptr;
  const double* coverages_ = nullptr;
  /** What was offered, without most of what is not among the best any more. */
  std::vector<Hit> hits_;
  /** Those in the bucket of the last that is wanted. */
  std::vector<Hit> edge_;
  size_t limit_ = 0;
  size_t capacity_ = 0;
  std::vector<uint32_t> buckets_;
  Rank last_;
  Rank leading_;
  double gap_ = 0;
  /** That of as many as are expected among the slots seen so far. */
  Rank expected_;

  /** (memory: Uint8Array): it is going to be chunks. */
  static void wantPages(const Napi::CallbackInfo& info) {
    const Napi::Uint8Array memory = info[0].As<Napi::Uint8Array>();
    wantHugePages(memory.Data(), memory.ByteLength());
  }

  /** (number, chunk: Uint8Array of `CHUNK_BYTES`) */
  void setChunk(const Napi::CallbackInfo& info) {
    const size_t number = info[0].As<Napi::Number>().Uint32Value();
    if (number >= chunks_.size()) chunks_.resize(number + 1, nullptr);
    chunks_[number] = info[1].As<Napi::Uint8Array>().Data();
  }

  /**
   * (heads: Uint32Array, count, spans: Uint32Array, lengths: Uint8Array, shares, coverages: Float64Array, limit, slack, rank,
   * gap)
   *
   * A head is the newest slot of a list, its newest block, and its score. Spans may be written until they are used. By slot the code of its
   * memory's length; by code what a memory keeps of its score, and by which that becomes what it covers of the query. The best are
   * the `limit` best, but for those that are `gap` below the one of that rank.
   */
  void begin(const Napi::CallbackInfo& info) {
    const uint32_t* heads = info[0].As<Napi::Uint32Array>().Data();
    const Napi::Uint8Array lengths = info[3].As<Napi::Uint8Array>();
    lists_.resize(info[1].As<Napi::Number>().Uint32Value());
    for (List& list : lists_) {
      list.next = static_cast<int32_t>(heads[0]);
      list.score = heads[2];
      enter(list, heads[1]);
      if (heads[0] >= lengths.ElementLength()) end(list);
      heads += 3;
    }
    spans_ = reinterpret_cast<const Span*>(info[2].As<Napi::Uint32Array>().Data());
    lengths_ = lengths.Data();
    shares_ = info[4].As<Napi::Float64Array>().Data();
    coverages_ = info[5].As<Napi::Float64Array>().Data();
    limit_ = info[6].As<Napi::Number>().Uint32Value();
    capacity_ = limit_ + info[7].As<Napi::Number>().Uint32Value();
    last_ = Rank{static_cast<uint32_t>(limit_), 0, 0};
    leading_ = Rank{info[8].As<Napi::Number>().Uint32Value(), 0, 0};
    gap_ = info[9].As<Napi::Number>().DoubleValue();
    expected_ = Rank{0, 0, 0};
    hits_.clear();
    std::fill(buckets_.begin(), buckets_.end(), 0);
    state_[TOUCHED] = state_[LOOKS] = state_[BAR] = state_[EXPECTED] = 0;
  }

  /**
   * (from: the window's first slot, first, end: spans, most: postings, touchedOnly)
   *
   * Adds to the slots of the window that are in these lists what that is worth, once for each word.
   *
   * @returns the span after the last one that was followed: not the last one when there were more postings
   */
  Napi::Value follow(const Napi::CallbackInfo& info) {
    const int32_t from = info[0].As<Napi::Number>().Int32Value();
    uint32_t span = info[1].As<Napi::Number>().Uint32Value();
    const uint32_t end = info[2].As<Napi::Number>().Uint32Value();
    const uint32_t most = info[3].As<Napi::Number>().Uint32Value();
    const bool touchedOnly = info[4].As<Napi::Boolean>().Value();
    uint32_t looks = 0;
    while (span < end && looks <= most) {
      const Span& lists = spans_[span++];
      for (uint32_t i = lists.from; i < lists.to; i++)
        looks += touchedOnly ? add<true>(lists_[i], from, 1u << lists.word) : add<false>(lists_[i], from, 1u << lists.word);
    }
    state_[TOUCHED] = touchedCount_;
    state_[LOOKS] = looks;
    return Napi::Number::New(info.Env(), span);
  }

  /**
   * (from: the window's first slot, first, end: spans, offers)
   *
   * Offers the slots of the window whose score is not below the bar, with what they have in these lists, those of a word that were not
   * followed. Or writes them down, in no order, for the caller to offer. Clears the window.
   *
   * @returns how many were written down
   */
  Napi::Value collect(const Napi::CallbackInfo& info) {
    const int32_t from = info[0].As<Napi::Number>().Int32Value();
    const uint32_t first = info[1].As<Napi::Number>().Uint32Value();
    const uint32_t end = info[2].As<Napi::Number>().Uint32Value();
    const bool offers = info[3].As<Napi::Boolean>().Value();
    uint32_t rest = 0;
    for (uint32_t span = first; span < end; span++) rest += lists_[spans_[span].from].score;
    const uint32_t keptCount = keep(from, rest);
    // Lists can be asked about older and older slots only.
    if (rest > 0) std::sort(kept_.begin(), kept_.begin() + keptCount, [](const Kept& a, const Kept& b) { return a.at > b.at; });
    uint32_t looks = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < keptCount; i++) {
      const Kept& one = kept_[i];
      const uint32_t sum = rest == 0 ? one.cell.sum : completed(one, from, first, end, rest, looks);
      const double score = sum * one.share;
      if (score <= 0 || score < state_[BAR]) continue;
      const uint32_t slot = static_cast<uint32_t>(from + one.at);
      if (offers) {
        take(slot, score);
        continue;
      }
      slots_[count] = slot;
      scores_[count++] = score;
    }
    state_[LOOKS] = looks;
    return Napi::Number::New(info.Env(), count);
  }

  /** (count: how many of those written down are offered) */
  void offer(const Napi::CallbackInfo& info) {
    const uint32_t count = info[0].As<Napi::Number>().Uint32Value();
    for (uint32_t i = 0; i < count; i++)
      if (scores_[i] >= state_[BAR]) take(slots_[i], scores_[i]);
  }

  /** (rank): what comes with a lower score than as many of what was offered so far is taken not to be among the best of all. */
  void expect(const Napi::CallbackInfo& info) {
    expected_.rank = std::max(1u, info[0].As<Napi::Number>().Uint32Value());
    expected_.rise(buckets_);
    // What has that very score and comes later may be among the best.
    if (expected_.bucket > 0) state_[EXPECTED] = static_cast<double>(expected_.bucket) * BUCKET_SIZE - 1;
    raise(state_[EXPECTED]);
  }

  /** (slots: Uint32Array, coverages: Float64Array): where the best go, and what each covers, in no order. @returns how many there are */
  Napi::Value found(const Napi::CallbackInfo& info) {
    uint32_t* const slots = info[0].As<Napi::Uint32Array>().Data();
    double* const coverages = info[1].As<Napi::Float64Array>().Data();
    settle();
    uint32_t count = 0;
    for (const Hit& hit : hits_) {
      if (hit.score < state_[BAR]) continue;
      slots[count] = hit.slot;
      coverages[count++] = hit.score * coverages_[hit.length];
    }
    return Napi::Number::New(info.Env(), count);
  }

  /** Takes what may come above the bar with that much more from the window, and clears it. @returns how many these are */
  uint32_t keep(const int32_t from, const uint32_t rest) {
    const double bar = state_[BAR];
    const uint32_t least = static_cast<uint32_t>(std::max(0.0, std::ceil(bar) - rest));
    // First without lengths, each of which is a cache miss; and without branches, which would be guessed wrong too often.
    uint32_t reaching = 0;
    for (uint32_t i = 0; i < touchedCount_; i++) {
      const int32_t at = touched_[i];
      Cell& cell = cells_[at];
      const bool reaches = cell.sum >= least;
      const uint32_t mask = reaches ? UINT32_MAX : 0;
      cell = Cell{cell.words & mask, cell.sum & mask};
      touched_[reaching] = at;
      reaching += reaches;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < reaching; i++) {
      if (i + LENGTHS_AHEAD < reaching) __builtin_prefetch(lengths_ + from + touched_[i + LENGTHS_AHEAD]);
      const int32_t at = touched_[i];
      const Cell cell = cells_[at];
      cells_[at] = Cell{0, 0};
      const double share = shares_[lengths_[from + at]];
      kept_[count] = Kept{at, cell, share};
      count += (static_cast<double>(cell.sum) + rest) * share >= bar;
    }
    touchedCount_ = 0;
    return count;
  }

  void take(const uint32_t slot, const double score) {
    if (hits_.size() == capacity_) settle();
    hits_.push_back(Hit{score, slot, lengths_[slot]});
    const uint32_t bucket = bucketOf(score);
    buckets_[bucket]++;
    expected_.above += bucket > expected_.bucket;
    if (last_.rises(bucket, buckets_)) raise(static_cast<double>(last_.bucket) * BUCKET_SIZE);
    if (leading_.rises(bucket, buckets_)) raise(static_cast<double>(leading_.bucket) * BUCKET_SIZE - gap_);
  }

  void raise(const double bar) { state_[BAR] = std::max(state_[BAR], bar); }

  static uint32_t bucketOf(const double score) { return std::min(BUCKETS - 1, static_cast<uint32_t>(score) / BUCKET_SIZE); }

  /** Leaves out all but the best: what is in the buckets above that of the last one, and the best in that. */
  void settle() {
    if (hits_.size() < limit_ || limit_ == 0) return;
    edge_.resize(hits_.size());
    size_t count = 0;
    size_t edgeCount = 0;
    for (const Hit hit : hits_) {
      const uint32_t bucket = bucketOf(hit.score);
      hits_[count] = edge_[edgeCount] = hit;
      count += bucket > last_.bucket;
      edgeCount += bucket == last_.bucket;
    }
    const size_t wanted = limit_ - count;
    std::nth_element(edge_.begin(), edge_.begin() + (wanted - 1), edge_.begin() + edgeCount);
    std::copy(edge_.begin(), edge_.begin() + wanted, hits_.begin() + count);
    hits_.resize(limit_);
    raise(edge_[wanted - 1].score);
  }

  /** The sum of a slot with what it has in the lists of these spans, until it is clear that it does not come to the bar. */
  uint32_t completed(const Kept& one, const int32_t from, const uint32_t first, const uint32_t end, uint32_t rest, uint32_t& looks) {
    const double bar = state_[BAR];
    uint32_t sum = one.cell.sum;
    for (uint32_t span = first; span < end; span++)
      if (one.cell.words & (1u << spans_[span].word)) rest -= lists_[spans_[span].from].score;
    for (uint32_t span = first; span < end; span++) {
      const Span& lists = spans_[span];
      if (one.cell.words & (1u << lists.word)) continue;
      rest -= lists_[lists.from].score;
      for (uint32_t i = lists.from; i < lists.to; i++) {
        List& list = lists_[i];
        if ((static_cast<double>(sum) + rest + list.score) * one.share < bar) return 0;
        looks++;
        if (!has(list, from + one.at)) continue;
        sum += list.score;
        break;
      }
    }
    return sum;
  }

  /** @returns how many postings were looked at */
  template <bool touchedOnly> uint32_t add(List& list, const int32_t from, const uint32_t bit) {
    if (list.next >= from + window_) has(list, from + window_ - 1);
    Cell* const cells = cells_.data();
    int32_t* const touched = touched_.data();
    const uint32_t score = list.score;
    uint32_t touchedCount = touchedCount_;
    uint32_t passed = 0;
    while (list.next >= from) {
      const uint16_t* const first = list.first;
      const uint16_t* at = list.at;
      int32_t slot = list.next - from;
      uint32_t metCount = 0;
      for (;;) {
        passed++;
        Cell& cell = cells[slot];
        const uint32_t words = cell.words;
        // Without branches, which would be guessed wrong too often. Where the word has its bit, a list had the slot that is worth more.
        if (touchedOnly) {
          met_[metCount] = static_cast<uint16_t>(slot);
          metCount += words != 0;
        } else {
          touched[touchedCount] = slot;
          touchedCount += words == 0;
          cell.sum += (words & bit) == 0 ? score : 0;
          cell.words = words | bit;
        }
        if (at < first) {
          enterBefore(list, from + slot);
          break;
        }
        slot -= *at--;
        if (slot < 0) {
          list.next = from + slot;
          list.at = at;
          for (int line = 0; line < LINES_AHEAD; line++) __builtin_prefetch(at - line * LINE_HALVES);
          break;
        }
      }
      for (uint32_t i = 0; i < metCount; i++) {
        Cell& cell = cells[met_[i]];
        cell.sum += (cell.words & bit) == 0 ? score : 0;
        cell.words |= bit;
      }
    }
    touchedCount_ = touchedCount;
    return passed;
  }

  /** Whether a slot is in the list. Passes what is newer. */
  bool has(List& list, const int32_t slot) {
    while (list.next > slot) {
      if (list.at < list.first || list.slotBefore >= slot) enterBefore(list, list.next);
      else list.next -= *list.at--;
    }
    return list.next == slot;
  }

  /** Stands at the newest slot of a block. */
  void enter(List& list, const uint32_t block) {
    list.before = 0;
    list.slotBefore = -1;
    list.first = NONE + 1;
    list.at = NONE;
    if (block == 0) return;
    const size_t chunk = block >> CHUNK_SHIFT;
    const uint32_t address = block & ADDRESS_MASK;
    const uint32_t size = 16u << (block & CLASS_MASK);
    if ((block & CLASS_MASK) > CLASS_MAX || chunk >= chunks_.size() || address + size > CHUNK_BYTES) return end(list);
    const uint8_t* const bytes = chunks_[chunk] + address;
    const uint32_t* const words = reinterpret_cast<const uint32_t*>(bytes);
    const uint16_t* const halves = reinterpret_cast<const uint16_t*>(bytes);
    if (DISTANCES_HALF + halves[COUNT_HALF] > size / 2) return end(list);
    list.before = words[0];
    list.slotBefore = static_cast<int32_t>(words[1]);
    list.first = halves + DISTANCES_HALF;
    list.at = list.first + halves[COUNT_HALF] - 1;
    prefetch(list.before);
  }

  /** The block that comes next in a list lies anywhere: its head and its end, where it is read first, are asked for now. */
  void prefetch(const uint32_t block) {
    const size_t chunk = block >> CHUNK_SHIFT;
    if (block == 0 || chunk >= chunks_.size()) return;
    const uint8_t* const bytes = chunks_[chunk] + (block & ADDRESS_MASK);
    __builtin_prefetch(bytes);
    __builtin_prefetch(bytes + (16u << (block & 15)) - 1);
  }

  /** Leaves a damaged list. */
  void end(List& list) {
    list.next = -1;
    state_[IS_DAMAGED] = 1;
  }

  /** Goes from a slot to the block before, whose slots are older. */
  void enterBefore(List& list, const int32_t slot) {
    if (list.slotBefore >= slot) return end(list);
    list.next = list.slotBefore;
    enter(list, list.before);
  }
};
