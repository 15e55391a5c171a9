#include "experiments/l2x/model.h"

#include <torch/nn/init.h>

#include <cmath>

#include "experiments/engine/dense.h"
#include "experiments/engine/randomness.h"
#include "experiments/l2x/selector_layers.h"

namespace aimle::experiments::l2x {
namespace {

using torch::nn::Conv1d;
using torch::nn::Conv1dOptions;

constexpr double kDropout = 0.2;

Conv1d convolution(int64_t in, int64_t out, int64_t width) {
  return Conv1d(Conv1dOptions(in, out, width).padding(width / 2));
}

template <class Layer>
void init(Layer& layer) {
  torch::nn::init::xavier_uniform_(layer->weight, std::sqrt(2.0));
  torch::nn::init::zeros_(layer->bias);
}

/// A convolution's weight as that of a product with rows of see_neighbours (selector_layers.h).
at::Tensor matrix_of(const Conv1d& layer) { return layer->weight.transpose(1, 2).flatten(1); }

/// relu(convolution) of those rows.
at::Tensor convolved(const Conv1d& layer, const at::Tensor& seen) {
  return affine_relu(seen, matrix_of(layer), layer->bias);
}

}  // namespace

at::Tensor look_up(const at::Tensor& table, const at::Tensor& words) {
  return table.index_select(0, words.flatten()).view({words.size(0), words.size(1), -1});
}

SelectorImpl::SelectorImpl(int64_t dims, int64_t hidden)
    : words_(convolution(dims, hidden, 3)),
      local0_(convolution(hidden, hidden, 3)),
      local1_(convolution(hidden, hidden, 3)),
      join_(convolution(2 * hidden, hidden, 1)),
      score_(convolution(hidden, 1, 1)),
      global_(hidden, hidden) {
  const auto add = [&](const char* name, auto& layer) {
    register_module(name, layer);
    init(layer);
  };
  add("words", words_);
  add("local0", local0_);
  add("local1", local1_);
  add("join", join_);
  add("score", score_);
  add("global", global_);
}

at::Tensor SelectorImpl::forward(const at::Tensor& vectors, const std::optional<at::Tensor>& mask,
                                 const std::optional<at::Tensor>& key) {
  if (suits_selector_kernels(vectors, words_->weight.size(0))) {
    return scores_on_device(vectors, mask, key);
  }
  const auto within = [&](const at::Tensor& x) { return mask ? x * mask->unsqueeze(1) : x; };
  const at::Tensor f = within(words_(vectors.transpose(1, 2)).relu());  // [B, hidden, L]
  const at::Tensor global = global_(f.amax(-1)).relu().unsqueeze(-1).expand_as(f);
  const at::Tensor local = local1_(within(local0_(f).relu())).relu();
  at::Tensor both = at::cat({global, local}, 1);
  if (key) both = keyed_dropout(both, kDropout, *key);
  return score_(join_(both).relu()).squeeze(1);
}

at::Tensor SelectorImpl::scores_on_device(const at::Tensor& vectors,
                                          const std::optional<at::Tensor>& mask,
                                          const std::optional<at::Tensor>& key) {
  const int64_t reviews = vectors.size(0), words = vectors.size(1);
  const auto by_word = [&](const at::Tensor& rows) { return rows.view({reviews, words, -1}); };
  const at::Tensor f = by_word(convolved(words_, see_neighbours(vectors, std::nullopt)));
  const auto [neighbours, highest] = see_words(f, mask);
  const at::Tensor global = dense_relu(global_, highest);
  const at::Tensor between = by_word(convolved(local0_, neighbours));
  const at::Tensor local = by_word(convolved(local1_, see_neighbours(between, mask)));
  const at::Tensor joined = convolved(join_, join(global, local, kDropout, key));
  return affine(joined, matrix_of(score_), score_->bias).view({reviews, words});
}

PredictorImpl::PredictorImpl(int64_t dims, int64_t hidden)
    : hidden_(dims, hidden), out_(hidden, 1) {
  register_module("hidden", hidden_);
  register_module("out", out_);
  init(hidden_);
  init(out_);
}

at::Tensor PredictorImpl::forward(const at::Tensor& vectors, const at::Tensor& chosen,
                                  const at::Tensor& count) {
  const at::Tensor mean = at::bmm(chosen, vectors) / count.view({-1, 1, 1});
  const at::Tensor hidden = dense_relu(hidden_, mean.flatten(0, 1));
  return dense(out_, hidden).view({chosen.size(0), chosen.size(1)}).sigmoid();
}

L2xModelImpl::L2xModelImpl(int64_t dims) : selector(dims), predictor(dims) {
  register_module("selector", selector);
  register_module("predictor", predictor);
}

}  // namespace aimle::experiments::l2x
