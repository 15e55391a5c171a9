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
  Batch batch = {};        // the tensors that the graph reads
  int64_t unrecorded = 0;  // steps executed directly, of the batch's size

  bool fits(const Batch& other) const {
    return batch.rows.defined() && batch.rows.sizes() == other.rows.sizes();
  }

  void fill(const Batch& from) {
    batch.rows.copy_(from.rows);
    batch.key.copy_(from.key);
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
  if (!own.batch.rows.defined()) {
    own.batch = {.rows = batch.rows.clone(), .key = batch.key.clone(), .step = batch.step};
  }
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
