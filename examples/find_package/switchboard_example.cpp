// Every estimator that applies to "k of n" learns to choose the same three of eight entries: scores
// theta, gradient descent, and the squared distance of z to the target choice as the loss.
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <aimle/torch/estimator.h>

#include <iostream>

int main() {
  const at::Tensor wanted = at::tensor({0.F, 1.F, 0.F, 0.F, 1.F, 0.F, 1.F, 0.F});
  const aimle::SolverSpec solver = aimle::topk(3);
  const at::Tensor start = at::randn({1, 8}).mul_(0.1);
  for (const aimle::EstimatorInfo& info : aimle::estimators()) {
    if (!info.applies_to(solver)) continue;
    aimle::EstimatorOptions options;
    if (info.takes("nb_samples")) options.nb_samples = 10;
    if (info.takes("lambda")) options.lambda = 10.0;
    if (info.takes("initial_alpha")) options.initial_alpha = 1.0;
    const auto layer = aimle::estimator(info.name, solver, options);

    at::Tensor theta = start.clone().requires_grad_(true);
    for (int step = 0; step < 300; ++step) {
      const at::Tensor z = (*layer)(theta);
      const at::Tensor losses = z.sub(wanted).square().sum(-1);
      layer->surrogate(theta, z, losses).mean().backward();
      const at::NoGradGuard no_grad;
      theta.sub_(theta.grad(), 0.1);
      theta.mutable_grad().zero_();
    }

    layer->train(false);  // the noise-free solution
    const auto wrong = (*layer)(theta).sub(wanted).abs().sum().item<double>() / 2;
    std::cout << info.name << ": " << 3 - wrong << " of 3 entries right\n";
  }
}
