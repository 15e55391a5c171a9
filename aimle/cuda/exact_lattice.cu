#include "aimle/cuda/exact_rows.cuh"
#include "aimle/cuda/lattice_distribution.h"

namespace aimle::cuda {
namespace {

template <bool kPerMove, class T>
struct EvaluateLattice {
  LatticeShape lattice;
  DistributionRows<T> rows;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    const int64_t cells = int64_t{lattice.height} * lattice.width;
    const int64_t size = (kPerMove ? 3 : 1) * cells, begin = row * size;
    const LatticeTables tables = LatticeTables::at(memory, cells);
    const LatticeRow read =
        read_lattice<kPerMove>(group, lattice, rows.scores + begin, at(rows.mask, begin), tables);
    if (!accept(group, rows, size, row, read.status)) return;
    if (rows.log_partition != nullptr && group.rank() == 0) {
      rows.log_partition[row] = static_cast<T>(log_partition(read, tables));
    }
    if (rows.marginals == nullptr && rows.covariance == nullptr) return;
    fill_marginals<kPerMove>(group, read, tables);
    if (rows.marginals != nullptr) {
      write_marginals<kPerMove>(group, lattice, read, tables, rows.marginals + begin);
    }
    if (rows.covariance != nullptr) {
      write_covariance<kPerMove>(group, lattice, read, tables, rows.v + begin,
                                 rows.covariance + begin);
    }
  }
};

template <bool kPerMove, class T>
struct SampleLattice {
  LatticeShape lattice;
  SampleRows<T> rows;
  DeviceKey key;

  template <class Group>
  __device__ void operator()(Group& group, int64_t row, double* memory) const {
    const int64_t cells = int64_t{lattice.height} * lattice.width;
    const int64_t size = (kPerMove ? 3 : 1) * cells, begin = row * size;
    const LatticeTables tables = LatticeTables::at(memory, cells);
    const LatticeRow read =
        read_lattice<kPerMove>(group, lattice, rows.scores + begin, at(rows.mask, begin), tables);
    if (!accept(group, rows, size, row, read.status)) return;
    sample_lattice<kPerMove>(group, lattice, read, tables, load_key(key), rows.first + row,
                             rows.samples, rows.z + row * rows.samples * size);
  }
};

template <LatticeScores kScores, class T>
void evaluate(const Lattice<kScores>& solver, const DistributionRows<T>& rows,
              const Context& context) {
  using Wanted = LatticeTables::Wanted;
  const Wanted wanted = rows.marginals || rows.covariance ? Wanted::kMarginals : Wanted::kShares;
  for_each_row("exact", rows.count, LatticeTables::doubles(solver.cells(), wanted),
               EvaluateLattice<Lattice<kScores>::kPerMove, T>{lattice_shape(solver), rows},
               context);
}

template <LatticeScores kScores, class T>
void sample(const Lattice<kScores>& solver, const SampleRows<T>& rows, const DeviceKey& key,
            const Context& context) {
  for_each_row("exact_sample", rows.count,
               LatticeTables::doubles(solver.cells(), LatticeTables::Wanted::kShares),
               SampleLattice<Lattice<kScores>::kPerMove, T>{lattice_shape(solver), rows, key},
               context);
}

}  // namespace

template <class T>
void evaluate_rows(const LatticePath& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  evaluate(solver, rows, context);
}
template <class T>
void evaluate_rows(const LatticeMoves& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  evaluate(solver, rows, context);
}
template <class T>
void sample_rows(const LatticePath& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  sample(solver, rows, key, context);
}
template <class T>
void sample_rows(const LatticeMoves& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  sample(solver, rows, key, context);
}

#define AIMLE_INSTANTIATE(Solver, T)                                                      \
  template void evaluate_rows(const Solver&, const DistributionRows<T>&, const Context&); \
  template void sample_rows(const Solver&, const SampleRows<T>&, const DeviceKey&, const Context&);

AIMLE_INSTANTIATE(LatticePath, float)
AIMLE_INSTANTIATE(LatticePath, double)
AIMLE_INSTANTIATE(LatticeMoves, float)
AIMLE_INSTANTIATE(LatticeMoves, double)

}  // namespace aimle::cuda
