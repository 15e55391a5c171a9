// Perturbed optimisers, and their loss.
//
// Berthet, Blondel, Teboul, Cuturi, Vert, Bach, "Learning with Differentiable Perturbed
// Optimizers", NeurIPS 2020. Noise of density exp(-nu(eps)) makes the mean solution smooth in
// theta:
//
//   y(theta) = E MAP(theta + tau eps),    dy/dtheta = E[ z nu'(eps)' ] / tau
//
//   dpo   forward (1/S) sum_s z_s, and backward
//
//           g = (1/S) sum_s <d, z_s - b_s> nu'(eps_s) / tau
//
//         with b_s = 0 or the mean of the other samples (leave-one-out), which is still unbiased
//         for the Jacobian of y and has lower variance. Any solver; no second solve. Normal: nu' =
//         eps; Gumbel: 1 - e^-eps; Logistic: tanh(eps / 2).
#include <ATen/ops/rsub.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "aimle/map/graph_path.h"
#include "aimle/map/grid_path.h"
#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/formulas.h"
#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/estimate/solved.h"
#include "aimle/torch/estimator.h"
#include "aimle/torch/layer/setting_names.h"
#include "aimle/torch/tensor/dtype.h"

namespace aimle {
namespace {

/// S, for z [S, ...].
double sample_count(const at::Tensor& z) {
  return static_cast<double>(z.sym_size(0).guard_int(__FILE__, __LINE__));
}

}  // namespace

at::Tensor noise_score(const at::Tensor& eps, const std::string& noise) {
  constexpr ops::Words<NoiseKind, 3> kDensities = {{{"normal", NoiseKind::kNormal},
                                                    {"gumbel", NoiseKind::kGumbel},
                                                    {"logistic", NoiseKind::kLogistic}}};
  const NoiseKind kind = ops::parse_word("noise_score", "noise", noise, kDensities);
  if (kind == NoiseKind::kNormal) return eps;
  return kind == NoiseKind::kGumbel ? at::rsub(eps.neg().exp(), 1) : eps.div(2).tanh();
}

at::Tensor perturbed_mean(const at::Tensor& theta, const at::Tensor& eps, const at::Tensor& z,
                          const MaybeTensor& mask, const std::string& noise, double tau,
                          int64_t instance_dims, bool leave_one_out) {
  const at::Tensor mean = z.mean(0);
  const double count = sample_count(z);
  const at::Tensor centred = leave_one_out ? z.sub(mean).mul(count / (count - 1)) : z;
  const at::Tensor weights = noise_score(eps, noise).mul(1.0 / tau);
  const at::Tensor inner =
      weights.mul(free_entries(theta, mask)).sum(trailing(instance_dims), /*keepdim=*/true);
  return straight_through(mean, centred.mul(inner).mean(0));
}

at::Tensor fenchel_young(const at::Tensor& theta, const at::Tensor& given, const at::Tensor& eps,
                         const at::Tensor& z, const MaybeTensor& mask, double tau,
                         int64_t instance_dims, bool clips) {
  // Bools have no subtraction.
  const at::Tensor target = given.scalar_type() == at::kBool ? given.to(z.scalar_type()) : given;
  const std::vector<int64_t> dims = trailing(instance_dims);
  const at::Tensor scores = free_entries(tau < 0 ? theta.neg() : theta, mask);
  if (clips) {
    const at::Tensor perturbed = scores.add(eps.mul(std::abs(tau)));
    const at::Tensor seen = perturbed.clamp_max(0);  // minus the costs that the solver used
    const at::Tensor of_target = scores.add(seen.sub(perturbed).mean(0));
    return seen.mul(z).mean(0).sub(of_target.mul(target)).sum(dims);
  }
  // Linear in theta, except for what the noise adds, which has no gradient.
  std::vector<int64_t> samples_too = dims;
  samples_too.push_back(0);
  const at::Tensor noise = eps.mul(z).sum(samples_too);
  return scores.mul(z.mean(0).sub(target)).sum(dims).add(noise, std::abs(tau) / sample_count(z));
}

namespace {

/// The temperature of the noise, negative for costs.
double tau(const PerturbationOptions& options, const SolverSpec& solver) {
  const bool costs = options.sense.value_or(solver.sense()) == Sense::kMin;
  return costs ? -options.temperature : options.temperature;
}

/// eps and z, [S, *batch, *instance].
struct Perturbed {
  at::Tensor eps;
  at::Tensor z;
};

Perturbed perturb(const at::Tensor& theta, const SolverSpec& solver,
                  const PerturbationOptions& options, const LayerCall& call,
                  const std::optional<at::Generator>& generator) {
  const at::Tensor key = call.key ? call.key->to(theta.device()) : draw_key(theta, generator);
  const int64_t split = theta.dim() - solver.instance_dims();
  const at::IntArrayRef sizes = theta.sizes();
  const at::Tensor eps = sample_noise(options.noise, key, sizes.slice(0, split), options.nb_samples,
                                      sizes.slice(split))
                             .movedim(split, 0)
                             .to(ops::native_type(theta));
  const at::Tensor x = theta.detach().add(eps.mul(tau(options, solver)));
  return {.eps = eps, .z = solve_in(options.sense.value_or(solver.sense()), solver, x, call)};
}

/// Whether the solver clips costs below zero to zero.
bool clips(const SolverSpec& solver) {
  const auto* grid = solver.get_if<GridPath>();
  if (grid != nullptr) return grid->negative == GridPath::Negative::kClip;
  const auto* graph = solver.get_if<GraphPath>();
  return graph != nullptr && graph->negative == GraphPath::Negative::kClip;
}

class Dpo final : public Estimator {
 public:
  Dpo(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options)
      : Estimator(info),
        solver_(std::move(solver)),
        perturbation_{.noise = options.noise.value_or(NoiseSpec{.kind = NoiseKind::kNormal}),
                      .nb_samples = options.nb_samples.value_or(10),
                      .temperature = options.temperature.value_or(1.0),
                      .sense = solver_.sense()},
        noise_in_eval_(options.noise_in_eval.value_or(false)),
        generator_(options.generator) {
    if (options.sense) {
      perturbation_.sense = ops::parse_word("dpo", "sense", *options.sense, ops::kSenses);
    }
    const std::string reduction = options.variance_reduction.value_or("leave_one_out");
    check_word("dpo", "variance_reduction", reduction, {"leave_one_out", "none"});
    leave_one_out_ = reduction == "leave_one_out";
    check_sense_of("dpo", solver_, *perturbation_.sense);
    check_word("dpo", "output", options.output.value_or("mean"), {"mean"});
    check_samples("dpo", perturbation_.nb_samples, leave_one_out_ ? 2 : 1);
    check_temperature("dpo", perturbation_.temperature);
    const NoiseKind kind = perturbation_.noise.kind;
    TORCH_CHECK_VALUE(
        kind == NoiseKind::kNormal || kind == NoiseKind::kGumbel || kind == NoiseKind::kLogistic,
        "[aimle::dpo] expected a noise with a density in closed form, normal, gumbel "
        "or logistic, but got ",
        ops::word_of(kind, ops::kNoises));
  }

