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

/// The least number of a row's entries to process while the finder has not reached its end.
constexpr int64_t kPartEntries = 256;

/// Memory, as long as a row, that will soon be used, or null. Loading it while weights are computed
/// costs little.
template <class T>
struct Upcoming {
  const T* theta = nullptr;
  const T* d = nullptr;
  T* dtheta = nullptr;
};

/// Inlined: GCC removes calls of a function that only prefetches, as one without effects.
template <int kForWriting, class T>
[[gnu::always_inline]] inline void prefetch(T* row, int64_t first, int64_t count) {
  constexpr auto kPerLine = static_cast<int64_t>(64 / sizeof(T));
  if (row == nullptr) return;
  for (int64_t j = first; j < first + count; j += kPerLine) {
    __builtin_prefetch(row + j, kForWriting, 2);
  }
}

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
    in_parts_ = finder_ != nullptr && finder_->entries_at_once() > 0;
    const int64_t entries =
        in_parts_ ? whole_groups(kPartEntries + finder_->entries_at_once()) : capacity_ * stride_;
    const auto all = static_cast<size_t>(entries);
    weight_.resize(all);
    free_.resize(static_cast<size_t>(capacity_ * stride_));
    rows_.resize(static_cast<size_t>(capacity_));
    upcoming_.resize(static_cast<size_t>(capacity_));
    sum_.resize(static_cast<size_t>(stride_));
    if (!fixed_size_) {
      shift_ = static_cast<double>(
          centring<T>(settings.noise_mean, settings.theta_temperature, Signs{}));
    }
    if (finder_) {
      difference_.resize(all);
      const auto at_once = static_cast<size_t>(std::min(entries, kEntriesAtOnce));
      valid_.resize(at_once);
      scratch_.resize(at_once + 8);
      swaps_.resize(static_cast<size_t>(finder_->rows_at_once()));
      found_ = std::make_unique<bool[]>(static_cast<size_t>(capacity_));
    } else {
      scratch_.resize(all + 8);
    }
  }

  int64_t capacity() const { return capacity_; }
  /// Whether rows need their scores.
  bool reads_noise() const { return finder_ == nullptr || finder_->reads_noise(); }

  /// Sample i of the next batch belongs to example b, with scores x (null if its rivals, or theta,
  /// are sufficient), solution `bits` and gradient d; `next` will be used afterwards.
  void set(int64_t i, int64_t b, const T* x, const std::byte* rivals, const uint8_t* bits,
           const T* d, const Upcoming<T>& next) {
    upcoming_[static_cast<size_t>(i)] = next;
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
  /// differences, and the weights in `add`, a part of a row at a time; with one that finds parts of
  /// a row, everything in `add`.
  void weigh(int64_t count) {
    if (in_parts_) return;
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
      if (in_parts_ ? add_by_parts(i) : add_found(i)) {
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

  /// Thresholds, in place of weights, and differences of the batch.
  void find_swaps(int64_t count) {
    const auto at_once = static_cast<int64_t>(swaps_.size());
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t rows = std::min(at_once, count - first);
      for (int64_t i = 0; i < rows; ++i) {
        swaps_[static_cast<size_t>(i)] = swap_row(row_of(first + i));
      }
      finder_->find_rows(swaps_.data(), rows, stride_, weight_.data() + first * stride_,
                         difference_.data() + first * stride_, found_.get() + first);
    }
  }

  static SwapRow<T> swap_row(const Row& row) {
    return {.x = row.x, .mask = row.mask, .bits = row.swaps.bits, .d = row.swaps.d};
  }

  /// Adds sample i of a batch, of which find_swaps has found thresholds and differences; false if
  /// it has no solution.
  bool add_found(int64_t i) {
    if (!found_[static_cast<size_t>(i)]) return false;
    add_entries(i, 0, examples_.n, weight_.data() + i * stride_, difference_.data() + i * stride_);
    return true;
  }

  /// Collects the parts of a row and adds them, in sizes that keep the order of summation.
  class PartsOfRow final : public SwapParts {
   public:
    PartsOfRow(ThresholdSum& sum, int64_t row) : sum_(sum), row_(row) {}

    SwapPart next(int64_t count) override {
      if (filled_ >= kPartEntries) add(filled_ / kSumLanes * kSumLanes);
      const int64_t at = filled_;
      filled_ += count;
      return {.threshold = sum_.weight_.data() + at, .difference = sum_.difference_.data() + at};
    }
    void finish() { add(filled_); }

   private:
    void add(int64_t count) {
      double *const threshold = sum_.weight_.data(), *const difference = sum_.difference_.data();
      sum_.add_entries(row_, added_, count, threshold, difference);
      std::copy_n(threshold + count, filled_ - count, threshold);
      std::copy_n(difference + count, filled_ - count, difference);
      added_ += count;
      filled_ -= count;
    }

    ThresholdSum& sum_;
    int64_t row_;
    int64_t added_ = 0;   // entries of the row
    int64_t filled_ = 0;  // entries behind those, once the last part is complete
  };

  bool add_by_parts(int64_t i) {
    PartsOfRow parts(*this, i);
    if (!finder_->find_parts(swap_row(row_of(i)), parts)) return false;
    parts.finish();
    return true;
  }

  /// Adds `count` entries of sample i from `first` on, up to kEntriesAtOnce at a time. Overwrites
  /// thresholds and differences.
  void add_entries(int64_t i, int64_t first, int64_t count, double* threshold, double* difference) {
    static_assert(kEntriesAtOnce % kSumLanes == 0);  // so that partial sums are the row's
    const Row& row = row_of(i);
    const Upcoming<T>& next = upcoming_[static_cast<size_t>(i)];
    for (int64_t at = 0; at < count; at += kEntriesAtOnce) {
      const int64_t j = first + at;
      ThresholdExample<T> part = row.example;
      part.theta += j;
      part.n = std::min(kEntriesAtOnce, count - at);
      if (part.free != nullptr) part.free += j;
      const EachSwaps swaps{.difference = difference + at, .valid = valid_.data()};
      double* const weight = threshold + at;
      // Separately: together they exceed the number of loads in flight.
      prefetch<0>(next.theta, j, part.n);
      kernels_.meet_each(part, swaps, weight);
      prefetch<0>(next.d, j, part.n);
      const SolutionRows rows{
          .bits = row.swaps.bits + j / 8, .count = 1, .n = part.n, .stride = whole_groups(part.n)};
      const bool exceeds = kernels_.weigh(target_, rows, weight, scratch_.data());
      prefetch<1>(next.dtheta, j, part.n);
      kernels_.add_each(target_, exceeds, swaps, weight, part.n, partials_, sum_.data() + j);
    }
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
  bool in_parts_;                          // whether it finds parts of a row
  int64_t stride_;
  int64_t capacity_;

  // The batch; with in_parts_, a part of a row instead of results by entry.
  std::vector<Row> rows_;
  std::vector<Upcoming<T>> upcoming_;
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
    // The rows that are read after sample s of example b.
    const auto upcoming = [&](int64_t b, int64_t s) {
      Upcoming<T> next;
      if (s + 1 == samples) {
        next.dtheta = pass.dtheta + b * n;
        s = -1;
        ++b;
        if (b < end) next.theta = examples.theta + b * n;
      }
      if (b < end && dy.widen == nullptr)
        next.d = dy.row(b, gradients == 1 ? 0 : s + 1, n, nullptr);
      return next;
    };
    // Rows [first, first + count) with scores x [count, n], or null.
    const auto add_rows = [&](int64_t first, int64_t count, const T* x) {
      int64_t b = first / samples, s = first % samples;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = first + i;
        sum.set(i, b, x == nullptr ? nullptr : x + i * n,
                kept ? pass.rivals + row * int64_t{sizeof(KeptRivals)} : nullptr,
                pass.bits + row * bytes_per_row(n),
                dy.row(b, gradients == 1 ? 0 : s, n, widened.data() + i * n), upcoming(b, s));
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
