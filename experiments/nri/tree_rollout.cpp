#include "experiments/nri/tree_rollout.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

namespace aimle::experiments::nri {
namespace {

using Types = std::array<at::Tensor, 2>;  // something of pairs without a link, and of those with

at::Tensor rows_of(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// relu(x weight' + bias), into out.
void layer(at::Tensor out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  at::_addmm_activation_out(out, bias, x, weight.t());
}

/// Zero where the layer's output y was zero, in place.
void through_relu(at::Tensor gradient, const at::Tensor& y) {
  at::threshold_backward_out(gradient, gradient, y, 0);
}

/// The links of a batch in order of their type.
struct Order {
  at::Tensor place;             // [R]: where a link went
  at::Tensor sorted;            // [R]: which link came there
  at::Tensor receivers;         // [R]: of the sorted links, as rows of [N n]
  at::Tensor ends;              // [2 R]: sender and receiver of the sorted links
  at::Tensor bags;              // [N n]: first link of every receiver
  std::array<int64_t, 2> rows;  // without and with a link
  std::array<int64_t, 2> first;

  Order(const at::Tensor& links, int64_t n, const at::Tensor& sender) {
    const int64_t graphs = links.size(0), all = graphs * n * (n - 1);
    rows[1] = graphs * 2 * (n - 1);
    rows[0] = all - rows[1];
    first = {0, rows[0]};
    const at::Tensor linked = links.detach().reshape({-1}).gt(0.5);
    const at::Tensor before = linked.cumsum(0);
    TORCH_CHECK(!links.is_cpu() || before[all - 1].item<int64_t>() == rows[1],
                "[nri::tree_rollout] expected links to be trees: ", rows[1], " ones but got ",
                before[all - 1].item<int64_t>());
    const at::Tensor each = at::arange(all, before.options());
    place = at::where(linked, before + (all - 1) - before[all - 1], each - before);
    sorted = at::empty_like(place).scatter_(0, place, each);
    receivers = sorted.div(n - 1, "floor");
    const at::Tensor from =
        sender.argmax(1).repeat({graphs}) + each.div(n * (n - 1), "floor") * n;  // as rows of [N n]
    ends = at::stack({from.index_select(0, sorted), receivers}, 1).view({-1});
    bags = at::arange(0, all, n - 1, before.options());
  }

  at::Tensor of_type(const at::Tensor& x, int type) const {
    return x.narrow(0, first[type], rows[type]);
  }
};

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
    const Order order(links, n, sender);
    const auto space = [&](int64_t rows, int64_t columns) {
      return at::empty({steps, rows, columns}, start.options());
    };
    const bool asks_links = differentiate && links.requires_grad();
    const int64_t all = order.rows[0] + order.rows[1];
    const at::Tensor messages = space(all, h), seen = space(nodes, 2 + h);
    const at::Tensor first = space(nodes, h), second = space(nodes, h), predicted = space(nodes, 2);
    Types pairs, hidden, differences;
    for (int type = 0; type < 2; ++type) {
      pairs[type] = space(order.rows[type], 4);
      hidden[type] = space(order.rows[type], h);
      if (asks_links) differences[type] = space(order.rows[type], h);
    }
    at::Tensor now = start.reshape({nodes, 2});
    for (int64_t t = 0; t < steps; ++t) {
      const at::Tensor met = now.index_select(0, order.ends).view({all, 4});
      for (int type = 0; type < 2; ++type) {
        const int other = 1 - type;
        const at::Tensor own = order.of_type(met, type);
        const at::Tensor message = order.of_type(messages[t], type);
        pairs[type][t].copy_(own);
        layer(hidden[type][t], own, message0[type], message0_bias[type]);
        layer(message, hidden[type][t], message1[type], message1_bias[type]);
        if (!asks_links) continue;
        const at::Tensor at_other =
            at::_addmm_activation(message0_bias[other], own, message0[other].t());
        at::Tensor difference = differences[type][t];
        layer(difference, at_other, message1[other], message1_bias[other]);
        if (type == 1) {
          at::sub_out(difference, message, difference);
        } else {
          difference.sub_(message);
        }
      }
      const at::Tensor agg = std::get<0>(at::_embedding_bag_forward_only(
          messages[t], order.place, order.bags, /*scale_grad_by_freq=*/false, /*mode=sum*/ 0));
      at::Tensor joined = seen[t];
      at::cat_out(joined, {now, agg}, 1);
      layer(first[t], joined, out0, out0_bias);
      layer(second[t], first[t], out1, out1_bias);
      at::Tensor next = predicted[t];
      at::addmm_out(next, out2_bias, second[t], out2.t());
      now = next.add_(now);
    }
    if (differentiate) {
      ctx->save_for_backward({sender, message0, message1, out0, out1, out2});
      ctx->saved_data["kept"] =
          std::vector<at::Tensor>{order.place, order.receivers, messages, seen,      first,
                                  second,      pairs[0],        pairs[1], hidden[0], hidden[1]};
      if (asks_links) {
        ctx->saved_data["differences"] =
            std::vector<at::Tensor>(differences.begin(), differences.end());
      }
      ctx->saved_data["links"] = links.sizes().vec();
    }
    return predicted.view({steps, start.size(0), n, 2});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &sender = saved[0], &message0 = saved[1], &message1 = saved[2];
    const at::Tensor &out0 = saved[3], &out1 = saved[4], &out2 = saved[5];
    const auto kept = ctx->saved_data["kept"].toTensorVector();
    const at::Tensor &place = kept[0], &receivers = kept[1], &messages = kept[2], &seen = kept[3];
    const at::Tensor &first = kept[4], &second = kept[5];
    const Types pairs = {kept[6], kept[7]}, hidden = {kept[8], kept[9]};
    const bool asks_links = ctx->saved_data.count("differences") > 0;
    std::vector<at::Tensor> differences;
    if (asks_links) differences = ctx->saved_data["differences"].toTensorVector();

    const int64_t steps = messages.size(0), nodes = first.size(1), h = first.size(2);
    const int64_t n = sender.size(1), graphs = nodes / n;
    const std::array<int64_t, 2> rows = {hidden[0].size(1), hidden[1].size(1)};
    const at::Tensor given = gradients[0].contiguous().view({steps, nodes, 2});
    const at::Tensor g = at::empty_like(given);
    const at::Tensor d_second = at::empty_like(second), d_first = at::empty_like(first);
    Types d_message, d_hidden, d_links;
    for (int type = 0; type < 2; ++type) {
      d_message[type] = at::empty_like(hidden[type]);
      d_hidden[type] = at::empty_like(hidden[type]);
    }
    at::Tensor carried;
    for (int64_t t = steps - 1; t >= 0; --t) {
      at::Tensor now = g[t], at_second = d_second[t], at_first = d_first[t];
      if (carried.defined()) {
        at::add_out(now, given[t], carried);
      } else {
        now.copy_(given[t]);
      }
      at::mm_out(at_second, now, out2);
      through_relu(at_second, second[t]);
      at::mm_out(at_first, at_second, out1);
      through_relu(at_first, first[t]);
      const at::Tensor at_seen = at::mm(at_first, out0);
      const at::Tensor at_agg = at_seen.narrow(1, 2, h);
      std::vector<at::Tensor> at_pairs;
      for (int type = 0; type < 2; ++type) {
        const int64_t start = type * rows[0];
        at::Tensor at_message = d_message[type][t], at_hidden = d_hidden[type][t];
        at::index_select_out(at_message, at_agg, 0, receivers.narrow(0, start, rows[type]));
        if (asks_links) {
          const at::Tensor change = at::linalg_vecdot(at_message, differences[type][t]);
          d_links[type] = d_links[type].defined() ? d_links[type].add_(change) : change;
        }
        through_relu(at_message, messages[t].narrow(0, start, rows[type]));
        at::mm_out(at_hidden, at_message, message1[type]);
        through_relu(at_hidden, hidden[type][t]);
        if (t > 0) at_pairs.push_back(at::mm(message0[type].t(), at_hidden.t()));  // [4, rows]
      }
      if (t == 0) break;
      // [end of the link, coordinate, graph, link] in the order of links
      const at::Tensor at_ends =
          at::cat(at_pairs, 1).index_select(1, place).view({2, 2, graphs, -1});
      const at::Tensor at_nodes = at::matmul(at_ends[0], sender) +
                                  at_ends[1].view({2, graphs, n, n - 1}).sum(-1);  // [2, N, n]
      carried = (now + at_seen.narrow(1, 0, 2)).add_(at_nodes.view({2, nodes}).t());
    }

    Types w0, b0, w1, b1;
    for (int type = 0; type < 2; ++type) {
      const at::Tensor at_hidden = rows_of(d_hidden[type]), at_message = rows_of(d_message[type]);
      w0[type] = at::mm(rows_of(pairs[type]).t(), at_hidden).t();
      b0[type] = at_hidden.sum(0);
      w1[type] = at::mm(at_message.t(), rows_of(hidden[type]));
      b1[type] = at_message.sum(0);
    }
    at::Tensor at_links;
    if (asks_links) {
      at_links = at::cat({d_links[0], d_links[1]})
                     .index_select(0, place)
                     .view(ctx->saved_data["links"].toIntVector());
    }
    const auto both = [](const Types& x) { return at::stack({x[0], x[1]}); };
    return {{},
            at_links,
            {},
            {},
            {},
            both(w0),
            both(b0),
            both(w1),
            both(b1),
            at::mm(rows_of(d_first).t(), rows_of(seen)),
            rows_of(d_first).sum(0),
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
