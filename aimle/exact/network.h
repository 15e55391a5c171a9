// Networks of conductances and the elimination of their vertices; see tree_distribution.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/exact/tree_row.h"

namespace aimle::detail {

/// A connected network: for vertices i > j the conductance w and, if requested, its tangent
/// t = d log w.
template <class Number>
class Network {
 public:
  /// These conductances, no tangents.
  void load(int64_t vertices, const double* w) {
    vertices_ = vertices;
    w_.assign(w, w + index(vertices, 0));
    t_.clear();
  }
  /// From now on every conductance has a tangent, initially 0.
  void start_tangents() { t_.assign(w_.size(), 0.0); }

  int64_t vertices() const { return vertices_; }
  double& w(int64_t i, int64_t j) { return w_[static_cast<size_t>(index(i, j))]; }
  double& t(int64_t i, int64_t j) { return t_[static_cast<size_t>(index(i, j))]; }

  /// Eliminates the last vertex.
  void eliminate_last() {
    OneThread alone;
    double pivots[2];
    const auto k = static_cast<int32_t>(--vertices_);
    if (t_.empty()) {
      exact_row::eliminate_last<Number, false>(alone, k, w_.data(), w_.data(), pivots);
    } else {
      exact_row::eliminate_last<Number, true>(alone, k, w_.data(), t_.data(), pivots);
    }
  }

  /// This network with the vertices `order` (positions in `from`), in that order.
  void take(const Network& from, const std::vector<int64_t>& order) {
    vertices_ = static_cast<int64_t>(order.size());
    w_.resize(static_cast<size_t>(index(vertices_, 0)));
    t_.resize(from.t_.empty() ? 0 : w_.size());
    size_t at = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = 0; j < i; ++j, ++at) {
        const auto source =
            static_cast<size_t>(index(std::max(order[i], order[j]), std::min(order[i], order[j])));
        w_[at] = from.w_[source];
        if (!t_.empty()) t_[at] = from.t_[source];
      }
    }
  }

 private:
  static int64_t index(int64_t i, int64_t j) { return i * (i - 1) / 2 + j; }

  int64_t vertices_ = 0;
  std::vector<double> w_, t_;
};

/// The conductance between every two vertices after eliminating all others:
/// visit(i, j, the network of these two), i > j, some pairs more than once. The last visit of a pair
/// is the one whose parts come first, which is the only one on a GPU.
template <class AnyNetwork>
class AllPairs {
 public:
  template <class Visit>
  void run(AnyNetwork& network, Visit visit) {
    std::vector<int64_t> names(static_cast<size_t>(network.vertices()));
    for (size_t i = 0; i < names.size(); ++i) names[i] = static_cast<int64_t>(i);
    descend(network, names, 0, visit);
  }

 private:
  struct Level {
    AnyNetwork network;
    std::vector<int64_t> order, names;
  };

  /// A level is moved out while it is in use, because deeper ones may make the list grow.
  template <class Visit>
  void descend(AnyNetwork& network, const std::vector<int64_t>& names, size_t depth, Visit& visit) {
    const int64_t n = network.vertices();
    if (n < 2) return;
    if (n == 2) return visit(names[1], names[0], network);
    if (levels_.size() <= depth) levels_.resize(depth + 1);
    for (int64_t dropped = 2; dropped >= 0; --dropped) {
      Level level = std::move(levels_[depth]);
      level.order.clear();
      level.names.clear();
      for (int64_t i = 0; i < n; ++i) {
        if (i % 3 == dropped) continue;
        level.order.push_back(i);
        level.names.push_back(names[static_cast<size_t>(i)]);
      }
      const auto kept = static_cast<int64_t>(level.order.size());
      for (int64_t i = dropped; i < n; i += 3) level.order.push_back(i);
      level.network.take(network, level.order);
      while (level.network.vertices() > kept) level.network.eliminate_last();
      descend(level.network, level.names, depth + 1, visit);
      levels_[depth] = std::move(level);
    }
  }

  std::vector<Level> levels_;
};

}  // namespace aimle::detail
