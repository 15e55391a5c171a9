#include "aimle/estimate/thresholds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"
#include "aimle/estimate/report_builder.h"
#include "aimle/estimate/row_block.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/noise/exp.h"

namespace aimle {
namespace {

/// Entries whose weights are computed together: enough to overlap exponentials, few enough to stay
/// in the cache.
constexpr int64_t kEntriesAtOnce = 1024;

/// Sums the gradients of examples, sample by sample, in batches of up to `capacity` of them.
template <class T>
class ThresholdSum {
 public:
  /// For at most `rows` samples.
  ThresholdSum(const PassSettings& settings, const Solver& solver, const Examples<T>& examples,
               int64_t rows)
      : settings_(settings),
        target_(std::get<ThresholdTarget>(settings.target)),
        examples_(examples),
        kernels_(threshold_kernels<T>()),
        chosen_(entries_in_solution(solver)),
        fixed_size_(solver.solution_size().fixed),
        sign_(settings.sense == Sense::kMin ? -1.0 : 1.0),
        finder_(solver.swap_finder<T>()),
        stride_(whole_groups(examples.n)),
        capacity_(std::min(rows, std::max(finder_ ? finder_->rows_at_once() : int64_t{1},
                                          kEntriesAtOnce / std::max<int64_t>(1, stride_)))) {
    if (settings.noise.kind == NoiseKind::kNone) target_.order = ThresholdTarget::Order::kFirst;
    const auto all = static_cast<size_t>(capacity_ * stride_);
    weight_.resize(all);
    free_.resize(all);
    rows_.resize(static_cast<size_t>(capacity_));
    sum_.resize(static_cast<size_t>(stride_));
    if (!fixed_size_) {
      shift_ = static_cast<double>(
          centring<T>(settings.noise_mean, settings.theta_temperature, Signs{}));
    }
    if (finder_) {
      difference_.resize(all);
      valid_.resize(at_once());
      swaps_.resize(static_cast<size_t>(finder_->rows_at_once()));
      found_ = std::make_unique<bool[]>(static_cast<size_t>(capacity_));
    }
    scratch_.resize((finder_ ? at_once() : all) + 8);
  }

  int64_t capacity() const { return capacity_; }
  /// Whether rows need their scores.
  bool reads_noise() const { return finder_ == nullptr || finder_->reads_noise(); }

  /// Sample i of the next batch belongs to example b, with scores x (null if its rivals, or theta,
  /// are sufficient), solution `bits` and gradient d.
  void set(int64_t i, int64_t b, const T* x, const std::byte* rivals, const uint8_t* bits,
           const T* d) {
    Row& row = rows_[static_cast<size_t>(i)];
    if (i > 0 && row_of(i - 1).example.theta == theta(b)) {
      row.example = row_of(i - 1).example;
    } else {
      const bool* mask = this->mask(b);
      Flag* free = free_.data() + i * stride_;
      const int64_t count = kernels_.find_free(theta(b), mask, examples_.n, free);
      row.example = {.theta = theta(b),
                     .n = examples_.n,
                     .free = count == examples_.n ? nullptr : free,
                     .sign = sign_,
                     .tau = settings_.theta_temperature,
                     .shift = shift_};
    }
    row.swaps.bits = bits;
    row.swaps.d = d;
    row.x = x == nullptr && finder_ ? theta(b) : x;
    if (rivals != nullptr) std::memcpy(&row.rivals, rivals, sizeof row.rivals);
    row.mask = mask(b);
    row.chosen = examples_.k != nullptr ? examples_.k[b] : chosen_;
  }

  /// Computes the weights of a batch, whose solutions are contiguous; with a finder, thresholds and
  /// differences, and the weights in `add`, a part of a row at a time.
  void weigh(int64_t count) {
    if (finder_) return find_swaps(count);
    kernels_.meet(rows_.data(), count, stride_, weight_.data());
    const SolutionRows rows{
        .bits = rows_.front().swaps.bits, .count = count, .n = examples_.n, .stride = stride_};
    exceeds_ = kernels_.weigh(target_, rows, weight_.data(), scratch_.data());
  }

