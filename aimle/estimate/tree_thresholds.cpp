#include "aimle/estimate/tree_thresholds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace aimle {

template <class T>
TreeThresholds<T>::TreeThresholds(const SpanningTree& solver)
    : vertices_(solver.vertices),
      edges_(solver.edges()),
      chosen_(solver.solution_size().ones),
      directed_(solver.layout == SpanningTree::Layout::kDirected),
      stride_((solver.vertices + 7) / 8 * 8) {
  const auto vertices = static_cast<size_t>(vertices_), edges = static_cast<size_t>(edges_);
  edge_.resize(static_cast<size_t>(solver.size()));
  for (int64_t i = 0; i < vertices_; ++i) {
    for (int64_t j = i + 1; j < vertices_; ++j) {
      const auto edge = static_cast<uint32_t>(ends_.size());
      ends_.push_back({.low = static_cast<int32_t>(i), .high = static_cast<int32_t>(j)});
      const auto entry =
          directed_ ? static_cast<uint32_t>(SpanningTree::arc(i, j, vertices_)) : edge;
      const auto reverse =
          directed_ ? static_cast<uint32_t>(SpanningTree::arc(j, i, vertices_)) : edge;
      entry_.push_back(entry);
      reverse_.push_back(reverse);
      edge_[entry] = edge_[reverse] = edge;
    }
  }
  weight_.resize(edges);
  gain_.resize(edges);
  number_.resize(edges);
  partner_.resize(edges);
  needed_.resize(edges);
  joint_.resize(vertices);
  next_.resize(vertices);
  stripped_.resize(vertices);
  for (auto* by_place : {&vertex_, &up_, &end_}) by_place->resize(vertices);
  place_.resize(static_cast<size_t>(stride_));
  above_.resize(vertices);
  best_.resize(vertices);
  light_.resize(vertices * static_cast<size_t>(stride_));
  heavy_.resize(vertices * static_cast<size_t>(stride_), kNoEdge<T>);
}

/// The tree as seen from every vertex. Returns the number of entries that are in.
template <class T>
int64_t TreeThresholds<T>::read_tree(const uint8_t* bits) {
  int64_t chosen = 0;
  for (Joint& joint : joint_) joint = {.degree = 0, .neighbours = 0, .edges = 0, .below = 1};
  const auto entries = static_cast<int64_t>(edge_.size());
  for (int64_t first = 0; first < entries; first += 64) {
    uint64_t rest = 0;
    const int64_t bytes = std::min<int64_t>(8, (entries - first + 7) / 8);
    std::memcpy(&rest, bits + first / 8, static_cast<size_t>(bytes));
    for (; rest != 0; rest &= rest - 1, ++chosen) {
      const int64_t entry = first + std::countr_zero(rest);
      const uint32_t e = edge_[entry];
      if (entry_[e] != entry) continue;
      const auto [low, high] = ends_[e];
      joint_[low].join(high, e);
      joint_[high].join(low, e);
    }
  }
  return chosen;
}

/// Strips leaves until vertex 0 is left, which gives the parents and the sizes of subtrees, and
/// from these the places. Moves the tree's edges from the numbers to the places.
template <class T>
void TreeThresholds<T>::walk() {
  int64_t count = 0;
  for (int32_t leaf = 1; leaf < vertices_; ++leaf) {
    for (int32_t v = leaf; v != 0 && joint_[v].degree == 1;) {
      Joint& child = joint_[v];
      Joint& parent = joint_[child.neighbours];
      stripped_[count++] = v;
      child.degree = 0;
      parent.join(v, child.edges);
      parent.degree -= 2;
      parent.below += child.below;
      v = child.neighbours;
    }
  }
  vertex_[0] = place_[0] = 0;
  up_[0] = -1;
  end_[0] = vertices_;
  next_[0] = 1;
  above_[0] = kNoEdge<T>;
  while (count > 0) {
    const int32_t v = stripped_[--count];
    const Joint& joint = joint_[v];
    const int64_t at = next_[joint.neighbours];
    next_[joint.neighbours] += joint.below;
    next_[v] = at + 1;
    vertex_[at] = v;
    place_[v] = at;
    up_[at] = place_[joint.neighbours];
    end_[at] = at + joint.below;
    above_[at] = number_[joint.edges];
    number_[joint.edges] = kNoEdge<T>;
  }
}

