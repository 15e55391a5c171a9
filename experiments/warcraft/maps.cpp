#include "experiments/warcraft/maps.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "aimle/base/check.h"
#include "aimle/map/grid_path.h"
#include "experiments/data/file_error.h"
#include "experiments/data/npy.h"

namespace aimle::experiments::warcraft {
namespace {

using Path = std::filesystem::path;

constexpr double kOptimal = 1e-6;
/// Labels were made from costs before these were rounded to float16, by up to 2^-11 each: a
/// cheapest path costs at most (1 + 2^-11) / (1 - 2^-11) times the minimum.
constexpr double kLabelTolerance = 1e-3;

/// Where each array came from, for messages.
struct Names {
  Path images;
  Path paths;
  Path costs;
};

void check_shape(const Path& name, const std::vector<int64_t>& expected,
                 const std::vector<int64_t>& shape) {
  if (shape != expected) {
    data::fail(name, "expected shape ", data::to_string(expected), " but got ",
               data::to_string(shape));
  }
}

double path_cost(const float* costs, const uint8_t* path, int64_t area) {
  double cost = 0;
  for (int64_t i = 0; i < area; ++i) cost += path[i] ? costs[i] : 0.0;
  return cost;
}

/// The cells of every label are a cheapest path from corner to corner, and nothing else.
void check_paths(const Names& names, const Maps& maps) {
  const int64_t area = maps.cells * maps.cells;
  const std::vector<uint8_t> best = solve_paths(maps.costs, maps.cells, thread_pool());
  for (int64_t b = 0; b < maps.count; ++b) {
    const std::span<const uint8_t> path(maps.paths.data() + b * area, area);
    if (std::ranges::max(path) > 1) data::fail(names.paths, "expected 0 or 1 in map ", b);
    if (!is_path(path, maps.cells)) {
      data::fail(names.paths, "expected a path from corner to corner in map ", b);
    }
    const float* costs = maps.costs.data() + b * area;
    const double given = path_cost(costs, path.data(), area);
    const double least = path_cost(costs, best.data() + b * area, area);
    if (given > least * (1 + kLabelTolerance)) {
      data::fail(names.paths, "expected the cheapest path in map ", b, " but its cells cost ",
                 given, ", and there is a path of cost ", least, " (by ",
                 names.costs.filename().string(), ")");
    }
  }
}

Maps assemble(const Names& names, data::Array<uint8_t> images, data::Array<uint8_t> paths,
              data::Array<float> costs) {
  const auto& shape = costs.shape;
  if (shape.size() != 3 || shape[1] != shape[2] || shape[1] < 1) {
    data::fail(names.costs, "expected shape [N, K, K] but got ", data::to_string(shape));
  }
  const int64_t count = shape[0];
  const int64_t cells = shape[1];
  if (count == 0) data::fail(names.costs, "expected at least one map");
  check_shape(names.paths, {count, cells, cells}, paths.shape);
  check_shape(names.images, {count, kTile * cells, kTile * cells, kChannels}, images.shape);
  for (size_t i = 0; i < costs.values.size(); ++i) {
    if (!(costs.values[i] >= 0) || !std::isfinite(costs.values[i])) {
      data::fail(names.costs, "expected finite costs >= 0 but entry ", i, " is ", costs.values[i]);
    }
  }
  Maps maps{.count = count,
            .cells = cells,
            .images = std::move(images.values),
            .costs = std::move(costs.values),
            .paths = std::move(paths.values)};
  check_paths(names, maps);
  return maps;
}

Names names_in(const Path& folder, std::string_view split) {
  const std::string start(split);
  return {.images = folder / (start + "_maps"),
          .paths = folder / (start + "_shortest_paths"),
          .costs = folder / (start + "_vertex_weights")};
}

}  // namespace

Maps load(const Path& folder, std::string_view split) {
  Path archive = folder / split;
  archive += ".npz";
  Names names = names_in(folder, split);
  if (std::filesystem::exists(archive) && !std::filesystem::exists(names.costs.string() + ".npy")) {
    return load_npz(archive);
  }
  auto images = data::read_npy_parts<uint8_t>(names.images);
  auto paths = data::read_npy_parts<uint8_t>(names.paths);
  auto costs = data::read_npy_parts<float>(names.costs);
  return assemble(names, std::move(images), std::move(paths), std::move(costs));
}

Maps load_npz(const Path& archive) {
  const Names names{.images = archive / "maps",
                    .paths = archive / "shortest_paths",
                    .costs = archive / "vertex_weights"};
  auto images = data::read_npz<uint8_t>(archive, "maps");
  auto paths = data::read_npz<uint8_t>(archive, "shortest_paths");
  auto costs = data::read_npz<float>(archive, "vertex_weights");
  return assemble(names, std::move(images), std::move(paths), std::move(costs));
}

void save(const Maps& maps, const Path& folder, std::string_view split) {
  const auto npy = [](Path name) { return name += ".npy"; };
  const Names names = names_in(folder, split);
  const std::vector<int64_t> grid{maps.count, maps.cells, maps.cells};
  const std::vector<int64_t> picture{maps.count, kTile * maps.cells, kTile * maps.cells, kChannels};
  data::write_npy<uint8_t>(npy(names.images), picture, maps.images);
  data::write_npy<uint8_t>(npy(names.paths), grid, maps.paths);
  data::write_npy<float>(npy(names.costs), grid, maps.costs);
}

Normalisation normalisation(const Maps& maps) {
  AIMLE_CHECK(maps.count > 0, "[aimle warcraft] expected at least one map to normalise by");
  // Counts of the 256 levels: exact, whatever the order.
  std::array<std::array<int64_t, 256>, kChannels> counts{};
  for (size_t i = 0; i < maps.images.size(); i += kChannels) {
    for (size_t c = 0; c < kChannels; ++c) ++counts[c][maps.images[i + c]];
  }
  const auto pixels = static_cast<double>(maps.images.size() / kChannels);
  Normalisation scale;
  for (size_t c = 0; c < kChannels; ++c) {
    double sum = 0;
    for (int level = 0; level < 256; ++level) sum += level * static_cast<double>(counts[c][level]);
    scale.mean[c] = sum / pixels;
    double squares = 0;
    for (int level = 0; level < 256; ++level) {
      const double distance = level - scale.mean[c];
      squares += distance * distance * static_cast<double>(counts[c][level]);
    }
    scale.stddev[c] = std::sqrt(squares / pixels);
    AIMLE_CHECK(scale.stddev[c] > 0, "[aimle warcraft] expected channel ", c,
                " to vary but every pixel is ", scale.mean[c]);
  }
  return scale;
}

std::vector<uint8_t> solve_paths(const std::vector<float>& costs, int64_t cells,
                                 const Executor& executor) {
  const GridPath solver{.height = cells, .width = cells, .negative = GridPath::Negative::kError};
  const auto count = static_cast<int64_t>(costs.size()) / solver.size();
  std::vector<float> z(costs.size());
  std::vector<Status> status(static_cast<size_t>(count));
  solve(solver,
        Rows<float>{.count = count, .scores = costs.data(), .z = z.data(), .status = status.data()},
        executor);
  for (int64_t b = 0; b < count; ++b) {
    AIMLE_CHECK(status[b] == Status::kOk, "[aimle warcraft] map ", b, ": ", describe(status[b]));
  }
  return {z.begin(), z.end()};
}

bool is_path(std::span<const uint8_t> path, int64_t cells) {
  std::vector<uint8_t> seen(path.size());
  std::vector<int64_t> open;
  const auto visit = [&](int64_t row, int64_t column) {
    if (row < 0 || row >= cells || column < 0 || column >= cells) return;
    const int64_t cell = row * cells + column;
    if (!path[cell] || seen[cell]) return;
    seen[cell] = 1;
    open.push_back(cell);
  };
  visit(0, 0);
  while (!open.empty()) {
    const int64_t cell = open.back();
    open.pop_back();
    for (int64_t row = -1; row <= 1; ++row) {
      for (int64_t column = -1; column <= 1; ++column) {
        visit(cell / cells + row, cell % cells + column);
      }
    }
  }
  return seen.back() != 0;
}

PathScores score_paths(const Maps& maps, std::span<const int64_t> indices,
                       std::span<const uint8_t> predicted) {
  const int64_t area = maps.cells * maps.cells;
  AIMLE_CHECK(predicted.size() == indices.size() * area && !indices.empty(),
              "[aimle warcraft] expected ", area, " cells for each of at least one map but got ",
              predicted.size(), " for ", indices.size());
  PathScores scores;
  double valid = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const uint8_t* label = maps.paths.data() + indices[i] * area;
    const float* costs = maps.costs.data() + indices[i] * area;
    const std::span<const uint8_t> path = predicted.subspan(i * area, area);
    scores.perfect_match += std::equal(path.begin(), path.end(), label);
    if (!is_path(path, maps.cells)) continue;
    const double cost = path_cost(costs, path.data(), area);
    const double least = path_cost(costs, label, area);
    const double ratio = least > 0 ? cost / least : 1.0;
    valid += 1;
    scores.cost_ratio += ratio;
    scores.optimal += ratio - 1 < kOptimal;
  }
  const auto count = static_cast<double>(indices.size());
  scores.cost_ratio = valid > 0 ? scores.cost_ratio / valid : 0;
  scores.valid = valid / count;
  scores.optimal /= count;
  scores.perfect_match /= count;
  return scores;
}

}  // namespace aimle::experiments::warcraft
