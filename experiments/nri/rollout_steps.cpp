#include "experiments/nri/rollout_steps.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <vector>

#include "aimle/torch/tensor/device_context.h"

namespace aimle::experiments::nri {
namespace {

/// Whether kernels compute a step with this input.
bool in_kernels(const at::Tensor& x) {
  return has_rollout_kernels() && x.is_cuda() && x.scalar_type() == at::kFloat;
}

/// For one kernel: its device becomes current until the end of the expression.
using On = ops::DeviceContext;

template <class T = float>
const T* from(const at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "[nri::tree_rollout] expected contiguous tensors");
  return x.const_data_ptr<T>();
}

template <class T = float>
T* into(const at::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "[nri::tree_rollout] expected contiguous tensors");
  return x.mutable_data_ptr<T>();
}

FirstLayers from(const LayerWeights (&layers)[2]) {
  return {{from(layers[0].weight), from(layers[1].weight)},
          {from(layers[0].bias), from(layers[1].bias)}};
}

RolloutShape shape_of(const SortedLinks& links, int64_t hidden) {
  const int64_t n = links.vertices;
  return {.graphs = links.all() / (n * (n - 1)), .vertices = n, .hidden = hidden};
}

/// All rows of the last dimension.
at::Tensor rows_of(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

/// The rows of a step in n equal parts: [R, h] -> [n, R / n, h].
at::Tensor in_parts(const at::Tensor& x, int64_t vertices) {
  return x.view({vertices, -1, x.size(1)});
}

/// Sums of `columns` columns of the rows of every node's links: [N n, columns].
at::Tensor sums_of_links_of_nodes(const at::Tensor& rows, int64_t first, int64_t columns,
                                  const at::Tensor& places, int64_t vertices) {
  return rows.narrow(1, first, columns)
      .index_select(0, places)
      .view({-1, vertices - 1, columns})
      .sum(1);
}

}  // namespace

SortedLinks sort_links(const at::Tensor& links, const at::Tensor& sender) {
  const int64_t n = sender.size(1), graphs = links.size(0), linked = graphs * 2 * (n - 1);
  const int64_t all = graphs * n * (n - 1);
  if (in_kernels(links)) {
    const at::Tensor z = links.detach().contiguous();
    const auto places = [&](at::IntArrayRef sizes) {
      return at::empty(sizes, z.options().dtype(at::kLong));
    };
    const SortedLinks sorted = {
        .place = places({all}), .sent = places({all}), .ends = places({all, 2}), .vertices = n};
    sort_links_on_device(shape_of(sorted, 0), from(z), from(sender), into<int64_t>(sorted.place),
                         into<int64_t>(sorted.sent), into<int64_t>(sorted.ends),
                         On(z).get().stream);
    return sorted;
  }
  const at::Tensor type = links.detach().reshape({-1}).gt(0.5).to(at::kLong);
  const at::Tensor before = type.cumsum(0);
  TORCH_CHECK(!links.is_cpu() || before[all - 1].item<int64_t>() == linked,
              "[nri::tree_rollout] expected links to be trees: ", linked, " ones but got ",
              before[all - 1].item<int64_t>());
  const at::Tensor each = at::arange(all, before.options());
  const at::Tensor place = at::where(type.gt(0), before + (all - linked - 1), each - before);
  const at::Tensor sorted = at::empty_like(place).scatter_(0, place, each);
  const at::Tensor sender_of = sender.argmax(1);
  const at::Tensor by_sender = sender_of.argsort(/*stable=*/true, /*dim=*/0);
  const at::Tensor senders =  // as rows of [N n]
      sender_of.repeat({graphs}) + each.div(n * (n - 1), "floor") * n;
  return {.place = place,
          .sent = place.view({graphs, -1}).index_select(1, by_sender).view(-1),
          .ends = at::stack({senders, each.div(n - 1, "floor")}, 1).index_select(0, sorted),
          .vertices = n};
}

