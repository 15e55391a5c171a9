#include "block.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

namespace aimle::on_host {

Block* block = nullptr;
Index block_size, grid_size;

Block::Block(Index index, unsigned threads, size_t shared, uint64_t seed)
    : index_(index),
      memory_(shared + 16, static_cast<char>(0xff)),
      fibers_(threads, seed),
      meeting_(fibers_.add_meeting(threads)),
      votes_(threads) {
  const auto address = reinterpret_cast<uintptr_t>(memory_.data());
  shared_ = memory_.data() + (16 - address % 16) % 16;
  for (unsigned warp = 0; warp < threads / kLanes; ++warp) {
    warps_.emplace_back(fibers_.add_meeting(kLanes));
  }
}

void Block::run(const std::function<void()>& body) {
  block = this;
  fibers_.run([&] {
    body();
    leave();
  });
  block = nullptr;
}

void Block::leave() {
  votes_[thread().x] = false;
  --meeting_.members;
  --own_warp().meeting.members;
}

void Block::sync_warp() {
  Meeting& meeting = own_warp().meeting;
  if (meeting.members != kLanes) {
    throw std::logic_error("a warp meets after a thread of it has left");
  }
  fibers_.wait(meeting);
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
  for (const unsigned b : order) Block({b}, threads, shared, ++seed).run(body);
}

}  // namespace aimle::on_host
