#include "aimle/torch/tensor/dtype.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>

#include <limits>

namespace aimle::ops {

std::string dtype_name(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

void check_scores_type(std::string_view op, const at::Tensor& scores, std::string_view name) {
  const at::ScalarType type = scores.scalar_type();
  TORCH_CHECK_TYPE(
      type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
      "[aimle::", op, "] expected ", name, " of float32, float64, bfloat16 or float16 but got ",
      dtype_name(scores));
}

double smallest_normal(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return std::numeric_limits<double>::min();
    case at::kHalf:
      return std::numeric_limits<at::Half>::min();
    default:  // bfloat16 has the exponents of float32
      return std::numeric_limits<float>::min();
  }
}

double epsilon(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return std::numeric_limits<at::Half>::epsilon();
    case at::kBFloat16:
      return std::numeric_limits<at::BFloat16>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace aimle::ops
