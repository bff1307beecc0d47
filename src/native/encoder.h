/**
 * The built-in embedding: a text to a vector, on the calling thread, a layer at a time where that is wanted.
 *
 * Weights are shared by all threads. An `Encoder` has scratch memory besides, and belongs to one thread; its runs take turns with that.
 */
#pragma once

#include <optional>
#include <string_view>

#include "kernels.h"
#include "tokenizer.h"

/** The model was trained with a mark before each text. */
enum class Kind { query, passage };

class Encoder {
public:
  /** @param kernels - null: the best ones for this processor */
  Encoder(std::shared_ptr<const Weights> weights, const Kernels* kernels);

  /** A text on its way through the layers. */
  class Run {
  public:
    /** Goes through the next layer. @returns whether it was the last one */
    bool step(Encoder& encoder);
    bool isDone() const { return layer_ == LAYERS; }
    /** @param vector - `WIDTH` floats, of length 1 */
    void result(const Encoder& encoder, float* vector) const;

  private:
    friend class Encoder;
    size_t tokens_ = 0;
    size_t layer_ = 0;
    Aligned<float> rows_;
    /** Weight of each token in the vector. */
    std::vector<float> weights_;
  };

  /** @returns nothing where a text has no meaningful piece */
  std::optional<Run> begin(std::u16string_view text, Kind kind) const;

  /** All pieces of a text. */
  std::vector<Piece> pieces(std::u16string_view text) const;

  /** The tokens that the network gets for a text, with those that it gets for any. */
  std::vector<uint32_t> tokens(std::u16string_view text, Kind kind) const;

  const Kernels& kernels() const { return *kernels_; }

private:
  struct Scratch {
    size_t tokens = 0;
    Aligned<float> wide;
    Aligned<float> narrow;
    Aligned<float> attention;
    Aligned<int8_t> values;
    Aligned<float> scales;
    Aligned<int32_t> corrections;

    void makeRoom(size_t wanted);
  };

  const std::shared_ptr<const Weights> weights_;
  const Tokenizer tokenizer_;
  const Kernels* const kernels_;
  std::vector<uint32_t> queryMark_;
  std::vector<uint32_t> passageMark_;
  Scratch scratch_;

  std::vector<uint32_t> markOf(std::u16string_view mark) const;
  std::vector<uint32_t> framed(const std::vector<Piece>& pieces, Kind kind) const;
  std::vector<float> weightsOf(const std::vector<Piece>& pieces, Kind kind) const;
  size_t piecesMax(Kind kind) const;
  const std::vector<uint32_t>& mark(Kind kind) const { return kind == Kind::query ? queryMark_ : passageMark_; }
  void readRow(uint32_t token, size_t position, float* row) const;
  void passLayer(const Layer& layer, float* rows, size_t tokens);
};
