// Networks of arcs from heads to dependents, and from roots, and the elimination of their vertices;
// see arborescence_distribution.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/exact/arborescence_row.h"

namespace aimle::detail {

/// For vertices h and d the weight w of the arc h -> d, for each d that of the arc from the roots,
/// h = kRoot, and, if wanted, their tangents t = d log w.
template <class Number>
class DirectedNetwork {
 public:
  static constexpr int64_t kRoot = -1;

  /// These weights [vertices, vertices] by dependents, roots on the diagonal; no tangents.
  void load(int64_t vertices, const double* weights) {
    vertices_ = size_ = vertices;
    w_.resize(static_cast<size_t>((size_ + 1) * size_));
    t_.clear();
    for (int64_t d = 0; d < size_; ++d) {
      std::copy_n(weights + d * size_, size_, &w(0, d));
      w(kRoot, d) = w(d, d);
    }
  }
  void start_tangents() { t_.assign(w_.size(), 0.0); }

  int64_t vertices() const { return vertices_; }
  /// Arcs into d are contiguous, that of the roots first.
  double& w(int64_t h, int64_t d) { return w_[index(h, d)]; }
  double& t(int64_t h, int64_t d) { return t_[index(h, d)]; }

  /// Eliminates the last vertex and returns its pivot. Arcs into it are not changed.
  double eliminate_last() {
    const auto k = static_cast<int32_t>(--vertices_);
    OneThread alone;
    using exact_row::eliminate_arcs;
    return t_.empty()
               ? eliminate_arcs<Number, false>(alone, 0, k, size_ + 1, w_.data(), w_.data()).pivot
               : eliminate_arcs<Number, true>(alone, 0, k, size_ + 1, w_.data(), t_.data()).pivot;
  }

  /// This network with the vertices `order` (positions in `from`), in that order.
  void take(const DirectedNetwork& from, const std::vector<int64_t>& order) {
    vertices_ = size_ = static_cast<int64_t>(order.size());
    w_.resize(static_cast<size_t>((size_ + 1) * size_));
    t_.resize(from.t_.empty() ? 0 : w_.size());
    for (int64_t d = 0; d < size_; ++d) {
      for (int64_t h = kRoot; h < size_; ++h) {
        const int64_t head = h == kRoot ? kRoot : order[static_cast<size_t>(h)];
        const size_t source = from.index(head, order[static_cast<size_t>(d)]);
        w(h, d) = from.w_[source];
        if (!t_.empty()) t(h, d) = from.t_[source];
      }
    }
  }

 private:
  size_t index(int64_t h, int64_t d) const { return static_cast<size_t>(d * (size_ + 1) + h + 1); }

  int64_t vertices_ = 0;  // those that are left
  int64_t size_ = 0;
  std::vector<double> w_, t_;
};

}  // namespace aimle::detail
