#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "experiments/engine/step_graph.h"

namespace aimle::experiments {
namespace {

// Libraries allocate and choose their kernels in the first calls, which must not be recorded.
constexpr int64_t kStepsBeforeRecording = 3;

/// Makes `later` wait for what was given to `earlier`.
void wait_for(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

struct StepGraph::Recording {
  std::function<void(const Batch&)> step;
  std::unique_ptr<at::cuda::CUDAGraph> graph = nullptr;
  Batch batch = {};        // the tensors that the graph reads
  int64_t unrecorded = 0;  // steps run as they are, of the batch's size

  bool fits(const Batch& other) const {
    return batch.rows.defined() && batch.rows.sizes() == other.rows.sizes();
  }

  void fill(const Batch& from) {
    batch.rows.copy_(from.rows);
    batch.key.copy_(from.key);
    batch.step = from.step;
  }

  /// Runs `work` on a stream of its own, in the order of the present one.
  template <class Work>
  void aside(Work work) {
    const c10::impl::VirtualGuardImpl devices(c10::DeviceType::CUDA);
    const c10::Device device = batch.rows.device();
    const c10::Stream present = devices.getStream(device);
    const c10::Stream side = devices.getStreamFromGlobalPool(device);
    wait_for(present, side);
    {
      const c10::StreamGuard guard(side);
      work();
    }
    wait_for(side, present);
  }

  void record() {
    auto recorded = std::make_unique<at::cuda::CUDAGraph>();
    aside([&] {
      recorded->capture_begin();
      try {
        step(batch);
      } catch (...) {
        try {
          recorded->capture_end();
        } catch (...) {  // what broke the recording is the better message
        }
        throw;
      }
      recorded->capture_end();
    });
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
    own.aside([&] { own.step(own.batch); });
    return;
  }
  if (own.graph == nullptr) own.record();
  own.graph->replay();
}

void StepGraph::record_again() { recording_->graph.reset(); }

}  // namespace aimle::experiments
