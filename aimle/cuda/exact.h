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

template <class T>
void evaluate_rows(const Argmax& solver, const DistributionRows<T>& rows, const Context& context);
template <class T>
void evaluate_rows(const TopK& solver, const DistributionRows<T>& rows, const Context& context);
/// Throws std::invalid_argument beyond kMaxTreeVertices (tree_distribution.h).
template <class T>
void evaluate_rows(const SpanningTree& solver, const DistributionRows<T>& rows,
                   const Context& context);
/// Throws std::invalid_argument beyond kMaxTreeVertices.
template <class T>
void evaluate_rows(const Arborescence& solver, const DistributionRows<T>& rows,
                   const Context& context);

template <class T>
void evaluate_rows(const Bernoulli& solver, const DistributionRows<T>& rows,
                   const Context& context);
template <class T>
void evaluate_rows(const Chain& solver, const DistributionRows<T>& rows, const Context& context);
template <class T>
void evaluate_rows(const LatticePath& solver, const DistributionRows<T>& rows,
                   const Context& context);
template <class T>
void evaluate_rows(const LatticeMoves& solver, const DistributionRows<T>& rows,
                   const Context& context);

template <class T>
void evaluate_rows(const Knapsack& solver, const DistributionRows<T>& rows, const Context& context);
template <class T>
void evaluate_rows(const DagPath& solver, const DistributionRows<T>& rows, const Context& context);

/// `key` is used, not `rows.key`.
template <class T>
void sample_rows(const Argmax& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const TopK& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
/// Throws std::invalid_argument beyond kMaxTreeVertices.
template <class T>
void sample_rows(const SpanningTree& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const Bernoulli& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const Chain& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const LatticePath& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const LatticeMoves& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const Knapsack& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
/// Throws std::invalid_argument beyond kMaxTreeVertices.
template <class T>
void sample_rows(const Arborescence& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);
template <class T>
void sample_rows(const DagPath& solver, const SampleRows<T>& rows, const DeviceKey& key,
                 const Context& context);

}  // namespace aimle::cuda
