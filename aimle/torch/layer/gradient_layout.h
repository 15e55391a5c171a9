// dy, the gradient of a layer's result, as the rows that the core reads.
//
// Autograd passes on what the loss made of z: expanded with stride 0 by a sum or a mean,
// transposed, in half precision. Rows that are contiguous are read in place, others from a copy
// that omits repetitions.
#pragma once

#include <ATen/core/Tensor.h>

#include "aimle/estimate/gradient_rows.h"
#include "aimle/torch/layer/layer_arguments.h"

namespace aimle::ops {

class GradientLayout {
 public:
  /// dy after check_gradient.
  GradientLayout(const at::Tensor& dy, const LayerSettings& settings);

  /// T is the type in which the layer computes. Valid as long as this object exists.
  template <class T>
  GradientRows<T> rows() const;

 private:
  at::Tensor dy_;
  int64_t example_stride_ = 0;
  int64_t sample_stride_ = 0;
};

}  // namespace aimle::ops