template <class T>
bool TreeThresholds<T>::find(const SwapRow<T>& row, double* threshold, double* difference) {
  if (read_tree(row.bits) != chosen_) return false;
  find_partners(row.x, row.mask);
  write(row.x, row.d, threshold, difference);
  return true;
}

template <class T>
void TreeThresholds<T>::find_partners(const T* x, const bool* mask) {
  const ThresholdKernels<T>& kernels = threshold_kernels<T>();
  const auto for_each_masked = [&](auto visit) {
    for (int64_t e = 0; mask != nullptr && e < edges_; ++e) {
      if (!mask[entry_[e]] || !mask[reverse_[e]]) visit(e);
    }
  };
  if (directed_) {
    for (int64_t e = 0; e < edges_; ++e) weight_[e] = x[entry_[e]] + x[reverse_[e]];
  } else {
    std::copy_n(x, edges_, weight_.begin());
  }
  kernels.number_edges(weight_.data(), edges_, number_.data());
  walk();
  for_each_masked([&](int64_t e) { number_[e] = kNoEdge<T>; });
  const TreeWalk tree{.vertices = vertices_,
                      .stride = stride_,
                      .vertex = vertex_.data(),
                      .place = place_.data(),
                      .up = up_.data(),
                      .end = end_.data()};
  kernels.sweep_down(tree, above_.data(), light_.data());
  kernels.spread_edges(tree, number_.data(), heavy_.data());
  kernels.sweep_up(tree, heavy_.data(), best_.data());

  kernels.read_edges(tree, light_.data(), partner_.data(), needed_.data());
  const auto set_none = [&](int64_t e) {
    partner_[e] = static_cast<uint32_t>(e);
    needed_[e] = std::numeric_limits<T>::infinity();
  };
  for_each_masked(set_none);
  for (int64_t at = 1; at < vertices_; ++at) {
    const uint32_t e = edge_of(above_[at]);
    if (best_[at] == kNoEdge<T>) {
      set_none(e);
    } else {
      partner_[e] = edge_of(best_[at]);
      needed_[e] = weight_[partner_[e]];
    }
  }
}

template <class T>
int64_t TreeThresholds<T>::partner(int64_t j) const {
  const uint32_t edge = edge_[j], other = partner_[edge];
  return other == edge ? -1 : int64_t{entry_[other]};
}

template <class T>
void TreeThresholds<T>::write(const T* x, const T* d, double* threshold, double* difference) {
  if (!directed_) {
    for (int64_t e = 0; e < edges_; ++e) threshold[e] = static_cast<double>(needed_[e]);
    threshold_kernels<T>().subtract_partners(d, partner_.data(), edges_, difference);
    return;
  }
  for (int64_t e = 0; e < edges_; ++e) {
    gain_[e] = static_cast<double>(d[entry_[e]]) + static_cast<double>(d[reverse_[e]]);
  }
  for (int64_t e = 0; e < edges_; ++e) {
    const uint32_t a = entry_[e], b = reverse_[e];
    const T needed = needed_[e];
    threshold[a] = static_cast<double>(needed - x[b]);
    threshold[b] = static_cast<double>(needed - x[a]);
    difference[a] = difference[b] = gain_[e] - gain_[partner_[e]];
  }
}

template class TreeThresholds<float>;
template class TreeThresholds<double>;

template <class T>
std::unique_ptr<SwapFinder<T>> SpanningTree::swap_finder() const {
  return std::make_unique<TreeThresholds<T>>(*this);
}
template std::unique_ptr<SwapFinder<float>> SpanningTree::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> SpanningTree::swap_finder() const;

}  // namespace aimle
