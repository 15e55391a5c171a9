// Shapes alone, for torch.compile and meta tensors.
#include <algorithm>

#include "aimle/torch/solvers.h"

namespace aimle::ops {
namespace {

struct Meta {
  template <class Settings>
  static Solution solve(const SolverInput& input, Check, Settings settings) {
    const auto sizes = input.scores.sym_sizes().slice(input.scores.dim() - input.instance_dims);
    const bool known = std::none_of(sizes.begin(), sizes.end(),
                                    [](const c10::SymInt& size) { return size.is_symbolic(); });
    if (known) settings();  // else the kernel holds them against the real sizes
    return empty_solution(input, input.scores.scalar_type());
  }
};

TORCH_LIBRARY_IMPL(aimle, Meta, library) { register_solvers<Meta>(library); }

}  // namespace
}  // namespace aimle::ops
