#include "experiments/nri/model.h"

#include <torch/nn/init.h>

#include <algorithm>
#include <vector>

#include "aimle/map/spanning_tree.h"
#include "experiments/engine/dense.h"
#include "experiments/nri/meeting.h"

namespace aimle::experiments::nri {
namespace {

using torch::nn::Linear;

void init_encoder(Linear& linear) {
  torch::nn::init::xavier_normal_(linear->weight);
  torch::nn::init::constant_(linear->bias, 0.1);
}

at::Tensor to_tensor(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

Wiring::Wiring(int64_t vertices, at::Device device, at::ScalarType type) : vertices_(vertices) {
  const int64_t links = vertices * (vertices - 1);
  std::vector<int64_t> senders(links), pair_of(links), forth(pairs()), back(pairs());
  std::vector<float> is_forth(links);
  for (int64_t r = 0; r < vertices; ++r) {
    for (int64_t s = 0; s < vertices; ++s) {
      if (s == r) continue;
      const int64_t link = SpanningTree::arc(r, s, vertices);
      const int64_t pair = SpanningTree::edge(std::min(r, s), std::max(r, s), vertices);
      senders[link] = s;
      pair_of[link] = pair;
      is_forth[link] = s < r;
      (s < r ? forth : back)[pair] = link;
    }
  }
  sender_ = at::one_hot(to_tensor(senders, device), vertices).to(type);
  pair_of_ = to_tensor(pair_of, device);
  forth_ = to_tensor(forth, device);
  back_ = to_tensor(back, device);
  is_forth_ = at::tensor(is_forth).to(device, type);
}

at::Tensor Wiring::symmetric(const at::Tensor& links) const {
  return (links.index_select(-1, forth_) + links.index_select(-1, back_)) * 0.5;
}

at::Tensor Wiring::both_ways(const at::Tensor& pairs) const {
  return pairs.index_select(-1, pair_of_);
}

at::Tensor Wiring::one_way(const at::Tensor& pairs) const {
  const at::Tensor links = both_ways(pairs);
  return links.detach() + (links - links.detach()) * is_forth_;
}

at::Tensor Wiring::meet(const at::Tensor& from_sender, const at::Tensor& from_receiver) const {
  const int64_t n = vertices_;
  const at::Tensor senders =
      at::matmul(sender_, from_sender).view({-1, n, n - 1, from_sender.size(-1)});
  return senders + from_receiver.unsqueeze(2);
}

BlockImpl::BlockImpl(int64_t inputs, int64_t hidden)
    : first_(inputs, hidden), second_(hidden, hidden), norm_(hidden) {
  register_module("first", first_);
  register_module("second", second_);
  register_module("norm", norm_);
  init_encoder(first_);
  init_encoder(second_);
}

// Layers get matrices: for more dimensions torch adds the bias in a separate pass.
at::Tensor BlockImpl::forward(const at::Tensor& x) {
  const at::Tensor y = after_first(dense_elu(first_, x.flatten(0, -2)));
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(-1);
  return y.view(sizes);
}

at::Tensor BlockImpl::of_links(const at::Tensor& nodes, const at::Tensor& links,
                               const Wiring& wiring) {
  const MeetingLayer layer = {.weight = first_->weight, .bias = first_->bias};
  return after_first(suits_meeting(nodes, links, layer)
                         ? meeting_on_device(nodes, links, layer)
                         : at::elu(first_of_links(nodes, links, wiring)));
}

at::Tensor BlockImpl::first_of_links(const at::Tensor& nodes, const at::Tensor& links,
                                     const Wiring& wiring) const {
  const auto part = [&](const at::Tensor& x, int64_t number) {
    return at::linear(x, first_->weight.narrow(1, number * x.size(-1), x.size(-1)));
  };
  const at::Tensor met = wiring.meet(part(nodes, 0), part(nodes, 1) + first_->bias);
  return links.defined() ? met + part(links, 2) : met;
}

at::Tensor BlockImpl::after_first(const at::Tensor& x) {
  return norm_(dense_elu(second_, x.flatten(0, -2))).view(x.sizes());
}

EncoderImpl::EncoderImpl(int64_t frames, int64_t hidden)
    : path_(2 * frames, hidden),
      first_link_(2 * hidden, hidden),
      node_(hidden, hidden),
      second_link_(3 * hidden, hidden),
      score_(hidden, 1) {
  register_module("path", path_);
  register_module("first_link", first_link_);
  register_module("node", node_);
  register_module("second_link", second_link_);
  register_module("score", score_);
  init_encoder(score_);
}

at::Tensor EncoderImpl::forward(const at::Tensor& paths, const Wiring& wiring) {
  at::Tensor nodes = path_(paths.flatten(2));
  const at::Tensor links = first_link_->of_links(nodes, {}, wiring);
  nodes = node_(links.sum(2) * (1.0 / static_cast<double>(wiring.vertices())));
  const at::Tensor again = second_link_->of_links(nodes, links, wiring);
  return dense(score_, again.flatten(0, -2)).view({paths.size(0), -1});
}

DecoderImpl::DecoderImpl(int64_t hidden)
    : message0_{Linear(4, hidden), Linear(4, hidden)},
      message1_{Linear(hidden, hidden), Linear(hidden, hidden)},
      out0_(2 + hidden, hidden),
      out1_(hidden, hidden),
      out2_(hidden, 2) {
  register_module("no_link0", message0_[0]);
  register_module("no_link1", message1_[0]);
  register_module("link0", message0_[1]);
  register_module("link1", message1_[1]);
  register_module("out0", out0_);
  register_module("out1", out1_);
  register_module("out2", out2_);
}

at::Tensor DecoderImpl::step(const at::Tensor& positions, const at::Tensor& links,
                             const Wiring& wiring) {
  const int64_t n = wiring.vertices();
  const at::Tensor chosen = links.reshape({-1, 1, n - 1});
  at::Tensor agg;
  for (int type = 0; type < 2; ++type) {
    const at::Tensor& weight = message0_[type]->weight;
    const at::Tensor met =
        wiring.meet(at::linear(positions, weight.narrow(1, 0, 2)),
                    at::linear(positions, weight.narrow(1, 2, 2), message0_[type]->bias));
    const at::Tensor messages =
        message1_[type](met.relu()).relu().view({-1, n - 1, weight.size(0)});
    const at::Tensor sum = at::bmm(type == 0 ? 1.0 - chosen : chosen, messages);
    agg = type == 0 ? sum : agg + sum;
  }
  const at::Tensor seen = at::cat({positions, agg.view({-1, n, agg.size(-1)})}, -1);
  return positions + out2_(out1_(out0_(seen).relu()).relu());
}

at::Tensor DecoderImpl::forward(const at::Tensor& paths, const at::Tensor& links, int64_t horizon,
                                const Wiring& wiring, Links kind) {
  const int64_t batch = paths.size(0), n = paths.size(1), frames = paths.size(2);
  const int64_t samples = links.size(1);
  const int64_t starts = (frames - 1 + horizon - 1) / horizon;
  // [B, S, starts, ...] as one long batch.
  at::Tensor now = paths.slice(2, 0, frames - 1, horizon)
                       .permute({0, 2, 1, 3})
                       .unsqueeze(1)
                       .expand({-1, samples, -1, -1, -1})
                       .reshape({-1, n, 2});
  const at::Tensor chosen =
      links.unsqueeze(2).expand({-1, -1, starts, -1}).reshape({-1, links.size(2)});
  at::Tensor predicted;
  if (kind == Links::kTrees) {
    predicted = tree_rollout(now, chosen, horizon, weights(), wiring.sender());
  } else {
    std::vector<at::Tensor> steps;
    for (int64_t t = 0; t < horizon; ++t) {
      now = step(now, chosen, wiring);
      steps.push_back(now);
    }
    predicted = at::stack(steps);
  }
  // [horizon, B S starts, n, 2] -> [B, S, n, starts * horizon, 2]
  return predicted.view({horizon, batch, samples, starts, n, 2})
      .permute({1, 2, 4, 3, 0, 5})
      .reshape({batch, samples, n, starts * horizon, 2})
      .narrow(3, 0, frames - 1);
}

DecoderWeights DecoderImpl::weights() const {
  const auto of = [](const Linear& layer) { return LayerWeights{layer->weight, layer->bias}; };
  return {.message0 = {of(message0_[0]), of(message0_[1])},
          .message1 = {of(message1_[0]), of(message1_[1])},
          .out0 = of(out0_),
          .out1 = of(out1_),
          .out2 = of(out2_)};
}

NriModelImpl::NriModelImpl(NriShape shape)
    : encoder(shape.frames, shape.hidden), decoder(shape.hidden) {
  register_module("encoder", encoder);
  register_module("decoder", decoder);
}

at::Tensor path_nll(const at::Tensor& paths, const at::Tensor& predicted) {
  const at::Tensor truth = paths.narrow(2, 1, paths.size(2) - 1).unsqueeze(1);
  const double weight = 0.5 / kVariance / static_cast<double>(paths.size(1));
  return (predicted - truth).square().sum({2, 3, 4}) * weight;
}

at::Tensor score_kl(const at::Tensor& pairs, int64_t vertices) {
  return (pairs + (-pairs).exp() - 1.0).sum(-1) * (2.0 / static_cast<double>(vertices));
}

}  // namespace aimle::experiments::nri
