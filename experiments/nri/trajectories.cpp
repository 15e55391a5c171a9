#include "experiments/nri/trajectories.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "aimle/base/check.h"
#include "aimle/map/spanning_tree.h"
#include "aimle/noise/noise.h"
#include "experiments/data/file_error.h"
#include "experiments/data/npy.h"
#include "experiments/nri/layout.h"

namespace aimle::experiments::nri {
namespace {

constexpr uint64_t kTreeStream = 1, kStartStream = 2;
constexpr int64_t kBlock = 256;

Key key(const Generate& settings, uint64_t what) {
  return {.seed = settings.seed, .stream = what | uint64_t{settings.split} << 8};
}

/// Examples [first, first + count) of the set, written to their place in `out`.
void generate_block(const Generate& settings, int64_t first, int64_t count, Trajectories& out) {
  const int64_t n = settings.vertices;
  const SpanningTree solver{.vertices = n};
  std::vector<float> weights(static_cast<size_t>(count * solver.size()));
  std::vector<float> trees(weights.size());
  std::vector<Status> status(static_cast<size_t>(count));
  fill_rows({.kind = NoiseKind::kGumbel}, key(settings, kTreeStream),
            {.first = first, .count = count, .n = solver.size()}, weights.data());
  solve_rows(
      solver,
      Rows<float>{
          .count = count, .scores = weights.data(), .z = trees.data(), .status = status.data()});
  std::vector<float> start(static_cast<size_t>(count * 2 * n));
  fill_rows({.kind = NoiseKind::kNormal}, key(settings, kStartStream),
            {.first = first, .count = count, .n = 2 * n}, start.data());

  for (int64_t b = 0; b < count; ++b) {
    uint8_t* adjacency = out.adjacency.data() + (first + b) * n * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        const bool linked = trees[b * solver.size() + SpanningTree::edge(i, j, n)] != 0;
        adjacency[i * n + j] = adjacency[j * n + i] = linked;
      }
    }
    std::vector<double> now(start.begin() + b * 2 * n, start.begin() + (b + 1) * 2 * n);
    const std::span<double> x(now.data(), n);
    const std::span<double> y(now.data() + n, n);
    double* frame = out.positions.data() + (first + b) * settings.frames * 2 * n;
    for (int64_t t = 0; t < settings.frames; ++t, frame += 2 * n) {
      layout_step({adjacency, static_cast<size_t>(n * n)}, x, y);
      std::ranges::copy(now, frame);
    }
  }
}

std::filesystem::path file(const std::filesystem::path& folder, std::string_view what,
                           std::string_view split, int64_t frames, int64_t vertices) {
  return folder / (std::string(what) + "_" + std::string(split) + "_" +
                   file_suffix(frames, vertices) + ".npy");
}

std::filesystem::path without_ending(std::filesystem::path file) {
  return file.replace_extension();
}

void check_positions(const std::filesystem::path& file, const Trajectories& raw) {
  if (raw.count == 0) data::fail(file, "expected at least one example");
  for (size_t i = 0; i < raw.positions.size(); ++i) {
    if (!std::isfinite(raw.positions[i])) {
      data::fail(file, "expected finite positions but entry ", i, " is ", raw.positions[i]);
    }
  }
  const size_t size = static_cast<size_t>(raw.frames * 2 * raw.vertices);
  for (int64_t b = 0; b < raw.count; ++b) {
    const std::span<const double> one(raw.positions.data() + b * size, size);
    if (std::ranges::all_of(one, [&](double p) { return p == one[0]; })) {
      data::fail(file, "expected positions that differ but all those of example ", b, " are ",
                 one[0]);
    }
  }
}

/// Undirected graphs without loops, with at least one edge, and not with all of them.
void check_edges(const std::filesystem::path& file, const Trajectories& raw) {
  const int64_t n = raw.vertices;
  for (int64_t b = 0; b < raw.count; ++b) {
    const uint8_t* linked = raw.adjacency.data() + b * n * n;
    int64_t edges = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int there = linked[i * n + j];
        if (there > 1) {
          data::fail(file, "expected 0 or 1 but entry [", b, ", ", i, ", ", j, "] is ", there);
        }
        if (there != linked[j * n + i]) {
          data::fail(file, "expected symmetric edges but in example ", b, " entry [", i, ", ", j,
                     "] is ", there, " and [", j, ", ", i, "] is ", int{linked[j * n + i]});
        }
        edges += there;
      }
      if (linked[i * n + i]) {
        data::fail(file, "expected no edge from a vertex to itself but vertex ", i, " of example ",
                   b, " has one");
      }
    }
    if (edges == 0) data::fail(file, "expected edges but example ", b, " has none");
    if (edges == n * (n - 1) && n > 2) {
      data::fail(file, "expected some pairs to be linked but in example ", b, " all are");
    }
  }
}

}  // namespace