  /// Adds samples [first, last) of the batch to their example.
  void add(int64_t first, int64_t last) {
    if (!finder_) {
      changes_.samples += kernels_.add(target_, exceeds_, &row_of(first), last - first, stride_,
                                       weight_.data() + first * stride_, partials_, sum_.data());
      return;
    }
    for (int64_t i = first; i < last; ++i) {
      if (found_[static_cast<size_t>(i)]) {
        for (int64_t j = 0; j < examples_.n; j += kEntriesAtOnce) add_part(i, j);
        changes_.samples += 1;
      } else {
        std::fill_n(sum_.begin(), examples_.n, std::numeric_limits<double>::quiet_NaN());
      }
    }
  }

  /// Writes the gradient of an example whose last sample was sample i of the batch.
  CappedTotals finish(int64_t i, T* dtheta) {
    const double samples =
        settings_.output == Output::kMean ? static_cast<double>(settings_.samples) : 1.0;
    const double scale = sign_ / (settings_.theta_temperature * samples);
    const Flag* free = row_of(i).example.free;
    const int64_t free_count = free == nullptr ? examples_.n : count(free);
    changes_.zeros += kernels_.write_gradient(sum_.data(), free, free_count, fixed_size_, scale,
                                              examples_.n, dtheta);
    changes_.entries += free_count;
    return kernels_.drain(partials_);
  }

  const Changes& changes() const { return changes_; }

 private:
  using Row = ThresholdRow<T>;

  Row& row_of(int64_t i) { return rows_[static_cast<size_t>(i)]; }
  const T* theta(int64_t b) const { return examples_.theta + b * examples_.n; }
  const bool* mask(int64_t b) const {
    return examples_.mask != nullptr ? examples_.mask + b * examples_.n : nullptr;
  }
  int64_t count(const Flag* flags) const {
    return std::count_if(flags, flags + examples_.n, [](Flag flag) { return flag != 0; });
  }
  size_t at_once() const { return static_cast<size_t>(std::min(stride_, kEntriesAtOnce)); }

  /// Thresholds, in place of weights, and differences of the batch.
  void find_swaps(int64_t count) {
    const auto at_once = static_cast<int64_t>(swaps_.size());
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t rows = std::min(at_once, count - first);
      for (int64_t i = 0; i < rows; ++i) {
        const Row& row = row_of(first + i);
        swaps_[static_cast<size_t>(i)] = {
            .x = row.x, .mask = row.mask, .bits = row.swaps.bits, .d = row.swaps.d};
      }
      finder_->find_rows(swaps_.data(), rows, stride_, weight_.data() + first * stride_,
                         difference_.data() + first * stride_, found_.get() + first);
    }
  }

  /// Adds the entries of sample i from j on, up to kEntriesAtOnce, whose thresholds and differences
  /// are known.
  void add_part(int64_t i, int64_t j) {
    static_assert(kEntriesAtOnce % kSumLanes == 0);  // so that partial sums are the row's
    const Row& row = row_of(i);
    ThresholdExample<T> part = row.example;
    part.theta += j;
    part.n = std::min(kEntriesAtOnce, examples_.n - j);
    if (part.free != nullptr) part.free += j;
    const EachSwaps swaps{.difference = difference_.data() + i * stride_ + j,
                          .valid = valid_.data()};
    double* weight = weight_.data() + i * stride_ + j;
    kernels_.meet_each(part, swaps, weight);
    const SolutionRows rows{
        .bits = row.swaps.bits + j / 8, .count = 1, .n = part.n, .stride = whole_groups(part.n)};
    const bool exceeds = kernels_.weigh(target_, rows, weight, scratch_.data());
    kernels_.add_each(target_, exceeds, swaps, weight, part.n, partials_, sum_.data() + j);
  }

  const PassSettings& settings_;
  ThresholdTarget target_;
  const Examples<T>& examples_;
  const ThresholdKernels<T>& kernels_;
  int64_t chosen_;   // entries in a solution
  bool fixed_size_;  // whether all solutions have that many
  double sign_;
  double shift_ = 0.0;                     // see ThresholdExample
  std::unique_ptr<SwapFinder<T>> finder_;  // null: all entries have the same two rivals
  int64_t stride_;
  int64_t capacity_;

  // The batch.
  std::vector<Row> rows_;
  std::vector<SwapRow<T>> swaps_;     // for a finder, with found_, difference_ and valid_
  std::unique_ptr<bool[]> found_;     // whether a row has a solution
  AlignedVector<double> difference_;  // by entry
  AlignedVector<double> weight_, scratch_;
  AlignedVector<Flag> valid_, free_;
  bool exceeds_ = false;  // whether a weight exceeds the cap

