// Whether all solutions of a callable solver have the same number of ones, found out from those that
// it returns.
//
//   sizes   float64 [2]: the least number of ones and minus the greatest, of solutions that differ
//           from another one; both infinity before the first two. A buffer of the layer.
//
// All solutions seen so far have the same number of ones if sizes[0] == -sizes[1]. Equal solutions
// do not count, because nothing can be concluded from them. Sizes from several places are combined
// by their elementwise minimum.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>

namespace aimle::ops {

/// Sizes before the first solution.
at::Tensor unknown_sizes();

/// The sizes of the rows in which z and other [N, *instance] differ. `other` may be [1, *instance],
/// one for all rows. No host sync.
at::Tensor solution_sizes(const at::Tensor& z, const at::Tensor& other);

using StepResult = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// step(fixed_size) for what `sizes` say. On a GPU, where reading them would wait for the device,
/// it calls step for both and selects there.
StepResult step_for_sizes(const at::Tensor& sizes,
                          const std::function<StepResult(bool fixed_size)>& step);

}  // namespace aimle::ops
