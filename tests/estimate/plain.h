// A literal implementation of the estimator: one row, one entry, one sum at a time. It shares the
// solvers and the noise with the library, and nothing else.
#pragma once

#include <algorithm>
#include <functional>

#include "tests/estimate/cases.h"

namespace aimle::cases {

/// The order of fixed_sum.h.
inline double ordered_sum(int64_t n, const std::function<double(int64_t)>& term) {
  double partial[32] = {};
  for (int64_t j = 0; j < n; ++j) partial[j % 32] += term(j);
  for (int half = 16; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
  }
  return partial[0];
}

template <class T>
class Plain {
 public:
  explicit Plain(const Case<T>& call)
      : call_(call),
        settings_(call.settings),
        adaptive_(std::get_if<AdaptiveTarget>(&call.settings.target)),
        n_(call.n()),
        samples_(call.samples()) {
    for (int64_t b = 0; b < call.count; ++b) {
      theta_norms_.push_back(norm(b, call.theta.data() + b * n_));
      const bool nothing = sees_choice() && !chooses(b);
      for (int64_t r = 0; r < call.rows(); ++r) {
        const double length = norm(b, gradient(b, r));
        d_norms_.push_back(nothing && std::isfinite(length) ? 0.0 : length);
      }
    }
  }

  Outcome<T> run() {
    Outcome<T> result;
    std::vector<T> z;
    for (int64_t b = 0; b < call_.count; ++b) {
      for (int64_t s = 0; s < samples_; ++s) {
        const std::vector<T> row = solve(b, scores(b, s, 0.0, settings_.theta_temperature));
        z.insert(z.end(), row.begin(), row.end());
      }
    }
    result.z = shape_output(call_, z);
    std::vector<double> lambdas;
    for (int64_t b = 0; b < call_.count; ++b) backward(b, z, result, lambdas);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> seen;
    for (const double lambda : lambdas) {
      if (!std::isnan(lambda)) seen.push_back(lambda);
    }
    BackwardReport& report = result.report;
    report.lambda_mean = report.lambda_min = report.lambda_max = nan;
    if (!seen.empty()) {
      report.lambda_min = *std::min_element(seen.begin(), seen.end());
      report.lambda_max = *std::max_element(seen.begin(), seen.end());
      report.lambda_mean = ordered_sum(call_.count,
                                       [&](int64_t b) {
                                         const double lambda = lambdas[static_cast<size_t>(b)];
                                         return std::isnan(lambda) ? 0.0 : lambda;
                                       }) /
                           static_cast<double>(seen.size());
    }
    return result;
  }

  bool free(int64_t b, int64_t j) const {
    const auto at = static_cast<size_t>(b * n_ + j);
    return (call_.mask.size() == 0 || call_.mask[at]) && !std::isinf(call_.theta[at]);
  }

  int64_t free_entries(int64_t b) const {
    int64_t count = 0;
    for (int64_t j = 0; j < n_; ++j) count += free(b, j);
    return count;
  }

  double theta_norm(int64_t b) const { return theta_norms_[static_cast<size_t>(b)]; }
  double d_norm(int64_t b, int64_t r) const {
    return d_norms_[static_cast<size_t>(b * call_.rows() + r)];
  }

  bool finite(int64_t b, int64_t r) const {
    return std::isfinite(theta_norm(b)) && std::isfinite(d_norm(b, r));
  }

  /// Had the sample a gradient that counts? To the authors a zero does.
  bool counts(int64_t b, int64_t r) const {
    const bool zero_counts = adaptive_ != nullptr && adaptive_->reference &&
                             adaptive_->scope == AdaptiveTarget::Scope::kBatch;
    return finite(b, r) && (d_norm(b, r) > 0.0 || zero_counts);
  }

  /// The step of gradient row r, NaN where its gradient or scores are not finite.
  double lambda(int64_t b, int64_t r, double shared) const {
    if (!finite(b, r)) return std::numeric_limits<double>::quiet_NaN();
    if (by_sample()) {
      return counts(b, r) ? call_.alpha * (size(b) / d_norm(b, r)) : 0.0;
    }
    return shared;
  }

