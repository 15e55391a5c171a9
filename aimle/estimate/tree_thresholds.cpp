#include "aimle/estimate/tree_thresholds.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace aimle {

template <class T>
TreeThresholds<T>::TreeThresholds(const SpanningTree& solver)
    : vertices_(solver.vertices),
      edges_(solver.edges()),
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
  weight_.assign(edges + 1, std::numeric_limits<T>::infinity());
  gain_.resize(edges + 1);
  number_.resize(edges);
  partner_.resize(edges);
  first_.resize(vertices);
  neighbour_.resize(2 * vertices);
  stack_.resize(vertices);
  for (auto* by_place : {&vertex_, &up_, &end_}) by_place->resize(vertices);
  place_.resize(static_cast<size_t>(stride_));
  above_.resize(vertices);
  best_.resize(vertices);
  light_.resize(vertices * static_cast<size_t>(stride_));
  heavy_.resize(vertices * static_cast<size_t>(stride_), kNoEdge<T>);
}

/// Moves the tree's edges from the numbers to the lists.
template <class T>
void TreeThresholds<T>::read_tree(const uint8_t* bits) {
  std::fill(first_.begin(), first_.end(), -1);
  int32_t slot = 0;
  const auto entries = static_cast<int64_t>(edge_.size());
  for (int64_t byte = 0; 8 * byte < entries; ++byte) {
    for (uint32_t rest = bits[byte]; rest != 0; rest &= rest - 1) {
      const int64_t entry = 8 * byte + std::countr_zero(rest);
      const uint32_t e = edge_[entry];
      if (entry_[e] != entry) continue;
      const auto [low, high] = ends_[e];
      neighbour_[slot] = {.vertex = high, .next = first_[low], .edge = number_[e]};
      first_[low] = slot++;
      neighbour_[slot] = {.vertex = low, .next = first_[high], .edge = number_[e]};
      first_[high] = slot++;
      number_[e] = kNoEdge<T>;
    }
  }
}

template <class T>
void TreeThresholds<T>::walk() {
  int64_t seen = 0, waiting = 0;
  stack_[waiting++] = {.vertex = 0, .up = -1, .edge = kNoEdge<T>};
  while (waiting > 0) {
    const Step step = stack_[--waiting];
    const auto at = static_cast<int32_t>(seen++);
    vertex_[at] = step.vertex;
    place_[step.vertex] = at;
    up_[at] = step.up;
    above_[at] = step.edge;
    end_[at] = at + 1;
    const int64_t parent = step.up < 0 ? -1 : vertex_[step.up];
    for (int32_t slot = first_[step.vertex]; slot >= 0; slot = neighbour_[slot].next) {
      const Neighbour& child = neighbour_[slot];
      stack_[waiting] = {.vertex = child.vertex, .up = at, .edge = child.edge};
      waiting += child.vertex != parent;
    }
  }
  for (int64_t at = seen - 1; at > 0; --at) end_[up_[at]] = std::max(end_[up_[at]], end_[at]);
}

template <class T>
void TreeThresholds<T>::find(const T* x, const bool* mask, const uint8_t* bits) {
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
  read_tree(bits);
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

  const auto none = static_cast<uint32_t>(edges_);
  kernels.read_edges(tree, light_.data(), partner_.data());
  for_each_masked([&](int64_t e) { partner_[e] = none; });
  for (int64_t at = 1; at < vertices_; ++at) {
    partner_[edge_of(above_[at])] = best_[at] == kNoEdge<T> ? none : edge_of(best_[at]);
  }
}

template <class T>
int64_t TreeThresholds<T>::partner(int64_t j) const {
  const uint32_t other = partner_[edge_[j]];
  return other == edges_ ? -1 : int64_t{entry_[other]};
}

template <class T>
void TreeThresholds<T>::write(const T* x, const T* d, T* threshold, double* difference) {
  if (!directed_) {
    for (int64_t e = 0; e < edges_; ++e) gain_[e] = static_cast<double>(d[e]);
    for (int64_t e = 0; e < edges_; ++e) {
      threshold[e] = weight_[partner_[e]];
      difference[e] = gain_[e] - gain_[partner_[e]];
    }
    return;
  }
  for (int64_t e = 0; e < edges_; ++e) {
    gain_[e] = static_cast<double>(d[entry_[e]]) + static_cast<double>(d[reverse_[e]]);
  }
  for (int64_t e = 0; e < edges_; ++e) {
    const uint32_t a = entry_[e], b = reverse_[e];
    const T needed = weight_[partner_[e]];
    threshold[a] = needed - x[b];
    threshold[b] = needed - x[a];
    difference[a] = difference[b] = gain_[e] - gain_[partner_[e]];
  }
}

template class TreeThresholds<float>;
template class TreeThresholds<double>;

}  // namespace aimle
