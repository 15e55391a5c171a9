#include <immintrin.h>

#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/quantile_table.h"
#include "aimle/noise/rows.h"

namespace aimle::avx2 {
namespace {

constexpr int32_t kStepBlocks = 8;
constexpr int64_t kChunkBlocks = 256;
// The last block of a row, and those of the last step, may reach over the chunk's end.
constexpr int64_t kBufferSize = 4 * kChunkBlocks + 8;

int64_t blocks_per_row(const NoiseRows& rows) { return (rows.n + 3) / 4; }

/// The line of blocks, eight at a time. Each coordinate wraps at most once in a step.
class Line {
 public:
  explicit Line(const NoiseRows& rows) {
    const auto blocks = static_cast<int32_t>(blocks_per_row(rows));
    const auto samples = static_cast<int32_t>(rows.samples);
    const int32_t step_rows = kStepBlocks / blocks;
    blocks_ = _mm256_set1_epi32(blocks);
    last_block_ = _mm256_set1_epi32(blocks - 1);
    step_block_ = _mm256_set1_epi32(kStepBlocks % blocks);
    samples_ = _mm256_set1_epi32(samples);
    last_s_ = _mm256_set1_epi32(samples - 1);
    step_s_ = _mm256_set1_epi32(step_rows % samples);
    step_b_ = _mm256_set1_epi32(step_rows / samples);

    const int64_t first_b = rows.first / samples;
    const auto first_s = static_cast<int32_t>(rows.first - first_b * samples);
    // `make_words` takes the even lanes as one group and the odd lanes as another, and finds the
    // blocks of a group in the order 0, 2, 1, 3.
    block_ = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
    s_ = _mm256_set1_epi32(first_s);
    b_ = _mm256_set1_epi32(static_cast<int32_t>(first_b));
    for (int32_t left = kStepBlocks - 1; left >= blocks; left -= blocks) wrap_block();
    for (int32_t left = first_s + (kStepBlocks - 1) / blocks; left >= samples; left -= samples) {
      wrap_s();
    }
  }

  __m256i block() const { return block_; }
  __m256i s() const { return s_; }
  __m256i b() const { return b_; }

  void advance() {
    block_ = _mm256_add_epi32(block_, step_block_);
    s_ = _mm256_add_epi32(s_, step_s_);
    b_ = _mm256_add_epi32(b_, step_b_);
    wrap_block();
    wrap_s();
  }

 private:
  void wrap_block() {
    const __m256i row_ends = _mm256_cmpgt_epi32(block_, last_block_);
    block_ = _mm256_sub_epi32(block_, _mm256_and_si256(row_ends, blocks_));
    s_ = _mm256_sub_epi32(s_, row_ends);
  }

  void wrap_s() {
    const __m256i instance_ends = _mm256_cmpgt_epi32(s_, last_s_);
    s_ = _mm256_sub_epi32(s_, _mm256_and_si256(instance_ends, samples_));
    b_ = _mm256_sub_epi32(b_, instance_ends);
  }

  __m256i block_, s_, b_;
  __m256i blocks_, last_block_, step_block_, samples_, last_s_, step_s_, step_b_;
};

/// Two groups of four Philox blocks, one block in the low half of each 64-bit lane. What stands in
/// the high halves is never read: the multiplication takes low halves, the rest is bitwise.
struct Groups {
  __m256i c0[2], c1[2], c2[2], c3[2];
};

[[gnu::always_inline]] inline Groups philox(const Line& line, Key key) {
  const auto broadcast = [](uint32_t value) { return _mm256_set1_epi64x(value); };
  const auto odd = [](__m256i lanes) { return _mm256_srli_epi64(lanes, 32); };
  const __m256i m0 = broadcast(kPhiloxM0), m1 = broadcast(kPhiloxM1);
  const __m256i stream = broadcast(static_cast<uint32_t>(key.stream));
  Groups g{{line.block(), odd(line.block())},
           {line.s(), odd(line.s())},
           {line.b(), odd(line.b())},
           {stream, stream}};
  auto k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256i p0 = _mm256_mul_epu32(m0, g.c0[i]), p1 = _mm256_mul_epu32(m1, g.c2[i]);
      g.c0[i] = _mm256_xor_si256(odd(p1), _mm256_xor_si256(g.c1[i], broadcast(k0)));
      g.c1[i] = p1;
      g.c2[i] = _mm256_xor_si256(odd(p0), _mm256_xor_si256(g.c3[i], broadcast(k1)));
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

  void place(float* buffer, __m128i words) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(buffer + position), words);
    const bool row_ends = ++block == blocks;
    position += row_ends ? 4 - unused : 4;
    block = row_ends ? 0 : block;
  }
};

