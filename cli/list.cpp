#include <cstdio>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/listing.h"
#include "experiments/process/failure.h"
#include "experiments/process/progress.h"

namespace aimle::cli {

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "Shows the runs in a folder as a table");
  const auto folder = std::make_shared<std::string>("runs");
  command->add_option("folder", *folder, "Folder to search, including subfolders")
      ->capture_default_str();
  command->callback([folder] {
    const experiments::Listing found = experiments::find_runs(*folder);
    const std::string complaint = found.complaint();
    if (found.runs.empty()) {
      throw experiments::Failure("there are no runs in " + *folder +
                                 (complaint.empty() ? "" : "; " + complaint));
    }
    std::fputs(experiments::to_table(found.runs).c_str(), stdout);
    std::fflush(stdout);
    if (!complaint.empty()) experiments::say(complaint);
  });
}

}  // namespace aimle::cli
