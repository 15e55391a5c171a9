// Mean and standard error of a stream of numbers (Welford).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace aimle::experiments {

class Moments {
 public:
  void add(double value) {
    ++count_;
    const double before = value - mean_;
    mean_ += before / static_cast<double>(count_);
    squares_ += before * (value - mean_);
  }
  int64_t count() const { return count_; }
  /// NaN if there are none.
  double mean() const { return count_ > 0 ? mean_ : std::numeric_limits<double>::quiet_NaN(); }
  /// Of one value, unbiased; NaN for fewer than two.
  double variance() const {
    return count_ > 1 ? squares_ / static_cast<double>(count_ - 1)
                      : std::numeric_limits<double>::quiet_NaN();
  }
  /// Of the mean.
  double standard_error() const { return std::sqrt(variance() / static_cast<double>(count_)); }

 private:
  int64_t count_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;
};

}  // namespace aimle::experiments
