// The estimators that draw samples for theta [*batch, *instance]; below, n stands for *instance.
// Each is one function, composed of ops with gradients. `torch.ops.aimle` (ops.cpp) and `estimator`
// (the class Sampled) call it, so that Python and LibTorch programs run the same formula. Sizes may
// be symbolic: PyTorch traces through the ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "aimle/torch/estimator.h"
#include "aimle/torch/functions.h"

namespace aimle {

/// The input of one call of such an estimator.
struct SampleRequest {
  SolverSpec solver;
  at::Tensor scores;                              // [*batch, n], theta with masked entries -inf
  std::optional<at::Tensor> mask = std::nullopt;  // as given; has more information (map/chain.h)
  std::optional<at::Tensor> row_data = std::nullopt;  // see RowLimits
  std::optional<at::Tensor> key = std::nullopt;       // none: no noise, and one sample
  int64_t nb_samples = 1;                             // S
  at::Tensor temperature = {};                        // for relaxations: of their softmax
  bool hard = false;                                  // for relaxations: straight-through
  int64_t draws = 1;                                  // for gumbel_rao: of the noise given z
};

/// z [*batch, S, n], S = 1 without a key.
using SampleFormula = at::Tensor(const SampleRequest& request);

SampleFormula reinmax_samples;                                       // reinmax.cpp
SampleFormula gumbel_rao_samples;                                    // gumbel_rao.cpp
SampleFormula gumbel_softmax_samples, softsub_samples, l2x_samples;  // relaxed.cpp
SampleFormula sst_samples, exact_marginal_samples;                   // marginal.cpp
SampleFormula sfe_samples;                                           // score.cpp

// ---- Helpers of the formulas ----

/// Noise [*batch, S, n], or [*batch, S, draws, n], in the type of scores; zeros without a key. It
/// is Gumbel, or logistic for solvers that declare it: their solutions then have the exact
/// distribution, or are close to it.
at::Tensor own_noise(const SampleRequest& request, std::optional<int64_t> draws = std::nullopt);
/// x [*batch, S, n]: the scores with that noise.
at::Tensor perturbed(const SampleRequest& request);
/// The hard solution of x [*batch, S, n].
at::Tensor solved(const SampleRequest& request, const at::Tensor& x);
/// For relaxations: soft, or the hard solution of x [*batch, S, n] with its gradient, if `hard` or
/// without a key.
at::Tensor shown(const SampleRequest& request, const at::Tensor& x, const at::Tensor& soft);
/// Independent draws from the exact distribution; without a key the hard solution.
at::Tensor exact_or_solved(const SampleRequest& request);
/// The dimension of the samples, before the dimensions of an instance: -2, -3, ...
int64_t sample_dim(const SampleRequest& request);
/// The limits of the batch's rows, and those of every sample.
RowLimits per_row(const SampleRequest& request);
RowLimits per_sample(const SampleRequest& request);

/// theta with masked entries -inf.
at::Tensor hide(const at::Tensor& theta, const std::optional<at::Tensor>& mask);
/// The value of hard with the gradient of soft.
at::Tensor straight_through(const at::Tensor& hard, const at::Tensor& soft);
/// The samples for theta, which replaces `scores`, in its type and in the shape given by `output`:
/// "samples", "flat" or "mean". bfloat16 and float16, which would round the noise, are computed in
/// float32.
at::Tensor samples_of(SampleFormula* formula, SampleRequest request, const at::Tensor& theta,
                      const std::string& output);

// ---- The estimators as objects ----

/// Holds the settings of a formula, and the temperature if it takes one.
class Sampled : public Estimator {
 public:
  Sampled(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options,
          SampleFormula* formula);

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call) const final;
  void set_temperature(double temperature) final;

 protected:
  const SolverSpec& solver() const { return solver_; }
  int64_t nb_samples() const { return nb_samples_; }

 private:
  SampleFormula* formula_;
  SolverSpec solver_;
  int64_t nb_samples_;
  std::string output_;
  bool hard_;
  int64_t draws_;
  bool noise_in_eval_;
  std::optional<at::Generator> generator_;
};

template <SampleFormula* formula>
std::unique_ptr<Estimator> build_sampled(const EstimatorInfo& info, SolverSpec solver,
                                         const EstimatorOptions& options) {
  return std::make_unique<Sampled>(info, std::move(solver), options, formula);
}

/// These throw ValueErrors that name the estimator.
void check_samples(const std::string& name, int64_t nb_samples, int64_t least);
void check_draws(const std::string& name, int64_t draws);
void check_word(const std::string& name, const std::string& setting, const std::string& value,
                const std::vector<std::string>& allowed);
void check_temperature(const std::string& name, double temperature);
/// Throws TypeError unless theta has a floating-point type.
void check_theta(const std::string& name, const at::Tensor& theta);

}  // namespace aimle
