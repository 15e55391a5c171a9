// The same solver inside the layer for LibTorch programs.
#include <ATen/Functions.h>
#include <aimle/torch/layer.h>

#include <cstdio>

int main() {
  const aimle::Layer layer(aimle::aimle(aimle::solver("viterbi:length=4,labels=3")));
  const at::Tensor theta = at::randn({8, 3, 3, 3}).requires_grad_(true);
  const at::Tensor z = layer(theta);
  z.square().sub(z.detach().mul(at::rand_like(z))).sum().backward();
  std::printf("%lld transitions, gradient %s\n", static_cast<long long>(z.sum().item<int64_t>()),
              theta.grad().abs().sum().item<double>() > 0 ? "there" : "missing");
}
