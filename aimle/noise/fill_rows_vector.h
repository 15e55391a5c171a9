// fill_rows for processors with vectors: the part shared by all instruction sets.
//
// The Philox blocks of all rows form one sequence: blocks 0, 1, ... of the first row, then those of
// the next row, one in each lane of a vector of words. A chunk of blocks is turned into words,
// packed like the rows (the unused words of a row's last block are where the next row begins, whose
// first block then overwrites them), and the words into noise. Short rows and rows of odd length
// therefore cost little more per element than long ones.
//
// For inclusion in one source file per instruction set: everything has internal linkage. `Machine`
// defines the instructions, in addition to those of lanes.h:
//
//   struct Machine {
//     kOrder[kLanes]      the number of the block in each lane: even lanes are one group of blocks,
//                         odd lanes another, and `words` finds those of a group in this order
//     multiply(a, b)      the products of the low halves of 64-bit lanes
//     join(low, high)     the low halves of both, interleaved
//     even(a, b), odd(a, b)  the even, or odd, 64-bit lanes of a and b, alternating
//     look_up(...)        words into noise by a table
//   };
#pragma once

#include "aimle/noise/fill_rows.h"
#include "aimle/noise/gumbel.h"
#include "aimle/noise/lanes.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"

namespace aimle {
namespace {

inline int64_t blocks_per_row(const NoiseRows& rows) { return (rows.n + 3) / 4; }

struct GumbelQuantile {
  template <class Word>
  AIMLE_HD static auto of(Word word) {
    return gumbel(word);
  }
};
struct NormalQuantile {
  template <class Word>
  AIMLE_HD static auto of(Word word) {
    return normal(word);
  }
};
struct LogisticQuantile {
  template <class Word>
  AIMLE_HD static auto of(Word word) {
    return logistic(word);
  }
};

template <class Machine>
class RowFiller {
 public:
  static void fill(const NoiseSource& source, Key key, const NoiseRows& rows, float* out) {
    alignas(64) float buffer[kBufferSize];
    Line line(rows);
    Packing packing{.blocks = blocks_per_row(rows), .unused = 4 * blocks_per_row(rows) - rows.n};
    int64_t blocks_left = rows.count * packing.blocks;
    int64_t left = rows.count * rows.n;
    while (left > 0) {
      const int64_t blocks = blocks_left < kChunkBlocks ? blocks_left : kChunkBlocks;
      const int64_t steps = (blocks + kLanes - 1) / kLanes;
      if (packing.unused == 0) {
        make_words<true>(line, key, packing, steps, buffer);
      } else {
        make_words<false>(line, key, packing, steps, buffer);
      }
      const int64_t count = packing.position < left ? packing.position : left;
      words_to_noise(source, buffer, count);
      __builtin_memcpy(out, buffer, static_cast<size_t>(count) * sizeof(float));
      out += count;
      left -= count;
      blocks_left -= blocks;
    }
  }

  static void words_to_noise(const NoiseSource& source, float* values, int64_t count) {
    switch (source.kind) {
      case NoiseKind::kNone:
        return;
      case NoiseKind::kGumbel:
        return transform<Machine, GumbelQuantile>(values, count);
      case NoiseKind::kNormal:
        return transform<Machine, NormalQuantile>(values, count);
      case NoiseKind::kLogistic:
        return transform<Machine, LogisticQuantile>(values, count);
      case NoiseKind::kSumOfGamma:
        return Machine::look_up(source, values, count);
    }
  }

 private:
  static constexpr int kLanes = Machine::kLanes;
  static constexpr int64_t kChunkBlocks = 256;
  // The last block of a row, those of the last step and the last group of noise may extend beyond
  // the end of the chunk.
  static constexpr int64_t kBufferSize = 4 * kChunkBlocks + Machine::kVectors * kLanes;

