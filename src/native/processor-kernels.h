/**
 * The kernels of one kind of processor: included once for each inside a namespace of its own, under a pragma that lets the compiler use
 * its instructions. `VECTOR_BYTES` is the width of its registers; `TILE` names the file with its matrix product.
 */

typedef float Vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t Bits __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
constexpr size_t PARTS = LANES * sizeof(float) / VECTOR_BYTES;
constexpr size_t PART_LANES = LANES / PARTS;

/** `LANES` floats, in as many registers as it takes. */
struct Lanes {
  Vector part[PARTS];
};

INLINE Lanes load(const float* const from) {
  Lanes lanes;
  for (size_t i = 0; i < PARTS; i++) lanes.part[i] = *reinterpret_cast<const Vector*>(from + i * PART_LANES);
  return lanes;
}

INLINE void store(float* const to, const Lanes& lanes) {
  for (size_t i = 0; i < PARTS; i++) *reinterpret_cast<Vector*>(to + i * PART_LANES) = lanes.part[i];
}

INLINE Lanes operator+(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] += b.part[i];
  return a;
}

INLINE Lanes operator*(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] *= b.part[i];
  return a;
}

INLINE Lanes operator/(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] /= b.part[i];
  return a;
}

INLINE Lanes operator+(Lanes a, const float b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] += b;
  return a;
}

INLINE Lanes operator-(Lanes a, const float b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] -= b;
  return a;
}

INLINE Lanes operator*(Lanes a, const float b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] *= b;
  return a;
}

INLINE Lanes larger(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < PARTS; i++) a.part[i] = b.part[i] > a.part[i] ? b.part[i] : a.part[i];
  return a;
}

INLINE Lanes clamped(Lanes a, const float low, const float high) {
  for (size_t i = 0; i < PARTS; i++) {
    const Vector lowest = Vector{} + low, highest = Vector{} + high;
    a.part[i] = a.part[i] < lowest ? lowest : a.part[i];
    a.part[i] = a.part[i] > highest ? highest : a.part[i];
  }
  return a;
}

INLINE float sum(const Lanes& lanes) {
  float sums[LANES];
  store(sums, lanes);
  for (size_t half = LANES / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; i++) sums[i] += sums[i + half];
  return sums[0];
}

INLINE float largest(const Lanes& lanes) {
  float values[LANES];
  store(values, lanes);
  float most = values[0];
  for (size_t i = 1; i < LANES; i++) most = values[i] > most ? values[i] : most;
  return most;
}

/** Added to a small number it leaves the nearest integer in the low bits. */
constexpr float ROUNDING = 12582912.0f;
constexpr uint32_t ROUNDING_BITS = 0x4b400000;

/** e^x for x <= 0, with an error of 1e-7: 2^n from the exponent, the rest by a polynomial, ln 2 in two parts (Cephes). */
INLINE Lanes exponential(const Lanes& values) {
  const Lanes x = clamped(values, -87.0f, 0.0f);
  const Lanes shifted = x * 1.44269504f + ROUNDING;
  const Lanes n = shifted - ROUNDING;
  const Lanes rest = x + n * -0.693359375f + n * 2.12194440e-4f;
  Lanes power = rest * 1.9875691e-4f + 1.3981999e-3f;
  power = power * rest + 8.3334519e-3f;
  power = power * rest + 4.1665796e-2f;
  power = power * rest + 1.6666665e-1f;
  power = power * rest + 5.0000001e-1f;
  power = power * (rest * rest) + rest + 1.0f;
  for (size_t i = 0; i < PARTS; i++) {
    const Bits exponent = reinterpret_cast<const Bits&>(shifted.part[i]) - ROUNDING_BITS;
    const Bits scaled = reinterpret_cast<const Bits&>(power.part[i]) + (exponent << 23);
    power.part[i] = reinterpret_cast<const Vector&>(scaled);
  }
  return power;
}

/** x (1 + erf(x / sqrt 2)) / 2, with an error of 2e-7: the odd part as a quotient of polynomials, constant beyond 5. */
INLINE Lanes geluOf(const Lanes& x) {
  const Lanes c = clamped(x, -5.0f, 5.0f);
  const Lanes square = c * c;
  Lanes above = square * -1.41102427e-08f + 4.40911315e-06f;
  above = above * square + 0.000330362322f;
  above = above * square + 0.00554872938f;
  above = above * square + 0.0525753396f;
  above = above * square + 0.398941955f;
  Lanes below = square * 0.000110734158f + 0.00277745291f;
  below = below * square + 0.0386603488f;
  below = below * square + 0.298448038f;
  below = below * square + 1.0f;
  return x * (c * above / below + 0.5f);
}

