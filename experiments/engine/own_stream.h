// A separate GPU stream for each run, so that parallel runs do not wait for each other.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace aimle::experiments {

/// While it exists, the GPU work of this thread goes to a separate stream, after all work already
/// submitted to the thread's current one. On a CPU it does nothing.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace aimle::experiments