  using Ints [[gnu::vector_size(4 * kLanes)]] = int32_t;
  using Wide [[gnu::vector_size(4 * kLanes)]] = uint64_t;
  using Block [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = uint32_t;

  static Ints all(int32_t value) { return Ints{} + value; }
  static Wide all(uint32_t value) { return Wide{} + uint64_t{value}; }

  /// The line of blocks, kLanes at a time. Each coordinate wraps at most once in a step.
  class Line {
   public:
    explicit Line(const NoiseRows& rows) {
      const auto blocks = static_cast<int32_t>(blocks_per_row(rows));
      const auto samples = static_cast<int32_t>(rows.samples);
      const int32_t step_rows = kLanes / blocks;
      blocks_ = all(blocks);
      step_block_ = all(kLanes % blocks);
      samples_ = all(samples);
      step_s_ = all(step_rows % samples);
      step_b_ = all(step_rows / samples);

      const int64_t first_b = rows.first / samples;
      const auto first_s = static_cast<int32_t>(rows.first - first_b * samples);
      __builtin_memcpy(&block_, Machine::kOrder, sizeof block_);
      s_ = all(first_s);
      b_ = all(static_cast<int32_t>(first_b));
      for (int32_t left = kLanes - 1; left >= blocks; left -= blocks) wrap_block();
      for (int32_t left = first_s + (kLanes - 1) / blocks; left >= samples; left -= samples) {
        wrap_s();
      }
    }

    Wide block() const { return (Wide)block_; }
    Wide s() const { return (Wide)s_; }
    Wide b() const { return (Wide)b_; }

    void advance() {
      block_ += step_block_;
      s_ += step_s_;
      b_ += step_b_;
      wrap_block();
      wrap_s();
    }

   private:
    void wrap_block() {
      const Ints row_ends = block_ >= blocks_;
      block_ -= row_ends & blocks_;
      s_ -= row_ends;
    }

    void wrap_s() {
      const Ints instance_ends = s_ >= samples_;
      s_ -= instance_ends & samples_;
      b_ -= instance_ends;
    }

    Ints block_, s_, b_;
    Ints blocks_, step_block_, samples_, step_s_, step_b_;
  };

  /// Two groups of Philox blocks, one block in the low half of each 64-bit lane. The high halves
  /// are never read: the multiplication uses low halves, the rest is bitwise.
  struct Groups {
    Wide c0[2], c1[2], c2[2], c3[2];
  };

  [[gnu::always_inline]] static Groups philox(const Line& line, Key key) {
    const Wide m0 = all(kPhiloxM0), m1 = all(kPhiloxM1);
    const Wide stream = all(static_cast<uint32_t>(key.stream));
    Groups g{{line.block(), line.block() >> 32},
             {line.s(), line.s() >> 32},
             {line.b(), line.b() >> 32},
             {stream, stream}};
    auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const Wide p0 = Machine::multiply(m0, g.c0[i]), p1 = Machine::multiply(m1, g.c2[i]);
        g.c0[i] = (p1 >> 32) ^ g.c1[i] ^ all(k0);
        g.c1[i] = p1;
        g.c2[i] = (p0 >> 32) ^ g.c3[i] ^ all(k1);
        g.c3[i] = p0;
      }
      k0 += kPhiloxW0;
      k1 += kPhiloxW1;
    }
    return g;
  }

  /// Where the next block goes: rows are packed, so after each row it steps back over the unused
  /// words.
  struct Packing {
    int64_t blocks, unused;
    int64_t block = 0, position = 0;

    void place(float* buffer, Block words) {
      *reinterpret_cast<Block*>(buffer + position) = words;
      const bool row_ends = ++block == blocks;
      position += row_ends ? 4 - unused : 4;
      block = row_ends ? 0 : block;
    }
  };

  /// One chunk of words, bit for bit in floats.
  template <bool kWholeBlocks>
  static void make_words(Line& line_out, Key key, Packing& packing_out, int64_t steps,
                         float* buffer) {
    Line line = line_out;
    Packing packing = packing_out;
    packing.position = 0;
    for (int64_t step = 0; step < steps; ++step) {
      const Groups g = philox(line, key);
      line.advance();
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const Wide w01 = Machine::join(g.c0[i], g.c1[i]), w23 = Machine::join(g.c2[i], g.c3[i]);
        const Wide halves[2] = {Machine::even(w01, w23), Machine::odd(w01, w23)};
        if constexpr (kWholeBlocks) {
          __builtin_memcpy(buffer + 4 * kLanes * step + 2 * kLanes * i, halves, sizeof halves);
        } else {
          Block four[kLanes / 2];
          __builtin_memcpy(four, halves, sizeof four);
          for (const Block words : four) packing.place(buffer, words);
        }
      }
    }
    if constexpr (kWholeBlocks) packing.position = 4 * kLanes * steps;
    line_out = line;
    packing_out = packing;
  }
};

}  // namespace
}  // namespace aimle