at::Tensor part_weights(const SortedLinks& links, const LayerWeights (&message1)[2]) {
  if (!in_kernels(message1[0].weight)) return {};
  const auto copies = [&](int type, int64_t count) {
    return message1[type].weight.unsqueeze(0).expand({count, -1, -1});
  };
  return at::cat({copies(0, links.vertices - 2), copies(1, 2)});
}

at::Tensor layer(const at::Tensor& x, const LayerWeights& weights) {
  return at::_addmm_activation(weights.bias, x, weights.weight.t());
}

void layer_out(at::Tensor out, const at::Tensor& x, const LayerWeights& weights) {
  at::_addmm_activation_out(out, weights.bias, x, weights.weight.t());
}

void meet(const SortedLinks& links, const at::Tensor& now, const LayerWeights (&message0)[2],
          at::Tensor pairs, at::Tensor hidden) {
  if (in_kernels(now)) {
    meet_on_device(shape_of(links, hidden.size(1)), from<int64_t>(links.ends), from(now),
                   from(message0), into(pairs), into(hidden), On(now).get().stream);
    return;
  }
  at::Tensor ends = pairs.view({-1, 2});
  at::index_select_out(ends, now, 0, links.ends.view(-1));
  for (int type = 0; type < 2; ++type) {
    layer_out(links.of_type(hidden, 0, type), links.of_type(pairs, 0, type), message0[type]);
  }
}

void send(const SortedLinks& links, const at::Tensor& now, const at::Tensor& hidden,
          const LayerWeights (&message1)[2], const at::Tensor& by_part, at::Tensor messages,
          at::Tensor seen) {
  if (in_kernels(now)) {
    at::Tensor out = in_parts(messages, links.vertices);
    at::bmm_out(out, in_parts(hidden, links.vertices), by_part.transpose(1, 2));
    see_on_device(shape_of(links, hidden.size(1)), from<int64_t>(links.place), from(now),
                  {{from(message1[0].bias), from(message1[1].bias)}}, into(messages), into(seen),
                  On(now).get().stream);
    return;
  }
  for (int type = 0; type < 2; ++type) {
    layer_out(links.of_type(messages, 0, type), links.of_type(hidden, 0, type), message1[type]);
  }
  const at::Tensor bags = at::arange(0, links.all(), links.vertices - 1, links.place.options());
  const at::Tensor sums = std::get<0>(at::_embedding_bag_forward_only(
      messages, links.place, bags, /*scale_grad_by_freq=*/false, /*mode=sum*/ 0));
  const at::Tensor one_and_zero = at::eye(1, kOwn - kOne, now.options()).expand({now.size(0), -1});
  at::cat_out(seen, {now, one_and_zero, sums}, 1);
}

void move(const SortedLinks& links, const at::Tensor& now, const at::Tensor& second,
          const LayerWeights& out2, at::Tensor next) {
  if (in_kernels(now)) {
    move_on_device(shape_of(links, second.size(1)), from(now), from(second), from(out2.weight),
                   from(out2.bias), into(next), On(now).get().stream);
    return;
  }
  at::addmm_out(next, out2.bias, second, out2.weight.t());
  next.add_(now);
}

void through_relu(at::Tensor gradient, const at::Tensor& y) {
  at::threshold_backward_out(gradient, gradient, y, 0);
}

void move_backward(const SortedLinks& links, int64_t t, const at::Tensor& d_given,
                   const at::Tensor& d_seen, const at::Tensor& d_pairs, const at::Tensor& second,
                   const at::Tensor& out2, at::Tensor d_positions, at::Tensor d_second) {
  at::Tensor now = d_positions[t], at_second = d_second[t];
  const bool last = t + 1 == d_given.size(0);
  if (in_kernels(now)) {
    NextStep next;
    if (!last) next = {from(d_positions[t + 1]), from(d_seen[t + 1]), from(d_pairs)};
    move_backward_on_device(shape_of(links, second.size(2)), from<int64_t>(links.place),
                            from<int64_t>(links.sent), from(d_given[t]), next, from(second[t]),
                            from(out2), into(now), into(at_second), On(now).get().stream);
    return;
  }
  now.copy_(d_given[t]);
  if (!last) {
    now.add_(d_positions[t + 1]).add_(d_seen[t + 1].narrow(1, 0, 2));
    now.add_(sums_of_links_of_nodes(d_pairs, 0, 2, links.sent, links.vertices));
    now.add_(sums_of_links_of_nodes(d_pairs, 2, 2, links.place, links.vertices));
  }
  at::mm_out(at_second, now, out2);
  through_relu(at_second, second[t]);
}

