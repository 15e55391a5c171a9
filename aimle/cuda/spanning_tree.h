// SpanningTree by a group of threads: dense Prim, a vertex per thread (map/spanning_tree.h).
//
// Every thread keeps, for each of its vertices outside the tree, the best edge that joins it. A
// step compares these with the edges to the vertex that joined last and finds the best of all by
// one reduction; that edge gives the next vertex. No other exchange between threads is needed.
// Edges are compared by weight, then by index, so there are no ties, and the tree is that of the
// CPU.
//
// n - 1 steps of O(n / threads) and a reduction. Each score is read once, so `scores` may compute
// it on the fly.
#pragma once

#include <cstdint>
#include <type_traits>

#include "aimle/base/ordered_bits.h"
#include "aimle/cuda/group.h"
#include "aimle/map/spanning_tree.h"

namespace aimle::cuda {

/// An edge as a number, larger is better: earlier ends are larger, and the last bit tells which of
/// them was outside the tree. 0 is no edge. 32 bits suffice for up to kMaxVertices vertices.
template <class Word>
struct Ends {
  static constexpr int kBits = sizeof(Word) == 4 ? 15 : 16;
  static constexpr int64_t kMaxVertices = int64_t{1} << kBits;
  static constexpr Word kMask = (Word{1} << kBits) - 1;
  static constexpr Word kInside = ~Word{0};  // of no edge, since i < j

  AIMLE_DEVICE static Word of(Word i, Word j, bool second_outside) {
    const Word pair = i << kBits | j;
    return (~pair & (kMask << kBits | kMask)) << 1 | static_cast<Word>(second_outside);
  }
  AIMLE_DEVICE static Word first(Word ends) { return ~(ends >> 1) >> kBits & kMask; }
  AIMLE_DEVICE static Word second(Word ends) { return ~(ends >> 1) & kMask; }
  AIMLE_DEVICE static Word outside(Word ends) { return (ends & 1) ? second(ends) : first(ends); }
};

/// The best edge that joins a vertex; ends = Ends::kInside when it has joined.
template <class T, class Word>
struct Joining {
  OrderedBits<T> weight = 0;
  Word ends = 0;

  AIMLE_DEVICE void improve(const Joining& other) {
    if (other.weight > weight || (other.weight == weight && other.ends > ends)) *this = other;
  }
};

/// A vertex per thread: registers. For n <= threads.
template <class T, class Word>
struct OneVertex {
  Joining<T, Word> joining;
  AIMLE_DEVICE Joining<T, Word>& operator[](int) { return joining; }
};

/// Any number of vertices, [n] in memory of the row; only its owner touches an entry.
template <class T, class Word>
struct ManyVertices {
  Joining<T, Word>* joining;
  AIMLE_DEVICE Joining<T, Word>& operator[](int v) { return joining[v]; }
};

namespace detail {

template <class Group, class T, class Word>
AIMLE_DEVICE Joining<T, Word> best_of(Group& group, const Joining<T, Word>& mine) {
  if constexpr (sizeof(T) == 4 && sizeof(Word) == 4) {
    const uint64_t best = group.max(static_cast<uint64_t>(mine.weight) << 32 | mine.ends);
    return {static_cast<uint32_t>(best >> 32), static_cast<uint32_t>(best)};
  } else {
    const OrderedBits<T> weight = group.max(mine.weight);
    return {weight, group.max(mine.weight == weight ? mine.ends : Word{0})};
  }
}

}  // namespace detail

/// The solution of one row: `scores(j)` gives entry j, `mask` is the row's or null, and `chosen(j)`
/// is called once for every entry that is 1, by thread 0. If the status is not kOk, `chosen` may
/// have been called. Ends with a sync.
template <class Word, class T, bool kDirected, class Group, class Frontier, class Scores,
          class Chosen>
AIMLE_DEVICE Status solve_tree(Group& group, int vertices, Scores scores, const bool* mask,
                               Frontier frontier, Chosen chosen) {
  using Pair = Ends<Word>;
  using Index = std::make_signed_t<Word>;
  const auto n = static_cast<Index>(vertices);
  const auto edge = [n](Index i, Index j) { return i * (2 * n - i - 1) / 2 + (j - i - 1); };
  const auto arc = [n](Index to, Index from) { return to * (n - 1) + from - (from > to ? 1 : 0); };
  const auto exists = [&](Index i, Index j) {
    if (mask == nullptr) return true;
    if constexpr (!kDirected) return mask[edge(i, j)];
    return mask[arc(i, j)] && mask[arc(j, i)];
  };
  const auto weight = [&](Index i, Index j) -> T {
    if constexpr (!kDirected) return scores(edge(i, j));
    return scores(arc(i, j)) + scores(arc(j, i));
  };
  const int rank = group.rank(), size = group.size();

  for (int v = rank; v < vertices; v += size) frontier[v] = {};
  bool nan = false;
  Index joined = 0;
  for (Index step = 1; step < n; ++step) {
    Joining<T, Word> best;
    for (int v = rank; v < vertices; v += size) {
      Joining<T, Word>& joining = frontier[v];
      if (joining.ends == Pair::kInside) continue;
      if (v == joined) {
        joining = {0, Pair::kInside};
        continue;
      }
      const Index i = v < joined ? v : joined, j = v < joined ? joined : v;
      if (exists(i, j)) {
        const T w = weight(i, j);
        nan |= w != w;
        joining.improve({ordered(w), Pair::of(static_cast<Word>(i), static_cast<Word>(j), v == j)});
      }
      best.improve(joining);
    }
    best = detail::best_of(group, best);
    if (best.ends == 0) {
      for (int v = rank; v < vertices; v += size) {
        for (Index j = v + 1; j < n; ++j) {
          if (!exists(v, j)) continue;
          const T w = weight(v, j);
          nan |= w != w;
        }
      }
      return group.any(nan) ? Status::kNaN : Status::kDisconnected;
    }
    if (rank == 0) {
      const auto i = static_cast<Index>(Pair::first(best.ends));
      const auto j = static_cast<Index>(Pair::second(best.ends));
      if constexpr (kDirected) {
        chosen(arc(i, j));
        chosen(arc(j, i));
      } else {
        chosen(edge(i, j));
      }
    }
    joined = static_cast<Index>(Pair::outside(best.ends));
  }
  return group.any(nan) ? Status::kNaN : Status::kOk;
}

}  // namespace aimle::cuda
