#include <cstdio>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/listing.h"
#include "experiments/run/failure.h"

namespace aimle::cli {

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "Shows the runs in a folder as a table");
  const auto folder = std::make_shared<std::string>("runs");
  command->add_option("folder", *folder, "Looked through with all folders below")
      ->capture_default_str();
  command->callback([folder] {
    const std::vector<experiments::RunRecord> runs = experiments::find_runs(*folder);
    if (runs.empty()) throw experiments::Failure("there are no runs in " + *folder);
    std::fputs(experiments::to_table(runs).c_str(), stdout);
  });
}

}  // namespace aimle::cli
