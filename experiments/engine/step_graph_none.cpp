// Used if torch has no CUDA or there is no CUDA compiler: every step is executed directly.
#include "experiments/engine/step_graph.h"

namespace aimle::experiments {

struct StepGraph::Recording {
  std::function<void(const Batch&)> step;
};

StepGraph::StepGraph(std::function<void(const Batch&)> step)
    : recording_(new Recording{std::move(step)}) {}
StepGraph::~StepGraph() = default;

bool StepGraph::possible(at::Device) { return false; }

void StepGraph::run(const Batch& batch) { recording_->step(batch); }

void StepGraph::record_again() {}

}  // namespace aimle::experiments
