// The decoder's predictions for links that are trees (zeros and ones): all steps as one function
// with its own gradient.
//
// With z in {0, 1} a link uses one of its two messages. The other is needed only for the gradient
// of z, d/dz_e = <d/d agg_receiver, m1_e - m0_e>; it affects neither weights nor positions. Links
// are therefore sorted once, those without a link before those with one: the rows of each type are
// then a slice, and every step computes one message per link instead of both weighted by 1 - z and
// z. What does not depend on the previous step (the other messages, the gradients of weights and of
// z) is computed in the backward pass, for all steps of the rollout at once: on a GPU such a model
// is limited by the number of kernels.
//
// Sums over senders use a list of rows, not atomics, and are therefore reproducible.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace aimle::experiments::nri {

struct LayerWeights {
  at::Tensor weight, bias;  // [outputs, inputs], [outputs]
};

/// The decoder's parameters; message0 and message1 are for pairs without and with a link.
struct DecoderWeights {
  LayerWeights message0[2];  // 4 -> h
  LayerWeights message1[2];  // h -> h
  LayerWeights out0;         // 2 + h -> h
  LayerWeights out1;         // h -> h
  LayerWeights out2;         // h -> 2
};

/// Positions start [N, n, 2] (no gradient) after 1, ..., steps steps, [steps, N, n, 2]. links
/// [N, n (n-1)]: both directions of n-1 pairs are 1, the others 0. sender: float [n (n-1), n], the
/// sender of every link as a one in its row.
at::Tensor tree_rollout(const at::Tensor& start, const at::Tensor& links, int64_t steps,
                        const DecoderWeights& weights, const at::Tensor& sender);

}  // namespace aimle::experiments::nri
