// Device algorithms on the host: a group of threads (cuda/group.h) as coroutines that take turns.
//
// Between two syncs every thread runs alone to the next sync, in an order that changes from phase
// to phase, so an algorithm that forgets one gives different answers. Threads that disagree about
// how many syncs there are, as no GPU forgives, are an error.
//
//   run_in_lockstep(32, seed, [&](Lockstep& group) { ... });
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

namespace aimle::cuda {

class LockstepRun;

/// One thread's view of the group.
class Lockstep {
 public:
  Lockstep(LockstepRun& run, int rank) : run_(run), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const;
  void sync();
  bool any(bool mine) { return max(static_cast<uint32_t>(mine)) != 0; }
  uint32_t max(uint32_t mine) { return static_cast<uint32_t>(max(static_cast<uint64_t>(mine))); }
  uint64_t max(uint64_t mine);
  template <class Value, class Combine>
  Value reduce(Value mine, Combine combine);

 private:
  LockstepRun& run_;
  int rank_;
};

class LockstepRun {
 public:
  LockstepRun(int threads, uint64_t seed, std::function<void(Lockstep&)> body)
      : body_(std::move(body)), random_(seed), slots_(static_cast<size_t>(threads)) {
    for (int rank = 0; rank < threads; ++rank) {
      auto& fiber = *fibers_.emplace_back(std::make_unique<Fiber>(*this, rank));
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = &scheduler_;
      const auto address = reinterpret_cast<uintptr_t>(&fiber);
      makecontext(&fiber.context, reinterpret_cast<void (*)()>(&enter), 2,
                  static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
    }
  }

  void run() {
    std::vector<Fiber*> order;
    for (const auto& fiber : fibers_) order.push_back(fiber.get());
    while (true) {
      std::shuffle(order.begin(), order.end(), random_);
      size_t done = 0;
      for (Fiber* fiber : order) {
        current_ = fiber;
        swapcontext(&scheduler_, &fiber->context);
        if (fiber->error) std::rethrow_exception(fiber->error);
        done += fiber->done;
      }
      if (done == fibers_.size()) return;
      if (done != 0) throw std::logic_error("threads of a group disagree about a sync");
    }
  }

  int threads() const { return static_cast<int>(fibers_.size()); }
  void yield() { swapcontext(&current_->context, &scheduler_); }
  std::vector<uint64_t>& slots() { return slots_; }

 private:
  struct Fiber {
    Fiber(LockstepRun& run, int rank) : run(run), rank(rank), stack(64 * 1024) {}
    LockstepRun& run;
    int rank;
    std::vector<char> stack;
    ucontext_t context{};
    bool done = false;
    std::exception_ptr error;
  };

  static void enter(unsigned low, unsigned high) {
    auto* fiber = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(high) << 32 | low);
    try {
      Lockstep group(fiber->run, fiber->rank);
      fiber->run.body_(group);
    } catch (...) {
      fiber->error = std::current_exception();
    }
    fiber->done = true;
  }

  std::function<void(Lockstep&)> body_;
  std::mt19937_64 random_;
  std::vector<uint64_t> slots_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  ucontext_t scheduler_{};
  Fiber* current_ = nullptr;
};

inline int Lockstep::size() const { return run_.threads(); }
inline void Lockstep::sync() { run_.yield(); }
inline uint64_t Lockstep::max(uint64_t mine) {
  run_.slots()[static_cast<size_t>(rank_)] = mine;
  run_.yield();
  const uint64_t largest = *std::max_element(run_.slots().begin(), run_.slots().end());
  run_.yield();
  return largest;
}

template <class Value, class Combine>
Value Lockstep::reduce(Value mine, Combine combine) {
  static_assert(sizeof(Value) == sizeof(uint64_t));
  std::memcpy(&run_.slots()[static_cast<size_t>(rank_)], &mine, sizeof mine);
  run_.yield();
  Value result{};
  for (int other = 0; other < size(); ++other) {
    Value value;
    std::memcpy(&value, &run_.slots()[static_cast<size_t>(other)], sizeof value);
    result = other == 0 ? value : combine(result, value);
  }
  run_.yield();
  return result;
}

inline void run_in_lockstep(int threads, uint64_t seed, std::function<void(Lockstep&)> body) {
  LockstepRun(threads, seed, std::move(body)).run();
}

}  // namespace aimle::cuda
