#include "rows.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace {

constexpr uint32_t PIECE_BITS = 14;
constexpr uint32_t SLOT_MASK = (1u << PIECE_BITS) - 1;
constexpr uint32_t PLACE_WORDS = 4;
constexpr size_t LINE_BYTES = 64;
/** Rows ahead of which one is prefetched, and the place of one: the processor waits for some twenty lines, and a row has six. */
constexpr size_t AHEAD = 8;
constexpr size_t PLACE_AHEAD = 16;
/** So many lines are asked for of each row, however long it is: what follows the processor itself asks for. */
constexpr size_t LINES = 6;
/** Terms that are looked up before it is asked whether one of them falls on a place: one that none does is soon left behind. */
constexpr size_t TERMS_AT_ONCE = 4;
/** Buckets of a Bloom filter with one hash, of the terms that are looked for: hardly any other term falls into theirs. */
constexpr size_t TERM_PLACES = 4096;

using TermPlaces = std::array<uint8_t, TERM_PLACES>;

/** Tells whether one of a row's terms is among those from `sought` on. */
bool hasAny(const uint8_t* const row, const size_t count, const TermPlaces& places, const uint32_t* const sought, const uint32_t* const end) {
  const auto termAt = [row](const size_t i) {
    uint32_t term;
    std::memcpy(&term, row + i * sizeof term, sizeof term);
    return term;
  };
  for (size_t from = 0; from < count; from += TERMS_AT_ONCE) {
    const size_t to = std::min(count, from + TERMS_AT_ONCE);
    uint8_t isAny = 0;
    for (size_t i = from; i < to; i++) isAny |= places[termAt(i) % TERM_PLACES];
    for (size_t i = from; isAny != 0 && i < to; i++)
      if (std::find(sought, end, termAt(i)) != end) return true;
  }
  return false;
}

} // namespace

Napi::Function RowComparer::define(const Napi::Env env) {
  return DefineClass(env, "RowComparer",
                     {InstanceMethod<&RowComparer::addPiece>("addPiece"), InstanceMethod<&RowComparer::addChunk>("addChunk"),
                      InstanceMethod<&RowComparer::compare>("compare"), InstanceMethod<&RowComparer::match>("match")});
}

RowComparer::RowComparer(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<RowComparer>(info),
      kernels_(*supportedKernels().front()),
      unit_(info[0].As<Napi::Number>().DoubleValue()),
      emptyScale_(info[1].As<Napi::Number>().Uint32Value()),
      noCosine_(info[2].As<Napi::Number>().DoubleValue()) {}

void RowComparer::addPiece(const Napi::CallbackInfo& info) { pieces_.push_back(info[0].As<Napi::Uint32Array>().Data()); }

void RowComparer::addChunk(const Napi::CallbackInfo& info) {
  const Napi::Uint8Array chunk = info[0].As<Napi::Uint8Array>();
  chunks_.push_back({chunk.Data(), chunk.ByteLength()});
}

void RowComparer::compare(const Napi::CallbackInfo& info) {
  const Napi::Int16Array query = info[0].As<Napi::Int16Array>();
  const Napi::Uint32Array slots = info[1].As<Napi::Uint32Array>();
  Napi::Float64Array found = info[2].As<Napi::Float64Array>();
  const size_t count = slots.ElementLength();
  const uint32_t* const first = slots.Data();
  double* const cosines = found.Data();
  const bool isSound = found.ElementLength() == count && areRows(slots);
  for (size_t i = 0; isSound && i < count + PLACE_AHEAD + AHEAD; i++) {
    if (i < count) __builtin_prefetch(placeOf(first[i]));
    if (i >= PLACE_AHEAD && i < count + PLACE_AHEAD) askFor(placeOf(first[i - PLACE_AHEAD]));
    if (i < PLACE_AHEAD + AHEAD) continue;
    const size_t at = i - PLACE_AHEAD - AHEAD;
    if (cosineOf(placeOf(first[at]), query.Data(), query.ElementLength(), cosines[at])) continue;
    throw Napi::RangeError::New(info.Env(), "there is no such row");
  }
  if (!isSound) throw Napi::RangeError::New(info.Env(), "there is no such row");
}

void RowComparer::match(const Napi::CallbackInfo& info) {
  const Napi::Uint32Array ids = info[0].As<Napi::Uint32Array>();
  const Napi::Uint32Array slots = info[1].As<Napi::Uint32Array>();
  Napi::Uint8Array found = info[2].As<Napi::Uint8Array>();
  const uint32_t* const sought = ids.Data();
  const uint32_t* const end = sought + ids.ElementLength();
  TermPlaces places{};
  for (const uint32_t* id = sought; id < end; id++) places[*id % TERM_PLACES] = 1;
  bool isSound = found.ElementLength() == slots.ElementLength() && areRows(slots);
  for (size_t i = 0; isSound && i < slots.ElementLength(); i++) {
    const uint32_t* const place = placeOf(slots.Data()[i]);
    const size_t chunk = place[1] >> 16;
    const size_t start = place[0] + static_cast<size_t>(place[1] & 0xffff);
    const size_t count = place[3] == 0 || place[2] == 0 ? 0 : place[2] - 1;
    found.Data()[i] = 0;
    if (count == 0) continue;
    isSound = chunk < chunks_.size() && start + count * sizeof(uint32_t) <= chunks_[chunk].length;
    if (isSound) found.Data()[i] = hasAny(chunks_[chunk].bytes + start, count, places, sought, end) ? 1 : 0;
  }
  if (!isSound) throw Napi::RangeError::New(info.Env(), "there is no such row");
}

bool RowComparer::areRows(const Napi::Uint32Array& slots) const {
  const uint32_t* const first = slots.Data();
  return std::all_of(first, first + slots.ElementLength(), [&](const uint32_t slot) { return slot >> PIECE_BITS < pieces_.size(); });
}

const uint32_t* RowComparer::placeOf(const uint32_t slot) const { return pieces_[slot >> PIECE_BITS] + (slot & SLOT_MASK) * PLACE_WORDS; }

/** Asks for what is at a place, if anything can be. */
void RowComparer::askFor(const uint32_t* const place) const {
  const size_t chunk = place[1] >> 16;
  if (chunk >= chunks_.size()) return;
  const uint8_t* const from = chunks_[chunk].bytes + place[0];
  for (size_t line = 0; line < LINES; line++) __builtin_prefetch(from + line * LINE_BYTES);
}

/** Of several passages it is that of the nearest. @returns whether the row is where rows are; that of a vector that is gone is empty */
bool RowComparer::cosineOf(const uint32_t* const place, const int16_t* const query, const size_t numbers, double& cosine) const {
  const uint32_t scale = place[3] & 0xffff;
  const size_t chunk = place[1] >> 16;
  const size_t length = place[1] & 0xffff;
  if (scale == 0) cosine = 0;
  else if (chunk >= chunks_.size() || place[0] + length > chunks_[chunk].length) return false;
  else if (scale == emptyScale_) cosine = noCosine_;
  else {
    const int8_t* const row = reinterpret_cast<const int8_t*>(chunks_[chunk].bytes + place[0]);
    const size_t step = length / std::max(place[3] >> 16, 1u);
    int32_t sum = kernels_.product(row, query, std::min(step, numbers));
    for (size_t from = step; from + step <= length && step > 0; from += step)
      sum = std::max(sum, kernels_.product(row + from, query, std::min(step, numbers)));
    cosine = static_cast<double>(sum) * scale / unit_;
  }
  return true;
}
