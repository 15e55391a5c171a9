// The layer of links in the encoder (meeting.h) without its products, in one kernel each for forward
// and backward.
#pragma once

#include <cstdint>

namespace aimle::experiments::nri {

/// Larger graphs do not fit into a block.
inline constexpr int64_t kMostMeetingVertices = 16;

struct MeetingSizes {
  int64_t graphs, vertices, columns;  // nodes = graphs * vertices
};

/// float32, contiguous, on the current device, without overlap. A null pointer: links have no input
/// of their own.
struct MeetingInputs {
  const float* of_nodes;  // [2, nodes, columns]: as senders, as receivers
  const float* of_links;  // [nodes, vertices - 1, columns], or null
  const float* bias;      // [columns]
};

struct MeetingGradients {
  float* of_nodes;
  float* of_links;  // null if that of the inputs is
};

/// Whether the program was built with GPU kernels.
bool has_meeting_kernel();

/// Starts the kernel on a stream: y [nodes, vertices - 1, columns] is ELU of the sum of a link's
/// inputs.
void meet_on_device(const MeetingSizes& sizes, const MeetingInputs& inputs, float* y, void* stream);

/// The gradients of the inputs from that of y.
void meet_backward_on_device(const MeetingSizes& sizes, const float* dy, const float* y,
                             const MeetingGradients& gradients, void* stream);

}  // namespace aimle::experiments::nri
