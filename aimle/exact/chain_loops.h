// The loops over the edges of a chain (chain_distribution.h), which all instruction sets share.
//
// For inclusion in one source file per instruction set: everything except ChainLoops has internal
// linkage, so that no file uses code of another. Sums and extremes run over four lanes for every
// instruction set, so that all of them give the same bits.
#pragma once

#include <cstdint>

#include "aimle/noise/exp.h"

namespace aimle {

/// The scores of a step: except -inf, they are between `least` and `largest`.
struct ChainExtent {
  double largest;
  double least;
  bool all;  // none is -inf
};

/// The loops of one instruction set.
struct ChainLoops {
  ChainExtent (*extent)(const double* x, int64_t count);
  /// x = exp(x - largest), 0 for -inf; x - largest >= -700.
  void (*exponentiate)(double* x, int64_t count, double largest);
  /// after[j] = sum over i of before[i] w[i, j].
  void (*forward)(int64_t labels, const double* before, const double* w, double* after);
  /// before[i] = sum over j of w[i, j] after[j].
  void (*backward)(int64_t labels, const double* w, const double* after, double* before);
};

namespace avx2 {
ChainLoops chain_loops();
}  // namespace avx2

namespace {

typedef double FourLanes __attribute__((vector_size(32)));
typedef double FourUnaligned __attribute__((vector_size(32), aligned(8), may_alias));

[[gnu::always_inline]] inline FourLanes load_four(const double* x) {
  return *reinterpret_cast<const FourUnaligned*>(x);
}

inline ChainExtent extent_of(const double* x, int64_t count) {
  constexpr double kInf = __builtin_huge_val();
  FourLanes largest = FourLanes{} - kInf, least = FourLanes{} + kInf, lowest = least;
  int64_t j = 0;
  const auto add = [&](FourLanes v) {
    largest = v > largest ? v : largest;
    lowest = v < lowest ? v : lowest;
    const FourLanes finite = v > -kInf ? v : FourLanes{} + kInf;
    least = finite < least ? finite : least;
  };
  for (; j + 4 <= count; j += 4) add(load_four(x + j));
  for (; j < count; ++j) add(FourLanes{} + x[j]);
  ChainExtent result{-kInf, kInf, true};
  for (int lane = 0; lane < 4; ++lane) {
    result.largest = largest[lane] > result.largest ? largest[lane] : result.largest;
    result.least = least[lane] < result.least ? least[lane] : result.least;
    result.all = result.all && lowest[lane] > -kInf;
  }
  return result;
}

inline void exponentiate_edges(double* x, int64_t count, double largest) {
  for (int64_t j = 0; j < count; ++j) {
    const double less = x[j] - largest;
    const double e = exp_portable(less);
    x[j] = less < -kMaxExponent ? 0.0 : e;
  }
}

inline void forward_sums(int64_t labels, const double* before, const double* w, double* after) {
  for (int64_t j = 0; j < labels; ++j) after[j] = 0;
  for (int64_t i = 0; i < labels; ++i) {
    for (int64_t j = 0; j < labels; ++j) after[j] += before[i] * w[i * labels + j];
  }
}

inline void backward_sums(int64_t labels, const double* w, const double* after, double* before) {
  for (int64_t i = 0; i < labels; ++i) {
    const double* const row = w + i * labels;
    FourLanes sum{};
    int64_t j = 0;
    for (; j + 4 <= labels; j += 4) sum += load_four(row + j) * load_four(after + j);
    double rest = 0;
    for (; j < labels; ++j) rest += row[j] * after[j];
    before[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
  }
}

inline constexpr ChainLoops kChainLoops{extent_of, exponentiate_edges, forward_sums, backward_sums};

}  // namespace
}  // namespace aimle
