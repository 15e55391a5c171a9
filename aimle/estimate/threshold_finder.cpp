#include "aimle/estimate/threshold_finder.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "aimle/base/check.h"
#include "aimle/estimate/threshold_kernels.h"

namespace aimle {

template <class T>
ThresholdFinder<T>::ThresholdFinder(const Solver& solver) {
  AIMLE_CHECK(!std::holds_alternative<GridPath>(solver),
              "[aimle::thresholds] expected argmax, topk or spanning_tree but got grid_path: an "
              "entry of a path has no single partner");
  n_ = std::visit([](const auto& concrete) { return concrete.size(); }, solver);
  if (const auto* topk = std::get_if<TopK>(&solver)) chosen_ = topk->k;
  if (std::holds_alternative<Argmax>(solver)) chosen_ = 1;
  const auto* tree = std::get_if<SpanningTree>(&solver);
  if (tree == nullptr) return;
  tree_ = true;
  graph_ = *tree;
  const bool directed = tree->layout == SpanningTree::Layout::kDirected;
  chosen_ = (directed ? 2 : 1) * (tree->vertices - 1);
  const auto vertices = static_cast<size_t>(tree->vertices);
  const auto edges = static_cast<size_t>(tree->edges());
  weight_.resize(edges);
  exists_.resize(edges);
  in_tree_.resize(edges);
  best_.resize(edges);
  first_.resize(vertices + 1);
  neighbour_.resize(2 * vertices);
  for (auto* by_vertex : {&vertex_, &up_, &end_, &stack_}) by_vertex->resize(vertices);
  light_.resize(vertices * vertices);
  heavy_.resize(vertices * vertices);
  for (int64_t i = 0; i < tree->vertices; ++i) {
    for (int64_t j = i + 1; j < tree->vertices; ++j) {
      const int64_t edge = SpanningTree::edge(i, j, tree->vertices);
      entry_.push_back(directed ? SpanningTree::arc(i, j, tree->vertices) : edge);
      reverse_.push_back(directed ? SpanningTree::arc(j, i, tree->vertices) : edge);
    }
  }
}

template <class T>
bool ThresholdFinder<T>::find(const T* x, const bool* mask, const int64_t* k, const Flag* in,
                              T* threshold, int64_t* partner) {
  int64_t count = 0;
  for (int64_t j = 0; j < n_; ++j) count += in[j] != 0;
  if (count != size_of_solution(k)) return false;
  if (tree_) {
    find_in_tree(x, mask, in, threshold, partner);
  } else {
    find_in_row(x, mask, in, threshold, partner);
  }
  return true;
}

template <class T>
void ThresholdFinder<T>::fold(const T* d, double* out) const {
  if (!tree_ || graph_.layout == SpanningTree::Layout::kUndirected) {
    std::copy_n(d, n_, out);
    return;
  }
  for (size_t e = 0; e < entry_.size(); ++e) {
    out[entry_[e]] = out[reverse_[e]] =
        static_cast<double>(d[entry_[e]]) + static_cast<double>(d[reverse_[e]]);
  }
}

template <class T>
void ThresholdFinder<T>::find_in_row(const T* x, const bool* mask, const Flag* in, T* threshold,
                                     int64_t* partner) const {
  const Rivals rivals = threshold_kernels<T>().rivals(x, mask, in, n_);
  for (int64_t j = 0; j < n_; ++j) {
    partner[j] = in[j] != 0 ? rivals.best_out : rivals.worst_in;
    threshold[j] = partner[j] < 0 ? T(0) : x[partner[j]];
  }
}

template <class T>
void ThresholdFinder<T>::read_graph(const T* x, const bool* mask, const Flag* in) {
  const int64_t n = graph_.vertices;
  const bool directed = graph_.layout == SpanningTree::Layout::kDirected;
  std::fill(first_.begin(), first_.end(), 0);
  for (int64_t i = 0, e = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++e) {
      const int64_t a = entry_[e], b = reverse_[e];
      weight_[e] = directed ? x[a] + x[b] : x[a];
      exists_[e] = mask == nullptr || (mask[a] && mask[b]);
      in_tree_[e] = in[a] != 0;
      if (!in_tree_[e]) continue;
      ++first_[i + 1];
      ++first_[j + 1];
    }
  }
  for (int64_t i = 0; i < n; ++i) first_[i + 1] += first_[i];
  std::copy_n(first_.begin(), n, stack_.begin());  // where the next neighbour goes
  for (int64_t i = 0, e = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++e) {
      if (!in_tree_[e]) continue;
      neighbour_[stack_[i]++] = j;
      neighbour_[stack_[j]++] = i;
    }
  }
}

