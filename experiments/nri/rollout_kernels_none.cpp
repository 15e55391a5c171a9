#include <stdexcept>

#include "experiments/nri/rollout_kernels.h"

namespace aimle::experiments::nri {
namespace {

[[noreturn]] void fail() {
  throw std::logic_error("[aimle::tree_rollout] built without GPU kernels");
}

}  // namespace

bool has_rollout_kernels() { return false; }

void sort_links_on_device(const RolloutShape&, const float*, const float*, int64_t*, int64_t*,
                          int64_t*, void*) {
  fail();
}

void meet_on_device(const RolloutShape&, const int64_t*, const float*, const FirstLayers&, float*,
                    float*, void*) {
  fail();
}

void see_on_device(const RolloutShape&, const int64_t*, const float*, const SecondBiases&, float*,
                   float*, void*) {
  fail();
}

void move_on_device(const RolloutShape&, const float*, const float*, const float*, const float*,
                    float*, void*) {
  fail();
}

void move_backward_on_device(const RolloutShape&, const int64_t*, const int64_t*, const float*,
                             const NextStep&, const float*, const float*, float*, float*, void*) {
  fail();
}

void see_backward_on_device(const RolloutShape&, const int64_t*, const float*, const float*, float*,
                            void*) {
  fail();
}

void meet_backward_on_device(const RolloutShape&, const float*, const FirstLayers&, float*, float*,
                             void*) {
  fail();
}

int64_t sums_of_links_scratch(const RolloutShape&, int64_t) { fail(); }

void sums_of_links_on_device(const RolloutShape&, int64_t, const float*, const float*, const float*,
                             float*, float*, float*, void*) {
  fail();
}

int64_t sums_of_nodes_scratch(int64_t, int64_t) { fail(); }

void sums_of_nodes_on_device(int64_t, int64_t, const float*, const float*, const float*, float*,
                             float*, void*) {
  fail();
}

void other_hidden_on_device(const RolloutShape&, int64_t, int, const float*, const FirstLayers&,
                            float*, void*) {
  fail();
}

void gain_of_links_on_device(const RolloutShape&, int64_t, const int64_t*, const float*,
                             const float*, const float*, const float*, float*, void*) {
  fail();
}

}  // namespace aimle::experiments::nri
