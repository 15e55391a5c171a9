#include "aimle/torch/estimate/solved.h"

#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <limits>

#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/sampled.h"
#include "aimle/torch/functions.h"
#include "aimle/torch/solve/solver_checks.h"

namespace aimle {

std::vector<int64_t> trailing(int64_t dims) {
  std::vector<int64_t> result;
  for (int64_t d = -dims; d < 0; ++d) result.push_back(d);
  return result;
}

at::Tensor free_entries(const at::Tensor& theta, const std::optional<at::Tensor>& mask) {
  const at::Tensor finite = theta.abs().lt(std::numeric_limits<double>::infinity());
  return at::where(mask ? finite.logical_and(*mask) : finite, theta, 0.0);
}

at::Tensor solve_in(Sense sense, const SolverSpec& solver, const at::Tensor& x,
                    const LayerCall& call) {
  return solve(solver, solver.sense() == sense ? x : x.neg(),
               {.mask = call.mask, .row_data = call.row_data});
}

LayerCall undirected(LayerCall call, const SolverSpec& solver) {
  if (call.mask) call.mask = undirected(*call.mask, solver);
  return call;
}

at::Tensor undirected_target(const at::Tensor& target, const at::Tensor& theta,
                             const SolverSpec& solver) {
  if (theta.sym_size(-1) == target.sym_size(-1)) return target;
  return undirected(target.to(theta.scalar_type()), solver).div(2);
}

void check_sense_of(std::string_view name, const SolverSpec& solver, Sense sense) {
  if (solver.kind() != nullptr) ops::check_sense(name, *solver.kind(), sense);
}

void check_dims(const std::string& name, const at::Tensor& theta, const SolverSpec& solver) {
  check_theta(name, theta);
  TORCH_CHECK_VALUE(theta.dim() >= solver.instance_dims(), "[aimle::", name,
                    "] expected theta [*batch, *instance] with ", solver.instance_dims(),
                    " dimensions of an instance but got shape ", theta.sizes());
}

}  // namespace aimle
