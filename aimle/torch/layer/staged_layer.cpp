#include "aimle/torch/layer/staged_layer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "aimle/torch/layer/layer_arguments.h"
#include "aimle/torch/layer/solution_sizes.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/only_once.h"

namespace aimle::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

/// Calls the op with all of these values, one list after the other.
Stack run(const char* op, std::initializer_list<const Stack*> lists) {
  Stack stack;
  for (const Stack* list : lists) stack.insert(stack.end(), list->begin(), list->end());
  return call_op(op, std::move(stack));
}

/// The stages of one call.
class Stages {
 public:
  explicit Stages(StagedCall call)
      : call_(std::move(call)), settings_(layer_settings(call_.settings)) {
    const at::Tensor& theta = call_.inputs[0].toTensor();
    TORCH_CHECK_VALUE(theta.dim() >= settings_.instance_dims(),
                      "[aimle::Layer] expected theta of at least ", settings_.instance_dims(),
                      " dimensions but got shape ", theta.sizes());
    TORCH_CHECK_VALUE(
        call_.inputs[3].isNone(),
        "[aimle::Layer] a function takes no k or data of rows; only solvers such as \"topk\" do");
    TORCH_CHECK_VALUE(settings_.estimator.difference != Difference::kThresholds,
                      "[aimle::Layer] thresholds needs argmax, topk or spanning_tree but got a "
                      "function; use aimle or imle");
  }

  bool keeps_solution() const { return aimle::keeps_solution(settings_.estimator); }

  at::Tensor solve() const {
    return solved(
        hide_masked(run("aimle::perturb", {&call_.inputs, &call_.settings})[0].toTensor()));
  }

