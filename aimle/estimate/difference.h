// The implicit difference of solutions, accumulated over the samples of an example.
//
// Differences of 0/1 solutions are integers, so with one lambda per example their sum is exact and
// only the final division rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "aimle/estimate/controller.h"
#include "aimle/estimate/divide_rule.h"
#include "aimle/estimate/row_kernels.h"
#include "aimle/estimate/settings.h"
#include "aimle/estimate/step_size.h"

namespace aimle {

template <class T>
class DifferenceSum {
 public:
  DifferenceSum(const PassSettings& settings, const Examples<T>& examples);

  /// Adds sample s of the current example; z_left, z_right are [n].
  void add(const ExampleStep& step, int64_t s, const T* z_left, const T* z_right);

  /// The only sample of example b: adds it and writes the gradient.
  void only(int64_t b, const ExampleStep& step, const T* z_left, const T* z_right, T* dtheta);

  /// Writes the gradient of example b, counts its zeros and starts the next example.
  void finish(int64_t b, const ExampleStep& step, T* dtheta);

  const Changes& changes() const { return changes_; }

 private:
  DivideRule rule_;
  const Examples<T>& examples_;
  const RowKernels<T>& kernels_;
  std::vector<double> sum_;
  Changes changes_;
};

}  // namespace aimle
