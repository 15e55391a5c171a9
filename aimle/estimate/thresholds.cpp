#include "aimle/estimate/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/estimate/block.h"
#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"
#include "aimle/estimate/report.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/estimate/tree_thresholds.h"
#include "aimle/noise/exp.h"

namespace aimle {
namespace {

/// Entries whose weights are taken in one go: enough that one exponential need not wait for the
/// other, few enough to stay in the cache.
constexpr int64_t kEntriesAtOnce = 1024;

/// One sample of an example.
template <class T>
struct Sample {
  int64_t example;
  const T* x;           // [n] its scores
  const uint8_t* bits;  // its solution
  const T* d;           // [n] its gradient
};

/// Sums up the gradients of examples, sample by sample, in batches of up to `capacity` of them.
template <class T>
class ThresholdSum {
 public:
  ThresholdSum(const EstimatorSettings& settings, const Solver& solver, const Examples<T>& examples)
      : settings_(settings),
        target_(std::get<ThresholdTarget>(settings.target)),
        examples_(examples),
        kernels_(threshold_kernels<T>()),
        chosen_(entries_in_solution(solver)),
        sign_(settings.sense == Sense::kMin ? -1.0 : 1.0),
        stride_(whole_groups(examples.n)),
        capacity_(std::max<int64_t>(1, kEntriesAtOnce / std::max<int64_t>(1, stride_))) {
    if (settings.noise.kind == NoiseKind::kNone) target_.order = ThresholdTarget::Order::kFirst;
    const auto all = static_cast<size_t>(capacity_ * stride_);
    weight_.resize(all);
    scratch_.resize(all + 8);
    free_.resize(all);
    swaps_.resize(static_cast<size_t>(capacity_));
    rows_.resize(static_cast<size_t>(capacity_));
    sum_.resize(static_cast<size_t>(stride_));
    if (const auto* tree = solver.get_if<SpanningTree>()) {
      tree_ = std::make_unique<TreeThresholds<T>>(*tree);
      difference_.resize(all);
      valid_.resize(all);
    }
  }

  int64_t capacity() const { return capacity_; }

  /// Finds the weights of a batch, whose solutions lie one after the other.
  void weigh(std::span<const Sample<T>> samples) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample<T>& sample = samples[i];
      Row& row = rows_[i];
      find_free(sample.example, i);
      const int64_t place = static_cast<int64_t>(i) * stride_;
      const int64_t expected = examples_.k != nullptr ? examples_.k[sample.example] : chosen_;
      row.solved = kernels_.count_in(sample.bits, examples_.n) == expected;
      double* u = weight_.data() + place;
      if (!row.solved) {
        std::fill_n(u, stride_, 0.0);
      } else if (tree_) {
        tree_->find(sample.x, mask(sample.example), sample.bits);
        tree_->meet(example(row), sample.x, sample.d, each(place), u);
      } else {
        swaps_[i].bits = sample.bits;
        swaps_[i].d = sample.d;
        kernels_.meet(example(row), sample.x, mask(sample.example), swaps_[i], u);
      }
    }
    const SolutionRows rows{.bits = samples.front().bits,
                            .count = static_cast<int64_t>(samples.size()),
                            .n = examples_.n,
                            .stride = stride_};
    exceeds_ = kernels_.weigh(target_, rows, weight_.data(), scratch_.data());
  }

