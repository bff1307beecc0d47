#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#endif

#define INLINE static inline __attribute__((always_inline))
#define TEXT_OF(x) #x
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#define BEGIN_PROCESSOR(features) _Pragma(TEXT_OF(clang attribute push(__attribute__((target(features))), apply_to = function)))
#define END_PROCESSOR _Pragma("clang attribute pop")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define BEGIN_PROCESSOR(features) _Pragma("GCC push_options") _Pragma(TEXT_OF(GCC target(features)))
#define END_PROCESSOR _Pragma("GCC pop_options")
#endif

#define KERNELS(name, isSupported) \
  static constexpr Kernels kernels = {name, isSupported, quantise, multiply, attend, normalise, gelu, pool, product};

static bool always() { return true; }

namespace portable {
#define VECTOR_BYTES 16
#define TILE "tile-portable.h"
#include "processor-kernels.h"
KERNELS("portable", always)
#undef VECTOR_BYTES
#undef TILE
} // namespace portable

#if defined(__x86_64__)

namespace {

struct Registers {
  unsigned a, b, c, d;
};

Registers cpuid(const unsigned leaf, const unsigned part) {
  Registers registers{};
  if (!__get_cpuid_count(leaf, part, &registers.a, &registers.b, &registers.c, &registers.d)) return {};
  return registers;
}

constexpr bool has(const unsigned bits, const unsigned place) { return (bits >> place & 1) != 0; }

/** Checks whether the system saves these registers when it changes threads: numbers of bits as in XCR0. */
bool systemSaves(const unsigned mask) {
  constexpr unsigned OSXSAVE = 27;
  if (!has(cpuid(1, 0).c, OSXSAVE)) return false;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & mask) == mask;
}

bool hasSse4() {
  constexpr unsigned SSSE3 = 9, SSE4_1 = 19;
  const unsigned c = cpuid(1, 0).c;
  return has(c, SSSE3) && has(c, SSE4_1);
}

bool hasAvx2() {
  constexpr unsigned AVX_REGISTERS = 6, AVX2 = 5;
  return systemSaves(AVX_REGISTERS) && has(cpuid(7, 0).b, AVX2);
}

bool hasAvxVnni() {
  constexpr unsigned AVX_VNNI = 4;
  return hasAvx2() && has(cpuid(7, 1).a, AVX_VNNI);
}

bool hasAvx512Vnni() {
  constexpr unsigned AVX512_REGISTERS = 0xe6, F = 16, DQ = 17, BW = 30, VL = 31, VNNI = 11;
  const Registers found = cpuid(7, 0);
  return hasAvx2() && systemSaves(AVX512_REGISTERS) && has(found.b, F) && has(found.b, DQ) && has(found.b, BW) && has(found.b, VL) && has(found.c, VNNI);
}

} // namespace

BEGIN_PROCESSOR("ssse3,sse4.1")
namespace sse4 {
#define VECTOR_BYTES 16
#define TILE "tile-sse4.h"
#include "processor-kernels.h"
KERNELS("sse4", hasSse4)
#undef VECTOR_BYTES
#undef TILE
} // namespace sse4
END_PROCESSOR

BEGIN_PROCESSOR("avx2")
namespace avx2 {
#define VECTOR_BYTES 32
#define TILE "tile-avx2.h"
#include "processor-kernels.h"
KERNELS("avx2", hasAvx2)
#undef VECTOR_BYTES
#undef TILE
} // namespace avx2
END_PROCESSOR

BEGIN_PROCESSOR("avx2,avxvnni")
namespace avxvnni {
#define VECTOR_BYTES 32
#define TILE "tile-avx2.h"
#define DOT_PRODUCTS
#include "processor-kernels.h"
KERNELS("avxvnni", hasAvxVnni)
#undef VECTOR_BYTES
#undef TILE
#undef DOT_PRODUCTS
} // namespace avxvnni
END_PROCESSOR

BEGIN_PROCESSOR("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace avx512vnni {
#define VECTOR_BYTES 64
#define TILE "tile-avx512.h"
#include "processor-kernels.h"
KERNELS("avx512vnni", hasAvx512Vnni)
#undef VECTOR_BYTES
#undef TILE
} // namespace avx512vnni
END_PROCESSOR

static constexpr const Kernels* ALL[] = {&avx512vnni::kernels, &avxvnni::kernels, &avx2::kernels, &sse4::kernels, &portable::kernels};

#elif defined(__aarch64__)

static bool hasDotProducts() {
#ifdef __linux__
  constexpr unsigned long ASIMDDP = 1 << 20;
  return (getauxval(AT_HWCAP) & ASIMDDP) != 0;
#else
  // All of Apple's processors that run macOS have them.
  return true;
#endif
}

namespace neon {
#define VECTOR_BYTES 16
#define TILE "tile-neon.h"
#include "processor-kernels.h"
KERNELS("neon", always)
#undef VECTOR_BYTES
#undef TILE
} // namespace neon

#ifdef __clang__
BEGIN_PROCESSOR("dotprod")
#else
BEGIN_PROCESSOR("+dotprod")
#endif
namespace neondot {
#define VECTOR_BYTES 16
#define TILE "tile-neon.h"
#define DOT_PRODUCTS
#include "processor-kernels.h"
KERNELS("neondot", hasDotProducts)
#undef VECTOR_BYTES
#undef TILE
#undef DOT_PRODUCTS
} // namespace neondot
END_PROCESSOR

static constexpr const Kernels* ALL[] = {&neondot::kernels, &neon::kernels, &portable::kernels};

#else

static constexpr const Kernels* ALL[] = {&portable::kernels};

#endif

std::vector<const Kernels*> supportedKernels() {
  std::vector<const Kernels*> supported;
  for (const Kernels* const kernels : ALL)
    if (kernels->isSupported()) supported.push_back(kernels);
  return supported;
}
