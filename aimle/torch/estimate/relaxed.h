// A soft sample at a temperature.
#pragma once

#include "aimle/torch/estimate/sampled.h"

namespace aimle {

class Relaxation : public Sampled {
 public:
  Relaxation(const EstimatorInfo& info, SolverSpec solver, const EstimatorOptions& options);

  void set_temperature(double temperature) override;

 protected:
  const at::Tensor& temperature() const { return state_.at("temperature"); }
  /// Where nothing waits for it, the solver says what is wrong with k or a mask.
  void refuse_bad_rows(const at::Tensor& scores, const LayerCall& call) const;
  /// soft, or the hard solution of x [*batch, S, n] with its gradient: if `hard`, or where no
  /// samples are drawn.
  at::Tensor shown(const at::Tensor& x, const at::Tensor& soft, const LayerCall& call) const;

 private:
  bool hard_;
};

}  // namespace aimle
