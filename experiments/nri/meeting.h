// The first layer of a block of the encoder for all links (model.h), with ELU, and its gradient: the
// linear map of a link's two nodes, and of the link itself, is computed as one map of each and a sum.
// On a GPU: few products, and a kernel for the rest (meeting_kernel.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace aimle::experiments::nri {

/// The parameters of the layer: the inputs of weight [hidden, 2 or 3 * inputs] are those of the
/// sender, the receiver and, if there are three, the link.
struct MeetingLayer {
  at::Tensor weight, bias;
};

/// Whether meeting_on_device takes these tensors.
bool suits_meeting(const at::Tensor& nodes, const at::Tensor& links, const MeetingLayer& layer);

/// Nodes [N, n, inputs] and links [N, n, n-1, inputs], undefined for two inputs -> [N, n, n-1, hidden]
at::Tensor meeting_on_device(const at::Tensor& nodes, const at::Tensor& links,
                             const MeetingLayer& layer);

}  // namespace aimle::experiments::nri
