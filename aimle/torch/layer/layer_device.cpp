#include "aimle/torch/layer/layer_device.h"

namespace aimle::ops {

at::DimVector known(const at::SymDimVector& sizes) {
  at::DimVector result;
  for (const c10::SymInt& size : sizes) result.push_back(size.expect_int());
  return result;
}

void raise_for_failure(const Failure& failure, const DeviceCall& call) {
  const LayerSettings& settings = call.settings();
  if (failure.row < 0 || settings.check == Check::kNever) return;
  if (settings.check == Check::kDefault && failure.status == Status::kNaN) return;
  const int64_t example = failure.row / settings.samples();
  TORCH_CHECK_VALUE(failure.status != Status::kNegativeCost, "[aimle::perturbed_map] row ", example,
                    ", sample ", failure.row % settings.samples(),
                    ": expected costs >= 0 under negative=\"error\", noise and step included, but "
                    "got a negative one");
  SolverInput described = solver_input(call.input(), settings);
  if (settings.estimator.sense == Sense::kMin) described.scores = -described.scores;
  TORCH_CHECK_VALUE(false, describe_row(described, example, failure.status));
}

}  // namespace aimle::ops
