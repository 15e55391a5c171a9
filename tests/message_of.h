// The message of an error, for tests.
#pragma once

#include <string>

namespace aimle {

/// The message of the `Error` that `act` throws; empty if it throws nothing.
template <class Error, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace aimle
