/**
 * Cuts a text into the pieces that the network knows, as its own tokenizer does (SentencePiece, unigram).
 *
 * Characters are replaced by the table of the vocabulary (mostly compatibility forms: NFKC with exceptions), and what then composes is
 * composed. Runs of spaces are one; a word begins with `▁`. Of all ways to cut a word the one with the highest sum of scores (log p) is
 * taken (Viterbi). No piece goes beyond a word, so that each word is cut by itself. A run of unknown characters is one unknown piece.
 */
#pragma once

#include <vector>

#include "weights.h"

/** A piece, and the code units of the text that it stands for. Parts of a character that is replaced by several have all of its range. */
struct Piece {
  uint32_t begin;
  uint32_t end;
  uint32_t token;
  /** -log p. */
  float cost;
};

class Tokenizer {
public:
  explicit Tokenizer(const Weights& weights);

  /**
   * Cuts a text, well-formed or not.
   *
   * @param piecesMax - at most this many, of the beginning of the text
   */
  std::vector<Piece> cut(const char16_t* text, size_t length, size_t piecesMax) const;

  /** Checks whether a piece says something: it is neither unknown nor a mere beginning of a word. */
  bool isMeaningful(const Piece& piece) const { return piece.token != unknown_ && piece.token != wordBegin_; }

private:
  class Words;

  const Vocabulary vocabulary_;
  const uint32_t unknown_;
  uint32_t wordBegin_;
};
