// Rows on the GPU: the source of scores and the destination of solutions.
//
// Row r of a batch is side r / (B S), example b and sample s, example-major. Its scores are never
// in memory: a kernel draws the noise, adds it to theta and, in backward, steps along d, entry by
// entry, as the solver requests them (row.cuh). Solutions are written as numbers (z), or as one bit
// per entry.
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

/// Where a kernel runs and allocates scratch memory. Nothing waits for the device. A launch that
/// fails throws std::runtime_error naming the op.
struct Context {
  void* stream = nullptr;  // a cudaStream_t
  /// Device memory, aligned to 256 bytes, valid while the call's kernels run.
  FunctionRef<void*(size_t bytes)> allocate;

  template <class T>
  T* array(int64_t count) const {
    return static_cast<T*>(allocate(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)));
  }
};

/// Throws std::runtime_error with the remedy if the kernels were not built.
void require_kernels();

/// Whether work started on this stream (a cudaStream_t) is being captured in a graph.
bool is_capturing(void* stream);

/// A key for kernels: read on the device when they run, or passed with the launch.
struct DeviceKey {
  const int64_t* words = nullptr;  // [2] or [3] on the device; null: `value` is used
  bool has_first = false;          // [3]
  Key value;
};

/// The inputs of one call, like aimle::Examples, with everything on the device.
template <class T>
struct DeviceExamples {
  int64_t count = 0;
  int64_t n = 0;
  const T* theta = nullptr;    // [count, n]
  const bool* mask = nullptr;  // [count, n] or null
  const int64_t* k = nullptr;  // [count] or null
  InstanceData data;           // for solvers that take data
  DeviceKey key;               // read only if there is noise
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
  int64_t gradients = 1;           // S, or 1 if all samples share one
  const double* lambda = nullptr;  // [count, gradients + 2], see step_sizes.h
  int sides = 1;
  int side_scale[2] = {1, -1};  // -1, 0 or 1

  int64_t rows() const { return sides * examples.count * samples; }
};

/// The destination of solutions; null if not requested.
template <class T>
struct RowSink {
  T* z = nullptr;             // [rows, n]; NaN if the status is not kOk
  uint8_t* bits = nullptr;    // [rows, bytes_per_row(n)]; zeros if the status is not kOk
  uint8_t* status = nullptr;  // [rows], a Status each
  /// [2], GridPath and GraphPath only: counts costs below zero, and all costs that are not walls.
  unsigned long long* clipped = nullptr;
};

// Solves every row: one overload per solver, in the file of that name.
#define AIMLE_DECLARE_MAP(Solver)                                                         \
  template <class T>                                                                      \
  void map_rows(const Solver& solver, const RowSource<T>& source, const RowSink<T>& sink, \
                const Context& context);

AIMLE_DECLARE_MAP(Argmax)
AIMLE_DECLARE_MAP(TopK)
AIMLE_DECLARE_MAP(SpanningTree)
AIMLE_DECLARE_MAP(GridPath)
AIMLE_DECLARE_MAP(Bernoulli)
AIMLE_DECLARE_MAP(Chain)
AIMLE_DECLARE_MAP(Knapsack)
AIMLE_DECLARE_MAP(Arborescence)
AIMLE_DECLARE_MAP(Assignment)
template <bool kAcyclic, class T>
void map_rows(const PathOverGraph<kAcyclic>& solver, const RowSource<T>& source,
              const RowSink<T>& sink, const Context& context);
template <LatticeScores kScores, class T>
void map_rows(const Lattice<kScores>& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context);

/// Instantiates it, where it is defined.
#define AIMLE_INSTANTIATE_MAP(Solver)                                                     \
  template void map_rows(const Solver&, const RowSource<float>&, const RowSink<float>&,   \
                         const Context&);                                                 \
  template void map_rows(const Solver&, const RowSource<double>&, const RowSink<double>&, \
                         const Context&);

/// noise(key, b, s, j) as float32 [count, samples, n].
void fill_noise(const NoiseSource& source, const DeviceKey& key, const NoiseRows& rows, float* out,
                const Context& context);

/// x [rows, n]: the scores themselves, for callable solvers.
template <class T>
void write_scores(const RowSource<T>& source, T* x, const Context& context);

}  // namespace aimle::cuda
