// The layer for LibTorch programs: a solver inside a network, with a gradient.
//
//   aimle::Layer layer(aimle::aimle(aimle::topk(10)));
//   at::Tensor z = layer(theta);                  // [B, 1, n], hard zeros and ones
//   loss(z).backward();                           // theta has a gradient, alpha is updated
//
// Uses the same ops as the Python layers and gives the same bits for the same key. For a layer that
// is a submodule of a torch::nn::Module include aimle/torch/module.h.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aimle/estimate/settings.h"
#include "aimle/registry/registry.h"

namespace aimle {

/// A solver as a function: scores [N, *instance] in, solutions of the same shape, type and device
/// out.
using SolverFunction = std::function<at::Tensor(const at::Tensor& scores)>;

/// Whether all solutions of a function have the same number of ones. If so, step sizes ignore a
/// constant in the scores or in the loss. kUnknown: a layer finds out from the solutions it sees.
/// kVaries: the default noise suits costs.
enum class KnownSize { kUnknown, kFixed, kVaries };

/// A solver whose instance size is inferred from theta: one of the registry, or a function.
class SolverSpec {
 public:
  SolverSpec(std::shared_ptr<const UnsizedSolver> native)  // NOLINT(google-explicit-constructor)
      : native_(std::move(native)) {}
  SolverSpec(SolverFunction function, Sense sense, int64_t instance_dims, KnownSize size)
      : function_(std::move(function)),
        function_sense_(sense),
        function_dims_(instance_dims),
        function_size_(size) {}

  /// "topk", or "callable".
  std::string name() const { return native_ ? native_->kind().name : "callable"; }
  /// The text form that ops take: "topk:k=5".
  std::string text() const;
  Sense sense() const { return native_ ? native_->kind().sense : function_sense_; }
  /// How many trailing dimensions of theta belong to one instance.
  int64_t instance_dims() const { return native_ ? native_->kind().instance_dims : function_dims_; }
  /// Whether solutions are known to vary in their number of ones.
  bool varies_in_size() const {
    return native_ ? !native_->kind().fixed_size : function_size_ == KnownSize::kVaries;
  }
  /// Whether that must be found out from the solutions of a function.
  bool size_is_unknown() const { return !native_ && function_size_ == KnownSize::kUnknown; }
  /// Whether it clips or refuses scores below zero.
  bool has_costs() const { return native_ && native_->kind().has_costs; }
  /// Whether theta holds costs: a path's, or those of a function that minimises.
  bool takes_costs() const { return native_ ? has_costs() : function_sense_ == Sense::kMin; }
  /// For a solver of the registry: sized for instances of this shape, and the shape of size n.
  Solver fit(at::IntArrayRef instance, const Brought& brought = {}) const {
    return native_->fit({instance.begin(), instance.end()}, brought);
  }
  std::vector<int64_t> shape_for(int64_t n) const { return native_->shape_for(n); }

  /// Its declaration in the registry; null for a function.
  const SolverKind* kind() const { return native_ ? &native_->kind() : nullptr; }
  /// Its settings if they have this type, otherwise null.
  template <MapSolver S>
  const S* get_if() const {
    return native_ ? native_->get_if<S>() : nullptr;
  }
  const SolverFunction& function() const { return function_; }

