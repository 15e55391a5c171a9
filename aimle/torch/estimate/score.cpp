// Estimators that use the losses of the samples, not only their gradients.
//
//   sfe               score function (Williams, "Simple statistical gradient-following algorithms",
//                     1992): mean_s (f_s - b_s) (z_s - mu), z_s exact samples of
//                     p(z) = exp(<theta, z> - A(theta)) and mu its exact marginals. Unbiased for
//                     any f. b_s: none, or the mean of the other samples' losses (leave-one-out:
//                     Kool, van Hoof, Welling, 2019), which needs S >= 2.
//   aimle_covariance  (1 - share) times AIMLE plus share times Cov(f, z) / tau, the covariance of
//                     losses and solutions over the S >= 2 perturbed samples. Under Gumbel noise
//                     the covariance is unbiased for argmax, and close to it for others.
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "aimle/torch/estimate/builders.h"
#include "aimle/torch/estimate/formulas.h"
#include "aimle/torch/estimate/layer_estimator.h"
#include "aimle/torch/estimate/sampled.h"

namespace aimle {
namespace {

/// <theta, z> over the finite entries of theta [*batch, n], for z [*batch, S, n].
at::Tensor inner_product(const at::Tensor& theta, const at::Tensor& z) {
  return at::where(theta.isfinite(), theta, 0.0).unsqueeze(-2).mul(z).sum(-1);
}

/// z of any output except the mean as [*batch, S, n], for theta [*batch, n].
at::Tensor by_example(const at::Tensor& theta, const at::Tensor& z, int64_t instance_dims) {
  std::vector<c10::SymInt> sizes = theta.sym_sizes().vec();
  // S cannot be inferred from the number of entries if there are none.
  const bool has_samples = z.dim() == theta.dim() + instance_dims;
  const c10::SymInt batch = c10::multiply_integers(theta.sym_sizes().slice(0, theta.dim() - 1));
  sizes.insert(sizes.end() - 1,
               has_samples ? z.sym_size(-1 - instance_dims) : z.sym_size(0) / batch.max(1));
  return z.detach().reshape_symint(sizes);
}

/// The losses' values as [*batch, S].
at::Tensor by_sample(const char* name, const at::Tensor& losses, const at::Tensor& z) {
  const c10::SymIntArrayRef sizes = z.sym_sizes().slice(0, z.dim() - 1);
  TORCH_CHECK_VALUE(losses.sym_numel() == c10::multiply_integers(sizes), "[aimle::", name,
                    "] expected a loss for every sample, ", sizes, ", but got shape ",
                    losses.sym_sizes());
  return losses.detach().reshape_symint(sizes);
}

/// S of z [*batch, S, n].
double samples_of(const at::Tensor& z) {
  return static_cast<double>(z.sym_size(-2).guard_int(__FILE__, __LINE__));
}

/// f [*batch, S] minus the mean over the samples, times scale.
at::Tensor centred(const at::Tensor& f, double scale) {
  return f.sub(f.mean(-1, /*keepdim=*/true)).mul(scale);
}

/// The losses, with the gradient of their terms [*batch, S].
at::Tensor with_gradient_of(const at::Tensor& losses, const at::Tensor& terms) {
  return losses.add(terms.sub(terms.detach()).reshape_symint(losses.sym_sizes()));
}

struct ScaleGradient : torch::autograd::Function<ScaleGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            double scale) {
    context->saved_data["scale"] = scale;
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0].mul(context->saved_data["scale"].toDouble()), at::Tensor()};
  }
};

}  // namespace

at::Tensor sfe_samples(const SampleRequest& request) { return exact_or_solved(request); }

at::Tensor sfe_surrogate(const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                         const MaybeTensor& mask, const MaybeTensor& row_data,
                         const std::string& solver, bool leave_one_out) {
  const SolverSpec spec = aimle::solver(solver);
  const at::Tensor scores = hide(theta, mask);
  const at::Tensor rows = scores.flatten(-spec.instance_dims());
  const at::Tensor solutions = by_example(rows, z, spec.instance_dims());
  const at::Tensor log_z =
      log_partition(spec, scores, {.mask = mask, .row_data = row_data}).unsqueeze(-1);
  at::Tensor f = by_sample("sfe", losses, solutions);
  const double count = samples_of(solutions);
  if (leave_one_out && count > 1) f = centred(f, count / (count - 1));
  return with_gradient_of(losses, f.mul(inner_product(rows, solutions).sub(log_z)));
}

