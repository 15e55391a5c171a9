#include "experiments/nri/meeting_kernel.h"

#include <stdexcept>

namespace aimle::experiments::nri {

bool has_meeting_kernel() { return false; }

void meet_on_device(const MeetingSizes&, const MeetingInputs&, float*, void*) {
  throw std::logic_error("[aimle::nri] built without GPU kernels");
}

void meet_backward_on_device(const MeetingSizes&, const float*, const float*,
                             const MeetingGradients&, void*) {
  throw std::logic_error("[aimle::nri] built without GPU kernels");
}

}  // namespace aimle::experiments::nri
