/**
 * AVX2, with AVX-VNNI where `DOT_PRODUCTS` is set. Without it, products of a block are added in 16 bits: eight of at most 2 x 15 x 127
 * fit. There are too few registers for the sums of floats, which lie in memory.
 */

constexpr size_t TILE_TOKENS = 4;

template <size_t TOKENS>
INLINE void tile(const Quantised& activations, const size_t blocks, const uint8_t* weights, const float* scales, const float* const bias,
                 float* const result, const size_t stride) {
  constexpr size_t PARTS_OF_8 = LANES / 8;
  const size_t inputs = blocks * BLOCK;
  const __m256i lowHalves = _mm256_set1_epi8(15);
  float sums[TOKENS][LANES] = {};
  for (size_t block = 0; block < blocks; block++, weights += BLOCK_BYTES, scales += LANES) {
    __m256i whole[TOKENS][PARTS_OF_8];
    for (size_t t = 0; t < TOKENS; t++)
#ifdef DOT_PRODUCTS
      for (size_t p = 0; p < PARTS_OF_8; p++) whole[t][p] = _mm256_set1_epi32(activations.corrections[t * blocks + block]);
#else
      for (size_t p = 0; p < PARTS_OF_8; p++) whole[t][p] = _mm256_setzero_si256();
#endif
    const int8_t* const values = activations.values + block * BLOCK;
    for (size_t i = 0; i < 4; i++) {
      const __m256i both[PARTS_OF_8] = {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 64 * i)),
                                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + 64 * i + 32))};
      UNROLL for (size_t half = 0; half < 2; half++) {
        __m256i own[PARTS_OF_8];
        for (size_t p = 0; p < PARTS_OF_8; p++) own[p] = _mm256_and_si256(half == 0 ? both[p] : _mm256_srli_epi16(both[p], 4), lowHalves);
        UNROLL for (size_t t = 0; t < TOKENS; t++) {
          const __m256i group = _mm256_set1_epi32(groupAt(values + t * inputs + 8 * i + 4 * half));
          for (size_t p = 0; p < PARTS_OF_8; p++)
#ifdef DOT_PRODUCTS
            whole[t][p] = _mm256_dpbusd_avx_epi32(whole[t][p], own[p], group);
#else
            whole[t][p] = _mm256_add_epi16(whole[t][p], _mm256_maddubs_epi16(own[p], group));
#endif
        }
      }
    }
    UNROLL for (size_t t = 0; t < TOKENS; t++) {
      const __m256 scale = _mm256_set1_ps(activations.scales[t * blocks + block]);
      for (size_t p = 0; p < PARTS_OF_8; p++) {
#ifdef DOT_PRODUCTS
        const __m256i exact = whole[t][p];
#else
        const __m256i correction = _mm256_set1_epi32(activations.corrections[t * blocks + block]);
        const __m256i exact = _mm256_add_epi32(_mm256_madd_epi16(whole[t][p], _mm256_set1_epi16(1)), correction);
#endif
        float* const to = sums[t] + 8 * p;
        const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(exact), _mm256_loadu_ps(scales + 8 * p));
        _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_mul_ps(scaled, scale)));
      }
    }
  }
  for (size_t t = 0; t < TOKENS; t++) store(result + t * stride, load(sums[t]) + load(bias));
}
