// Networks of conductances and the elimination of their vertices; see tree_distribution.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aimle/exact/log_domain.h"

namespace aimle::detail {

/// A connected network: for vertices i > j the conductance w and, if requested, its tangent
/// t = d log w.
template <class Number>
class Network {
 public:
  /// No conductances, no tangents.
  void reset(int64_t vertices) {
    vertices_ = vertices;
    w_.assign(static_cast<size_t>(index(vertices, 0)), Number::zero());
    t_.clear();
  }
  /// From now on every conductance has a tangent, initially 0.
  void start_tangents() { t_.assign(w_.size(), 0.0); }

  int64_t vertices() const { return vertices_; }
  double& w(int64_t i, int64_t j) { return w_[static_cast<size_t>(index(i, j))]; }
  double& t(int64_t i, int64_t j) { return t_[static_cast<size_t>(index(i, j))]; }

  /// Adds a conductance to one of a network without tangents.
  void add(int64_t i, int64_t j, double conductance) {
    double& between = i > j ? w(i, j) : w(j, i);
    between = Number::add(between, conductance);
  }

  /// Eliminates the last vertex and returns its pivot.
  double eliminate_last() {
    const int64_t k = --vertices_;
    const double* star = w_.data() + index(k, 0);
    double pivot = Number::zero();
    for (int64_t l = 0; l < k; ++l) pivot = Number::add(pivot, star[l]);
    share_.resize(static_cast<size_t>(k));
    for (int64_t l = 0; l < k; ++l) share_[static_cast<size_t>(l)] = Number::divide(star[l], pivot);
    if (t_.empty()) {
      spread(star, k);
    } else {
      spread_with_tangents(star, k, pivot);
    }
    return pivot;
  }

  /// This network with the vertices `order` (positions in `from`), in that order.
  void take(const Network& from, const std::vector<int64_t>& order) {
    reset(static_cast<int64_t>(order.size()));
    if (!from.t_.empty()) start_tangents();
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

  void spread(const double* star, int64_t k) {
    size_t at = 0;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < i; ++j, ++at) {
        w_[at] = Number::add(w_[at], Number::multiply(star[i], share_[static_cast<size_t>(j)]));
      }
    }
  }

  void spread_with_tangents(const double* star, int64_t k, double pivot) {
    const double* tangent = t_.data() + index(k, 0);
    double of_pivot = 0;
    for (int64_t l = 0; l < k; ++l) of_pivot += Number::ratio(star[l], pivot) * tangent[l];
    size_t at = 0;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < i; ++j, ++at) {
        const double added = Number::multiply(star[i], share_[static_cast<size_t>(j)]);
        if (added == Number::zero()) continue;
        w_[at] = Number::add(w_[at], added);
        const double of_added = tangent[i] + tangent[j] - of_pivot;
        t_[at] += Number::ratio(added, w_[at]) * (of_added - t_[at]);
      }
    }
  }

  int64_t vertices_ = 0;
  std::vector<double> w_, t_, share_;
};

/// The conductance between every two vertices after eliminating all others:
/// visit(i, j, the network of these two), i > j, some pairs more than once.
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
    for (int64_t dropped = 0; dropped < 3; ++dropped) {
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
