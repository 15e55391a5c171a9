#include <filesystem>
#include <memory>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"
#include "experiments/process/python.h"
#include "experiments/process/shell_word.h"

namespace aimle::cli {
namespace {

struct Request {
  std::string folder = "runs";
  int64_t port = 8712;
};

void watch(const Request& request) {
  if (!std::filesystem::is_directory(request.folder)) {
    throw experiments::Failure(
        "there is no folder " + request.folder +
        ": name one with runs, or start a run there first, for example "
        "aimle train dvae --out " +
        experiments::shell_word((std::filesystem::path(request.folder) / "dvae").string()));
  }
  const experiments::InterruptHandler handler;
  try {
    experiments::call_python_module("aimle.program.watch",
                                    {request.folder, "--port", std::to_string(request.port)}, "");
  } catch (const experiments::Stopped& stopped) {
    throw experiments::Stopped(stopped.signal, "stopped watching " + request.folder);
  }
}

}  // namespace

void add_watch(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("watch", "Serves a live page of the runs in a folder on this machine");
  const auto request = std::make_shared<Request>();
  command->add_option("folder", request->folder, "Runs, or a folder of them")
      ->capture_default_str();
  add_number(*command, "--port", request->port,
             "Port of the page; 0, or one that is in use: any that is free", 0, 65535);
  command->callback([request] { watch(*request); });
}

}  // namespace aimle::cli
