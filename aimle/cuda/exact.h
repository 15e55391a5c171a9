// Exact distributions on the device: aimle/exact/distribution.h, with all pointers on the device and
// the accuracy of float64. Plain C++ to call, like device_rows.h.
//
// Marginals, covariances and samples of spanning trees whose logits are within 300 of each other use
// prescribed operations only, in the order of the CPU, and have its bits. Elsewhere logarithms, the
// device's own exp or the order of sums over threads may differ in the last bits.
//
// The texts that both devices run, by one thread or by a group of them, are aimle/exact/*_row.h and
// tree_samples.h; the headers *_distribution.h here have what only a GPU does.
//
// A warp processes a row whose memory fits into a few kilobytes, a block a larger one, in shared
// memory or, beyond that, in device memory, of which a call uses at most about a gigabyte. For
// samples of spanning trees and of arborescences a warp or a block processes one sample, and for
// marginals of arborescences one dependent.
#pragma once

#include "aimle/cuda/device_rows.h"
#include "aimle/exact/exact.h"

namespace aimle::cuda {

/// Declares the functions for a solver. Those for trees and arborescences throw
/// std::invalid_argument beyond kMaxTreeVertices (tree_distribution.h). `key` is used, not
/// `rows.key`.
#define AIMLE_DECLARE_EXACT(Solver)                                                       \
  template <class T>                                                                      \
  void evaluate_rows(const Solver& solver, const DistributionRows<T>& rows,               \
                     const Context& context);                                             \
  template <class T>                                                                      \
  void sample_rows(const Solver& solver, const SampleRows<T>& rows, const DeviceKey& key, \
                   const Context& context);

AIMLE_DECLARE_EXACT(Argmax)
AIMLE_DECLARE_EXACT(TopK)
AIMLE_DECLARE_EXACT(SpanningTree)
AIMLE_DECLARE_EXACT(Arborescence)
AIMLE_DECLARE_EXACT(Bernoulli)
AIMLE_DECLARE_EXACT(Chain)
AIMLE_DECLARE_EXACT(Knapsack)
AIMLE_DECLARE_EXACT(DagPath)
template <LatticeScores kScores, class T>
void evaluate_rows(const Lattice<kScores>& solver, const DistributionRows<T>& rows,
                   const Context& context);
template <LatticeScores kScores, class T>
void sample_rows(const Lattice<kScores>& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);

/// Instantiates them, where they are defined.
#define AIMLE_INSTANTIATE_EXACT(Solver)                                                        \
  template void evaluate_rows(const Solver&, const DistributionRows<float>&, const Context&);  \
  template void evaluate_rows(const Solver&, const DistributionRows<double>&, const Context&); \
  template void sample_rows(const Solver&, const SampleRows<float>&, const DeviceKey&,         \
                            const Context&);                                                   \
  template void sample_rows(const Solver&, const SampleRows<double>&, const DeviceKey&,        \
                            const Context&);

}  // namespace aimle::cuda
