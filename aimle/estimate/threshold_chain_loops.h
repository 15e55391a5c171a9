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

/// The scores of a step for vectors: `columns` of a row, at least one vector; the last vector ends
/// at the end of the row.
template <class X>
struct StepRows {
  const X* x;
  int64_t labels;
  int64_t pitch;
  int64_t columns;

  [[gnu::always_inline]] int64_t column(int64_t j) const {
    return j + kWideLanes <= columns ? j : columns - kWideLanes;
  }
};

/// Calls visit(StepRows): with the scores themselves, or with `wide` padded with -inf.
template <class T, class Visit>
[[gnu::always_inline]] inline void with_rows(const ChainStep<T>& step, double* wide, Visit visit) {
  const int64_t labels = step.labels, stride = step.stride;
  if (step.mask == nullptr && labels >= kWideLanes) {
    visit(StepRows<T>{.x = step.x, .labels = labels, .pitch = labels, .columns = labels});
  } else {
    widen_step(step, wide);
    visit(StepRows<double>{.x = wide, .labels = labels, .pitch = stride, .columns = stride});
  }
}

template <class T>
void step_forward(const ChainStep<T>& step, double* wide, const double* before, double* after,
                  int64_t* from) {
  using L = LabelLanes;
  with_rows(step, wide, [=](auto rows) {
    for (int64_t first = 0; first < rows.columns; first += kWideLanes) {
      const int64_t j = rows.column(first);
      L::Reals best = L::reals(-__builtin_huge_val());
      L::Flags at = L::flags(0);
      for (int64_t i = 0; i < rows.labels; ++i) {
        const L::Reals sum = before[i] + L::load(rows.x + i * rows.pitch + j, L::Whole{});
        const L::Flags better = sum > best;
        best = better ? sum : best;
        at = better ? L::flags(i) : at;
      }
      L::store(best, after + j);
      __builtin_memcpy(from + j, &at, sizeof at);
    }
  });
}

template <class T>
void step_back(const ChainStep<T>& step, double* wide, const double* after, double* before,
               int64_t* to) {
  using L = LabelLanes;
  const auto places = lanes_of<L::Flags>([](int lane) { return lane; });
  with_rows(step, wide, [=](auto rows) {
    for (int64_t i = 0; i < rows.labels; ++i) {
      const auto* x = rows.x + i * rows.pitch;
      const auto sum = [=](int64_t j) {
        return L::load(x + j, L::Whole{}) + L::load(after + j, L::Whole{});
      };
      L::Reals best = L::reals(-__builtin_huge_val());
      for (int64_t first = 0; first < rows.columns; first += kWideLanes) {
        const L::Reals here = sum(rows.column(first));
        best = here > best ? here : best;
      }
      best = L::largest(best);
      L::Flags at = L::flags(rows.labels);  // none
      for (int64_t first = 0; first < rows.columns; first += kWideLanes) {
        const int64_t j = rows.column(first);
        const L::Flags here = sum(j) == best ? places + j : L::flags(rows.labels);
        at = here < at ? here : at;
      }
      const int64_t lowest = L::smallest(at)[0];
      before[i] = best[0];
      to[i] = lowest < rows.labels ? lowest : 0;
    }
  });
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
