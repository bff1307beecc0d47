/**
 * Asks the system for large pages where memory is read at random: hardly any page of 4 KB would be among those that the processor has the
 * address of, and on a virtual machine to look one up takes as long as the memory itself. Nothing depends on whether it gives them.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

inline void wantHugePages(const void* memory, const size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t HUGE_PAGE_BYTES = 2 << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~(HUGE_PAGE_BYTES - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}
