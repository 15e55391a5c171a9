// The group of one thread (cuda/group.h), with which one thread runs algorithms for groups.
#pragma once

#include <cstdint>

#include "aimle/base/host_device.h"

namespace aimle::detail {

struct OneThread {
  AIMLE_HD static constexpr int rank() { return 0; }
  AIMLE_HD static constexpr int size() { return 1; }
  AIMLE_HD static void sync() {}
  AIMLE_HD static bool any(bool mine) { return mine; }
  template <class Value>
  AIMLE_HD static Value max(Value mine) {
    return mine;
  }
  template <class Value, class Combine>
  AIMLE_HD static Value reduce(Value mine, const Combine&) {
    return mine;
  }
};

/// A row as algorithms for groups read it, by that thread.
template <class T>
struct WholeRow {
  const T* scores;
  int64_t size;

  template <class Body>
  void for_each(int, int, const Body& body) const {
    for (int64_t e = 0; e < size; ++e) body(e, scores[e]);
  }
};

}  // namespace aimle::detail
