#include "aimle/estimate/tree_thresholds.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace aimle {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();  // no threshold

}  // namespace

template <class T>
TreeThresholds<T>::TreeThresholds(const SpanningTree& solver)
    : vertices_(solver.vertices),
      edges_(solver.edges()),
      chosen_(solver.solution_size().ones),
      directed_(solver.layout == SpanningTree::Layout::kDirected),
      stride_((solver.vertices + 7) / 8 * 8),
      rank_stride_((solver.vertices + 31) / 32 * 32),
      words_((solver.vertices + 63) / 64) {
  const auto vertices = static_cast<size_t>(vertices_), edges = static_cast<size_t>(edges_);
  ends_.resize(static_cast<size_t>(solver.size()));
  entry_.reserve(edges);
  reverse_.reserve(edges);
  for (int64_t i = 0; i < vertices_; ++i) {
    first_.push_back(SpanningTree::edge(i, i + 1, vertices_) - i - 1);
    for (int64_t j = i + 1; j < vertices_; ++j) {
      const auto edge = static_cast<uint32_t>(entry_.size());
      const auto entry =
          directed_ ? static_cast<uint32_t>(SpanningTree::arc(i, j, vertices_)) : edge;
      const auto reverse =
          directed_ ? static_cast<uint32_t>(SpanningTree::arc(j, i, vertices_)) : edge;
      entry_.push_back(entry);
      reverse_.push_back(reverse);
      ends_[entry] =
          ends_[reverse] = {.low = static_cast<int32_t>(i), .high = static_cast<int32_t>(j)};
    }
  }
  if (directed_) weight_.resize(edges);
  number_.resize(edges);
  neighbours_.resize(vertices * static_cast<size_t>(words_));
  vertex_.resize(vertices);
  parent_.resize(vertices);
  below_.resize(neighbours_.size());
  above_.resize(vertices);
  best_.resize(vertices);
  rank_.resize(vertices);
  heavy_.resize(vertices * static_cast<size_t>(stride_), kNoEdge<T>);
  lightest_.resize(vertices * static_cast<size_t>(rank_stride_), kNoRank);
  const auto ranks = std::max(vertices, static_cast<size_t>(kLeastRanks));
  ranked_weight_.resize(ranks);
  ranked_gain_.resize(ranks);
  ranked_edge_.resize(ranks);
}

/// The neighbours of every vertex. Returns the number of entries that are in.
template <class T>
int64_t TreeThresholds<T>::read_tree(const SwapRow<T>& row) {
  std::fill(neighbours_.begin(), neighbours_.end(), uint64_t{0});
  // Locals, which stores of other members cannot change.
  uint64_t* const neighbours = neighbours_.data();
  const Ends* const ends = ends_.data();
  const int64_t words = words_, entries = static_cast<int64_t>(ends_.size());
  int64_t chosen = 0;
  for (int64_t first = 0; first < entries; first += 64) {
    uint64_t rest = 0;
    const int64_t bytes = std::min<int64_t>(8, (entries - first + 7) / 8);
    std::memcpy(&rest, row.bits + first / 8, static_cast<size_t>(bytes));
    for (; rest != 0; rest &= rest - 1, ++chosen) {
      const int64_t entry = first + std::countr_zero(rest);
      __builtin_prefetch(row.d + entry);  // for rank_edges
      const auto [low, high] = ends[entry];
      neighbours[low * words + high / 64] |= uint64_t{1} << high % 64;
      neighbours[high * words + low / 64] |= uint64_t{1} << low % 64;
    }
  }
  return chosen;
}

/// The tree from vertex 0 on, breadth first. kWords: of a set of vertices, 0 if there are more.
template <class T>
template <int kWords>
void TreeThresholds<T>::walk() {
  const int64_t words = kWords != 0 ? kWords : words_, vertices = vertices_;
  uint64_t* const neighbours = neighbours_.data();
  uint64_t* const below = below_.data();
  int64_t* const vertex = vertex_.data();
  int64_t* const parent = parent_.data();
  vertex[0] = 0;
  int64_t count = 1;
  for (int64_t i = 0; count < vertices; ++i) {
    const int64_t v = vertex[i];
    for (int64_t word = 0; word < words; ++word) {
      for (uint64_t rest = neighbours[v * words + word]; rest != 0; rest &= rest - 1) {
        const int64_t w = 64 * word + std::countr_zero(rest);
        neighbours[w * words + v / 64] &= ~(uint64_t{1} << v % 64);
        vertex[count] = w;
        parent[count++] = v;
      }
    }
  }
  std::fill_n(below, vertices * words, uint64_t{0});
  for (int64_t v = 0; v < vertices; ++v) below[v * words + v / 64] = uint64_t{1} << v % 64;
  for (int64_t i = vertices - 1; i > 0; --i) {
    for (int64_t word = 0; word < words; ++word) {
      below[parent[i] * words + word] |= below[vertex[i] * words + word];
    }
  }
}

