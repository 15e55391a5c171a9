// Time of grid paths on one thread, every instruction set: costs drawn uniformly (no ties), and
// terrain with five costs as in the Warcraft maps (many ties). Each is checked against the portable
// result before timing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/map/grid_path.h"

namespace {

using aimle::GridPath;
using aimle::Isa;
using aimle::Rows;
using aimle::Status;

enum class Costs { kUniform, kTerrain };

template <class T>
struct Problem {
  int64_t count;
  std::vector<T> costs;
  std::vector<T> z;
  std::vector<Status> status;

  Problem(int64_t count, int64_t cells, Costs kind)
      : count(count), costs(static_cast<size_t>(count * cells)), z(costs.size()), status(count) {
    constexpr T kTerrain[] = {T(0.8), T(1.2), T(5.3), T(7.7), T(9.2)};
    std::mt19937_64 rng(7);
    std::uniform_real_distribution<T> uniform(0, 1);
    for (T& cost : costs) cost = kind == Costs::kUniform ? uniform(rng) : kTerrain[rng() % 5];
  }

  Rows<T> rows() {
    return {.count = count, .scores = costs.data(), .z = z.data(), .status = status.data()};
  }
};

std::vector<Isa> instruction_sets() {
  if (aimle::processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

template <class T>
void check(const GridPath& solver, int64_t count, Costs kind) {
  Problem<T> problem(count, solver.size(), kind);
  aimle::use_isa(Isa::kPortable);
  solve_rows(solver, problem.rows());
  const std::vector<T> expected = problem.z;
  for (const Isa isa : instruction_sets()) {
    aimle::use_isa(isa);
    std::fill(problem.z.begin(), problem.z.end(), T(-1));
    solve_rows(solver, problem.rows());
    if (problem.z != expected) {
      std::printf("grid path is wrong: %ld x %ld, %s\n", static_cast<long>(solver.height),
                  static_cast<long>(solver.width), name(isa).data());
      std::exit(1);
    }
  }
}

template <class T>
void add(int64_t side, int64_t count, Costs kind) {
  const GridPath solver{.height = side, .width = side};
  check<T>(solver, count, kind);
  const std::string problem_name = std::string(sizeof(T) == 4 ? "/float/" : "/double/") +
                                   (kind == Costs::kUniform ? "uniform" : "terrain") +
                                   "/side:" + std::to_string(side) +
                                   "/grids:" + std::to_string(count);
  for (const Isa isa : instruction_sets()) {
    benchmark::RegisterBenchmark(
        ("grid_path/" + std::string(name(isa)) + problem_name).c_str(),
        [=](benchmark::State& state) {
          aimle::use_isa(isa);
          Problem<T> problem(count, solver.size(), kind);
          for (auto _ : state) {
            solve_rows(solver, problem.rows());
            benchmark::ClobberMemory();
          }
          state.counters["per_grid"] = benchmark::Counter(
              static_cast<double>(count),
              benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Costs kind : {Costs::kUniform, Costs::kTerrain}) {
    for (const int64_t side : {12, 18, 24, 30}) add<float>(side, 70, kind);
    add<float>(512, 1, kind);
    add<double>(12, 70, kind);
    add<double>(30, 70, kind);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
