// Time of the noise per float on one thread: every distribution and instruction set, calls with
// many and with few rows, a hand-written Sum-of-Gamma, and the construction of its table. The
// instruction sets are checked against each other before timing.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/noise/noise.h"
#include "aimle/noise/sum_of_gamma.h"

namespace {

using aimle::Isa;
using aimle::NoiseKind;
using aimle::NoiseRows;
using aimle::NoiseSource;

constexpr aimle::Key kKey{.seed = 1, .stream = 2};
constexpr int64_t kSamples = 10;

std::vector<Isa> instruction_sets() {
  if (aimle::processor_has(Isa::kAvx512)) return {Isa::kPortable, Isa::kAvx2, Isa::kAvx512};
  if (aimle::processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

std::vector<float> sample(Isa isa, const NoiseSource& source, const NoiseRows& rows) {
  std::vector<float> out(static_cast<size_t>(rows.count * rows.n));
  aimle::use_isa(isa);
  fill_rows(source, kKey, rows, out.data());
  return out;
}

void check(const NoiseSource& source, const NoiseRows& rows) {
  const std::vector<float> expected = sample(Isa::kPortable, source, rows);
  for (const Isa isa : instruction_sets()) {
    const std::vector<float> out = sample(isa, source, rows);
    if (std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) != 0) {
      std::printf("%s noise is wrong: n=%ld, %s\n", name(source.kind).data(),
                  static_cast<long>(rows.n), name(isa).data());
      std::exit(1);
    }
  }
}

void per_float(benchmark::State& state, int64_t floats) {
  state.counters["per_float"] = benchmark::Counter(
      static_cast<double>(floats),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void add(const NoiseSource& source, int64_t n, int64_t count) {
  const NoiseRows rows{.first = 0, .count = count, .samples = kSamples, .n = n};
  check(source, rows);
  for (const Isa isa : instruction_sets()) {
    const std::string title = std::string(name(source.kind)) + "/" + std::string(name(isa)) +
                              "/n:" + std::to_string(n) + "/rows:" + std::to_string(count);
    benchmark::RegisterBenchmark(title.c_str(), [=](benchmark::State& state) {
      aimle::use_isa(isa);
      std::vector<float> out(static_cast<size_t>(count * n));
      for (auto _ : state) {
        fill_rows(source, kKey, rows, out.data());
        benchmark::ClobberMemory();
      }
      per_float(state, count * n);
    });
  }
}

void sum_of_gamma_by_hand(benchmark::State& state) {
  constexpr int kIterations = 10;
  constexpr float kK = 10;
  std::mt19937 rng(1);
  std::vector<float> out(2000);
  for (auto _ : state) {
    for (float& x : out) {
      float sum = 0;
      for (int i = 1; i <= kIterations; ++i) {
        sum += std::gamma_distribution<float>(1 / kK, kK / static_cast<float>(i))(rng);
      }
      x = (sum - std::log(static_cast<float>(kIterations))) / kK;
    }
    benchmark::ClobberMemory();
  }
  per_float(state, static_cast<int64_t>(out.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const auto table = aimle::quantile_table({.k = 10, .iterations = 10});
  for (const NoiseKind kind :
       {NoiseKind::kGumbel, NoiseKind::kNormal, NoiseKind::kLogistic, NoiseKind::kSumOfGamma}) {
    const NoiseSource source{.kind = kind, .table = table->data()};
    add(source, 20, 1000);
    add(source, 350, 60);
    add(source, 20, 16);
    add(source, 10, 16);
  }
  benchmark::RegisterBenchmark("sum_of_gamma/by_hand", sum_of_gamma_by_hand);
  for (const int64_t iterations : {10, 100, 1000}) {
    const std::string title = "sum_of_gamma/table/iterations:" + std::to_string(iterations);
    // A new k each time: tables are kept.
    benchmark::RegisterBenchmark(title.c_str(),
                                 [iterations](benchmark::State& state) {
                                   static int64_t k = 100;
                                   for (auto _ : state)
                                     aimle::quantile_table({.k = ++k, .iterations = iterations});
                                 })
        ->Iterations(5)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
