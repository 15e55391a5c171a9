#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/listing.h"
#include "experiments/run/failure.h"
#include "experiments/run/progress.h"
#include "experiments/run/python.h"

namespace aimle::cli {
namespace {

struct Request {
  std::vector<std::string> folders;
  std::string out = "report.html";
};

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Draws any number of runs into one self-contained page");
  const auto request = std::make_shared<Request>();
  command->add_option("folders", request->folders, "Runs, or folders of runs")->required();
  command->add_option("--out", request->out, "The page")->capture_default_str();
  command->callback([request] {
    for (const std::string& folder : request->folders) {
      if (experiments::find_runs(folder).empty()) {
        throw experiments::Failure("there are no runs in " + folder);
      }
    }
    std::vector<std::string> arguments = request->folders;
    arguments.insert(arguments.end(), {"--out", request->out});
    if (!experiments::run_python_module("aimle.report.training", arguments)) {
      throw experiments::Failure("no report was written");
    }
    experiments::say("wrote " + request->out);
  });
}

}  // namespace aimle::cli
