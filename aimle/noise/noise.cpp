#include "aimle/noise/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/noise/fill_rows.h"
#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/quantile_table.h"
#include "aimle/noise/sum_of_gamma.h"

namespace aimle {
namespace {

/// Chunk by chunk, first the words, then, in a vectorised loop, the noise.
template <class Quantile>
void fill_rows_by(Quantile quantile, Key key, const NoiseRows& rows, float* out) {
  constexpr int64_t kChunk = 256;
  uint32_t words[kChunk];
  int64_t b = rows.first / rows.samples, s = rows.first % rows.samples;
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t start = 0; start < rows.n; start += kChunk) {
      const int64_t count = std::min(kChunk, rows.n - start);
      for (int64_t i = 0; i < count; i += 4) {
        const PhiloxWords four =
            noise_words(key, static_cast<uint32_t>(b), static_cast<uint32_t>(s),
                        static_cast<uint32_t>((start + i) >> 2));
        std::copy_n(four.w, 4, words + i);
      }
      for (int64_t i = 0; i < count; ++i) out[start + i] = quantile(words[i]);
    }
    out += rows.n;
    if (++s == rows.samples) {
      s = 0;
      ++b;
    }
  }
}

void check(const NoiseSource& source, Key key, const NoiseRows& rows, const float* out) {
  // Leaves space for Philox's 32-bit counters, and for the AVX2 version to step past their ends.
  constexpr int64_t kMaxInstances = int64_t{1} << 32, kMaxSamples = int64_t{1} << 30;
  constexpr int64_t kMaxN = int64_t{1} << 32;
  AIMLE_CHECK(1 <= rows.samples && rows.samples <= kMaxSamples,
              "[aimle::noise] expected 1 <= samples <= 2^30 but got samples=", rows.samples);
  AIMLE_CHECK(0 <= rows.n && rows.n <= kMaxN,
              "[aimle::noise] expected 0 <= n <= 2^32 but got n=", rows.n);
  AIMLE_CHECK(rows.first >= 0 && rows.count >= 0,
              "[aimle::noise] expected first >= 0 and count >= 0 but got first=", rows.first,
              ", count=", rows.count);
  AIMLE_CHECK(rows.count <= INT64_MAX - rows.first &&
                  rows.first + rows.count <= kMaxInstances * rows.samples,
              "[aimle::noise] expected at most 2^32 instances but got first=", rows.first,
              ", count=", rows.count, ", samples=", rows.samples);
  AIMLE_CHECK(key.first < static_cast<uint64_t>(kMaxInstances) &&
                  rows.first + rows.count <=
                      (kMaxInstances - static_cast<int64_t>(key.first)) * rows.samples,
              "[aimle::noise] expected a key whose first instance and those after it are at most "
              "2^32 but got first=",
              key.first);
  AIMLE_CHECK(source.kind != NoiseKind::kSumOfGamma || source.table != nullptr,
              "[aimle::noise] expected a quantile table for sum_of_gamma but got none");
  AIMLE_CHECK(rows.count == 0 || rows.n == 0 || out != nullptr,
              "[aimle::noise] expected memory for the rows but got a null pointer");
}

/// The rows as vector code counts them: from the key's first instance on.
[[maybe_unused]] NoiseRows numbered_rows(Key key, NoiseRows rows) {
  rows.first += static_cast<int64_t>(key.first) * rows.samples;
  return rows;
}

/// Measured on a Zen 4 at 3.6 GHz.
double ns_per_element(NoiseKind kind) {
  switch (kind) {
    case NoiseKind::kNone:
      return 0.1;
    case NoiseKind::kSumOfGamma:
      return isa() >= Isa::kAvx2 ? 1.1 : 10.0;
    default:
      return isa() >= Isa::kAvx2 ? 1.5 : 40.0;
  }
}

}  // namespace

std::string_view name(NoiseKind kind) {
  switch (kind) {
    case NoiseKind::kNone:
      return "none";
    case NoiseKind::kGumbel:
      return "gumbel";
    case NoiseKind::kNormal:
      return "normal";
    case NoiseKind::kLogistic:
      return "logistic";
    case NoiseKind::kSumOfGamma:
      return "sum_of_gamma";
  }
  return "unknown noise";
}

void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out) {
  check(source, key, rows, out);
  if (rows.count == 0 || rows.n == 0) return;
  if (source.kind == NoiseKind::kNone) {
    std::fill_n(out, rows.count * rows.n, 0.0f);
    return;
  }
  if constexpr (kBuiltWithAvx2) {
    const NoiseRows numbered = numbered_rows(key, rows);
    if (isa() == Isa::kAvx512) return avx512::fill_rows(source, key, numbered, out);
    if (isa() == Isa::kAvx2) return avx2::fill_rows(source, key, numbered, out);
  }
  switch (source.kind) {
    case NoiseKind::kNone:
      return;
    case NoiseKind::kGumbel:
      return fill_rows_by([](uint32_t word) { return gumbel(word); }, key, rows, out);
    case NoiseKind::kNormal:
      return fill_rows_by([](uint32_t word) { return normal(word); }, key, rows, out);
    case NoiseKind::kLogistic:
      return fill_rows_by([](uint32_t word) { return logistic(word); }, key, rows, out);
    case NoiseKind::kSumOfGamma: {
      const float* table = source.table;
      return fill_rows_by([table](uint32_t word) { return look_up_quantile(table, word); }, key,
                          rows, out);
    }
  }
}

void fill(const NoiseSource& source, Key key, const NoiseRows& rows, float* out,
          const Executor& executor) {
  check(source, key, rows, out);
  const double ns_per_row = static_cast<double>(rows.n) * ns_per_element(source.kind);
  parallel_for(executor, rows.count, ns_per_row, [&](int64_t begin, int64_t end) {
    NoiseRows part = rows;
    part.first += begin;
    part.count = end - begin;
    fill_rows(source, key, part, out + begin * rows.n);
  });
}

Moments moments(NoiseKind kind, int64_t k, int64_t iterations) {
  using std::numbers::pi;
  switch (kind) {
    case NoiseKind::kNone:
      return {0, 0};
    case NoiseKind::kGumbel:
      return {std::numbers::egamma, pi / std::sqrt(6.0)};
    case NoiseKind::kNormal:
      return {0, 1};
    case NoiseKind::kLogistic:
      return {0, pi / std::sqrt(3.0)};
    case NoiseKind::kSumOfGamma:
      break;
  }
  SumOfGamma{.k = k, .iterations = iterations}.validate();
  double mean = -std::log(static_cast<double>(iterations)), variance = 0;
  for (int64_t i = 1; i <= iterations; ++i) {
    const double scale = 1 / static_cast<double>(i);
    mean += scale;
    variance += scale * scale;
  }
  return {mean / static_cast<double>(k), std::sqrt(variance / static_cast<double>(k))};
}

}  // namespace aimle
