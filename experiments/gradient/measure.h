// Compares one estimate of a gradient with the true one.
//
// Every sample has its own dy, as with a loss summed over samples, so that a fixed lambda means the
// same for any number of samples; the estimate is the mean over samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

#include "experiments/gradient/contestant.h"
#include "experiments/gradient/problem.h"

namespace aimle::experiments {

/// A component below this is a zero, as in the authors' code.
inline constexpr double kZero = 1e-8;

struct Measurement {
  double cosine = 0.0;          // of estimate and true gradient; 0 if the estimate is zero
  double zeros = 0.0;           // share of components below kZero
  double norm_ratio = 0.0;      // of the estimate's norm to the true one
  double relative_error = 0.0;  // ||estimate - true|| / ||true||
  double alpha = std::numeric_limits<double>::quiet_NaN();   // adaptive: before this pass
  double lambda = std::numeric_limits<double>::quiet_NaN();  // the step of this pass
};

/// A noise key, derived from everything that should change it.
at::Tensor noise_key(uint64_t a, uint64_t b, uint64_t c, uint64_t step);

/// The estimate of the gradient at theta (the problem's own if undefined): [*instance], float64.
at::Tensor estimate(const Estimator& estimator, const Problem& problem, const at::Tensor& key,
                    const at::Tensor& theta = {});

/// `steps` backward passes at the problem's theta; updates the state.
void warm_up(const Estimator& estimator, const Problem& problem, int64_t steps, uint64_t stream);

/// Copies alpha and the rest of the state.
void carry_state(const Estimator& from, const Estimator& to);

Measurement measure(const Estimator& estimator, const Problem& problem, const at::Tensor& key);
Measurement compare(const at::Tensor& estimate, const at::Tensor& truth);

}  // namespace aimle::experiments