at::Tensor covariance_surrogate(const at::Tensor& theta, const at::Tensor& z,
                                const at::Tensor& losses, double share, double tau,
                                int64_t instance_dims) {
  const at::Tensor rows = theta.flatten(-instance_dims);
  const at::Tensor solutions = by_example(rows, z, instance_dims);
  const double count = samples_of(solutions);
  if (count < 2) return losses.clone();
  const at::Tensor f = by_sample("aimle_covariance", losses, solutions);
  const at::Tensor weights = centred(f, share * count / ((count - 1) * tau));
  return with_gradient_of(losses, weights.mul(inner_product(rows, solutions)));
}

at::Tensor scale_gradient(const at::Tensor& x, double scale) {
  return ScaleGradient::apply(x, scale);
}

namespace {

void refuse_mean(const std::string& name, const EstimatorOptions& options) {
  TORCH_CHECK_VALUE(options.output.value_or("samples") != "mean", "[aimle::", name,
                    "] expected output to be \"samples\" or \"flat\" but got \"mean\": it needs "
                    "the loss of every sample");
}

class Sfe final : public Sampled {
 public:
  Sfe(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options)
      : Sampled(info, std::move(solver), options, &sfe_samples) {
    const std::string baseline = options.baseline.value_or("none");
    check_word(name(), "baseline", baseline, {"none", "leave_one_out"});
    refuse_mean(name(), options);
    leave_one_out_ = baseline == "leave_one_out";
    check_samples(name(), nb_samples(), leave_one_out_ ? 2 : 1);
  }

  at::Tensor surrogate(const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                       const LayerCall& call) const override {
    return sfe_surrogate(theta, z, losses, call.mask, call.row_data, solver().text(),
                         leave_one_out_);
  }

 private:
  bool leave_one_out_;
};

class CovarianceAimle final : public LayerEstimator {
 public:
  CovarianceAimle(const EstimatorInfo& info, LayerOptions layer, const EstimatorOptions& options)
      : LayerEstimator(info, std::move(layer)), share_(options.share.value_or(0.5)) {
    refuse_mean(name(), options);
    TORCH_CHECK_VALUE(0.0 <= share_ && share_ <= 1.0,
                      "[aimle::aimle_covariance] expected 0 <= share <= 1 but got ", share_);
    check_samples(name(), this->options().nb_samples, 2);
    TORCH_CHECK_VALUE(this->options().noise->kind != NoiseKind::kNone &&
                          *this->options().theta_noise_temperature > 0.0,
                      "[aimle::aimle_covariance] needs noise: all samples would be the same");
  }

  at::Tensor forward(const at::Tensor& theta, const LayerCall& call) const override {
    return LayerEstimator::forward(scale_gradient(theta, 1.0 - share_), call);
  }

  at::Tensor surrogate(const at::Tensor& theta, const at::Tensor& z, const at::Tensor& losses,
                       const LayerCall&) const override {
    const SolverSpec& solver = options().solver;
    const bool costs = options().sense.value_or(solver.sense()) == Sense::kMin;
    const double temperature = *options().theta_noise_temperature;
    return covariance_surrogate(theta, z, losses, share_, costs ? -temperature : temperature,
                                solver.instance_dims());
  }

 private:
  double share_;
};

}  // namespace

std::unique_ptr<Estimator> build_sfe(const EstimatorInfo& info, SolverSpec solver,
                                     const EstimatorOptions& options) {
  return std::make_unique<Sfe>(info, std::move(solver), options);
}

std::unique_ptr<Estimator> build_aimle_covariance(const EstimatorInfo& info, SolverSpec solver,
                                                  const EstimatorOptions& options) {
  EstimatorOptions changed = options;
  changed.nb_samples = options.nb_samples.value_or(2);
  return std::make_unique<CovarianceAimle>(info, aimle_options(std::move(solver), changed),
                                           changed);
}

}  // namespace aimle
