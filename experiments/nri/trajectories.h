// The data of neural relational inference: points in the plane whose hidden links form a tree.
//
// An example is a random tree on `vertices` points (the maximum spanning tree of independent
// Gumbel(0, 1) edges: not uniform over trees), standard normal start positions, and `frames` steps
// of a force layout on that tree (layout.h); the frame after each step is kept, the start is not. A
// model gets the frames and predicts the tree. Paulus et al., "Gradient estimation with stochastic
// softmax tricks", NeurIPS 2020.
//
// As files, the format of the public generator (T frames, n = 10):
//   data_{train,valid,test}_novar_1skip_{T}t_1r_graph10.npy   [N, T, 2, n] float64
//   edges_{...}.npy                                            [N, n, n]    float32, 0 or 1
//
//   auto raw = nri::generate({.count = 50'000, .frames = 10, .seed = 42, .split = 0});
//   auto range = nri::range_of(raw);                 // of the training set, for all splits
//   auto train = nri::to_examples(raw, range);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "aimle/base/parallel.h"

namespace aimle::experiments::nri {

/// As generated and as stored.
struct Trajectories {
  int64_t count = 0;
  int64_t frames = 0;
  int64_t vertices = 0;
  std::vector<double> positions;   // [count, frames, 2, vertices]
  std::vector<uint8_t> adjacency;  // [count, vertices, vertices], symmetric, zero diagonal
};

/// In the layout of the model.
struct Examples {
  int64_t count = 0;
  int64_t frames = 0;
  int64_t vertices = 0;
  std::vector<float> positions;  // [count, vertices, frames, 2], the training range being [-1, 1]
  std::vector<uint8_t> edges;    // [count, vertices * (vertices - 1)], receiver-major, no diagonal
};

struct Generate {
  int64_t count = 0;
  int64_t frames = 10;
  int64_t vertices = 10;
  uint64_t seed = 42;
  /// 0 train, 1 validation, 2 test: separate streams, so that a size never affects another split.
  uint32_t split = 0;
};

/// Deterministic in the settings; example i depends neither on `count` nor on threads, and its
/// first frames do not depend on `frames`. A set of 70,000 examples at T = 20 takes a few seconds.
Trajectories generate(const Generate& settings, const Executor& executor = sequential());

/// "novar_1skip_10t_1r_graph10": the part of the file names after the name of the split.
std::string file_suffix(int64_t frames, int64_t vertices);

/// Reads (or writes) `data_SPLIT_...npy` and `edges_SPLIT_...npy`; split: "train", "valid", "test".
Trajectories load(const std::filesystem::path& folder, std::string_view split, int64_t frames,
                  int64_t vertices = 10);
void save(const Trajectories& raw, const std::filesystem::path& folder, std::string_view split);

struct Range {
  double low = -1;
  double high = 1;
};
Range range_of(const Trajectories& raw);

/// Maps `range` to [-1, 1], reorders, and lists the edges: entry (receiver r, sender s) is
/// adjacency[s, r].
Examples to_examples(const Trajectories& raw, Range range);

}  // namespace aimle::experiments::nri
