// Runs modules of the Python package, which draws figures and reports and makes diagnoses:
// `python -m aimle.program.…`.
//
// The interpreter is $AIMLE_PYTHON if set, otherwise the one the build was configured with if it
// still exists, otherwise python3. In a build tree the source tree's package is put on PYTHONPATH.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aimle::experiments {

/// Runs `python -m module arguments...` and waits. Returns false, after printing the reason to
/// standard error, if it could not be run or failed; throws Stopped if a signal ended it under an
/// InterruptHandler.
bool run_python_module(std::string_view module, const std::vector<std::string>& arguments);

/// What a module does after a signal: kEnds gets a second, kSaves slightly more than a training run
/// needs to save its work (kSecondsToStop).
enum class WhenStopped { kEnds, kSaves };

/// The same for a module that does the command's work: it reads `input` from its standard input and
/// prints even if the program is quiet. Throws Explained or Failure if it fails.
void call_python_module(std::string_view module, const std::vector<std::string>& arguments,
                        std::string_view input, WhenStopped when_stopped = WhenStopped::kEnds);

}  // namespace aimle::experiments
