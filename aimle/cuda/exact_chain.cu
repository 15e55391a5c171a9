#include "aimle/cuda/chain_distribution.h"
#include "aimle/cuda/exact.h"
#include "aimle/cuda/exact_rows.cuh"

namespace aimle::cuda {
namespace {

struct ChainRows {
  ChainShape chain;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const int64_t size = chain.steps * chain.edges_per_step(), begin = row * size;
    const ChainTables tables = ChainTables::at(memory, chain.steps, chain.labels);
    const MaskedScores<T> x{rows.scores + begin, at(rows.mask, begin)};
    const ChainRow read = read_chain(group, chain, x, tables);
    if (!accept(group, rows, size, row, read.status)) return;
    write_log_partition(group, rows, row, read.log_partition);
    if (rows.marginals == nullptr && rows.covariance == nullptr) return;
    fill_backward_sums(group, chain, read, x, tables);
    if (rows.marginals != nullptr) {
      write_marginals(group, chain, read, x, tables, rows.marginals + begin);
    }
    if (rows.covariance == nullptr) return;
    write_chain_covariance(group, chain, read, x, rows.v + begin, tables, rows.covariance + begin);
  }

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double* memory) const {
    const int64_t size = chain.steps * chain.edges_per_step();
    const ChainTables tables = ChainTables::at(memory, chain.steps, chain.labels);
    const MaskedScores<T> x{rows.scores + row * size, at(rows.mask, row * size)};
    const ChainRow read = read_chain(group, chain, x, tables);
    if (!accept(group, rows, size, row, read.status)) return;
    sample_chain(group, chain, read, x, tables, key, rows.first + row, rows.samples,
                 rows.z + row * rows.samples * size);
  }
};

}  // namespace

template <class T>
void evaluate_rows(const Chain& solver, const DistributionRows<T>& rows, const Context& context) {
  using Wanted = ChainTables::Wanted;
  const Wanted wanted = rows.covariance  ? Wanted::kCovariance
                        : rows.marginals ? Wanted::kMarginals
                                         : Wanted::kForward;
  for_each_row("exact", rows.count, ChainTables::doubles(solver.steps(), solver.labels, wanted),
               Evaluate<ChainRows, T>{{chain_shape(solver)}, rows}, context);
}

template <class T>
void sample_rows(const Chain& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  const int64_t doubles =
      ChainTables::doubles(solver.steps(), solver.labels, ChainTables::Wanted::kForward);
  for_each_row("exact_sample", rows.count, doubles,
               Sample<ChainRows, T>{{chain_shape(solver)}, rows, key}, context);
}

AIMLE_INSTANTIATE_EXACT(Chain)

}  // namespace aimle::cuda
