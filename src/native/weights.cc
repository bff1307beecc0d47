#include "weights.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr char MAGIC[8] = {'c', 'a', 'i', 'r', 'n', 'e', 'n', 'c'};
constexpr uint32_t FORMAT = 1;
constexpr size_t TABLES = 11;
constexpr size_t SECTIONS_PER_LAYER = 14;
constexpr size_t SECTIONS = TABLES + LAYERS * SECTIONS_PER_LAYER;

/** The file begins with it; then come offset and length of each section. */
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t rows;
  uint32_t pieces;
  uint32_t beginToken;
  uint32_t endToken;
  uint32_t unknownToken;
  float unknownScore;
  uint32_t reserved;
  uint64_t bytes;
  /** Of all that follows. */
  uint64_t checksum;
};
static_assert(sizeof(Header) == 56, "as convert.py writes it");

struct Section {
  uint64_t offset;
  uint64_t bytes;
};

[[noreturn]] void fail(const FilePart& part, const std::string& what) {
  throw std::runtime_error("The weights of the built-in embedding cannot be used: " + part.path + " " + what);
}

/** Four sums side by side, since each step of one waits for the last. */
uint64_t checksum(const uint8_t* const bytes, const size_t count) {
  constexpr uint64_t FACTOR = 0x9e3779b97f4a7c15;
  uint64_t sums[4] = {1, 2, 3, 4};
  for (size_t at = 0; at + sizeof sums <= count; at += sizeof sums) {
    uint64_t words[4];
    memcpy(words, bytes + at, sizeof words);
    for (size_t lane = 0; lane < 4; lane++) {
      const uint64_t mixed = (sums[lane] ^ words[lane]) * FACTOR;
      sums[lane] = mixed ^ (mixed >> 32);
    }
  }
  uint64_t whole = 0;
  for (const uint64_t sum : sums) whole = (whole ^ sum) * FACTOR;
  return whole;
}

int openFile(const FilePart& part) {
  const int descriptor = open(part.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(part, std::string("could not be opened: ") + strerror(errno) + ".");
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || static_cast<uint64_t>(status.st_size) < part.offset ||
      static_cast<uint64_t>(status.st_size) - part.offset < part.bytes) {
    close(descriptor);
    fail(part, "is cut short: it should have " + std::to_string(part.bytes) + " bytes from byte " + std::to_string(part.offset) + " on.");
  }
  return descriptor;
}

/** Hands out the sections in the order in which convert.py writes them. */
class Sections {
public:
  Sections(const FilePart& part, const uint8_t* const file) : part_(part), file_(file) {
    memcpy(sections_, file + sizeof(Header), sizeof sections_);
  }

  template <typename Value>
  const Value* next(const size_t count) {
    const Section section = take();
    if (section.bytes != count * sizeof(Value)) fail(part_, "has a section of another length than its header says.");
    return reinterpret_cast<const Value*>(file_ + section.offset);
  }

  /** @param unit - bytes of one thing in it */
  template <typename Value>
  const Value* next(const size_t unit, size_t& count) {
    const Section section = take();
    if (section.bytes == 0 || section.bytes % unit != 0) fail(part_, "has a section of a length that is not possible.");
    count = section.bytes / unit;
    return reinterpret_cast<const Value*>(file_ + section.offset);
  }

private:
  const FilePart& part_;
  const uint8_t* const file_;
  Section sections_[SECTIONS];
  size_t taken_ = 0;

  Section take() {
    const Section section = sections_[taken_++];
    if (section.offset % 64 != 0 || section.offset > part_.bytes || section.bytes > part_.bytes - section.offset)
      fail(part_, "has a section outside of it.");
    return section;
  }
};

} // namespace

float halfToFloat(const uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  float value;
  if (exponent == 0) {
    constexpr float SMALLEST = 1.0f / (1 << 24);
    value = static_cast<float>(fraction) * SMALLEST;
    return sign == 0 ? value : -value;
  }
  const uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
  memcpy(&value, &bits, sizeof value);
  return value;
}

std::shared_ptr<const Weights> Weights::open(const std::vector<FilePart>& parts) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Weights>> known;
  std::string key;
  for (const FilePart& part : parts) key += part.path + '\0' + std::to_string(part.offset) + '\0' + std::to_string(part.bytes) + '\0';
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<const Weights> weights = known[key].lock();
  if (weights == nullptr) known[key] = weights = std::shared_ptr<const Weights>(new Weights(parts));
  return weights;
}

Weights::Weights(const std::vector<FilePart>& parts) {
  if (parts.size() < 2) throw std::runtime_error("The weights of the built-in embedding are a network and rows of tokens.");
  try {
    map(parts[0]);
    for (size_t i = 1; i < parts.size(); i++) openRows(parts[i]);
    readTables(parts[0]);
  } catch (...) {
    close();
    throw;
  }
}

Weights::~Weights() { close(); }

void Weights::close() {
  if (mapped_ != nullptr) munmap(mapped_, mappedBytes_);
  for (const RowFile& file : rowFiles_) ::close(file.descriptor);
}

