// The group of one thread (cuda/group.h), with which the host runs algorithms for groups.
#pragma once

#include <cstdint>

namespace aimle::detail {

/// A group of one thread, on the host.
struct OneThread {
  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  static void sync() {}
  static bool any(bool mine) { return mine; }
  static uint32_t max(uint32_t mine) { return mine; }
  template <class Value, class Combine>
  static Value reduce(Value mine, const Combine&) {
    return mine;
  }
};

}  // namespace aimle::detail
