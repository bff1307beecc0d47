#include "tokenizer.h"

#include <algorithm>
#include <limits>

namespace {

/** `▁` */
constexpr uint32_t WORD_BEGIN = 0x2581;
constexpr uint32_t SPACE = ' ';
constexpr uint32_t REPLACEMENT = 0xfffd;
/** Nothing below composes with what stands before it. */
constexpr uint32_t FIRST_COMBINING = 0x300;
/** Longer words are cut here, whatever stands there: it bounds the memory that a text can take. */
constexpr size_t WORD_CHARACTERS_MAX = 4096;

struct Character {
  uint32_t code;
  uint32_t begin;
  uint32_t end;
};

/** @returns the character at a place, and moves that on; a surrogate without its other half is U+FFFD */
uint32_t characterAt(const char16_t* const text, const size_t length, size_t& at) {
  const uint32_t unit = text[at++];
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  if (unit > 0xdbff || at == length || text[at] < 0xdc00 || text[at] > 0xdfff) return REPLACEMENT;
  return 0x10000 + ((unit - 0xd800) << 10) + (text[at++] - 0xdc00u);
}

/** Appends a character as UTF-8. */
void append(std::vector<uint8_t>& bytes, const uint32_t code) {
  const auto continuing = [&](const int shift) { bytes.push_back(static_cast<uint8_t>(0x80 | (code >> shift & 63))); };
  if (code < 0x80) return bytes.push_back(static_cast<uint8_t>(code));
  if (code < 0x800) {
    bytes.push_back(static_cast<uint8_t>(0xc0 | code >> 6));
  } else {
    if (code < 0x10000) {
      bytes.push_back(static_cast<uint8_t>(0xe0 | code >> 12));
    } else {
      bytes.push_back(static_cast<uint8_t>(0xf0 | code >> 18));
      continuing(12);
    }
    continuing(6);
  }
  continuing(0);
}

/** @returns the composition of two characters; 0 when there is none */
uint32_t composed(const Vocabulary& vocabulary, const uint32_t first, const uint32_t second) {
  // Hangul is computed: 19 initial consonants, 21 vowels, 27 final consonants.
  constexpr uint32_t INITIAL = 0x1100, VOWEL = 0x1161, FINAL = 0x11a7, SYLLABLE = 0xac00;
  if (first - INITIAL < 19 && second - VOWEL < 21) return SYLLABLE + ((first - INITIAL) * 21 + (second - VOWEL)) * 28;
  if (first - SYLLABLE < 19 * 21 * 28 && (first - SYLLABLE) % 28 == 0 && second - FINAL - 1 < 27) return first + (second - FINAL);
  size_t from = 0, to = vocabulary.compositionCount;
  while (from < to) {
    const size_t middle = (from + to) / 2;
    const uint32_t* const pair = vocabulary.compositions + 3 * middle;
    if (pair[0] < first || (pair[0] == first && pair[1] < second)) from = middle + 1;
    else to = middle;
  }
  const uint32_t* const pair = vocabulary.compositions + 3 * from;
  return from < vocabulary.compositionCount && pair[0] == first && pair[1] == second ? pair[2] : 0;
}

/** Pieces that begin with the same bytes: a range of the vocabulary, which is sorted by bytes. */
class Prefix {
public:
  Prefix(const Vocabulary& vocabulary, const uint32_t character) : vocabulary_(vocabulary) {
    const uint32_t* const characters = vocabulary.characters;
    size_t from = 0, to = vocabulary.characterCount;
    while (from < to) {
      const size_t middle = (from + to) / 2;
      if (characters[2 * middle] < character) from = middle + 1;
      else to = middle;
    }
    if (from == vocabulary.characterCount || characters[2 * from] != character) return;
    from_ = characters[2 * from + 1];
    to_ = characters[2 * from + 3];
  }

  bool isEmpty() const { return from_ == to_; }

  /** The piece that is no longer than the prefix, which is the first one; taken out of the range. @returns whether there is one */
  bool takeWhole(const uint32_t bytes, uint32_t& piece) {
    if (isEmpty() || lengthOf(from_) != bytes) return false;
    piece = from_++;
    return true;
  }

  /** Keeps the pieces with this byte at a place; all of them are longer. */
  void narrow(const uint32_t at, const uint8_t byte) {
    if (isEmpty()) return;
    from_ = firstNotBelow(at, byte);
    // Ranges are mostly short by now: the end is looked for from their beginning, in steps that double.
    uint32_t step = 1, low = from_;
    while (low < to_ && step < to_ - low && byteOf(low + step - 1, at) <= byte) {
      low += step;
      step *= 2;
    }
    uint32_t high = step < to_ - low ? low + step : to_;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (byteOf(middle, at) <= byte) low = middle + 1;
      else high = middle;
    }
    to_ = low;
  }

private:
  const Vocabulary& vocabulary_;
  uint32_t from_ = 0;
  uint32_t to_ = 0;

  uint32_t lengthOf(const uint32_t piece) const { return vocabulary_.begins[piece + 1] - vocabulary_.begins[piece]; }
  uint8_t byteOf(const uint32_t piece, const uint32_t at) const {
    return static_cast<uint8_t>(vocabulary_.bytes[vocabulary_.begins[piece] + at]);
  }

  uint32_t firstNotBelow(const uint32_t at, const uint8_t byte) const {
    uint32_t low = from_, high = to_;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (byteOf(middle, at) < byte) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

} // namespace

/** Collects the characters of a word, and cuts it when it ends. */
class Tokenizer::Words {
public:
  Words(const Vocabulary& vocabulary, const uint32_t unknown, const size_t piecesMax)
      : vocabulary_(vocabulary), unknown_(unknown), piecesMax_(piecesMax) {}

