// The group of one thread (cuda/group.h), with which one thread runs algorithms for groups.
#pragma once

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

}  // namespace aimle::detail