  /// z [B S, *instance] in the layer's output shape and theta's type.
  at::Tensor shape_output(const at::Tensor& z) const {
    const at::Tensor& theta = call_.inputs[0].toTensor();
    if (settings_.flat) return z.to(theta.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    const int64_t batch_dims = theta.dim() - settings_.instance_dims();
    std::vector<int64_t> sizes = theta.sizes().vec();
    sizes.insert(sizes.begin() + batch_dims, settings_.samples());
    const at::Tensor samples = z.reshape(sizes);
    if (!settings_.mean()) {
      return samples.to(theta.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    }
    // Divide by a tensor: on a GPU, PyTorch turns division by a number into multiplication by 1/S.
    const at::Tensor count = at::full({}, settings_.samples(), z.options().dtype(at::kDouble));
    return samples.to(at::kDouble)
        .sum(batch_dims)
        .div(count)
        .to(z.scalar_type())
        .to(theta.scalar_type());
  }

  /// The sizes of the forward solution; undefined if the layer has none.
  at::Tensor sizes_of(const at::Tensor& z) const {
    return call_.sizes.defined() ? solution_sizes(z, z.slice(0, 0, 1)) : at::Tensor();
  }

  /// z: the forward solution if it can serve as the left one; seen: its sizes.
  at::Tensor gradient(const at::Tensor& dy, const at::Tensor& z, const at::Tensor& seen) const {
    const Stack gradient = {dy};
    if (settings_.estimator.difference == Difference::kStraightThrough) {
      return run("aimle::straight_through", {&gradient, &call_.inputs, &call_.settings})[0]
          .toTensor();
    }
    const bool finds_size = call_.sizes.defined();
    const at::Tensor sizes = finds_size ? at::minimum(call_.sizes, seen) : at::Tensor();
    const Stack state = {call_.state[0], call_.state[2],
                         finds_size ? at::IValue(sizes) : at::IValue()};
    Stack stepped = run("aimle::step", {&gradient, &call_.inputs, &state, &call_.settings});
    auto [left, right] =
        solve_both(hide_masked(stepped[0].toTensor()), hide_masked(stepped[1].toTensor()), z);
    if (finds_size && settings_.adapt) {
      const at::Tensor any_counted = stepped[3].toTensor().ne(0).any();
      const at::Tensor seen_now = at::minimum(sizes, solution_sizes(left, right));
      call_.sizes.copy_(at::where(any_counted, seen_now, call_.sizes));
    }
    const Stack solutions = {left, right, stepped[2], stepped[3]};
    return run("aimle::difference", {&solutions, &call_.inputs, &call_.state, &call_.settings})[0]
        .toTensor();
  }

 private:
  /// Solves the rows whose scores differ; all of them on a GPU, where counting would wait.
  std::pair<at::Tensor, at::Tensor> solve_both(const at::Tensor& left, const at::Tensor& right,
                                               const at::Tensor& z) const {
    if (left.is_cpu()) {
      const at::Tensor rows = left.ne(right)
                                  .flatten(1)
                                  .any(1)
                                  .logical_and(right.isnan().flatten(1).any(1).logical_not())
                                  .nonzero()
                                  .squeeze(1);
      if (rows.size(0) < left.size(0)) {
        const at::Tensor z_left = z.defined() ? z : at::zeros_like(left);
        at::Tensor z_right = z_left.clone();
        if (rows.size(0) > 0) {
          if (!z.defined()) {
            z_left.index_copy_(0, rows, solved(left.index_select(0, rows)));
            z_right.copy_(z_left);
          }
          z_right.index_copy_(0, rows, solved(right.index_select(0, rows)));
        }
        return {z_left, z_right};
      }
    }
    return {z.defined() ? z : solved(left), solved(right)};
  }

  /// Sets the scores of masked entries to the worst infinity.
  at::Tensor hide_masked(const at::Tensor& x) const {
    if (call_.inputs[2].isNone()) return x;
    const at::Tensor& theta = call_.inputs[0].toTensor();
    const int64_t batch_dims = theta.dim() - settings_.instance_dims();
    std::vector<int64_t> rows = theta.sizes().slice(batch_dims).vec();
    rows.insert(rows.begin(), {-1, 1});
    const at::Tensor mask = call_.inputs[2].toTensor().expand(theta.sizes()).reshape(rows);
    rows[0] = mask.size(0);
    rows[1] = settings_.samples();
    const double worst = settings_.callable.sense == Sense::kMin
                             ? std::numeric_limits<double>::infinity()
                             : -std::numeric_limits<double>::infinity();
    return x.masked_fill(mask.expand(rows).reshape(x.sizes()).logical_not(), worst);
  }

  at::Tensor solved(const at::Tensor& x) const {
    const at::Tensor z = call_.function(x).detach();
    TORCH_CHECK_VALUE(z.sizes() == x.sizes(), "[aimle::Layer] the solver must keep the shape ",
                      x.sizes(), " of its input but returned ", z.sizes());
    TORCH_CHECK_TYPE(z.scalar_type() == x.scalar_type(),
                     "[aimle::Layer] the solver must keep the type ", dtype_name(x),
                     " of its input but returned ", dtype_name(z),
                     " (return z.to(x.scalar_type()))");
    TORCH_CHECK_VALUE(z.device() == x.device(), "[aimle::Layer] the solver must keep the device ",
                      x.device(), " of its input but returned ", z.device());
    return z.clone();  // the function may return the same tensor again
  }

  StagedCall call_;
  LayerSettings settings_;
};

struct StagedMap : torch::autograd::Function<StagedMap> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& theta,
                            const std::shared_ptr<const Stages>& stages) {
    const at::Tensor z = stages->solve();
    ctx->save_for_backward(
        {theta, stages->keeps_solution() ? z : at::Tensor(), stages->sizes_of(z)});
    ctx->saved_data["stages"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(stages));
    return stages->shape_output(z);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(2);
    if (!grads[0].defined()) return result;
    const auto holder = ctx->saved_data["stages"].toCapsule();
    const Stages& stages = *static_cast<const Holder&>(*holder).stages;
    const variable_list saved = ctx->get_saved_variables();
    {
      const at::NoGradGuard guard;
      result[0] = stages.gradient(grads[0].detach(), saved[1], saved[2]);
    }
    if (at::GradMode::is_enabled()) result[0] = OnlyOnce::apply(result[0], saved[0]);
    return result;
  }

  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<const Stages> held) : stages(std::move(held)) {}
    std::shared_ptr<const Stages> stages;
  };
};

}  // namespace

at::Tensor staged_map(StagedCall call) {
  const at::Tensor theta = call.inputs[0].toTensor();
  call.inputs[0] = theta.detach();
  return StagedMap::apply(theta, std::make_shared<const Stages>(std::move(call)));
}

}  // namespace aimle::ops
