// The source of the row kernels, included once per instruction set. Private to row_kernels*.cpp.
#pragma once

#include <type_traits>

#include "aimle/estimate/divide_rule.h"
#include "aimle/estimate/lane_sums.h"
#include "aimle/estimate/row_kernels.h"
#include "aimle/estimate/step_rule.h"

namespace aimle {
namespace {

// Terms of LongSum and ShortSum, as Values.
struct Squares {
  double mean = 0.0;

  template <class T>
  [[gnu::always_inline]] Four operator()(const T* x, int64_t j, int64_t n) const {
    const Four v = load_or(x, j, n, mean) - mean;
    return v * v;
  }
};

/// LongSum for rows of 4 kWhole + rest < 32 entries: every partial sum has at most one term, and
/// groups of zeros, which change nothing, are skipped.
template <int kWhole>
struct ShortSum {
  template <class T, class Term>
  [[gnu::always_inline]] static double of(const T* x, int64_t n, Term term) {
    Four p[kWhole + 1];
    for (int g = 0; g <= kWhole; ++g) p[g] = term(x, 4 * g, g < kWhole ? 4 * kWhole : n);
    const auto pair = [&](int g) { return g + 4 <= kWhole ? p[g] + p[g + 4] : p[g]; };
    Four folded = pair(0);
    if constexpr (kWhole >= 2) folded += pair(2);
    if constexpr (kWhole >= 3) folded += pair(1) + pair(3);
    if constexpr (kWhole == 1 || kWhole == 2) folded += pair(1);
    return (folded[0] + folded[2]) + (folded[1] + folded[3]);
  }
};

/// A function of every row's sums; Sum is the one for its length.
template <class T, template <class, class> class Rows>
void for_length(const T* x, int64_t rows, int64_t n, double* out) {
  using Function = void (*)(const T*, int64_t, int64_t, double*);
  static constexpr Function kShort[] = {Rows<T, ShortSum<0>>::run, Rows<T, ShortSum<1>>::run,
                                        Rows<T, ShortSum<2>>::run, Rows<T, ShortSum<3>>::run,
                                        Rows<T, ShortSum<4>>::run, Rows<T, ShortSum<5>>::run,
                                        Rows<T, ShortSum<6>>::run, Rows<T, ShortSum<7>>::run};
  const Function function = n < kSumLanes ? kShort[n / 4] : Rows<T, LongSum>::run;
  function(x, rows, n, out);
}

template <class T, class Sum>
struct Norms {
  static void run(const T* x, int64_t rows, int64_t n, double* out) {
    for (int64_t r = 0; r < rows; ++r, x += n) out[r] = Sum::of(x, n, Squares{});
    for (int64_t r = 0; r < rows; ++r) out[r] = __builtin_sqrt(out[r]);
  }
};

template <class T, class Sum>
struct CentredNorms {
  static void run(const T* x, int64_t rows, int64_t n, double* out) {
    const auto entries = static_cast<double>(n);
    for (int64_t r = 0; r < rows; ++r, x += n) {
      const double mean = mean_of(Sum::of(x, n, Values{}), entries);
      out[r] = centred_norm(Sum::of(x, n, Squares{mean}), mean, entries);
    }
  }
};

template <class T>
void norms(const T* x, int64_t rows, int64_t n, double* out) {
  for_length<T, Norms>(x, rows, n, out);
}

template <class T>
void centred_norms(const T* x, int64_t rows, int64_t n, double* out) {
  for_length<T, CentredNorms>(x, rows, n, out);
}

template <class T>
void perturb_row(const T* __restrict theta, const float* __restrict eps, T tau, Signs sign,
                 int64_t n, T* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] = perturbed(theta[j], eps[j], tau, sign);
}

template <class T>
void step_row(const T* __restrict theta, const T* __restrict d, double lambda,
              const float* __restrict eps, T tau, Signs sign, int64_t n, T* __restrict out) {
  for (int64_t j = 0; j < n; ++j) out[j] = stepped(theta[j], d[j], lambda, eps[j], tau, sign);
}

template <class T>
void step_both_rows(const StepRow<T>* rows, int64_t count, const float* eps, T tau, Signs sign,
                    int64_t n, T* left, T* right) {
  for (int64_t r = 0; r < count; ++r) {
    const StepRow<T> row = rows[r];
    const T* __restrict theta = row.theta;
    const T* __restrict d = row.d;
    const float* __restrict noise = eps + r * n;
    T* __restrict out_left = left + r * n;
    T* __restrict out_right = right + r * n;
    for (int64_t j = 0; j < n; ++j) {
      out_left[j] = stepped(theta[j], d[j], row.lambda, noise[j], tau, sign);
      out_right[j] = stepped(theta[j], d[j], -row.lambda, noise[j], tau, sign);
    }
  }
}

/// As wide as T, so that counts and entries share their vector lanes.
template <class T>
using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Calls part(begin, end) for pieces of [0, n) in which a Count cannot overflow.
template <class Part>
[[gnu::always_inline]] inline void for_each_part(int64_t n, Part part) {
  constexpr int64_t kPart = int64_t{1} << 20;
  for (int64_t begin = 0; begin < n; begin += kPart)
    part(begin, n < begin + kPart ? n : begin + kPart);
}

/// put(j, left_j - right_j) for all j; returns how many are not zero, -1 if one is NaN.
template <class T, class Put>
[[gnu::always_inline]] inline int64_t for_each_change(const T* __restrict left,
                                                      const T* __restrict right, int64_t n,
                                                      Put put) {
  int64_t nonzeros = 0, nans = 0;
  for_each_part(n, [&](int64_t begin, int64_t end) {
    Count<T> found = 0, unknown = 0;
    for (int64_t j = begin; j < end; ++j) {
      const T change = left[j] - right[j];
      found += change != T(0);
      unknown += change != change;
      put(j, change);
    }
    nonzeros += found;
    nans += unknown;
  });
  return nans > 0 ? -1 : nonzeros;
}

template <class T>
int64_t difference_row(const T* __restrict left, const T* __restrict right, T factor, int64_t n,
                       T* __restrict out) {
  return for_each_change(left, right, n, [=](int64_t j, T change) { out[j] = change * factor; });
}

template <class T>
int64_t add_difference(const T* __restrict left, const T* __restrict right, int64_t n,
                       double* __restrict sum) {
  return for_each_change(left, right, n,
                         [=](int64_t j, T change) { sum[j] += static_cast<double>(change); });
}

template <class T>
int64_t add_scaled_difference(const T* __restrict left, const T* __restrict right, double factor,
                              int64_t n, double* __restrict sum) {
  return for_each_change(left, right, n, [=](int64_t j, T change) {
    sum[j] = DivideRule::scaled(sum[j], static_cast<double>(change), factor);
  });
}

template <class T>
int64_t divide(double* __restrict sum, double sign, double divisor, int64_t n, T* __restrict out) {
  int64_t zeros = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double g = DivideRule::quotient(sign, sum[j], divisor);
    out[j] = static_cast<T>(g);
    zeros += g == 0.0;
    sum[j] = 0.0;
  }
  return zeros;
}

