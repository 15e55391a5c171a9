#include "aimle/cuda/dag_distribution.h"
#include "aimle/cuda/exact.h"
#include "aimle/cuda/exact_rows.cuh"

namespace aimle::cuda {
namespace {

template <class T>
struct EvaluateDag {
  GraphSize size;
  DistributionRows<T> rows;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    const int64_t begin = row * size.edges;
    const DagTables tables = DagTables::at(memory, size);
    const DagScores<T> x{rows.scores + begin, at(rows.mask, begin)};
    const DagRow read = read_dag(group, size, x, rows.data.of(row), tables);
    if (!accept(group, rows, size.edges, row, read.status)) return;
    if (rows.log_partition != nullptr && group.rank() == 0) {
      rows.log_partition[row] = static_cast<T>(read.log_partition);
    }
    if (rows.marginals == nullptr && rows.covariance == nullptr) return;
    const T* v = rows.covariance == nullptr ? nullptr : rows.v + begin;
    write_dag(group, size, read, v, tables, at(rows.marginals, begin), at(rows.covariance, begin));
  }
};

template <class T>
struct SampleDag {
  GraphSize size;
  SampleRows<T> rows;
  DeviceKey key;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    const int64_t begin = row * size.edges;
    const DagTables tables = DagTables::at(memory, size);
    const DagScores<T> x{rows.scores + begin, at(rows.mask, begin)};
    const DagRow read = read_dag(group, size, x, rows.data.of(row), tables);
    if (!accept(group, rows, size.edges, row, read.status)) return;
    sample_dag(group, size, read, tables, load_key(key), rows.first + row, rows.samples,
               rows.z + begin * rows.samples);
  }
};

}  // namespace

template <class T>
void evaluate_rows(const DagPath& solver, const DistributionRows<T>& rows, const Context& context) {
  const GraphSize size = graph_size(solver);
  for_each_row("exact", rows.count, DagTables::doubles(size), EvaluateDag<T>{size, rows}, context);
}

template <class T>
void sample_rows(const DagPath& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  const GraphSize size = graph_size(solver);
  for_each_row("exact_sample", rows.count, DagTables::doubles(size), SampleDag<T>{size, rows, key},
               context);
}

template void evaluate_rows(const DagPath&, const DistributionRows<float>&, const Context&);
template void evaluate_rows(const DagPath&, const DistributionRows<double>&, const Context&);
template void sample_rows(const DagPath&, const SampleRows<float>&, const DeviceKey&,
                          const Context&);
template void sample_rows(const DagPath&, const SampleRows<double>&, const DeviceKey&,
                          const Context&);

}  // namespace aimle::cuda
