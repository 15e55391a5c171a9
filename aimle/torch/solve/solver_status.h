// From a status per row to an exception, for those who asked for one.
#pragma once

#include <string>

#include "aimle/map/map.h"
#include "aimle/torch/solve/solver_checks.h"

namespace aimle::ops {

/// The `check` argument of every solver op. Shapes, types and devices are checked at every level.
enum class Check : int64_t {
  kNever = 0,    // bad rows are NaN, and `status` says why
  kDefault = 1,  // on the CPU, raise for everything but NaN scores; on a GPU as kNever, no sync
  kAll = 2,      // raise for every row whose status is not kOk; on a GPU this is a sync
};

Check check_level(std::string_view op, int64_t check);

/// What is wrong with a row (flat index into *batch), with the offending value and what is allowed.
std::string describe_row(const SolverInput& input, int64_t row, Status status);

/// ValueError for the first row of `status` that `check` does not allow, naming the row, the
/// offending value and what is allowed.
void raise_for_status(const SolverInput& input, const at::Tensor& status, Check check);

}  // namespace aimle::ops
