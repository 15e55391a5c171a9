// The steps of the decoder's rollout over trees (tree_rollout.h) that are not products of matrices,
// and of its gradient.
//
// R = N n (n-1) links of N graphs with n nodes each are sorted by type, t is a step of the rollout.
// On a GPU, steps in float32 are one kernel each (rollout_kernels.h); tensors of one step are
// contiguous.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "experiments/nri/rollout_kernels.h"
#include "experiments/nri/tree_rollout.h"

namespace aimle::experiments::nri {

/// The links of a batch of trees sorted by type: pairs without a link first, then those with one.
struct SortedLinks {
  at::Tensor place;  // int64 [R]: the position of a link after sorting
  at::Tensor sent;   // int64 [R]: the same of the links listed by sender, receivers ascending
  at::Tensor ends;   // int64 [R, 2]: sender and receiver of the sorted links, as rows of [N n]
  int64_t vertices = 0;

  int64_t all() const { return place.size(0); }
  int64_t unlinked() const { return all() / vertices * (vertices - 2); }
  /// The rows of one type, along a dimension of size R.
  at::Tensor of_type(const at::Tensor& x, int64_t dim, int type) const {
    return type == 0 ? x.narrow(dim, 0, unlinked()) : x.narrow(dim, unlinked(), all() - unlinked());
  }
};

/// links [N, n (n-1)], sender: as of tree_rollout.
SortedLinks sort_links(const at::Tensor& links, const at::Tensor& sender);

/// The weights of message1 by part of the sorted links, [n, h, h]: of n equal parts the last two
/// are linked, so that the products with both weights are one batch. Undefined without kernels.
at::Tensor part_weights(const SortedLinks& links, const LayerWeights (&message1)[2]);

// ---- Forward ------------------------------------------------------------------------------------

/// relu(x weight' + bias)
at::Tensor layer(const at::Tensor& x, const LayerWeights& weights);
void layer_out(at::Tensor out, const at::Tensor& x, const LayerWeights& weights);

/// The positions of the ends of every link, and the first layer of its type: now [N n, 2] -> pairs
/// [R, 4], hidden [R, h].
void meet(const SortedLinks& links, const at::Tensor& now, const LayerWeights (&message0)[2],
          at::Tensor pairs, at::Tensor hidden);

/// The messages relu(hidden message1' + bias) [R, h] by type, and the input of every node: its
/// position, one, zero and the sum of the messages to it, [N n, kOwn + h]. by_part: part_weights.
void send(const SortedLinks& links, const at::Tensor& now, const at::Tensor& hidden,
          const LayerWeights (&message1)[2], const at::Tensor& by_part, at::Tensor messages,
          at::Tensor seen);

/// next [N n, 2] = now + second [N n, h] out2' + bias.
void move(const SortedLinks& links, const at::Tensor& now, const at::Tensor& second,
          const LayerWeights& out2, at::Tensor next);

// ---- Backward, from the last step to the first: a gradient d_x has the size of x ----------------

/// Sets to zero, in place, where the layer's output y was zero.
void through_relu(at::Tensor gradient, const at::Tensor& y);

/// The gradient of step t's positions, into d_positions[t]: the given one, and, before the last
/// step, what step t + 1 adds by its own position, the inputs of its nodes and its pairs. d_given,
/// d_positions: [steps, N n, 2]; d_seen: [steps, N n, kOwn + h]; d_pairs: [R, 4], of step t + 1.
/// And, into d_second[t], its product with out2 through relu.
void move_backward(const SortedLinks& links, int64_t t, const at::Tensor& d_given,
                   const at::Tensor& d_seen, const at::Tensor& d_pairs, const at::Tensor& second,
                   const at::Tensor& out2, at::Tensor d_positions, at::Tensor d_second);

/// d_messages: the gradient of their receiver's sum, through relu; d_hidden: its product with
/// message1.
void send_backward(const SortedLinks& links, const at::Tensor& d_seen, const at::Tensor& messages,
                   const LayerWeights (&message1)[2], const at::Tensor& by_part,
                   at::Tensor d_messages, at::Tensor d_hidden);

/// d_hidden through relu, in place, and its product with message0 into d_pairs.
void meet_backward(const SortedLinks& links, const at::Tensor& hidden,
                   const LayerWeights (&message0)[2], at::Tensor d_hidden, at::Tensor d_pairs);

// ---- Backward, all steps together ---------------------------------------------------------------

/// Gradients of every type, by its rows.
struct LinkSums {
  LayerWeights message0[2];
  at::Tensor message1_bias[2];
};
/// pairs [steps, R, 4], d_hidden and d_messages [steps, R, h]
LinkSums sums_of_links(const SortedLinks& links, const at::Tensor& pairs,
                       const at::Tensor& d_hidden, const at::Tensor& d_messages);

struct NodeSums {
  LayerWeights out2;
  at::Tensor out1_bias;
};
/// d_positions [steps, N n, 2], second and d_second [steps, N n, h]
NodeSums sums_of_nodes(const at::Tensor& d_positions, const at::Tensor& second,
                       const at::Tensor& d_second);

/// left' right over all steps, [steps, R, a] and [steps, R, b] -> [a, b] for the rows of each type.
std::array<at::Tensor, 2> products_of_types(const SortedLinks& links, const at::Tensor& left,
                                            const at::Tensor& right);

/// The other messages of the links of a type, which use the layers of the other type: pairs
/// [steps, R, 4] -> [steps * of type, h].
at::Tensor other_messages(const SortedLinks& links, int type, const at::Tensor& pairs,
                          const LayerWeights (&message0)[2], const LayerWeights (&message1)[2]);

/// The change of the sum of a link's receiver if the link's other message were used: [R] in the
/// order of links. others[type]: other_messages.
at::Tensor gain_of_links(const SortedLinks& links, const at::Tensor& d_seen,
                         const at::Tensor& messages, const at::Tensor (&others)[2]);

}  // namespace aimle::experiments::nri
