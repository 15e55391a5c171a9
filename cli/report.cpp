#include <filesystem>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/listing.h"
#include "experiments/run/failure.h"
#include "experiments/run/output_folder.h"
#include "experiments/run/progress.h"
#include "experiments/run/python.h"

namespace aimle::cli {
namespace {

struct Request {
  std::vector<std::string> folders;
  std::string out = "report.html";
};

/// Studies draw their own pages: where they are, for those who look for them here.
std::string own_pages(const std::filesystem::path& folder) {
  std::string found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool study = entry.path().filename() == "study.json" ||
                       entry.path().filename() == "diagnosis.json" ||
                       entry.path().filename() == "paper.json";
    const std::filesystem::path page = entry.path().parent_path() / "report.html";
    if (study && std::filesystem::exists(page)) {
      found += (found.empty() ? "; studies have a page of their own: " : ", ") + page.string();
    }
  }
  return found;
}

void check_page(const std::filesystem::path& page) {
  if (std::filesystem::is_directory(page)) {
    throw experiments::Failure("--out: expected the name of a page, such as " +
                               (page / "report.html").lexically_normal().string() +
                               ", but got the folder " + page.string());
  }
  if (page.has_parent_path()) {
    experiments::prepare_output_folder(page.parent_path(), experiments::IfNotEmpty::kKeepFiles);
  }
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Draws any number of runs into one self-contained page");
  const auto request = std::make_shared<Request>();
  command->add_option("folders", request->folders, "Runs, or folders of runs")->required();
  command->add_option("--out", request->out, "The page")->capture_default_str();
  command->callback([request] {
    for (const std::string& folder : request->folders) {
      if (experiments::find_runs(folder).runs.empty()) {
        throw experiments::Failure("there are no runs in " + folder + own_pages(folder));
      }
    }
    check_page(request->out);
    std::vector<std::string> arguments = request->folders;
    arguments.insert(arguments.end(), {"--out", request->out});
    if (!experiments::run_python_module("aimle.report.training", arguments)) {
      throw experiments::Failure("no report was written");
    }
    experiments::say("wrote " + request->out);
  });
}

}  // namespace aimle::cli
