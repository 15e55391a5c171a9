// The conformance test of solvers: what a solver brings to take part, and how rows are judged.
//
// A solver takes part by a specialisation of `Instances<S>` in tests/map/<solver>_instances.h and
// one line in the list of tests/map/conformance_test.cpp. It brings, all static:
//
//   S draw_small(Rng&)          random settings whose structures can be listed (some hundreds)
//   S draw_any(Rng&)            random settings up to some hundred entries, also sizes that fall
//                               between the lanes; the oracle alone judges them
//   std::vector<S> smallest()   the corner sizes: n = 1, k = 0, k = n, ...
//   S largest()                 the largest size that is promised
//   std::string text(const S&)  the settings, for messages
//   std::vector<Structure> enumerate(const S&, std::optional<int64_t> k)
//                               every feasible structure without a mask; with a mask those remain
//                               that choose no masked entry
//   double value(const S&, const Instance<T>&, const Structure&)
//                               <x, z> as the solver understands it (`inner_product` for most;
//                               clipped costs for grids)
//   Answer oracle(const S&, const Instance<T>&)
//                               THE answer, status and structure, ties included, by a slow and
//                               different method that shares no code with the solver
// and, only if the solver reads Rows::k:
//   int64_t draw_k(const S&, Rng&)   a k for one row, now and then an impossible one
// and, only if a mask does more than to remove structures:
//   std::vector<Structure> enumerate_row(const S&, const bool* mask)
//                               those of a row with this mask, or without one
//
// NaN in an entry that may be chosen outranks every other refusal but kBadK.
//
// Scores are drawn so that sums are exact in float (multiples of 2^-10 up to 8), hence optimality
// is an equality and not a tolerance. T is float or double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <valarray>
#include <vector>

#include "aimle/base/isa.h"
#include "aimle/map/map.h"
#include "tests/draws.h"

namespace aimle::conformance {

using draws::one_in;
using draws::Rng;
using draws::uniform;

/// z as a vector of 0 and 1.
using Structure = std::vector<uint8_t>;

/// One row of a batch.
template <class T>
struct Instance {
  const T* scores;
  const bool* mask;          // null = every entry may be chosen
  std::optional<int64_t> k;  // the row's own k
};

struct Answer {
  Status status;
  Structure z;  // empty unless kOk
};

template <class S>
struct Instances;

template <class S>
concept Conforming = MapSolver<S> && requires(const S& solver, Rng& rng, Instance<float> f32,
                                              Instance<double> f64, const Structure& z) {
  { Instances<S>::draw_small(rng) } -> std::same_as<S>;
  { Instances<S>::draw_any(rng) } -> std::same_as<S>;
  { Instances<S>::smallest() } -> std::same_as<std::vector<S>>;
  { Instances<S>::largest() } -> std::same_as<S>;
  { Instances<S>::text(solver) } -> std::same_as<std::string>;
  { Instances<S>::enumerate(solver, f32.k) } -> std::same_as<std::vector<Structure>>;
  { Instances<S>::value(solver, f32, z) } -> std::same_as<double>;
  { Instances<S>::value(solver, f64, z) } -> std::same_as<double>;
  { Instances<S>::oracle(solver, f32) } -> std::same_as<Answer>;
  { Instances<S>::oracle(solver, f64) } -> std::same_as<Answer>;
};

template <class S>
inline constexpr bool kTakesK = requires(const S& solver, Rng& rng) {
  Instances<S>::draw_k(solver, rng);
};

template <class T>
double inner_product(const T* scores, const Structure& z) {
  double sum = 0;
  for (size_t j = 0; j < z.size(); ++j) {
    if (z[j] != 0) sum += static_cast<double>(scores[j]);
  }
  return sum;
}

// ---- Batches ------------------------------------------------------------------------------------

template <class T>
struct Batch {
  int64_t count = 0;
  int64_t size = 0;
  std::vector<T> scores;
  std::valarray<bool> mask;  // empty = none
  std::vector<int64_t> k;    // empty = the solver's

