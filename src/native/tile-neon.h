/** NEON, with the instruction for dot products where `DOT_PRODUCTS` is set. Without it, sums of 2 x 15 x 127 fit 16 bits. */

constexpr size_t TILE_TOKENS = 4;

template <size_t TOKENS>
INLINE void tile(const Quantised& activations, const size_t blocks, const uint8_t* weights, const float* scales, const float* const bias,
                 float* const result, const size_t stride) {
  constexpr size_t PARTS_OF_4 = LANES / 4;
  const size_t inputs = blocks * BLOCK;
  const uint8x16_t lowHalves = vdupq_n_u8(15);
  float sums[TOKENS][LANES] = {};
  for (size_t block = 0; block < blocks; block++, weights += BLOCK_BYTES, scales += LANES) {
    int32x4_t whole[TOKENS][PARTS_OF_4];
    for (size_t t = 0; t < TOKENS; t++)
      for (size_t p = 0; p < PARTS_OF_4; p++) whole[t][p] = vdupq_n_s32(activations.corrections[t * blocks + block]);
    const int8_t* const values = activations.values + block * BLOCK;
    for (size_t i = 0; i < 4; i++) {
      UNROLL for (size_t p = 0; p < PARTS_OF_4; p++) {
        const uint8x16_t both = vld1q_u8(weights + 64 * i + 16 * p);
        const int8x16_t lows = vreinterpretq_s8_u8(vandq_u8(both, lowHalves)), highs = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
        UNROLL for (size_t t = 0; t < TOKENS; t++) {
          const int8_t* const group = values + t * inputs + 8 * i;
          const int8x16_t low = vreinterpretq_s8_s32(vdupq_n_s32(groupAt(group)));
          const int8x16_t high = vreinterpretq_s8_s32(vdupq_n_s32(groupAt(group + 4)));
#ifdef DOT_PRODUCTS
          whole[t][p] = vdotq_s32(vdotq_s32(whole[t][p], lows, low), highs, high);
#else
          const int16x8_t first = vmlal_s8(vmull_s8(vget_low_s8(lows), vget_low_s8(low)), vget_low_s8(highs), vget_low_s8(high));
          const int16x8_t second = vmlal_s8(vmull_s8(vget_high_s8(lows), vget_high_s8(low)), vget_high_s8(highs), vget_high_s8(high));
          whole[t][p] = vaddq_s32(whole[t][p], vpaddq_s32(vpaddlq_s16(first), vpaddlq_s16(second)));
#endif
        }
      }
    }
    for (size_t t = 0; t < TOKENS; t++) {
      const float scale = activations.scales[t * blocks + block];
      for (size_t p = 0; p < PARTS_OF_4; p++) {
        float* const to = sums[t] + 4 * p;
        const float32x4_t scaled = vmulq_f32(vcvtq_f32_s32(whole[t][p]), vld1q_f32(scales + 4 * p));
        vst1q_f32(to, vaddq_f32(vld1q_f32(to), vmulq_n_f32(scaled, scale)));
      }
    }
  }
  for (size_t t = 0; t < TOKENS; t++) store(result + t * stride, load(sums[t]) + load(bias));
}
