// The processes that train one model together, started by `torchrun -m aimle train`. Each has all of
// the data, the model and the optimiser, and takes a share of every batch; what they compute is what
// one process with the whole batch computes, up to the order of sums:
//
//   gradients         summed over the processes (gradient_sum.h), of losses divided by the whole batch
//   noise             numbered by an example's place in the whole batch (Batch::noise_key)
//   batch norm        over the whole batch (batch_norm.h)
//   adaptive states   updated from the counts of all processes (sharing.h)
//
// The first process alone evaluates, prints and writes. Without torchrun there is one process, and
// none of this communicates.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace aimle::experiments {

struct Processes {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t on_this_machine = 1;
  int64_t restarts = 0;  // of all of them by torchrun, after one had ended

  bool several() const { return size > 1; }
  bool is_first() const { return rank == 0; }
};
const Processes& processes();

/// Joins the process group that was registered in PyTorch under this name, which can sum tensors of
/// the CPU and of the device that is trained on.
void join_processes(const std::string& group, int64_t on_this_machine, int64_t restarts);
/// Releases the group, before PyTorch closes it. Afterwards there is one process.
void leave_processes();

/// A process's part of `count` items: contiguous; the sizes of the parts differ by at most one.
struct Share {
  int64_t first = 0;
  int64_t count = 0;
};
Share share_of(int64_t count, const Processes& of = processes());

// Every process must make the same calls in the same order. If another process has ended, they throw
// Stopped if this process received a signal, otherwise Failure.

/// In place, over all processes.
void sum_over_processes(at::Tensor tensor);
/// Starts the same sum. The returned function waits for it (on a GPU, the current stream waits).
[[nodiscard]] std::function<void()> begin_sum(at::Tensor tensor);
/// Copies the first process's values to all processes, in place.
void take_from_first(at::Tensor tensor);
std::string take_from_first(const std::string& text);
/// The signal that asked one of the processes to end; 0 if none was. The same answer for all.
int signal_of_any();

/// For tests: ends the process by SIGKILL at the step that AIMLE_TEST_KILL_AT_STEP=RANK:STEP names,
/// unless the processes were restarted.
void pass_step(int64_t step);

}  // namespace aimle::experiments
