#include "experiments/nri/meeting.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "experiments/engine/dense.h"
#include "experiments/engine/on_device.h"
#include "experiments/nri/meeting_kernel.h"

namespace aimle::experiments::nri {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum Part : int64_t { kSender, kReceiver, kLink };

/// The columns of the weight for one of the inputs.
at::Tensor part_of(const at::Tensor& weight, Part part, int64_t inputs) {
  return weight.narrow(1, part * inputs, inputs);
}

at::Tensor as_matrix(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

struct Meeting : torch::autograd::Function<Meeting> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& nodes,
                            const std::optional<at::Tensor>& given_links, const at::Tensor& weight,
                            const at::Tensor& bias) {
    const ops::DeviceContext context(nodes);
    const at::Tensor links = given_links.value_or(at::Tensor());
    const int64_t inputs = nodes.size(2), hidden = weight.size(0);
    const at::Tensor both_parts =
        weight.view({hidden, -1, inputs}).narrow(1, 0, 2).permute({1, 2, 0});
    const at::Tensor x = as_matrix(nodes);
    const at::Tensor of_nodes = at::bmm(x.expand({2, -1, -1}), both_parts);
    at::Tensor of_links;
    if (links.defined()) of_links = at::mm(as_matrix(links), part_of(weight, kLink, inputs).t());
    const at::Tensor y =
        at::empty({nodes.size(0), nodes.size(1), nodes.size(1) - 1, hidden}, nodes.options());
    meet_on_device(sizes_of(y),
                   {.of_nodes = of_nodes.const_data_ptr<float>(),
                    .of_links = links.defined() ? of_links.const_data_ptr<float>() : nullptr,
                    .bias = bias.const_data_ptr<float>()},
                   y.mutable_data_ptr<float>(), context.get().stream);
    ctx->save_for_backward({nodes, links, weight, y});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &nodes = saved[0], &links = saved[1], &weight = saved[2], &y = saved[3];
    const ops::DeviceContext context(nodes);
    const int64_t inputs = nodes.size(2);
    const at::Tensor dy = gradients[0].contiguous(), x = as_matrix(nodes);
    const at::Tensor of_nodes = at::empty({2, x.size(0), y.size(3)}, y.options());
    const at::Tensor of_links = links.defined() ? at::empty_like(y) : at::Tensor();
    meet_backward_on_device(
        sizes_of(y), dy.const_data_ptr<float>(), y.const_data_ptr<float>(),
        {.of_nodes = of_nodes.mutable_data_ptr<float>(),
         .of_links = links.defined() ? of_links.mutable_data_ptr<float>() : nullptr},
        context.get().stream);

    const at::Tensor dweight = at::empty_like(weight);
    const auto multiply = [&](Part part, const at::Tensor& gradient, const at::Tensor& input) {
      at::Tensor out = part_of(dweight, part, inputs);
      at::mm_out(out, gradient.t(), input);
      return at::mm(gradient, part_of(weight, part, inputs));
    };
    at::Tensor dx = multiply(kSender, of_nodes[0], x);
    dx += multiply(kReceiver, of_nodes[1], x);
    at::Tensor dlinks;
    if (links.defined()) {
      dlinks = multiply(kLink, as_matrix(of_links), as_matrix(links)).view(links.sizes());
    }
    return {dx.view(nodes.sizes()), dlinks, dweight, sum_of_rows(of_nodes[1])};
  }

 private:
  static MeetingSizes sizes_of(const at::Tensor& y) {
    return {.graphs = y.size(0), .vertices = y.size(1), .columns = y.size(3)};
  }
};

}  // namespace

bool suits_meeting(const at::Tensor& nodes, const at::Tensor& links, const MeetingLayer& layer) {
  return has_meeting_kernel() && nodes.size(1) <= kMostMeetingVertices &&
         suit_kernels({nodes, layer.weight, layer.bias}) &&
         (!links.defined() || suit_kernels({links}));
}

at::Tensor meeting_on_device(const at::Tensor& nodes, const at::Tensor& links,
                             const MeetingLayer& layer) {
  return Meeting::apply(nodes, links.defined() ? std::optional(links) : std::nullopt, layer.weight,
                        layer.bias);
}

}  // namespace aimle::experiments::nri
