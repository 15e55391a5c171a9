// Time of argmax and top-k on one thread: every instruction set, and what one would write by hand
// (nth_element on indices). All are checked against each other before anything is timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"

namespace {

struct Size {
  int64_t n, k, rows;
};

using aimle::Argmax;
using aimle::Isa;
using aimle::Rows;
using aimle::Status;
using aimle::TopK;

template <class T>
struct Problem {
  std::vector<T> scores;
  std::vector<T> z;
  std::vector<Status> status;
  int64_t count;

  Problem(int64_t count, int64_t n)
      : scores(static_cast<size_t>(count * n)),
        z(scores.size()),
        status(static_cast<size_t>(count)),
        count(count) {
    std::mt19937_64 rng(7);
    std::normal_distribution<T> normal;
    for (T& score : scores) score = normal(rng);
  }

  Rows<T> rows() {
    return {.count = count, .scores = scores.data(), .z = z.data(), .status = status.data()};
  }
};

template <class T>
void select_by_hand(const TopK& solver, const Rows<T>& rows) {
  std::vector<int64_t> order(static_cast<size_t>(solver.n));
  for (int64_t i = 0; i < rows.count; ++i) {
    const T* x = rows.scores + i * solver.n;
    T* z = rows.z + i * solver.n;
    std::iota(order.begin(), order.end(), 0);
    std::nth_element(order.begin(), order.begin() + solver.k, order.end(),
                     [x](int64_t a, int64_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    std::fill_n(z, solver.n, T(0));
    for (int64_t j = 0; j < solver.k; ++j) z[order[static_cast<size_t>(j)]] = T(1);
  }
}

std::vector<Isa> instruction_sets() {
  if (aimle::processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

template <class T>
void check(const TopK& solver, int64_t count) {
  Problem<T> problem(count, solver.n);
  select_by_hand(solver, problem.rows());
  const std::vector<T> expected = problem.z;
  for (const Isa isa : instruction_sets()) {
    aimle::use_isa(isa);
    std::fill(problem.z.begin(), problem.z.end(), T(-1));
    solve_rows(solver, problem.rows());
    if (problem.z != expected) {
      std::printf("top-k is wrong: n=%ld k=%ld, %s\n", static_cast<long>(solver.n),
                  static_cast<long>(solver.k), name(isa).data());
      std::exit(1);
    }
  }
}

template <class Body>
void time_rows(benchmark::State& state, int64_t count, const Body& body) {
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * count);
  state.counters["ns/row"] = benchmark::Counter(
      static_cast<double>(count) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class T>
void add_topk(const char* type, const TopK& solver, int64_t count) {
  check<T>(solver, count);
  const std::string size = std::string(type) + "/n:" + std::to_string(solver.n) +
                           "/k:" + std::to_string(solver.k) + "/rows:" + std::to_string(count);
  for (const Isa isa : instruction_sets()) {
    benchmark::RegisterBenchmark(
        ("topk/" + std::string(name(isa)) + "/" + size).c_str(), [=](benchmark::State& state) {
          aimle::use_isa(isa);
          Problem<T> problem(count, solver.n);
          time_rows(state, count, [&] { solve_rows(solver, problem.rows()); });
        });
  }
  benchmark::RegisterBenchmark(("topk/by_hand/" + size).c_str(), [=](benchmark::State& state) {
    Problem<T> problem(count, solver.n);
    time_rows(state, count, [&] { select_by_hand(solver, problem.rows()); });
  });
}

void add_argmax(int64_t n, int64_t count) {
  for (const Isa isa : instruction_sets()) {
    benchmark::RegisterBenchmark(
        ("argmax/" + std::string(name(isa)) + "/float/n:" + std::to_string(n) +
         "/rows:" + std::to_string(count))
            .c_str(),
        [=](benchmark::State& state) {
          aimle::use_isa(isa);
          Problem<float> problem(count, n);
          const Argmax solver{.n = n};
          time_rows(state, count, [&] { solve_rows(solver, problem.rows()); });
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const Size& size :
       {Size{5, 2, 20'000}, Size{10, 5, 20'000}, Size{20, 10, 20'000}, Size{32, 8, 20'000},
        Size{64, 16, 10'000}, Size{100, 10, 5'000}, Size{350, 10, 2'000}, Size{350, 100, 2'000},
        Size{1000, 10, 1'000}, Size{1000, 500, 1'000}, Size{1'000'000, 10, 1},
        Size{1'000'000, 1000, 1}, Size{1'000'000, 500'000, 1}}) {
    add_topk<float>("float", {.n = size.n, .k = size.k}, size.rows);
  }
  for (const Size& size : {Size{20, 10, 20'000}, Size{350, 10, 2'000}}) {
    add_topk<double>("double", {.n = size.n, .k = size.k}, size.rows);
  }
  for (const Size& size : {Size{5, 1, 20'000}, Size{10, 1, 20'000}, Size{100, 1, 5'000},
                           Size{1000, 1, 1'000}, Size{1'000'000, 1, 1}}) {
    add_argmax(size.n, size.rows);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
