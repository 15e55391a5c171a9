// A training step recorded once as a CUDA graph and then replayed: the many small kernel launches
// of a step become one, with almost no work left for the CPU.
//
// Requirements for recording a step: no value is read on the host, every tensor that it changes
// keeps its address, and only the batch's tensors differ between steps. Values set by the host (a
// temperature, a learning rate) are part of the recording: call record_again() when they change.
// All steps of a recording run on one stream that is not the default one (own_stream.h): libraries
// keep a workspace for each stream, which two streams must not share.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "experiments/engine/experiment.h"

namespace aimle::experiments {

class StepGraph {
 public:
  explicit StepGraph(std::function<void(const Batch&)> step);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Whether this build can record steps on this device.
  static bool possible(at::Device device);

  /// One step: executed directly the first few times and for batches of another size, then
  /// recorded, then replayed.
  void run(const Batch& batch);

  void record_again();

 private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

}  // namespace aimle::experiments
