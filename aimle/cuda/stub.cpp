// Replaces the kernels if there is no CUDA compiler: every call reports what is missing.
#include <stdexcept>

#include "aimle/cuda/directions.h"
#include "aimle/cuda/kernels.h"
#include "aimle/cuda/passes.h"

namespace aimle::cuda {

void require_kernels() {
  throw std::runtime_error(
      "[aimle] built without GPU kernels: rebuild with nvcc and a torch with CUDA, or with "
      "-DAIMLE_CUDA=ON, or move the tensors to the CPU");
}

const Kernels& kernels_of(const Solver&) {
  require_kernels();
  throw std::logic_error("unreachable");
}

// Registrations of a library that was built with a GPU compiler are ignored.
void register_kernels(const std::type_info&, std::unique_ptr<const Kernels>) {}

bool is_capturing(void*) {
  require_kernels();
  return false;
}

void fill_noise(const NoiseSource&, const DeviceKey&, const NoiseRows&, float*, const Context&) {
  require_kernels();
}
template <class T>
void write_scores(const RowSource<T>&, T*, const Context&) {
  require_kernels();
}
template <class T>
void forward(const PassSettings&, const Solver&, const DeviceExamples<T>&, const DeviceForward<T>&,
             const Context&) {
  require_kernels();
}
template <class T>
void backward(const PassSettings&, const Solver&, const DeviceExamples<T>&,
              const DeviceBackward<T>&, const DeviceState&, const Context&) {
  require_kernels();
}
template <class T>
void perturb(const PassSettings&, Sense, const DeviceExamples<T>&, T*, const Context&) {
  require_kernels();
}
template <class T>
void step(const PassSettings&, const CallableSolver&, const DeviceExamples<T>&, const T*,
          const DeviceState&, T*, T*, double*, uint8_t*, const Context&) {
  require_kernels();
}
template <class T>
void difference(const PassSettings&, const DeviceExamples<T>&, const T*, const T*, const double*,
                const uint8_t*, T*, const DeviceState&, const Context&) {
  require_kernels();
}
template <class T>
void straight_through(const PassSettings&, const DeviceExamples<T>&, const T*, T*, const Context&) {
  require_kernels();
}
void apply_counts(const PassSettings&, const double*, const DeviceState&, const Context&) {
  require_kernels();
}

template <class T>
void symmetrise(int64_t, int64_t, const T*, T*, const Context&) {
  require_kernels();
}
template <class T>
void fold_directions(int64_t, int64_t, const T*, T*, const Context&) {
  require_kernels();
}
template <class T>
void spread_directions(int64_t, int64_t, const T*, T*, const Context&) {
  require_kernels();
}
template void fold_directions(int64_t, int64_t, const bool*, bool*, const Context&);
template void spread_directions(int64_t, int64_t, const bool*, bool*, const Context&);

#define AIMLE_INSTANTIATE(T)                                                     \
  AIMLE_INSTANTIATE_PASSES(T)                                                    \
  template void write_scores(const RowSource<T>&, T*, const Context&);           \
  template void symmetrise(int64_t, int64_t, const T*, T*, const Context&);      \
  template void fold_directions(int64_t, int64_t, const T*, T*, const Context&); \
  template void spread_directions(int64_t, int64_t, const T*, T*, const Context&);

AIMLE_INSTANTIATE(float)
AIMLE_INSTANTIATE(double)

}  // namespace aimle::cuda
