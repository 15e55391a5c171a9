#include "aimle/cuda/exact_rows.cuh"
#include "aimle/cuda/knapsack_distribution.h"

namespace aimle::cuda {
namespace {

/// Reads a row, writes its status, and calls body(sums) if it is valid.
template <class Rows, class Group, class Body>
__device__ void with_sums(Group& group, const KnapsackShape& shape, const Rows& rows, int64_t index,
                          double* memory, const Body& body) {
  const int64_t begin = index * shape.n;
  const KnapsackTables tables = KnapsackTables::at(memory, shape.n, shape.max_capacity + 1);
  const KnapsackRow row = read_knapsack(group, shape, rows.scores + begin, at(rows.mask, begin),
                                        rows.data.of(index), tables);
  if (!accept(group, rows, shape.n, index, row.status)) return;
  exact_row::in_its_numbers(row, tables, EveryEntry{}, [&](const auto& sums) {
    sums.fill(group);
    body(sums);
  });
}

struct KnapsackRows {
  KnapsackShape shape;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t index,
                           double* memory) const {
    const int64_t begin = index * shape.n;
    with_sums(group, shape, rows, index, memory, [&](const auto& sums) {
      write_log_partition(group, rows, index, sums.log_partition());
      const T* v = rows.covariance == nullptr ? nullptr : rows.v + begin;
      if (v != nullptr) sums.fill_means(group, v);
      if (v != nullptr || rows.marginals != nullptr) {
        sums.walk(group, v, at(rows.marginals, begin), at(rows.covariance, begin));
      }
    });
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t index,
                         double* memory) const {
    T* z = rows.z + index * rows.samples * shape.n;
    with_sums(group, shape, rows, index, memory, [&](const auto& sums) {
      fill(group, z, rows.samples * shape.n, T(0));
      group.sync();
      sums.sample(group, key, rows.first + index, rows.samples, z);
    });
  }
};

KnapsackShape shape_of(const Knapsack& solver) {
  return {.n = solver.n, .max_capacity = solver.max_capacity};
}

}  // namespace

template <class T>
void evaluate_rows(const Knapsack& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  using Wanted = KnapsackTables::Wanted;
  const Wanted wanted = rows.covariance  ? Wanted::kCovariance
                        : rows.marginals ? Wanted::kMarginals
                                         : Wanted::kSums;
  for_each_row("exact", rows.count,
               KnapsackTables::doubles(solver.n, solver.max_capacity + 1, wanted),
               Evaluate<KnapsackRows, T>{{shape_of(solver)}, rows}, context);
}

template <class T>
void sample_rows(const Knapsack& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  for_each_row(
      "exact_sample", rows.count,
      KnapsackTables::doubles(solver.n, solver.max_capacity + 1, KnapsackTables::Wanted::kSums),
      Sample<KnapsackRows, T>{{shape_of(solver)}, rows, key}, context);
}

AIMLE_INSTANTIATE_EXACT(Knapsack)

}  // namespace aimle::cuda
