// Thresholds of the edges of a chain, in two passes: backwards, the best sequences from every label
// on, and forwards, those up to every label, with their sums of d.
//
// Every sequence has one edge per step. An edge that is out is therefore compared with the
// solution, and one that is in with the best sequence through another edge of its step: for the
// best label i before the step, the best edge from it; lower labels win ties. Sums are in float64,
// from the start of the chain for prefixes and from its end for suffixes. A solution with a score
// of +inf has no finite sum, and its row has no thresholds.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/estimate/passes.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/map/chain.h"
#include "aimle/map/swap_finder.h"

namespace aimle {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

template <class T>
class ChainThresholds final : public SwapFinder<T> {
 public:
  explicit ChainThresholds(const Chain& solver)
      : labels_(solver.labels),
        edges_(solver.edges_per_step()),
        steps_(solver.steps()),
        stride_((solver.labels + 7) / 8 * 8),
        chosen_(static_cast<size_t>(steps_)),
        wide_(static_cast<size_t>(labels_ * stride_)),
        rest_(static_cast<size_t>(solver.length * stride_)),
        rest_gain_(rest_.size()),
        to_(rest_.size()),
        from_(static_cast<size_t>(stride_)) {
    for (auto* by_label : {&score_, &gain_, &next_score_, &next_gain_}) {
      by_label->resize(static_cast<size_t>(stride_));
    }
    std::fill(rest_.begin(), rest_.end(), kNever);  // what follows the labels of a row remains so
  }

  int64_t entries_at_once() const override { return edges_; }

  bool find_parts(const SwapRow<T>& row, SwapParts& parts) override {
    const int64_t steps = chain_steps(steps_, edges_, row.mask);
    if (!read_solution(row, steps)) return false;
    find_suffixes(row, steps);
    for (int64_t t = 0; t < steps; ++t) {
      solution_.gain += static_cast<double>(row.d[t * edges_ + chosen_[static_cast<size_t>(t)]]);
    }
    std::fill(score_.begin(), score_.end(), 0.0);
    std::fill(gain_.begin(), gain_.end(), 0.0);
    for (int64_t t = 0; t < steps; ++t) {
      write(row, t, parts.next(edges_));
      if (t + 1 < steps) find_prefixes(row, t);
    }
    for (int64_t t = steps; t < steps_; ++t) {
      const SwapPart part = parts.next(edges_);
      std::fill_n(part.threshold, edges_, kNever);
      std::fill_n(part.difference, edges_, 0.0);
    }
    return true;
  }

  bool find(const SwapRow<T>& row, double* threshold, double* difference) override {
    WholeRow whole(threshold, difference);
    return find_parts(row, whole);
  }

 private:
  /// Writes the parts of a row to consecutive memory.
  class WholeRow final : public SwapParts {
   public:
    WholeRow(double* threshold, double* difference) : next_{threshold, difference} {}
    SwapPart next(int64_t count) override {
      const SwapPart part = next_;
      next_.threshold += count;
      next_.difference += count;
      return part;
    }

   private:
    SwapPart next_;
  };

  ChainStep<T> step_of(const SwapRow<T>& row, int64_t t) const {
    return {.labels = labels_,
            .stride = stride_,
            .x = row.x + t * edges_,
            .mask = row.mask == nullptr ? nullptr : row.mask + t * edges_,
            .d = row.d + t * edges_};
  }

  /// The edges of the solution within their steps, and its score. False if there is none.
  bool read_solution(const SwapRow<T>& row, int64_t steps) {
    const int64_t n = steps_ * edges_, bytes = bytes_per_row(n);
    int64_t found = 0;
    solution_ = {};
    for (int64_t first = 0; first < bytes; first += 8) {
      uint64_t rest = 0;
      std::memcpy(&rest, row.bits + first,
                  static_cast<size_t>(std::min<int64_t>(8, bytes - first)));
      for (; rest != 0; rest &= rest - 1, ++found) {
        if (found == steps) return false;
        const int64_t entry = 8 * first + std::countr_zero(rest);
        chosen_[static_cast<size_t>(found)] = entry % edges_;
        solution_.score += static_cast<double>(row.x[entry]);
      }
    }
    return found == steps;
  }

