// The autograd layer: forward and its gradient.
//
// Saved in between: theta, key, mask, k, table (the inputs, unchanged) and, for the forward
// difference, one bit per entry of z. The controller's state is kept without a version check: it is
// read at backward time, so two calls in one graph, retain_graph and gradient accumulation work.
//
// Trees over directed theta are solved as trees over theta_ij + theta_ji (vertices_to_fold), unless
// the target is the paper's or its authors'; perturbed_map_forward and _backward do not convert
// theta.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aimle/estimate/published.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/torch/layer/layer_ops.h"
#include "aimle/torch/layer/layer_schema.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/only_once.h"

namespace aimle::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The caller's arguments, unchanged.
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
  static const c10::OperatorHandle op = find_op("aimle::perturbed_map_forward");
  op.callBoxed(stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

using Convert = at::Tensor(const at::Tensor&, int64_t);

at::Tensor fold(const at::Tensor& x, int64_t vertices) {
  static const auto op = find_op<Convert>("aimle::fold_directions");
  return op.call(x, vertices);
}

at::Tensor spread(const at::Tensor& x, int64_t vertices) {
  static const auto op = find_op<Convert>("aimle::spread_directions");
  return op.call(x, vertices);
}

/// The inputs with theta and its mask by edge.
std::vector<c10::IValue> folded(Values input, int64_t vertices) {
  std::vector<c10::IValue> result = input.vec();
  const at::Tensor& theta = input[0].toTensor();
  result[0] = fold(theta.to(native_type(theta)), vertices);
  if (input[2].isNone()) return result;
  const at::Tensor& mask = input[2].toTensor();
  const bool one_for_all = mask.dim() == 0 || mask.sym_size(-1) == 1;
  if (!one_for_all) result[2] = fold(mask, vertices);
  return result;
}

/// With vertices > 0 theta is folded, z and the gradient are written to both directions.
struct PerturbedMapFunction : torch::autograd::Function<PerturbedMapFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& theta, Values input,
                            Values state, Values settings, int64_t vertices) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    std::vector<c10::IValue> by_edge;
    if (vertices > 0) input = by_edge = folded(input, vertices);
    auto [z, bits] = call_forward(input, settings);
    variable_list saved = {std::move(bits)};
    saved.reserve(2 + input.size());
    for (const c10::IValue& value : input) {
      saved.push_back(value.isNone() ? at::Tensor() : value.toTensor());
    }
    if (vertices > 0) saved.push_back(theta);
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["vertices"] = vertices;
    std::vector<c10::IValue> rest;
    rest.reserve(state.size() + settings.size());
    push_all(rest, state);
    push_all(rest, settings);
    ctx->saved_data["rest"] = c10::ivalue::Tuple::create(std::move(rest));
    return vertices > 0 ? spread(z, vertices).to(theta.scalar_type()) : z;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const int64_t vertices = ctx->saved_data["vertices"].toInt();
    const at::Tensor& theta = vertices > 0 ? saved.back() : saved[1];
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const at::Tensor& dy = grads[0];
      const at::Tensor given = vertices > 0 ? fold(dy.to(native_type(theta)), vertices) : dy;
      const at::Tensor dtheta =
          call_backward(given, at::ArrayRef(saved).slice(0, 1 + kLayerInputsCount),
                        ctx->saved_data["rest"].toTupleRef().elements());
      result[0] = vertices > 0 ? spread(dtheta, vertices).to(theta.scalar_type()) : dtheta;
    }
    if (at::GradMode::is_enabled()) result[0] = OnlyOnce::apply(result[0], theta);
    return result;
  }

 private:
  static at::Tensor call_backward(const at::Tensor& dy, at::TensorList saved, Values rest) {
    torch::jit::Stack stack;
    stack.reserve(1 + saved.size() + rest.size());
    stack.emplace_back(dy);
    for (const at::Tensor& tensor : saved) {
      stack.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue());
    }
    push_all(stack, rest);
    static const c10::OperatorHandle op = find_op("aimle::perturbed_map_backward");
    op.callBoxed(stack);
    return stack[0].toTensor();
  }
};

