#include "tests/fuzz/coverage.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

extern "C" char __executable_start;  // NOLINT: the linker's name

namespace aimle::fuzz {
namespace {

constexpr std::size_t kCells = std::size_t{1} << 14;

std::array<uint8_t, kCells> counts;  // of the input that runs
std::array<uint8_t, kCells> seen;    // a bit for every power of two that was counted
uintptr_t previous;

}  // namespace

void forget_branches() {
  counts.fill(0);
  seen.fill(0);
}

bool reached_new_branches() {
  bool is_new = false;
  for (std::size_t i = 0; i < kCells; ++i) {
    if (counts[i] == 0) continue;
    const auto bit = static_cast<uint8_t>(1 << (std::bit_width(counts[i]) - 1));
    is_new |= (seen[i] & bit) == 0;
    seen[i] |= bit;
    counts[i] = 0;
  }
  previous = 0;
  return is_new;
}

int reached_in_all() {
  int cells = 0;
  for (const uint8_t bits : seen) cells += bits != 0;
  return cells;
}

extern "C" void __sanitizer_cov_trace_pc() {  // NOLINT: the compiler's name
  // Addresses within the program, the same in every run of it.
  const uintptr_t place = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) -
                          reinterpret_cast<uintptr_t>(&__executable_start);
  uint8_t& count = counts[(place * 0x9e3779b97f4a7c15 >> 40 ^ previous) % kCells];
  if (count < 255) ++count;
  previous = place * 0x9e3779b97f4a7c15 >> 41;
}

}  // namespace aimle::fuzz
