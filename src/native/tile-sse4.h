/** SSE4.1: as with AVX2, in registers of half the width. */

constexpr size_t TILE_TOKENS = 2;

template <size_t TOKENS>
INLINE void tile(const Quantised& activations, const size_t blocks, const uint8_t* weights, const float* scales, const float* const bias,
                 float* const result, const size_t stride) {
  constexpr size_t PARTS_OF_4 = LANES / 4;
  const size_t inputs = blocks * BLOCK;
  const __m128i lowHalves = _mm_set1_epi8(15);
  float sums[TOKENS][LANES] = {};
  for (size_t block = 0; block < blocks; block++, weights += BLOCK_BYTES, scales += LANES) {
    __m128i whole[TOKENS][PARTS_OF_4];
    for (size_t t = 0; t < TOKENS; t++)
      for (size_t p = 0; p < PARTS_OF_4; p++) whole[t][p] = _mm_setzero_si128();
    const int8_t* const values = activations.values + block * BLOCK;
    for (size_t i = 0; i < 4; i++) {
      __m128i low[TOKENS], high[TOKENS];
      for (size_t t = 0; t < TOKENS; t++) {
        low[t] = _mm_set1_epi32(groupAt(values + t * inputs + 8 * i));
        high[t] = _mm_set1_epi32(groupAt(values + t * inputs + 8 * i + 4));
      }
      UNROLL for (size_t p = 0; p < PARTS_OF_4; p++) {
        const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 64 * i + 16 * p));
        const __m128i lows = _mm_and_si128(both, lowHalves), highs = _mm_and_si128(_mm_srli_epi16(both, 4), lowHalves);
        UNROLL for (size_t t = 0; t < TOKENS; t++) whole[t][p] =
            _mm_add_epi16(whole[t][p], _mm_add_epi16(_mm_maddubs_epi16(lows, low[t]), _mm_maddubs_epi16(highs, high[t])));
      }
    }
    UNROLL for (size_t t = 0; t < TOKENS; t++) {
      const __m128i correction = _mm_set1_epi32(activations.corrections[t * blocks + block]);
      const __m128 scale = _mm_set1_ps(activations.scales[t * blocks + block]);
      for (size_t p = 0; p < PARTS_OF_4; p++) {
        const __m128i exact = _mm_add_epi32(_mm_madd_epi16(whole[t][p], _mm_set1_epi16(1)), correction);
        float* const to = sums[t] + 4 * p;
        const __m128 scaled = _mm_mul_ps(_mm_cvtepi32_ps(exact), _mm_loadu_ps(scales + 4 * p));
        _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), _mm_mul_ps(scaled, scale)));
      }
    }
  }
  for (size_t t = 0; t < TOKENS; t++) store(result + t * stride, load(sums[t]) + load(bias));
}
