// The kernels of the layer and their CPU references: first the same bits, then the time.
//
//   build/release/benchmarks/cuda_layer [part of a case's name [check]]
//
// For every case the GPU's z, gradient and alpha are compared with those of the core on the CPU, on
// new random inputs, with outputs poisoned before; only then is the case timed, by events around
// repeated launches. `bytes` is the minimum that must be transferred (theta and dy read once, z or
// the gradient written once), and `GB/s` is that divided by the time.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/passes.h"
#include "aimle/estimate/stats.h"
#include "aimle/noise/sum_of_gamma.h"

namespace aimle::cuda {
namespace {

void expect(bool ok, const std::string& what) {
  if (ok) return;
  std::printf("FAILED: %s\n", what.c_str());
  std::exit(1);
}

/// Device memory that exists as long as the program's case.
class Arena {
 public:
  ~Arena() {
    for (void* block : blocks_) cudaFree(block);
  }
  void* operator()(size_t bytes) {
    if (used_ < scratch_.size() && scratch_[used_].second >= bytes) return scratch_[used_++].first;
    void* block = nullptr;
    check(cudaMalloc(&block, bytes), "benchmark");
    check(cudaMemset(block, 0xff, bytes), "benchmark");  // NaN, and no valid status
    blocks_.push_back(block);
    scratch_.resize(used_);
    scratch_.emplace_back(block, bytes);
    return scratch_[used_++].first;
  }
  /// Scratch of the last call may be used again.
  void rewind(size_t to = 0) { used_ = to; }
  size_t mark() const { return used_; }

  template <class T>
  T* upload(const std::vector<T>& host) {
    auto* data = static_cast<T*>((*this)(host.size() * sizeof(T)));
    check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice),
          "benchmark");
    return data;
  }

 private:
  std::vector<void*> blocks_;
  std::vector<std::pair<void*, size_t>> scratch_;
  size_t used_ = 0;
};

template <class T>
std::vector<T> download(const T* data, int64_t count) {
  std::vector<T> host(static_cast<size_t>(count));
  check(cudaMemcpy(host.data(), data, host.size() * sizeof(T), cudaMemcpyDeviceToHost),
        "benchmark");
  return host;
}

/// Median of the times of single calls, in microseconds.
template <class Call>
double time_us(Call call) {
  constexpr int kRounds = 15, kCalls = 10;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "benchmark");
  check(cudaEventCreate(&end), "benchmark");
  for (int i = 0; i < 5; ++i) call();
  std::vector<float> times;
  for (int round = 0; round < kRounds; ++round) {
    check(cudaEventRecord(begin), "benchmark");
    for (int i = 0; i < kCalls; ++i) call();
    check(cudaEventRecord(end), "benchmark");
    check(cudaEventSynchronize(end), "benchmark");
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, begin, end), "benchmark");
    times.push_back(1000.0f * ms / kCalls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Case {
  const char* name;
  int64_t examples;
  int64_t n;
  int64_t k;
  int64_t samples;
  NoiseKind noise;
};

/// The input of both sides: a seeded batch.
struct Batch {
  std::vector<float> theta, dy, table;
  Key key;
  PassSettings settings;

  Batch(const Case& test, int64_t examples, uint64_t seed)
      : key{.seed = 0x1234567 + seed, .stream = seed} {
    std::mt19937_64 rng(seed);
    std::normal_distribution<float> normal;
    theta.resize(static_cast<size_t>(examples * test.n));
    dy.resize(static_cast<size_t>(examples * test.samples * test.n));
    for (float& x : theta) x = normal(rng);
    for (float& x : dy) x = normal(rng);
    table = *quantile_table({.k = 10, .iterations = 10});
    settings.noise = {.kind = test.noise, .table = table.data()};
    settings.noise_stddev = moments(test.noise, 10, 10).stddev;
    settings.samples = test.samples;
    settings.target = AdaptiveTarget{};
  }
};

constexpr double kAlpha = 0.5;

/// The GPU's side of a batch.
class OnDevice {
 public:
  OnDevice(const Case& test, const Batch& batch, int64_t examples)
      : test_(test), count_(examples), settings_(batch.settings) {
    settings_.noise.table = arena_.upload(batch.table);
    const auto* key = arena_.upload(std::vector<int64_t>{static_cast<int64_t>(batch.key.seed),
                                                         static_cast<int64_t>(batch.key.stream)});
    examples_ = {
        .count = examples, .n = test.n, .theta = arena_.upload(batch.theta), .key = {.words = key}};
    dy_ = arena_.upload(batch.dy);
    z_ = static_cast<float*>(arena_(batch.dy.size() * sizeof(float)));
    dtheta_ = static_cast<float*>(arena_(batch.theta.size() * sizeof(float)));
    state_.alpha = arena_.upload(std::vector<double>{kAlpha});
    state_.gbar = arena_.upload(std::vector<double>{1.0});
    state_.updates = arena_.upload(std::vector<int64_t>{0});
    state_.memory = arena_.upload(std::vector<double>{0.0});
    state_.stats = arena_.upload(std::vector<double>(kLayerStats, 0.0));
    mark_ = arena_.mark();
  }

  void forward() {
    arena_.rewind(mark_);
    cuda::forward<float>(settings_, TopK{.n = test_.n, .k = test_.k}, examples_, {.z = z_},
                         {.allocate = arena_});
  }
  void backward() {
    arena_.rewind(mark_);
    cuda::backward<float>(settings_, TopK{.n = test_.n, .k = test_.k}, examples_,
                          {.dy = dy_, .dtheta = dtheta_}, state_, {.allocate = arena_});
  }
  /// Only the noise, into the memory of z.
  void noise() {
    fill_noise(settings_.noise, examples_.key,
               {.count = count_ * test_.samples, .samples = test_.samples, .n = test_.n}, z_,
               {.allocate = arena_});
  }

  std::vector<float> z() const { return download(z_, count_ * test_.samples * test_.n); }
  std::vector<float> dtheta() const { return download(dtheta_, count_ * test_.n); }
  double alpha() const { return download(state_.alpha, 1)[0]; }

 private:
  Case test_;
  int64_t count_;
  PassSettings settings_;
  Arena arena_;
  DeviceExamples<float> examples_;
  float *dy_, *z_, *dtheta_;
  DeviceState state_;
  size_t mark_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_case(const Case& test) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const int64_t examples = std::min<int64_t>(test.examples, 300);
    const Batch batch(test, examples, seed);
    const Examples<float> on_host{
        .count = examples, .n = test.n, .theta = batch.theta.data(), .key = batch.key};
    const TopK solver{.n = test.n, .k = test.k};
    std::vector<float> z(batch.dy.size()), dtheta(batch.theta.size());
    aimle::forward(batch.settings, solver, on_host, ForwardPass<float>{.z = z.data()},
                   sequential());
    const auto& target = std::get<AdaptiveTarget>(batch.settings.target);
    ControllerState controller{.alpha = kAlpha};
    const BackwardReport seen = aimle::backward(
        batch.settings, solver, on_host,
        BackwardPass<float>{.dy = batch.dy.data(),
                            .alpha = step_alpha(target, kAlpha, controller.updates, true),
                            .dtheta = dtheta.data()},
        sequential());
    update_alpha(target, batch.settings.samples, seen.changes, controller);

    OnDevice device(test, batch, examples);
    device.forward();
    device.backward();
    check(cudaDeviceSynchronize(), test.name);
    const std::string where = std::string(test.name) + ", seed " + std::to_string(seed) + ": ";
    expect(same_bits(device.z(), z), where + "z");
    expect(same_bits(device.dtheta(), dtheta), where + "gradient");
    expect(device.alpha() == controller.alpha, where + "alpha");
  }
}

