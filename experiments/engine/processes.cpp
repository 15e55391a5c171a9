#include "experiments/engine/processes.h"

#include <ATen/Functions.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <vector>

#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"

namespace aimle::experiments {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

Processes joined;
c10::intrusive_ptr<c10d::ProcessGroup> group;

/// Runs a call that needs the other processes.
template <class Call>
auto together(Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    if (const int signal = interrupt_signal()) throw Stopped(signal, "stopped");
    const std::string reason = error.what();  // a sentence, then advice
    throw Failure("process " + std::to_string(joined.rank) +
                  ": another process of the training has ended, or cannot be reached: " +
                  reason.substr(0, std::min(reason.find('\n'), reason.find(". "))));
  }
}

Work reduce(at::Tensor& tensor, c10d::ReduceOp::RedOpType by) {
  std::vector<at::Tensor> tensors = {tensor};
  return group->allreduce(tensors, {.reduceOp = by});
}

}  // namespace

const Processes& processes() { return joined; }

void join_processes(const std::string& name, int64_t on_this_machine, int64_t restarts) {
  group = c10d::resolve_process_group(name);
  joined = {.rank = group->getRank(),
            .size = group->getSize(),
            .on_this_machine = std::max<int64_t>(1, on_this_machine),
            .restarts = restarts};
  if (!joined.several()) return;
  // On a machine that lost no process torchrun counts no restart.
  at::Tensor most = at::full({1}, restarts, at::kLong);
  together([&] { reduce(most, c10d::ReduceOp::MAX)->wait(); });
  joined.restarts = most.item<int64_t>();
}

void leave_processes() {
  group.reset();
  joined = {};
}

Share share_of(int64_t count, const Processes& of) {
  const int64_t each = count / of.size, more = count % of.size;
  return {.first = of.rank * each + std::min(of.rank, more), .count = each + (of.rank < more)};
}

std::function<void()> begin_sum(at::Tensor tensor) {
  if (!joined.several()) return [] {};
  return together([&]() -> std::function<void()> {
    return [work = reduce(tensor, c10d::ReduceOp::SUM)] { together([&] { work->wait(); }); };
  });
}

void sum_over_processes(at::Tensor tensor) { begin_sum(std::move(tensor))(); }

void take_from_first(at::Tensor tensor) {
  if (!joined.several()) return;
  together([&] {
    at::Tensor whole = tensor.detach().contiguous();
    std::vector<at::Tensor> tensors = {whole};
    group->broadcast(tensors, {.rootRank = 0})->wait();
    if (!whole.is_same(tensor) && !whole.is_alias_of(tensor)) tensor.detach().copy_(whole);
  });
}

std::string take_from_first(const std::string& text) {
  if (!joined.several()) return text;
  at::Tensor size = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  take_from_first(size);
  at::Tensor bytes = at::zeros({size.item<int64_t>()}, at::kByte);
  if (joined.is_first()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  if (bytes.numel() > 0) take_from_first(bytes);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

int signal_of_any() {
  if (!joined.several()) return interrupt_signal();
  at::Tensor seen = at::full({1}, interrupt_signal(), at::kInt);
  together([&] { reduce(seen, c10d::ReduceOp::MAX)->wait(); });
  return seen.item<int>();
}

void pass_step(int64_t step) {
  static const char* const kChosen = std::getenv("AIMLE_TEST_KILL_AT_STEP");
  if (kChosen == nullptr || joined.restarts > 0) return;
  const std::string here = std::to_string(joined.rank) + ":" + std::to_string(step);
  if (here == kChosen) ::kill(::getpid(), SIGKILL);
}

}  // namespace aimle::experiments
