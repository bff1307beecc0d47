/** AVX512-VNNI: a register has four weights of each output. Two sets of sums and the weights fill the 32 registers. */

constexpr size_t TILE_TOKENS = 12;

template <size_t TOKENS>
INLINE void tile(const Quantised& activations, const size_t blocks, const uint8_t* weights, const float* scales, const float* const bias,
                 float* const result, const size_t stride) {
  const size_t inputs = blocks * BLOCK;
  const __m512i lowHalves = _mm512_set1_epi8(15);
  __m512 sums[TOKENS];
  for (size_t t = 0; t < TOKENS; t++) sums[t] = _mm512_setzero_ps();
  for (size_t block = 0; block < blocks; block++, weights += BLOCK_BYTES, scales += LANES) {
    __m512i whole[TOKENS];
    UNROLL for (size_t t = 0; t < TOKENS; t++) whole[t] = _mm512_set1_epi32(activations.corrections[t * blocks + block]);
    const int8_t* const values = activations.values + block * BLOCK;
    for (size_t i = 0; i < 4; i++) {
      const __m512i both = _mm512_loadu_si512(weights + 64 * i);
      const __m512i low = _mm512_and_si512(both, lowHalves), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), lowHalves);
      UNROLL for (size_t t = 0; t < TOKENS; t++) {
        const int8_t* const group = values + t * inputs + 8 * i;
        whole[t] = _mm512_dpbusd_epi32(whole[t], low, _mm512_set1_epi32(groupAt(group)));
        whole[t] = _mm512_dpbusd_epi32(whole[t], high, _mm512_set1_epi32(groupAt(group + 4)));
      }
    }
    const __m512 scale = _mm512_loadu_ps(scales);
    UNROLL for (size_t t = 0; t < TOKENS; t++) {
      const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(whole[t]), scale);
      sums[t] = _mm512_add_ps(sums[t], _mm512_mul_ps(scaled, _mm512_set1_ps(activations.scales[t * blocks + block])));
    }
  }
  for (size_t t = 0; t < TOKENS; t++) _mm512_storeu_ps(result + t * stride, _mm512_add_ps(sums[t], _mm512_loadu_ps(bias)));
}
