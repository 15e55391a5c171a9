// Neural relational inference with a latent tree (Kipf et al., ICML 2018; Paulus et al., NeurIPS
// 2020): an encoder reads the paths of n points and scores the possible links between them, a
// decoder moves the points along the chosen links.
//
//   block      linear, ELU, linear, ELU, batch norm over all rows
//   encoder    node = block(path)                                            [n, hidden]
//              link = block(node of sender, node of receiver)                [n (n-1), hidden]
//              node = block(sum of incoming links / n)
//              score = linear(block(node of sender, node of receiver, link))
//   decoder    message of type t = relu(linear_t(relu(linear_t(x_sender, x_receiver)))), t = 0, 1
//              agg = sum over senders of (1 - z) message_0 + z message_1
//              x <- x + linear(relu(linear(relu(linear(x, agg)))))
//
// Links are listed receiver by receiver, senders ascending (SpanningTree::arc); trees by their
// n (n-1) / 2 pairs (SpanningTree::edge). A linear map of a link's two nodes is computed as one map
// of each node and a sum, which is n-1 times less work.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "experiments/engine/batch_norm.h"
#include "experiments/nri/tree_rollout.h"

namespace aimle::experiments::nri {

/// The links and pairs between n points.
class Wiring {
 public:
  Wiring() = default;
  Wiring(int64_t vertices, at::Device device, at::ScalarType type = at::kFloat);

  /// Links [*, n (n-1)] -> pairs [*, n (n-1) / 2]: the mean of both directions.
  at::Tensor symmetric(const at::Tensor& links) const;
  /// Pairs -> links: the same for both directions, so that the gradient of a pair is their sum.
  at::Tensor both_ways(const at::Tensor& pairs) const;
  /// Like both_ways, but a pair gets only the gradient of its link with sender < receiver.
  at::Tensor one_way(const at::Tensor& pairs) const;
  /// The input of every link from nodes [N, n, h]: the sum of `from_sender` of its sender and
  /// `from_receiver` of its receiver, [N, n, n-1, h].
  at::Tensor meet(const at::Tensor& from_sender, const at::Tensor& from_receiver) const;

  /// The sender of every link as a one in its row, [n (n-1), n].
  const at::Tensor& sender() const { return sender_; }

  int64_t vertices() const { return vertices_; }
  int64_t pairs() const { return vertices_ * (vertices_ - 1) / 2; }

 private:
  int64_t vertices_ = 0;
  at::Tensor sender_;        // [n (n-1), n], a one in every row
  at::Tensor forth_, back_;  // int64 [pairs]: the links of a pair
  at::Tensor pair_of_;       // int64 [n (n-1)]
  at::Tensor is_forth_;      // float [n (n-1)]
};

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t inputs, int64_t hidden);
  /// [*, inputs] -> [*, hidden]
  at::Tensor forward(const at::Tensor& x);
  /// For links, whose inputs are those of the sender, the receiver and, if defined, the link: nodes
  /// [N, n, h] and links [N, n, n-1, h] -> [N, n, n-1, hidden]
  at::Tensor of_links(const at::Tensor& nodes, const at::Tensor& links, const Wiring& wiring);

 private:
  at::Tensor first_of_links(const at::Tensor& nodes, const at::Tensor& links,
                            const Wiring& wiring) const;
  /// Everything after the first ELU.
  at::Tensor after_first(const at::Tensor& x);

  torch::nn::Linear first_, second_;
  BatchNorm1d norm_;
};
TORCH_MODULE(Block);

class EncoderImpl : public torch::nn::Module {
 public:
  /// Weights: Xavier normal, biases 0.1.
  EncoderImpl(int64_t frames, int64_t hidden);
  /// Paths [B, n, frames, 2] -> scores of links [B, n (n-1)]
  at::Tensor forward(const at::Tensor& paths, const Wiring& wiring);

 private:
  Block path_, first_link_, node_, second_link_;
  torch::nn::Linear score_;
};
TORCH_MODULE(Encoder);

/// kTrees: both directions of n-1 pairs are 1, the others 0.
enum class Links { kAny, kTrees };

class DecoderImpl : public torch::nn::Module {
 public:
  /// Weights and biases: uniform in 1 / sqrt(inputs), as PyTorch's.
  explicit DecoderImpl(int64_t hidden);
  /// One step: positions [N, n, 2] and links [N, n (n-1)] in [0, 1] -> positions [N, n, 2]
  at::Tensor step(const at::Tensor& positions, const at::Tensor& links, const Wiring& wiring);
  /// Predictions of frames 1 ... T-1 from paths [B, n, T, 2] and links [B, S, n (n-1)]:
  /// [B, S, n, T-1, 2]. `horizon` steps are predicted from each of the true frames 0, horizon, ...
  /// Links that are trees use a faster implementation (tree_rollout.h).
  at::Tensor forward(const at::Tensor& paths, const at::Tensor& links, int64_t horizon,
                     const Wiring& wiring, Links kind = Links::kAny);

 private:
  DecoderWeights weights() const;

  torch::nn::Linear message0_[2], message1_[2];
  torch::nn::Linear out0_, out1_, out2_;
};
TORCH_MODULE(Decoder);

struct NriShape {
  int64_t vertices = 10;
  int64_t frames = 10;
  int64_t hidden = 256;
};

class NriModelImpl : public torch::nn::Module {
 public:
  explicit NriModelImpl(NriShape shape);
  Encoder encoder;
  Decoder decoder;
};
TORCH_MODULE(NriModel);

/// Variance of the positions under the model.
inline constexpr double kVariance = 5e-5;

/// sum (predicted - true)^2 / (2 kVariance) / n for every sample: paths [B, n, T, 2], predicted
/// [B, S, n, T-1, 2] -> [B, S]. A Gaussian's, without its constant.
at::Tensor path_nll(const at::Tensor& paths, const at::Tensor& predicted);

/// KL of Gumbel(l, 1) from Gumbel(0, 1), l + exp(-l) - 1, summed over links, by n: pairs [B, n
/// (n-1) / 2]
/// -> [B]. Every pair counts twice, as two links.
at::Tensor score_kl(const at::Tensor& pairs, int64_t vertices);

}  // namespace aimle::experiments::nri