/// The inputs with a key drawn as that of `draw_host_key`, which saves Python the call of an op.
std::vector<c10::IValue> with_drawn_key(Values input) {
  using Draw = at::Tensor(const at::Tensor&, std::optional<at::Generator>, int64_t);
  static const auto draw = find_op<Draw>("aimle::draw_host_key");
  const at::AutoDispatchBelowADInplaceOrView guard;
  std::vector<c10::IValue> result = input.vec();
  result[kLayerKey] = draw.call(input[0].toTensor(), std::nullopt, 0);
  return result;
}

/// The number of vertices if theta has two entries per edge of a graph, which share their noise:
/// the model is then that of the undirected theta_ij + theta_ji. Otherwise 0.
int64_t vertices_to_fold(Values input, Values settings) {
  const auto parsed = parse_layer_settings(settings[0].toStringRef());
  const auto* tree = parsed->solver ? parsed->solver->get_if<SpanningTree>() : nullptr;
  const at::Tensor& theta = input[0].toTensor();
  if (tree == nullptr || theta.dim() == 0 || tree->vertices < 2) return 0;
  if (theta.sym_size(-1) != 2 * tree->edges()) return 0;
  if (is_published(parsed->estimator.target)) return 0;
  ArgumentReader reader(input);
  check_layer(reader.input(), *parsed);  // so that messages refer to the caller's arguments
  return tree->vertices;
}

at::Tensor perturbed_map_autograd(ArgumentReader& reader) {
  Values input = reader.take(kLayerInputsCount);
  const Values state = reader.take(kLayerStateCount);
  const Values settings = reader.raw_settings();
  std::vector<c10::IValue> drawn;
  if (input[kLayerKey].isNone()) input = drawn = with_drawn_key(input);
  return PerturbedMapFunction::apply(input[0].toTensor(), input, state, settings,
                                     vertices_to_fold(input, settings));
}

at::Tensor perturbed_map(ArgumentReader& reader) {
  Values input = reader.take(kLayerInputsCount), settings = reader.raw_settings();
  std::vector<c10::IValue> drawn;
  if (input[kLayerKey].isNone()) input = drawn = with_drawn_key(input);
  const int64_t vertices = vertices_to_fold(input, settings);
  if (vertices == 0) return call_forward(input, settings).first;
  const at::Tensor z = call_forward(folded(input, vertices), settings).first;
  return spread(z, vertices).to(input[0].toTensor().scalar_type());
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  const std::string inputs = kLayerInputs + ", ", settings = kLayerSettings + ")";
  const auto define = [&](const std::string& schema) {
    library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
  };
  define("perturbed_map(" + kCallInputs + ", " + kReadState + ", " + settings + " -> Tensor");
  define("perturbed_map_forward(" + inputs + settings + " -> (Tensor z, Tensor bits)");
  define("perturbed_map_backward(Tensor dy, Tensor bits, " + inputs + kWrittenState + ", " +
         settings + " -> Tensor");
  define("perturb(" + inputs + settings + " -> Tensor");
  define("step(Tensor dy, " + inputs + "Tensor? alpha, Tensor? updates, Tensor? sizes, " +
         settings + " -> (Tensor x_left, Tensor x_right, Tensor lambda_, Tensor counted)");
  define("difference(Tensor z_left, Tensor z_right, Tensor lambda_, Tensor counted, " + inputs +
         kWrittenState + ", " + settings + " -> Tensor");
  define("straight_through(Tensor dy, " + inputs + settings + " -> Tensor");
  define("apply_counts(Tensor counts, " + kWrittenState + ", " + settings + " -> ()");
}

TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  impl_boxed<&perturbed_map_autograd>(library, "perturbed_map");
}

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  impl_boxed<&perturbed_map>(library, "perturbed_map");
}

}  // namespace
}  // namespace aimle::ops
