#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/python.h"

namespace aimle::cli {

void add_benchmark(CLI::App& app) {
  CLI::App* command = app.add_subcommand("benchmark", "Compares the estimators on training tasks");
  command->require_subcommand(1);
  CLI::App* training = command->add_subcommand(
      "training", "Trains every task with every method and writes a table; --help lists options");
  // The tasks, methods and options are defined in the Python package.
  training->set_help_flag();
  training->prefix_command();
  training->callback([training] {
    std::vector<std::string> arguments = {"training"};
    for (const std::string& given : training->remaining()) arguments.push_back(given);
    const experiments::InterruptHandler handler;
    if (!experiments::run_python_module("aimle.program.benchmark", arguments)) {
      throw experiments::Failure(
          "the benchmark is incomplete; run the same command to continue it");
    }
  });
}

}  // namespace aimle::cli
