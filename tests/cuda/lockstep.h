// Device algorithms on the host: a group of threads (cuda/group.h) as fibers (fibers.h).
//
// Threads that disagree about how many syncs there are, as no GPU forgives, are an error.
//
//   run_in_lockstep(32, seed, [&](Lockstep& group) { ... });
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/cuda/fibers.h"

namespace aimle::cuda {

/// What the threads of a group share.
struct LockstepRun {
  LockstepRun(unsigned threads, uint64_t seed)
      : fibers(threads, seed), meeting(fibers.add_meeting(threads)), slots(threads) {}

  on_host::Fibers fibers;
  on_host::Meeting& meeting;
  std::vector<uint64_t> slots;  // a value of every thread
};

/// One thread's view of the group.
class Lockstep {
 public:
  explicit Lockstep(LockstepRun& run) : run_(run), rank_(static_cast<int>(run.fibers.thread())) {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(run_.fibers.threads()); }
  void sync() { run_.fibers.wait(run_.meeting); }
  bool any(bool mine) { return max(static_cast<uint32_t>(mine)) != 0; }
  uint32_t max(uint32_t mine) { return static_cast<uint32_t>(max(static_cast<uint64_t>(mine))); }
  uint64_t max(uint64_t mine) {
    return reduce(mine, [](uint64_t a, uint64_t b) { return std::max(a, b); });
  }
  template <class Value, class Combine>
  Value reduce(Value mine, Combine combine) {
    static_assert(sizeof(Value) == sizeof(uint64_t));
    std::memcpy(&run_.slots[static_cast<size_t>(rank_)], &mine, sizeof mine);
    sync();
    Value result{};
    for (size_t other = 0; other < run_.slots.size(); ++other) {
      Value value;
      std::memcpy(&value, &run_.slots[other], sizeof value);
      result = other == 0 ? value : combine(result, value);
    }
    sync();
    return result;
  }

 private:
  LockstepRun& run_;
  int rank_;
};

inline void run_in_lockstep(int threads, uint64_t seed,
                            const std::function<void(Lockstep&)>& body) {
  LockstepRun run(static_cast<unsigned>(threads), seed);
  run.fibers.run([&] {
    Lockstep group(run);
    body(group);
  });
}

}  // namespace aimle::cuda
