// A training step recorded once as a CUDA graph and then replayed: the many small launches of a
// step reach the GPU as one, and the processor has nothing left to do but count.
//
// What a recording asks of a step: no value is read on the host, every tensor that it changes keeps
// its address, and nothing but the batch's tensors differs from step to step. What the host decides
// (a temperature, a learning rate) is part of the recording: record_again() when it changes. And
// all steps of a recording run on one stream that is not the default one (own_stream.h): libraries
// keep work space for each stream, which two streams must not share.
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

  /// One step: run as it is for the first few times and for batches of another size, then recorded,
  /// then replayed.
  void run(const Batch& batch);

  void record_again();

 private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

}  // namespace aimle::experiments
