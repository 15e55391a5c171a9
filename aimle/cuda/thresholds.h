// The partners of a row's entries by a group of threads: the entry with which an entry is swapped
// when its score crosses its threshold (estimate/thresholds.h).
//
// Argmax and top-k have only two partners, the best entry that is out and the worst that is in. In
// a tree, an edge that is out walks the path between its ends, up the tree from both, and finds the
// lightest edge there; it is also reported to every edge of the path, so that each finally has the
// heaviest edge that could replace it. Of equal weights the lower index is the better edge, as for
// the solver.
#pragma once

#include <cstdint>

#include "aimle/base/ordered_bits.h"
#include "aimle/cuda/group.h"
#include "aimle/map/spanning_tree.h"

namespace aimle::cuda {

namespace detail {

// Several threads at once; in lockstep there is only one.
template <class Word>
AIMLE_DEVICE void raise_to(Word* target, Word value) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Word) == 4) {
    atomicMax(reinterpret_cast<unsigned*>(target), static_cast<unsigned>(value));
  } else {
    atomicMax(reinterpret_cast<unsigned long long*>(target),
              static_cast<unsigned long long>(value));
  }
#else
  if (*target < value) *target = value;
#endif
}
AIMLE_DEVICE void lower_to(uint32_t* target, uint32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMin(target, value);
#else
  if (*target > value) *target = value;
#endif
}

}  // namespace detail

inline constexpr uint32_t kNoPartner = 0xffffffff;

/// Partners of argmax and top-k, kNoPartner where there is none.
struct RowPartners {
  uint32_t best_out;
  uint32_t worst_in;
};

/// `scores.for_each` as in grid_path.h; `chosen(j)` tells whether j is in. n < 2^32 - 1.
template <class T, class Group, class Scores, class Chosen>
AIMLE_DEVICE RowPartners find_row_partners(Group& group, const Scores& scores, const bool* mask,
                                           const Chosen& chosen) {
  using Bits = OrderedBits<T>;
  // Larger is better for both; of equals the earlier one out, the later one in.
  Bits out = 0, in = 0;
  uint32_t out_at = 0, in_at = 0;
  scores.for_each(group.rank(), group.size(), [&](int64_t j, T x) {
    if (mask != nullptr && !mask[j]) return;
    const bool is_in = chosen(j);
    const Bits key = is_in ? ~ordered(x) : ordered(x);
    const auto at = static_cast<uint32_t>(is_in ? j + 1 : ~j);
    Bits& best = is_in ? in : out;
    uint32_t& best_at = is_in ? in_at : out_at;
    if (best_at == 0 || key > best || (key == best && at > best_at)) {
      best = key;
      best_at = at;
    }
  });
  // ~ordered(x) is 0 only of a NaN, ordered(x) never.
  const Bits best_out = group.max(out), best_in = group.max(in);
  out_at = group.max(out == best_out ? out_at : 0u);
  in_at = group.max(in == best_in ? in_at : 0u);
  return {out_at == 0 ? kNoPartner : ~out_at, in_at == 0 ? kNoPartner : in_at - 1};
}

/// Memory of one tree: arrays by vertex, of the tree edge that leads up from it, and by edge.
template <class T>
struct TreePartners {
  OrderedBits<T>* weight;    // [vertices] of the edge up
  OrderedBits<T>* heaviest;  // [vertices] other edge that could replace it
  uint32_t* edge;            // [vertices] the edge up
  uint32_t* replacement;     // [vertices] the first of the heaviest
  int32_t* parent;           // [vertices]
  int32_t* depth;            // [vertices]
  uint32_t* partner;         // [edges], kNoPartner where there is none: the result

  static int64_t bytes(int64_t vertices, int64_t edges) {
    const auto wide = static_cast<int64_t>(sizeof(T));
    return (vertices * (2 * wide + 16) + edges * 4 + 15) / 16 * 16;
  }
  AIMLE_DEVICE static TreePartners at(void* memory, int64_t vertices) {
    auto* weight = static_cast<OrderedBits<T>*>(memory);
    auto* edge = reinterpret_cast<uint32_t*>(weight + 2 * vertices);
    auto* parent = reinterpret_cast<int32_t*>(edge + 2 * vertices);
    return {weight,
            weight + vertices,
            edge,
            edge + vertices,
            parent,
            parent + vertices,
            reinterpret_cast<uint32_t*>(parent + 2 * vertices)};
  }
};

