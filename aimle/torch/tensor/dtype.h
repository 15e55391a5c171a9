// The types of scores: float32 and float64 are solved directly; bfloat16 and float16 are solved in
// float32, and the solution is returned in the original type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace aimle::ops {

/// The name in Python: "float32".
std::string dtype_name(const at::Tensor& tensor);

/// Throws TypeError unless scores have one of the four types; `name` is used in the message.
void check_scores_type(std::string_view op, const at::Tensor& scores,
                       std::string_view name = "scores");

/// The smallest normal number of its type, torch.finfo(tensor.dtype).tiny.
double smallest_normal(const at::Tensor& tensor);

/// The distance from 1 to the next larger number of its type, torch.finfo(tensor.dtype).eps.
double epsilon(const at::Tensor& tensor);

/// The type in which scores of this type are solved.
inline at::ScalarType native_type(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace aimle::ops