  /** Adds a character that has been replaced already. */
  void add(const Character& character) {
    if (character.code == SPACE) return end();
    if (!isInside_) {
      word_.push_back({WORD_BEGIN, character.begin, character.begin});
      isInside_ = true;
    } else if (character.code >= FIRST_COMBINING && !word_.empty()) {
      Character& last = word_.back();
      if (const uint32_t code = composed(vocabulary_, last.code, character.code)) {
        last = {code, last.begin, character.end};
        return;
      }
    }
    if (word_.size() == WORD_CHARACTERS_MAX) cut();
    word_.push_back(character);
  }

  void end() {
    cut();
    isInside_ = false;
  }

  bool isFull() const { return pieces_.size() >= piecesMax_; }

  std::vector<Piece> take() {
    if (isFull()) pieces_.resize(piecesMax_);
    return std::move(pieces_);
  }

private:
  /** The best way to cut the characters before a place: its score, and the last piece with where that begins. */
  struct Best {
    double score;
    uint32_t piece;
    uint32_t from;
  };

  static constexpr uint32_t NO_PIECE = std::numeric_limits<uint32_t>::max();

  const Vocabulary& vocabulary_;
  const uint32_t unknown_;
  const size_t piecesMax_;
  std::vector<Piece> pieces_;
  /** True if a word has begun, of which some may have been cut already. */
  bool isInside_ = false;
  std::vector<Character> word_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> begins_;
  std::vector<Best> best_;

  void cut() {
    if (word_.empty()) return;
    const uint32_t count = static_cast<uint32_t>(word_.size());
    bytes_.clear();
    begins_.clear();
    for (const Character& character : word_) {
      begins_.push_back(static_cast<uint32_t>(bytes_.size()));
      append(bytes_, character.code);
    }
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    best_.assign(count + 1, {-std::numeric_limits<double>::infinity(), NO_PIECE, 0});
    best_[0].score = 0;
    for (uint32_t from = 0; from < count; from++) {
      addKnown(from);
      improve(from + 1, {best_[from].score + double{vocabulary_.unknownScore}, NO_PIECE, from});
    }
    appendPieces(count);
    word_.clear();
  }

  /** Tries every known piece that begins at a character. */
  void addKnown(const uint32_t from) {
    const uint32_t count = static_cast<uint32_t>(word_.size());
    Prefix prefix(vocabulary_, word_[from].code);
    for (uint32_t to = from + 1; !prefix.isEmpty(); to++) {
      uint32_t bytes = begins_[to] - begins_[from];
      uint32_t piece;
      if (prefix.takeWhole(bytes, piece)) improve(to, {best_[from].score + double{vocabulary_.scores[piece]}, piece, from});
      if (to == count) return;
      for (const uint32_t end = begins_[to + 1] - begins_[from]; bytes < end && !prefix.isEmpty(); bytes++) {
        // Between two bytes of a character no piece ends.
        prefix.narrow(bytes, bytes_[begins_[from] + bytes]);
      }
    }
  }

  void improve(const uint32_t to, const Best& candidate) {
    if (candidate.score > best_[to].score) best_[to] = candidate;
  }

  void appendPieces(const uint32_t count) {
    const size_t before = pieces_.size();
    for (uint32_t to = count; to > 0; to = best_[to].from) {
      const auto [score, piece, from] = best_[to];
      const bool isKnown = piece != NO_PIECE;
      const uint32_t token = isKnown ? vocabulary_.rows[piece] : unknown_;
      const float cost = isKnown ? -vocabulary_.scores[piece] : -vocabulary_.unknownScore;
      if (token == unknown_ && pieces_.size() > before && pieces_.back().token == unknown_) pieces_.back().begin = word_[from].begin;
      else pieces_.push_back({word_[from].begin, word_[to - 1].end, token, cost});
    }
    std::reverse(pieces_.begin() + static_cast<std::ptrdiff_t>(before), pieces_.end());
    // The rest of a long word may continue what was unknown.
    if (before == 0 || pieces_[before - 1].token != unknown_ || pieces_[before].token != unknown_) return;
    pieces_[before - 1].end = pieces_[before].end;
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(before));
  }
};

Tokenizer::Tokenizer(const Weights& weights) : vocabulary_(weights.vocabulary), unknown_(weights.unknownToken), wordBegin_(unknown_) {
  Prefix prefix(vocabulary_, WORD_BEGIN);
  uint32_t piece;
  if (prefix.takeWhole(3, piece)) wordBegin_ = vocabulary_.rows[piece];
}

std::vector<Piece> Tokenizer::cut(const char16_t* const text, const size_t length, const size_t piecesMax) const {
  Words words(vocabulary_, unknown_, piecesMax);
  const uint32_t* const replaced = vocabulary_.replaced;
  const uint32_t* const replacedEnd = replaced + vocabulary_.replacedCount;
  for (size_t at = 0; at < length && !words.isFull();) {
    const uint32_t begin = static_cast<uint32_t>(at);
    const uint32_t code = characterAt(text, length, at);
    const uint32_t end = static_cast<uint32_t>(at);
    const uint32_t* const found = std::lower_bound(replaced, replacedEnd, code);
    if (found == replacedEnd || *found != code) {
      words.add({code, begin, end});
      continue;
    }
    const uint32_t* const replacement = vocabulary_.replacementBegins + (found - replaced);
    for (uint32_t i = replacement[0]; i < replacement[1]; i++) words.add({vocabulary_.replacements[i], begin, end});
  }
  if (!words.isFull()) words.end();
  return words.take();
}
