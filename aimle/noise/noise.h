// The noise distributions, and rows of them.
//
// Noise is a pure function of (key, instance b, sample s, element j). It is always a float32 value,
// with the same bits for any batch split, thread count, instruction set and device, so padding a
// row does not change its noise, and backward can draw it again instead of storing it. A part of a
// batch has the noise of the whole if its key names the part's first instance. One 32-bit word of
// Philox becomes one value through the inverse distribution function: by polynomials in gumbel.h,
// normal.h and logistic.h, by a table in sum_of_gamma.h.
//
//   aimle::NoiseSource source{.kind = aimle::NoiseKind::kGumbel};
//   aimle::fill_rows(source, key, {.first = 0, .count = 8, .samples = 2, .n = 20}, out);
#pragma once

#include <cstdint>
#include <string_view>

#include "aimle/base/parallel.h"
#include "aimle/noise/philox.h"

namespace aimle {

enum class NoiseKind { kNone, kGumbel, kNormal, kLogistic, kSumOfGamma };

std::string_view name(NoiseKind kind);

/// A distribution ready to be sampled. `table` is the quantile table of Sum-of-Gamma
/// (`quantile_table` in sum_of_gamma.h, kQuantileTableSize floats, owned by the caller) and null
/// for the others.
struct NoiseSource {
  NoiseKind kind = NoiseKind::kNone;
  const float* table = nullptr;
};

/// Which rows: flat row r = b * samples + s, for r in [first, first + count); n elements each.
struct NoiseRows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t samples = 1;
  int64_t n = 0;
};

/// out[r - first, j] = noise(key, b, s, j), contiguous [count, n]. Sequential.
void fill_rows(const NoiseSource& source, Key key, const NoiseRows& rows, float* out);

/// The same on as many threads as are useful.
void fill(const NoiseSource& source, Key key, const NoiseRows& rows, float* out,
          const Executor& executor);

/// Mean and standard deviation in closed form. `k` and `iterations` matter for Sum-of-Gamma only.
struct Moments {
  double mean;
  double stddev;
};
Moments moments(NoiseKind kind, int64_t k = 1, int64_t iterations = 10);

}  // namespace aimle
