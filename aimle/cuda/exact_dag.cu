#include "aimle/cuda/dag_distribution.h"
#include "aimle/cuda/exact.h"
#include "aimle/cuda/exact_rows.cuh"

namespace aimle::cuda {
namespace {

/// Reads a row and writes its status.
template <class T, class Rows, class Group>
__device__ DagRow read_row(Group& group, const GraphSize& size, const Rows& rows, int64_t row,
                           const DagTables& tables) {
  const int64_t begin = row * size.edges;
  const MaskedScores<T> x{rows.scores + begin, at(rows.mask, begin)};
  const DagRow read = read_dag(group, size, x, rows.data.of(row), tables);
  accept(group, rows, size.edges, row, read.status);
  return read;
}

struct DagRows {
  GraphSize size;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const int64_t begin = row * size.edges;
    const DagTables tables = DagTables::at(memory, size);
    const DagRow read = read_row<T>(group, size, rows, row, tables);
    if (read.status != Status::kOk) return;
    write_log_partition(group, rows, row, read.log_partition);
    if (rows.marginals == nullptr && rows.covariance == nullptr) return;
    const T* v = rows.covariance == nullptr ? nullptr : rows.v + begin;
    write_dag(group, size, read, v, tables, at(rows.marginals, begin), at(rows.covariance, begin));
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double* memory) const {
    const DagTables tables = DagTables::at(memory, size);
    const DagRow read = read_row<T>(group, size, rows, row, tables);
    if (read.status != Status::kOk) return;
    sample_dag(group, size, read, tables, key, rows.first + row, rows.samples,
               rows.z + row * rows.samples * size.edges);
  }
};

}  // namespace

template <class T>
void evaluate_rows(const DagPath& solver, const DistributionRows<T>& rows, const Context& context) {
  const GraphSize size = graph_size(solver);
  for_each_row("exact", rows.count, DagTables::doubles(size), Evaluate<DagRows, T>{{size}, rows},
               context);
}

template <class T>
void sample_rows(const DagPath& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  const GraphSize size = graph_size(solver);
  for_each_row("exact_sample", rows.count, DagTables::doubles(size),
               Sample<DagRows, T>{{size}, rows, key}, context);
}

AIMLE_INSTANTIATE_EXACT(DagPath)

}  // namespace aimle::cuda
