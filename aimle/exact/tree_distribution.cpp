#include "aimle/exact/tree_distribution.h"

#include <algorithm>
#include <vector>

#include "aimle/exact/define_distribution.h"
#include "aimle/exact/network.h"
#include "aimle/exact/tree_samples.h"

namespace aimle {
namespace {

using detail::Linear;
using detail::Logarithmic;
using exact_row::EdgeAt;
using exact_row::pair_at;
using exact_row::pairs_of;
using exact_row::TreeRow;
using exact_row::TreeSampleScratch;

bool is_directed(const SpanningTree& solver) {
  return solver.layout == SpanningTree::Layout::kDirected;
}

/// One row after the other, in numbers of a type.
template <class Number>
class Evaluator {
 public:
  /// `w` are the row's logits, which are converted to conductances.
  template <class T>
  void evaluate(const TreeRow& row, std::vector<double>& w, const DistributionRows<T>& rows,
                int64_t size, int64_t i) {
    exact_row::load_network<Number>(alone_, row, w.data());
    if (rows.log_partition) {
      work_ = w;
      double pivots[2];
      rows.log_partition[i] = static_cast<T>(
          exact_row::log_partition_of_tree<Number>(alone_, row, work_.data(), pivots));
    }
    if (rows.covariance) {
      marginals<true>(row, w, rows.v + i * size, detail::row_of(rows.marginals, size, i),
                      rows.covariance + i * size);
    } else if (rows.marginals) {
      marginals<false, T>(row, w, nullptr, rows.marginals + i * size, nullptr);
    }
  }

 private:
  template <bool kTangents, class T>
  void marginals(const TreeRow& row, const std::vector<double>& w, const T* v, T* mu,
                 T* covariance) {
    const auto for_edges = [&](const auto& body) {
      exact_row::for_each_pair(alone_, row.n, [&](int32_t at, int32_t j, int32_t i) {
        body(static_cast<size_t>(at), j, i, EdgeAt::of(row.n, row.directed, i, j));
      });
    };
    network_.load(row.n, w.data());
    if constexpr (kTangents) {
      network_.start_tangents();
      for_edges([&](size_t at, int32_t j, int32_t i, const EdgeAt& edge) {
        if (w[at] != Number::zero()) network_.t(j, i) = edge.read(v);
      });
    }
    between_.resize(w.size());
    along_.resize(w.size());
    pairs_.run(network_, [&](int64_t i, int64_t j, detail::Network<Number>& two) {
      const auto at =
          static_cast<size_t>(pair_at(static_cast<int32_t>(i), static_cast<int32_t>(j)));
      between_[at] = two.w(1, 0);
      if constexpr (kTangents) along_[at] = two.t(1, 0);
    });
    for_edges([&](size_t at, int32_t, int32_t, const EdgeAt& edge) {
      const bool exists = w[at] != Number::zero();
      const double p = exists ? std::min(Number::ratio(w[at], between_[at]), 1.0) : 0.0;
      if (mu) edge.write(p, mu);
      if constexpr (kTangents) {
        edge.write(exists ? p * (edge.read(v) - along_[at]) : 0.0, covariance);
      }
    });
  }

  detail::OneThread alone_;
  detail::Network<Number> network_;
  detail::AllPairs<detail::Network<Number>> pairs_;
  std::vector<double> work_, between_, along_;
};

template <class T>
void evaluate_all(const SpanningTree& solver, const DistributionRows<T>& rows) {
  const int64_t size = solver.size();
  const auto n = static_cast<int32_t>(solver.vertices);
  std::vector<double> w(static_cast<size_t>(pairs_of(n)));
  std::vector<uint8_t> state(static_cast<size_t>(n));
  Evaluator<Linear> linear;
  Evaluator<Logarithmic> logarithmic;
  TreeRow row{};
  detail::OneThread alone;
  detail::for_each_row(
      rows, size,
      [&](const T* scores, const bool* mask, int64_t) {
        row = exact_row::read_tree(alone, n, is_directed(solver), scores, mask, w.data(),
                                   state.data());
        return row.status;
      },
      [&](int64_t i) {
        row.linear ? linear.evaluate(row, w, rows, size, i)
                   : logarithmic.evaluate(row, w, rows, size, i);
      });
}

/// The trees of one row after the other.
class Sampler {
 public:
  explicit Sampler(const SpanningTree& solver)
      : n_(static_cast<int32_t>(solver.vertices)),
        directed_(is_directed(solver)),
        memory_(static_cast<size_t>(TreeSampleScratch::doubles(n_))),
        cumulative_(static_cast<size_t>(n_) * static_cast<size_t>(n_)),
        scratch_(TreeSampleScratch::at(memory_.data(), n_)) {
    scratch_.cumulative = cumulative_.data();  // walks serve all samples of a row
  }

  template <class T>
  Status read(const T* scores, const bool* mask) {
    row_ = exact_row::read_tree(alone_, n_, directed_, scores, mask, scratch_.w, scratch_.state);
    return row_.status;
  }

  template <class T>
  void sample(const SampleRows<T>& rows, int64_t size, int64_t i) {
    const int32_t edges = sort_edges();
    row_.linear ? exact_row::load_network<Linear>(alone_, row_, scratch_.w)
                : exact_row::load_network<Logarithmic>(alone_, row_, scratch_.w);
    detail::Walks walks{};
    if (row_.walkable) walks = exact_row::start_walks(alone_, n_, scratch_);
    conductances_.assign(scratch_.w, scratch_.w + pairs_of(n_));
    for (int64_t s = 0; s < rows.samples; ++s) {
      T* z = rows.z + (i * rows.samples + s) * size;
      std::fill_n(z, size, T{0});
      const bool intact = exact_row::sample_tree(alone_, row_, edges, walks, scratch_, rows.key,
                                                 rows.first + i, s, z);
      if (!intact) std::copy(conductances_.begin(), conductances_.end(), scratch_.w);
    }
  }

 private:
  /// By descending logits; ties as listed by i < j. Returns how many there are.
  int32_t sort_edges() {
    int32_t* end = scratch_.order;
    for (int32_t i = 0; i < n_; ++i) {
      for (int32_t j = i + 1; j < n_; ++j) {
        if (scratch_.w[pair_at(j, i)] != -std::numeric_limits<double>::infinity()) {
          *end++ = pair_at(j, i);
        }
      }
    }
    std::stable_sort(scratch_.order, end,
                     [this](int32_t a, int32_t b) { return scratch_.w[a] > scratch_.w[b]; });
    return static_cast<int32_t>(end - scratch_.order);
  }

  int32_t n_;
  bool directed_;
  std::vector<double> memory_, cumulative_, conductances_;
  TreeSampleScratch scratch_;
  TreeRow row_{};
  detail::OneThread alone_;
};

template <class T>
void sample_all(const SpanningTree& solver, const SampleRows<T>& rows) {
  Sampler sampler(solver);
  detail::for_each_row(
      rows, solver.size(),
      [&](const T* scores, const bool* mask, int64_t) { return sampler.read(scores, mask); },
      [&](int64_t i) { sampler.sample(rows, solver.size(), i); });
}

}  // namespace

AIMLE_DEFINE_DISTRIBUTION(SpanningTree)

}  // namespace aimle
