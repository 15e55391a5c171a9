// A block of device threads on the host, as fibers (tests/cuda/fibers.h).
//
// Shared memory starts as garbage. A sync of a warp of which a thread has left, which no GPU
// promises to forgive, is an error.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/cuda/fibers.h"

namespace aimle::on_host {

inline constexpr unsigned kLanes = 32;

struct Index {
  unsigned x = 0;
};

struct Warp {
  explicit Warp(Meeting& meeting) : meeting(meeting) {}
  Meeting& meeting;
  std::array<std::array<unsigned char, 8>, kLanes> slots[2];  // of this meeting and the next
};

class Block {
 public:
  Block(Index index, unsigned threads, size_t shared, uint64_t seed);

  /// Runs every thread to its end.
  void run(const std::function<void()>& body);

  Index index() const { return index_; }
  Index thread() const { return {fibers_.thread()}; }
  char* shared() { return shared_; }
  void sync() { fibers_.wait(meeting_); }
  void sync_warp();
  /// Does any thread of the block say so?
  bool any(bool mine);
  /// The values of the calling warp, by lane.
  template <class Value>
  std::array<Value, kLanes> of_warp(Value mine) {
    static_assert(sizeof(Value) <= 8);
    Warp& warp = own_warp();
    auto& slots = warp.slots[warp.meeting.held % 2];
    std::memcpy(slots[thread().x % kLanes].data(), &mine, sizeof mine);
    sync_warp();
    std::array<Value, kLanes> values;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      std::memcpy(&values[lane], slots[lane].data(), sizeof(Value));
    }
    return values;
  }

 private:
  Warp& own_warp() { return warps_[thread().x / kLanes]; }
  /// Called by a thread at its end: the others no longer wait for it.
  void leave();

  Index index_;
  std::vector<char> memory_;
  char* shared_;
  Fibers fibers_;
  Meeting& meeting_;
  std::vector<Warp> warps_;
  std::vector<uint8_t> votes_;  // of every thread
};

/// The block that runs now, and the sizes of it and of its grid.
extern Block* block;
extern Index block_size, grid_size;

/// Runs the blocks of a grid, one after the other, in an order of chance.
void run_grid(unsigned blocks, unsigned threads, size_t shared, const std::function<void()>& body);

}  // namespace aimle::on_host
