#include "aimle/cuda/exact.h"

#include "aimle/base/check.h"
#include "aimle/cuda/arborescence_distribution.h"
#include "aimle/cuda/exact_rows.cuh"
#include "aimle/cuda/tree_distribution.h"
#include "aimle/exact/categorical_row.h"
#include "aimle/exact/k_subset_row.h"
#include "aimle/exact/tree_samples.h"

namespace aimle::cuda {
namespace {

using namespace exact_row;  // NOLINT(google-build-using-namespace): the texts for both devices

struct CategoricalRows {
  int64_t n;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const int64_t begin = row * n;
    const CategoricalRow read =
        read_weights(group, n, rows.scores + begin, at(rows.mask, begin), memory);
    if (!accept(group, rows, n, row, read.status)) return;
    write_log_partition(group, rows, row, read.largest + log(read.sum));
    evaluate_categorical(group, n, read, memory, at(rows.v, begin), at(rows.marginals, begin),
                         at(rows.covariance, begin));
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double* memory) const {
    const CategoricalRow read =
        read_weights(group, n, rows.scores + row * n, at(rows.mask, row * n), memory);
    if (!accept(group, rows, n, row, read.status)) return;
    sample_categorical(group, n, read, memory, key, rows.first + row, rows.samples,
                       rows.z + row * rows.samples * n);
  }
};

__device__ int64_t within(int64_t k, int64_t n) { return k < 0 ? 0 : k > n ? n : k; }

struct KSubsetRows {
  int64_t n;
  int64_t k;
  KSubsetScratch::Tables tables;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const int64_t begin = row * n, wanted = rows.k == nullptr ? k : rows.k[row];
    const KSubsetScratch scratch = KSubsetScratch::at(memory, n, within(wanted, n), tables);
    const Coins coins =
        read_coins(group, n, wanted, rows.scores + begin, at(rows.mask, begin), scratch);
    if (!accept(group, rows, n, row, coins.status)) return;
    if (rows.log_partition != nullptr) {
      const double log_p = coins.certain ? 0.0 : log_probability(group, coins, scratch);
      if (group.rank() == 0) rows.log_partition[row] = static_cast<T>(coins.log_scale + log_p);
    }
    if (rows.marginals == nullptr && rows.covariance == nullptr) return;
    fill_marginals(group, coins, scratch);
    if (rows.marginals != nullptr) {
      for (int64_t j = group.rank(); j < n; j += group.size()) {
        rows.marginals[begin + j] = static_cast<T>(scratch.mu[j]);
      }
    }
    if (rows.covariance == nullptr) return;
    write_covariance(group, coins, rows.v + begin, scratch, rows.covariance + begin);
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double* memory) const {
    const int64_t wanted = rows.k == nullptr ? k : rows.k[row];
    const KSubsetScratch scratch = KSubsetScratch::at(memory, n, within(wanted, n), tables);
    const Coins coins =
        read_coins(group, n, wanted, rows.scores + row * n, at(rows.mask, row * n), scratch);
    if (!accept(group, rows, n, row, coins.status)) return;
    sample_coins(
        group, coins, scratch, key, rows.first + row, rows.samples, n, [](int64_t j) { return j; },
        rows.z + row * rows.samples * n);
  }
};

