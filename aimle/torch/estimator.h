// The switchboard: every estimator by name, for LibTorch programs.
//
//   auto layer = aimle::estimator("imle", aimle::topk(10), {.nb_samples = 5, .lambda = 10.0});
//   at::Tensor z = (*layer)(theta);                              // [*batch, S, n]
//   at::Tensor losses = layer->surrogate(theta, z, loss(z));     // [*batch, S]
//   losses.mean().backward();                                    // theta has a gradient
//
// The names, settings, defaults and formulas are those of `aimle.estimator` in Python: the same key
// gives the same z and the same gradient. `estimators()` lists them with their papers and the
// structures to which they apply. For a submodule of a torch::nn::Module see aimle/torch/module.h.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aimle/torch/layer.h"

namespace aimle {

/// The default of `draws`.
inline constexpr int64_t kConditionalDraws = 8;

/// The settings of an estimator. Unset means its default; a setting that it does not take is a
/// ValueError that lists those it takes. Values are checked by `estimator`.
struct EstimatorOptions {
  std::optional<int64_t> nb_samples = std::nullopt;  // S
  std::optional<NoiseSpec> noise = std::nullopt;
  // Scale of the noise in forward; for relaxations, whose noise has scale 1, that of their softmax.
  std::optional<double> temperature = std::nullopt;
  std::optional<double> theta_noise_temperature = std::nullopt;  // alias for layers with noise
  std::optional<double> target_noise_temperature = std::nullopt;

  // Fixed targets: imle, imle_central, dbb.
  std::optional<double> lambda = std::nullopt;
  // Adaptive targets: aimle and those named after it; see AdaptiveTarget.
  std::optional<bool> symmetric_perturbation = std::nullopt;  // also imle; central if true
  std::optional<double> initial_alpha = std::nullopt;
  std::optional<double> step = std::nullopt;
  std::optional<double> target_norm = std::nullopt;
  std::optional<double> decay = std::nullopt;
  std::optional<std::string> scope = std::nullopt;  // "example", "sample", "batch"
  std::optional<std::string> scale = std::nullopt;  // "auto", "theta", "noise"
  std::optional<std::string> rule = std::nullopt;   // "additive", "multiplicative"
  std::optional<double> factor = std::nullopt;
  std::optional<std::pair<double, double>> alpha_range = std::nullopt;
  std::optional<double> momentum = std::nullopt;
  std::optional<double> initial_gbar = std::nullopt;
  std::optional<bool> reference = std::nullopt;  // the authors' code: default scope "batch"

  std::optional<double> share = std::nullopt;       // aimle_covariance: weight of the covariance
  std::optional<std::string> order = std::nullopt;  // thresholds: "trapezoid", "first"
  std::optional<double> max_weight = std::nullopt;  // thresholds
  std::optional<std::string> projection = std::nullopt;  // identity: "std", "mean", "norm", "none"
  std::optional<std::string> baseline = std::nullopt;    // sfe: "none", "leave_one_out"
  std::optional<bool> hard = std::nullopt;               // relaxations: straight-through
  std::optional<int64_t> draws = std::nullopt;           // gumbel_rao: of the noise given z
  std::optional<std::string> variance_reduction = std::nullopt;  // dpo: "leave_one_out", "none"

  std::optional<std::string> sense = std::nullopt;   // "max", "min"; unset: the solver's own
  std::optional<std::string> output = std::nullopt;  // "samples", "flat", "mean"
  std::optional<bool> noise_in_eval = std::nullopt;
  std::optional<at::Generator> generator = std::nullopt;
};

/// An option for the command line.
struct OptionInfo {
  std::string name;
  std::string takes;       // "a number > 0", "samples, flat or mean", ...
  std::string meaning;     // one line
  std::string by_default;  // its default value; exceptions, or what is not a value, in ()
};

/// Every option that can be written as text: all of EstimatorOptions except the generator.
const std::vector<OptionInfo>& known_estimator_options();

/// Sets the option of this name ('-' is '_') from text: `set_option(options, "lambda", "10")`.
/// The ValueError names an unknown option with the nearest known one, or an invalid value with what
/// is allowed. Noises: none, gumbel, normal, logistic, sum_of_gamma:K[:ITERATIONS].
void set_option(EstimatorOptions& options, const std::string& name, const std::string& value);

/// The names of the options that are set.
std::vector<std::string> given_options(const EstimatorOptions& options);

struct EstimatorInfo {
  std::string name;
  std::string summary;  // one line
  std::string paper;    // authors, venue, year
  /// Whether it can be used with the solver; null: with every solver.
  bool (*applies)(const SolverKind& solver) = nullptr;
  std::vector<std::string> settings;  // names of EstimatorOptions
  bool needs_losses = false;          // theta's gradient comes (also) from `surrogate`
  bool soft = false;                  // z has values between 0 and 1 in training, unless `hard`

  bool applies_to(const SolverSpec& solver) const;
  /// The names of all registered solvers to which it applies.
  std::vector<std::string> structures() const;
  bool takes(const std::string& setting) const;
};

/// Every estimator, in the order of the documentation.
const std::vector<EstimatorInfo>& estimators();
/// The one of this name; throws ValueError with the nearest name otherwise.
const EstimatorInfo& estimator_info(const std::string& name);

/// theta [*batch, *instance] -> z with a gradient: [*batch, S, *instance] ("samples"),
/// [B S, *instance] ("flat") or [*batch, *instance] ("mean"). In eval mode z is the noise-free
/// solution (S = 1, unless noise_in_eval) and the state is frozen.
class Estimator {
 public:
  explicit Estimator(const EstimatorInfo& info) : info_(&info) {}
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;
  virtual ~Estimator() = default;

