// The composed estimators as ops. Their kernels are the functions that the classes of `estimator`
// call, composed of ops with gradients (CompositeImplicitAutograd), so that autograd, torch.compile
// and torch.export see through them.
#include <torch/library.h>

#include "aimle/torch/estimate/sampled.h"

namespace aimle {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

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
}

}  // namespace
}  // namespace aimle
