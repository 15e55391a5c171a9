#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace aimle::fuzz {
namespace {

size_t below(size_t n, Random& random) { return n == 0 ? 0 : random() % n; }

/// A length or an offset at its limits, or near the length of the file.
uint64_t extreme(size_t size, Random& random) {
  constexpr std::array<uint64_t, 10> kValues = {
      0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~uint64_t{0}};
  const size_t choice = below(kValues.size() + 2, random);
  if (choice < kValues.size()) return kValues[choice];
  return size + below(5, random) - 2;
}

void overwrite_number(std::string& bytes, size_t at, Random& random) {
  const size_t width = size_t{1} << below(4, random);
  const uint64_t value = extreme(bytes.size(), random);
  const bool big_endian = below(2, random) != 0;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    const size_t place = big_endian ? width - 1 - i : i;
    bytes[at + i] = static_cast<char>(value >> 8 * place & 255);
  }
}

/// The decimal number at or after `at`, made another one.
void replace_digits(std::string& bytes, size_t at, Random& random) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto first = std::find_if(bytes.begin() + static_cast<int64_t>(at), bytes.end(), is_digit);
  const auto last = std::find_if_not(first, bytes.end(), is_digit);
  if (first == last) return;
  const std::string number = std::to_string(extreme(bytes.size(), random));
  bytes.replace(first, last, below(4, random) == 0 ? "-" + number : number);
}

const std::string& any(const std::vector<std::string>& list, Random& random) {
  return list[below(list.size(), random)];
}

void edit(std::string& bytes, const std::vector<std::string>& pool,
          const std::vector<std::string>& words, Random& random) {
  const size_t at = below(bytes.size() + 1, random);
  const size_t length = below(std::min<size_t>(bytes.size() - at, 64) + 1, random);
  switch (below(14, random)) {
    case 0:
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8, random));
      break;
    case 2:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random());
      break;
    case 3:
    case 4:
      overwrite_number(bytes, at, random);
      break;
    case 5:
      replace_digits(bytes, at, random);
      break;
    case 6:
      bytes.resize(at);
      break;
    case 7:
      bytes.erase(at, length);
      break;
    case 8:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 9:
      bytes.insert(below(bytes.size() + 1, random), bytes.substr(at, length));
      break;
    case 10:
      bytes.insert(at, below(300, random), static_cast<char>(random()));
      break;
    case 11: {
      const std::string& other = any(pool, random);
      bytes.resize(at);
      bytes += other.substr(below(other.size() + 1, random));
      break;
    }
    case 12:
      if (!words.empty()) bytes.insert(at, any(words, random));
      break;
    default:
      if (!words.empty()) {
        const std::string& word = any(words, random);
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
      }
  }
}

}  // namespace

std::string mutated(std::string bytes, const std::vector<std::string>& pool,
                    const std::vector<std::string>& words, Random& random) {
  for (size_t edits = size_t{1} << below(4, random); edits > 0; --edits) {
    edit(bytes, pool, words, random);
  }
  if (bytes.size() > kMaxLength) bytes.resize(kMaxLength);
  return bytes;
}

}  // namespace aimle::fuzz
