#include <cstdio>

#include "cli/app.h"
#include "cli/commands.h"
#include "experiments/data/digits.h"
#include "experiments/data/idx.h"
#include "experiments/process/failure.h"
#include "experiments/process/progress.h"
#include "experiments/process/python.h"

namespace aimle::cli {
namespace {

using namespace experiments;

// More could be written but not read.
constexpr int64_t kMostImages = kIdxLimit / (kDigitSide * kDigitSide);

struct MakeRequest {
  CommonOptions common;
  int64_t examples = 60000;
  int64_t test_examples = 10000;
  int64_t seed = 0;
};

/// The public sources and the download are in the Python package.
void call_package(std::vector<std::string> arguments) {
  if (!run_python_module("aimle.program.data", arguments)) {
    throw Failure("aimle data " + arguments.front() + " failed");
  }
}

void add_make(CLI::App& parent) {
  CLI::App* command = parent.add_subcommand("make", "Draws digits and writes them as IDX files");
  const auto request = std::make_shared<MakeRequest>();
  add_common_options(*command, request->common, "data/digits");
  add_number(*command, "--examples", request->examples, "Training images", 1, kMostImages);
  add_number(*command, "--test_examples", request->test_examples, "Test images", 1, kMostImages);
  add_number(*command, "--seed", request->seed, "Seed of the drawing", 0, int64_t{1} << 40);
  command->callback([request] {
    const Prepared prepared = apply(request->common);
    write_image_sets(
        {.train = draw_digits(request->seed, 0, request->examples),
         .test = draw_digits(request->seed, request->examples, request->test_examples)},
        request->common.out);
    say("wrote " + std::to_string(request->examples) + " + " +
        std::to_string(request->test_examples) + " digits into " + request->common.out.string());
  });
}

void add_check(CLI::App& parent) {
  CLI::App* command =
      parent.add_subcommand("check", "Reads a folder of IDX files and describes its contents");
  const auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "Folder with the four files of MNIST or Fashion-MNIST")
      ->required();
  command->callback([folder] {
    const ImageSets sets = read_image_sets(*folder);
    for (const auto& [name, images] :
         {std::pair("train", &sets.train), std::pair("test", &sets.test)}) {
      std::printf("%s: %lld images of %lld x %lld, labels 0 to 9\n", name,
                  static_cast<long long>(images->count), static_cast<long long>(images->height),
                  static_cast<long long>(images->width));
    }
    std::fflush(stdout);
    run_python_module("aimle.program.data", {"recognise", *folder});
  });
}

void add_fetch(CLI::App& parent) {
  CLI::App* command =
      parent.add_subcommand("fetch", "Downloads a public data set and checks its SHA-256");
  struct Request {
    std::string name, cache, source;
  };
  const auto request = std::make_shared<Request>();
  command->add_option("name", request->name, "The data set")
      ->required()
      ->check(one_of("data set", {"mnist", "fashion_mnist"}));
  command->add_option("--cache", request->cache,
                      "Folder to store it in; default: $AIMLE_CACHE, or ~/.cache/aimle");
  command->add_option("--from", request->source,
                      "URL of a folder with the files on another server");
  command->callback([request] {
    std::vector<std::string> arguments = {"fetch", request->name};
    if (!request->cache.empty()) arguments.insert(arguments.end(), {"--cache", request->cache});
    if (!request->source.empty()) arguments.insert(arguments.end(), {"--from", request->source});
    call_package(arguments);
  });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "Lists, makes, checks and fetches data sets");
  command->require_subcommand(1);
  command->add_subcommand("list", "Shows the known data sets, and which ones are on this machine")
      ->callback([] { call_package({"list"}); });
  add_make(*command);
  add_check(*command);
  add_fetch(*command);
}

}  // namespace aimle::cli
