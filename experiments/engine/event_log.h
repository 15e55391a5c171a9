// The events that a run with --tensorboard writes: the metrics of each epoch, as `epoch/…`, and the
// values of kStepsPerEpoch steps of each epoch, as `step/…`. Both are at the number of training
// steps done.
//
// The steps are chosen by their number, so a run that was killed and resumed has the events of an
// uninterrupted one, each once: those after its checkpoint are removed and written again.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/engine/live_progress.h"
#include "experiments/engine/run_folder.h"
#include "experiments/process/event_file.h"

namespace aimle::experiments {

class EventLog {
 public:
  static constexpr int64_t kStepsPerEpoch = 50;

  /// Continues the file of a run at this position with the metrics of its epochs so far. Epochs that
  /// the file does not have are added to it.
  EventLog(const RunFolder& folder, const RunPosition& position, const std::vector<Json>& metrics);

  /// Whether the values of a step are written after it.
  bool is_due(int64_t steps_done) const;
  void add_step(int64_t steps_done, const LiveProgress::Values& values);
  /// A line of metrics.jsonl.
  void add_epoch(const Json& line);
  /// To be called before a checkpoint of this position is written.
  void flush() { file_.flush(); }

 private:
  int64_t steps_;  // of an epoch
  EventFile file_;
};

}  // namespace aimle::experiments