void send_backward(const SortedLinks& links, const at::Tensor& d_seen, const at::Tensor& messages,
                   const LayerWeights (&message1)[2], const at::Tensor& by_part,
                   at::Tensor d_messages, at::Tensor d_hidden) {
  if (in_kernels(messages)) {
    see_backward_on_device(shape_of(links, messages.size(1)), from<int64_t>(links.ends),
                           from(d_seen), from(messages), into(d_messages),
                           On(messages).get().stream);
    at::Tensor out = in_parts(d_hidden, links.vertices);
    at::bmm_out(out, in_parts(d_messages, links.vertices), by_part);
    return;
  }
  at::index_select_out(d_messages, d_seen.narrow(1, kOwn, messages.size(1)), 0,
                       links.ends.select(1, 1));
  through_relu(d_messages, messages);
  for (int type = 0; type < 2; ++type) {
    at::Tensor out = links.of_type(d_hidden, 0, type);
    at::mm_out(out, links.of_type(d_messages, 0, type), message1[type].weight);
  }
}

void meet_backward(const SortedLinks& links, const at::Tensor& hidden,
                   const LayerWeights (&message0)[2], at::Tensor d_hidden, at::Tensor d_pairs) {
  if (in_kernels(hidden)) {
    meet_backward_on_device(shape_of(links, hidden.size(1)), from(hidden), from(message0),
                            into(d_hidden), into(d_pairs), On(hidden).get().stream);
    return;
  }
  through_relu(d_hidden, hidden);
  for (int type = 0; type < 2; ++type) {
    at::Tensor out = links.of_type(d_pairs, 0, type);
    at::mm_out(out, links.of_type(d_hidden, 0, type), message0[type].weight);
  }
}

LinkSums sums_of_links(const SortedLinks& links, const at::Tensor& pairs,
                       const at::Tensor& d_hidden, const at::Tensor& d_messages) {
  const int64_t steps = pairs.size(0), h = d_hidden.size(2);
  LinkSums result;
  if (in_kernels(pairs)) {
    const RolloutShape shape = shape_of(links, h);
    const at::Tensor parts = at::empty({sums_of_links_scratch(shape, steps)}, pairs.options());
    const at::Tensor sums[2] = {at::empty({6 * h}, pairs.options()),
                                at::empty({6 * h}, pairs.options())};
    sums_of_links_on_device(shape, steps, from(pairs), from(d_hidden), from(d_messages),
                            into(parts), into(sums[0]), into(sums[1]), On(pairs).get().stream);
    for (int type = 0; type < 2; ++type) {
      const std::vector<at::Tensor> all = sums[type].split_with_sizes({4 * h, h, h});
      result.message0[type] = {all[0].view({h, 4}), all[1]};
      result.message1_bias[type] = all[2];
    }
    return result;
  }
  // Biases get a one in every row: a column next to the positions.
  const at::Tensor pairs_and_one =
      at::cat({pairs, at::ones({steps, links.all(), 1}, pairs.options())}, 2);
  const auto of_hidden = products_of_types(links, pairs_and_one, d_hidden);
  const auto of_messages = products_of_types(links, pairs_and_one, d_messages);
  for (int type = 0; type < 2; ++type) {
    result.message0[type] = {of_hidden[type].narrow(0, 0, 4).t(), of_hidden[type][4]};
    result.message1_bias[type] = of_messages[type][4];
  }
  return result;
}

