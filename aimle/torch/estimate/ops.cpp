// The composed estimators as ops. Their kernels are the functions that the classes of `estimator`
// call, composed of ops with gradients (CompositeImplicitAutograd), so that autograd, torch.compile
// and torch.export see through them.
#include <torch/library.h>

#include "aimle/torch/estimate/perturbed.h"
#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/estimate/score.h"
#include "aimle/torch/setting_names.h"

namespace aimle {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Sense sense_of(const char* op, const std::string& word) {
  return ops::parse_word(op, "sense", word, ops::kSenses);
}

NoiseKind noise_of(const char* op, const std::string& word) {
  return ops::parse_word(op, "noise", word, ops::kNoises);
}

SampleRequest request_for(const Tensor& theta, const MaybeTensor& mask, const MaybeTensor& k,
                          const MaybeTensor& key, const std::string& solver,
                          at::IntArrayRef solver_args, int64_t nb_samples) {
  return {.solver = {.name = solver, .args = solver_args.vec()},
          .scores = hide(theta, mask),
          .k = k,
          .key = key,
          .nb_samples = nb_samples};
}

template <SampleFormula* formula>
Tensor sampled(const Tensor& theta, const MaybeTensor& mask, const MaybeTensor& k,
               const MaybeTensor& key, const std::string& solver, at::IntArrayRef solver_args,
               int64_t nb_samples, const std::string& output) {
  return shaped(formula(request_for(theta, mask, k, key, solver, solver_args, nb_samples)), output);
}

template <SampleFormula* formula>
Tensor relaxed(const Tensor& theta, const MaybeTensor& mask, const MaybeTensor& k,
               const MaybeTensor& key, const std::string& solver, at::IntArrayRef solver_args,
               int64_t nb_samples, const std::string& output, const Tensor& temperature,
               bool hard) {
  SampleRequest request = request_for(theta, mask, k, key, solver, solver_args, nb_samples);
  request.temperature = temperature;
  request.hard = hard;
  return shaped(formula(request), output);
}

Tensor sfe_surrogate_op(const Tensor& theta, const Tensor& z, const Tensor& losses,
                        const MaybeTensor& mask, const MaybeTensor& k, const std::string& solver,
                        at::IntArrayRef solver_args, bool leave_one_out) {
  return sfe_surrogate({.name = solver, .args = solver_args.vec()}, theta, z, losses,
                       {.mask = mask, .k = k}, leave_one_out);
}

Tensor covariance_surrogate_op(const Tensor& theta, const Tensor& z, const Tensor& losses,
                               double share, double temperature, const std::string& sense,
                               int64_t instance_dims) {
  return covariance_surrogate(theta, z, losses,
                              {.share = share,
                               .temperature = temperature,
                               .sense = sense_of("covariance_surrogate", sense),
                               .instance_dims = instance_dims});
}

Tensor perturbed_scores_op(const Tensor& theta, const Tensor& eps, double temperature,
                           const std::string& sense) {
  return perturbed_scores(theta, eps, temperature, sense_of("perturbed_scores", sense));
}

Tensor noise_score_op(const Tensor& eps, const std::string& noise) {
  return noise_score(noise_of("noise_score", noise), eps);
}

Tensor dpo_op(const Tensor& theta, const Tensor& eps, const Tensor& z, const MaybeTensor& mask,
              const std::string& noise, double temperature, const std::string& sense,
              int64_t instance_dims, bool leave_one_out) {
  const PerturbedSolutions solutions{eps, z, temperature, sense_of("dpo", sense), instance_dims};
  return perturbed_mean(theta, solutions, mask, noise_of("dpo", noise), leave_one_out);
}

Tensor fenchel_young_op(const Tensor& theta, const Tensor& target, const Tensor& eps,
                        const Tensor& z, const MaybeTensor& mask, double temperature,
                        const std::string& sense, int64_t instance_dims, bool clips) {
  const PerturbedSolutions solutions{eps, z, temperature, sense_of("fenchel_young", sense),
                                     instance_dims};
  return fenchel_young(theta, target, solutions, mask, clips);
}

/// Defines an op with its kernel.
template <class Kernel>
void define(torch::Library& library, const std::string& name, const std::string& arguments,
            Kernel* kernel) {
  library.def((name + arguments).c_str(), {at::Tag::pt2_compliant_tag});
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, kernel));
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  // theta [*batch, n] -> samples, of the shape that output names. k, mask and key as in the layer
  // ops, but without a key there is no noise and one sample.
  const std::string settings =
      "(Tensor theta, Tensor? mask, Tensor? k, Tensor? key, str solver, int[] solver_args,"
      " int nb_samples, str output";
  const std::string of_samples = settings + ") -> Tensor";
  define(library, "reinmax", of_samples, sampled<&reinmax_samples>);
  define(library, "exact", of_samples, sampled<&exact_marginal_samples>);
  define(library, "sfe", of_samples, sampled<&sfe_samples>);
  const std::string of_relaxations = settings + ", Tensor temperature, bool hard) -> Tensor";
  define(library, "gumbel_softmax", of_relaxations, relaxed<&gumbel_softmax_samples>);
  define(library, "softsub", of_relaxations, relaxed<&softsub_samples>);
  define(library, "l2x", of_relaxations, relaxed<&l2x_samples>);
  define(library, "sst", of_relaxations, relaxed<&sst_samples>);

  // The losses of z, one for every sample, with a gradient for theta.
  define(library, "sfe_surrogate",
         "(Tensor theta, Tensor z, Tensor losses, Tensor? mask, Tensor? k, str solver,"
         " int[] solver_args, bool leave_one_out) -> Tensor",
         sfe_surrogate_op);
  define(library, "covariance_surrogate",
         "(Tensor theta, Tensor z, Tensor losses, float share, float temperature, str sense,"
         " int instance_dims) -> Tensor",
         covariance_surrogate_op);
  define(library, "scale_gradient", "(Tensor(a) x, float scale) -> Tensor(a)", scale_gradient);

  // Perturbed optimisers, for eps and z [S, *batch, *instance]: z solves perturbed_scores.
  define(library, "perturbed_scores",
         "(Tensor theta, Tensor eps, float temperature, str sense) -> Tensor", perturbed_scores_op);
  define(library, "noise_score", "(Tensor(a) eps, str noise) -> Tensor(a)", noise_score_op);
  define(library, "dpo",
         "(Tensor theta, Tensor eps, Tensor z, Tensor? mask, str noise, float temperature,"
         " str sense, int instance_dims, bool leave_one_out) -> Tensor",
         dpo_op);
  define(library, "fenchel_young",
         "(Tensor theta, Tensor target, Tensor eps, Tensor z, Tensor? mask, float temperature,"
         " str sense, int instance_dims, bool clips) -> Tensor",
         fenchel_young_op);
}

}  // namespace
}  // namespace aimle
