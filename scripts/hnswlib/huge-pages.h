/**
 * Asks the system for large pages where memory is read at random: hardly any page of 4 KB would be among those that the processor has the
 * address of, and on a virtual machine to look one up takes as long as the memory itself. Nothing depends on whether it gives them.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

/** Before the memory is written to: what has small pages then keeps them for minutes. */
inline void wantHugePages(const void* memory, const size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr size_t HUGE_PAGE_BYTES = 2 << 20;
  if (bytes < HUGE_PAGE_BYTES) return;
  // With all of its first and last page: a mapping of which a part is asked for becomes two, which `realloc` has to copy.
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes + page - 1) & ~(page - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}
