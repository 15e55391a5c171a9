// The SPO+ loss.
//
// Elmachtoub, Grigas, "Smart \"Predict, then Optimize\"", Management Science 2022. A model predicts
// theta, the true coefficients are c, and the solution w(theta) is judged by its regret. Let s = 1
// if the solver maximises and -1 if it minimises, z* = w(c), x = 2 theta - c and z = w(x):
//
//   regret(theta) = s <c, z* - w(theta)>
//   loss(theta)   = max_z s <x, z> - s <x, z*> = s <x, z - z*>,    gradient 2 s (z - z*)
//
// It is convex, as a maximum of linear functions minus a linear one; zero for theta = c; and an
// upper bound of the regret:
//
//   loss(theta) >= s <x, w(theta) - z*> = regret(theta) + 2 s <theta, w(theta) - z*>
//
// where the last term is not negative because w(theta) is the best for theta.
//
// Costs. Solvers of paths need costs >= 0, but 2 theta - c may be below zero for good predictions
// too. They are given max(x, 0). Together with every entry of x < 0, their path is the exact
// minimum of <x, .> over all supersets of paths:
//
//   z = path of max(x, 0), and every entry with x < 0
//
// This is the SPO+ loss of the family of these supersets. For costs c >= 0 no superset of a path is
// cheaper than the path, so z*, the regret and everything above stay the same: the loss is convex,
// zero for theta = c and an upper bound of the regret, for theta of any sign. Where x >= 0 it is the
// loss over paths. c below zero counts as zero, as for the solver.
//
// Infinite entries. Where c is infinite x = c, so that an entry that c rules out is ruled out for z,
// and inf - inf does not arise. Infinite and masked entries add nothing to the loss.
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <limits>
#include <string>

#include "aimle/torch/estimate/directions.h"
#include "aimle/torch/estimate/formulas.h"
#include "aimle/torch/estimate/solved.h"
#include "aimle/torch/estimator.h"
#include "aimle/torch/layer/setting_names.h"

namespace aimle {
namespace {

void check_like_theta(const char* argument, const at::Tensor& value, const at::Tensor& theta) {
  TORCH_CHECK_VALUE(value.sym_sizes() == theta.sym_sizes(), "[aimle::spo_plus_loss] expected ",
                    argument, " of the shape of theta, ", theta.sym_sizes(), ", but got ",
                    value.sym_sizes());
}

}  // namespace

at::Tensor spo_plus_scores(const at::Tensor& theta, const at::Tensor& true_theta, bool costs) {
  const at::Tensor truth = costs ? true_theta.detach().clamp_min(0) : true_theta.detach();
  const at::Tensor finite = truth.abs().lt(std::numeric_limits<double>::infinity());
  return at::where(finite, theta.mul(2).sub(truth), truth);
}

at::Tensor spo_plus(const at::Tensor& scores, const at::Tensor& z, const at::Tensor& solution,
                    const MaybeTensor& mask, bool maximise, int64_t instance_dims, bool costs) {
  const at::Tensor x = free_entries(scores, mask);
  const at::Tensor best = costs ? at::where(x.detach().lt(0), 1.0, z) : z;
  const at::Tensor target = solution.to(z.scalar_type());  // bools have no subtraction
  const at::Tensor weights = maximise ? best.sub(target) : target.sub(best);
  return x.mul(weights.detach()).sum(trailing(instance_dims));
}

at::Tensor spo_plus_loss(const at::Tensor& given, const at::Tensor& given_truth,
                         const SolverSpec& solver, const SpoPlusOptions& options,
                         const LayerCall& given_call) {
  const std::string name = "spo_plus_loss";
  check_dims(name, given, solver);
  check_like_theta("true_theta", given_truth, given);
  if (options.solution) check_like_theta("solution", *options.solution, given);
  const Sense sense = options.sense.value_or(solver.sense());
  check_sense_of(name, solver, sense);
  const bool costs = solver.has_costs();
  const LayerCall call = undirected(given_call, solver);
  const at::ScalarType type = c10::promoteTypes(given.scalar_type(), given_truth.scalar_type());
  const at::Tensor truth = undirected(given_truth.detach().to(type), solver);
  const at::Tensor scores = spo_plus_scores(undirected(given, solver), truth, costs);
  const at::Tensor x = costs ? scores.detach().clamp_min(0) : scores.detach();
  at::Tensor z, solution;
  if (options.solution) {
    z = solve_in(sense, solver, x, call);
    solution = undirected_target(*options.solution, scores, solver);
  } else {
    const at::Tensor both = solve_in(sense, solver, at::stack({x, truth}), call);
    z = both.select(0, 0);
    solution = both.select(0, 1);
  }
  return spo_plus(scores, z, solution, call.mask, sense == Sense::kMax, solver.instance_dims(),
                  costs);
}

at::Tensor spo_plus_loss_by_name(const at::Tensor& theta, const at::Tensor& true_theta,
                                 const MaybeTensor& solution, const MaybeTensor& mask,
                                 const MaybeTensor& row_data, const std::string& solver,
                                 const std::string& sense) {
  return spo_plus_loss(theta, true_theta, aimle::solver(solver),
                       {.solution = solution,
                        .sense = ops::parse_word("spo_plus_loss", "sense", sense, ops::kSenses)},
                       {.mask = mask, .row_data = row_data});
}

}  // namespace aimle
