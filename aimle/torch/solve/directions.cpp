// fold_directions and spread_directions convert between the two layouts of a graph's edges
// (aimle/map/directions.h). Each is the other's gradient. Masks (bool) can also be folded.
//
// symmetrise replaces both directions of every edge by their mean,
//
//   y = P x,  y_ij = (x_ij + x_ji) / 2.   P is symmetric, so the gradient is P applied to dy.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/directions.h"
#include "aimle/map/directions.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/torch/tensor/device_context.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/executor.h"
#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

using at::Tensor;

struct Fold {
  static constexpr const char* kName = "fold_directions";
  static constexpr const char* kEntries = " entries";
  static constexpr int64_t kReads = 2, kWrites = 1;  // entries of an edge
  static constexpr bool kTakesMasks = true;

  template <class T>
  static void on_cpu(int64_t vertices, int64_t count, const T* x, T* y) {
    fold_directions(vertices, count, x, y);
  }
  template <class T>
  static void on_gpu(int64_t vertices, int64_t count, const T* x, T* y,
                     const cuda::Context& context) {
    cuda::fold_directions(vertices, count, x, y, context);
  }
};

struct Spread {
  static constexpr const char* kName = "spread_directions";
  static constexpr const char* kEntries = " entries";
  static constexpr int64_t kReads = 1, kWrites = 2;
  static constexpr bool kTakesMasks = true;

  template <class T>
  static void on_cpu(int64_t vertices, int64_t count, const T* x, T* y) {
    spread_directions(vertices, count, x, y);
  }
  template <class T>
  static void on_gpu(int64_t vertices, int64_t count, const T* x, T* y,
                     const cuda::Context& context) {
    cuda::spread_directions(vertices, count, x, y, context);
  }
};

struct Symmetrise {
  static constexpr const char* kName = "symmetrise";
  static constexpr const char* kEntries = " directed entries";
  static constexpr int64_t kReads = 2, kWrites = 2;
  static constexpr bool kTakesMasks = false;

  template <class T>
  static void on_cpu(int64_t vertices, int64_t count, const T* x, T* y) {
    symmetrise(vertices, count, x, y);
  }
  template <class T>
  static void on_gpu(int64_t vertices, int64_t count, const T* x, T* y,
                     const cuda::Context& context) {
    cuda::symmetrise(vertices, count, x, y, context);
  }
};

template <class Op>
void check(const Tensor& scores, int64_t vertices) {
  if (!Op::kTakesMasks || scores.scalar_type() != at::kBool) check_scores_type(Op::kName, scores);
  const SpanningTree tree{.vertices = vertices};
  with_value_errors([&] { tree.validate(); });
  TORCH_CHECK_VALUE(scores.dim() >= 1 && scores.sym_size(-1) == Op::kReads * tree.edges(),
                    "[aimle::", Op::kName, "] expected scores of ", Op::kReads * tree.edges(),
                    Op::kEntries, " in the last dimension for vertices=", vertices,
                    " but got shape ", scores.sym_sizes());
}

template <class Op>
std::vector<c10::SymInt> result_sizes(const Tensor& scores, int64_t vertices) {
  std::vector<c10::SymInt> sizes = scores.sym_sizes().vec();
  sizes.back() = Op::kWrites * (vertices * (vertices - 1) / 2);
  return sizes;
}

template <class T, class Op>
void fill_on_cpu(const Tensor& scores, int64_t vertices, const Tensor& out) {
  const int64_t edges = vertices * (vertices - 1) / 2;
  const T* x = scores.const_data_ptr<T>();
  T* y = out.mutable_data_ptr<T>();
  parallel_for(torch_threads(), edges ? out.numel() / (Op::kWrites * edges) : 0,
               2.0 * static_cast<double>(edges), [&](int64_t begin, int64_t end) {
                 Op::on_cpu(vertices, end - begin, x + begin * Op::kReads * edges,
                            y + begin * Op::kWrites * edges);
               });
}

template <class T, class Op>
void fill_on_gpu(const Tensor& scores, int64_t vertices, const Tensor& out) {
  const DeviceContext context(scores);
  const int64_t edges = vertices * (vertices - 1) / 2;
  Op::on_gpu(vertices, edges ? out.numel() / (Op::kWrites * edges) : 0, scores.const_data_ptr<T>(),
             out.mutable_data_ptr<T>(), context.get());
}

template <class Op>
Tensor convert(const Tensor& scores, int64_t vertices) {
  check<Op>(scores, vertices);
  const bool mask = scores.scalar_type() == at::kBool;
  const Tensor native = scores.to(mask ? at::kBool : native_type(scores)).contiguous();
  const Tensor out = at::empty_symint(result_sizes<Op>(scores, vertices), native.options());
  const auto fill = [&]<class T>(T) {
    scores.is_cpu() ? fill_on_cpu<T, Op>(native, vertices, out)
                    : fill_on_gpu<T, Op>(native, vertices, out);
  };
  if constexpr (Op::kTakesMasks) {
    if (mask) fill(bool{});
  }
  if (!mask) native.scalar_type() == at::kDouble ? fill(double{}) : fill(float{});
  return out.to(scores.scalar_type());
}

template <class Op>
Tensor shape_of(const Tensor& scores, int64_t vertices) {
  check<Op>(scores, vertices);
  return at::empty_symint(result_sizes<Op>(scores, vertices), scores.options());
}

template <class Op>
Tensor call(const Tensor& scores, int64_t vertices) {
  static const auto op =
      find_op<Tensor(const Tensor&, int64_t)>(std::string("aimle::") + Op::kName);
  return op.call(scores, vertices);
}

template <class Op, class Transposed>
struct WithGradient : torch::autograd::Function<WithGradient<Op, Transposed>> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& scores,
                        int64_t vertices) {
    context->saved_data["vertices"] = vertices;
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call<Op>(scores, vertices);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list dy) {
    return {call<Transposed>(dy[0], context->saved_data["vertices"].toInt()), Tensor()};
  }
};

template <class Op, class Transposed>
Tensor with_gradient(const Tensor& scores, int64_t vertices) {
  return WithGradient<Op, Transposed>::apply(scores, vertices);
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  const std::vector<at::Tag> pure = {at::Tag::pt2_compliant_tag};
  library.def("fold_directions(Tensor scores, int vertices) -> Tensor", pure);
  library.def("spread_directions(Tensor scores, int vertices) -> Tensor", pure);
}

void register_for_devices(torch::Library& library) {
  library.impl(Fold::kName, convert<Fold>);
  library.impl(Spread::kName, convert<Spread>);
  library.impl(Symmetrise::kName, convert<Symmetrise>);
}

TORCH_LIBRARY_IMPL(aimle, CPU, library) { register_for_devices(library); }
TORCH_LIBRARY_IMPL(aimle, CUDA, library) { register_for_devices(library); }
TORCH_LIBRARY_IMPL(aimle, Meta, library) {
  library.impl(Fold::kName, shape_of<Fold>);
  library.impl(Spread::kName, shape_of<Spread>);
  library.impl(Symmetrise::kName, shape_of<Symmetrise>);
}
TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  library.impl(Fold::kName, with_gradient<Fold, Spread>);
  library.impl(Spread::kName, with_gradient<Spread, Fold>);
  library.impl(Symmetrise::kName, with_gradient<Symmetrise, Symmetrise>);
}

}  // namespace
}  // namespace aimle::ops
