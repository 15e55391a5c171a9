// The source of the threshold kernels for chains, included once per instruction set. Private to
// threshold_loops.h.
#pragma once

#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/threshold_lanes.h"

namespace aimle {
namespace {

using LabelLanes = Lanes<kWideLanes>;

template <class T>
void widen_step(const ChainStep<T>& step, double* __restrict x) {
  const int64_t labels = step.labels, stride = step.stride;
  for (int64_t i = 0; i < labels; ++i) {
    const T* __restrict row = step.x + i * labels;
    double* __restrict out = x + i * stride;
    for (int64_t j = 0; j < labels; ++j) out[j] = static_cast<double>(row[j]);
    for (int64_t j = labels; j < stride; ++j) out[j] = -__builtin_huge_val();
    if (step.mask == nullptr) continue;
    const bool* __restrict mask = step.mask + i * labels;
    for (int64_t j = 0; j < labels; ++j) out[j] = mask[j] ? out[j] : -__builtin_huge_val();
  }
}

inline void step_forward(int64_t labels, int64_t stride, const double* x, const double* before,
                         double* after, int64_t* from) {
  using L = LabelLanes;
  for (int64_t j = 0; j < stride; j += kWideLanes) {
    L::Reals best = L::reals(-__builtin_huge_val());
    L::Flags at = L::flags(0);
    for (int64_t i = 0; i < labels; ++i) {
      const L::Reals sum = before[i] + L::load(x + i * stride + j, L::Whole{});
      const L::Flags better = sum > best;
      best = better ? sum : best;
      at = better ? L::flags(i) : at;
    }
    L::store(best, after + j);
    __builtin_memcpy(from + j, &at, sizeof at);
  }
}

inline void step_back(int64_t labels, int64_t stride, const double* x, const double* after,
                      double* before, int64_t* to) {
  using L = LabelLanes;
  const auto places = lanes_of<L::Flags>([](int lane) { return lane; });
  for (int64_t i = 0; i < labels; ++i, x += stride) {
    const auto sum = [=](int64_t j) {
      return L::load(x + j, L::Whole{}) + L::load(after + j, L::Whole{});
    };
    L::Reals best = L::reals(-__builtin_huge_val());
    for (int64_t j = 0; j < stride; j += kWideLanes) {
      const L::Reals here = sum(j);
      best = here > best ? here : best;
    }
    best = L::largest(best);
    L::Flags at = L::flags(labels);  // none
    for (int64_t j = stride - kWideLanes; j >= 0; j -= kWideLanes) {
      at = sum(j) == best ? places + j : at;
    }
    const int64_t lowest = L::smallest(at)[0];
    before[i] = best[0];
    to[i] = lowest < labels ? lowest : 0;
  }
}

template <class T>
void write_step(const ChainStep<T>& step, const ChainSums& prefix, const ChainSums& suffix,
                const ChainSum& solution, double* __restrict threshold,
                double* __restrict difference) {
  const int64_t labels = step.labels;
  const double* __restrict score = suffix.score;
  const double* __restrict gain = suffix.gain;
  for (int64_t i = 0; i < labels; ++i) {
    const T* __restrict d = step.d + i * labels;
    const double before = prefix.score[i], gained = prefix.gain[i];
    for (int64_t j = 0; j < labels; ++j) {
      threshold[i * labels + j] = solution.score - (before + score[j]);
      difference[i * labels + j] = ((gained + gain[j]) + static_cast<double>(d[j])) - solution.gain;
    }
  }
}

}  // namespace
}  // namespace aimle
