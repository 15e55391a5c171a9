// Time of argmax and top-k on one thread: every instruction set, and a hand-written version
// (nth_element on indices). Each is checked against the latter before timing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <valarray>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/map/argmax.h"
#include "aimle/map/topk.h"

namespace {

using aimle::Argmax;
using aimle::Isa;
using aimle::Rows;
using aimle::Status;
using aimle::TopK;

enum class Kind {
  kPlain,
  kPadded,  // the last fifth of every row is masked
  kOwnK,    // every row has its own k, up to the solver's
  kTied,    // scores of three distinct values
};

struct Setup {
  int64_t n, k, rows;
  Kind kind = Kind::kPlain;
};

std::string text(const Setup& setup) {
  static constexpr const char* kKinds[] = {"", "/padded", "/own_k", "/tied"};
  return "n:" + std::to_string(setup.n) + "/k:" + std::to_string(setup.k) +
         "/rows:" + std::to_string(setup.rows) + kKinds[static_cast<int>(setup.kind)];
}

template <class T>
struct Problem {
  std::vector<T> scores;
  std::valarray<bool> mask;
  std::vector<int64_t> k;
  std::vector<T> z;
  std::vector<Status> status;

  explicit Problem(const Setup& setup)
      : scores(static_cast<size_t>(setup.rows * setup.n)),
        z(scores.size()),
        status(static_cast<size_t>(setup.rows)) {
    std::mt19937_64 rng(7);
    std::normal_distribution<T> normal;
    for (T& score : scores) score = setup.kind == Kind::kTied ? T(rng() % 3) : normal(rng);
    if (setup.kind == Kind::kPadded) {
      mask.resize(scores.size());
      const auto n = static_cast<size_t>(setup.n);
      for (size_t j = 0; j < mask.size(); ++j) mask[j] = j % n < n - n / 5;
    }
    if (setup.kind == Kind::kOwnK) {
      k.resize(status.size());
      for (int64_t& row_k : k) row_k = static_cast<int64_t>(rng() % (setup.k + 1));
    }
  }

  Rows<T> rows() {
    return {.count = static_cast<int64_t>(status.size()),
            .scores = scores.data(),
            .mask = mask.size() != 0 ? &mask[0] : nullptr,
            .k = k.empty() ? nullptr : k.data(),
            .z = z.data(),
            .status = status.data()};
  }
};

template <class T>
void select_by_hand(int64_t n, int64_t k, const Rows<T>& rows) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rows.count; ++i) {
    const T* x = rows.scores + i * n;
    order.clear();
    for (int64_t j = 0; j < n; ++j) {
      if (rows.mask == nullptr || rows.mask[i * n + j]) order.push_back(j);
    }
    const auto kth = order.begin() + (rows.k != nullptr ? rows.k[i] : k);
    std::nth_element(order.begin(), kth, order.end(),
                     [x](int64_t a, int64_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    std::fill_n(rows.z + i * n, n, T(0));
    std::for_each(order.begin(), kth, [&](int64_t j) { rows.z[i * n + j] = T(1); });
  }
}

std::vector<Isa> instruction_sets() {
  if (aimle::processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

template <class T, class S>
void add(const std::string& name_and_type, const S& solver, const Setup& setup) {
  Problem<T> problem(setup);
  select_by_hand(setup.n, setup.k, problem.rows());
  const std::vector<T> expected = problem.z;
  const std::string title = name_and_type + "/" + text(setup) + "/";
  const auto time = [&](const std::string& who, Isa isa, auto body) {
    benchmark::RegisterBenchmark((title + who).c_str(), [=](benchmark::State& state) {
      aimle::use_isa(isa);
      Problem<T> timed(setup);
      for (auto _ : state) {
        body(timed.rows());
        benchmark::ClobberMemory();
      }
      state.counters["per_row"] = benchmark::Counter(
          static_cast<double>(setup.rows),
          benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
    });
  };
  for (const Isa isa : instruction_sets()) {
    aimle::use_isa(isa);
    std::fill(problem.z.begin(), problem.z.end(), T(-1));
    solve_rows(solver, problem.rows());
    if (problem.z != expected) {
      std::printf("wrong result: %s%s\n", title.c_str(), name(isa).data());
      std::exit(1);
    }
    time(std::string(name(isa)), isa, [=](const Rows<T>& rows) { solve_rows(solver, rows); });
  }
  time("by_hand", Isa::kPortable,
       [=](const Rows<T>& rows) { select_by_hand(setup.n, setup.k, rows); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const Setup& setup : {Setup{5, 2, 20'000},
                             Setup{10, 5, 20'000},
                             Setup{20, 10, 20'000},
                             Setup{32, 8, 20'000},
                             Setup{64, 16, 10'000},
                             Setup{100, 10, 5'000},
                             Setup{350, 10, 2'000},
                             Setup{350, 100, 2'000},
                             Setup{1000, 10, 1'000},
                             Setup{1000, 500, 1'000},
                             Setup{1'000'000, 10, 1},
                             Setup{1'000'000, 1000, 1},
                             Setup{1'000'000, 500'000, 1},
                             Setup{20, 10, 20'000, Kind::kPadded},
                             Setup{20, 10, 20'000, Kind::kOwnK},
                             Setup{20, 10, 20'000, Kind::kTied},
                             Setup{350, 10, 2'000, Kind::kPadded},
                             Setup{350, 10, 2'000, Kind::kOwnK},
                             Setup{350, 10, 2'000, Kind::kTied},
                             Setup{1'000'000, 10, 1, Kind::kTied}}) {
    add<float>("topk/float", TopK{.n = setup.n, .k = setup.k}, setup);
  }
  for (const Setup& setup : {Setup{20, 10, 20'000}, Setup{350, 10, 2'000}}) {
    add<double>("topk/double", TopK{.n = setup.n, .k = setup.k}, setup);
  }
  for (const Setup& setup : {Setup{5, 1, 20'000}, Setup{10, 1, 20'000}, Setup{100, 1, 5'000},
                             Setup{1000, 1, 1'000}, Setup{1'000'000, 1, 1}}) {
    add<float>("argmax/float", Argmax{.n = setup.n}, setup);
  }
  add<double>("argmax/double", Argmax{.n = 100}, {100, 1, 5'000});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