struct TreeRows {
  int32_t vertices;
  bool directed;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const int64_t size = int64_t{directed ? 2 : 1} * pairs_of(vertices), begin = row * size;
    const TreeScratch scratch = TreeScratch::at(memory, vertices, rows.covariance != nullptr);
    const TreeRow tree = read_tree(group, vertices, directed, rows.scores + begin,
                                   at(rows.mask, begin), scratch.w, scratch.state(vertices));
    if (!accept(group, rows, size, row, tree.status)) return;
    if (tree.linear) {
      evaluate_in<aimle::detail::Linear>(group, rows, row, begin, tree, scratch);
    } else {
      evaluate_in<aimle::detail::Logarithmic>(group, rows, row, begin, tree, scratch);
    }
  }

  /// One tree per group: "row" counts the samples of all rows.
  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row_and_sample,
                         double* memory) const {
    const int64_t size = int64_t{directed ? 2 : 1} * pairs_of(vertices);
    const int64_t row = row_and_sample / rows.samples, s = row_and_sample % rows.samples;
    const TreeSampleScratch scratch = TreeSampleScratch::at(memory, vertices);
    const TreeRow tree = read_tree(group, vertices, directed, rows.scores + row * size,
                                   at(rows.mask, row * size), scratch.w, scratch.state);
    T* const z = rows.z + row_and_sample * size;
    const bool accepted = tree.status == Status::kOk;
    fill(group, z, size, accepted ? T(0) : static_cast<T>(NAN));
    if (group.rank() == 0 && s == 0) rows.status[row] = tree.status;
    group.sync();
    if (accepted) cuda::sample_tree(group, tree, scratch, key, rows.first + row, s, z);
  }

 private:
  template <class Number, class T, class Group>
  __device__ void evaluate_in(Group& group, const DistributionRows<T>& rows, int64_t row,
                              int64_t begin, const TreeRow& tree,
                              const TreeScratch& scratch) const {
    load_network<Number>(group, tree, scratch.w);
    T* const mu = at(rows.marginals, begin);
    if (rows.covariance != nullptr) {
      evaluate_tree<Number, true>(group, tree, rows.v + begin, scratch, mu,
                                  rows.covariance + begin);
    } else if (mu != nullptr) {
      evaluate_tree<Number, false, T>(group, tree, nullptr, scratch, mu, nullptr);
    }
    if (rows.log_partition == nullptr) return;
    const double a = log_partition_of_tree<Number>(group, tree, scratch.w, scratch.pivot);
    if (group.rank() == 0) rows.log_partition[row] = static_cast<T>(a);
  }
};

struct ArborescenceRows {
  int32_t vertices;
  bool single_root;

  /// One dependent per group: "row" counts those of all rows.
  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row_and_vertex,
                           double* memory) const {
    const int64_t row = row_and_vertex / vertices, begin = row * vertices * vertices;
    const auto d = static_cast<int32_t>(row_and_vertex % vertices);
    const bool tangents = rows.covariance != nullptr;
    const ArborescenceScratch scratch = ArborescenceScratch::at(memory, vertices, tangents);
    const ArborescenceRow read =
        read_arborescence(group, vertices, single_root, rows.scores + begin, at(rows.mask, begin),
                          scratch.x, scratch.state);
    T* const mu = at(rows.marginals, begin);
    T* const covariance = at(rows.covariance, begin);
    if (group.rank() == 0 && d == 0) rows.status[row] = read.status;
    double a = NAN;
    if (read.status != Status::kOk) {
      for (int32_t h = group.rank(); h < vertices; h += group.size()) {
        if (mu != nullptr) mu[h * vertices + d] = static_cast<T>(NAN);
        if (covariance != nullptr) covariance[h * vertices + d] = static_cast<T>(NAN);
      }
    } else if (read.linear) {
      a = evaluate_in<aimle::detail::Linear>(group, read, d, at(rows.v, begin), scratch, mu,
                                             covariance);
    } else {
      a = evaluate_in<aimle::detail::Logarithmic>(group, read, d, at(rows.v, begin), scratch, mu,
                                                  covariance);
    }
    if (rows.log_partition != nullptr && d == 0 && group.rank() == 0) {
      rows.log_partition[row] = static_cast<T>(a);
    }
  }

  /// One sample per group, like those of trees.
  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row_and_sample,
                         double* memory) const {
    const int64_t size = int64_t{vertices} * vertices;
    const int64_t row = row_and_sample / rows.samples, s = row_and_sample % rows.samples;
    const ArborescenceScratch scratch = ArborescenceScratch::at(memory, vertices, false);
    const ArborescenceRow read =
        read_arborescence(group, vertices, single_root, rows.scores + row * size,
                          at(rows.mask, row * size), scratch.x, scratch.state);
    T* const z = rows.z + row_and_sample * size;
    const bool accepted = read.status == Status::kOk;
    fill(group, z, size, accepted ? T(0) : static_cast<T>(NAN));
    if (group.rank() == 0 && s == 0) rows.status[row] = read.status;
    group.sync();
    if (!accepted) return;
    if (read.linear) {
      sample_in<aimle::detail::Linear>(group, read, scratch, key, rows.first + row, s, z);
    } else {
      sample_in<aimle::detail::Logarithmic>(group, read, scratch, key, rows.first + row, s, z);
    }
  }

 private:
  template <class Number, class T, class Group>
  __device__ double evaluate_in(Group& group, const ArborescenceRow& read, int32_t d, const T* v,
                                const ArborescenceScratch& scratch, T* mu, T* covariance) const {
    load_weights<Number>(group, read, scratch.x);
    if (covariance != nullptr) {
      return evaluate_arborescence<Number, true>(group, read, d, v, scratch, mu, covariance);
    }
    return evaluate_arborescence<Number, false, T>(group, read, d, nullptr, scratch, mu, nullptr);
  }

  template <class Number, class T, class Group>
  __device__ void sample_in(Group& group, const ArborescenceRow& read,
                            const ArborescenceScratch& scratch, Key key, int64_t b, int64_t s,
                            T* z) const {
    load_weights<Number>(group, read, scratch.x);
    sample_arborescence<Number>(group, vertices, scratch, key, b, s, z);
  }
};

