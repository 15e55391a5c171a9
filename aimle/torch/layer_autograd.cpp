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

/// Arguments as they came from the caller.
using Values = at::ArrayRef<c10::IValue>;

void push_all(torch::jit::Stack& stack, Values values) {
  stack.insert(stack.end(), values.begin(), values.end());
}

/// Returns (z, bits).
std::pair<at::Tensor, at::Tensor> call_forward(Values input, Values settings) {
  torch::jit::Stack stack;
  stack.reserve(input.size() + settings.size());
  push_all(stack, input);
  push_all(stack, settings);
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
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor&, Values input, Values state,
                            Values settings) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [z, bits] = call_forward(input, settings);
    variable_list saved = {std::move(bits)};
    saved.reserve(1 + input.size());
    for (const c10::IValue& value : input) {
      saved.push_back(value.isNone() ? at::Tensor() : value.toTensor());
    }
    ctx->save_for_backward(std::move(saved));
    std::vector<c10::IValue> rest;
    rest.reserve(state.size() + settings.size());
    push_all(rest, state);
    push_all(rest, settings);
    ctx->saved_data["rest"] = c10::ivalue::Tuple::create(std::move(rest));
    return z;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const Values rest = ctx->saved_data["rest"].toTupleRef().elements();
    torch::jit::Stack stack;
    stack.reserve(1 + saved.size() + rest.size());
    stack.emplace_back(grads[0]);
    for (const at::Tensor& tensor : saved) {
      stack.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue());
    }
    push_all(stack, rest);
    static const c10::OperatorHandle op = find("aimle::perturbed_map_backward");
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op.callBoxed(stack);
    }
    result[0] = stack[0].toTensor();
    if (at::GradMode::is_enabled()) result[0] = OnlyOnce::apply(result[0], saved[1]);
    return result;
  }
};

at::Tensor perturbed_map_autograd(ArgumentReader& reader) {
  const Values input = reader.take(kLayerInputsCount);
  const Values state = reader.take(kLayerStateCount);
  return PerturbedMap::apply(input[0].toTensor(), input, state, reader.raw_settings());
}

at::Tensor perturbed_map(ArgumentReader& reader) {
  return call_forward(reader.take(kLayerInputsCount), reader.raw_settings()).first;
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
  define("step(Tensor dy, " + inputs + "Tensor? alpha, Tensor? updates, " + settings +
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