/// Moves the edges of the tree from the numbers to the walk.
template <class T>
void TreeThresholds<T>::take_edges() {
  Number *const number = number_.data(), *const above = above_.data();
  const int64_t *const first = first_.data(), *const vertex = vertex_.data();
  const int64_t* const parent = parent_.data();
  for (int64_t i = 1; i < vertices_; ++i) {
    const int64_t e = first[std::min(vertex[i], parent[i])] + std::max(vertex[i], parent[i]);
    above[i] = number[e];
    number[e] = kNoEdge<T>;
  }
}

template <class T>
void TreeThresholds<T>::rank_edges(const T* d) {
  threshold_kernels<T>().rank_edges(above_.data() + 1, vertices_ - 1, rank_.data() + 1);
  for (int64_t i = 1; i < vertices_; ++i) {
    const EdgeRank rank = rank_[i];
    ranked_weight_[rank] = weight_of<T>(above_[i]);
    ranked_gain_[rank] = gain_of(d, edge_of(above_[i]));
    ranked_edge_[rank] = edge_of(above_[i]);
  }
}

template <class T>
TreeWalk TreeThresholds<T>::tree() const {
  return {.vertices = vertices_,
          .stride = stride_,
          .rank_stride = rank_stride_,
          .words = words_,
          .vertex = vertex_.data(),
          .parent = parent_.data(),
          .below = below_.data()};
}

template <class T>
bool TreeThresholds<T>::find(const SwapRow<T>& row, double* threshold, double* difference) {
  if (read_tree(row) != chosen_) return false;
  find_partners(row);
  if (directed_) {
    write_directed(row, threshold, difference);
  } else {
    write_undirected(row, threshold, difference);
  }
  return true;
}

template <class T>
void TreeThresholds<T>::find_partners(const SwapRow<T>& row) {
  const ThresholdKernels<T>& kernels = threshold_kernels<T>();
  const T* weight = row.x;
  if (directed_) {
    for (int64_t e = 0; e < edges_; ++e) weight_[e] = row.x[entry_[e]] + row.x[reverse_[e]];
    weight = weight_.data();
  }
  kernels.number_edges(weight, edges_, number_.data());
  if (words_ == 1) {
    walk<1>();
  } else {
    walk<0>();
  }
  take_edges();
  rank_edges(row.d);
  for (int64_t e = 0; row.mask != nullptr && e < edges_; ++e) {
    if (is_masked(row.mask, e)) number_[e] = kNoEdge<T>;
  }
  kernels.spread_edges(tree(), number_.data(), heavy_.data());
  kernels.sweep_up(tree(), heavy_.data(), best_.data());
  kernels.find_paths(tree(), rank_.data(), lightest_.data());
}

template <class T>
int64_t TreeThresholds<T>::partner(int64_t j) const {
  const auto [low, high] = ends_[j];
  const int64_t e = edge_between(low, high);
  for (int64_t i = 1; i < vertices_; ++i) {
    if (edge_of(above_[i]) != static_cast<uint32_t>(e)) continue;
    return best_[i] == kNoEdge<T> ? -1 : int64_t{entry_[edge_of(best_[i])]};
  }
  if (number_[e] == kNoEdge<T>) return -1;
  return entry_[ranked_edge_[lightest_[low * rank_stride_ + high]]];
}

template <class T>
void TreeThresholds<T>::write_undirected(const SwapRow<T>& row, double* threshold,
                                         double* difference) {
  threshold_kernels<T>().write_paths(tree(), lightest_.data(), ranked(), row.d, threshold,
                                     difference);
  for (int64_t e = 0; row.mask != nullptr && e < edges_; ++e) {
    if (is_masked(row.mask, e)) threshold[e] = kNone;
  }
  for (int64_t i = 1; i < vertices_; ++i) {
    const uint32_t e = edge_of(above_[i]);
    if (best_[i] == kNoEdge<T>) {
      threshold[e] = kNone;
      continue;
    }
    threshold[e] = static_cast<double>(weight_of<T>(best_[i]));
    difference[e] = ranked_gain_[rank_[i]] - gain_of(row.d, edge_of(best_[i]));
  }
}

template <class T>
void TreeThresholds<T>::write_directed(const SwapRow<T>& row, double* threshold,
                                       double* difference) {
  const auto write = [&](int64_t e, T needed, double gain) {
    const uint32_t a = entry_[e], b = reverse_[e];
    threshold[a] = static_cast<double>(needed - row.x[b]);
    threshold[b] = static_cast<double>(needed - row.x[a]);
    difference[a] = difference[b] = gain_of(row.d, e) - gain;
  };
  int64_t e = 0;
  for (int64_t v = 0; v < vertices_; ++v) {
    for (int64_t w = v + 1; w < vertices_; ++w, ++e) {
      if (number_[e] == kNoEdge<T>) {
        threshold[entry_[e]] = threshold[reverse_[e]] = kNone;
      } else {
        const EdgeRank rank = lightest_[v * rank_stride_ + w];
        write(e, ranked_weight_[rank], ranked_gain_[rank]);
      }
    }
  }
  for (int64_t i = 1; i < vertices_; ++i) {
    if (best_[i] == kNoEdge<T>) continue;
    const uint32_t other = edge_of(best_[i]);
    write(edge_of(above_[i]), weight_of<T>(best_[i]), gain_of(row.d, other));
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