/// Which of `count` entries, at most eight, are 1, as a bit each.
template <class T>
[[gnu::always_inline]] inline uint32_t pack_few(const T* z, int64_t count) {
  uint32_t packed = 0;
  for (int64_t i = 0; i < count; ++i) packed |= static_cast<uint32_t>(z[i] == T(1)) << i;
  return packed;
}

[[gnu::always_inline]] inline uint32_t pack_four(const float* z) {
#if defined(__SSE2__)
  using Entries [[gnu::vector_size(16)]] = float;
  Entries entries;
  __builtin_memcpy(&entries, z, sizeof entries);
  return static_cast<uint32_t>(__builtin_ia32_movmskps((Entries)(entries == 1.0F)));
#else
  return pack_few(z, 4);
#endif
}
[[gnu::always_inline]] inline uint32_t pack_four(const double* z) { return pack_few(z, 4); }

template <class T>
void pack(const T* z, int64_t rows, int64_t n, uint8_t* bits) {
  for (int64_t r = 0; r < rows; ++r, z += n) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
      *bits++ = static_cast<uint8_t>(pack_four(z + j) | pack_four(z + j + 4) << 4);
    }
    if (j == n) continue;
    const uint32_t first = n - j >= 4 ? pack_four(z + j) : pack_few(z + j, n - j);
    const uint32_t rest = n - j > 4 ? pack_few(z + j + 4, n - j - 4) : 0;
    *bits++ = static_cast<uint8_t>(first | rest << 4);
  }
}

template <class T>
constexpr RowKernels<T> kKernels = {.norms = norms<T>,
                                    .centred_norms = centred_norms<T>,
                                    .perturb = perturb_row<T>,
                                    .step = step_row<T>,
                                    .step_both = step_both_rows<T>,
                                    .add_difference = add_difference<T>,
                                    .add_scaled_difference = add_scaled_difference<T>,
                                    .divide = divide<T>,
                                    .difference = difference_row<T>,
                                    .pack = pack<T>};

}  // namespace
}  // namespace aimle
