// A solver on tensors from C++: linking aimle::torch registers the operators with the dispatcher.
#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <aimle/torch/functions.h>

#include <iostream>

int main() {
  const at::Tensor scores = at::tensor({0.1F, 0.9F, 0.3F, 0.8F, 0.2F});
  std::cout << aimle::solve(aimle::solver("topk:k=2"), scores) << std::endl;
}
