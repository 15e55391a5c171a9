#include "aimle/estimate/thresholds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "aimle/base/check.h"
#include "aimle/estimate/block.h"
#include "aimle/estimate/fixed_sum.h"
#include "aimle/estimate/fixed_total.h"
#include "aimle/estimate/report.h"
#include "aimle/estimate/threshold_weight.h"

namespace aimle {

// ---- Thresholds of a row
// --------------------------------------------------------------------------

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
bool ThresholdFinder<T>::find(const T* x, const bool* mask, const int64_t* k, const uint8_t* chosen,
                              T* threshold, int64_t* partner) {
  int64_t count = 0;
  for (int64_t j = 0; j < n_; ++j) count += chosen[j];
  if (count != (k != nullptr ? *k : chosen_)) return false;
  if (tree_) {
    find_in_tree(x, mask, chosen, threshold, partner);
  } else {
    find_in_row(x, mask, chosen, threshold, partner);
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
void ThresholdFinder<T>::find_in_row(const T* x, const bool* mask, const uint8_t* chosen,
                                     T* threshold, int64_t* partner) const {
  int64_t worst_in = -1, best_out = -1;  // of equals, the later one in and the earlier one out
  for (int64_t j = 0; j < n_; ++j) {
    if (mask != nullptr && !mask[j]) continue;
    if (chosen[j]) {
      if (worst_in < 0 || x[j] <= x[worst_in]) worst_in = j;
    } else if (best_out < 0 || x[j] > x[best_out]) {
      best_out = j;
    }
  }
  for (int64_t j = 0; j < n_; ++j) {
    partner[j] = chosen[j] ? best_out : worst_in;
    threshold[j] = partner[j] < 0 ? T(0) : x[partner[j]];
  }
}

template <class T>
void ThresholdFinder<T>::read_graph(const T* x, const bool* mask, const uint8_t* chosen) {
  const int64_t n = graph_.vertices;
  const bool directed = graph_.layout == SpanningTree::Layout::kDirected;
  std::fill(first_.begin(), first_.end(), 0);
  for (int64_t i = 0, e = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++e) {
      const int64_t a = entry_[e], b = reverse_[e];
      weight_[e] = directed ? x[a] + x[b] : x[a];
      exists_[e] = mask == nullptr || (mask[a] && mask[b]);
      in_tree_[e] = chosen[a];
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
void ThresholdFinder<T>::find_in_tree(const T* x, const bool* mask, const uint8_t* chosen,
                                      T* threshold, int64_t* partner) {
  read_graph(x, mask, chosen);
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

// ---- The gradient
// ---------------------------------------------------------------------------------

namespace {

/// What the cap took, as shares of weights and of the gradient's absolute value.
struct Capped {
  double weights = 0.0;
  double capped = 0.0;
  double mass = 0.0;  // sum of w |d_j - d_m| without the cap
  double lost = 0.0;  // of which the cap took
};

/// The sums of one example, entry j of every sample in partial sum j mod 32 (fixed_sum.h).
struct CappedPartials {
  double mass[kSumLanes] = {};
  double lost[kSumLanes] = {};
};

template <class T>
class ThresholdSum {
 public:
  ThresholdSum(const EstimatorSettings& settings, const Solver& solver, const Examples<T>& examples)
      : settings_(settings),
        target_(std::get<ThresholdTarget>(settings.target)),
        examples_(examples),
        finder_(solver),
        threshold_(static_cast<size_t>(examples.n)),
        partner_(threshold_.size()),
        chosen_(threshold_.size()),
        gain_(threshold_.size()),
        sum_(threshold_.size()) {
    if (settings.noise.kind == NoiseKind::kNone) target_.order = ThresholdTarget::Order::kFirst;
  }

  /// Adds a sample of example b: its scores x [n], packed solution and gradient d [n].
  void add(int64_t b, const T* x, const uint8_t* bits, const T* d) {
    const int64_t n = examples_.n;
    for (int64_t j = 0; j < n; ++j) chosen_[j] = (bits[j / 8] >> (j % 8)) & 1;
    const bool* mask = examples_.mask != nullptr ? examples_.mask + b * n : nullptr;
    const int64_t* k = examples_.k != nullptr ? examples_.k + b : nullptr;
    if (!finder_.find(x, mask, k, chosen_.data(), threshold_.data(), partner_.data())) {
      std::fill(sum_.begin(), sum_.end(), std::numeric_limits<double>::quiet_NaN());
      return;
    }
    finder_.fold(d, gain_.data());
    const double tau = settings_.theta_temperature;
    const double sign = settings_.sense == Sense::kMin ? -1.0 : 1.0;
    const bool trapezoid = target_.order == ThresholdTarget::Order::kTrapezoid;
    const T* theta = examples_.theta + b * n;
    for (int64_t j = 0; j < n; ++j) {
      if (partner_[j] < 0 || !is_free(examples_, b, j)) continue;
      const auto t = static_cast<double>(threshold_[j]);
      if (std::isinf(t)) continue;  // no noise gets there
      const double difference = gain_[j] - gain_[partner_[j]];
      const double u = (t - sign * static_cast<double>(theta[j])) / tau;
      const double weight = threshold_weight(target_.density, target_.order, u, chosen_[j] != 0);
      const double kept = std::min(weight, target_.max_weight);
      capped_.weights += 1.0;
      capped_.capped += weight > kept;
      partials_.mass[j % kSumLanes] += weight * std::abs(difference);
      partials_.lost[j % kSumLanes] += (weight - kept) * std::abs(difference);
      sum_[j] += (trapezoid ? 0.5 : 1.0) * kept * difference;
    }
    changes_.samples += 1;
  }

  /// Writes the gradient of example b and starts the next one.
  Capped finish(int64_t b, T* dtheta) {
    const int64_t n = examples_.n;
    const double total =
        fixed_sum(n, [&](int64_t j) { return is_free(examples_, b, j) ? sum_[j] : 0.0; });
    double free = 0.0;
    for (int64_t j = 0; j < n; ++j) free += is_free(examples_, b, j);
    const double mean = total / std::max(free, 1.0);
    const double samples =
        settings_.output == Output::kMean ? static_cast<double>(settings_.samples) : 1.0;
    const double sign = settings_.sense == Sense::kMin ? -1.0 : 1.0;
    const double scale = sign / (settings_.theta_temperature * samples);
    for (int64_t j = 0; j < n; ++j) {
      const bool moves = is_free(examples_, b, j);
      const double g = moves ? scale * (sum_[j] - mean) : 0.0;
      dtheta[j] = static_cast<T>(g);
      changes_.entries += moves;
      changes_.zeros += moves && g == 0.0;
      sum_[j] = 0.0;
    }
    capped_.mass = fold(partials_.mass);
    capped_.lost = fold(partials_.lost);
    partials_ = {};
    return std::exchange(capped_, {});
  }

  const Changes& changes() const { return changes_; }

 private:
  const EstimatorSettings& settings_;
  ThresholdTarget target_;
  const Examples<T>& examples_;
  ThresholdFinder<T> finder_;
  std::vector<T> threshold_;
  std::vector<int64_t> partner_;
  std::vector<uint8_t> chosen_;
  std::vector<double> gain_, sum_;
  Capped capped_;
  CappedPartials partials_;
  Changes changes_;
};

}  // namespace

template <class T>
BackwardReport threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                                  const Examples<T>& examples, const BackwardPass<T>& pass,
                                  const Executor& executor) {
  const int64_t n = examples.n, samples = settings.samples;
  const int64_t gradients = gradient_rows(settings);
  const GradientRows<T> dy = pass.rows(settings, n);
  const Signs sign = signs(settings.sense, Sense::kMax);
  const ThresholdFinder<T> supported(solver);  // throws here rather than on a thread
  const double ns = 20.0 * static_cast<double>(samples * n);
  std::vector<Capped> capped(static_cast<size_t>(examples.count));
  ReportBuilder report(0);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * samples);
    std::vector<T> x(static_cast<size_t>(block.capacity() * n)), widened(static_cast<size_t>(n));
    ThresholdSum<T> sum(settings, solver, examples);
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      rows.perturb(sign, x.data());
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t b = rows.example(i), g = gradients == 1 ? 0 : rows.sample(i);
        sum.add(b, x.data() + i * n, pass.bits + (rows.first() + i) * bytes_per_row(n),
                dy.row(b, g, n, widened.data()));
        if (rows.sample(i) + 1 == samples) {
          capped[static_cast<size_t>(b)] = sum.finish(b, pass.dtheta + b * n);
        }
      }
    });
    report.add(sum.changes());
  });
  const auto total = [&](double Capped::*part) {
    return fixed_total(examples.count,
                     [&](int64_t b) { return capped[static_cast<size_t>(b)].*part; });
  };
  BackwardReport result = report.build();
  result.capped_share = total(&Capped::capped) / std::max(total(&Capped::weights), 1.0);
  const double mass = total(&Capped::mass);
  result.capped_mass = mass > 0.0 ? total(&Capped::lost) / mass : mass;
  return result;
}

template BackwardReport threshold_backward(const EstimatorSettings&, const Solver&,
                                           const Examples<float>&, const BackwardPass<float>&,
                                           const Executor&);
template BackwardReport threshold_backward(const EstimatorSettings&, const Solver&,
                                           const Examples<double>&, const BackwardPass<double>&,
                                           const Executor&);

}  // namespace aimle
