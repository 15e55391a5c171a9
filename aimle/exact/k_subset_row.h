// The k-subset distribution of one row by a group of threads, on both devices; k_subset.h has the
// equations.
//
// A coin that may not be chosen never comes up: in = 0, out = 1. (The host leaves out such coins
// beforehand.) The tables F (from the first coin) and B (from the last) grow together, with one
// thread per count r and a sync after each coin; then every thread combines the rows of its own
// coins.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/combine.h"
#include "aimle/exact/uniform.h"
#include "aimle/map/map.h"

namespace aimle::exact_row {

/// Memory of one row: n + 1 rows of k + 1 counts in each table. Two rows of F are enough if only
/// the log-partition is requested; samples only read B.
struct KSubsetScratch {
  enum class Tables { kLogPartition, kSample, kMarginals, kCovariance };

  double* x;    // [n], NaN where an entry may not be chosen
  double* in;   // [n]
  double* out;  // [n]
  double* mu;   // [n]
  double* v;    // [n], centred
  double* forward;
  double* backward;
  double* forward_tangent;
  double* backward_tangent;

  static int64_t doubles(int64_t n, int64_t k, Tables tables) {
    const int64_t table = (n + 1) * (k + 1);
    switch (tables) {
      case Tables::kLogPartition:
        return 5 * n + 2 * (k + 1);
      case Tables::kSample:
        return 5 * n + table;
      case Tables::kMarginals:
        return 5 * n + 2 * table;
      default:
        return 5 * n + 4 * table;
    }
  }
  AIMLE_EITHER static KSubsetScratch at(double* memory, int64_t n, int64_t k, Tables tables) {
    const int64_t table = (n + 1) * (k + 1);
    double* const first = memory + 5 * n;
    return {memory,
            memory + n,
            memory + 2 * n,
            memory + 3 * n,
            memory + 4 * n,
            first,
            tables == Tables::kSample ? first : first + table,
            first + 2 * table,
            first + 3 * table};
  }
};

/// A row as coins: p = scratch.in[j], 1 - p = scratch.out[j].
struct Coins {
  Status status;
  int64_t n;
  int64_t k;
  int64_t choosable;
  bool certain;      // there is only one structure
  double log_scale;  // A(x) - log P(k come up)
};

namespace detail {

AIMLE_EITHER double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
AIMLE_EITHER double softplus(double x) { return (x > 0 ? x : 0.0) + log1p(exp(-fabs(x))); }

/// c with sum_j sigmoid(x_j - c) about k: Newton's method within a bracket, which is valid because
/// at `low` each of the m coins comes up with probability above 1 - 1/m, and at `high` below 1/m.
template <class Group>
AIMLE_EITHER double find_tilt(Group& group, const double* x, int64_t n, int64_t k, double low,
                              double high) {
  constexpr double kTolerance = 0.1;
  double c = low / 2 + high / 2;
  while (low < c && c < high) {
    double up = 0, slope = 0;
    for (int64_t j = group.rank(); j < n; j += group.size()) {
      if (x[j] != x[j]) continue;
      const double p = sigmoid(x[j] - c);
      up += p;
      slope += p * sigmoid(c - x[j]);
    }
    const double excess = group.reduce(up, Plus{}) - static_cast<double>(k);
    slope = group.reduce(slope, Plus{});
    if (fabs(excess) <= kTolerance) break;
    if (excess > 0) {
      low = c;
    } else {
      high = c;
    }
    const double newton = c + excess / slope;
    c = low < newton && newton < high ? newton : low / 2 + high / 2;
  }
  return c;
}

}  // namespace detail

/// Reads a row. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER Coins read_coins(Group& group, int64_t n, int64_t k, const T* scores, const bool* mask,
                              const KSubsetScratch& scratch) {
  const double inf = __builtin_huge_val();
  if (k < 0 || k > n) return {Status::kBadK, n, k, 0, true, 0};
  bool bad = false;
  double count = 0, low = inf, high = -inf, sum = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const auto x = static_cast<double>(scores[j]);
    const bool out = (mask != nullptr && !mask[j]) || x == -inf;
    scratch.x[j] = out ? static_cast<double>(NAN) : x;
    if (out) continue;
    bad |= x != x || x == inf;
    count += 1;
    sum += x;
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  if (group.any(bad)) return {Status::kNaN, n, k, 0, true, 0};
  const double m = group.reduce(count, Plus{});
  const auto choosable = static_cast<int64_t>(m);
  if (choosable < k) return {Status::kTooFewEntries, n, k, choosable, true, 0};
  const bool certain = k == 0 || k == choosable;
  double log_scale = group.reduce(sum, Plus{});
  if (k == 0) log_scale = 0;
  double c = 0;
  if (!certain) {
    low = group.reduce(low, Lower{}) - log(m);
    high = group.reduce(high, Higher{}) + log(m);
    c = detail::find_tilt(group, scratch.x, n, k, low, high);
  }
  double plus = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double x = scratch.x[j];
    const bool out = x != x;
    const double p = certain ? (k == 0 ? 0.0 : 1.0) : detail::sigmoid(x - c);
    scratch.in[j] = out ? 0.0 : p;
    scratch.out[j] = out ? 1.0 : certain ? 1.0 - p : detail::sigmoid(c - x);
    if (!out && !certain) plus += detail::softplus(x - c);
  }
  plus = group.reduce(plus, Plus{});
  group.sync();
  return {Status::kOk, n,       k,
          choosable,   certain, certain ? log_scale : static_cast<double>(k) * c + plus};
}

