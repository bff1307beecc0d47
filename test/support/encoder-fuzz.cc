/**
 * Gives the encoder texts made up by chance, compiled with the sanitizers of the compiler: `encoder-fuzz SEED ROUNDS PATH BYTES …`, with path
 * and length of each file of weights. Ends with 1 and says why where a promise is broken; a sanitizer ends it where C++ is.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "encoder.h"

namespace {

std::mt19937_64 chance;

size_t below(const size_t limit) { return limit == 0 ? 0 : chance() % limit; }

[[noreturn]] void fail(const size_t round, const char* const what) {
  printf("round %zu: %s\n", round, what);
  exit(1);
}

struct Range {
  char16_t from;
  char16_t to;
};

/** Letters, marks and halves of pairs of which much composes, is replaced, or is unknown. */
constexpr Range RANGES[] = {{0, 0x7f},        {0x20, 0x20},     {0xa0, 0x17f},    {0x300, 0x36f},   {0x5d0, 0x6ff},   {0x900, 0xdff},
                            {0xe00, 0xeff},   {0x1100, 0x11ff}, {0x1e00, 0x1fff}, {0x2000, 0x206f}, {0x2460, 0x24ff}, {0x3040, 0x30ff},
                            {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0xd800, 0xdfff}, {0xe000, 0xf8ff}, {0xfb00, 0xfdff}, {0xff00, 0xffff}};

std::u16string madeUp() {
  const size_t length = below(50) == 0 ? below(20000) : below(200);
  const bool isAny = below(4) == 0;
  Range range = RANGES[0];
  std::u16string text;
  while (text.size() < length) {
    if (below(8) == 0) range = RANGES[below(sizeof RANGES / sizeof *RANGES)];
    const char16_t unit = static_cast<char16_t>(isAny ? below(0x10000) : range.from + below(range.to - range.from + 1));
    text.append(below(100) == 0 ? below(5000) : 1, unit);
  }
  return text;
}

void checkPieces(const size_t round, const Encoder& encoder, const std::u16string& text, const Kind kind) {
  uint32_t begin = 0;
  for (const Piece& piece : encoder.pieces(text)) {
    if (piece.begin < begin || piece.end < piece.begin || piece.end > text.size()) fail(round, "pieces are out of order");
    if (!std::isfinite(piece.cost) || piece.cost < 0) fail(round, "a piece has an impossible cost");
    begin = piece.begin;
  }
  if (encoder.tokens(text, kind).size() > TOKENS_MAX) fail(round, "there are more tokens than positions");
}

std::vector<float> encoded(Encoder& encoder, const std::u16string& text, const Kind kind) {
  std::optional<Encoder::Run> run = encoder.begin(text, kind);
  if (!run) return {};
  while (!run->step(encoder)) continue;
  std::vector<float> vector(WIDTH);
  run->result(encoder, vector.data());
  return vector;
}

void checkVector(const size_t round, const std::vector<float>& vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  if (!vector.empty() && std::fabs(squares - 1) > 1e-4) fail(round, "a vector has not length 1");
}

} // namespace

int main(const int count, char** const arguments) {
  chance.seed(strtoull(arguments[1], nullptr, 10));
  const size_t rounds = strtoull(arguments[2], nullptr, 10);
  std::vector<FilePart> parts;
  for (int i = 3; i + 1 < count; i += 2) parts.push_back({arguments[i], 0, strtoull(arguments[i + 1], nullptr, 10)});
  const std::shared_ptr<const Weights> weights = Weights::open(parts);
  std::vector<std::unique_ptr<Encoder>> encoders;
  for (const Kernels* const kernels : supportedKernels()) encoders.push_back(std::make_unique<Encoder>(weights, kernels));
  for (size_t round = 0; round < rounds; round++) {
    const Kind kind = below(2) == 0 ? Kind::query : Kind::passage;
    std::u16string text = madeUp();
    checkPieces(round, *encoders[0], text, kind);
    if (round % 8 != 0) continue;
    if (below(50) != 0) text.resize(std::min(text.size(), below(60)));
    const std::vector<float> vector = encoded(*encoders[0], text, kind);
    checkVector(round, vector);
    const std::vector<float> other = encoded(*encoders[below(encoders.size())], text, kind);
    const size_t bytes = vector.size() * sizeof(float);
    if (other.size() != vector.size() || (bytes > 0 && memcmp(other.data(), vector.data(), bytes) != 0)) fail(round, "kernels differ");
  }
  printf("%zu rounds\n", rounds);
}
