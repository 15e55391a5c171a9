// Learning to explain (Chen et al., ICML 2018; the networks of Niepert et al., NeurIPS 2021, and of
// Minervini et al., AAAI 2023): a selector scores the words of a review, k of them are chosen, and
// a predictor predicts the rating from these alone.
//
//   selector   words -> frozen vectors -> conv 3, relu = f
//              global = relu(linear(max of f over the words))
//              local = relu(conv 3(relu(conv 3(f))))
//              score = conv 1(relu(conv 1(dropout(global, local))))
//   predictor  sigmoid(linear(relu(linear(mean of the chosen words' vectors))))
//
// With a mask, positions after the end of the review are zero after every layer, like the zero
// padding of a convolution, so the scores of a review do not depend on its padding.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <optional>

namespace aimle::experiments::l2x {

/// Words [B, L] int64 as vectors [B, L, dims]; rows of the table by number.
at::Tensor look_up(const at::Tensor& table, const at::Tensor& words);

/// Weights of all layers: Xavier uniform with gain sqrt(2), biases 0.
class SelectorImpl : public torch::nn::Module {
 public:
  explicit SelectorImpl(int64_t dims, int64_t hidden = 100);
  /// Vectors [B, L, dims], mask bool [B, L] or none -> scores [B, L]. The key is for dropout;
  /// without one nothing is dropped.
  at::Tensor forward(const at::Tensor& vectors, const std::optional<at::Tensor>& mask,
                     const std::optional<at::Tensor>& key);

 private:
  /// The same by the functions of selector_layers.h, with convolutions as products of matrices.
  at::Tensor scores_on_device(const at::Tensor& vectors, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& key);

  torch::nn::Conv1d words_, local0_, local1_, join_, score_;
  torch::nn::Linear global_;
};
TORCH_MODULE(Selector);

class PredictorImpl : public torch::nn::Module {
 public:
  explicit PredictorImpl(int64_t dims, int64_t hidden = 250);
  /// Vectors [B, L, dims], chosen [B, S, L], count (a number or [B]) -> ratings in (0, 1), [B, S]
  at::Tensor forward(const at::Tensor& vectors, const at::Tensor& chosen, const at::Tensor& count);

 private:
  torch::nn::Linear hidden_, out_;
};
TORCH_MODULE(Predictor);

class L2xModelImpl : public torch::nn::Module {
 public:
  explicit L2xModelImpl(int64_t dims);
  Selector selector;
  Predictor predictor;
};
TORCH_MODULE(L2xModel);

}  // namespace aimle::experiments::l2x