namespace detail {

AIMLE_EITHER double convolve(const double* a, const double* b, int64_t k) {
  double sum = 0;
  for (int64_t r = 0; r < k; ++r) sum += a[r] * b[k - 1 - r];
  return sum;
}

/// Counts after one more coin, for the thread of r.
AIMLE_EITHER double add_coin(double in, double out, const double* from, int64_t r) {
  return out * from[r] + (r > 0 ? in * from[r - 1] : 0.0);
}
AIMLE_EITHER double add_tangent(double in, double out, double v, const double* counts,
                                const double* from, int64_t r) {
  return out * from[r] + (r > 0 ? in * (from[r - 1] + v * counts[r - 1]) : 0.0);
}

}  // namespace detail

/// log P(k come up), with two rows of F. Ends with a sync.
template <class Group>
AIMLE_EITHER double log_probability(Group& group, const Coins& coins,
                                    const KSubsetScratch& scratch) {
  const int64_t width = coins.k + 1;
  for (int64_t r = group.rank(); r < width; r += group.size()) scratch.forward[r] = r == 0;
  group.sync();
  for (int64_t j = 0; j < coins.n; ++j) {
    const double* from = scratch.forward + j % 2 * width;
    double* to = scratch.forward + (j + 1) % 2 * width;
    for (int64_t r = group.rank(); r < width; r += group.size()) {
      to[r] = detail::add_coin(scratch.in[j], scratch.out[j], from, r);
    }
    group.sync();
  }
  const double probability = scratch.forward[coins.n % 2 * width + coins.k];
  group.sync();
  return log(probability);
}

/// Fills the table B, and F if requested. Ends with a sync.
template <bool kForward, class Group>
AIMLE_EITHER void fill_tables(Group& group, const Coins& coins, const KSubsetScratch& scratch) {
  const int64_t n = coins.n, width = coins.k + 1;
  for (int64_t r = group.rank(); r < width; r += group.size()) {
    if constexpr (kForward) scratch.forward[r] = r == 0;
    scratch.backward[n * width + r] = r == 0;
  }
  group.sync();
  for (int64_t j = 0; j < n; ++j) {
    const int64_t l = n - 1 - j;
    for (int64_t r = group.rank(); r < width; r += group.size()) {
      if constexpr (kForward) {
        scratch.forward[(j + 1) * width + r] =
            detail::add_coin(scratch.in[j], scratch.out[j], scratch.forward + j * width, r);
      }
      scratch.backward[l * width + r] =
          detail::add_coin(scratch.in[l], scratch.out[l], scratch.backward + (l + 1) * width, r);
    }
    group.sync();
  }
}

/// scratch.mu, from full tables F and B. Ends with a sync.
template <class Group>
AIMLE_EITHER void fill_marginals(Group& group, const Coins& coins, const KSubsetScratch& scratch) {
  const int64_t n = coins.n, k = coins.k, width = k + 1;
  if (!coins.certain) fill_tables<true>(group, coins, scratch);
  const double total = coins.certain ? 1.0 : scratch.forward[n * width + k];
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double p = scratch.in[j];
    scratch.mu[j] = coins.certain || p == 0.0
                        ? p
                        : p *
                              detail::convolve(scratch.forward + j * width,
                                               scratch.backward + (j + 1) * width, k) /
                              total;
  }
  group.sync();
}