void Weights::map(const FilePart& part) {
  if (part.offset % 64 != 0) fail(part, "does not begin at a multiple of 64 bytes.");
  const int descriptor = openFile(part);
  const uint64_t before = part.offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  mappedBytes_ = part.bytes + before;
  void* const mapped = mmap(nullptr, mappedBytes_, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(part.offset - before));
  const int error = errno;
  ::close(descriptor);
  if (mapped == MAP_FAILED) fail(part, std::string("could not be mapped: ") + strerror(error) + ".");
  mapped_ = mapped;
  network_ = static_cast<const uint8_t*>(mapped) + before;
}

void Weights::openRows(const FilePart& part) {
  if (part.bytes % ROW_BYTES != 0) fail(part, "has not as many bytes as some number of rows.");
  rowFiles_.push_back({part, openFile(part), static_cast<uint32_t>(part.bytes / ROW_BYTES)});
}

void Weights::readTables(const FilePart& part) {
  constexpr size_t HEAD_BYTES = sizeof(Header) + SECTIONS * sizeof(Section);
  Header header;
  if (part.bytes < HEAD_BYTES) fail(part, "is too short.");
  memcpy(&header, network_, sizeof header);
  if (memcmp(header.magic, MAGIC, sizeof MAGIC) != 0 || header.format != FORMAT) fail(part, "holds something else.");
  if (header.bytes != part.bytes) fail(part, "has another length than its header says.");
  if (header.checksum != checksum(network_ + sizeof header, part.bytes - sizeof header)) fail(part, "is damaged: it has another checksum.");
  uint64_t rows = 0;
  for (const RowFile& file : rowFiles_) rows += file.rows;
  if (rows != header.rows)
    fail(part, "is for " + std::to_string(header.rows) + " rows of tokens, and there are " + std::to_string(rows) + ".");

  beginToken = header.beginToken;
  endToken = header.endToken;
  unknownToken = header.unknownToken;
  Sections sections(part, network_);
  size_t count = 0;
  vocabulary.unknownScore = header.unknownScore;
  vocabulary.begins = sections.next<uint32_t>(header.pieces + 1);
  vocabulary.scores = sections.next<float>(header.pieces);
  vocabulary.rows = sections.next<uint32_t>(header.pieces);
  vocabulary.bytes = sections.next<char>(vocabulary.begins[header.pieces]);
  vocabulary.characters = sections.next<uint32_t>(2 * sizeof(uint32_t), count);
  vocabulary.characterCount = count - 1;
  vocabulary.replaced = sections.next<uint32_t>(sizeof(uint32_t), vocabulary.replacedCount);
  vocabulary.replacementBegins = sections.next<uint32_t>(vocabulary.replacedCount + 1);
  vocabulary.replacements = sections.next<uint32_t>(vocabulary.replacementBegins[vocabulary.replacedCount]);
  vocabulary.compositions = sections.next<uint32_t>(3 * sizeof(uint32_t), vocabulary.compositionCount);
  positions = sections.next<float>(TOKENS_MAX * WIDTH);
  embeddingNorm = sections.next<float>(2 * WIDTH);

  // The processors' kernels want scales of 32 bits; a file with those would be larger.
  constexpr size_t SCALES_PER_LAYER = (WIDTH * ATTENTION_WIDTH + WIDTH * WIDTH + 2 * WIDTH * INNER_WIDTH) / BLOCK;
  scales_ = alignedArray<float>(LAYERS * SCALES_PER_LAYER);
  float* scales = scales_.get();
  const auto matrix = [&](const size_t inputs, const size_t outputs) {
    Matrix made{sections.next<uint8_t>(inputs * outputs / 2), scales, nullptr, inputs, outputs};
    const size_t blocks = inputs * outputs / BLOCK;
    const uint16_t* const halves = sections.next<uint16_t>(blocks);
    for (size_t i = 0; i < blocks; i++) *scales++ = halfToFloat(halves[i]);
    made.bias = sections.next<float>(outputs);
    return made;
  };
  for (Layer& layer : layers) {
    layer.attention = matrix(WIDTH, ATTENTION_WIDTH);
    layer.joined = matrix(WIDTH, WIDTH);
    layer.attentionNorm = sections.next<float>(2 * WIDTH);
    layer.inner = matrix(WIDTH, INNER_WIDTH);
    layer.outer = matrix(INNER_WIDTH, WIDTH);
    layer.outputNorm = sections.next<float>(2 * WIDTH);
  }
}

void Weights::readRow(uint32_t token, uint8_t* const row) const {
  for (const RowFile& file : rowFiles_) {
    if (token >= file.rows) {
      token -= file.rows;
      continue;
    }
    const off_t at = static_cast<off_t>(file.part.offset + uint64_t{token} * ROW_BYTES);
    for (size_t have = 0; have < ROW_BYTES;) {
      const ssize_t read = pread(file.descriptor, row + have, ROW_BYTES - have, at + static_cast<off_t>(have));
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) fail(file.part, std::string("could not be read: ") + (read == 0 ? "it was cut short." : strerror(errno)));
      have += static_cast<size_t>(read);
    }
    return;
  }
  throw std::runtime_error("There is no token " + std::to_string(token) + ".");
}
