// Schemas of exact distributions, and their gradients: the gradient of each op is the next op.
//
//   d log_partition = <marginals, dx>        d marginals = covariance(dx)
//
// so log_partition can be differentiated twice and marginals once. Only the inputs are saved
// between forward and backward.
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aimle/torch/tensor/find_op.h"
#include "aimle/torch/tensor/without_gradient.h"

namespace aimle::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<at::Tensor>;

/// The arguments of all four besides their tensors.
struct Settings {
  std::string solver;
  MaybeTensor mask;
  MaybeTensor row_data;
  int64_t check;
};

using OfScores = Tensor(const Tensor&, std::string_view, const MaybeTensor&, const MaybeTensor&,
                        int64_t);
using OfScoresAndV = Tensor(const Tensor&, const Tensor&, std::string_view, const MaybeTensor&,
                            const MaybeTensor&, int64_t);

Tensor call_log_partition(const Tensor& scores, const Settings& s) {
  static const auto op = find_op<OfScores>("aimle::log_partition");
  return op.call(scores, s.solver, s.mask, s.row_data, s.check);
}

Tensor call_marginals(const Tensor& scores, const Settings& s) {
  static const auto op = find_op<OfScores>("aimle::marginals");
  return op.call(scores, s.solver, s.mask, s.row_data, s.check);
}

Tensor call_covariance(const Tensor& scores, const Tensor& v, const Settings& s) {
  static const auto op = find_op<OfScoresAndV>("aimle::covariance");
  return op.call(scores, v, s.solver, s.mask, s.row_data, s.check);
}

void save(AutogradContext* context, const Tensor& scores, const Settings& settings) {
  context->save_for_backward(
      {scores, settings.mask.value_or(Tensor()), settings.row_data.value_or(Tensor())});
  context->saved_data["solver"] = settings.solver;
  context->saved_data["check"] = settings.check;
}

MaybeTensor or_none(const Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}

/// The scores and the settings kept by `save`.
std::pair<Tensor, Settings> saved(AutogradContext* context) {
  const variable_list tensors = context->get_saved_variables();
  return {tensors[0], Settings{.solver = context->saved_data["solver"].toStringRef(),
                               .mask = or_none(tensors[1]),
                               .row_data = or_none(tensors[2]),
                               .check = context->saved_data["check"].toInt()}};
}

struct LogPartition : Function<LogPartition> {
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Settings& settings) {
    save(context, scores, settings);
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call_log_partition(scores, settings);
  }
  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const auto [scores, settings] = saved(context);
    Tensor scale = dy[0];
    while (scale.dim() < scores.dim()) scale = scale.unsqueeze(-1);
    return {scale.mul(call_marginals(scores, settings)), Tensor()};
  }
};

struct Marginals : Function<Marginals> {
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Settings& settings) {
    save(context, scores, settings);
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call_marginals(scores, settings);
  }
  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const auto [scores, settings] = saved(context);
    return {call_covariance(scores, dy[0], settings), Tensor()};
  }
};

struct Covariance : Function<Covariance> {
  static Tensor forward(AutogradContext* context, const Tensor& scores, const Tensor& v,
                        const Settings& settings) {
    save(context, scores, settings);
    const at::AutoDispatchBelowADInplaceOrView guard;
    return call_covariance(scores, v, settings);
  }
  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !context->needs_input_grad(0),
        "[aimle::covariance] has no gradient with respect to the scores: log_partition can be "
        "differentiated twice and marginals once");
    const auto [scores, settings] = saved(context);
    return {Tensor(), call_covariance(scores, dy[0], settings), Tensor()};
  }
};

Tensor log_partition(const Tensor& scores, std::string_view solver, const MaybeTensor& mask,
                     const MaybeTensor& row_data, int64_t check) {
  return LogPartition::apply(scores, Settings{std::string(solver), mask, row_data, check});
}

Tensor marginals(const Tensor& scores, std::string_view solver, const MaybeTensor& mask,
                 const MaybeTensor& row_data, int64_t check) {
  return Marginals::apply(scores, Settings{std::string(solver), mask, row_data, check});
}

Tensor covariance(const Tensor& scores, const Tensor& v, std::string_view solver,
                  const MaybeTensor& mask, const MaybeTensor& row_data, int64_t check) {
  return Covariance::apply(scores, v, Settings{std::string(solver), mask, row_data, check});
}

TORCH_LIBRARY_FRAGMENT(aimle, library) {
  const std::string settings =
      "str solver, Tensor? mask=None, Tensor? row_data=None, int check=1) -> Tensor";
  const auto define = [&](const std::string& opening) {
    library.def((opening + settings).c_str(), {at::Tag::pt2_compliant_tag});
  };
  define("log_partition(Tensor scores, ");
  define("marginals(Tensor scores, ");
  define("covariance(Tensor scores, Tensor v, ");
  define("exact_sample(Tensor scores, Tensor key, SymInt samples, ");
}

TORCH_LIBRARY_IMPL(aimle, Autograd, library) {
  library.impl("log_partition", log_partition);
  library.impl("marginals", marginals);
  library.impl("covariance", covariance);
  library.impl("exact_sample", without_gradient());  // piecewise constant in the scores
}

}  // namespace
}  // namespace aimle::ops