/// One chunk of words, bit for bit in floats.
template <bool kWholeBlocks>
void make_words(Line& line_out, Key key, Packing& packing_out, int64_t steps, float* buffer) {
  Line line = line_out;
  Packing packing = packing_out;
  packing.position = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const Groups g = philox(line, key);
    line.advance();
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m256i w01 = _mm256_blend_epi32(g.c0[i], _mm256_slli_epi64(g.c1[i], 32), 0xaa);
      const __m256i w23 = _mm256_blend_epi32(g.c2[i], _mm256_slli_epi64(g.c3[i], 32), 0xaa);
      const __m256i first = _mm256_unpacklo_epi64(w01, w23);
      const __m256i second = _mm256_unpackhi_epi64(w01, w23);
      if constexpr (kWholeBlocks) {
        float* to = buffer + 32 * step + 16 * i;
        _mm256_store_si256(reinterpret_cast<__m256i*>(to), first);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 8), second);
      } else {
        packing.place(buffer, _mm256_castsi256_si128(first));
        packing.place(buffer, _mm256_extracti128_si256(first, 1));
        packing.place(buffer, _mm256_castsi256_si128(second));
        packing.place(buffer, _mm256_extracti128_si256(second, 1));
      }
    }
  }
  if constexpr (kWholeBlocks) packing.position = 32 * steps;
  line_out = line;
  packing_out = packing;
}

/// The first half of the look-up, apart so that it becomes vector code.
[[gnu::noinline]] void find_cells(const float* words, int64_t count, uint32_t* index, float* t) {
  for (int64_t i = 0; i < count; ++i) {
    const QuantileCell cell = quantile_cell(float_bits(words[i]));
    index[i] = cell.index;
    t[i] = cell.t;
  }
}

/// Quantiles by the table. Its cells are fetched by eight 16-byte loads and a transpose, which cost
/// less than four gathers.
void look_up(const float* table, float* values, int64_t groups) {
  constexpr int64_t kGroups = 8;
  alignas(32) uint32_t index[8 * kGroups];
  alignas(32) float t[8 * kGroups];
  for (; groups > 0; groups -= kGroups) {
    const int64_t now = groups < kGroups ? groups : kGroups;
    find_cells(values, 8 * now, index, t);
    for (int64_t group = 0; group < now; ++group, values += 8) {
      const auto cell = [&](int64_t i) {
        return table + kQuantileCoefficients * index[8 * group + i];
      };
      const auto two_cells = [&](int64_t i) {
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(cell(i))),
                                    _mm_loadu_ps(cell(i + 4)), 1);
      };
      const __m256 row0 = two_cells(0), row1 = two_cells(1), row2 = two_cells(2),
                   row3 = two_cells(3);
      const __m256 low01 = _mm256_unpacklo_ps(row0, row1), high01 = _mm256_unpackhi_ps(row0, row1);
      const __m256 low23 = _mm256_unpacklo_ps(row2, row3), high23 = _mm256_unpackhi_ps(row2, row3);
      const __m256 c0 = _mm256_shuffle_ps(low01, low23, 0x44);
      const __m256 c1 = _mm256_shuffle_ps(low01, low23, 0xee);
      const __m256 c2 = _mm256_shuffle_ps(high01, high23, 0x44);
      const __m256 c3 = _mm256_shuffle_ps(high01, high23, 0xee);
      const __m256 x = _mm256_load_ps(t + 8 * group);
      const __m256 cubic =
          _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(c3, x, c2), x, c1), x, c0);
      _mm256_store_ps(values, cubic);
    }
  }
}

template <class Quantile>
void transform(Quantile quantile, float* values, int64_t groups) {
  for (int64_t i = 0; i < 8 * groups; ++i) values[i] = quantile(float_bits(values[i]));
}

}  // namespace

void words_to_noise(const NoiseSource& source, float* values, int64_t groups) {
  switch (source.kind) {
    case NoiseKind::kNone:
      return;
    case NoiseKind::kGumbel:
      return transform([](uint32_t word) { return gumbel(word); }, values, groups);
    case NoiseKind::kNormal:
      return transform([](uint32_t word) { return normal(word); }, values, groups);
    case NoiseKind::kLogistic:
      return transform([](uint32_t word) { return logistic(word); }, values, groups);
    case NoiseKind::kSumOfGamma:
      return look_up(source.table, values, groups);
  }
}

void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out) {
  alignas(32) float buffer[kBufferSize];
  Line line(rows);
  Packing packing{.blocks = blocks_per_row(rows), .unused = 4 * blocks_per_row(rows) - rows.n};
  int64_t blocks_left = rows.count * packing.blocks;
  int64_t left = rows.count * rows.n;
  while (left > 0) {
    const int64_t blocks = blocks_left < kChunkBlocks ? blocks_left : kChunkBlocks;
    const int64_t steps = (blocks + kStepBlocks - 1) / kStepBlocks;
    if (packing.unused == 0) {
      make_words<true>(line, key, packing, steps, buffer);
    } else {
      make_words<false>(line, key, packing, steps, buffer);
    }
    const int64_t count = packing.position < left ? packing.position : left;
    words_to_noise(source, buffer, (count + 7) / 8);
    __builtin_memcpy(out, buffer, static_cast<size_t>(count) * sizeof(float));
    out += count;
    left -= count;
    blocks_left -= blocks;
  }
}

}  // namespace aimle::avx2
