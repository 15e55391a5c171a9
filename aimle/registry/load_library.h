// Libraries of solvers, loaded while the program runs.
//
//   aimle::load_library("build/custom_solver/libviterbi.so");  // {"viterbi"}
#pragma once

#include <string>
#include <vector>

namespace aimle {

/// Loads a library and returns the names of the solvers that it added. std::runtime_error if it
/// cannot be loaded, std::invalid_argument if one of its solvers was refused, for example because
/// its name is taken; its other solvers stay. Loading a library again changes nothing.
std::vector<std::string> load_library(const std::string& path);

}  // namespace aimle
