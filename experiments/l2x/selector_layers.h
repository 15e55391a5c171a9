// The layers of the selector (model.h) as differentiable functions of GPU tensors: the kernels of
// selector_kernel.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace aimle::experiments::l2x {

/// Whether these functions take x [B, L, n] with that many hidden columns.
bool suits_selector_kernels(const at::Tensor& x, int64_t hidden);

/// Every word of x [B, L, n] between the one before and the one after it: [B L, 3 n]. Zeros beyond
/// both ends and, with a mask bool [B, L], for words outside it.
at::Tensor see_neighbours(const at::Tensor& x, const std::optional<at::Tensor>& mask);

/// The same, and the maxima over the words [B, n].
struct SeenWords {
  at::Tensor neighbours, highest;
};
SeenWords see_words(const at::Tensor& x, const std::optional<at::Tensor>& mask);

/// keyed_dropout (randomness.h) of `global` [B, h] next to `local` [B, L, h]: [B L, 2 h]. Without a
/// key nothing is dropped.
at::Tensor join(const at::Tensor& global, const at::Tensor& local, double share,
                const std::optional<at::Tensor>& key);

}  // namespace aimle::experiments::l2x
