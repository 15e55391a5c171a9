// The composed estimators as ops. Their kernels are composed of ops with gradients
// (CompositeImplicitAutograd), so that autograd, torch.compile and torch.export trace through them.
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>

#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/formulas.h"
#include "aimle/torch/estimate/sampled.h"

namespace aimle {
namespace {

/// The name of an estimator as a template argument.
template <size_t size>
struct Name {
  constexpr Name(const char (&from)[size]) { std::copy_n(from, size, text); }  // NOLINT
  char text[size];
};

template <Name name, SampleFormula* formula>
at::Tensor sampled(const at::Tensor& theta, const MaybeTensor& mask, const MaybeTensor& row_data,
                   const MaybeTensor& key, const std::string& solver, int64_t nb_samples,
                   const std::string& output, const MaybeTensor& temperature, bool hard,
                   int64_t draws) {
  static const EstimatorInfo& info = estimator_info(name.text);
  check_theta(info.name, theta);
  check_samples(info.name, nb_samples, 1);
  check_draws(info.name, draws);
  check_word(info.name, "output", output, {"samples", "flat", "mean"});
  TORCH_CHECK_VALUE(temperature || !info.takes("temperature"), "[aimle::", info.name,
                    "] expected a temperature but got none");
  const SampleRequest request{.solver = aimle::solver(solver),
                              .mask = mask,
                              .row_data = row_data,
                              .key = key,
                              .nb_samples = nb_samples,
                              .temperature = temperature.value_or(at::Tensor()),
                              .hard = hard,
                              .draws = draws};
  TORCH_CHECK_TYPE(info.applies_to(request.solver), "[aimle::", info.name,
                   "] does not apply to solver \"", solver, "\"");
  return samples_of(formula, request, theta, output);
}

/// Defines an op with its kernel.
template <class Kernel>
void define(torch::Library& library, const std::string& name, const std::string& signature,
            Kernel* kernel) {
  library.def((name + signature).c_str(), {at::Tag::pt2_compliant_tag});
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, kernel));
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  // theta [*batch, n] -> samples, in the shape given by output. mask, row_data and key as in the
  // layer ops, but without a key there is no noise and one sample. Relaxations need a temperature.
  const std::string samples =
      "(Tensor theta, Tensor? mask, Tensor? row_data, Tensor? key, str solver,"
      " int nb_samples, str output, Tensor? temperature=None, bool hard=False, int draws=1)"
      " -> Tensor";
  define(library, "exact", samples, sampled<"exact", exact_marginal_samples>);
  define(library, "gumbel_rao", samples, sampled<"gumbel_rao", gumbel_rao_samples>);
  define(library, "gumbel_softmax", samples, sampled<"gumbel_softmax", gumbel_softmax_samples>);
  define(library, "l2x", samples, sampled<"l2x", l2x_samples>);
  define(library, "reinmax", samples, sampled<"reinmax", reinmax_samples>);
  define(library, "sfe", samples, sampled<"sfe", sfe_samples>);
  define(library, "softsub", samples, sampled<"softsub", softsub_samples>);
  define(library, "sst", samples, sampled<"sst", sst_samples>);

  // See formulas.h.
  define(library, "sfe_surrogate",
         "(Tensor theta, Tensor z, Tensor losses, Tensor? mask, Tensor? row_data, str solver,"
         " bool leave_one_out) -> Tensor",
         sfe_surrogate);
  define(library, "covariance_surrogate",
         "(Tensor theta, Tensor z, Tensor losses, float share, float tau, int instance_dims)"
         " -> Tensor",
         covariance_surrogate);
  define(library, "scale_gradient", "(Tensor(a) x, float scale) -> Tensor(a)", scale_gradient);
  define(library, "noise_score", "(Tensor(a) eps, str noise) -> Tensor(a)", noise_score);
  define(library, "dpo",
         "(Tensor theta, Tensor eps, Tensor z, Tensor? mask, str noise, float tau,"
         " int instance_dims, bool leave_one_out) -> Tensor",
         perturbed_mean);
  define(library, "fenchel_young",
         "(Tensor theta, Tensor target, Tensor eps, Tensor z, Tensor? mask, float tau,"
         " int instance_dims, bool clips) -> Tensor",
         fenchel_young);
  define(library, "spo_plus_loss",
         "(Tensor theta, Tensor true_theta, Tensor? solution, Tensor? mask, Tensor? row_data,"
         " str solver, str sense) -> Tensor",
         spo_plus_loss_by_name);
  define(library, "spo_plus_scores", "(Tensor theta, Tensor true_theta, bool costs) -> Tensor",
         spo_plus_scores);
  define(library, "spo_plus",
         "(Tensor scores, Tensor z, Tensor solution, Tensor? mask, bool maximise,"
         " int instance_dims, bool costs) -> Tensor",
         spo_plus);
  // See directions.h.
  define(
      library, "undirected", "(Tensor(a) x, str solver) -> Tensor(a)",
      +[](const at::Tensor& x, const std::string& solver) {
        return undirected(x, aimle::solver(solver));
      });
  define(
      library, "directed", "(Tensor(a) z, Tensor like, str solver) -> Tensor(a)",
      +[](const at::Tensor& z, const at::Tensor& like, const std::string& solver) {
        return directed(z, like, aimle::solver(solver));
      });
  define(library, "project",
         "(Tensor theta, str projection, int instance_dims, Tensor? mask) -> Tensor",
         project_by_name);
}

}  // namespace
}  // namespace aimle
