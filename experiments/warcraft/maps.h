// Terrain maps and the cheapest paths through them.
//
// A map of K x K cells is a picture of 8K x 8K pixels; every cell has a terrain and every terrain a
// cost; the label is the cheapest path from the top left to the bottom right cell over 8
// neighbours, both ends counted. A model gets the picture and the path, never the costs. Vlastelica
// et al., "Differentiation of blackbox combinatorial solvers", ICLR 2020 ("Warcraft").
//
// As files, the format of the public sets (a folder for each K = 12, 18, 24, 30):
//   {train,val,test}_maps.npy             [N, 8K, 8K, 3], 0 ... 255
//   {train,val,test}_shortest_paths.npy   [N, K, K], 0 or 1
//   {train,val,test}_vertex_weights.npy   [N, K, K], float16 to float64
// Large files may come as ..._part0.npy, ..._part1.npy, joined along N. Instead of the three files
// of a split there may be {train,val,test}.npz with the arrays maps, shortest_paths and
// vertex_weights. Labels that are not the cheapest paths under the costs are an error.
//
//   namespace warcraft = aimle::experiments::warcraft;
//   auto train = warcraft::load(folder / "12x12", "train");
//   auto scale = warcraft::normalisation(train);      // of the training set, for all splits
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "aimle/base/parallel.h"

namespace aimle::experiments::warcraft {

inline constexpr int64_t kTile = 8;
inline constexpr int64_t kChannels = 3;

struct Maps {
  int64_t count = 0;
  int64_t cells = 0;            // K, along a side
  std::vector<uint8_t> images;  // [count, 8K, 8K, 3]
  std::vector<float> costs;     // [count, K, K]
  std::vector<uint8_t> paths;   // [count, K, K], 0 or 1

  int64_t image_size() const { return kTile * kTile * cells * cells * kChannels; }
};

/// Split: "train", "val" or "test".
Maps load(const std::filesystem::path& folder, std::string_view split);
Maps load_npz(const std::filesystem::path& archive);

/// Writes the three files of one split.
void save(const Maps& maps, const std::filesystem::path& folder, std::string_view split);

/// Mean and standard deviation of every channel, 0-255 scale.
struct Normalisation {
  std::array<double, kChannels> mean{};
  std::array<double, kChannels> stddev{};
};
Normalisation normalisation(const Maps& maps);

/// Cheapest paths for [count, K, K] costs, by GridPath.
std::vector<uint8_t> solve_paths(const std::vector<float>& costs, int64_t cells,
                                 const Executor& executor = sequential());

/// Quality of predicted paths ([count, K, K], 0 or 1), in true costs:
///   perfect_match  share equal to the label, cell by cell
///   optimal        share that are paths and cost at most 1e-6 (relative) more than the label
///   cost_ratio     mean of cost(predicted) / cost(label) over those that are paths
///   valid          share that are paths: they connect the first cell to the last
/// The public code's `cost_ratio` averages ratios of columns instead, which can be below 1.
struct PathScores {
  double perfect_match = 0;
  double optimal = 0;
  double cost_ratio = 0;
  double valid = 0;
};
PathScores score_paths(const Maps& maps, std::span<const int64_t> indices,
                       std::span<const uint8_t> predicted);

/// True if the cells of `path` connect the first to the last cell.
bool is_path(std::span<const uint8_t> path, int64_t cells);

}  // namespace aimle::experiments::warcraft