  /// The example's step: of its own mean (kExample, and what kSample reports), or the batch's.
  double shared_lambda(int64_t b) const {
    if (adaptive_ == nullptr) return std::get<FixedTarget>(settings_.target).lambda;
    if (adaptive_->scope == AdaptiveTarget::Scope::kBatch) return batch_lambda();
    double largest = 0.0;
    for (int64_t r = 0; r < call_.rows(); ++r) {
      if (counts(b, r)) largest = std::max(largest, d_norm(b, r));
    }
    int64_t used = 0;
    const double sum = ordered_sum(call_.rows(), [&](int64_t r) {
      if (!counts(b, r) || d_norm(b, r) < 1e-6 * largest) return 0.0;
      ++used;
      return size(b) / d_norm(b, r);
    });
    return used == 0 ? 0.0 : call_.alpha * (sum / static_cast<double>(used));
  }

 private:
  const T* gradient(int64_t b, int64_t r) const {
    return call_.dy.data() + (b * call_.rows() + r) * n_;
  }

  /// Over the free entries; minus their mean where no solution can see it.
  double norm(int64_t b, const T* row) const {
    const auto sum = [&](const std::function<double(double)>& term) {
      return ordered_sum(
          n_, [&](int64_t j) { return free(b, j) ? term(static_cast<double>(row[j])) : 0.0; });
    };
    if (!sees_choice() || call_.solver.template is<GridPath>()) {
      return std::sqrt(sum([](double x) { return x * x; }));
    }
    const auto entries = static_cast<double>(free_entries(b));
    if (entries == 0.0) return 0.0;
    const double mean = sum([](double x) { return x; }) / entries;
    const double norm = std::sqrt(sum([&](double x) { return (x - mean) * (x - mean); }));
    return norm <= 1e-12 * std::abs(mean) * std::sqrt(entries) ? 0.0 : norm;
  }

  /// Has every gradient row a step of its own?
  bool by_sample() const {
    return adaptive_ != nullptr && adaptive_->scope == AdaptiveTarget::Scope::kSample &&
           call_.rows() > 1;
  }

  /// Do norms see only what a solution can see? The paper's see everything.
  bool sees_choice() const {
    return adaptive_ != nullptr && adaptive_->scale != AdaptiveTarget::Scale::kTheta;
  }

  /// False if the example has one feasible solution, as far as the number of ones tells.
  bool chooses(int64_t b) const {
    const int64_t free = free_entries(b);
    if (call_.solver.template is<GridPath>()) return free > 0;
    int64_t ones = 1;
    if (const auto* tree = call_.solver.template get_if<SpanningTree>()) {
      ones = tree->vertices - 1;
      if (tree->layout == SpanningTree::Layout::kDirected) ones *= 2;
    } else if (!call_.k.empty()) {
      ones = call_.k[static_cast<size_t>(b)];
    } else if (const auto* topk = call_.solver.template get_if<TopK>()) {
      ones = topk->k;
    }
    return 0 < ones && ones < free;
  }

  double sigma() const { return settings_.noise_stddev * settings_.target_temperature; }

  /// What the norm of d is compared with, given the norm of theta and its free entries.
  double size_of(double theta, double entries) const {
    using Scale = AdaptiveTarget::Scale;
    if (adaptive_->scale == Scale::kTheta) return theta;
    const double noise = sigma() * std::sqrt(entries);
    const bool floored = adaptive_->scale == Scale::kAuto || noise == 0.0;
    const double size = floored && theta >= noise ? theta : noise;
    return size == 0.0 ? std::sqrt(entries) : size;
  }

  double size(int64_t b) const {
    return size_of(theta_norm(b), static_cast<double>(free_entries(b)));
  }

  double batch_lambda() const {
    auto finite = [&](int64_t b) { return std::isfinite(theta_norm(b)); };
    const auto total = [&](const std::function<double(int64_t)>& term) {
      return ordered_sum(call_.count, [&](int64_t b) { return finite(b) ? term(b) : 0.0; });
    };
    double theta = total([&](int64_t b) { return theta_norm(b) * theta_norm(b); });
    const double entries = total([&](int64_t b) { return static_cast<double>(free_entries(b)); });
    const double gradients = total([&](int64_t b) {
      return ordered_sum(call_.rows(), [&](int64_t r) {
        return std::isfinite(d_norm(b, r)) ? d_norm(b, r) * d_norm(b, r) : 0.0;
      });
    });
    if (!(gradients > 0.0)) return 0.0;
    if (sees_choice()) theta = std::pow(size_of(std::sqrt(theta), entries), 2);
    return call_.alpha * std::sqrt(static_cast<double>(call_.rows()) * theta / gradients);
  }