template <class Solver>
void check_vertices(const Solver& solver) {
  AIMLE_CHECK(solver.vertices <= kMaxTreeVertices, "[aimle::exact] expected at most ",
              kMaxTreeVertices, " vertices on a GPU but got vertices=", solver.vertices);
}

}  // namespace

template <class T>
void evaluate_rows(const Argmax& solver, const DistributionRows<T>& rows, const Context& context) {
  for_each_row("exact", rows.count, solver.n, Evaluate<CategoricalRows, T>{{solver.n}, rows},
               context);
}

template <class T>
void evaluate_rows(const TopK& solver, const DistributionRows<T>& rows, const Context& context) {
  using Tables = KSubsetScratch::Tables;
  const Tables tables = rows.covariance  ? Tables::kCovariance
                        : rows.marginals ? Tables::kMarginals
                                         : Tables::kLogPartition;
  const int64_t k = rows.k != nullptr ? solver.n : solver.k;  // at most
  for_each_row("exact", rows.count, KSubsetScratch::doubles(solver.n, k, tables),
               Evaluate<KSubsetRows, T>{{solver.n, solver.k, tables}, rows}, context);
}

template <class T>
void evaluate_rows(const SpanningTree& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  check_vertices(solver);
  const auto vertices = static_cast<int32_t>(solver.vertices);
  for_each_row(
      "exact", rows.count, TreeScratch::sizes(vertices).doubles(rows.covariance != nullptr),
      Evaluate<TreeRows, T>{{vertices, solver.layout == SpanningTree::Layout::kDirected}, rows},
      context);
}

template <class T>
void sample_rows(const Argmax& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  for_each_row("exact_sample", rows.count, solver.n,
               Sample<CategoricalRows, T>{{solver.n}, rows, key}, context);
}

template <class T>
void sample_rows(const TopK& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  const int64_t k = rows.k != nullptr ? solver.n : solver.k;  // at most
  for_each_row(
      "exact_sample", rows.count,
      KSubsetScratch::doubles(solver.n, k, KSubsetScratch::Tables::kSample),
      Sample<KSubsetRows, T>{{solver.n, solver.k, KSubsetScratch::Tables::kSample}, rows, key},
      context);
}

template <class T>
void sample_rows(const SpanningTree& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  check_vertices(solver);
  const auto vertices = static_cast<int32_t>(solver.vertices);
  for_each_row(
      "exact_sample", rows.count * rows.samples, TreeSampleScratch::doubles(vertices),
      Sample<TreeRows, T>{{vertices, solver.layout == SpanningTree::Layout::kDirected}, rows, key},
      context);
}

template <class T>
void evaluate_rows(const Arborescence& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  check_vertices(solver);
  const auto vertices = static_cast<int32_t>(solver.vertices);
  for_each_row("exact", rows.count * vertices,
               ArborescenceScratch::doubles(vertices, rows.covariance != nullptr),
               Evaluate<ArborescenceRows, T>{{vertices, solver.single_root}, rows}, context);
}

template <class T>
void sample_rows(const Arborescence& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  check_vertices(solver);
  const auto vertices = static_cast<int32_t>(solver.vertices);
  for_each_row("exact_sample", rows.count * rows.samples,
               ArborescenceScratch::doubles(vertices, false),
               Sample<ArborescenceRows, T>{{vertices, solver.single_root}, rows, key}, context);
}

AIMLE_INSTANTIATE_EXACT(Argmax)
AIMLE_INSTANTIATE_EXACT(TopK)
AIMLE_INSTANTIATE_EXACT(SpanningTree)
AIMLE_INSTANTIATE_EXACT(Arborescence)

}  // namespace aimle::cuda
