// Thresholds of the edges of a chain, in two passes: the best sequences up to every label and,
// backwards, from every label on, with their sums of d.
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
constexpr int64_t kPrefetchedEdges = 2048;  // how far ahead: a few microseconds

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
        score_(static_cast<size_t>(solver.length * stride_)),
        gain_(score_.size()),
        label_(static_cast<size_t>(stride_)) {
    for (auto* by_label : {&after_, &after_gain_, &before_, &before_gain_}) {
      by_label->resize(static_cast<size_t>(stride_));
    }
  }

  bool find(const SwapRow<T>& row, double* threshold, double* difference) override {
    const int64_t steps = chain_steps(steps_, edges_, row.mask);
    if (!read_solution(row, steps)) return false;
    find_prefixes(row, steps);
    for (int64_t t = 0; t < steps; ++t) {
      solution_.gain += static_cast<double>(row.d[t * edges_ + chosen_[static_cast<size_t>(t)]]);
    }
    std::fill_n(after_.begin(), labels_, 0.0);
    std::fill(after_.begin() + labels_, after_.end(), kNever);
    std::fill(after_gain_.begin(), after_gain_.end(), 0.0);
    for (int64_t t = steps - 1; t >= 0; --t) {
      const ChainStep<T> step = step_of(row, t);
      const ChainSums prefix{.score = score_.data() + t * stride_,
                             .gain = gain_.data() + t * stride_};
      const ChainSums suffix{.score = after_.data(), .gain = after_gain_.data()};
      kernels_.step_back(step, wide_.data(), after_.data(), before_.data(), label_.data());
      kernels_.write_step(step, prefix, suffix, solution_, threshold + t * edges_,
                          difference + t * edges_);
      const int64_t chosen = chosen_[static_cast<size_t>(t)];
      const ChainSum other = best_other(step, chosen, prefix);
      const auto own = static_cast<double>(row.x[t * edges_ + chosen]);
      threshold[t * edges_ + chosen] = other.score - (solution_.score - own);
      difference[t * edges_ + chosen] = solution_.gain - other.gain;
      for (int64_t i = 0; i < labels_; ++i) {
        const int64_t j = label_[i];
        before_gain_[i] = static_cast<double>(step.d[i * labels_ + j]) + after_gain_[j];
      }
      std::swap(after_, before_);
      std::swap(after_gain_, before_gain_);
      std::fill(after_.begin() + labels_, after_.end(), kNever);
    }
    std::fill(threshold + steps * edges_, threshold + steps_ * edges_, kNever);
    return true;
  }

 private:
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

  /// Loads d of a step into the cache. The best edges are all over it, which the processor does not
  /// foresee.
  void prefetch(const SwapRow<T>& row, int64_t t) const {
    constexpr auto kPerLine = static_cast<int64_t>(64 / sizeof(T));
    if (t >= steps_) return;
    const T* d = row.d + t * edges_;
    for (int64_t e = 0; e < edges_; e += kPerLine) __builtin_prefetch(d + e);
  }

  void find_prefixes(const SwapRow<T>& row, int64_t steps) {
    std::fill_n(score_.begin(), stride_, 0.0);
    std::fill_n(gain_.begin(), stride_, 0.0);
    const int64_t ahead = 1 + kPrefetchedEdges / edges_;
    for (int64_t t = 0; t < ahead; ++t) prefetch(row, t);
    for (int64_t t = 0; t + 1 < steps; ++t) {
      const ChainStep<T> step = step_of(row, t);
      prefetch(row, t + ahead);
      const double* gain = gain_.data() + t * stride_;
      kernels_.step_forward(step, wide_.data(), score_.data() + t * stride_,
                            score_.data() + (t + 1) * stride_, label_.data());
      for (int64_t j = 0; j < labels_; ++j) {
        const int64_t i = label_[j];
        gain_[(t + 1) * stride_ + j] = gain[i] + static_cast<double>(step.d[i * labels_ + j]);
      }
    }
  }

  /// The best sequence through an edge of the step except `chosen`, given the results of step_back.
  ChainSum best_other(const ChainStep<T>& step, int64_t chosen, const ChainSums& prefix) const {
    const int64_t from = chosen / labels_, to = chosen % labels_;
    ChainSum best{.score = kNever};
    int64_t best_from = 0, best_to = 0;
    for (int64_t i = 0; i < labels_; ++i) {
      double rest = before_[i];
      int64_t label = label_[i];
      if (i == from) {
        rest = kNever;
        for (int64_t j = 0; j < labels_; ++j) {
          const int64_t edge = i * labels_ + j;
          if (j == to || (step.mask != nullptr && !step.mask[edge])) continue;
          const double sum = static_cast<double>(step.x[edge]) + after_[j];
          if (!(sum > rest)) continue;
          rest = sum;
          label = j;
        }
      }
      const double sum = prefix.score[i] + rest;
      if (!(sum > best.score)) continue;
      best.score = sum;
      best_from = i;
      best_to = label;
    }
    best.gain = (prefix.gain[best_from] + after_gain_[best_to]) +
                static_cast<double>(step.d[best_from * labels_ + best_to]);
    return best;
  }

  const ThresholdKernels<T>& kernels_ = threshold_kernels<T>();
  int64_t labels_, edges_, steps_, stride_;
  std::vector<int64_t> chosen_;  // [steps], the solution's edge
  ChainSum solution_;
  AlignedVector<double> wide_;          // for a step
  AlignedVector<double> score_, gain_;  // [length, stride], the best prefix that ends with a label
  AlignedVector<double> after_, after_gain_, before_, before_gain_;  // suffixes from a label on
  AlignedVector<int64_t> label_;  // the label before, or after, another one
};

}  // namespace

template <class T>
std::unique_ptr<SwapFinder<T>> Chain::swap_finder() const {
  return std::make_unique<ChainThresholds<T>>(*this);
}
template std::unique_ptr<SwapFinder<float>> Chain::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> Chain::swap_finder() const;

}  // namespace aimle
