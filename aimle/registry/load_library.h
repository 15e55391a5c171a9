// Loads libraries of solvers at run time.
//
//   aimle::load_library("build/custom_solver/libviterbi.so");  // {"viterbi"}
#pragma once

#include <string>
#include <vector>

namespace aimle {

/// Loads a library and returns the names of the solvers that it added. Throws std::runtime_error if
/// it cannot be loaded, std::invalid_argument if one of its solvers was rejected, for example
/// because its name is taken; its other solvers remain. Loading a library twice has no effect.
std::vector<std::string> load_library(const std::string& path);

}  // namespace aimle
