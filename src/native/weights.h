/**
 * The weights: files that are used where they lie, beside the source or inside the executable.
 *
 * `network.bin` is mapped, and nothing in it is parsed. The rows of tokens are read one at a time: a page fault maps the pages around
 * a row, too, and soon the whole table would count as memory of this process. `scripts/encoder/convert.py` describes and writes both.
 */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aligned.h"
#include "model.h"

/** A file, or a part of one. */
struct FilePart {
  std::string path;
  uint64_t offset;
  uint64_t bytes;
};

/** The vocabulary and how text is made ready for it: sorted tables. */
struct Vocabulary {
  /** Pieces in the order of their bytes: where each begins in `bytes`, and where the last one ends. */
  const uint32_t* begins;
  const float* scores;
  /** The row of each piece among the rows of tokens. */
  const uint32_t* rows;
  const char* bytes;
  /** By first character of a piece: the character, and the first such piece; behind the last one the number of pieces. */
  const uint32_t* characters;
  size_t characterCount;
  /** Characters that are replaced, where the replacement of each begins in `replacements`, and where the last one ends. */
  const uint32_t* replaced;
  const uint32_t* replacementBegins;
  const uint32_t* replacements;
  size_t replacedCount;
  /** Two characters and the one that they compose. */
  const uint32_t* compositions;
  size_t compositionCount;
  /** Score of an unknown character. */
  float unknownScore;
};

class Weights {
public:
  /**
   * Opens the weights, or returns those that another thread has open.
   *
   * @param parts - the network, then the rows of tokens in their order
   * @throws std::runtime_error naming the file that is missing, cut short or damaged
   */
  static std::shared_ptr<const Weights> open(const std::vector<FilePart>& parts);

  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  Vocabulary vocabulary{};
  uint32_t beginToken = 0;
  uint32_t endToken = 0;
  uint32_t unknownToken = 0;
  /** `TOKENS_MAX` rows. */
  const float* positions = nullptr;
  const float* embeddingNorm = nullptr;
  Layer layers[LAYERS] = {};

  /** Bytes of the row of a token: 4-bit values as in a block, low halves first, then a scale of 16 bits for each block. */
  static constexpr size_t ROW_BYTES = WIDTH / 2 + 2 * (WIDTH / BLOCK);

  /** @throws std::runtime_error when it cannot be read */
  void readRow(uint32_t token, uint8_t* row) const;

private:
  struct RowFile {
    FilePart part;
    int descriptor;
    uint32_t rows;
  };

  explicit Weights(const std::vector<FilePart>& parts);
  void close();
  void map(const FilePart& part);
  void readTables(const FilePart& part);
  void openRows(const FilePart& part);

  const uint8_t* network_ = nullptr;
  void* mapped_ = nullptr;
  size_t mappedBytes_ = 0;
  Aligned<float> scales_;
  std::vector<RowFile> rowFiles_;
};

/** The value of a number of 16 bits, exactly. */
float halfToFloat(uint16_t half);
