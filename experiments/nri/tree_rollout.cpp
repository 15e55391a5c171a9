#include "experiments/nri/tree_rollout.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "experiments/nri/rollout_steps.h"

namespace aimle::experiments::nri {
namespace {

/// All rows of the last dimension.
at::Tensor flat(const at::Tensor& x) { return x.flatten(0, -2); }

at::Tensor with_blanks(const at::Tensor& out0) {
  return at::cat({out0.narrow(1, 0, 2), at::zeros({out0.size(0), kOwn - 2}, out0.options()),
                  out0.narrow(1, 2, out0.size(1) - 2)},
                 1);
}

at::Tensor without_blanks(const at::Tensor& out0) {
  return at::cat({out0.narrow(1, 0, 2), out0.narrow(1, kOwn, out0.size(1) - kOwn)}, 1);
}

/// The place of the links among the tensors that the function takes.
constexpr size_t kLinks = 1;

class TreeRollout : public torch::autograd::Function<TreeRollout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& start,
                            const at::Tensor& links, int64_t steps, bool differentiate,
                            const at::Tensor& sender, const at::Tensor& no_link0,
                            const at::Tensor& no_link0_bias, const at::Tensor& no_link1,
                            const at::Tensor& no_link1_bias, const at::Tensor& link0,
                            const at::Tensor& link0_bias, const at::Tensor& link1,
                            const at::Tensor& link1_bias, const at::Tensor& out0,
                            const at::Tensor& out0_bias, const at::Tensor& out1,
                            const at::Tensor& out1_bias, const at::Tensor& out2,
                            const at::Tensor& out2_bias) {
    const LayerWeights message0[2] = {{no_link0, no_link0_bias}, {link0, link0_bias}};
    const LayerWeights message1[2] = {{no_link1, no_link1_bias}, {link1, link1_bias}};
    const int64_t n = start.size(1), nodes = start.size(0) * n, h = out1.size(0);
    const SortedLinks sorted = sort_links(links, sender);
    const auto space = [&](int64_t rows, int64_t columns) {
      return at::empty({steps, rows, columns}, start.options());
    };
    const at::Tensor pairs = space(sorted.all(), 4), hidden = space(sorted.all(), h);
    const at::Tensor messages = space(sorted.all(), h), seen = space(nodes, kOwn + h);
    const at::Tensor first = space(nodes, h), second = space(nodes, h), predicted = space(nodes, 2);
    const at::Tensor seen_weight = with_blanks(out0), by_part = part_weights(sorted, message1);
    at::Tensor now = start.reshape({nodes, 2}).contiguous();
    for (int64_t t = 0; t < steps; ++t) {
      meet(sorted, now, message0, pairs[t], hidden[t]);
      send(sorted, now, hidden[t], message1, by_part, messages[t], seen[t]);
      layer_out(first[t], seen[t], {seen_weight, out0_bias});
      layer_out(second[t], first[t], {out1, out1_bias});
      move(sorted, now, second[t], {out2, out2_bias}, predicted[t]);
      now = predicted[t];
    }
    if (differentiate) {
      ctx->save_for_backward({no_link0, no_link0_bias, no_link1, no_link1_bias, link0, link0_bias,
                              link1, link1_bias, out1, out2});
      ctx->saved_data["kept"] =
          std::vector<at::Tensor>{sorted.place, sorted.sent, sorted.ends, pairs,  hidden,
                                  messages,     seen,        first,       second, seen_weight};
      ctx->saved_data["links"] = links.sizes().vec();
    }
    return predicted.view({steps, start.size(0), n, 2});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const LayerWeights message0[2] = {{saved[0], saved[1]}, {saved[4], saved[5]}};
    const LayerWeights message1[2] = {{saved[2], saved[3]}, {saved[6], saved[7]}};
    const at::Tensor &out1 = saved[8], &out2 = saved[9];
    const auto kept = ctx->saved_data["kept"].toTensorVector();
    const at::Tensor &pairs = kept[3], &hidden = kept[4], &messages = kept[5], &seen = kept[6];
    const at::Tensor &first = kept[7], &second = kept[8], &seen_weight = kept[9];
    const std::vector<int64_t> sizes = ctx->saved_data["links"].toIntVector();

    const int64_t steps = seen.size(0), nodes = first.size(1);
    const SortedLinks sorted = {
        .place = kept[0], .sent = kept[1], .ends = kept[2], .vertices = nodes / sizes[0]};
    const at::Tensor d_given = gradients[0].contiguous().view({steps, nodes, 2});
    const at::Tensor d_positions = at::empty_like(d_given), d_seen = at::empty_like(seen);
    const at::Tensor d_first = at::empty_like(first), d_second = at::empty_like(second);
    const at::Tensor d_messages = at::empty_like(messages), d_hidden = at::empty_like(hidden);
    const at::Tensor d_pairs = at::empty_like(pairs[0]), by_part = part_weights(sorted, message1);
    for (int64_t t = steps - 1; t >= 0; --t) {
      at::Tensor at_first = d_first[t], at_seen = d_seen[t];
      move_backward(sorted, t, d_given, d_seen, d_pairs, second, out2, d_positions, d_second);
      at::mm_out(at_first, d_second[t], out1);
      through_relu(at_first, first[t]);
      at::mm_out(at_seen, at_first, seen_weight);
      send_backward(sorted, at_seen, messages[t], message1, by_part, d_messages[t], d_hidden[t]);
      meet_backward(sorted, hidden[t], message0, d_hidden[t], d_pairs);
    }

    const LinkSums of_links = sums_of_links(sorted, pairs, d_hidden, d_messages);
    const NodeSums of_nodes = sums_of_nodes(d_positions, second, d_second);
    const auto at_message1 = products_of_types(sorted, d_messages, hidden);
    const at::Tensor at_out0 = at::mm(flat(d_first).t(), flat(seen));
    at::Tensor at_links;
    if (ctx->needs_input_grad(kLinks)) {
      const at::Tensor others[2] = {other_messages(sorted, 0, pairs, message0, message1),
                                    other_messages(sorted, 1, pairs, message0, message1)};
      at_links = gain_of_links(sorted, d_seen, messages, others).view(sizes);
    }
    return {{},
            at_links,
            {},
            {},
            {},
            of_links.message0[0].weight,
            of_links.message0[0].bias,
            at_message1[0],
            of_links.message1_bias[0],
            of_links.message0[1].weight,
            of_links.message0[1].bias,
            at_message1[1],
            of_links.message1_bias[1],
            without_blanks(at_out0),
            at_out0.select(1, kOne),
            at::mm(flat(d_second).t(), flat(first)),
            of_nodes.out1_bias,
            of_nodes.out2.weight,
            of_nodes.out2.bias};
  }
};

}  // namespace

at::Tensor tree_rollout(const at::Tensor& start, const at::Tensor& links, int64_t steps,
                        const DecoderWeights& weights, const at::Tensor& sender) {
  const auto& [no_link0, link0] = weights.message0;
  const auto& [no_link1, link1] = weights.message1;
  return TreeRollout::apply(start, links, steps, at::GradMode::is_enabled(), sender,
                            no_link0.weight, no_link0.bias, no_link1.weight, no_link1.bias,
                            link0.weight, link0.bias, link1.weight, link1.bias, weights.out0.weight,
                            weights.out0.bias, weights.out1.weight, weights.out1.bias,
                            weights.out2.weight, weights.out2.bias);
}

}  // namespace aimle::experiments::nri
