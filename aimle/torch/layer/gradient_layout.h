// dy, the gradient of a layer's result, as the rows that the core reads.
//
// Autograd hands over what the loss made of z: expanded at stride 0 by a sum or a mean, transposed,
// in half precision. Rows that are contiguous inside are read where they lie; others from a copy
// that leaves out what is only repeated.
#pragma once

#include <ATen/core/Tensor.h>

#include "aimle/estimate/gradient_rows.h"
#include "aimle/torch/layer/layer_arguments.h"

namespace aimle::ops {

class GradientLayout {
 public:
  /// dy as check_gradient has found it.
  GradientLayout(const at::Tensor& dy, const LayerSettings& settings);

  /// T is the type that the layer computes in. Valid as long as this object is.
  template <class T>
  GradientRows<T> rows() const;

 private:
  at::Tensor dy_;
  int64_t example_stride_ = 0;
  int64_t sample_stride_ = 0;
};

}  // namespace aimle::ops
