// Rows on their way through the GPU: where scores come from, and where solutions go.
//
// Row r of a batch is side r / (B S), example b and sample s, example-major. Its scores are never
// in memory: a kernel draws the noise, adds it to theta and, in backward, steps along d, entry by
// entry, as the solver asks for them (row.cuh). Solutions leave as numbers (z), or as one bit per
// entry.
//
// Plain C++: kernels take these structs, raw pointers to device memory and a stream, and no header
// of Torch or CUDA is needed to call them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aimle/base/function_ref.h"
#include "aimle/estimate/perturb.h"
#include "aimle/map/arborescence.h"
#include "aimle/map/argmax.h"
#include "aimle/map/assignment.h"
#include "aimle/map/bernoulli.h"
#include "aimle/map/chain.h"
#include "aimle/map/graph_path.h"
#include "aimle/map/grid_path.h"
#include "aimle/map/knapsack.h"
#include "aimle/map/lattice_path.h"
#include "aimle/map/solver.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/map/topk.h"
#include "aimle/noise/noise.h"

namespace aimle::cuda {

/// Where a kernel runs and where it finds room. Nothing waits for the device. A launch that fails
/// throws std::runtime_error that names the op.
struct Context {
  void* stream = nullptr;  // a cudaStream_t
  /// Device memory, aligned to 256 bytes, for as long as the call's kernels run.
  FunctionRef<void*(size_t bytes)> allocate;

  template <class T>
  T* array(int64_t count) const {
    return static_cast<T*>(allocate(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)));
  }
};

/// std::runtime_error that says how to get them, if the kernels were not built.
void require_kernels();

/// Whether what is started on this stream (a cudaStream_t) now goes into a graph.
bool is_capturing(void* stream);

/// A key as kernels take it: read on the device when they run, or given with the launch.
struct DeviceKey {
  const int64_t* words = nullptr;  // [2] or [3] on the device; null: `value` counts
  bool has_first = false;          // [3]
  Key value;
};

/// One call's inputs, as aimle::Examples, with everything on the device.
template <class T>
struct DeviceExamples {
  int64_t count = 0;
  int64_t n = 0;
  const T* theta = nullptr;    // [count, n]
  const bool* mask = nullptr;  // [count, n] or null
  const int64_t* k = nullptr;  // [count] or null
  InstanceData data;           // of solvers that take data
  DeviceKey key;               // read only where there is noise
};

/// The scores of `rows()` rows.
template <class T>
struct RowSource {
  DeviceExamples<T> examples;
  int64_t samples = 1;
  NoiseSource noise;  // its table on the device
  double tau = 1.0;   // temperature of the noise
  double mean = 0.0;  // subtracted from the noise by solvers of varying size and write_scores
  Signs sign;

  /// A step of `side_scale[side] * lambda` along dy; null: no step.
  const T* dy = nullptr;           // [count, gradients, n]
  int64_t gradients = 1;           // S, or 1 where all samples share one
  const double* lambda = nullptr;  // [count, gradients + 2], see step_sizes.h
  int sides = 1;
  int side_scale[2] = {1, -1};  // -1, 0 or 1

  int64_t rows() const { return sides * examples.count * samples; }
};

/// Where solutions go; null for what is not wanted.
template <class T>
struct RowSink {
  T* z = nullptr;             // [rows, n]; NaN where the status is not kOk
  uint8_t* bits = nullptr;    // [rows, bytes_per_row(n)]; zeros where the status is not kOk
  uint8_t* status = nullptr;  // [rows], a Status each
  /// [2], GridPath and GraphPath only: added to by the costs below zero, and by all costs that are
  /// no walls.
  unsigned long long* clipped = nullptr;
};

// Solves every row: one overload per solver, in the file of that name.
template <class T>
void map_rows(const Argmax& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const TopK& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const SpanningTree& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const GridPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const Bernoulli& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const Chain& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const Knapsack& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const GraphPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const DagPath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);

template <class T>
void map_rows(const LatticePath& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const LatticeMoves& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const Arborescence& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);
template <class T>
void map_rows(const Assignment& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);

/// aimle::symmetrise: both directions of every edge replaced by their mean.
template <class T>
void symmetrise(int64_t vertices, int64_t count, const T* scores, T* out, const Context& context);

/// noise(key, b, s, j) as float32 [count, samples, n].
void fill_noise(const NoiseSource& source, const DeviceKey& key, const NoiseRows& rows, float* out,
                const Context& context);

/// x [rows, n]: the scores themselves, for solvers that are not ours.
template <class T>
void write_scores(const RowSource<T>& source, T* x, const Context& context);

}  // namespace aimle::cuda