  at::Tensor forward(const at::Tensor& given, const LayerCall& given_call) const override {
    check_dims("dpo", given, solver_);
    const Sense sense = *perturbation_.sense;
    if (!is_training() && !noise_in_eval_) {
      return solve_in(sense, solver_, given.detach(), given_call);
    }
    const at::Tensor theta = undirected(given, solver_);
    const LayerCall call = undirected(given_call, solver_);
    const auto [eps, z] = perturb(theta, solver_, perturbation_, call, generator_);
    const std::string noise = ops::word_of(perturbation_.noise.kind, ops::kNoises);
    const at::Tensor mean =
        perturbed_mean(theta, eps, z, call.mask, noise, tau(perturbation_, solver_),
                       solver_.instance_dims(), leave_one_out_);
    return directed(mean.to(given.scalar_type()), given, solver_);
  }

 private:
  SolverSpec solver_;
  PerturbationOptions perturbation_;
  bool leave_one_out_;
  bool noise_in_eval_;
  std::optional<at::Generator> generator_;
};

}  // namespace

std::unique_ptr<Estimator> build_dpo(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return std::make_unique<Dpo>(info, std::move(solver), options);
}

at::Tensor perturbed_fenchel_young_loss(const at::Tensor& given, const at::Tensor& given_target,
                                        const SolverSpec& solver,
                                        const PerturbationOptions& options,
                                        const LayerCall& given_call) {
  const std::string name = "perturbed_fenchel_young_loss";
  check_dims(name, given, solver);
  check_samples(name, options.nb_samples, 1);
  check_temperature(name, options.temperature);
  const Sense sense = options.sense.value_or(solver.sense());
  check_sense_of(name, solver, sense);
  const at::Tensor theta = undirected(given, solver);
  const LayerCall call = undirected(given_call, solver);
  const at::Tensor target = undirected_target(given_target, theta, solver);
  const auto [eps, z] = perturb(theta, solver, options, call, std::nullopt);
  return fenchel_young(theta, target, eps, z, call.mask, tau(options, solver),
                       solver.instance_dims(), clips(solver))
      .to(c10::promoteTypes(given.scalar_type(), given_target.scalar_type()));
}

}  // namespace aimle
