#include <filesystem>
#include <fstream>
#include <string_view>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/engine/listing.h"
#include "experiments/process/failure.h"
#include "experiments/process/output_folder.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"

namespace aimle::cli {
namespace {

struct ReportRequest {
  std::vector<std::string> folders;
  std::string out = "report.html";
};

bool holds_a_study(const std::filesystem::path& folder) {
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, options)) {
    const std::filesystem::path name = entry.path().filename();
    if (name == "study.json" || name == "diagnosis.json") return true;
  }
  return false;
}

/// Whether a report may replace the file: an earlier page, or an empty file.
bool is_page(const std::filesystem::path& file) {
  constexpr std::string_view kStart = "<!DOCTYPE html>";
  std::string start(kStart.size(), ' ');
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  return stream.gcount() == 0 || start == kStart;
}

void check_page(const std::filesystem::path& page) {
  if (std::filesystem::is_directory(page)) {
    throw experiments::Failure("--out: expected the name of a page, such as " +
                               (page / "report.html").lexically_normal().string() +
                               ", but got the folder " + page.string());
  }
  if (std::filesystem::is_regular_file(page) && !is_page(page)) {
    throw experiments::Failure("--out: " + page.string() +
                               " exists and is not a page: choose another name, or remove it");
  }
  if (page.has_parent_path()) {
    experiments::prepare_output_folder(page.parent_path(), experiments::IfNotEmpty::kKeepFiles);
  }
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Draws runs and studies on one self-contained page");
  const auto request = std::make_shared<ReportRequest>();
  command->add_option("folders", request->folders, "Runs, studies, or folders of them")->required();
  command->add_option("--out", request->out, "The page")->capture_default_str();
  command->callback([request] {
    for (const std::string& folder : request->folders) {
      const experiments::Listing found = experiments::find_runs(folder);
      // The page lists those that cannot be read.
      if (found.runs.empty() && found.unreadable.empty() && !holds_a_study(folder)) {
        throw experiments::Failure("there are no runs and no studies in " + folder);
      }
    }
    check_page(request->out);
    std::vector<std::string> arguments = request->folders;
    arguments.insert(arguments.end(), {"--out", request->out});
    if (!experiments::run_python_module("aimle.program.report.collection", arguments)) {
      throw experiments::Failure("no report was written");
    }
    experiments::say("wrote " + request->out);
  });
}

}  // namespace aimle::cli
