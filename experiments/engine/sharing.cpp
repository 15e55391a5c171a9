#include "experiments/engine/sharing.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "aimle/torch/estimator.h"
#include "experiments/engine/estimator_options.h"
#include "experiments/engine/processes.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"

namespace aimle::experiments {
namespace {

constexpr int64_t kGpuStepsBetweenLooks = 8;

/// How many examples the smallest step of a pass has.
int64_t smallest_batch(const Settings& settings, int64_t examples) {
  const auto batch = settings.get<int64_t>("batch");
  return examples % batch == 0 ? batch : examples % batch;
}

}  // namespace

void check_sharing(const Settings& settings, const Training& training) {
  const int64_t size = processes().size, smallest = smallest_batch(settings, training.examples);
  if (size == 1) return;
  if (smallest < size) {
    throw Misuse("expected batches of at least " + std::to_string(size) +
                 " examples, one for each process, but the smallest of a pass has " +
                 std::to_string(smallest) +
                 ": choose a --batch that divides the number of training examples (" +
                 std::to_string(training.examples) + "), or fewer processes");
  }
  if (needs_whole_batch(settings)) {
    throw Misuse("--scope batch takes norms over the whole batch, which " + std::to_string(size) +
                 " processes share: expected --scope example or sample, or one process");
  }
}

Sharing::Sharing(std::shared_ptr<Estimator> estimator) : estimator_(std::move(estimator)) {
  if (processes().several() && estimator_) estimator_->defer_updates();
}

Batch Sharing::own_part(Batch batch) {
  if (!processes().several()) return batch;
  const int64_t all = batch.rows.size(0);
  const Share share = share_of(all);
  batch.rows = batch.rows.narrow(0, share.first, share.count);
  batch.first = share.first;
  batch.share = static_cast<double>(share.count) / static_cast<double>(all);
  return batch;
}

at::Tensor Sharing::sum(const at::Tensor& own) {
  if (!processes().several()) return own;
  const at::Tensor stopped = at::full({1}, interrupt_signal() != 0 ? 1.0 : 0.0, own.options());
  const at::Tensor counts = estimator_ ? estimator_->waiting_counts() : at::Tensor();
  std::vector<at::Tensor> parts = {own, stopped};
  if (counts.defined()) parts.push_back(counts);
  const at::Tensor message = at::cat(parts);
  sum_over_processes(message);
  asked_to_stop_ = message.narrow(0, own.size(0), 1);
  if (counts.defined()) {
    estimator_->apply_counts(message.narrow(0, own.size(0) + 1, counts.size(0)));
  }
  return message.narrow(0, 0, own.size(0));
}

int Sharing::signal_at_step(int64_t step) const {
  if (!processes().several()) return interrupt_signal();
  // Reading it waits for a GPU.
  if (!asked_to_stop_.is_cpu() && step % kGpuStepsBetweenLooks != 0) return 0;
  if (asked_to_stop_.item<double>() == 0.0) return 0;
  return interrupt_signal() != 0 ? interrupt_signal() : SIGTERM;
}

}  // namespace aimle::experiments
