// Collects the report of one backward pass from several threads, in a fixed order. Private to
// aimle/estimate.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "aimle/estimate/fixed_total.h"
#include "aimle/estimate/passes.h"

namespace aimle {

class ReportBuilder {
 public:
  explicit ReportBuilder(int64_t examples) : lambda_(static_cast<size_t>(examples)) {}

  /// Each example once, from any thread.
  void set_lambda(int64_t b, double reported) { lambda_[static_cast<size_t>(b)] = reported; }

  void add(const Changes& changes) {
    std::lock_guard lock(mutex_);
    changes_.add(changes);
  }

  void add(const Clipping& clipping) {
    std::lock_guard lock(mutex_);
    clipping_.add(clipping);
  }

  BackwardReport build() const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    BackwardReport report{
        .lambda_mean = kNaN, .lambda_min = kNaN, .lambda_max = kNaN, .changes = changes_};
    report.clipping = clipping_;
    int64_t seen = 0;
    for (const double lambda : lambda_) {
      if (std::isnan(lambda)) continue;
      report.lambda_min = seen == 0 ? lambda : std::min(report.lambda_min, lambda);
      report.lambda_max = seen == 0 ? lambda : std::max(report.lambda_max, lambda);
      ++seen;
    }
    if (seen == 0) return report;
    const double sum = fixed_total(static_cast<int64_t>(lambda_.size()), [&](int64_t b) {
      const double lambda = lambda_[static_cast<size_t>(b)];
      return std::isnan(lambda) ? 0.0 : lambda;
    });
    report.lambda_mean = sum / static_cast<double>(seen);
    return report;
  }

 private:
  std::vector<double> lambda_;
  std::mutex mutex_;
  Changes changes_;
  Clipping clipping_;
};

}  // namespace aimle