static void gelu(float* const values, const size_t count) {
  for (size_t i = 0; i < count; i += LANES) store(values + i, geluOf(load(values + i)));
}

static void normalise(float* const rows, const float* const added, const float* const norm, const size_t tokens) {
  for (size_t token = 0; token < tokens; token++) {
    float* const row = rows + token * WIDTH;
    Lanes total{}, squares{};
    for (size_t i = 0; i < WIDTH; i += LANES) {
      Lanes values = load(row + i);
      if (added != nullptr) values = values + load(added + token * WIDTH + i);
      store(row + i, values);
      total = total + values;
    }
    const float mean = sum(total) / static_cast<float>(WIDTH);
    for (size_t i = 0; i < WIDTH; i += LANES) {
      const Lanes difference = load(row + i) - mean;
      squares = squares + difference * difference;
    }
    constexpr float EPSILON = 1e-12f;
    const float factor = 1.0f / sqrtf(sum(squares) / static_cast<float>(WIDTH) + EPSILON);
    for (size_t i = 0; i < WIDTH; i += LANES) store(row + i, (load(row + i) - mean) * factor * load(norm + i) + load(norm + WIDTH + i));
  }
}

static void pool(const float* const rows, const float* const weights, const size_t tokens, float* const vector) {
  Lanes squares{};
  for (size_t i = 0; i < WIDTH; i += LANES) {
    Lanes total{};
    for (size_t token = 0; token < tokens; token++) total = total + load(rows + token * WIDTH + i) * weights[token];
    store(vector + i, total);
    squares = squares + total * total;
  }
  const float factor = 1.0f / sqrtf(sum(squares));
  for (size_t i = 0; i < WIDTH; i += LANES) store(vector + i, load(vector + i) * factor);
}

static int32_t product(const int8_t* const numbers, const int16_t* const query, const size_t count) {
  // Unsigned, so that damaged numbers overflow without harm.
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += static_cast<uint32_t>(numbers[i] * query[i]);
  return static_cast<int32_t>(sum);
}

static void quantise(const float* const values, const size_t count, const Quantised& quantised) {
  constexpr float MOST = 127.0f;
  // Of a block of zeros: any factor gives zeros, if it is finite.
  constexpr float LEAST = 1e-20f;
  for (size_t block = 0; block < count / BLOCK; block++) {
    const float* const from = values + block * BLOCK;
    Lanes most{};
    for (size_t i = 0; i < BLOCK; i += LANES) most = larger(larger(most, load(from + i)), load(from + i) * -1.0f);
    float extreme = largest(most);
    extreme = extreme > LEAST ? extreme : LEAST;
    const float factor = MOST / extreme;
    quantised.scales[block] = extreme / MOST;
    int32_t total = 0;
    int32_t whole[BLOCK];
    for (size_t i = 0; i < BLOCK; i += LANES) {
      const Lanes rounded = load(from + i) * factor + ROUNDING;
      memcpy(whole + i, &rounded, sizeof rounded);
    }
    int8_t* const to = quantised.values + block * BLOCK;
    for (size_t i = 0; i < BLOCK; i++) {
      const int32_t value = static_cast<int32_t>(static_cast<uint32_t>(whole[i]) - ROUNDING_BITS);
      total += value;
      to[i] = static_cast<int8_t>(value);
    }
    quantised.corrections[block] = total * -WEIGHT_OFFSET;
  }
}

/** A group of four activations, as instructions of the processor multiply them with the weights of an output. */
INLINE int32_t groupAt(const int8_t* const values) {
  int32_t group;
  memcpy(&group, values, sizeof group);
  return group;
}

#include TILE

template <size_t TOKENS>
static void tileOf(const Matrix& matrix, const Quantised& activations, size_t tokens, size_t token, size_t output, float* result) {
  if constexpr (TOKENS > 1) {
    if (tokens < TOKENS) return tileOf<TOKENS - 1>(matrix, activations, tokens, token, output, result);
  }
  const size_t blocks = matrix.inputs / BLOCK;
  const Quantised own{activations.values + token * matrix.inputs, activations.scales + token * blocks,
                      activations.corrections + token * blocks};
  const uint8_t* const weights = matrix.weights + output / LANES * blocks * BLOCK_BYTES;
  const float* const scales = matrix.scales + output / LANES * blocks * LANES;
  tile<TOKENS>(own, blocks, weights, scales, matrix.bias + output, result + token * matrix.outputs + output, matrix.outputs);
}

