// Loops over the work of a group of threads (cuda/group.h), on both devices.
//
// A single thread runs nested loops, which the host vectorises; several threads divide the same
// calls among them. Every call computes its own numbers, so the bits are the same.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "aimle/base/host_device.h"
#include "aimle/map/one_thread.h"

namespace aimle::exact_row {

template <class Group>
inline constexpr bool kIsAlone = std::is_same_v<Group, aimle::detail::OneThread>;

/// Pairs among n vertices, and the position of {i, j}, i > j, among them.
AIMLE_HD constexpr int32_t pairs_of(int32_t n) { return n * (n - 1) / 2; }
AIMLE_EITHER int32_t pair_at(int32_t i, int32_t j) { return i * (i - 1) / 2 + j; }
AIMLE_EITHER int32_t pair_of_ends(int32_t i, int32_t j) {
  return i > j ? pair_at(i, j) : pair_at(j, i);
}

struct Pair {
  int32_t i;
  int32_t j;
};
/// The inverse of pair_at.
AIMLE_EITHER Pair pair_of(int32_t at) {
  auto i = static_cast<int32_t>((1.0f + sqrtf(1.0f + 8.0f * static_cast<float>(at))) * 0.5f);
  while (pairs_of(i) > at) --i;
  while (pairs_of(i + 1) <= at) ++i;
  return {i, at - pairs_of(i)};
}

/// Calls cell(line(i), at, i, j) for all pairs i > j among n vertices.
template <class Group, class Line, class Cell>
AIMLE_EITHER void for_each_pair(Group& group, int32_t n, const Line& line, const Cell& cell) {
  if constexpr (kIsAlone<Group>) {
    for (int32_t i = 1, at = 0; i < n; ++i) {
      const auto of_line = line(i);
      for (int32_t j = 0; j < i; ++j, ++at) cell(of_line, at, i, j);
    }
  } else {
    for (int32_t at = group.rank(); at < pairs_of(n); at += group.size()) {
      const auto [i, j] = pair_of(at);
      cell(line(i), at, i, j);
    }
  }
}
/// Calls body(at, i, j) for them.
template <class Group, class Body>
AIMLE_EITHER void for_each_pair(Group& group, int32_t n, const Body& body) {
  for_each_pair(
      group, n, [](int32_t i) { return i; },
      [&](int32_t, int32_t at, int32_t i, int32_t j) { body(at, i, j); });
}

/// Calls cell(line(i), i, j) for i < lines, j < count.
template <class Group, class Line, class Cell>
AIMLE_EITHER void for_each_cell(Group& group, int32_t lines, int32_t count, const Line& line,
                                const Cell& cell) {
  if constexpr (kIsAlone<Group>) {
    for (int32_t i = 0; i < lines; ++i) {
      const auto of_line = line(i);
      for (int32_t j = 0; j < count; ++j) cell(of_line, i, j);
    }
  } else {
    for (int32_t e = group.rank(); e < lines * count; e += group.size()) {
      cell(line(e / count), e / count, e % count);
    }
  }
}

/// Whether all n vertices can be reached from those that is_start(v), by arcs has_arc(u, v).
/// `state` [n] is memory of the group: afterwards 0 for vertices that cannot, each as seen by the
/// thread v % group.size().
template <class Group, class IsStart, class HasArc>
AIMLE_EITHER bool reaches_all(Group& group, int32_t n, uint8_t* state, const IsStart& is_start,
                              const HasArc& has_arc) {
  constexpr uint8_t kFar = 0, kNear = 1, kFollowed = 2;  // near: its own arcs are to be followed
  bool far = false;
  uint32_t next = 0;  // one more than a vertex that is near
  for (int32_t v = group.rank(); v < n; v += group.size()) {
    state[v] = is_start(v) ? kNear : kFar;
    far |= state[v] == kFar;
    if (state[v] == kNear) next = static_cast<uint32_t>(v) + 1;
  }
  while (group.any(far)) {
    next = group.max(next);
    if (next == 0) return false;
    const auto u = static_cast<int32_t>(next) - 1;
    far = false;
    next = 0;
    for (int32_t v = group.rank(); v < n; v += group.size()) {
      if (v == u) state[v] = kFollowed;
      if (state[v] == kFar && has_arc(u, v)) state[v] = kNear;
      far |= state[v] == kFar;
      if (state[v] == kNear) next = static_cast<uint32_t>(v) + 1;
    }
  }
  return true;
}

}  // namespace aimle::exact_row
