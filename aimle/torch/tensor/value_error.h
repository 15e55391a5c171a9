// Converts misuse of the core (std::invalid_argument) to Python's ValueError.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace aimle::ops {

/// Returns `call()`; converts std::invalid_argument to c10::ValueError.
template <class Call>
decltype(auto) with_value_errors(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::invalid_argument& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
}

}  // namespace aimle::ops
