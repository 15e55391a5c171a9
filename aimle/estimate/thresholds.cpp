#include "aimle/estimate/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/estimate/block.h"
#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"
#include "aimle/estimate/report.h"
#include "aimle/estimate/threshold_finder.h"
#include "aimle/estimate/threshold_kernels.h"
#include "aimle/noise/exp.h"

namespace aimle {
namespace {

template <class T>
class ThresholdSum {
 public:
  ThresholdSum(const EstimatorSettings& settings, const Solver& solver, const Examples<T>& examples)
      : settings_(settings),
        target_(std::get<ThresholdTarget>(settings.target)),
        examples_(examples),
        kernels_(threshold_kernels<T>()),
        finder_(solver),
        sign_(settings.sense == Sense::kMin ? -1.0 : 1.0) {
    if (settings.noise.kind == NoiseKind::kNone) target_.order = ThresholdTarget::Order::kFirst;
    const auto n = static_cast<size_t>(examples.n);
    const size_t padded = n + kThresholdPadding;
    for (auto* entries : {&u_, &difference_, &sum_}) entries->resize(padded);
    for (auto* flags : {&in_, &valid_}) flags->resize(padded);
    free_.resize(n);
    if (!finder_.is_tree()) return;
    threshold_.resize(n);
    partner_.resize(n);
    gain_.resize(n);
  }

  /// Starts example b.
  void start(int64_t b) {
    const int64_t n = examples_.n;
    theta_ = examples_.theta + b * n;
    mask_ = examples_.mask != nullptr ? examples_.mask + b * n : nullptr;
    k_ = examples_.k != nullptr ? examples_.k + b : nullptr;
    free_count_ = kernels_.find_free(theta_, mask_, n, free_.data());
  }

  /// Adds a sample: its scores x [n], packed solution and gradient d [n].
  void add(const T* x, const uint8_t* bits, const T* d) {
    const int64_t count = kernels_.unpack(bits, examples_.n, in_.data());
    const bool solved = count == finder_.size_of_solution(k_);
    if (!solved) {  // the row had no solution
      std::fill(sum_.begin(), sum_.end(), std::numeric_limits<double>::quiet_NaN());
      return;
    }
    if (finder_.is_tree()) {
      compare_in_tree(x, d);
    } else {
      compare_in_row(x, d);
    }
    kernels_.weigh(target_, row(), examples_.n, partials_, sum_.data());
    changes_.samples += 1;
  }

  /// Writes the gradient of the example.
  CappedTotals finish(T* dtheta) {
    const double samples =
        settings_.output == Output::kMean ? static_cast<double>(settings_.samples) : 1.0;
    const double scale = sign_ / (settings_.theta_temperature * samples);
    changes_.zeros += kernels_.center(sum_.data(), free(), free_count_, scale, examples_.n, dtheta);
    changes_.entries += free_count_;
    std::fill(sum_.begin() + examples_.n, sum_.end(), 0.0);
    return kernels_.drain(partials_);
  }

  const Changes& changes() const { return changes_; }

 private:
  const Flag* free() const { return free_count_ == examples_.n ? nullptr : free_.data(); }
  WeightRow row() {
    return {
        .u = u_.data(), .difference = difference_.data(), .in = in_.data(), .valid = valid_.data()};
  }

  void compare_in_row(const T* x, const T* d) {
    const int64_t n = examples_.n;
    const Rivals rivals = kernels_.rivals(x, mask_, in_.data(), n);
    const auto meeting = [&](int64_t partner) -> Meeting {
      if (partner < 0 || std::isinf(x[partner])) return {};  // no noise gets there
      return {.threshold = x[partner], .gain = d[partner], .met = true};
    };
    kernels_.meet(meeting(rivals.best_out), meeting(rivals.worst_in), theta_, sign_,
                  settings_.theta_temperature, d, free(), n, row());
  }

  void compare_in_tree(const T* x, const T* d) {
    finder_.find(x, mask_, k_, in_.data(), threshold_.data(), partner_.data());
    finder_.fold(d, gain_.data());
    const double tau = settings_.theta_temperature;
    for (int64_t j = 0; j < examples_.n; ++j) {
      const auto t = static_cast<double>(threshold_[j]);
      const bool valid = partner_[j] >= 0 && free_[j] != 0 && std::isfinite(t);
      valid_[j] = mask_if(valid);
      u_[j] = valid ? (t - sign_ * static_cast<double>(theta_[j])) / tau : 0.0;
      difference_[j] = valid ? gain_[j] - gain_[partner_[j]] : 0.0;
    }
  }

  const EstimatorSettings& settings_;
  ThresholdTarget target_;
  const Examples<T>& examples_;
  const ThresholdKernels<T>& kernels_;
  ThresholdFinder<T> finder_;
  double sign_;

  // The example.
  const T* theta_ = nullptr;
  const bool* mask_ = nullptr;
  const int64_t* k_ = nullptr;
  std::vector<Flag> free_;
  int64_t free_count_ = 0;
  std::vector<double> sum_;
  CappedPartials partials_;

  // The sample.
  std::vector<Flag> in_, valid_;
  std::vector<double> u_, difference_;
  std::vector<T> threshold_;
  std::vector<int64_t> partner_;
  std::vector<double> gain_;

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
  const ThresholdFinder<T> supported(solver);  // throws here rather than on a thread
  const double ns = (supported.is_tree() ? 12.0 : 5.0) * static_cast<double>(samples * n);
  std::vector<CappedTotals> capped(static_cast<size_t>(examples.count));
  ReportBuilder report(0);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * samples);
    std::vector<T> x(static_cast<size_t>(block.capacity() * n)), widened(static_cast<size_t>(n));
    ThresholdSum<T> sum(settings, solver, examples);
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      rows.perturb(sign, x.data());
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t b = rows.example(i), g = gradients == 1 ? 0 : rows.sample(i);
        if (rows.sample(i) == 0) sum.start(b);
        sum.add(x.data() + i * n, pass.bits + (rows.first() + i) * bytes_per_row(n),
                dy.row(b, g, n, widened.data()));
        if (rows.sample(i) + 1 == samples) {
          capped[static_cast<size_t>(b)] = sum.finish(pass.dtheta + b * n);
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
