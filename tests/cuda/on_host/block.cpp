#include "block.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace aimle::on_host {

namespace {

constexpr size_t kStackBytes = size_t{64} * 1024;

/// A stack for every thread, kept from block to block.
char* stack_of(unsigned thread) {
  static std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= thread) stacks.emplace_back(new char[kStackBytes]);
  return stacks[thread].get();
}

}  // namespace

Block* block = nullptr;
Index block_size, grid_size;

Block::Block(Index index, unsigned threads, size_t shared, std::function<void()> body,
             uint64_t seed)
    : index_(index),
      body_(std::move(body)),
      random_(seed),
      memory_(shared + 16, static_cast<char>(0xff)),
      warps_(threads / kLanes),
      meeting_{.members = threads},
      votes_(threads) {
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  shared_ = memory_.data() + (16 - address % 16) % 16;
  for (Warp& warp : warps_) warp.meeting.members = kLanes;
  for (unsigned t = 0; t < threads; ++t) fibers_.push_back(std::make_unique<Fiber>());
  for (unsigned t = 0; t < threads; ++t) begin(*fibers_[t], t);
}

void Block::begin(Fiber& fiber, unsigned thread) {
  getcontext(&fiber.context);
  fiber.thread.x = thread;
  fiber.context.uc_stack.ss_sp = stack_of(thread);
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &scheduler_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(self),
              static_cast<unsigned>(self >> 32));
}

void Block::enter(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Block*>(static_cast<uintptr_t>(high) << 32 | low);
  try {
    self->body_();
  } catch (...) {
    self->current_->error = std::current_exception();
  }
  self->current_->done = true;
  self->votes_[self->thread().x] = false;
  --self->meeting_.members;
  --self->own_warp().meeting.members;
}

void Block::run() {
  block = this;
  std::vector<Fiber*> order;
  for (const auto& fiber : fibers_) order.push_back(fiber.get());
  const auto hold = [](Meeting& meeting) {
    if (!meeting.complete()) return;
    meeting.arrived = 0;
    ++meeting.held;
  };
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
    if (!moved) throw std::logic_error("the threads of a block wait for one another for ever");
    std::erase_if(order, [](const Fiber* fiber) { return fiber->done; });
    hold(meeting_);
    for (Warp& warp : warps_) hold(warp.meeting);
  }
  block = nullptr;
}

Index Block::thread() const { return current_->thread; }

Warp& Block::own_warp() { return warps_[thread().x / kLanes]; }

void Block::wait(Meeting& meeting) {
  Fiber* self = current_;
  ++meeting.arrived;
  self->waits = &meeting;
  self->awaited = meeting.held;
  swapcontext(&self->context, &scheduler_);
  self->waits = nullptr;
}

void Block::sync_warp() {
  Warp& warp = own_warp();
  if (warp.meeting.members != kLanes) {
    throw std::logic_error("a warp meets after a thread of it has left");
  }
  wait(warp.meeting);
}

bool Block::any(bool mine) {
  votes_[thread().x] = mine;
  sync();
  const bool result = std::any_of(votes_.begin(), votes_.end(), [](uint8_t vote) { return vote; });
  sync();
  return result;
}

void run_grid(unsigned blocks, unsigned threads, size_t shared, const std::function<void()>& body) {
  static uint64_t seed = 0;
  block_size.x = threads;
  grid_size.x = blocks;
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(++seed));
  for (const unsigned b : order) Block({b}, threads, shared, body, ++seed).run();
}

}  // namespace aimle::on_host
