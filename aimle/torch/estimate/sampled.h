// What the estimators written as compositions of ops share: arguments, noise, shapes.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "aimle/torch/estimator.h"
#include "aimle/torch/functions.h"

namespace aimle {

/// theta [*batch, n] -> S samples, with the shapes and modes of the layers. A family defines
/// `samples`.
class Sampled : public Estimator {
 public:
  Sampled(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options);

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call) const final;

 protected:
  /// z [*batch, S, n] (S = 1 unless `noisy`) for scores [*batch, n], theta with masked entries
  /// -inf. `call` gives k and key.
  virtual at::Tensor samples(const at::Tensor& scores, const LayerCall& call) const = 0;

  /// Whether a call now draws samples.
  bool noisy() const { return is_training() || noise_in_eval_; }
  at::Tensor key(const at::Tensor& theta, const LayerCall& call) const;
  /// [*batch, n] -> [*batch, S, n] with Gumbel noise added where samples are drawn.
  at::Tensor perturbed(const at::Tensor& scores, const LayerCall& call) const;
  /// Gumbel noise [*batch, S, draws, n] of the type of scores, zeros [*batch, 1, draws, n] where
  /// nothing is drawn.
  at::Tensor draws(const at::Tensor& scores, const LayerCall& call, int64_t draws) const;
  /// The hard solution of x [*batch, S, n].
  at::Tensor solved(const at::Tensor& x, const LayerCall& call) const;

  const SolverSpec& solver() const { return solver_; }
  int64_t nb_samples() const { return nb_samples_; }

 private:
  SolverSpec solver_;
  int64_t nb_samples_;
  std::string output_;
  bool noise_in_eval_;
  std::optional<at::Generator> generator_;
};

/// theta with masked entries -inf.
at::Tensor hide(const at::Tensor& theta, const std::optional<at::Tensor>& mask);

/// The value of hard with the gradient of soft.
at::Tensor straight_through(const at::Tensor& hard, const at::Tensor& soft);

/// k per row of the batch as k per sample.
RowLimits per_sample(const LayerCall& call);

/// ValueErrors that name the estimator.
void check_samples(const std::string& name, int64_t nb_samples, int64_t least);
void check_word(const std::string& name, const std::string& setting, const std::string& value,
                const std::vector<std::string>& allowed);
void check_temperature(const std::string& name, double temperature);
/// TypeError unless theta has a floating-point type.
void check_theta(const std::string& name, const at::Tensor& theta);

}  // namespace aimle
