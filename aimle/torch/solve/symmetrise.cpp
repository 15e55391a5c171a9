// symmetrise: both directions of every edge replaced by their mean, rows of n(n-1) directed
// entries.
//
//   y = P x,  y_ij = (x_ij + x_ji) / 2.   P is symmetric, so the gradient is P applied to dy.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aimle/cuda/device_rows.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/torch/tensor/device_context.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/executor.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

using at::Tensor;

void check(const Tensor& scores, int64_t vertices) {
  check_scores_type("symmetrise", scores);
  const SpanningTree tree{.vertices = vertices, .layout = SpanningTree::Layout::kDirected};
  with_value_errors([&] { tree.validate(); });
  TORCH_CHECK_VALUE(scores.dim() >= 1 && scores.sym_size(-1) == tree.size(),
                    "[aimle::symmetrise] expected scores of ", tree.size(),
                    " directed entries in the last dimension for vertices=", vertices,
                    " but got shape ", scores.sym_sizes());
}

template <class T>
void fill(const Tensor& scores, int64_t vertices, Tensor& out) {
  const int64_t size = vertices * (vertices - 1);
  const T* x = scores.const_data_ptr<T>();
  T* y = out.mutable_data_ptr<T>();
  parallel_for(torch_threads(), size ? scores.numel() / size : 0, static_cast<double>(size),
               [&](int64_t begin, int64_t end) {
                 symmetrise(vertices, end - begin, x + begin * size, y + begin * size);
               });
}

template <class T>
void fill_on_device(const Tensor& scores, int64_t vertices, Tensor& out) {
  const DeviceContext context(scores);
  const int64_t size = vertices * (vertices - 1);
  cuda::symmetrise(vertices, size ? scores.numel() / size : 0, scores.const_data_ptr<T>(),
                   out.mutable_data_ptr<T>(), context.get());
}

/// By `fill(native scores, vertices, out)`, a function for float and one for double.
template <class Fill>
Tensor symmetrise_by(const Fill& fill_float, const Fill& fill_double, const Tensor& scores,
                     int64_t vertices) {
  check(scores, vertices);
  const Tensor native = scores.to(native_type(scores)).contiguous();
  Tensor out = at::empty_like(native);
  (native.scalar_type() == at::kDouble ? fill_double : fill_float)(native, vertices, out);
  return out.to(scores.scalar_type());
}

Tensor symmetrise_cpu(const Tensor& scores, int64_t vertices) {
  return symmetrise_by(fill<float>, fill<double>, scores, vertices);
}

Tensor symmetrise_cuda(const Tensor& scores, int64_t vertices) {
  return symmetrise_by(fill_on_device<float>, fill_on_device<double>, scores, vertices);
}

Tensor symmetrise_meta(const Tensor& scores, int64_t vertices) {
  check(scores, vertices);
  return at::empty_like(scores, at::MemoryFormat::Contiguous);
}

Tensor call(const Tensor& scores, int64_t vertices) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("aimle::symmetrise", "")
                             .typed<Tensor(const Tensor&, int64_t)>();
  return op.call(scores, vertices);
}

struct Symmetrise : torch::autograd::Function<Symmetrise> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& scores,
                        int64_t vertices) {
    context->saved_data["vertices"] = vertices;
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call(scores, vertices);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list dy) {
    return {call(dy[0], context->saved_data["vertices"].toInt()), Tensor()};
  }
};

Tensor symmetrise_autograd(const Tensor& scores, int64_t vertices) {
  return Symmetrise::apply(scores, vertices);
}

TORCH_LIBRARY_IMPL(aimle, CPU, library) { library.impl("symmetrise", symmetrise_cpu); }
TORCH_LIBRARY_IMPL(aimle, CUDA, library) { library.impl("symmetrise", symmetrise_cuda); }
TORCH_LIBRARY_IMPL(aimle, Meta, library) { library.impl("symmetrise", symmetrise_meta); }
TORCH_LIBRARY_IMPL(aimle, Autograd, library) { library.impl("symmetrise", symmetrise_autograd); }

}  // namespace
}  // namespace aimle::ops
