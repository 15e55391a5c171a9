// Converts the status of rows to an exception, if requested.
#pragma once

#include <string>

#include "aimle/map/map.h"
#include "aimle/torch/solve/solver_checks.h"

namespace aimle::ops {

/// The `check` argument of every solver op. Shapes, types and devices are checked at every level.
enum class Check : int64_t {
  kNever = 0,    // bad rows are NaN, and `status` gives the reason
  kDefault = 1,  // on the CPU, throw for everything except NaN scores; on a GPU as kNever, no sync
  kAll = 2,      // throw for every row whose status is not kOk; on a GPU this synchronises
};

Check check_level(std::string_view op, int64_t check);

/// The error of a row (flat index into *batch), with the offending value and what is allowed.
std::string describe_row(const SolverInput& input, int64_t row, Status status);

/// Throws ValueError for the first row of `status` that `check` does not allow, naming the row, the
/// offending value and what is allowed.
void raise_for_status(const SolverInput& input, const at::Tensor& status, Check check);

}  // namespace aimle::ops
