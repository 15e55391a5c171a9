// The one autograd layer: forward and its gradient on one page.
//
// Saved between them: theta, key, mask, k, table (inputs, as they are) and, for the forward
// difference, one bit per entry of z. The controller's state is held without a version check: it is
// read at backward time, so two calls in one graph, retain_graph and gradient accumulation work.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aimle/torch/layer_ops.h"
#include "aimle/torch/layer_schema.h"

namespace aimle::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

c10::OperatorHandle find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void push_input(torch::jit::Stack& stack, const LayerInput& input) {
  torch::jit::push(stack, input.theta, input.key, input.mask, input.k, input.table);
}

c10::IValue or_none(const at::Tensor& tensor) {
  return tensor.defined() ? c10::IValue(tensor) : c10::IValue();
}

void push_settings(torch::jit::Stack& stack, at::ArrayRef<c10::IValue> settings) {
  stack.insert(stack.end(), settings.begin(), settings.end());
}

/// Returns (z, bits).
std::pair<at::Tensor, at::Tensor> call_forward(const LayerInput& input,
                                               at::ArrayRef<c10::IValue> settings) {
  torch::jit::Stack stack;
  push_input(stack, input);
  push_settings(stack, settings);
  static const c10::OperatorHandle op = find("aimle::perturbed_map_forward");
  op.callBoxed(stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

/// The gradient of a gradient estimate is not defined: differentiating it must not give zeros.
/// Takes theta so that it is part of the graph for every loss.
struct OnlyOnce : torch::autograd::Function<OnlyOnce> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& dtheta, const at::Tensor&) {
    return dtheta.alias();
  }
  static variable_list backward(AutogradContext*, variable_list) {  // NOLINT
    TORCH_CHECK(false,
                "[aimle::perturbed_map] expected one backward pass but got a second derivative: a "
                "gradient estimate has no gradient of its own (drop create_graph=True)");
  }
};

struct PerturbedMap : torch::autograd::Function<PerturbedMap> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& theta, const LayerInput& input,
                            const LayerState& state, const std::vector<c10::IValue>& settings) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    LayerInput detached = input;
    detached.theta = theta;
    const auto [z, bits] = call_forward(detached, settings);
    const auto undefined = at::Tensor();
    ctx->save_for_backward({theta, input.key, input.mask.value_or(undefined),
                            input.k.value_or(undefined), input.table.value_or(undefined), bits});
    std::vector<c10::IValue> rest = {or_none(state.alpha), or_none(state.gbar),
                                     or_none(state.updates), or_none(state.velocity),
                                     or_none(state.stats)};
    rest.insert(rest.end(), settings.begin(), settings.end());
    ctx->saved_data["state and settings"] = c10::ivalue::Tuple::create(std::move(rest));
    return z;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& dy = grads[0];
    variable_list result(4);
    if (!dy.defined()) return result;
    torch::jit::Stack stack;
    torch::jit::push(stack, dy, saved[5], saved[0], saved[1], or_none(saved[2]), or_none(saved[3]),
                     or_none(saved[4]));
    push_settings(stack, ctx->saved_data["state and settings"].toTupleRef().elements());
    static const c10::OperatorHandle op = find("aimle::perturbed_map_backward");
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.callBoxed(stack);
    }
    result[0] = stack[0].toTensor();
    if (at::GradMode::is_enabled()) result[0] = OnlyOnce::apply(result[0], saved[0]);
    return result;
  }
};

at::Tensor perturbed_map_autograd(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  const LayerState state = reader.state();
  return PerturbedMap::apply(input.theta, input, state, reader.raw_settings());
}

at::Tensor perturbed_map(ArgumentReader& reader) {
  const LayerInput input = reader.input();
  return call_forward(input, reader.raw_settings()).first;
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  const std::string inputs = kLayerInputs + ", ", settings = kLayerSettings + ")";
  const auto define = [&](const std::string& schema) {
    library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
  };
  define("perturbed_map(" + inputs + kReadState + ", " + settings + " -> Tensor");
  define("perturbed_map_forward(" + inputs + settings + " -> (Tensor z, Tensor bits)");
  define("perturbed_map_backward(Tensor dy, Tensor bits, " + inputs + kWrittenState + ", " +
         settings + " -> Tensor");
  define("perturb(" + inputs + settings + " -> Tensor");
  define("step(Tensor dy, " + inputs + "Tensor? alpha, " + settings +
         " -> (Tensor x_left, Tensor x_right, Tensor lambda_, Tensor counted)");
  define("difference(Tensor z_left, Tensor z_right, Tensor lambda_, Tensor counted, " + inputs +
         kWrittenState + ", " + settings + " -> Tensor");
  define("straight_through(Tensor dy, " + inputs + settings + " -> Tensor");
}

TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  library.impl("perturbed_map",
               torch::CppFunction::makeFromBoxedFunction<&boxed<&perturbed_map_autograd>>());
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("perturbed_map",
               torch::CppFunction::makeFromBoxedFunction<&boxed<&perturbed_map>>());
}

}  // namespace
}  // namespace aimle::ops