/// Cov(z) v into out [n], after fill_marginals. Ends with a sync.
template <class T, class Group>
AIMLE_EITHER void write_covariance(Group& group, const Coins& coins, const T* v,
                                   const KSubsetScratch& scratch, T* out) {
  const int64_t n = coins.n, k = coins.k, width = k + 1;
  if (coins.certain) {
    for (int64_t j = group.rank(); j < n; j += group.size()) out[j] = T(0);
    group.sync();
    return;
  }
  double mean = 0;
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    if (scratch.x[j] == scratch.x[j]) mean += scratch.mu[j] * static_cast<double>(v[j]);
  }
  mean = group.reduce(mean, Plus{}) / static_cast<double>(k);
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    scratch.v[j] = scratch.x[j] == scratch.x[j] ? static_cast<double>(v[j]) - mean : 0.0;
  }
  for (int64_t r = group.rank(); r < width; r += group.size()) {
    scratch.forward_tangent[r] = 0;
    scratch.backward_tangent[n * width + r] = 0;
  }
  group.sync();
  for (int64_t j = 0; j < n; ++j) {
    const int64_t l = n - 1 - j;
    for (int64_t r = group.rank(); r < width; r += group.size()) {
      scratch.forward_tangent[(j + 1) * width + r] =
          detail::add_tangent(scratch.in[j], scratch.out[j], scratch.v[j],
                              scratch.forward + j * width, scratch.forward_tangent + j * width, r);
      scratch.backward_tangent[l * width + r] = detail::add_tangent(
          scratch.in[l], scratch.out[l], scratch.v[l], scratch.backward + (l + 1) * width,
          scratch.backward_tangent + (l + 1) * width, r);
    }
    group.sync();
  }
  const double total = scratch.forward[n * width + k];
  double left = 0;  // deviation from E<z, v> = 0 by rounding
  const auto product = [&](int64_t j) {
    const double* before = scratch.forward + j * width;
    const double* after = scratch.backward + (j + 1) * width;
    const double sum = detail::convolve(scratch.forward_tangent + j * width, after, k) +
                       detail::convolve(before, scratch.backward_tangent + (j + 1) * width, k) +
                       scratch.v[j] * detail::convolve(before, after, k);
    return scratch.in[j] * sum / total;
  };
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    const double covariance = product(j);
    left += covariance;
    scratch.x[j] = covariance;
  }
  left = group.reduce(left, Plus{}) / static_cast<double>(k);
  for (int64_t j = group.rank(); j < n; j += group.size()) {
    out[j] = static_cast<T>(scratch.x[j] - scratch.mu[j] * left);
  }
  group.sync();
}

/// Samples of one row, z [samples, size], one sample per thread; instance b of the key. Coin j is
/// entry(j) of the row.
template <class T, class Group, class Entry>
AIMLE_EITHER void sample_coins(Group& group, const Coins& coins, const KSubsetScratch& scratch,
                               Key key, int64_t b, int64_t samples, int64_t size,
                               const Entry& entry, T* z) {
  const int64_t n = coins.n, width = coins.k + 1;
  if (!coins.certain) fill_tables<false>(group, coins, scratch);
  for (int64_t e = group.rank(); e < samples * size; e += group.size()) z[e] = T(0);
  group.sync();
  for (int64_t s = group.rank(); s < samples; s += group.size()) {
    int64_t wanted = coins.k, left = coins.choosable;
    for (int64_t j = 0; wanted > 0 && j < n; ++j) {
      if (scratch.x[j] != scratch.x[j]) continue;
      const bool taken =
          left-- == wanted || uniform(key, b, s, entry(j)) * scratch.backward[j * width + wanted] <
                                  scratch.in[j] * scratch.backward[(j + 1) * width + wanted - 1];
      if (!taken) continue;
      z[s * size + entry(j)] = T(1);
      --wanted;
    }
  }
  group.sync();
}

}  // namespace aimle::exact_row
