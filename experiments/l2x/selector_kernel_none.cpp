#include <stdexcept>

#include "experiments/l2x/selector_kernel.h"

namespace aimle::experiments::l2x {
namespace {

[[noreturn]] void refuse() { throw std::logic_error("[aimle::l2x] built without GPU kernels"); }

}  // namespace

bool has_selector_kernels() { return false; }

void see_neighbours_on_device(const WordSizes&, const float*, const bool*, float*, void*) {
  refuse();
}

void highest_on_device(const WordSizes&, const float*, const bool*, float*, int64_t*, void*) {
  refuse();
}

void word_gradients_on_device(const WordSizes&, const WordGradients&, const bool*, float*, void*) {
  refuse();
}

void join_on_device(const WordSizes&, const float*, const float*, const Dropout&, float*, bool*,
                    void*) {
  refuse();
}

void join_gradients_on_device(const WordSizes&, const float*, const bool*, float, float*, float*,
                              void*) {
  refuse();
}

}  // namespace aimle::experiments::l2x