void time_case(const Case& test) {
  const Batch batch(test, test.examples, 7);
  OnDevice device(test, batch, test.examples);
  const double theta_bytes = 4.0 * static_cast<double>(test.examples * test.n);
  const double z_bytes = theta_bytes * static_cast<double>(test.samples);
  const auto row = [&](const char* what, double bytes, double us) {
    std::printf("%-34s %-9s %10.1f us %8.1f MB %8.0f GB/s  %5.2f x of the bytes at 4.3 TB/s\n",
                test.name, what, us, bytes / 1e6, bytes / us / 1e3, us / (bytes / 4.3e6));
  };
  row("noise", z_bytes, time_us([&] { device.noise(); }));
  row("forward", z_bytes, time_us([&] { device.forward(); }));
  row("backward", z_bytes + 2 * theta_bytes, time_us([&] { device.backward(); }));
}

}  // namespace
}  // namespace aimle::cuda

int main(int argc, char** argv) {
  using aimle::NoiseKind;
  const aimle::cuda::Case cases[] = {
      {"10 of 20, 2,000 x 10, SoG", 2000, 20, 10, 10, NoiseKind::kSumOfGamma},
      {"10 of 20, 400,000 x 10, SoG", 400'000, 20, 10, 10, NoiseKind::kSumOfGamma},
      {"10 of 20, 4,000,000 x 1, SoG", 4'000'000, 20, 10, 1, NoiseKind::kSumOfGamma},
      {"10 of 20, 400,000 x 10, no noise", 400'000, 20, 10, 10, NoiseKind::kNone},
      {"10 of 20, 400,000 x 10, Gumbel", 400'000, 20, 10, 10, NoiseKind::kGumbel},
      {"10 of 1,000, 10,000 x 10, SoG", 10'000, 1000, 10, 10, NoiseKind::kSumOfGamma},
      {"10 of 1,000, 100,000 x 1, SoG", 100'000, 1000, 10, 1, NoiseKind::kSumOfGamma},
      {"500 of 1,000, 10,000 x 10, SoG", 10'000, 1000, 500, 10, NoiseKind::kSumOfGamma},
      {"10 of 1,000, 10,000 x 10, no noise", 10'000, 1000, 10, 10, NoiseKind::kNone},
      {"10 of 350, 40 x 10, Gumbel", 40, 350, 10, 10, NoiseKind::kGumbel},
      {"100 of 10,000, 1,000 x 1, Gumbel", 1000, 10'000, 100, 1, NoiseKind::kGumbel},
  };
  const std::string part = argc > 1 ? argv[1] : "";
  const auto for_each_case = [&](auto visit) {
    for (const auto& test : cases) {
      if (std::string(test.name).find(part) != std::string::npos) visit(test);
    }
  };
  for_each_case(aimle::cuda::check_case);
  std::printf("z, gradient and alpha: the bits of the CPU in every case\n");
  if (argc > 2) return 0;  // for compute-sanitizer, say: no timing
  for_each_case(aimle::cuda::time_case);
  return 0;
}