  /// The maximised scores x of sample s after a signed step, turned round for solvers that
  /// minimise.
  std::vector<T> scores(int64_t b, int64_t s, double step, double temperature) const {
    std::vector<float> eps(static_cast<size_t>(n_));
    fill_rows(settings_.noise, call_.key,
              {.first = b * samples_ + s, .count = 1, .samples = samples_, .n = n_}, eps.data());
    const T* d = gradient(b, settings_.output == Output::kMean ? 0 : s);
    const auto tau = static_cast<T>(temperature);
    std::vector<T> x(static_cast<size_t>(n_));
    for (int64_t j = 0; j < n_; ++j) {
      const auto at = static_cast<size_t>(j);
      T value = call_.theta[static_cast<size_t>(b * n_ + j)];
      if (settings_.sense == Sense::kMin) value = -value;
      if (step != 0.0 && !std::isinf(value)) {
        value += static_cast<T>(step * static_cast<double>(d[j]));
      }
      value += tau * static_cast<T>(eps[at]);
      x[at] = sense_of(call_.solver) == Sense::kMin ? -value : value;
    }
    return x;
  }

  std::vector<T> solve(int64_t b, const std::vector<T>& x) const {
    std::vector<T> z(x.size());
    Status status;
    const Rows<T> row{
        .count = 1,
        .scores = x.data(),
        .mask = call_.mask.size() != 0 ? &call_.mask[static_cast<size_t>(b * n_)] : nullptr,
        .k = call_.k.empty() ? nullptr : call_.k.data() + b,
        .z = z.data(),
        .status = &status};
    call_.solver.solve_rows(row);
    return z;
  }

  void backward(int64_t b, const std::vector<T>& z, Outcome<T>& result,
                std::vector<double>& lambdas) const {
    const bool through = settings_.difference == Difference::kStraightThrough;
    const bool mean = settings_.output == Output::kMean;
    const bool central = settings_.difference == Difference::kCentral;
    const bool own = by_sample();
    const double sign = settings_.sense == Sense::kMin ? -1.0 : 1.0;
    std::vector<double> sum(static_cast<size_t>(n_), 0.0);
    const double shared = through ? 0.0 : shared_lambda(b);
    bool any = false;
    for (int64_t s = 0; s < samples_ && !(through && mean && s > 0); ++s) {
      const int64_t r = mean ? 0 : s;
      if (through) {
        for (int64_t j = 0; j < n_; ++j) sum[static_cast<size_t>(j)] += gradient(b, r)[j];
        continue;
      }
      const double step = lambda(b, r, shared), tau = settings_.target_temperature;
      std::vector<T> left = solve(b, scores(b, s, central ? step : 0.0, tau));
      const std::vector<T> right = solve(b, scores(b, s, -step, tau));
      if (keeps_solution(settings_)) {
        left.assign(z.begin() + (b * samples_ + s) * n_, z.begin() + (b * samples_ + s + 1) * n_);
      }
      int64_t changed = 0;
      bool finite = true;
      for (size_t j = 0; j < sum.size(); ++j) {
        const double change = static_cast<double>(left[j]) - static_cast<double>(right[j]);
        finite &= std::isfinite(change);
        if (change == 0.0) continue;
        ++changed;
        sum[j] += own ? change / step : change;
      }
      any |= counts(b, r);
      if (counts(b, r) && finite) {
        result.report.changes.samples += 1;
        result.report.changes.nonzeros += changed;
        result.report.changes.changed += changed > 0;
      }
    }
    double divisor = (central ? 2.0 : 1.0) * (own ? 1.0 : shared);
    if (adaptive_ != nullptr && adaptive_->reference) {
      divisor /= std::sqrt(static_cast<double>(samples_));
    }
    if (mean) divisor *= static_cast<double>(samples_);
    for (int64_t j = 0; j < n_; ++j) {
      double g = sum[static_cast<size_t>(j)];
      if (through) {
        g *= sign;
      } else {
        g = divisor > 0.0 ? sign * g / divisor : 0.0 * g;
      }
      if (!free(b, j)) g = 0.0;
      result.dtheta.push_back(static_cast<T>(g));
      if (through) continue;
      result.report.changes.entries += free(b, j);
      result.report.changes.zeros += free(b, j) && g == 0.0;
    }
    lambdas.push_back(any && !through ? shared : std::numeric_limits<double>::quiet_NaN());
  }

  const Case<T>& call_;
  const PassSettings& settings_;
  const AdaptiveTarget* adaptive_;
  int64_t n_;
  int64_t samples_;
  std::vector<double> theta_norms_;
  std::vector<double> d_norms_;
};

template <class T>
Outcome<T> run_plainly(const Case<T>& call) {
  return Plain<T>(call).run();
}

}  // namespace aimle::cases
