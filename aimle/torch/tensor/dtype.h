// The types of scores: float32 and float64 are solved as they are; bfloat16 and float16 are solved
// in float32 and the answer is given in their own type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace aimle::ops {

/// As Python says it: "float32".
std::string dtype_name(const at::Tensor& tensor);

/// TypeError unless scores have one of the four types; `name` is what the message calls them.
void check_scores_type(std::string_view op, const at::Tensor& scores,
                       std::string_view name = "scores");

/// The smallest normal number of its type, torch.finfo(tensor.dtype).tiny.
double smallest_normal(const at::Tensor& tensor);

/// The type in which scores of this one are solved.
inline at::ScalarType native_type(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace aimle::ops
