#include "experiments/nri/tree_rollout.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

namespace aimle::experiments::nri {
namespace {

// Columns before those of the messages in the input of a node: two of its position, a one for the
// gradient of the bias, and a zero, so that rows stay aligned for the GPU's matrix units.
constexpr int64_t kOwn = 4, kOne = 2;

/// relu(x weight' + bias), into out.
void layer(at::Tensor out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  at::_addmm_activation_out(out, bias, x, weight.t());
}

/// Sets to zero, in place, where the layer's output y was zero.
void through_relu(at::Tensor gradient, const at::Tensor& y) {
  at::threshold_backward_out(gradient, gradient, y, 0);
}

/// The links of a batch sorted by type: pairs without a link first, then those with one.
struct Order {
  at::Tensor place;      // [R]: the position of a link after sorting
  at::Tensor receivers;  // [R]: of the sorted links, as rows of [N n]
  at::Tensor ends;       // [2 R]: sender and receiver of the sorted links
  at::Tensor chosen;     // [R]: where a link's message is in [type, sorted link]
  at::Tensor bags;       // [N n]: first link of every receiver
  int64_t all = 0;       // R
  int64_t unlinked = 0;

  Order(const at::Tensor& links, int64_t n, const at::Tensor& sender) {
    const int64_t graphs = links.size(0), linked = graphs * 2 * (n - 1);
    all = graphs * n * (n - 1);
    unlinked = all - linked;
    const at::Tensor type = links.detach().reshape({-1}).gt(0.5).to(at::kLong);
    const at::Tensor before = type.cumsum(0);
    TORCH_CHECK(!links.is_cpu() || before[all - 1].item<int64_t>() == linked,
                "[nri::tree_rollout] expected links to be trees: ", linked, " ones but got ",
                before[all - 1].item<int64_t>());
    const at::Tensor each = at::arange(all, before.options());
    place = at::where(type.gt(0), before + (unlinked - 1), each - before);
    chosen = place + type * all;
    const at::Tensor sorted = at::empty_like(place).scatter_(0, place, each);
    receivers = sorted.div(n - 1, "floor");
    const at::Tensor from =
        sender.argmax(1).repeat({graphs}) + each.div(n * (n - 1), "floor") * n;  // as rows of [N n]
    ends = at::stack({from.index_select(0, sorted), receivers}, 1).view({-1});
    bags = at::arange(0, all, n - 1, before.options());
  }
};

/// The sorted links of one type.
at::Tensor of_type(const at::Tensor& x, int64_t dim, int type, int64_t unlinked) {
  return type == 0 ? x.narrow(dim, 0, unlinked) : x.narrow(dim, unlinked, x.size(dim) - unlinked);
}

/// All rows of the last dimension.
at::Tensor rows_of(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// left' right over all steps, [steps, R, a] and [steps, R, b] -> [2, a, b]: one for the rows of
/// each type. Split into n parts per step, the last two of which are linked: as a single product, a
/// GPU would sum that many rows with only a few blocks.
at::Tensor products_of_types(const at::Tensor& left, const at::Tensor& right, int64_t n) {
  const int64_t steps = left.size(0), a = left.size(2), b = right.size(2);
  const at::Tensor parts =
      at::bmm(left.view({steps * n, -1, a}).transpose(1, 2), right.view({steps * n, -1, b}))
          .view({steps, n, a, b});
  return at::stack({parts.narrow(1, 0, n - 2).sum(at::IntArrayRef{0, 1}),
                    parts.narrow(1, n - 2, 2).sum(at::IntArrayRef{0, 1})});
}

/// The change of the sum of a link's receiver if the link's other message were used, all steps
/// together: [R] in the order of links. d_seen: [steps, nodes, kOwn + h].
at::Tensor gain_of_links(const at::Tensor& messages, const at::Tensor& d_seen,
                         const at::Tensor& place) {
  const int64_t steps = messages.size(0), all = place.size(0), h = messages.size(2);
  const int64_t nodes = d_seen.size(1);
  const at::Tensor t = at::arange(steps, place.options()).view({-1, 1, 1});
  const at::Tensor type = at::arange(2, place.options()).view({-1, 1});
  const at::Tensor message = ((t * 2 + type) * all + place).view({-1});
  const at::Tensor receiver =
      at::arange(all, place.options()).div(all / nodes, "floor") + t * nodes;
  const at::Tensor gain = at::_embedding_bag_per_sample_weights_backward(
      rows_of(d_seen).narrow(1, kOwn, h), rows_of(messages), message,
      /*offsets, not read=*/at::arange(0, message.numel(), all / nodes, place.options()),
      receiver.expand({-1, 2, -1}).reshape({-1}), /*mode=sum*/ 0);
  const at::Tensor by_type = gain.view({steps, 2, all}).sum(0);
  return by_type[1] - by_type[0];
}

at::Tensor with_blanks(const at::Tensor& out0) {
  return at::cat({out0.narrow(1, 0, 2), at::zeros({out0.size(0), kOwn - 2}, out0.options()),
                  out0.narrow(1, 2, out0.size(1) - 2)},
                 1);
}

at::Tensor without_blanks(const at::Tensor& out0) {
  return at::cat({out0.narrow(1, 0, 2), out0.narrow(1, kOwn, out0.size(1) - kOwn)}, 1);
}

class TreeRollout : public torch::autograd::Function<TreeRollout> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& start,
                            const at::Tensor& links, int64_t steps, bool differentiate,
                            const at::Tensor& sender, const at::Tensor& message0,
                            const at::Tensor& message0_bias, const at::Tensor& message1,
                            const at::Tensor& message1_bias, const at::Tensor& out0,
                            const at::Tensor& out0_bias, const at::Tensor& out1,
                            const at::Tensor& out1_bias, const at::Tensor& out2,
                            const at::Tensor& out2_bias) {
    const int64_t n = start.size(1), nodes = start.size(0) * n, h = message1.size(-1);
    const bool asks_links = differentiate && links.requires_grad();
    const Order order(links, n, sender);
    const auto space = [&](int64_t rows, int64_t columns) {
      return at::empty({steps, rows, columns}, start.options());
    };
    const at::Tensor pairs = space(order.all, 4), hidden = space(order.all, 2 * h);
    const at::Tensor messages = space(2 * order.all, h), seen = space(nodes, kOwn + h);
    const at::Tensor first = space(nodes, h), second = space(nodes, h), predicted = space(nodes, 2);
    const at::Tensor one_and_zero = at::eye(1, kOwn - 2, start.options()).repeat({nodes, 1});
    const at::Tensor seen_weight = with_blanks(out0);
    at::Tensor now = start.reshape({nodes, 2});
    for (int64_t t = 0; t < steps; ++t) {
      at::Tensor met = pairs[t].view({-1, 2});
      at::index_select_out(met, now, 0, order.ends);
      layer(hidden[t], pairs[t], message0.view({2 * h, 4}), message0_bias.view({2 * h}));
      for (int type = 0; type < 2; ++type) {
        at::Tensor in = hidden[t].narrow(1, type * h, h);
        at::Tensor out = messages[t].narrow(0, type * order.all, order.all);
        if (!asks_links) {
          in = of_type(in, 0, type, order.unlinked);
          out = of_type(out, 0, type, order.unlinked);
        }
        layer(out, in, message1[type], message1_bias[type]);
      }
      const at::Tensor agg = std::get<0>(at::_embedding_bag_forward_only(
          messages[t], order.chosen, order.bags, /*scale_grad_by_freq=*/false, /*mode=sum*/ 0));
      at::Tensor joined = seen[t];
      at::cat_out(joined, {now, one_and_zero, agg}, 1);
      layer(first[t], joined, seen_weight, out0_bias);
      layer(second[t], first[t], out1, out1_bias);
      at::Tensor next = predicted[t];
      at::addmm_out(next, out2_bias, second[t], out2.t());
      now = next.add_(now);
    }
    if (differentiate) {
      ctx->save_for_backward({sender, message0, message1, out0, out1, out2});
      ctx->saved_data["kept"] = std::vector<at::Tensor>{
          order.place, order.receivers, messages, seen, first, second, pairs, hidden};
      ctx->saved_data["links"] = links.sizes().vec();
      ctx->saved_data["asks_links"] = asks_links;
    }
    return predicted.view({steps, start.size(0), n, 2});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &sender = saved[0], &message0 = saved[1], &message1 = saved[2];
    const at::Tensor &out1 = saved[4], &out2 = saved[5];
    const at::Tensor seen_weight = with_blanks(saved[3]);
    const auto kept = ctx->saved_data["kept"].toTensorVector();
    const at::Tensor &place = kept[0], &receivers = kept[1], &messages = kept[2], &seen = kept[3];
    const at::Tensor &first = kept[4], &second = kept[5], &pairs = kept[6], &hidden = kept[7];

    const int64_t steps = seen.size(0), nodes = first.size(1), h = first.size(2);
    const int64_t n = sender.size(1), graphs = nodes / n, all = place.size(0);
    const int64_t unlinked = all - graphs * 2 * (n - 1);
    const auto each_type = [&](const at::Tensor& x, int type) {
      return of_type(x, 0, type, unlinked);
    };
    const at::Tensor given = gradients[0].contiguous().view({steps, nodes, 2});
    const at::Tensor g = at::empty_like(given), d_seen = at::empty_like(seen);
    const at::Tensor d_second = at::empty_like(second), d_first = at::empty_like(first);
    const at::Tensor d_message = at::empty({steps, all, h}, given.options());
    const at::Tensor d_hidden = at::empty_like(d_message);
    // From the ends of sorted links to nodes: [coordinate, (end, sorted link)] is brought into the
    // order [coordinate, graph, (end, link)], which the matrix sums up over the ends of every node.
    const at::Tensor at_pairs = at::empty({4, all}, given.options());
    const at::Tensor from_pairs =
        message0.view({2, h, 2, 2}).permute({0, 3, 2, 1}).reshape({2, 4, h});
    const at::Tensor by_graph = place.view({graphs, -1});
    const at::Tensor both_ends = at::stack({by_graph, by_graph + all}, 1).view({-1});
    const at::Tensor receiver =
        at::eye(n, given.options()).unsqueeze(1).expand({n, n - 1, n}).reshape({-1, n});
    const at::Tensor incidence = at::cat({sender, receiver});
    at::Tensor carried;
    for (int64_t t = steps - 1; t >= 0; --t) {
      at::Tensor now = g[t], at_second = d_second[t], at_first = d_first[t], at_seen = d_seen[t];
      if (carried.defined()) {
        at::add_out(now, given[t], carried);
      } else {
        now.copy_(given[t]);
      }
      at::mm_out(at_second, now, out2);
      through_relu(at_second, second[t]);
      at::mm_out(at_first, at_second, out1);
      through_relu(at_first, first[t]);
      at::mm_out(at_seen, at_first, seen_weight);
      at::Tensor at_messages = d_message[t];
      at::index_select_out(at_messages, at_seen.narrow(1, kOwn, h), 0, receivers);
      for (int type = 0; type < 2; ++type) {
        const at::Tensor at_message = each_type(at_messages, type);
        at::Tensor at_hidden = each_type(d_hidden[t], type);
        through_relu(at_message, each_type(messages[t].narrow(0, type * all, all), type));
        at::mm_out(at_hidden, at_message, message1[type]);
        through_relu(at_hidden, each_type(hidden[t].narrow(1, type * h, h), type));
        if (t == 0) continue;
        at::Tensor at_pair = of_type(at_pairs, 1, type, unlinked);
        at::mm_out(at_pair, from_pairs[type], at_hidden.t());
      }
      if (t == 0) break;
      const at::Tensor at_ends = at_pairs.view({2, -1}).index_select(1, both_ends);
      const at::Tensor at_nodes = at::mm(at_ends.view({2 * graphs, -1}), incidence);
      carried = (now + at_seen.narrow(1, 0, 2)).add_(at_nodes.view({2, nodes}).t());
    }

    // Biases get a one in every row: a column next to the positions.
    const at::Tensor pairs_and_one = at::cat({pairs, at::ones({steps, all, 1}, pairs.options()),
                                              at::zeros({steps, all, 3}, pairs.options())},
                                             2);
    const at::Tensor at_message0 = products_of_types(pairs_and_one, d_hidden, n);
    const at::Tensor at_message1_bias = products_of_types(pairs_and_one, d_message, n).select(1, 4);
    std::array<at::Tensor, 2> at_message1;
    for (int type = 0; type < 2; ++type) {
      const auto rows = [&](const at::Tensor& x) { return of_type(x, 1, type, unlinked); };
      at_message1[type] =
          at::bmm(rows(d_message).transpose(1, 2), rows(hidden.narrow(2, type * h, h))).sum(0);
    }
    const at::Tensor at_out0 = at::mm(rows_of(d_first).t(), rows_of(seen));
    at::Tensor at_links;
    if (ctx->saved_data["asks_links"].toBool()) {
      at_links =
          gain_of_links(messages, d_seen, place).view(ctx->saved_data["links"].toIntVector());
    }
    return {{},
            at_links,
            {},
            {},
            {},
            at_message0.narrow(1, 0, 4).transpose(1, 2),
            at_message0.select(1, 4),
            at::stack({at_message1[0], at_message1[1]}),
            at_message1_bias,
            without_blanks(at_out0),
            at_out0.select(1, kOne),
            at::mm(rows_of(d_second).t(), rows_of(first)),
            rows_of(d_second).sum(0),
            at::mm(rows_of(g).t(), rows_of(second)),
            rows_of(g).sum(0)};
  }
};

}  // namespace

at::Tensor tree_rollout(const at::Tensor& start, const at::Tensor& links, int64_t steps,
                        const DecoderWeights& weights, const at::Tensor& sender) {
  return TreeRollout::apply(start, links, steps, at::GradMode::is_enabled(), sender,
                            weights.message0, weights.message0_bias, weights.message1,
                            weights.message1_bias, weights.out0, weights.out0_bias, weights.out1,
                            weights.out1_bias, weights.out2, weights.out2_bias);
}

}  // namespace aimle::experiments::nri
