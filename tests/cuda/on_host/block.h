// A block of device threads on the host: fibers that take turns.
//
// Between two syncs a thread runs alone, and which one comes first changes from turn to turn, so a
// kernel that forgets a sync gives different answers. Shared memory starts as garbage. A sync of a
// warp of which a thread has left, which no GPU promises to forgive, is an error, and so is a block
// whose threads wait for one another for ever.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace aimle::on_host {

inline constexpr unsigned kLanes = 32;

struct Index {
  unsigned x = 0;
};

/// Threads that wait for one another; `members` leave for good when they end.
struct Meeting {
  unsigned members = 0;
  unsigned arrived = 0;
  uint64_t held = 0;  // how many meetings there were

  bool complete() const { return arrived > 0 && arrived == members; }
};

struct Warp {
  Meeting meeting;
  std::array<std::array<unsigned char, 8>, kLanes> slots[2];  // of this meeting and the next
};

class Block {
 public:
  Block(Index index, unsigned threads, size_t shared, std::function<void()> body, uint64_t seed);

  /// Runs every thread to its end.
  void run();

  Index index() const { return index_; }
  Index thread() const;
  char* shared() { return shared_; }
  void sync() { wait(meeting_); }
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
  struct Fiber {
    Index thread;
    ucontext_t context{};
    bool done = false;
    std::exception_ptr error;
    const Meeting* waits = nullptr;  // for meeting number `awaited` to be over
    uint64_t awaited = 0;
  };

  void begin(Fiber& fiber, unsigned thread);
  static void enter(unsigned low, unsigned high);
  Warp& own_warp();
  void wait(Meeting& meeting);

  Index index_;
  std::function<void()> body_;
  std::mt19937_64 random_;
  std::vector<char> memory_;
  char* shared_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  Meeting meeting_;
  std::vector<uint8_t> votes_;  // of every thread
  ucontext_t scheduler_{};
  Fiber* current_ = nullptr;
};

/// The block that runs now, and the sizes of it and of its grid.
extern Block* block;
extern Index block_size, grid_size;

/// Runs the blocks of a grid, one after the other, in an order of chance.
void run_grid(unsigned blocks, unsigned threads, size_t shared, const std::function<void()>& body);

}  // namespace aimle::on_host
