// Device threads on the host: fibers that take turns.
//
// Between two meetings a thread runs alone, and the order of the threads changes from turn to turn,
// so code that forgets a sync gives different answers. Threads that wait for one another for ever
// are an error.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace aimle::on_host {

/// Threads that wait for one another.
struct Meeting {
  unsigned members = 0;
  unsigned arrived = 0;
  uint64_t held = 0;  // how many meetings there were

  void hold_if_complete() {
    if (arrived == 0 || arrived != members) return;
    arrived = 0;
    ++held;
  }
};

class Fibers {
 public:
  Fibers(unsigned threads, uint64_t seed) : random_(seed) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      fibers_.push_back(std::make_unique<Fiber>(thread));
    }
  }
  Fibers(const Fibers&) = delete;
  ~Fibers() {
    for (const auto& fiber : fibers_) {  // the stack of a fiber that never ended is not used again
      if (fiber->done) unused_stacks().push_back(std::move(fiber->stack));
    }
  }

  /// A meeting of so many threads, which lives as long as the fibers.
  Meeting& add_meeting(unsigned members) {
    return meetings_.emplace_back(Meeting{.members = members});
  }

  /// Runs `body` in every thread to its end. Rethrows what it throws.
  void run(std::function<void()> body) {
    body_ = std::move(body);
    std::vector<Fiber*> order;
    for (const auto& fiber : fibers_) {
      prepare(*fiber);
      order.push_back(fiber.get());
    }
    while (!order.empty()) {
      std::shuffle(order.begin(), order.end(), random_);
      bool moved = false;
      for (Fiber* fiber : order) {
        if (fiber->waits != nullptr && fiber->waits->held == fiber->awaited) continue;
        moved = true;
        current_ = fiber;
        swapcontext(&scheduler_, &fiber->context);
        if (fiber->error) std::rethrow_exception(fiber->error);
      }
      if (!moved) throw std::logic_error("threads wait for one another for ever");
      std::erase_if(order, [](const Fiber* fiber) { return fiber->done; });
      for (Meeting& meeting : meetings_) meeting.hold_if_complete();
    }
  }

  /// The thread that runs now.
  unsigned thread() const { return current_->thread; }
  unsigned threads() const { return static_cast<unsigned>(fibers_.size()); }

  /// Called by a thread: waits until all members of the meeting do.
  void wait(Meeting& meeting) {
    Fiber* self = current_;
    ++meeting.arrived;
    self->waits = &meeting;
    self->awaited = meeting.held;
    swapcontext(&self->context, &scheduler_);
    self->waits = nullptr;
  }

 private:
  static constexpr size_t kStackBytes = size_t{64} * 1024;
  using Stack = std::unique_ptr<char[]>;

  struct Fiber {
    explicit Fiber(unsigned thread) : thread(thread) {}
    unsigned thread;
    Stack stack;
    ucontext_t context{};
    bool done = false;
    std::exception_ptr error;
    const Meeting* waits = nullptr;  // for meeting number `awaited` to be over
    uint64_t awaited = 0;
  };

  static std::vector<Stack>& unused_stacks() {
    static std::vector<Stack> stacks;
    return stacks;
  }

  static Stack take_stack() {
    std::vector<Stack>& unused = unused_stacks();
    if (unused.empty()) return Stack(new char[kStackBytes]);
    Stack stack = std::move(unused.back());
    unused.pop_back();
    return stack;
  }

  void prepare(Fiber& fiber) {
    fiber.stack = take_stack();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
  }

  static void enter(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<Fibers*>(static_cast<uintptr_t>(high) << 32 | low);
    try {
      self->body_();
    } catch (...) {
      self->current_->error = std::current_exception();
    }
    self->current_->done = true;
  }

  std::function<void()> body_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::deque<Meeting> meetings_;
  ucontext_t scheduler_{};
  Fiber* current_ = nullptr;
};

}  // namespace aimle::on_host