NodeSums sums_of_nodes(const at::Tensor& d_positions, const at::Tensor& second,
                       const at::Tensor& d_second) {
  const int64_t rows = second.size(0) * second.size(1), h = second.size(2);
  if (in_kernels(second)) {
    const at::Tensor parts = at::empty({sums_of_nodes_scratch(rows, h)}, second.options());
    const at::Tensor sums = at::empty({3 * h + 2}, second.options());
    sums_of_nodes_on_device(rows, h, from(d_positions), from(second), from(d_second), into(parts),
                            into(sums), On(second).get().stream);
    const std::vector<at::Tensor> all = sums.split_with_sizes({2 * h, 2, h});
    return {.out2 = {all[0].view({2, h}), all[1]}, .out1_bias = all[2]};
  }
  const at::Tensor moves = rows_of(d_positions);
  return {.out2 = {at::mm(moves.t(), rows_of(second)), moves.sum(0)},
          .out1_bias = rows_of(d_second).sum(0)};
}

// Split into n parts per step, the last two of which are linked: as a single product, a GPU would
// sum that many rows with only a few blocks.
std::array<at::Tensor, 2> products_of_types(const SortedLinks& links, const at::Tensor& left,
                                            const at::Tensor& right) {
  const int64_t n = links.vertices, steps = left.size(0), a = left.size(2), b = right.size(2);
  const at::Tensor parts =
      at::bmm(left.view({steps * n, -1, a}).transpose(1, 2), right.view({steps * n, -1, b}))
          .view({steps, n, a, b});
  return {parts.narrow(1, 0, n - 2).sum(at::IntArrayRef{0, 1}),
          parts.narrow(1, n - 2, 2).sum(at::IntArrayRef{0, 1})};
}

at::Tensor other_messages(const SortedLinks& links, int type, const at::Tensor& pairs,
                          const LayerWeights (&message0)[2], const LayerWeights (&message1)[2]) {
  at::Tensor hidden;
  if (in_kernels(pairs)) {
    const int64_t steps = pairs.size(0), h = message1[0].bias.size(0);
    const int64_t of_type = type == 0 ? links.unlinked() : links.all() - links.unlinked();
    hidden = at::empty({steps * of_type, h}, pairs.options());
    other_hidden_on_device(shape_of(links, h), steps, type, from(pairs), from(message0),
                           into(hidden), On(pairs).get().stream);
  } else {
    hidden = layer(links.of_type(pairs, 1, type).reshape({-1, 4}), message0[1 - type]);
  }
  return layer(hidden, message1[1 - type]);
}

at::Tensor gain_of_links(const SortedLinks& links, const at::Tensor& d_seen,
                         const at::Tensor& messages, const at::Tensor (&others)[2]) {
  const int64_t steps = messages.size(0), h = messages.size(2);
  if (in_kernels(messages)) {
    at::Tensor gain = at::empty({links.all()}, messages.options());
    gain_of_links_on_device(shape_of(links, h), steps, from<int64_t>(links.place), from(d_seen),
                            from(messages), from(others[0]), from(others[1]), into(gain),
                            On(messages).get().stream);
    return gain;
  }
  const at::Tensor t = at::arange(steps, links.place.options()).view({-1, 1});
  const at::Tensor each = at::arange(links.all(), links.place.options());
  const at::Tensor receivers = links.ends.select(1, 1) + t * d_seen.size(1);
  const at::Tensor d_sums = rows_of(d_seen).narrow(1, kOwn, h);
  std::vector<at::Tensor> gains;
  for (int type = 0; type < 2; ++type) {
    const at::Tensor receiver = links.of_type(receivers, 1, type).reshape(-1);
    const at::Tensor own = links.of_type(each + t * links.all(), 1, type).reshape(-1);
    const at::Tensor other = at::arange(own.size(0), own.options());
    const auto along_gradient = [&](const at::Tensor& x, const at::Tensor& row) {
      return at::_embedding_bag_per_sample_weights_backward(
          d_sums, rows_of(x), row, /*offsets, not read=*/row, receiver, /*mode=sum*/ 0);
    };
    const at::Tensor gain = (along_gradient(others[type], other) - along_gradient(messages, own))
                                .view({steps, -1})
                                .sum(0);
    gains.push_back(type == 0 ? gain : -gain);
  }
  return at::cat(gains).index_select(0, links.place);
}

}  // namespace aimle::experiments::nri