static void multiply(const Matrix& matrix, const Quantised& activations, const size_t tokens, float* const result) {
  const size_t groups = (tokens + TILE_TOKENS - 1) / TILE_TOKENS;
  for (size_t output = 0; output < matrix.outputs; output += LANES) {
    size_t token = 0;
    for (size_t group = 0; group < groups; group++) {
      // Groups of nearly the same size: each reads all weights of these outputs.
      const size_t size = (tokens - token + groups - group - 1) / (groups - group);
      tileOf<TILE_TOKENS>(matrix, activations, size, token, output, result);
      token += size;
    }
  }
}

/** Columns of keys, so that a load has the same number of `LANES` keys. */
INLINE void transposeKeys(const float* const keys, const size_t tokens, const size_t padded, float* const columns) {
  for (size_t i = 0; i < HEAD_WIDTH; i++) {
    float* const column = columns + i * padded;
    for (size_t token = 0; token < tokens; token++) column[token] = keys[token * ATTENTION_WIDTH + i];
    for (size_t token = tokens; token < padded; token++) column[token] = 0;
  }
}

/** In place: e to the power of each over the largest. @returns one over their sum */
static float softmax(float* const scores, const size_t tokens, const size_t padded) {
  for (size_t i = tokens; i < padded; i++) scores[i] = scores[0];
  Lanes most = load(scores);
  for (size_t i = LANES; i < padded; i += LANES) most = larger(most, load(scores + i));
  const float top = largest(most);
  for (size_t i = 0; i < padded; i += LANES) store(scores + i, exponential(load(scores + i) - top));
  for (size_t i = tokens; i < padded; i++) scores[i] = 0;
  Lanes total{};
  for (size_t i = 0; i < padded; i += LANES) total = total + load(scores + i);
  return 1.0f / sum(total);
}

static void attendHead(const float* const queries, const size_t tokens, float* const result, float* const columns, float* const scores) {
  const float* const keys = queries + WIDTH;
  const float* const values = keys + WIDTH;
  const size_t padded = roundedToLanes(tokens);
  constexpr float SCALE = 0.17677669529f; // 1 / sqrt(HEAD_WIDTH)
  transposeKeys(keys, tokens, padded, columns);
  for (size_t first = 0; first < tokens; first += QUERIES) {
    const size_t count = std::min(QUERIES, tokens - first);
    float query[QUERIES][HEAD_WIDTH];
    for (size_t q = 0; q < QUERIES; q++) {
      const float* const from = queries + (first + std::min(q, count - 1)) * ATTENTION_WIDTH;
      for (size_t i = 0; i < HEAD_WIDTH; i++) query[q][i] = from[i] * SCALE;
    }
    for (size_t key = 0; key < padded; key += LANES) {
      Lanes dots[QUERIES] = {};
      for (size_t i = 0; i < HEAD_WIDTH; i++) {
        const Lanes column = load(columns + i * padded + key);
        for (size_t q = 0; q < QUERIES; q++) dots[q] = dots[q] + column * query[q][i];
      }
      for (size_t q = 0; q < QUERIES; q++) store(scores + q * padded + key, dots[q]);
    }
    float factors[QUERIES];
    for (size_t q = 0; q < QUERIES; q++) factors[q] = softmax(scores + q * padded, tokens, padded);
    Lanes low[QUERIES] = {}, high[QUERIES] = {};
    for (size_t token = 0; token < tokens; token++) {
      const Lanes lowValues = load(values + token * ATTENTION_WIDTH), highValues = load(values + token * ATTENTION_WIDTH + LANES);
      for (size_t q = 0; q < QUERIES; q++) {
        const float weight = scores[q * padded + token];
        low[q] = low[q] + lowValues * weight;
        high[q] = high[q] + highValues * weight;
      }
    }
    for (size_t q = 0; q < count; q++) {
      float* const to = result + (first + q) * WIDTH;
      store(to, low[q] * factors[q]);
      store(to + LANES, high[q] * factors[q]);
    }
  }
}

static void attend(const float* const queriesKeysValues, const size_t tokens, float* const result, float* const scratch) {
  static_assert(HEAD_WIDTH == 2 * LANES, "a head is two loads");
  float* const scores = scratch + HEAD_WIDTH * roundedToLanes(tokens);
  for (size_t head = 0; head < HEADS; head++)
    attendHead(queriesKeysValues + head * HEAD_WIDTH, tokens, result + head * HEAD_WIDTH, scratch, scores);
}