  Instance<T> instance(int64_t i) const {
    return {.scores = scores.data() + i * size,
            .mask = mask.size() != 0 ? &mask[static_cast<size_t>(i * size)] : nullptr,
            .k = k.empty() ? std::nullopt : std::optional(k[static_cast<size_t>(i)])};
  }
};

template <class T>
struct Solved {
  std::vector<T> z;
  std::vector<Status> status;
};

/// How scores are drawn.
enum class Draw {
  kExact,    // multiples of 2^-10 in [-8, 8]: sums are exact
  kTied,     // one to three distinct values, -0 and +0 among them: mostly ties
  kExtreme,  // infinities, zeros of both signs, subnormals, huge numbers, and some NaN
};

template <class T>
T draw_score(Draw how, int64_t distinct, Rng& rng) {
  using Limits = std::numeric_limits<T>;
  constexpr T kHuge = Limits::max() / (1 << 20);
  const std::array<T, 4> tied{T(0), T(1), T(-1), T(-0.0)};
  const std::array<T, 12> extreme{Limits::infinity(),
                                  -Limits::infinity(),
                                  T(0),
                                  T(-0.0),
                                  Limits::denorm_min(),
                                  -Limits::denorm_min(),
                                  3 * Limits::denorm_min(),
                                  Limits::min(),
                                  kHuge,
                                  -kHuge,
                                  T(1),
                                  1 + Limits::epsilon()};
  switch (how) {
    case Draw::kExact:
      return static_cast<T>(uniform(rng, -8192, 8192)) / 1024;
    case Draw::kTied:
      return one_in(rng, 4) ? tied[3] : tied[static_cast<size_t>(uniform(rng, 0, distinct - 1))];
    case Draw::kExtreme:
      if (one_in(rng, 200)) return Limits::quiet_NaN();
      return extreme[static_cast<size_t>(uniform(rng, 0, 11))];
  }
  return 0;
}

struct BatchOptions {
  int64_t count = 1;
  Draw draw = Draw::kExact;
  bool mask = false;
  bool k = false;
};

template <class T, Conforming S>
Batch<T> draw_batch(const S& solver, const BatchOptions& options, Rng& rng) {
  Batch<T> batch{.count = options.count, .size = solver.size()};
  for (int64_t i = 0; i < batch.count; ++i) {
    const int64_t distinct = uniform(rng, 1, 3);
    for (int64_t j = 0; j < batch.size; ++j) {
      batch.scores.push_back(draw_score<T>(options.draw, distinct, rng));
    }
  }
  if (options.mask) {
    batch.mask.resize(static_cast<size_t>(batch.count * batch.size));
    for (int64_t i = 0; i < batch.count; ++i) {
      const int64_t rarity = uniform(rng, 2, 12);  // one entry in so many is masked
      for (int64_t j = 0; j < batch.size; ++j) {
        batch.mask[static_cast<size_t>(i * batch.size + j)] = !one_in(rng, rarity);
      }
    }
  }
  if constexpr (kTakesK<S>) {
    for (int64_t i = 0; options.k && i < batch.count; ++i) {
      batch.k.push_back(Instances<S>::draw_k(solver, rng));
    }
  }
  return batch;
}

/// Solves a batch. `split(count, body)` calls body(begin, end) for the ranges it wants solved in
/// one call; the outputs carry guards behind their end.
template <class T, class S, class Split>
Solved<T> solve_batch(const S& solver, const Batch<T>& batch, const Split& split) {
  constexpr size_t kGuards = 9;
  constexpr T kGuard = T(-77);
  const auto entries = static_cast<size_t>(batch.count * batch.size);
  Solved<T> solved{.z = std::vector<T>(entries + kGuards, kGuard),
                   .status = std::vector<Status>(static_cast<size_t>(batch.count) + 1, Status(77))};
  const Rows<T> rows{.count = batch.count,
                     .scores = batch.scores.data(),
                     .mask = batch.mask.size() != 0 ? &batch.mask[0] : nullptr,
                     .k = batch.k.empty() ? nullptr : batch.k.data(),
                     .z = solved.z.data(),
                     .status = solved.status.data()};
  split(batch.count, [&](int64_t begin, int64_t end) {
    solve_rows(solver, slice(rows, solver.size(), begin, end));
  });
  for (size_t i = 0; i < kGuards; ++i) EXPECT_EQ(solved.z[entries + i], kGuard) << "wrote past z";
  EXPECT_EQ(solved.status.back(), Status(77)) << "wrote past status";
  solved.z.resize(entries);
  solved.status.pop_back();
  return solved;
}

template <class T, class S>
Solved<T> solve_batch(const S& solver, const Batch<T>& batch) {
  return solve_batch(solver, batch, [](int64_t count, const auto& body) { body(0, count); });
}

/// The instruction sets of this machine, each of which every test runs with.
inline std::vector<Isa> instruction_sets() {
  if (processor_has_avx2()) return {Isa::kPortable, Isa::kAvx2};
  return {Isa::kPortable};
}

/// Restores the instruction set that was in use.
class WithIsa {
 public:
  explicit WithIsa(Isa wanted) : before_(isa()) { use_isa(wanted); }
  ~WithIsa() { use_isa(before_); }
  WithIsa(const WithIsa&) = delete;
  WithIsa& operator=(const WithIsa&) = delete;

