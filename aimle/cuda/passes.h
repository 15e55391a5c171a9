// The estimators on the device: aimle/estimate/passes.h, bit-identical, without a host sync.
//
// Forward is one kernel (map_rows.cuh); the mean of the samples needs a second. Backward is
//   step_sizes     lambda per example, from the norms of theta and dy
//   map_rows       both solutions of every row, one bit per entry
//   accumulate     the difference of the bits, summed over samples and divided: the gradient
//   update_state   statistics, and the controller's update of alpha, by the last block
// If a block can hold whole examples, the first three are one kernel (whole_examples.h). Everything
// can be captured in a graph. alpha, and a key on the device, are read on the device at run time.
#pragma once

#include "aimle/cuda/device_rows.h"
#include "aimle/estimate/passes.h"

namespace aimle::cuda {

/// The layer's buffers, on the device; null if the layer does not have them.
struct DeviceState {
  double* alpha = nullptr;
  double* gbar = nullptr;
  int64_t* updates = nullptr;
  double* memory = nullptr;
  double* stats = nullptr;    // [kLayerStats]
  double* waiting = nullptr;  // [kWaitingCounts] to add to instead of updating the state, or null
  bool adapt = true;          // whether alpha, gbar, updates and memory are updated
};

/// Where kernels read the alpha of a pass: see step_alpha in controller.h.
struct AlphaSource {
  const double* alpha = nullptr;     // null unless the target is adaptive
  const int64_t* updates = nullptr;  // read if `probe` is positive
  double probe = 0.0;                // alpha of a pass that measures the reach; 0: never
};
AlphaSource alpha_source(const PassSettings& settings, const DeviceState& state);

template <class T>
struct DeviceForward {
  T* z = nullptr;             // [B, S, n], or [B, n] for Output::kMean
  uint8_t* bits = nullptr;    // [B, S, bytes_per_row(n)] or null
  uint8_t* status = nullptr;  // [B, S] or null
};

template <class T>
void forward(const PassSettings& settings, const Solver& solver, const DeviceExamples<T>& examples,
             const DeviceForward<T>& pass, const Context& context);

template <class T>
struct DeviceBackward {
  const T* dy = nullptr;          // the shape of z
  const uint8_t* bits = nullptr;  // written by forward, if keeps_solution(settings)
  T* dtheta = nullptr;            // [B, n], written
  uint8_t* status = nullptr;      // [2, B, S] or null: of the left and the right solutions
};

template <class T>
void backward(const PassSettings& settings, const Solver& solver, const DeviceExamples<T>& examples,
              const DeviceBackward<T>& pass, const DeviceState& state, const Context& context);

// ---- Staged -------------------------------------------------------------------------------------

template <class T>
void perturb(const PassSettings& settings, Sense solver_sense, const DeviceExamples<T>& examples,
             T* x, const Context& context);

template <class T>
void step(const PassSettings& settings, const CallableSolver& solver,
          const DeviceExamples<T>& examples, const T* dy, const DeviceState& state, T* x_left,
          T* x_right, double* lambda, uint8_t* counted, const Context& context);

template <class T>
void difference(const PassSettings& settings, const DeviceExamples<T>& examples, const T* z_left,
                const T* z_right, const double* lambda, const uint8_t* counted, T* dtheta,
                const DeviceState& state, const Context& context);

template <class T>
void straight_through(const PassSettings& settings, const DeviceExamples<T>& examples, const T* dy,
                      T* dtheta, const Context& context);

/// Instantiates the functions above for a type, where they are defined.
#define AIMLE_INSTANTIATE_PASSES(T)                                                                \
  template void forward(const PassSettings&, const Solver&, const DeviceExamples<T>&,              \
                        const DeviceForward<T>&, const Context&);                                  \
  template void backward(const PassSettings&, const Solver&, const DeviceExamples<T>&,             \
                         const DeviceBackward<T>&, const DeviceState&, const Context&);            \
  template void perturb(const PassSettings&, Sense, const DeviceExamples<T>&, T*, const Context&); \
  template void step(const PassSettings&, const CallableSolver&, const DeviceExamples<T>&,         \
                     const T*, const DeviceState&, T*, T*, double*, uint8_t*, const Context&);     \
  template void difference(const PassSettings&, const DeviceExamples<T>&, const T*, const T*,      \
                           const double*, const uint8_t*, T*, const DeviceState&, const Context&); \
  template void straight_through(const PassSettings&, const DeviceExamples<T>&, const T*, T*,      \
                                 const Context&);

/// Updates alpha from the counts of all processes, [kWaitingCounts] on the device, and clears
/// state.waiting.
void apply_counts(const PassSettings& settings, const double* counts, const DeviceState& state,
                  const Context& context);

// ---- Parts, for estimators in separate files ----------------------------------------------------

/// The report of a pass, collected on the device: the examples' step sizes and the counts of
/// blocks.
struct DeviceReport {
  int64_t examples = 0;
  const double* reported = nullptr;  // lambda of example b at reported[b * stride]; NaN: none
  int64_t stride = 1;
  const Changes* changes = nullptr;  // [blocks]
  int64_t blocks = 0;
  const double* capped = nullptr;               // [2]: capped share and mass, or null: zeros
  const unsigned long long* clipped = nullptr;  // [2]: costs below zero, and all; null: zeros
  unsigned* done = nullptr;  // initially zero, so that several blocks can share the work, or null
};

/// Writes the statistics and updates the controller. `room`: update_bytes (update_state.cuh) of
/// device memory, or null: allocated.
void update_state(const PassSettings& settings, const DeviceReport& seen, const DeviceState& state,
                  void* room, const Context& context);

}  // namespace aimle::cuda
