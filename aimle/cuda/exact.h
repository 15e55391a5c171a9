// Exact distributions on the device: aimle/exact/distribution.h, with all pointers on the device,
// to the accuracy of float64 though not to the bit. Plain C++ to call, as device_rows.h.
//
// A warp works on a row whose memory fits into a few kilobytes, a block on a larger one, in shared
// memory or beyond it in device memory, of which a call takes at most some gigabyte.
// For samples of spanning trees and of arborescences it is a warp or a block to a sample, and for
// marginals of arborescences to a dependent.
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

/// `rows.key` is not read; `key` is.
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
