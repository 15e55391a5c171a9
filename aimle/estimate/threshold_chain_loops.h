// The source of the threshold kernels for chains, included once per instruction set. Private to
// threshold_loops.h.
#pragma once

#include <type_traits>

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

/// Calls visit(first, count) for all columns of the rows, a few vectors at a time: `count` is their
/// number, an integral_constant.
template <class X, class Visit>
[[gnu::always_inline]] inline void for_columns(const StepRows<X>& rows, Visit visit) {
  int64_t first = 0;
  for (; first + 4 * kWideLanes <= rows.columns; first += 4 * kWideLanes) {
    visit(first, std::integral_constant<int, 4>{});
  }
  const int64_t left = (rows.columns - first + kWideLanes - 1) / kWideLanes;
  if (left == 1) visit(first, std::integral_constant<int, 1>{});
  if (left == 2) visit(first, std::integral_constant<int, 2>{});
  if (left == 3) visit(first, std::integral_constant<int, 3>{});
  if (left == 4) visit(first, std::integral_constant<int, 4>{});
}

template <class T>
void step_forward(const ChainStep<T>& step, double* wide, const double* before, double* after,
                  int64_t* from) {
  using L = LabelLanes;
  with_rows(step, wide, [=](auto rows) {
    for_columns(rows, [=](int64_t first, auto count) {
      L::Reals best[count.value];
      L::Flags at[count.value];
      for (int v = 0; v < count.value; ++v) {
        best[v] = L::reals(-__builtin_huge_val());
        at[v] = L::flags(0);
      }
      for (int64_t i = 0; i < rows.labels; ++i) {
        for (int v = 0; v < count.value; ++v) {
          const int64_t j = rows.column(first + v * kWideLanes);
          const L::Reals sum = before[i] + L::load(rows.x + i * rows.pitch + j, L::Whole{});
          const L::Flags better = sum > best[v];
          best[v] = better ? sum : best[v];
          at[v] = better ? L::flags(i) : at[v];
        }
      }
      for (int v = 0; v < count.value; ++v) {
        const int64_t j = rows.column(first + v * kWideLanes);
        L::store(best[v], after + j);
        L::store_integers(at[v], from + j);
      }
    });
  });
}

template <class T>
void step_back(const ChainStep<T>& step, double* wide, const double* after, double* before,
               int64_t* to) {
  using L = LabelLanes;
  with_rows(step, wide, [=](auto rows) {
    for_columns(rows, [=](int64_t first, auto count) {
      constexpr int64_t kLast = (count.value - 1) * kWideLanes;  // where the last vector begins
      constexpr uint64_t kNone = uint64_t{1} << (count.value * kWideLanes);
      const int64_t overlap = first + kLast - rows.column(first + kLast);
      for (int64_t i = 0; i < rows.labels; ++i) {
        const auto* x = rows.x + i * rows.pitch;
        L::Reals sum[count.value];
        for (int v = 0; v < count.value; ++v) {
          const int64_t j = rows.column(first + v * kWideLanes);
          sum[v] = L::load(x + j, L::Whole{}) + L::load(after + j, L::Whole{});
        }
        L::Reals best = L::reals(-__builtin_huge_val());
        for (int v = 0; v < count.value; ++v) best = sum[v] > best ? sum[v] : best;
        best = L::largest(best);
        // No branches: they would be mispredicted. Bit k is column first + k, except that the
        // last vector may begin earlier.
        uint64_t equal = 0;
        for (int v = 0; v < count.value; ++v) {
          equal |= uint64_t{L::bits(sum[v] == best)} << v * kWideLanes;
        }
        const int64_t place = __builtin_ctzll(equal | kNone);
        const int64_t lowest = first + place - (place >= kLast ? overlap : 0);
        if (first > 0 && !(best[0] > before[i])) continue;
        before[i] = best[0];
        to[i] = lowest < rows.labels ? lowest : 0;
      }
    });
  });
}

template <class T>
void write_step(const ChainStep<T>& step, const ChainSums& prefix, const ChainSums& suffix,
                const ChainSum& solution, double* __restrict threshold,
                double* __restrict difference) {
  using L = LabelLanes;
  const int64_t labels = step.labels;
  for (int64_t i = 0; i < labels; ++i) {
    const T* __restrict d = step.d + i * labels;
    double *const own_threshold = threshold + i * labels, *const own = difference + i * labels;
    const double before = prefix.score[i], gained = prefix.gain[i];
    if (labels < kWideLanes) {
      for (int64_t j = 0; j < labels; ++j) {
        own_threshold[j] = solution.score - (before + suffix.score[j]);
        own[j] = ((gained + suffix.gain[j]) + static_cast<double>(d[j])) - solution.gain;
      }
      continue;
    }
    for (int64_t first = 0; first < labels; first += kWideLanes) {
      // The last vector ends at the end of the row.
      const int64_t j = first + kWideLanes <= labels ? first : labels - kWideLanes;
      const L::Reals score = L::load(suffix.score + j, L::Whole{});
      const L::Reals gain = L::load(suffix.gain + j, L::Whole{});
      L::store(solution.score - (before + score), own_threshold + j);
      L::store(((gained + gain) + L::load(d + j, L::Whole{})) - solution.gain, own + j);
    }
  }
}

}  // namespace
}  // namespace aimle