  virtual at::Tensor forward(const at::Tensor& theta, const LayerCall& call = {}) const = 0;
  at::Tensor operator()(const at::Tensor& theta, const LayerCall& call = {}) const {
    return forward(theta, call);
  }

  /// Whether theta's gradient comes (also) from the losses of the samples, through `surrogate`.
  bool needs_losses() const { return info_->needs_losses; }
  /// The losses, one for every sample, with the part of theta's gradient that needs them; mask and
  /// k as in the call that returned z. Returns the losses unchanged if they are not needed.
  virtual at::Tensor surrogate(const at::Tensor& theta, const at::Tensor& z,
                               const at::Tensor& losses, const LayerCall& call = {}) const;

  /// Sets the temperature of relaxations; throws ValueError for other estimators. See `anneal`.
  virtual void set_temperature(double temperature);

  virtual void train(bool on = true) { training_ = on; }
  bool is_training() const { return training_; }

  /// Moves state and constants to the device of theta.
  void to(at::Device device, bool non_blocking = false) {
    move_tensors(state(), device, non_blocking);
    move_tensors(constants(), device, non_blocking);
  }

  using Tensors = std::map<std::string, at::Tensor>;
  /// What a checkpoint saves: alpha, gbar, updates (adaptive targets), temperature (relaxations).
  virtual const Tensors& state() const { return state_; }
  /// Tensors that must be on theta's device but need no saving.
  virtual const Tensors& constants() const { return constants_; }
  /// Statistics of the last backward pass, as for Layer; empty if nothing is recorded.
  virtual Tensors stats() const { return {}; }

  /// Where several processes share a batch: as for Layer. Without an adaptive state they do nothing.
  virtual void defer_updates() {}
  virtual at::Tensor waiting_counts() const { return {}; }
  virtual void apply_counts(const at::Tensor& /*sum*/) {}

  const EstimatorInfo& info() const { return *info_; }
  const std::string& name() const { return info_->name; }

 protected:
  Tensors state_;
  Tensors constants_;

 private:
  const EstimatorInfo* info_;
  bool training_ = true;
};

/// The estimator of this name for a solver. Throws ValueError for an unknown name (with the nearest
/// one), a setting it does not take or a value out of range; TypeError for a structure to which it
/// does not apply.
std::unique_ptr<Estimator> estimator(const std::string& name, SolverSpec solver,
                                     const EstimatorOptions& options = {});

/// A temperature that decays during training: max(start exp(-rate step), floor), which changes only
/// when step is a multiple of every. `layer->set_temperature(aimle::anneal(step))`
struct Annealing {
  double start = 1.0;
  double rate = 3e-5;
  double floor = 0.5;
  int64_t every = 1000;
};
double anneal(int64_t step, const Annealing& annealing = {});

/// How `perturbed_fenchel_young_loss` draws its solutions.
struct PerturbationOptions {
  NoiseSpec noise = {.kind = NoiseKind::kNormal};
  int64_t nb_samples = 1;
  double temperature = 1.0;                   // of the noise, tau > 0
  std::optional<Sense> sense = std::nullopt;  // none: the solver's own
};

/// E max_z <theta + tau eps, z> - <theta, target>, one value per example: [*batch]. Convex in
/// theta; its gradient is the mean of nb_samples perturbed solutions minus the target (for sense
/// kMin: its negative), and no Jacobian is needed. target: a structure, or a mean of structures, of
/// the shape of theta. If target structures are known, this trains better than any loss on z.
/// grid_path clips perturbed costs below zero to zero, and so does the value, for the solution and
/// the target: a draw in which a cell is clipped adds nothing to that cell's gradient.
/// Berthet, Blondel, Teboul, Cuturi, Vert, Bach, NeurIPS 2020.
at::Tensor perturbed_fenchel_young_loss(const at::Tensor& theta, const at::Tensor& target,
                                        const SolverSpec& solver,
                                        const PerturbationOptions& options = {},
                                        const LayerCall& call = {});

/// What `spo_plus_loss` need not find out itself.
struct SpoPlusOptions {
  /// The best structure for true_theta, of its shape; none: solved for.
  std::optional<at::Tensor> solution = std::nullopt;
  std::optional<Sense> sense = std::nullopt;  // none: the solver's own
};

/// The SPO+ loss of predicted coefficients theta, one value per example: [*batch]. With z the best
/// structure for 2 theta - true_theta and y the one for true_theta it is
/// <2 theta - true_theta, z - y> (for sense kMin: its negative): convex in theta, zero for
/// theta = true_theta, and never below the regret <true_theta, y - best(theta)>. Its gradient is
/// 2 (z - y); true_theta has none. One call of the solver.
/// grid_path and graph_path need costs >= 0: z is then their path for the costs clipped at zero
/// with every entry below zero added, for which all of this holds too (spo_plus.cpp).
/// Elmachtoub, Grigas, Management Science 2022.
at::Tensor spo_plus_loss(const at::Tensor& theta, const at::Tensor& true_theta,
                         const SolverSpec& solver, const SpoPlusOptions& options = {},
                         const LayerCall& call = {});

}  // namespace aimle
