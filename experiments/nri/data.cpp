#include "experiments/nri/data.h"

#include <ATen/Functions.h>

#include "aimle/torch/tensor/executor.h"
#include "experiments/nri/model.h"
#include "experiments/nri/trajectories.h"

namespace aimle::experiments::nri {
namespace {

Split to_split(const Trajectories& raw, Range range, at::Device device) {
  Examples examples = to_examples(raw, range);
  const int64_t n = examples.vertices;
  const at::Tensor edges =
      at::from_blob(examples.edges.data(), {examples.count, n * (n - 1)}, at::kByte);
  const at::Tensor paths =
      at::from_blob(examples.positions.data(), {examples.count, n, examples.frames, 2}, at::kFloat);
  return {.paths = paths.to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true),
          .trees = Wiring(n, at::kCPU).symmetric(edges.to(at::kFloat)).gt(0.5).to(device)};
}

}  // namespace

std::vector<Option> data_options() {
  return in_data_group(
      {{.name = "frames", .value = 10, .help = "Positions per path", .low = 2, .high = 1000},
       {.name = "examples",
        .value = 50000,
        .help = "Examples to generate for training, without --data",
        .low = 1,
        .high = 1e7},
       {.name = "validation",
        .value = 10000,
        .help = "Validation examples: number to generate, or maximum of those in the files",
        .low = 1,
        .high = 1e7},
       {.name = "test_examples",
        .value = 10000,
        .help = "Test examples: number to generate, or maximum of those in the files",
        .low = 1,
        .high = 1e7},
       {.name = "data_seed", .value = 42, .help = "Seed of the generated data", .low = 0}});
}

Data load_data(const Settings& settings) {
  const at::Device device(settings.get<std::string>("device"));
  const auto folder = settings.get<std::string>("data");
  const auto frames = settings.get<int64_t>("frames");
  const auto read = [&](const char* split, uint32_t number, const char* size) {
    const auto count = settings.get<int64_t>(size);
    if (folder.empty()) {
      return generate({.count = count,
                       .frames = frames,
                       .seed = settings.get<uint64_t>("data_seed"),
                       .split = number},
                      ops::torch_threads());
    }
    return load(folder, split, frames);
  };
  const auto first = [&](Split split, const char* size) {
    const int64_t count = std::min(settings.get<int64_t>(size), split.count());
    return Split{.paths = split.paths.narrow(0, 0, count),
                 .trees = split.trees.narrow(0, 0, count)};
  };
  const Trajectories train = read("train", 0, "examples");
  const Range range = range_of(train);
  return {
      .train = to_split(train, range, device),
      .validation = first(to_split(read("valid", 1, "validation"), range, device), "validation"),
      .test = first(to_split(read("test", 2, "test_examples"), range, device), "test_examples")};
}

}  // namespace aimle::experiments::nri
