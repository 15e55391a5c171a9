#include <c10/util/Exception.h>

#include <algorithm>

#include "aimle/base/join.h"
#include "aimle/base/nearest.h"
#include "aimle/base/shown_value.h"
#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"
#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/estimator.h"

namespace aimle {
namespace {

using Strings = std::vector<std::string>;

Strings together(std::initializer_list<Strings> parts) {
  Strings result;
  for (const Strings& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

// Which solvers an estimator applies to, if not to all.
bool has_exact(const SolverKind& solver) { return solver.exact != nullptr; }
bool has_swaps(const SolverKind& solver) { return solver.swaps != Swaps::kNone; }
bool one_of_n(const SolverKind& solver) { return solver.name == Argmax::kName; }
bool k_of_n(const SolverKind& solver) { return solver.name == TopK::kName; }

struct Entry {
  EstimatorInfo info;
  Builder* build;
};

const std::vector<Entry>& estimator_table() {
  const Strings samples = {"nb_samples", "output", "noise_in_eval"};
  const Strings perturbed =
      together({samples, {"noise", "temperature", "theta_noise_temperature", "sense"}});
  const Strings stepped = together({perturbed, {"target_noise_temperature"}});
  const Strings adaptive =
      together({stepped,
                {"initial_alpha", "step", "target_norm", "decay", "scope", "scale", "rule",
                 "factor", "alpha_range", "momentum", "initial_gbar", "reference"}});
  const Strings relaxed = together({samples, {"temperature", "hard"}});
  const Strings central = {"symmetric_perturbation"};
  const Strings fixed = {"lambda"};

  const std::string of_aimle = "Minervini, Franceschi, Niepert, AAAI 2023";
  const std::string of_imle = "Niepert, Minervini, Franceschi, NeurIPS 2021";

  static const std::vector<Entry> entries = {
      {{.name = "aimle",
        .summary = "central difference of solutions, with an adaptive step",
        .paper = of_aimle,
        .settings = together({adaptive, central})},
       build_aimle},
      {{.name = "aimle_forward",
        .summary = "aimle with the forward difference: one solve less",
        .paper = of_aimle,
        .settings = adaptive},
       build_aimle_forward},
      {{.name = "aimle_noise",
        .summary = "aimle with the step scaled by the noise and adapted multiplicatively",
        .paper = of_aimle,
        .settings = together({adaptive, central})},
       build_aimle_noise},
      {{.name = "aimle_covariance",
        .summary = "part aimle, part the covariance of losses and solutions; needs S >= 2",
        .paper = of_aimle,
        .settings = together({adaptive, central, {"share"}}),
        .needs_losses = true},
       build_aimle_covariance},
      {{.name = "imle",
        .summary = "forward difference of solutions, with a fixed step",
        .paper = of_imle,
        .settings = together({stepped, fixed, central})},
       build_imle},
      {{.name = "imle_central",
        .summary = "imle with the central difference",
        .paper = of_imle,
        .settings = together({stepped, fixed})},
       build_imle_central},
      {{.name = "ste",
        .summary = "straight-through: the gradient of z is passed on unchanged",
        .paper = "Bengio, Leonard, Courville, 2013",
        .settings = perturbed},
       build_ste},
      {{.name = "dbb",
        .summary = "blackbox differentiation: forward difference without noise",
        .paper = "Vlastelica, Paulus, Musil, Martius, Rolinek, ICLR 2020",
        .settings = together({fixed, {"sense", "output"}})},
       build_dbb},
      {{.name = "identity",
        .summary = "straight-through without noise, after a projection of theta",
        .paper = "Sahoo, Paulus, Vlastelica, Musil, Kuleshov, Martius, ICLR 2023",
        .settings = together({perturbed, {"projection"}})},
       build_identity},
      {{.name = "thresholds",
        .summary =
            "solutions with and without each entry, by the noise's density; one solve, no step",
        .paper = "aimle/estimate/thresholds.h",
        .applies = has_swaps,
        .settings = together({perturbed, {"order", "max_weight"}})},
       build_thresholds},
      {{.name = "sfe",
        .summary = "score function with exact samples and marginals: unbiased for any loss",
        .paper = "Williams, 1992; Kool, van Hoof, Welling, 2019",
        .applies = has_exact,
        .settings = together({samples, {"baseline"}}),
        .needs_losses = true},
       build_sfe},
      {{.name = "gumbel_softmax",
        .summary = "softmax of perturbed scores at a temperature, one of n",
        .paper = "Jang, Gu, Poole, ICLR 2017; Maddison, Mnih, Teh, ICLR 2017",
        .applies = one_of_n,
        .settings = relaxed,
        .soft = true},
       build_sampled<&gumbel_softmax_samples>},
      {{.name = "gumbel_rao",
        .summary = "hard gumbel_softmax, averaged over the noise that gives the same choice",
        .paper = "Paulus, Maddison, Krause, ICLR 2021",
        .applies = one_of_n,
        .settings = together({samples, {"temperature", "draws"}})},
       build_sampled<&gumbel_rao_samples>},
      {{.name = "softsub",
        .summary = "k rounds of softmax, each suppressing the entries already taken",
        .paper = "Xie, Ermon, IJCAI 2019",
        .applies = k_of_n,
        .settings = relaxed,
        .soft = true},
       build_sampled<&softsub_samples>},
      {{.name = "sst",
        .summary = "exact marginals of perturbed scores as soft samples",
        .paper = "Paulus, Choi, Tarlow, Krause, Maddison, NeurIPS 2020",
        .applies = has_exact,
        .settings = relaxed,
        .soft = true},
       build_sampled<&sst_samples>},
      {{.name = "l2x",
        .summary = "entry-wise maximum of k concrete draws",
        .paper = "Chen, Song, Wainwright, Jordan, ICML 2018",
        .applies = k_of_n,
        .settings = together({samples, {"temperature"}}),
        .soft = true},
       build_sampled<&l2x_samples>},
      {{.name = "dpo",
        .summary = "mean of perturbed solutions with its own Jacobian; no second solve",
        .paper = "Berthet, Blondel, Teboul, Cuturi, Vert, Bach, NeurIPS 2020",
        .settings = together({samples, {"noise", "sense", "temperature", "variance_reduction"}}),
        .soft = true},
       build_dpo},
      {{.name = "exact",
        .summary = "exact samples with the Jacobian of the exact marginals",
        .paper = "Ahmed, Zeng, Niepert, Van den Broeck, ICLR 2023",
        .applies = has_exact,
        .settings = samples},
       build_sampled<&exact_marginal_samples>},
      {{.name = "reinmax",
        .summary = "second-order straight-through, one of n",
        .paper = "Liu, Dong, Liu, Yu, Gao, NeurIPS 2023",
        .applies = one_of_n,
        .settings = samples},
       build_sampled<&reinmax_samples>},
  };
  return entries;
}

const Entry& find(const std::string& name) {
  Strings names;
  for (const Entry& entry : estimator_table()) {
    if (entry.info.name == name) return entry;
    names.push_back(entry.info.name);
  }
  TORCH_CHECK_VALUE(false, "[aimle::estimator] expected one of ", join(names), " but got \"",
                    shown_value(name), "\"", did_you_mean(name, names));
}

/// A noise's temperature under the name used by the layers.
EstimatorOptions with_one_temperature(const EstimatorInfo& info, EstimatorOptions options) {
  if (!info.takes("temperature") || !info.takes("theta_noise_temperature")) return options;
  TORCH_CHECK_VALUE(!options.temperature || !options.theta_noise_temperature,
                    "[aimle::estimator] expected temperature or theta_noise_temperature, two names "
                    "of one setting of ",
                    info.name, ", but got both");
  if (options.temperature) options.theta_noise_temperature = options.temperature;
  return options;
}

bool contains(const Strings& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool suits(const EstimatorInfo& info, const SolverKind& solver) {
  return info.applies == nullptr || info.applies(solver);
}

}  // namespace

bool EstimatorInfo::applies_to(const SolverSpec& solver) const {
  return solver.kind() != nullptr && suits(*this, *solver.kind());
}

Strings EstimatorInfo::structures() const {
  Strings names;
  for (const std::string& name : solver_names()) {
    if (suits(*this, solver_kind(name))) names.push_back(name);
  }
  return names;
}

bool EstimatorInfo::takes(const std::string& setting) const { return contains(settings, setting); }

const std::vector<EstimatorInfo>& estimators() {
  static const std::vector<EstimatorInfo> infos = [] {
    std::vector<EstimatorInfo> result;
    for (const Entry& entry : estimator_table()) result.push_back(entry.info);
    return result;
  }();
  return infos;
}

const EstimatorInfo& estimator_info(const std::string& name) { return find(name).info; }

std::unique_ptr<Estimator> estimator(const std::string& name, SolverSpec solver,
                                     const EstimatorOptions& options) {
  const auto& [info, build] = find(name);
  TORCH_CHECK_TYPE(info.applies_to(solver), "[aimle::estimator] ", name, " applies to ",
                   join(info.structures()), " but got ", solver.name());
  for (const std::string& given : given_options(options)) {
    TORCH_CHECK_VALUE(info.takes(given), "[aimle::estimator] ", name, " takes no ", given,
                      "; it takes ", join(info.settings));
  }
  return build(info, std::move(solver), with_one_temperature(info, options));
}

at::Tensor Estimator::surrogate(const at::Tensor&, const at::Tensor&, const at::Tensor& losses,
                                const LayerCall&) const {
  return losses;
}

void Estimator::set_temperature(double) {
  TORCH_CHECK_VALUE(false, "[aimle::estimator] ", name(), " has no temperature to set");
}

}  // namespace aimle
