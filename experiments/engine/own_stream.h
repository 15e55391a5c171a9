// A run's own queue of work on a GPU: runs side by side do not wait for each other there.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace aimle::experiments {

/// While it lives, what this thread gives to the GPU goes to a stream of its own, after all that
/// was given to the thread's present one. On a CPU it does nothing.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace aimle::experiments
