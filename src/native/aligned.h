/** Memory at the beginning of a cache line, where loads of a whole line touch no second one. */
#pragma once

#include <cstddef>
#include <memory>
#include <new>

constexpr std::align_val_t CACHE_LINE{64};

struct FreeAligned {
  void operator()(void* const memory) const { ::operator delete(memory, CACHE_LINE); }
};

/** An array whose values are not set. */
template <typename Value> using Aligned = std::unique_ptr<Value[], FreeAligned>;

template <typename Value> Aligned<Value> alignedArray(const size_t count) {
  return Aligned<Value>(static_cast<Value*>(::operator new(count * sizeof(Value), CACHE_LINE)));
}