Trajectories generate(const Generate& settings, const Executor& executor) {
  AIMLE_CHECK(settings.count >= 0 && settings.frames >= 1 && settings.vertices >= 2 &&
                  settings.vertices <= 1000 && settings.split < 256,
              "[aimle nri] expected count >= 0, frames >= 1, 2 <= vertices <= 1000, "
              "split < 256 but got ",
              settings.count, ", ", settings.frames, ", ", settings.vertices, ", ", settings.split);
  const int64_t n = settings.vertices;
  Trajectories out{.count = settings.count, .frames = settings.frames, .vertices = n};
  out.positions.resize(static_cast<size_t>(out.count * out.frames * 2 * n));
  out.adjacency.resize(static_cast<size_t>(out.count * n * n));
  const double example_ns = 10.0 * static_cast<double>(settings.frames * n * n);
  const int64_t blocks = (settings.count + kBlock - 1) / kBlock;
  parallel_for(executor, blocks, kBlock * example_ns, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock;
      generate_block(settings, first, std::min(kBlock, settings.count - first), out);
    }
  });
  return out;
}

std::string file_suffix(int64_t frames, int64_t vertices) {
  return "novar_1skip_" + std::to_string(frames) + "t_1r_graph" + std::to_string(vertices);
}

Trajectories load(const std::filesystem::path& folder, std::string_view split, int64_t frames,
                  int64_t vertices) {
  const auto data_file = file(folder, "data", split, frames, vertices);
  const auto edges_file = file(folder, "edges", split, frames, vertices);
  data::Array<double> positions = data::read_npy_parts<double>(without_ending(data_file));
  data::Array<uint8_t> adjacency = data::read_npy_parts<uint8_t>(without_ending(edges_file));
  const int64_t count = positions.shape.empty() ? 0 : positions.shape[0];
  const std::vector<int64_t> expected{count, frames, 2, vertices};
  if (positions.shape != expected) {
    data::fail(data_file, "expected shape [N, ", frames, ", 2, ", vertices, "] but got ",
               data::to_string(positions.shape));
  }
  const std::vector<int64_t> expected_edges{count, vertices, vertices};
  if (adjacency.shape != expected_edges) {
    data::fail(edges_file, "expected shape ", data::to_string(expected_edges), " but got ",
               data::to_string(adjacency.shape));
  }
  Trajectories raw{.count = count,
                   .frames = frames,
                   .vertices = vertices,
                   .positions = std::move(positions.values),
                   .adjacency = std::move(adjacency.values)};
  check_positions(data_file, raw);
  check_edges(edges_file, raw);
  return raw;
}

void save(const Trajectories& raw, const std::filesystem::path& folder, std::string_view split) {
  const std::vector<int64_t> shape{raw.count, raw.frames, 2, raw.vertices};
  const std::vector<int64_t> edges_shape{raw.count, raw.vertices, raw.vertices};
  data::write_npy<double>(file(folder, "data", split, raw.frames, raw.vertices), shape,
                          raw.positions);
  const std::vector<float> edges(raw.adjacency.begin(), raw.adjacency.end());
  data::write_npy<float>(file(folder, "edges", split, raw.frames, raw.vertices), edges_shape,
                         edges);
}

Range range_of(const Trajectories& raw) {
  AIMLE_CHECK(!raw.positions.empty(), "[aimle nri] expected at least one example");
  const auto [low, high] = std::ranges::minmax(raw.positions);
  return {.low = low, .high = high};
}

Examples to_examples(const Trajectories& raw, Range range) {
  AIMLE_CHECK(range.low < range.high, "[aimle nri] expected low < high but got ", range.low,
              " and ", range.high);
  const int64_t n = raw.vertices;
  Examples out{.count = raw.count, .frames = raw.frames, .vertices = n};
  out.positions.resize(raw.positions.size());
  out.edges.resize(static_cast<size_t>(raw.count * n * (n - 1)));
  for (int64_t b = 0; b < raw.count; ++b) {
    for (int64_t t = 0; t < raw.frames; ++t) {
      for (int64_t d = 0; d < 2; ++d) {
        const double* from = raw.positions.data() + ((b * raw.frames + t) * 2 + d) * n;
        for (int64_t v = 0; v < n; ++v) {
          out.positions[((b * n + v) * raw.frames + t) * 2 + d] =
              static_cast<float>((from[v] - range.low) * 2.0 / (range.high - range.low) - 1.0);
        }
      }
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t s = 0; s < n; ++s) {
        if (s == r) continue;
        out.edges[b * n * (n - 1) + SpanningTree::arc(r, s, n)] =
            raw.adjacency[(b * n + s) * n + r];
      }
    }
  }
  return out;
}

}  // namespace aimle::experiments::nri
