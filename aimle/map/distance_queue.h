// A queue of places, nearest first. Private to grid_path.cpp and graph_path.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace aimle::detail {

/// A heap in which every entry has four children. Distances are not below +0, so their bits have
/// the same order, and the nearest child is found by arithmetic instead of unpredictable branches.
template <class T>
class DistanceQueue {
 public:
  explicit DistanceQueue(int64_t capacity) : heap_(capacity + kChildren, kNone) {}

  bool empty() const { return size_ == 0; }

  void push(T distance, int32_t place) { sift_up(size_++, {std::bit_cast<Bits>(distance), place}); }

  std::pair<T, int32_t> pop() {
    const Entry top = heap_[0];
    size_t hole = 0;
    for (size_t child = 1; child < size_; child = kChildren * hole + 1) {
      const size_t left = nearer(child, child + 1);
      const size_t right = nearer(child + 2, child + 3);
      const size_t nearest = nearer(left, right);
      heap_[hole] = heap_[nearest];
      hole = nearest;
    }
    const Entry last = heap_[--size_];
    heap_[size_] = kNone;
    if (hole < size_) sift_up(hole, last);
    return {std::bit_cast<T>(top.distance), top.place};
  }

  void clear() {
    std::fill_n(heap_.begin(), size_, kNone);
    size_ = 0;
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  struct Entry {
    Bits distance;
    int32_t place;
  };
  static constexpr size_t kChildren = 4;
  static constexpr Entry kNone{std::numeric_limits<Bits>::max(), 0};

  size_t nearer(size_t a, size_t b) const {
    return a + (b - a) * static_cast<size_t>(heap_[b].distance < heap_[a].distance);
  }

  void sift_up(size_t hole, Entry entry) {
    while (hole > 0) {
      const size_t parent = (hole - 1) / kChildren;
      if (heap_[parent].distance <= entry.distance) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  std::vector<Entry> heap_;  // kNone from size_ on
  size_t size_ = 0;
};

}  // namespace aimle::detail
