#include "experiments/warcraft/data.h"

#include <ATen/Functions.h>

#include "experiments/process/failure.h"
#include "experiments/warcraft/terrain.h"

namespace aimle::experiments::warcraft {
namespace {

constexpr uint64_t kSeed = 20230207;

Split to_split(Maps maps, at::Device device) {
  Split split{.maps = std::move(maps)};
  Maps& m = split.maps;
  const int64_t side = kTile * m.cells;
  const at::Tensor images =
      at::from_blob(m.images.data(), {m.count, side, side, kChannels}, at::kByte);
  split.images = images.to(device, at::kByte, /*non_blocking=*/false, /*copy=*/true);
  m.images = {};
  split.paths = at::from_blob(m.paths.data(), {m.count, m.cells, m.cells}, at::kByte)
                    .to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  return split;
}

std::filesystem::path folder_of(const std::string& data, int64_t cells) {
  const std::string size = std::to_string(cells) + "x" + std::to_string(cells);
  const std::filesystem::path within = std::filesystem::path(data) / size;
  return std::filesystem::is_directory(within) ? within : std::filesystem::path(data);
}

struct Sets {
  Maps train;
  Maps validation;
  Maps test;
};

Sets read_sets(const std::string& data, int64_t cells) {
  const auto folder = folder_of(data, cells);
  if (!std::filesystem::is_directory(folder)) {
    throw Failure("--data: " + folder.string() +
                  ": expected a folder with train_maps.npy, ... or train.npz and test.npz");
  }
  Sets sets{
      .train = load(folder, "train"), .validation = {.cells = cells}, .test = load(folder, "test")};
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  if (has("val_maps.npy") || has("val_maps_part0.npy") || has("val.npz"))
    sets.validation = load(folder, "val");
  for (const Maps* maps : {&sets.train, &sets.validation, &sets.test}) {
    if (maps->cells != cells) {
      throw Failure(folder.string() + ": expected maps of " + std::to_string(cells) + " x " +
                    std::to_string(cells) + " cells but they have " + std::to_string(maps->cells) +
                    " (see --cells)");
    }
  }
  return sets;
}

Sets generate_sets(const Settings& settings, int64_t cells) {
  const Executor executor = thread_pool();
  const auto make = [&](const char* option, uint32_t split) {
    return generate(
        {.count = settings.get<int64_t>(option), .cells = cells, .seed = kSeed, .split = split},
        executor);
  };
  return {.train = make("examples", 0),
          .validation = make("validation", 1),
          .test = make("test_examples", 2)};
}

at::Tensor three(const std::array<double, kChannels>& values, at::Device device) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble).to(device, at::kFloat);
}

}  // namespace

std::vector<Option> data_options() {
  const auto count = [](const char* name, int64_t value, const char* help, double low) {
    return Option{.name = name, .value = value, .help = help, .low = low, .high = 1e7};
  };
  return in_data_group(
      {{.name = "cells", .value = 12, .help = "Cells along a side of a map", .low = 2, .high = 200},
       count("examples", 10'000, "Maps to generate for training, without --data", 1),
       count("validation", 500, "Maps to generate for choosing settings, without --data", 0),
       count("test_examples", 1'000, "Maps to generate for testing, without --data", 1)});
}

at::Tensor Data::pictures(const at::Tensor& images) const {
  return images.to(at::kFloat).sub_(mean).div_(stddev).permute({0, 3, 1, 2});
}

Data load_data(const Settings& settings) {
  const at::Device device(settings.get<std::string>("device"));
  const auto folder = settings.get<std::string>("data");
  const auto cells = settings.get<int64_t>("cells");
  Sets sets = folder.empty() ? generate_sets(settings, cells) : read_sets(folder, cells);
  const Normalisation scale = normalisation(sets.train);
  return {.train = to_split(std::move(sets.train), device),
          .validation = to_split(std::move(sets.validation), device),
          .test = to_split(std::move(sets.test), device),
          .mean = three(scale.mean, device),
          .stddev = three(scale.stddev, device),
          .cells = cells};
}

}  // namespace aimle::experiments::warcraft
