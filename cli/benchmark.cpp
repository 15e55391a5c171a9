#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/python.h"

namespace aimle::cli {

namespace {

/// A study whose tasks, methods and options are defined in the Python package.
void add_study(CLI::App& benchmark, const std::string& name, const std::string& help) {
  CLI::App* study = benchmark.add_subcommand(name, help);
  study->set_help_flag();
  study->prefix_command();
  study->callback([study, name] {
    std::vector<std::string> arguments = {name};
    for (const std::string& given : study->remaining()) arguments.push_back(given);
    const experiments::InterruptHandler handler;
    experiments::call_python_module("aimle.program.benchmark", arguments, "");
  });
}

}  // namespace

void add_benchmark(CLI::App& app) {
  CLI::App* command = app.add_subcommand("benchmark", "Compares the estimators on training tasks");
  command->require_subcommand(1);
  add_study(*command, "training", "Trains every task with every method and writes a table");
  add_study(*command, "advice", "Compares what `diagnose` recommends with what trains best");
}

}  // namespace aimle::cli
