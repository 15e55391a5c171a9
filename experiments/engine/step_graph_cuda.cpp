#include <ATen/Functions.h>
#include <ATen/cuda/CUDAGraph.h>

#include <mutex>

#include "experiments/engine/step_graph.h"

namespace aimle::experiments {
namespace {

// Libraries allocate and choose their kernels in the first calls, which must not be recorded.
constexpr int64_t kStepsBeforeRecording = 3;

/// Only one of the parallel runs records at a time.
std::mutex recording_now;

}  // namespace

struct StepGraph::Recording {
  std::function<void(const Batch&)> step;
  std::unique_ptr<at::cuda::CUDAGraph> graph = nullptr;
  at::Tensor inputs = {};  // rows and key of a batch: those that the graph reads
  Batch batch = {};        // views of them
  int64_t unrecorded = 0;  // steps executed directly, of the batch's size

  void take_sizes_of(const Batch& first) {
    inputs = at::cat({first.rows, first.key});
    const int64_t rows = first.rows.size(0);
    batch = {.rows = inputs.narrow(0, 0, rows), .key = inputs.narrow(0, rows, first.key.size(0))};
  }

  bool fits(const Batch& other) const { return batch.rows.sizes() == other.rows.sizes(); }

  void fill(const Batch& from) {
    at::cat_out(inputs, {from.rows, from.key});
    batch.step = from.step;
  }

  void record() {
    const std::scoped_lock lock(recording_now);
    auto recorded = std::make_unique<at::cuda::CUDAGraph>();
    // Other threads continue their own runs in the meantime, including allocations.
    recorded->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      step(batch);
    } catch (...) {
      try {
        recorded->capture_end();
      } catch (...) {  // the error that broke the recording is the better message
      }
      throw;
    }
    recorded->capture_end();
    graph = std::move(recorded);
  }
};

StepGraph::StepGraph(std::function<void(const Batch&)> step)
    : recording_(new Recording{.step = std::move(step)}) {}
StepGraph::~StepGraph() = default;

bool StepGraph::possible(at::Device device) { return device.is_cuda(); }

void StepGraph::run(const Batch& batch) {
  Recording& own = *recording_;
  if (!own.inputs.defined()) own.take_sizes_of(batch);
  if (!own.fits(batch)) {
    own.step(batch);
    return;
  }
  own.fill(batch);
  if (own.unrecorded < kStepsBeforeRecording) {
    ++own.unrecorded;
    own.step(own.batch);
    return;
  }
  if (own.graph == nullptr) own.record();
  own.graph->replay();
}

void StepGraph::record_again() { recording_->graph.reset(); }

}  // namespace aimle::experiments
