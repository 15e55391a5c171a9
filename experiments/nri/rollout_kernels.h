// The steps of the rollout over trees (rollout_steps.h) as one kernel each.
//
// All pointers are to contiguous arrays on the current device, of float32 or int64; `pairs`,
// `d_pairs` and the weights of FirstLayers are aligned to 16 bytes. Sums have a fixed order.
#pragma once

#include <cstdint>

namespace aimle::experiments::nri {

/// Columns before those of the messages in the input of a node: two of its position, a one for the
/// gradient of the bias, and a zero, so that rows stay aligned for the GPU's matrix units.
inline constexpr int64_t kOwn = 4, kOne = 2;

/// N graphs with n nodes each, all R = N n (n-1) links between them, layers of width h.
struct RolloutShape {
  int64_t graphs, vertices, hidden;
  int64_t nodes = graphs * vertices;
  int64_t links = nodes * (vertices - 1);
  int64_t unlinked = graphs * (vertices - 1) * (vertices - 2);
};

/// Whether the program was built with GPU kernels.
bool has_rollout_kernels();

/// links [N, n (n-1)], sender [n (n-1), n] -> place [R], sent [R], ends [R, 2].
void sort_links_on_device(const RolloutShape& shape, const float* links, const float* sender,
                          int64_t* place, int64_t* sent, int64_t* ends, void* stream);

/// The first layers of messages, for pairs without and with a link.
struct FirstLayers {
  const float* weight[2];  // [h, 4]
  const float* bias[2];    // [h]
};

/// now [N n, 2] -> pairs [R, 4], hidden [R, h].
void meet_on_device(const RolloutShape& shape, const int64_t* ends, const float* now,
                    const FirstLayers& layers, float* pairs, float* hidden, void* stream);

/// The biases of the second layers [h], for pairs without and with a link.
struct SecondBiases {
  const float* of_type[2];
};

/// messages [R, h] are relu(messages + bias) afterwards; now [N n, 2] -> seen [N n, kOwn + h].
void see_on_device(const RolloutShape& shape, const int64_t* place, const float* now,
                   const SecondBiases& biases, float* messages, float* seen, void* stream);

/// now [N n, 2], second [N n, h], out2 [2, h], bias [2] -> next [N n, 2].
void move_on_device(const RolloutShape& shape, const float* now, const float* second,
                    const float* out2, const float* bias, float* next, void* stream);

/// What the next step of the rollout adds to the gradient of positions: null in the last step.
struct NextStep {
  const float* d_positions = nullptr;  // [N n, 2]
  const float* d_seen = nullptr;       // [N n, kOwn + h]
  const float* d_pairs = nullptr;      // [R, 4]
};

/// d_given [N n, 2], second [N n, h], out2 [2, h] -> d_positions [N n, 2], d_second [N n, h].
void move_backward_on_device(const RolloutShape& shape, const int64_t* place, const int64_t* sent,
                             const float* d_given, const NextStep& next, const float* second,
                             const float* out2, float* d_positions, float* d_second, void* stream);

/// d_seen [N n, kOwn + h], messages [R, h] -> d_messages [R, h].
void see_backward_on_device(const RolloutShape& shape, const int64_t* ends, const float* d_seen,
                            const float* messages, float* d_messages, void* stream);

/// hidden [R, h] -> d_hidden [R, h] in place, d_pairs [R, 4].
void meet_backward_on_device(const RolloutShape& shape, const float* hidden,
                             const FirstLayers& layers, float* d_hidden, float* d_pairs,
                             void* stream);

/// The first layer of the other type for the links of a type: pairs [steps, R, 4] -> hidden [steps,
/// of type, h].
void other_hidden_on_device(const RolloutShape& shape, int64_t steps, int type, const float* pairs,
                            const FirstLayers& layers, float* hidden, void* stream);

// ---- All steps together (rollout_sums.cu) -------------------------------------------------------

/// pairs [steps, R, 4], d_hidden and d_messages [steps, R, h] -> for every type the gradients of
/// the first layer's weight [h, 4] and bias [h] and of the second layer's bias [h], one after the
/// other. parts: scratch of so many floats.
int64_t sums_of_links_scratch(const RolloutShape& shape, int64_t steps);
void sums_of_links_on_device(const RolloutShape& shape, int64_t steps, const float* pairs,
                             const float* d_hidden, const float* d_messages, float* parts,
                             float* of_unlinked, float* of_linked, void* stream);

/// d_positions [rows, 2], second and d_second [rows, h] -> the gradients of out2's weight [2, h]
/// and bias [2] and of out1's bias [h], one after the other. parts: scratch of so many floats.
int64_t sums_of_nodes_scratch(int64_t rows, int64_t hidden);
void sums_of_nodes_on_device(int64_t rows, int64_t hidden, const float* d_positions,
                             const float* second, const float* d_second, float* parts, float* sums,
                             void* stream);

/// d_seen [steps, N n, kOwn + h], messages [steps, R, h], the other messages of the links of both
/// types [steps, of type, h] -> gain [R], in the order of links.
void gain_of_links_on_device(const RolloutShape& shape, int64_t steps, const int64_t* place,
                             const float* d_seen, const float* messages,
                             const float* other_of_unlinked, const float* other_of_linked,
                             float* gain, void* stream);

}  // namespace aimle::experiments::nri
