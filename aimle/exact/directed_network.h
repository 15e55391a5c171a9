// Networks of arcs from heads to dependents, and from roots, and the elimination of their vertices;
// see arborescence_distribution.h.
#pragma once

#include <cstdint>
#include <vector>

#include "aimle/exact/log_domain.h"

namespace aimle::detail {

/// For vertices h and d the weight w of the arc h -> d, for each d that of the arc from the roots,
/// h = kRoot, and, if wanted, their tangents t = d log w.
template <class Number>
class DirectedNetwork {
 public:
  static constexpr int64_t kRoot = -1;

  /// No arcs, no tangents.
  void reset(int64_t vertices) {
    vertices_ = size_ = vertices;
    w_.assign(static_cast<size_t>((size_ + 1) * size_), Number::zero());
    t_.clear();
  }
  void start_tangents() { t_.assign(w_.size(), 0.0); }

  int64_t vertices() const { return vertices_; }
  /// Arcs into d are contiguous, that of the roots first.
  double& w(int64_t h, int64_t d) { return w_[index(h, d)]; }
  double& t(int64_t h, int64_t d) { return t_[index(h, d)]; }

  /// Eliminates the last vertex and returns its pivot. Arcs into it are not changed.
  double eliminate_last() {
    const int64_t k = --vertices_;
    double pivot = Number::zero();
    for (int64_t h = kRoot; h < k; ++h) pivot = Number::add(pivot, w(h, k));
    double of_pivot = 0;
    if (!t_.empty()) {
      for (int64_t h = kRoot; h < k; ++h) of_pivot += Number::ratio(w(h, k), pivot) * t(h, k);
    }
    const double* into_k = &w(kRoot, k);
    for (int64_t d = 0; d < k; ++d) {
      if (w(k, d) == Number::zero()) continue;
      const double share = Number::divide(w(k, d), pivot);
      double* into_d = &w(kRoot, d);
      if (t_.empty()) {
        for (int64_t i = 0; i <= k; ++i) {
          into_d[i] = Number::add(into_d[i], Number::multiply(into_k[i], share));
        }
      } else {
        const double* of_k = &t(kRoot, k);
        double* of_d = &t(kRoot, d);
        const double of_share = t(k, d) - of_pivot;
        for (int64_t i = 0; i <= k; ++i) {
          const double added = Number::multiply(into_k[i], share);
          if (added == Number::zero()) continue;
          into_d[i] = Number::add(into_d[i], added);
          of_d[i] += Number::ratio(added, into_d[i]) * (of_k[i] + of_share - of_d[i]);
        }
      }
      w(d, d) = Number::zero();
    }
    return pivot;
  }

  /// This network with the vertices `order` (positions in `from`), in that order.
  void take(const DirectedNetwork& from, const std::vector<int64_t>& order) {
    reset(static_cast<int64_t>(order.size()));
    if (!from.t_.empty()) start_tangents();
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