template <class T>
typename ThresholdFinder<T>::Key ThresholdFinder<T>::key(T weight, int64_t edge) {
  constexpr int kTop = std::numeric_limits<Bits>::digits - 1;
  const Bits bits = std::bit_cast<Bits>(weight + T{0});  // -0 becomes +0
  const Bits ordered = bits ^ ((Bits{0} - (bits >> kTop)) | (Bits{1} << kTop));
  return Key{ordered} << 32 | static_cast<uint32_t>(~edge);
}

template <class T>
void ThresholdFinder<T>::order_vertices() {
  int64_t seen = 0, waiting = 0;
  std::vector<int64_t>& above = end_;  // by vertex: the position of its parent, until it is left
  stack_[waiting++] = 0;
  above[0] = -1;
  while (waiting > 0) {
    const int64_t v = stack_[--waiting], at = seen++;
    vertex_[at] = v;
    up_[at] = above[v];
    const int64_t parent = up_[at] < 0 ? -1 : vertex_[up_[at]];
    for (int64_t slot = first_[v]; slot < first_[v + 1]; ++slot) {
      const int64_t child = neighbour_[slot];
      if (child == parent) continue;
      above[child] = at;
      stack_[waiting++] = child;
    }
  }
  for (int64_t at = 0; at < seen; ++at) end_[at] = at + 1;
  for (int64_t at = seen - 1; at > 0; --at) end_[up_[at]] = std::max(end_[up_[at]], end_[at]);
}

template <class T>
void ThresholdFinder<T>::find_in_tree(const T* x, const bool* mask, const Flag* in, T* threshold,
                                      int64_t* partner) {
  read_graph(x, mask, in);
  order_vertices();
  std::fill(best_.begin(), best_.end(), -1);
  const int64_t n = graph_.vertices;
  const auto edge = [&](int64_t a, int64_t b) {
    const int64_t i = vertex_[a], j = vertex_[b];
    return SpanningTree::edge(std::min(i, j), std::max(i, j), n);
  };

  // Downwards: a path to a new vertex is a path to its parent and one edge more.
  constexpr Key kNoPath = ~Key{0};
  light_[0] = kNoPath;
  for (int64_t a = 1; a < n; ++a) {
    const int64_t e = edge(a, up_[a]);
    const Key last = key(weight_[e], e);
    const Key* above = light_.data() + up_[a] * n;
    Key* row = light_.data() + a * n;
    for (int64_t b = 0; b < a; ++b) row[b] = std::min(above[b], last);
    for (int64_t b = 0; b < a; ++b) light_[b * n + a] = row[b];
    row[a] = kNoPath;
  }
  for (int64_t a = 0; a < n; ++a) {
    heavy_[a * n + a] = 0;
    for (int64_t b = 0; b < a; ++b) {
      const int64_t e = edge(a, b);
      const bool other = exists_[e] && !in_tree_[e];
      if (other) best_[e] = edge_of(light_[a * n + b]);
      heavy_[a * n + b] = heavy_[b * n + a] = other ? key(weight_[e], e) : Key{0};
    }
  }
  // Upwards: the cut that a tree edge leaves is what lies below it against the rest.
  for (int64_t a = n - 1; a > 0; --a) {
    const Key* row = heavy_.data() + a * n;
    Key* above = heavy_.data() + up_[a] * n;
    Key best = 0;
    for (int64_t b = 0; b < a; ++b) best = std::max(best, row[b]);
    for (int64_t b = end_[a]; b < n; ++b) best = std::max(best, row[b]);
    for (int64_t b = 0; b < n; ++b) above[b] = std::max(above[b], row[b]);
    if (best != 0) best_[edge(a, up_[a])] = edge_of(best);
  }

  const bool directed = graph_.layout == SpanningTree::Layout::kDirected;
  for (size_t e = 0; e < best_.size(); ++e) {
    const int64_t a = entry_[e], b = reverse_[e], other = best_[e];
    const T needed = other < 0 ? T(0) : weight_[other];
    partner[a] = partner[b] = other < 0 ? -1 : entry_[other];
    threshold[a] = directed ? needed - x[b] : needed;
    threshold[b] = directed ? needed - x[a] : needed;
  }
}

template class ThresholdFinder<float>;
template class ThresholdFinder<double>;

}  // namespace aimle