  void find_suffixes(const SwapRow<T>& row, int64_t steps) {
    std::fill_n(rest_.begin() + steps * stride_, labels_, 0.0);
    std::fill_n(rest_gain_.begin() + steps * stride_, labels_, 0.0);
    for (int64_t t = steps - 1; t >= 0; --t) {
      const ChainStep<T> step = step_of(row, t);
      double* const rest = rest_.data() + t * stride_;
      int64_t* const to = to_.data() + t * stride_;
      kernels_.step_back(step, wide_.data(), rest + stride_, rest, to);
      double* const gain = rest_gain_.data() + t * stride_;
      for (int64_t i = 0; i < labels_; ++i) {
        gain[i] = static_cast<double>(step.d[i * labels_ + to[i]]) + gain[stride_ + to[i]];
      }
    }
  }

  /// From the label before a step to the one after it.
  void find_prefixes(const SwapRow<T>& row, int64_t t) {
    const ChainStep<T> step = step_of(row, t);
    kernels_.step_forward(step, wide_.data(), score_.data(), next_score_.data(), from_.data());
    for (int64_t j = 0; j < labels_; ++j) {
      const int64_t i = from_[j];
      next_gain_[j] = gain_[i] + static_cast<double>(step.d[i * labels_ + j]);
    }
    std::swap(score_, next_score_);
    std::swap(gain_, next_gain_);
  }

  void write(const SwapRow<T>& row, int64_t t, const SwapPart& part) const {
    const ChainStep<T> step = step_of(row, t);
    const ChainSums suffix{.score = rest_.data() + (t + 1) * stride_,
                           .gain = rest_gain_.data() + (t + 1) * stride_};
    kernels_.write_step(step, {.score = score_.data(), .gain = gain_.data()}, suffix, solution_,
                        part.threshold, part.difference);
    const int64_t chosen = chosen_[static_cast<size_t>(t)];
    const ChainSum other = best_other(step, t, chosen);
    part.threshold[chosen] = other.score - (solution_.score - static_cast<double>(step.x[chosen]));
    part.difference[chosen] = solution_.gain - other.gain;
  }

  /// The best sequence through an edge of step t except `chosen`.
  ChainSum best_other(const ChainStep<T>& step, int64_t t, int64_t chosen) const {
    const double* const after = rest_.data() + (t + 1) * stride_;
    const int64_t from = chosen / labels_, to = chosen % labels_;
    ChainSum best{.score = kNever};
    int64_t best_from = 0, best_to = 0;
    for (int64_t i = 0; i < labels_; ++i) {
      double rest = rest_[t * stride_ + i];
      int64_t label = to_[t * stride_ + i];
      if (i == from) {
        rest = kNever;
        for (int64_t j = 0; j < labels_; ++j) {
          const int64_t edge = i * labels_ + j;
          if (j == to || (step.mask != nullptr && !step.mask[edge])) continue;
          const double sum = static_cast<double>(step.x[edge]) + after[j];
          if (!(sum > rest)) continue;
          rest = sum;
          label = j;
        }
      }
      const double sum = score_[i] + rest;
      if (!(sum > best.score)) continue;
      best.score = sum;
      best_from = i;
      best_to = label;
    }
    best.gain = (gain_[best_from] + rest_gain_[(t + 1) * stride_ + best_to]) +
                static_cast<double>(step.d[best_from * labels_ + best_to]);
    return best;
  }

  const ThresholdKernels<T>& kernels_ = threshold_kernels<T>();
  int64_t labels_, edges_, steps_, stride_;
  std::vector<int64_t> chosen_;  // [steps], the solution's edge
  ChainSum solution_;
  AlignedVector<double> wide_;  // for a step
  // [length, stride], the best sequence from a label on, and [steps, stride] its next label.
  AlignedVector<double> rest_, rest_gain_;
  AlignedVector<int64_t> to_;
  // [stride], the best sequence up to a label before the current step, and after it.
  AlignedVector<double> score_, gain_, next_score_, next_gain_;
  AlignedVector<int64_t> from_;
};

}  // namespace

template <class T>
std::unique_ptr<SwapFinder<T>> Chain::swap_finder() const {
  return std::make_unique<ChainThresholds<T>>(*this);
}
template std::unique_ptr<SwapFinder<float>> Chain::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> Chain::swap_finder() const;

}  // namespace aimle