  /// Adds sample i of the batch to its example.
  void add(size_t i) {
    if (!rows_[i].solved) {
      std::fill_n(sum_.begin(), examples_.n, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    const int64_t place = static_cast<int64_t>(i) * stride_;
    const double* weight = weight_.data() + place;
    if (tree_) {
      kernels_.add_each(target_, exceeds_, each(place), weight, examples_.n, partials_,
                        sum_.data());
    } else {
      kernels_.add(target_, exceeds_, example(rows_[i]), swaps_[i], weight, partials_, sum_.data());
    }
    changes_.samples += 1;
  }

  /// Writes the gradient of an example, of which sample i of the batch was the last.
  CappedTotals finish(size_t i, T* dtheta) {
    const double samples =
        settings_.output == Output::kMean ? static_cast<double>(settings_.samples) : 1.0;
    const double scale = sign_ / (settings_.theta_temperature * samples);
    const Row& row = rows_[i];
    changes_.zeros +=
        kernels_.center(sum_.data(), free(row), row.free_count, scale, examples_.n, dtheta);
    changes_.entries += row.free_count;
    return kernels_.drain(partials_);
  }

  const Changes& changes() const { return changes_; }

 private:
  /// A sample of the batch.
  struct Row {
    int64_t example;
    const Flag* free;  // shared by the samples of an example
    int64_t free_count;
    bool solved;
  };

  const bool* mask(int64_t b) const {
    return examples_.mask != nullptr ? examples_.mask + b * examples_.n : nullptr;
  }
  const Flag* free(const Row& row) const {
    return row.free_count == examples_.n ? nullptr : row.free;
  }
  ThresholdExample<T> example(const Row& row) const {
    return {.theta = examples_.theta + row.example * examples_.n,
            .n = examples_.n,
            .free = free(row),
            .sign = sign_,
            .tau = settings_.theta_temperature};
  }
  EachSwaps each(int64_t place) {
    return {.difference = difference_.data() + place, .valid = valid_.data() + place};
  }

  void find_free(int64_t b, size_t i) {
    if (i > 0 && rows_[i - 1].example == b) {
      rows_[i] = rows_[i - 1];
      return;
    }
    Flag* free = free_.data() + static_cast<int64_t>(i) * stride_;
    const int64_t n = examples_.n;
    rows_[i] = {.example = b,
                .free = free,
                .free_count = kernels_.find_free(examples_.theta + b * n, mask(b), n, free),
                .solved = false};
  }

  const EstimatorSettings& settings_;
  ThresholdTarget target_;
  const Examples<T>& examples_;
  const ThresholdKernels<T>& kernels_;
  std::unique_ptr<TreeThresholds<T>> tree_;  // null for rows
  int64_t chosen_;                           // entries in a solution
  double sign_;
  int64_t stride_;
  int64_t capacity_;

  // The batch.
  std::vector<Row> rows_;
  std::vector<RowSwaps<T>> swaps_;    // of rows
  AlignedVector<double> difference_;  // of trees, with valid_
  AlignedVector<double> weight_, scratch_;
  AlignedVector<Flag> valid_, free_;
  bool exceeds_ = false;  // does a weight exceed the cap?

  // The example.
  AlignedVector<double> sum_;
  CappedPartials partials_;

  Changes changes_;
};

}  // namespace

template <class T>
BackwardReport threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor) {
  const int64_t n = examples.n, samples = settings.samples;
  const int64_t gradients = gradient_rows(settings);
  const GradientRows<T> dy = pass.rows(settings, n);
  const Signs sign = signs(settings.sense, Sense::kMax);
  entries_in_solution(solver);  // throws here rather than on a thread
  const bool tree = solver.is<SpanningTree>();
  const double ns = (tree ? 12.0 : 5.0) * static_cast<double>(samples * n);
  std::vector<CappedTotals> capped(static_cast<size_t>(examples.count));
  ReportBuilder report(0);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * samples);
    ThresholdSum<T> sum(settings, solver, examples);
    std::vector<T> x(static_cast<size_t>(block.capacity() * n));
    std::vector<T> widened(dy.widen == nullptr ? 0 : static_cast<size_t>(sum.capacity() * n));
    std::vector<Sample<T>> batch(static_cast<size_t>(sum.capacity()));
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      rows.perturb(sign, x.data());
      for (int64_t first = 0; first < rows.count(); first += sum.capacity()) {
        const int64_t count = std::min(sum.capacity(), rows.count() - first);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = first + i, b = rows.example(row);
          const int64_t g = gradients == 1 ? 0 : rows.sample(row);
          batch[static_cast<size_t>(i)] = {
              .example = b,
              .x = x.data() + row * n,
              .bits = pass.bits + (rows.first() + row) * bytes_per_row(n),
              .d = dy.row(b, g, n, widened.data() + i * n)};
        }
        sum.weigh(std::span(batch).first(static_cast<size_t>(count)));
        for (int64_t i = 0; i < count; ++i) {
          const int64_t b = rows.example(first + i);
          sum.add(static_cast<size_t>(i));
          if (rows.sample(first + i) + 1 < samples) continue;
          capped[static_cast<size_t>(b)] = sum.finish(static_cast<size_t>(i), pass.dtheta + b * n);
        }
      }
    });
    report.add(sum.changes());
  });
  const auto total = [&](double CappedTotals::*part) {
    return fixed_total(examples.count,
                       [&](int64_t b) { return capped[static_cast<size_t>(b)].*part; });
  };
  int64_t weights = 0, cut = 0;
  for (const CappedTotals& example : capped) {
    weights += example.weights;
    cut += example.capped;
  }
  BackwardReport result = report.build();
  result.capped_share =
      static_cast<double>(cut) / static_cast<double>(std::max<int64_t>(weights, 1));
  const double mass = total(&CappedTotals::mass);
  result.capped_mass = mass > 0.0 ? total(&CappedTotals::lost) / mass : mass;
  return result;
}

template BackwardReport threshold_backward(const EstimatorSettings&, const Solver&,
                                           const Examples<float>&, const BackwardPass<float>&,
                                           const Executor&);
template BackwardReport threshold_backward(const EstimatorSettings&, const Solver&,
                                           const Examples<double>&, const BackwardPass<double>&,
                                           const Executor&);

}  // namespace aimle
