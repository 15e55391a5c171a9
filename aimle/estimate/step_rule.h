// The rule for step sizes (step_size.h), from norms to lambda, shared by both devices: they differ
// in how norms and sums are computed, and in which threads take part.
#pragma once

#include <cmath>
#include <cstdint>

#include "aimle/base/host_device.h"
#include "aimle/estimate/settings.h"
#include "aimle/estimate/target.h"
#include "aimle/map/solver.h"

namespace aimle {

// ---- Formulas -----------------------------------------------------------------------------------

/// Neither infinite nor NaN.
AIMLE_HD bool is_finite(double x) { return x - x == 0.0; }

/// The mean of a row, from its sum; zero for an empty one.
AIMLE_HD double mean_of(double sum, double entries) { return entries > 0.0 ? sum / entries : 0.0; }

/// The norm of a row minus its mean, from the sum of its squares; zero if only rounding is left.
AIMLE_HD double centred_norm(double squares, double mean, double entries) {
  constexpr double kRounding = 1e-12;
  const double norm = std::sqrt(squares);
  return norm <= kRounding * std::fabs(mean) * std::sqrt(entries) ? 0.0 : norm;
}

/// Whether the norms leave out the mean. Adding the same number to all scores, or to the gradient
/// of all entries, changes no solution if all solutions have the same number of ones.
AIMLE_HD bool norms_are_centred(const AdaptiveTarget& target, const SolutionSize& size) {
  return target.scale != AdaptiveTarget::Scale::kTheta && size.fixed;
}

/// Whether there is more than one way to choose `ones` of `free` entries. True if `ones` is
/// unknown.
AIMLE_HD bool has_choice(int64_t ones, int64_t free) {
  return ones < 0 ? free > 0 : 0 < ones && ones < free;
}

/// What alpha is a fraction of, given the norm of theta, the standard deviation of the tempered
/// noise and the number of entries that can move: see AdaptiveTarget::Scale.
AIMLE_HD double step_scale(AdaptiveTarget::Scale scale, double theta, double sigma,
                           double entries) {
  if (scale == AdaptiveTarget::Scale::kTheta) return theta;
  const double noise = sigma * std::sqrt(entries);
  if (scale == AdaptiveTarget::Scale::kNoise && noise > 0.0) return noise;
  const double floored = theta < noise ? noise : theta;  // NaN is kept
  return floored == 0.0 ? std::sqrt(entries) : floored;
}

// ---- The rule -----------------------------------------------------------------------------------

/// The part of the target that determines step sizes.
struct StepRule {
  bool adaptive = false;
  double fixed = 0.0;  // lambda, if it is not
  AdaptiveTarget::Scope scope = AdaptiveTarget::Scope::kExample;
  AdaptiveTarget::Scale scale = AdaptiveTarget::Scale::kTheta;
  bool zeros_count = false;  // whether samples without a gradient are counted
  double sigma = 0.0;        // the standard deviation of the tempered noise
  bool by_sample = false;    // whether every sample has its own step
  bool sees_choice = false;  // whether norms are restricted to what can change a solution
  bool centred = false;      // and exclude the mean
  SolutionSize size;

  /// Whether one step size is shared by the whole batch.
  AIMLE_HD bool of_batch() const { return adaptive && scope == AdaptiveTarget::Scope::kBatch; }

