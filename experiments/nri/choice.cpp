#include "experiments/nri/choice.h"

#include <ATen/Functions.h>

#include "experiments/engine/estimator_options.h"

namespace aimle::experiments::nri {

LinkGradient link_gradient(const Settings& settings, const EstimatorOptions& options) {
  const EstimatorInfo& method = estimator_info(settings.get<std::string>("method"));
  const bool fixed = method.takes("lambda");
  LinkGradient result;
  result.one_way =
      settings.get<std::string>("directions") == "one" && (fixed || method.takes("target_norm"));
  if (result.one_way) result.factor = 2.0;
  if (fixed && options.lambda && !settings.get<bool>("divide")) result.factor *= *options.lambda;
  return result;
}

Choice choose(const Estimator& estimator, const Wiring& wiring, const LinkGradient& gradient,
              const at::Tensor& theta, const at::Tensor& key) {
  const at::Tensor fixed = theta.detach();
  const at::Tensor seen =
      gradient.factor == 1.0 ? theta : fixed + (theta - fixed) * gradient.factor;
  const at::Tensor pairs = with_samples(estimator(seen, {.key = key}), seen, 1);
  return {.pairs = pairs,
          .links = gradient.one_way ? wiring.one_way(pairs) : wiring.both_ways(pairs)};
}

}  // namespace aimle::experiments::nri
