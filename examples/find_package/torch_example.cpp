// The operators on tensors from C++: linking aimle::torch registers them with the dispatcher.
#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <tuple>

using TopK = std::tuple<at::Tensor, at::Tensor>(const at::Tensor& scores, int64_t k,
                                                const std::optional<at::Tensor>& mask,
                                                const std::optional<at::Tensor>& row_k,
                                                int64_t check);

int main() {
  const auto topk = c10::Dispatcher::singleton().findSchemaOrThrow("aimle::topk", "").typed<TopK>();
  const auto scores = at::tensor({0.1F, 0.9F, 0.3F, 0.8F, 0.2F});
  const auto [z, status] = topk.call(scores, 2, std::nullopt, std::nullopt, 1);
  std::cout << z << std::endl;
}