  // The example.
  AlignedVector<double> sum_;
  CappedPartials partials_;

  Changes changes_;
};

}  // namespace

template <class T>
void keep_rivals(const Examples<T>& examples, int64_t samples, const T* x, const uint8_t* bits,
                 int64_t first, int64_t count, std::byte* rivals) {
  const ThresholdKernels<T>& kernels = threshold_kernels<T>();
  const int64_t n = examples.n, at_once = examples.mask == nullptr ? count : 1;
  for (int64_t row = first; row < first + count; row += at_once, x += at_once * n) {
    const bool* mask = examples.mask == nullptr ? nullptr : examples.mask + row / samples * n;
    kernels.keep_rivals(x, mask, bits + row * bytes_per_row(n), n, at_once,
                        rivals + row * int64_t{sizeof(KeptRivals)});
  }
}

template <class T>
BackwardReport threshold_backward(const PassSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor) {
  const int64_t n = examples.n, samples = settings.samples;
  const int64_t gradients = gradient_rows(settings);
  const GradientRows<T> dy = pass.rows(settings, n);
  entries_in_solution(solver);  // throws here rather than on a thread
  const Signs sign = signs(settings.sense, Sense::kMax);
  const bool fixed_size = solver.solution_size().fixed;
  const bool kept = pass.rivals != nullptr && keeps_rivals(settings, solver);
  const double ns = (solver.swaps() == Swaps::kEach ? 8.0 : 5.0) * static_cast<double>(samples * n);
  std::vector<CappedTotals> capped(static_cast<size_t>(examples.count));
  ReportBuilder report(0);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    const int64_t rows_here = (end - begin) * samples;
    ThresholdSum<T> sum(settings, solver, examples, std::min(rows_here, block_rows(n)));
    std::vector<T> widened(dy.widen == nullptr ? 0 : static_cast<size_t>(sum.capacity() * n));
    // Rows [first, first + count) with scores x [count, n], or null.
    const auto add_rows = [&](int64_t first, int64_t count, const T* x) {
      int64_t b = first / samples, s = first % samples;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = first + i;
        sum.set(i, b, x == nullptr ? nullptr : x + i * n,
                kept ? pass.rivals + row * int64_t{sizeof(KeptRivals)} : nullptr,
                pass.bits + row * bytes_per_row(n),
                dy.row(b, gradients == 1 ? 0 : s, n, widened.data() + i * n));
        if (++s == samples) {
          s = 0;
          ++b;
        }
      }
      sum.weigh(count);
      for (int64_t i = 0; i < count;) {
        const int64_t example = (first + i) / samples, left = (example + 1) * samples - first - i;
        const int64_t last = std::min(count, i + left);
        sum.add(i, last);
        if (last == i + left) {
          capped[static_cast<size_t>(example)] = sum.finish(last - 1, pass.dtheta + example * n);
        }
        i = last;
      }
    };
    if (kept || !sum.reads_noise()) {
      const int64_t last = end * samples;
      for (int64_t row = begin * samples; row < last; row += sum.capacity()) {
        add_rows(row, std::min(sum.capacity(), last - row), nullptr);
      }
    } else {
      Block<T> block(settings, examples, rows_here);
      std::vector<T> x(static_cast<size_t>(block.capacity() * n));
      for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
        rows.perturb(sign, x.data());
        if (!fixed_size) rows.center(sign, settings.theta_temperature, x.data());
        for (int64_t first = 0; first < rows.count(); first += sum.capacity()) {
          add_rows(rows.first() + first, std::min(sum.capacity(), rows.count() - first),
                   x.data() + first * n);
        }
      });
    }
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

template void keep_rivals(const Examples<float>&, int64_t, const float*, const uint8_t*, int64_t,
                          int64_t, std::byte*);
template void keep_rivals(const Examples<double>&, int64_t, const double*, const uint8_t*, int64_t,
                          int64_t, std::byte*);
template BackwardReport threshold_backward(const PassSettings&, const Solver&,
                                           const Examples<float>&, const BackwardPass<float>&,
                                           const Executor&);
template BackwardReport threshold_backward(const PassSettings&, const Solver&,
                                           const Examples<double>&, const BackwardPass<double>&,
                                           const Executor&);

}  // namespace aimle