 private:
  std::shared_ptr<const UnsizedSolver> native_;
  SolverFunction function_;
  Sense function_sense_ = Sense::kMax;
  int64_t function_dims_ = 1;
  KnownSize function_size_ = KnownSize::kUnknown;
};

/// A solver of the registry by its text: `solver("topk:k=5")`. The ValueError lists the names.
SolverSpec solver(std::string_view text);

SolverSpec argmax();
SolverSpec topk(int64_t k);
SolverSpec spanning_tree(int64_t vertices);
SolverSpec grid_path(int64_t neighbourhood = 8, Cell source = {0, 0}, Cell target = {-1, -1},
                     bool refuse_negative = false);

/// Any function as a solver, for a Layer. Masked scores are -inf (+inf if it minimises). Backward
/// calls it with only the rows whose solutions can differ, on a GPU with all of them.
///
///   aimle::Layer layer(aimle::aimle(aimle::callable([](const at::Tensor& x) { ... })));
SolverSpec callable(SolverFunction function, Sense sense = Sense::kMax, int64_t instance_dims = 1,
                    KnownSize size = KnownSize::kUnknown);

struct NoiseSpec {
  NoiseKind kind = NoiseKind::kGumbel;
  int64_t k = 1;            // of Sum-of-Gamma
  int64_t iterations = 10;  // of Sum-of-Gamma
  /// In layers: whether its mean is subtracted. None: if solutions vary in size (grid paths),
  /// unless the target is the paper's (aimle/estimate/published.h).
  std::optional<bool> centred = std::nullopt;
};

struct LayerOptions {
  SolverSpec solver;
  /// None: the noise declared by the solver, unless the target is the paper's
  /// (aimle/estimate/published.h): Gumbel at temperature 1, except Normal at kCostTemperature for
  /// paths and for functions whose solutions vary in size, and Logistic for bernoulli. The options
  /// of a Layer always have both.
  std::optional<NoiseSpec> noise = std::nullopt;
  int64_t nb_samples = 1;
  std::optional<double> theta_noise_temperature = std::nullopt;
  std::optional<double> target_noise_temperature = std::nullopt;  // none: the same as theta's
  Target target = AdaptiveTarget{};
  std::optional<double> initial_alpha = std::nullopt;  // none: AdaptiveTarget::start
  double initial_gbar = 1.0;
  Difference difference = Difference::kCentral;
  std::optional<Sense> sense = std::nullopt;  // none: the solver's own
  std::string output = "samples";             // or "flat", "mean"
  bool noise_in_eval = false;
  std::optional<at::Generator> generator = std::nullopt;
};

// The named estimators (settings.h), as options that can be adjusted.
LayerOptions aimle(SolverSpec solver);
LayerOptions imle(SolverSpec solver, double lambda);
LayerOptions ste(SolverSpec solver);
LayerOptions dbb(SolverSpec solver, double lambda);
/// Without a noise: the structure's default.
LayerOptions thresholds(SolverSpec solver, std::optional<NoiseKind> noise = {});
/// The difference of `aimle`: central, except forward for costs.
Difference default_difference(const SolverSpec& solver);
/// The default target of `aimle`. Its alpha_max is larger for the forward difference on costs.
AdaptiveTarget default_target(const SolverSpec& solver, Difference difference);
/// To be called on `project(theta)`, the projection of that paper.
LayerOptions identity(SolverSpec solver);

/// kMean: theta minus its mean; kNorm: divided by its norm; kStd: both; kNone: neither. Over the
/// entries of an instance, the last `instance_dims` dimensions, that are finite and not masked; the
/// others are unchanged. A norm of zero, up to rounding, does not divide: equal scores, for kStd.
enum class Projection { kStd, kMean, kNorm, kNone };
at::Tensor project(const at::Tensor& theta, Projection projection = Projection::kStd,
                   int64_t instance_dims = 1, const std::optional<at::Tensor>& mask = std::nullopt);

/// Optional arguments of a call; see the `perturbed_map` op.
struct LayerCall {
  std::optional<at::Tensor> mask = std::nullopt;
  std::optional<at::Tensor> row_data = std::nullopt;  // k per row of topk, or data: see functions.h
  std::optional<at::Tensor> key = std::nullopt;  // on theta's device or the CPU; default: drawn
};

/// Moves tensors in place, so that all holders see the change; their types do not change.
void move_tensors(const std::map<std::string, at::Tensor>& tensors, at::Device device,
                  bool non_blocking = false);

class Layer {
 public:
  explicit Layer(LayerOptions options);

  at::Tensor operator()(const at::Tensor& theta, const LayerCall& call = {}) const;

  /// In eval mode z is the noise-free solution (unless noise_in_eval), and the state is frozen.
  void train(bool on = true) { training_ = on; }
  bool is_training() const { return training_; }

  /// Moves state and constants to the device of theta.
  void to(at::Device device, bool non_blocking = false) {
    move_tensors(state_, device, non_blocking);
    move_tensors(constants_, device, non_blocking);
  }

  const LayerOptions& options() const { return options_; }

  /// alpha, gbar (float64) and updates (int64), to be saved with the model, and what else the target
  /// needs: reach, velocity, and the sizes of a function's solutions; none for fixed targets.
  const std::map<std::string, at::Tensor>& state() const { return state_; }
  /// Tensors that must be on theta's device but need no saving.
  const std::map<std::string, at::Tensor>& constants() const { return constants_; }
  /// alpha, gbar, updates, lambda_mean, lambda_min, lambda_max, count, zero_share, changed_share:
  /// statistics of the last backward pass; for thresholds: zero_share, capped_share, capped_mass;
  /// for grid paths also clipped_share. Views, no synchronisation.
  std::map<std::string, at::Tensor> stats() const;

  // For a layer that is one of several with the same state, each of which sees a part of a batch:
  // after defer_updates() backward leaves what it counted to waiting_counts(), and apply_counts
  // moves the state by the sum of all parts' counts, as one pass over the batch would have done.
  void defer_updates();
  /// float64 [3], a view; undefined for a layer without a state, or whose backward moves it.
  at::Tensor waiting_counts() const;
  void apply_counts(const at::Tensor& sum);

 private:
  torch::jit::Stack state_arguments() const;
  torch::jit::Stack settings_arguments() const;
  /// The settings of the ops as text (layer_settings.h).
  std::string settings_text(bool training) const;

  LayerOptions options_;
  std::string training_settings_;
  std::string eval_settings_;
  std::map<std::string, at::Tensor> state_;
  std::map<std::string, at::Tensor> constants_;
  bool training_ = true;
};

}  // namespace aimle
