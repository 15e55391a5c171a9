// The kernels of the layer, run on the host (on_host/block.h), against the estimators of the CPU:
// solutions, gradients, state and statistics, bit for bit, over random settings and batches, odd
// values included.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "aimle/cuda/passes.h"
#include "aimle/estimate/stats.h"
#include "aimle/noise/sum_of_gamma.h"
#include "tests/map/graph_path_instances.h"
#include "tests/map/knapsack_instances.h"

namespace aimle {
namespace {

class Arena {
 public:
  void* operator()(size_t bytes) {
    const size_t rounded = (bytes + 255) / 256 * 256;
    auto* block = static_cast<char*>(std::aligned_alloc(256, rounded));
    std::fill(block, block + rounded, static_cast<char>(0xff));
    blocks_.emplace_back(block, &std::free);
    return block;
  }

 private:
  std::vector<std::unique_ptr<char, void (*)(void*)>> blocks_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double share) { return static_cast<double>(from(0, 999'999)) < 1e6 * share; }
  double normal() { return normal_(generator_); }

 private:
  std::mt19937_64 generator_;
  std::normal_distribution<double> normal_;
};

/// A random call of a layer.
template <class T>
struct Call {
  PassSettings settings;
  Solver solver = Argmax{};
  int64_t count, n;
  std::vector<T> theta, dy;
  std::vector<uint8_t> mask;  // empty: none
  std::vector<int64_t> k;     // empty: the solver's
  std::vector<int64_t> data;  // of all instances, or of each one after the other; empty: none
  int64_t data_stride = 0;
  Key key;
  double alpha;
  bool adapt, with_stats, with_status;

  explicit Call(uint64_t seed) {
    Random random(seed);
    choose_solver(random);
    choose_settings(random);
    key = {.seed = 77 * seed + 5, .stream = seed, .first = seed % 3 * 1000};
    alpha = random.chance(0.2) ? 0.0 : random.chance(0.5) ? 0.5 : 5.0;
    adapt = random.chance(0.8);
    with_stats = random.chance(0.8);
    with_status = random.chance(0.3);
    count = random.from(1, settings.samples > 100 ? 2 : 12);
    if (random.chance(0.03) && n <= 12 && settings.samples < 4) count = random.from(1000, 1500);
    const int64_t rows = count * gradient_rows(settings);
    if (data_stride > 0) {
      for (int64_t b = 1; b < count; ++b) draw_data(seed + static_cast<uint64_t>(b));
    }
    const bool costs = solver.has_costs();
    theta.resize(static_cast<size_t>(count * n));
    dy.resize(static_cast<size_t>(rows * n));
    for (T& x : theta) x = static_cast<T>(costs ? std::abs(random.normal()) + 1 : random.normal());
    for (T& x : dy) x = static_cast<T>(random.normal());
    if (n > 0 && random.chance(0.4)) make_odd(random, rows);
    if (random.chance(0.3)) {
      mask.resize(theta.size());
      for (uint8_t& allowed : mask) allowed = !random.chance(0.1);
    }
    if (solver.is<TopK>() && random.chance(0.3)) {
      for (int64_t b = 0; b < count; ++b) {
        k.push_back(random.chance(0.05) ? n + 1 : random.from(0, n));
      }
    }
  }

  const bool* mask_or_null() const {
    return mask.empty() ? nullptr : reinterpret_cast<const bool*>(mask.data());
  }
  InstanceData instance_data() const { return {data.data(), data_stride}; }
  const int64_t* k_or_null() const { return k.empty() ? nullptr : k.data(); }

  std::string text() const {
    std::ostringstream out;
    out << count << " examples of n=" << n << ", " << settings.samples << " samples, solver "
        << solver.name() << ", noise " << static_cast<int>(settings.noise.kind) << ", difference "
        << static_cast<int>(settings.difference) << ", target " << settings.target.index();
    return out.str();
  }

 private:
  void choose_solver(Random& random) {
    const int64_t kind = random.from(0, 17);
    if (kind <= 4) {
      n = random.chance(0.7) ? random.from(1, 40) : random.from(33, 700);
      if (random.chance(0.4)) n = (n + 3) / 4 * 4;
      solver = TopK{.n = n, .k = random.from(0, n)};
      if (kind == 0) solver = Argmax{.n = n};
    } else if (kind == 5) {
      const int64_t most = random.chance(0.8) ? 8 : 40;
      const Assignment matching{.rows = random.from(1, most), .columns = random.from(1, most)};
      n = matching.size();
      solver = matching;
    } else if (kind == 6) {
      const Arborescence parse{.vertices = random.from(1, random.chance(0.8) ? 8 : 40),
                               .single_root = random.chance(0.5)};
      n = parse.size();
      solver = parse;
    } else if (kind == 7) {
      SpanningTree tree{.vertices = random.from(2, random.chance(0.8) ? 12 : 35)};
      if (random.chance(0.5)) tree.layout = SpanningTree::Layout::kDirected;
      n = tree.size();
      solver = tree;
    } else if (kind == 17) {
      n = random.from(0, random.chance(0.8) ? 12 : 60);
      solver = Knapsack{.n = n, .max_capacity = random.chance(0.8) ? 200 : 20'000};
      draw_data(random.from(0, 1 << 20));
      if (random.chance(0.5)) data_stride = std::ssize(data);
    } else if (kind >= 15) {
      n = random.from(1, 60);
      GraphPath graph{.vertices = random.from(1, 30) + 1, .edges = n};
      if (random.chance(0.3)) graph.vertices = random.from(60, 300);
      solver = graph;
      if (kind == 16) solver = DagPath{.vertices = graph.vertices, .edges = n};
      draw_data(random.from(0, 1 << 20));
      if (random.chance(0.5)) data_stride = std::ssize(data);
    } else if (kind >= 13) {
      choose_lattice(random);
    } else if (kind == 12) {
      n = random.chance(0.7) ? random.from(0, 40) : random.from(33, 5000);
      solver = Bernoulli{.n = n};
    } else if (kind >= 10) {
      Chain chain{.length = random.from(1, 8),
                  .labels = random.from(1, random.chance(0.8) ? 6 : 40)};
      if (chain.labels > 12) chain.length = random.from(2, 3);
      n = chain.size();
      solver = chain;
    } else {
      GridPath grid{.height = random.from(1, 8), .width = random.from(1, 8)};
      grid.target = {grid.height - 1, grid.width - 1};
      n = grid.height * grid.width;
      solver = grid;
    }
  }

  void choose_lattice(Random& random) {
    const int64_t longest = random.chance(0.8) ? 9 : 40;
    const LatticePath path{.height = random.from(1, longest), .width = random.from(1, longest)};
    LatticeMoves moves{.height = path.height, .width = path.width};
    if (random.chance(0.5)) moves.moves = LatticeMoves::Moves::kDiagonal;
    solver = path;
    if (random.chance(0.5)) solver = moves;
    n = solver.size();
  }

  /// The data of one more instance.
  void draw_data(uint64_t seed) {
    conformance::Rng rng(seed);
    const auto draw = [&]<class S>(const S* chosen) {
      if (chosen == nullptr) return;
      const std::vector<int64_t> drawn = conformance::Instances<S>::draw_data(*chosen, rng);
      data.insert(data.end(), drawn.begin(), drawn.end());
    };
    draw(solver.get_if<GraphPath>());
    draw(solver.get_if<DagPath>());
    draw(solver.get_if<Knapsack>());
  }

  void choose_settings(Random& random) {
    static const std::vector<float> table = *quantile_table({.k = 10, .iterations = 10});
    settings.noise = {.kind = static_cast<NoiseKind>(random.from(0, 4)), .table = table.data()};
    settings.noise_stddev = 1.3;
    if (!solver.solution_size().fixed && random.chance(0.5)) settings.noise_mean = 0.6;
    settings.samples = random.chance(0.3) ? 1 : random.from(1, 12);
    if (random.chance(0.02)) settings.samples = random.from(250, 600);
    if (random.chance(0.3)) settings.theta_temperature = 0.7;
    if (random.chance(0.3)) settings.target_temperature = 0.7;
    if (random.chance(0.4)) settings.sense = Sense::kMin;
    if (random.chance(0.3)) settings.output = Output::kMean;
    settings.difference = random.chance(0.5) ? Difference::kCentral : Difference::kForward;
    settings.target = FixedTarget{.lambda = random.chance(0.2) ? 0.0 : 3.0};
    if (solver.swaps() != Swaps::kNone && random.chance(0.25)) return choose_thresholds(random);
    if (random.chance(0.25)) return;
    AdaptiveTarget target;
    target.scope = static_cast<AdaptiveTarget::Scope>(random.from(0, random.chance(0.3) ? 2 : 1));
    target.scale = static_cast<AdaptiveTarget::Scale>(random.from(0, 2));
    target.reference = random.chance(0.3);
    if (random.chance(0.5)) {
      target.target_norm = 1.0;
      target.rule = AdaptiveTarget::Rule::kAdditive;
      if (random.chance(0.3)) target.momentum = 0.5;
    }
    settings.target = target;
  }

  void choose_thresholds(Random& random) {
    constexpr NoiseKind kDensities[] = {NoiseKind::kGumbel, NoiseKind::kLogistic,
                                        NoiseKind::kNormal};
    const NoiseKind density = kDensities[random.from(0, 2)];
    settings.noise = {.kind = random.chance(0.2) ? NoiseKind::kNone : density};
    settings.target_temperature = settings.theta_temperature;
    settings.difference = Difference::kThresholds;
    settings.target =
        ThresholdTarget{.density = density,
                        .order = random.chance(0.3) ? ThresholdTarget::Order::kFirst
                                                    : ThresholdTarget::Order::kTrapezoid,
                        .max_weight = random.chance(0.5) ? 20.0 : 0.4};
  }

  /// Infinite and missing scores, gradients that vanish or are not finite.
  void make_odd(Random& random, int64_t rows) {
    const T infinity = std::numeric_limits<T>::infinity();
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (T& x : theta) {
      if (random.chance(0.02)) x = random.chance(0.5) ? infinity : -infinity;
      if (random.chance(0.004)) x = nan;
      if (random.chance(0.05)) x = 0;
    }
    for (int64_t row = 0; row < rows; ++row) {
      T* d = dy.data() + row * n;
      const T scale = random.chance(0.15) ? T(0) : random.chance(0.05) ? T(1e-8) : T(1);
      for (int64_t j = 0; j < n; ++j) d[j] *= scale;
      if (random.chance(0.04)) d[random.from(0, n - 1)] = random.chance(0.5) ? infinity : nan;
    }
  }
};

/// Every bit, but that one NaN is as good as another.
template <class V>
void expect_same(const std::vector<V>& cpu, const std::vector<V>& kernels, const char* what) {
  for (size_t i = 0; i < cpu.size(); ++i) {
    if (cpu[i] != cpu[i] && kernels[i] != kernels[i]) continue;
    ASSERT_EQ(std::memcmp(&cpu[i], &kernels[i], sizeof(V)), 0)
        << what << "[" << i << "]: " << +cpu[i] << " on the CPU but " << +kernels[i];
  }
}

template <class T>
void compare(uint64_t seed, bool key_by_value) {
  const Call<T> call(seed);
  SCOPED_TRACE("seed " + std::to_string(seed) + (key_by_value ? ", key by value: " : ": ") +
               call.text());
  const PassSettings& settings = call.settings;
  const auto z_size = call.dy.size(), size = call.theta.size();
  const auto rows = static_cast<size_t>(call.count * settings.samples);
  const auto bits_size = rows * static_cast<size_t>(bytes_per_row(call.n));
  const bool kept = keeps_solution(settings);

  const Examples<T> examples{.count = call.count,
                             .n = call.n,
                             .theta = call.theta.data(),
                             .mask = call.mask_or_null(),
                             .k = call.k_or_null(),
                             .data = call.instance_data(),
                             .key = call.key};
  std::vector<T> z(z_size), dtheta(size);
  std::vector<uint8_t> bits(bits_size);
  uint8_t* kept_bits = kept ? bits.data() : nullptr;
  forward(settings, call.solver, examples, ForwardPass<T>{.z = z.data(), .bits = kept_bits},
          sequential());
  const int64_t updates = seed % 3 == 0 ? 2 * kReachPeriod : 3;
  const ControllerState start{.alpha = call.alpha, .gbar = 1.0, .updates = updates, .memory = 0.25};
  ControllerState state = start;
  const auto* target = std::get_if<AdaptiveTarget>(&settings.target);
  const BackwardReport seen = backward(
      settings, call.solver, examples,
      BackwardPass<T>{
          .dy = call.dy.data(),
          .bits = kept_bits,
          .alpha = target == nullptr ? 0.0 : step_alpha(*target, call.alpha, updates, call.adapt),
          .dtheta = dtheta.data()},
      sequential());
  if (target != nullptr && call.adapt) {
    update_alpha(*target, settings.samples, seen.changes, state);
  }
  std::vector<double> stats(kLayerStats, -5.0);
  if (call.with_stats) {
    write_stats(seen, stats.data());
    if (target != nullptr && call.adapt && seen.changes.samples > 0) {
      update_watch(*target, seen.lambda_max, state.alpha, stats.data());
    }
  }

  Arena arena;
  const cuda::Context context{.allocate = arena};
  const int64_t key[3] = {static_cast<int64_t>(call.key.seed),
                          static_cast<int64_t>(call.key.stream),
                          static_cast<int64_t>(call.key.first)};
  const cuda::DeviceKey key_of_call =
      key_by_value ? cuda::DeviceKey{.value = call.key}
                   : cuda::DeviceKey{.words = key, .has_first = call.key.first != 0};
  const cuda::DeviceExamples<T> on_device{.count = call.count,
                                          .n = call.n,
                                          .theta = call.theta.data(),
                                          .mask = call.mask_or_null(),
                                          .k = call.k_or_null(),
                                          .data = call.instance_data(),
                                          .key = key_of_call};
  std::vector<T> device_z(z_size, T(-7)), device_dtheta(size, T(-7));
  std::vector<uint8_t> device_bits(bits_size, 0xee), status(2 * rows, 0xee);
  uint8_t* device_kept = kept ? device_bits.data() : nullptr;
  cuda::forward<T>(settings, call.solver, on_device, {.z = device_z.data(), .bits = device_kept},
                   context);
  ControllerState moved = start;
  std::vector<double> device_stats(kLayerStats, -5.0), waiting(kWaitingCounts, 0.0);
  // As one of several processes, whose counts make the update later.
  const bool waits = target != nullptr && call.adapt && call.with_stats && seed % 5 < 2;
  const cuda::DeviceState buffers{.alpha = &moved.alpha,
                                  .gbar = &moved.gbar,
                                  .updates = &moved.updates,
                                  .memory = &moved.memory,
                                  .stats = call.with_stats ? device_stats.data() : nullptr,
                                  .waiting = waits ? waiting.data() : nullptr,
                                  .adapt = call.adapt};
  cuda::backward<T>(settings, call.solver, on_device,
                    {.dy = call.dy.data(),
                     .bits = device_kept,
                     .dtheta = device_dtheta.data(),
                     .status = call.with_status ? status.data() : nullptr},
                    buffers, context);
  if (waits) {
    EXPECT_EQ(moved.updates, start.updates);
    EXPECT_EQ(waiting[kWaitingSamples], static_cast<double>(seen.changes.samples));
    const std::vector<double> counts = waiting;
    cuda::apply_counts(settings, counts.data(), buffers, context);
    EXPECT_EQ(waiting, std::vector<double>(kWaitingCounts, 0.0));
  }

  expect_same(z, device_z, "z");
  if (kept) expect_same(bits, device_bits, "bits");
  expect_same(dtheta, device_dtheta, "dtheta");
  EXPECT_EQ(state.alpha, moved.alpha);
  EXPECT_EQ(state.gbar, moved.gbar);
  EXPECT_EQ(state.updates, moved.updates);
  EXPECT_EQ(state.memory, moved.memory);
  expect_same(stats, device_stats, "stats");
}

TEST(LayerOnHost, GivesTheBitsOfTheCpu) {
  for (uint64_t seed = 1; seed <= 120 && !testing::Test::HasFailure(); ++seed) {
    const bool key_by_value = seed % 4 < 2;
    if (seed % 2 == 0) {
      compare<float>(seed, key_by_value);
    } else {
      compare<double>(seed, key_by_value);
    }
  }
}

}  // namespace
}  // namespace aimle
