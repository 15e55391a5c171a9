#include "aimle/cuda/exact_rows.cuh"
#include "aimle/cuda/lattice_path.h"
#include "aimle/exact/lattice_row.h"

namespace aimle::cuda {
namespace {

using namespace exact_row;  // NOLINT(google-build-using-namespace): the texts for both devices

/// Where a row begins, and what was read of it.
struct ReadLattice {
  int64_t begin;
  LatticeTables tables;
  LatticeRow row;
};

/// Reads a row and writes its status.
template <bool kPerMove, class Rows, class Group>
__device__ ReadLattice read_row(Group& group, const LatticeShape& lattice, const Rows& rows,
                                int64_t row, double* memory) {
  const int64_t cells = int64_t{lattice.height} * lattice.width;
  const int64_t size = (kPerMove ? 3 : 1) * cells, begin = row * size;
  const LatticeTables tables = LatticeTables::at(memory, cells);
  const bool* const mask = at(rows.mask, begin);
  const auto part = detail::part_of < kPerMove ? 3 : 1 > (group, lattice, mask);
  const LatticeRow read =
      read_lattice<kPerMove>(group, lattice, part, rows.scores + begin, mask, tables);
  accept(group, rows, size, row, read.status);
  return {begin, tables, read};
}

template <bool kPerMove>
struct LatticeRows {
  LatticeShape lattice;

  template <class T, class Group>
  __device__ void evaluate(Group& group, const DistributionRows<T>& rows, int64_t row,
                           double* memory) const {
    const auto [begin, tables, read] = read_row<kPerMove>(group, lattice, rows, row, memory);
    if (read.status != Status::kOk) return;
    write_log_partition(group, rows, row, log_partition(read, tables));
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

  template <class T, class Group>
  __device__ void sample(Group& group, const SampleRows<T>& rows, Key key, int64_t row,
                         double* memory) const {
    const auto [begin, tables, read] = read_row<kPerMove>(group, lattice, rows, row, memory);
    if (read.status != Status::kOk) return;
    sample_lattice<kPerMove>(group, lattice, read, tables, key, rows.first + row, rows.samples,
                             rows.z + begin * rows.samples);
  }
};

}  // namespace

template <LatticeScores kScores, class T>
void evaluate_rows(const Lattice<kScores>& solver, const DistributionRows<T>& rows,
                   const Context& context) {
  using Wanted = LatticeTables::Wanted;
  const Wanted wanted = rows.marginals || rows.covariance ? Wanted::kMarginals : Wanted::kShares;
  for_each_row("exact", rows.count, LatticeTables::doubles(solver.cells(), wanted),
               Evaluate<LatticeRows<Lattice<kScores>::kPerMove>, T>{{lattice_shape(solver)}, rows},
               context);
}

template <LatticeScores kScores, class T>
void sample_rows(const Lattice<kScores>& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context) {
  for_each_row(
      "exact_sample", rows.count,
      LatticeTables::doubles(solver.cells(), LatticeTables::Wanted::kShares),
      Sample<LatticeRows<Lattice<kScores>::kPerMove>, T>{{lattice_shape(solver)}, rows, key},
      context);
}

AIMLE_INSTANTIATE_EXACT(LatticePath)
AIMLE_INSTANTIATE_EXACT(LatticeMoves)

}  // namespace aimle::cuda
