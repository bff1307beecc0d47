/** No instruction of any processor: what the others compute, as plainly as it can be said. */

constexpr size_t TILE_TOKENS = 1;

template <size_t TOKENS>
INLINE void tile(const Quantised& activations, const size_t blocks, const uint8_t* weights, const float* scales, const float* const bias,
                 float* const result, const size_t) {
  float sums[LANES] = {};
  for (size_t block = 0; block < blocks; block++, weights += BLOCK_BYTES, scales += LANES) {
    const int8_t* const values = activations.values + block * BLOCK;
    int32_t whole[LANES];
    for (size_t output = 0; output < LANES; output++) {
      whole[output] = activations.corrections[block];
      for (size_t i = 0; i < 4; i++)
        for (size_t input = 0; input < 4; input++) {
          const uint8_t both = weights[64 * i + 4 * output + input];
          whole[output] += (both & 15) * values[8 * i + input] + (both >> 4) * values[8 * i + 4 + input];
        }
    }
    for (size_t output = 0; output < LANES; output++)
      sums[output] += static_cast<float>(whole[output]) * scales[output] * activations.scales[block];
  }
  for (size_t output = 0; output < LANES; output++) result[output] = sums[output] + bias[output];
}
