// The step sizes of an example, by the threads of a block: norms first, then the rule of
// aimle/estimate/step_rule.h.
#pragma once

#include "aimle/cuda/row.cuh"
#include "aimle/cuda/step_sizes.h"
#include "aimle/cuda/sums.cuh"
#include "aimle/estimate/step_rule.h"

namespace aimle::cuda {

/// The rule, and the location of its alpha.
struct DeviceStepRule : StepRule {
  AlphaSource alpha;
};

inline DeviceStepRule step_rule(const PassSettings& settings, const SolutionSize& size,
                                const AlphaSource& alpha) {
  return {aimle::step_rule(settings, size), alpha};
}

/// The alpha of this pass; 0 if the step is fixed.
__device__ __forceinline__ double alpha_of(const DeviceStepRule& rule) {
  if (!rule.adaptive) return 0.0;
  const AlphaSource& from = rule.alpha;
  return from.probe > 0.0 && *from.updates % kReachPeriod == 0 ? from.probe : *from.alpha;
}

/// From where batch_lambda has written it; 0 if every example has its own.
__device__ __forceinline__ double lambda_of_batch(const double* at) {
  return at == nullptr ? 0.0 : *at;
}

// ---- Norms --------------------------------------------------------------------------------------

/// The norm of a row over the entries of theta that can move, and their number.
struct RowNorm {
  double norm;
  double entries;
};

/// The norms of example b, given theta's.
template <class T>
__device__ __forceinline__ ExampleNorms norms_of(const StepRule& rule,
                                                 const DeviceExamples<T>& examples, int64_t b,
                                                 const RowNorm& theta) {
  const auto entries = static_cast<int64_t>(theta.entries);
  const int64_t* k = examples.k == nullptr ? nullptr : examples.k + b;
  return {.theta = theta.norm, .entries = entries, .can_change = rule.can_change(k, entries)};
}

/// The norm of row x of example b, by the calling warp.
template <class T>
__device__ __forceinline__ RowNorm norm_by_warp(const StepRule& rule,
                                                const DeviceExamples<T>& examples, int64_t b,
                                                const T* x) {
  const T* theta = examples.theta + b * examples.n;
  const bool* mask = examples.mask == nullptr ? nullptr : examples.mask + b * examples.n;
  const auto is_free = [&](int64_t j) {
    return (mask == nullptr || mask[j]) && !is_infinite(theta[j]);
  };
  long long count = 0;
  const double sum = warp_fixed_sum(
      examples.n,
      [&](int64_t j) {
        const T value = x[j];
        const bool free = is_free(j);
        count += free;
        return free ? static_cast<double>(value) : 0.0;
      },
      [&](double v) { return rule.centred ? v : v * v; });
  count = Group<32>::reduce(count, [](long long a, long long b) { return a + b; });
  const auto entries = static_cast<double>(count);
  if (!rule.centred) return {__dsqrt_rn(sum), entries};
  const double mean = mean_of(sum, entries);
  const double squares = warp_fixed_sum(
      examples.n, [&](int64_t j) { return is_free(j) ? static_cast<double>(x[j]) - mean : 0.0; },
      [](double v) { return v * v; });
  return {centred_norm(squares, mean, entries), entries};
}

/// The norm of row x of n <= 4 kQuads <= 32 entries, by one thread. The order is that of
/// fixed_sum.h: terms 16 apart are added first, then 8, 4, 2 and 1.
template <int kQuads, class T>
__device__ __forceinline__ RowNorm norm_by_thread(const StepRule& rule, const T* x, const T* theta,
                                                  const bool* mask, int64_t n, bool aligned) {
  static_assert(kQuads <= 8);  // every partial sum has at most one term
  T values[kQuads][4] = {}, scores[kQuads][4] = {};
  uint32_t free = 0;
#pragma unroll
  for (int q = 0; q < kQuads; ++q) {
    if (4 * q < n) {
      load_quad(x, q, n, aligned, values[q]);
      load_quad(theta, q, n, aligned, scores[q]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int j = 4 * q + c;
      const bool moves = j < n && (mask == nullptr || mask[j]) && !is_infinite(scores[q][c]);
      free |= static_cast<uint32_t>(moves) << j;
    }
  }
  const auto fold = [&](auto use) {
    double quarter[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const auto term = [&](auto quad) {
        constexpr int q = quad.value;
        if constexpr (q < kQuads) {
          return (free >> (4 * q + c) & 1) != 0 ? use(static_cast<double>(values[q][c])) : 0.0;
        } else {
          return 0.0;
        }
      };
      const auto pair = [&](auto quad) {
        return term(quad) + term(std::integral_constant<int, quad.value + 4>{});
      };
      using std::integral_constant;
      const double even = pair(integral_constant<int, 0>{}) + pair(integral_constant<int, 2>{});
      const double odd = pair(integral_constant<int, 1>{}) + pair(integral_constant<int, 3>{});
      quarter[c] = even + odd;
    }
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
  };
  const auto entries = static_cast<double>(__popc(free));
  if (!rule.centred) return {__dsqrt_rn(fold([](double v) { return v * v; })), entries};
  const double mean = mean_of(fold([](double v) { return v; }), entries);
  const double squares = fold([mean](double v) { return (v - mean) * (v - mean); });
  return {centred_norm(squares, mean, entries), entries};
}

/// The norms of `count` examples from `first` on: [count, rows + 1], those of dy's rows, then
/// theta's. Executed by a block together, with a thread per row of n <= 4 kQuads entries or, if
/// kQuads is 0, a warp per row of any length. Ends without a sync.
template <int kQuads, class T>
__device__ __forceinline__ void norms_by_block(const StepRule& rule,
                                               const DeviceExamples<T>& examples, int64_t first,
                                               int count, const T* dy, int rows, RowNorm* norms) {
  const int64_t n = examples.n;
  const bool aligned = quads_aligned(examples.theta, n) && quads_aligned(dy, n);
  constexpr int kLanes = kQuads > 0 ? 1 : 32;
  const int rank = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = rank / kLanes; i < count * (rows + 1); i += threads / kLanes) {
    const int64_t b = first + i / (rows + 1);
    const int row = i % (rows + 1);
    const T* theta = examples.theta + b * n;
    const T* x = row == rows ? theta : dy + (b * rows + row) * n;
    if constexpr (kQuads > 0) {
      const bool* mask = examples.mask == nullptr ? nullptr : examples.mask + b * n;
      norms[i] = norm_by_thread<kQuads>(rule, x, theta, mask, n, aligned);
    } else {
      const RowNorm norm = norm_by_warp(rule, examples, b, x);
      if (rank % 32 == 0) norms[i] = norm;
    }
  }
}

// ---- The rule -----------------------------------------------------------------------------------

/// How the threads that share an example work together: a warp, or a single thread.
struct AsWarp {
  __device__ static int64_t first() { return threadIdx.x % 32; }
  static constexpr int64_t kStride = 32;
  /// For numbers >= 0, whose bits have the same order.
  __device__ static double max(double x) {
    return __longlong_as_double(static_cast<long long>(
        Group<32>::max(static_cast<unsigned long long>(__double_as_longlong(x)))));
  }
  __device__ static int sum(int x) { return Group<32>::sum(x); }
  template <class Term>
  __device__ static double fixed_sum(int64_t n, Term term) {
    return warp_fixed_sum<1>(n, term);
  }
};
/// At most kRows rows.
struct AsThread {
  static constexpr int64_t kRows = 4;
  __device__ static int64_t first() { return 0; }
  static constexpr int64_t kStride = 1;
  __device__ static double max(double x) { return x; }
  __device__ static int sum(int x) { return x; }
  template <class Term>
  __device__ static double fixed_sum(int64_t n, Term term) {
    if (n == 1) return term(0);
    return (term(0) + (n > 2 ? term(2) : 0.0)) + (term(1) + (n > 3 ? term(3) : 0.0));
  }
};

/// From the norms d(s) to `row` [rows + 2], the step sizes and the example's shared values, and
/// `counted` [rows]. d may read row.
template <class As, class Norm>
__device__ __forceinline__ void write_steps(const StepRule& rule, const ExampleNorms& norms,
                                            int64_t rows, double alpha, double batch_lambda, Norm d,
                                            double* row, uint8_t* counted) {
  const SharedStep shared = set_steps<As>(rule, norms, rows, alpha, batch_lambda, d, row, counted);
  if (As::first() != 0) return;
  row[rows] = shared.lambda;
  row[rows + 1] = shared.reported;
}

/// From norms_by_block to the step sizes of `count` examples from `first` on, lambda
/// [count, rows + 2] and counted [count, rows]: a thread per example with few rows, otherwise a
/// warp. Executed by a block together, after a sync.
template <class T>
__device__ __forceinline__ void steps_by_block(const StepRule& rule,
                                               const DeviceExamples<T>& examples, int64_t first,
                                               double alpha, double batch_lambda, int count,
                                               int rows, const RowNorm* norms, double* lambda,
                                               uint8_t* counted) {
  const auto set = [&](auto as, int i) {
    const RowNorm* mine = norms + i * (rows + 1);
    write_steps<decltype(as)>(
        rule, norms_of(rule, examples, first + i, mine[rows]), rows, alpha, batch_lambda,
        [=](int64_t s) { return mine[s].norm; }, lambda + static_cast<int64_t>(i) * (rows + 2),
        counted + static_cast<int64_t>(i) * rows);
  };
  const auto rank = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  if (rows <= AsThread::kRows) {
    for (int i = rank; i < count; i += threads) set(AsThread{}, i);
  } else {
    for (int i = rank / 32; i < count; i += threads / 32) set(AsWarp{}, i);
  }
}

}  // namespace aimle::cuda