  /// Whether the solution of an example can change, given how many of its entries can move. `k` is
  /// the example's own, null if it has none.
  AIMLE_HD bool can_change(const int64_t* k, int64_t entries) const {
    return !sees_choice || has_choice(k != nullptr && size.fixed ? *k : size.ones, entries);
  }
};

inline StepRule step_rule(const PassSettings& settings, const SolutionSize& size) {
  if (const auto* fixed = std::get_if<FixedTarget>(&settings.target)) {
    return {.fixed = fixed->lambda};
  }
  const auto& target = std::get<AdaptiveTarget>(settings.target);
  return {.adaptive = true,
          .scope = target.scope,
          .scale = target.scale,
          .zeros_count = target.reference && target.scope == AdaptiveTarget::Scope::kBatch,
          .sigma = settings.noise_stddev * settings.target_temperature,
          .by_sample = steps_by_sample(settings),
          .sees_choice = target.scale != AdaptiveTarget::Scale::kTheta,
          .centred = norms_are_centred(target, size),
          .size = size};
}

/// The norms of an example: of theta over the entries that can move, their number, and whether its
/// solution can change; if it cannot, there is no gradient.
struct ExampleNorms {
  double theta = 0.0;
  int64_t entries = 0;
  bool can_change = true;
};

/// Values shared by the samples of an example.
struct SharedStep {
  double lambda = 0.0;    // the divisor of its difference (before the factor 2)
  double reported = 0.0;  // mean over its samples; NaN if none had a gradient
};

/// From the norms d(s) of gradient rows s < rows to their step sizes, and to `counted`, 1 if d is
/// finite and not zero. d may read `steps`. Executed by the threads of As together:
///   first(), kStride     this thread's rows
///   max(x), sum(x)       over all threads
///   fixed_sum(n, term)   the sum over all rows
template <class As, class Norm>
AIMLE_EITHER SharedStep set_steps(const StepRule& rule, const ExampleNorms& norms, int64_t rows,
                                  double alpha, double batch_lambda, Norm d, double* steps,
                                  uint8_t* counted) {
  constexpr double kNaN = __builtin_nan("");
  const bool known = is_finite(norms.theta);
  const auto norm = [&](int64_t s) {
    const double length = known ? d(s) : kNaN;
    return !norms.can_change && is_finite(length) ? 0.0 : length;
  };
  const auto counts = [&](double length) {
    return is_finite(length) && (length > 0.0 || rule.zeros_count);
  };
  double largest = 0.0;
  int any = 0;
  for (int64_t s = As::first(); s < rows; s += As::kStride) {
    const double length = norm(s);
    const bool is_counted = counts(length);
    counted[s] = is_counted;
    any += is_counted;
    if (is_counted && length > largest) largest = length;
  }
  any = As::sum(any);

  double shared = rule.fixed, size = 0.0;
  if (rule.of_batch()) {
    shared = batch_lambda;
  } else if (rule.adaptive) {
    largest = As::max(largest);
    size = step_scale(rule.scale, norms.theta, rule.sigma, static_cast<double>(norms.entries));
    const auto in_mean = [&](double length) {
      return counts(length) && length >= kSmallGradient * largest;
    };
    int used = 0;
    for (int64_t s = As::first(); s < rows; s += As::kStride) used += in_mean(norm(s));
    used = As::sum(used);
    const double sum = As::fixed_sum(rows, [&](int64_t s) {
      const double length = norm(s);
      return in_mean(length) ? size / length : 0.0;
    });
    const double mean = used > 1 ? sum / static_cast<double>(used) : sum;
    shared = used > 0 ? alpha * mean : 0.0;
  }
  for (int64_t s = As::first(); s < rows; s += As::kStride) {
    const double length = norm(s);
    double step = is_finite(length) ? shared : kNaN;
    if (rule.by_sample && is_finite(length)) step = counts(length) ? alpha * (size / length) : 0.0;
    if (rule.by_sample && !is_finite(step)) step = kNaN;
    steps[s] = step;
  }
  // by_sample: each sample's difference is divided by its own.
  return {.lambda = rule.by_sample ? 1.0 : shared, .reported = any > 0 ? shared : kNaN};
}

// ---- One step size for the batch ----------------------------------------------------------------

/// The contribution of an example to the batch.
struct BatchTerms {
  double theta = 0.0;     // the square of its norm
  double entries = 0.0;   // that can move
  double gradient = 0.0;  // the squares of the norms of its gradients
};

/// ||d||^2, or zero for a gradient that is not finite.
AIMLE_HD double finite_square(double length) { return is_finite(length) ? length * length : 0.0; }

/// `squares` is the sum of finite_square over its gradient rows.
AIMLE_HD BatchTerms batch_terms(const ExampleNorms& norms, double squares) {
  if (!is_finite(norms.theta)) return {};  // its own gradient will be NaN
  return {.theta = norms.theta * norms.theta,
          .entries = static_cast<double>(norms.entries),
          .gradient = norms.can_change ? squares : 0.0};
}

/// lambda, from the sums over the batch.
AIMLE_HD double batch_step(const StepRule& rule, const BatchTerms& sums, double rows,
                           double alpha) {
  double squares = sums.theta;
  if (rule.scale != AdaptiveTarget::Scale::kTheta) {
    const double scale = step_scale(rule.scale, std::sqrt(squares), rule.sigma, sums.entries);
    squares = scale * scale;
  }
  return sums.gradient > 0.0 ? alpha * std::sqrt(rows * squares / sums.gradient) : 0.0;
}

}  // namespace aimle