 private:
  Isa before_;
};

// ---- Judging ------------------------------------------------------------------------------------

/// Everything needed to run a failing row again.
template <class T, class S>
std::string text(const S& solver, const Batch<T>& batch, int64_t i) {
  const Instance<T> row = batch.instance(i);
  std::ostringstream out;
  out.precision(std::numeric_limits<T>::max_digits10);
  out << Instances<S>::text(solver) << ", isa " << name(isa()) << ", row " << i << " of "
      << batch.count;
  if (row.k) out << ", k=" << *row.k;
  const int64_t shown = std::min<int64_t>(batch.size, 64);
  out << "\n  scores";
  for (int64_t j = 0; j < shown; ++j) out << ' ' << row.scores[j];
  if (row.mask != nullptr) {
    out << "\n  mask  ";
    for (int64_t j = 0; j < shown; ++j) out << ' ' << row.mask[j];
  }
  return out.str();
}

/// Row i has the given status and structure; NaN throughout if it is not kOk.
template <class T>
testing::AssertionResult row_is(const Solved<T>& solved, int64_t i, const Answer& expected,
                                int64_t size) {
  const Status status = solved.status[static_cast<size_t>(i)];
  if (status != expected.status) {
    return testing::AssertionFailure()
           << "status: " << describe(status) << ", expected: " << describe(expected.status);
  }
  const T* z = solved.z.data() + i * size;
  for (int64_t j = 0; j < size; ++j) {
    const bool right = status != Status::kOk
                           ? std::isnan(z[j])
                           : z[j] == static_cast<T>(expected.z[static_cast<size_t>(j)]);
    if (!right) {
      auto failure = testing::AssertionFailure() << "z[" << j << "] is " << z[j];
      if (status != Status::kOk) return failure << ", expected NaN (" << describe(status) << ")";
      return failure << ", expected " << int{expected.z[static_cast<size_t>(j)]};
    }
  }
  return testing::AssertionSuccess();
}

/// Every row is what the oracle says.
template <class T, class S>
void expect_oracle(const S& solver, const Batch<T>& batch, const Solved<T>& solved) {
  for (int64_t i = 0; i < batch.count; ++i) {
    const Answer expected = Instances<S>::oracle(solver, batch.instance(i));
    ASSERT_TRUE(row_is(solved, i, expected, batch.size)) << text(solver, batch, i);
  }
}

/// Every row is feasible and no feasible structure is better; rows without any are refused.
template <class T, class S>
void expect_optimal(const S& solver, const Batch<T>& batch, const Solved<T>& solved) {
  std::map<std::optional<int64_t>, std::vector<Structure>> structures;
  for (int64_t i = 0; i < batch.count; ++i) {
    const Instance<T> row = batch.instance(i);
    const Status status = solved.status[static_cast<size_t>(i)];
    if (status == Status::kBadK || status == Status::kNegativeCost) continue;
    const T* solved_z = solved.z.data() + i * batch.size;
    bool any = false;
    bool feasible = false;
    double best = 0;
    double reached = 0;
    if constexpr (requires { Instances<S>::enumerate_row(solver, row.mask); }) {
      structures[row.k] = Instances<S>::enumerate_row(solver, row.mask);
    } else if (!structures.contains(row.k)) {
      structures[row.k] = Instances<S>::enumerate(solver, row.k);
    }
    for (const Structure& z : structures[row.k]) {
      bool masked = false;
      bool same = true;
      for (int64_t j = 0; j < batch.size; ++j) {
        const uint8_t bit = z[static_cast<size_t>(j)];
        masked |= bit != 0 && row.mask != nullptr && !row.mask[j];
        same &= solved_z[j] == static_cast<T>(bit);
      }
      if (masked) continue;
      const double value = Instances<S>::value(solver, row, z);
      if (!any || (S::kSense == Sense::kMax ? value > best : value < best)) best = value;
      any = true;
      if (same) {
        feasible = true;
        reached = value;
      }
    }
    ASSERT_EQ(status == Status::kOk, any) << describe(status) << '\n' << text(solver, batch, i);
    if (!any) continue;
    ASSERT_TRUE(feasible) << "not a feasible structure\n" << text(solver, batch, i);
    ASSERT_EQ(reached, best) << text(solver, batch, i);
  }
}

/// The same statuses and the same numbers, NaN being equal to NaN.
template <class T, class S>
void expect_same(const S& solver, const Batch<T>& batch, const Solved<T>& a, const Solved<T>& b) {
  ASSERT_EQ(a.z.size(), b.z.size());
  for (int64_t i = 0; i < batch.count; ++i) {
    const auto row = static_cast<size_t>(i);
    ASSERT_EQ(a.status[row], b.status[row]) << text(solver, batch, i);
    for (int64_t j = 0; j < batch.size; ++j) {
      const T x = a.z[static_cast<size_t>(i * batch.size + j)];
      const T y = b.z[static_cast<size_t>(i * batch.size + j)];
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
          << "z[" << j << "]: " << x << " and " << y << '\n'
          << text(solver, batch, i);
    }
  }
}

}  // namespace aimle::conformance