/// Fills `tree.partner`. `weight(i, j)`, `exists(i, j)` and `in_tree(i, j)`, i < j, describe edges;
/// those in the tree form one. Ends with a sync.
template <class T, class Group, class Weight, class Exists, class InTree>
AIMLE_DEVICE void find_tree_partners(Group& group, int32_t n, const Weight& weight,
                                     const Exists& exists, const InTree& in_tree,
                                     const TreePartners<T>& tree) {
  const int rank = group.rank(), size = group.size();
  const auto edge = [n](int32_t i, int32_t j) { return i * (2 * n - i - 1) / 2 + (j - i - 1); };
  for (int32_t v = rank; v < n; v += size) {
    tree.parent[v] = -1;
    tree.depth[v] = v == 0 ? 0 : -1;
    tree.heaviest[v] = 0;
    tree.replacement[v] = kNoPartner;
  }
  group.sync();
  bool more = true;
  for (int32_t level = 0; more; ++level) {
    bool found = false;
    for (int32_t v = rank; v < n; v += size) {
      for (int32_t u = 0; u < n && tree.depth[v] < 0 && tree.parent[v] < 0; ++u) {
        if (tree.depth[u] != level) continue;
        const int32_t i = u < v ? u : v, j = u < v ? v : u;
        if (!in_tree(i, j)) continue;
        tree.parent[v] = u;
        tree.edge[v] = static_cast<uint32_t>(edge(i, j));
        tree.weight[v] = ordered(weight(i, j));
        found = true;
      }
    }
    more = group.any(found);
    for (int32_t v = rank; v < n; v += size) {
      if (tree.depth[v] < 0 && tree.parent[v] >= 0) tree.depth[v] = level + 1;
    }
    group.sync();
  }

  /// visit(v) for the edges up from v on the path between i and j.
  const auto walk = [&](int32_t i, int32_t j, auto visit) {
    while (i != j) {
      int32_t& lower = tree.depth[i] >= tree.depth[j] ? i : j;
      visit(lower);
      lower = tree.parent[lower];
    }
  };
  /// visit(i, j, edge) for this thread's share of the edges outside the tree.
  const auto for_each_other = [&](auto visit) {
    for (int32_t i = 0, j = 1 + rank; i < n - 1; j += size) {
      while (i < n - 1 && j >= n) {
        ++i;
        j = j - n + i + 1;
      }
      if (i < n - 1 && !in_tree(i, j)) visit(i, j, static_cast<uint32_t>(edge(i, j)));
    }
  };
  for_each_other([&](int32_t i, int32_t j, uint32_t e) {
    tree.partner[e] = kNoPartner;
    if (!exists(i, j)) return;
    const OrderedBits<T> own = ordered(weight(i, j));
    OrderedBits<T> lightest = ~OrderedBits<T>{0};
    uint32_t partner = 0;
    walk(i, j, [&](int32_t v) {
      if (tree.weight[v] < lightest || (tree.weight[v] == lightest && tree.edge[v] > partner)) {
        lightest = tree.weight[v];
        partner = tree.edge[v];
      }
      detail::raise_to(&tree.heaviest[v], own);
    });
    tree.partner[e] = partner;
  });
  group.sync();
  for_each_other([&](int32_t i, int32_t j, uint32_t e) {
    if (!exists(i, j)) return;
    const OrderedBits<T> own = ordered(weight(i, j));
    walk(i, j, [&](int32_t v) {
      if (tree.heaviest[v] == own) detail::lower_to(&tree.replacement[v], e);
    });
  });
  group.sync();
  for (int32_t v = 1 + rank; v < n; v += size) tree.partner[tree.edge[v]] = tree.replacement[v];
  group.sync();
}

}  // namespace aimle::cuda
