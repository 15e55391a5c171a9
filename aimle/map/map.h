// The interface of a solver.
//
// A solver finds, for each row of scores x, the structure z that maximises <x, z> (GridPath
// minimises it: its scores are costs). It is a plain struct of settings, which determine the size
// of a row, and a free function `solve_rows`. It does not depend on noise, gradients or Torch, and
// it never throws because of the data: the outcome of each row is a Status.
//
// Every solver follows the same rules, which a conformance test checks:
//   * ties: the entry with the lower index wins, so the solution is unique and the same for every
//     algorithm, thread count, batch and device;
//   * z is exactly 0 or 1 in the type of the scores;
//   * a row whose status is not kOk is filled with NaN;
//   * masked entries are never chosen.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "aimle/base/host_device.h"
#include "aimle/base/parallel.h"

namespace aimle {

/// The outcome of one row.
enum class Status : uint8_t {
  kOk = 0,
  kNaN = 1,            // a score that may be chosen is NaN
  kBadK = 2,           // this row's k is negative or larger than the row
  kTooFewEntries = 3,  // mask and -inf leave too few entries: less than k, or no matching
  kDisconnected = 4,   // mask (grids: and infinite costs) leave no tree, or no path
  kNegativeCost = 5,   // a cost is below zero and the solver does not clip
  kBadData = 6,        // this instance's data are invalid: a negative weight
  kTooLarge = 7,       // this instance needs more memory than its solver allows
};

/// A human-readable sentence without the row number: "a score is NaN".
std::string_view describe(Status status);

enum class Sense { kMax, kMin };

/// The sizes of one instance, for example {height, width}.
using Shape = std::span<const int64_t>;

/// A cell of a grid; negative numbers count from the end: {-1, -1} is the last cell.
struct Cell {
  int64_t row = 0;
  int64_t column = 0;
};

/// How a solution changes when the score of one entry changes, for the `thresholds` estimator
/// (estimate/thresholds.h).
enum class Swaps {
  kNone,   // not provided by the solver
  kEntry,  // any chosen entry may be swapped for any other: k of n
  kEach,   // the solver provides it for each entry (swap_finder.h)
};

template <class T>
class SwapFinder;

/// The declaration of a solver (declaration.h).
template <class S>
class Declaration;

/// What is known about the number of ones in the solutions of a solver.
struct SolutionSize {
  bool fixed = false;  // all solutions of an instance have the same number
  int64_t ones = -1;   // that number; < 0: unknown. A k per row replaces it.
};

/// Integers of instances besides their scores, for example weights or a graph. The solver defines
/// their meaning and number.
struct InstanceData {
  const int64_t* numbers = nullptr;  // null: there are none
  int64_t stride = 0;                // between instances; 0: shared by all

  AIMLE_HD const int64_t* of(int64_t instance) const { return numbers + instance * stride; }
  InstanceData from(int64_t instance) const { return {numbers + instance * stride, stride}; }
};

/// A batch of rows, contiguous and row-major. `k` is only read by solvers that choose k of n,
/// `data` by those that take data.
template <class T>
struct Rows {
  int64_t count = 0;
  const T* scores = nullptr;   // [count, size]
  const bool* mask = nullptr;  // [count, size], true = may be chosen; null = all may
  const int64_t* k = nullptr;  // [count], overrides the solver's k; null = the solver's
  InstanceData data;
  const int64_t* instance = nullptr;  // [count], the instance of row i's data; null: instance i
  T* z = nullptr;                     // [count, size], written
  Status* status = nullptr;           // [count], written

  const int64_t* data_of(int64_t i) const { return data.of(instance ? instance[i] : i); }
};

template <class T>
Rows<T> slice(const Rows<T>& rows, int64_t size, int64_t begin, int64_t end) {
  return {.count = end - begin,
          .scores = rows.scores + begin * size,
          .mask = rows.mask ? rows.mask + begin * size : nullptr,
          .k = rows.k ? rows.k + begin : nullptr,
          .data = rows.instance ? rows.data : rows.data.from(begin),
          .instance = rows.instance ? rows.instance + begin : nullptr,
          .z = rows.z + begin * size,
          .status = rows.status + begin};
}

/// The requirements of a solver. `validate` throws std::invalid_argument for impossible settings,
/// which `solve_rows` may then rely on; `work_ns` is the rough cost of one row, for `parallel_for`.
/// Optional: `static constexpr bool kHasCosts = true`, scores must not be below zero (perturbed
/// ones are clipped, and counted); `static constexpr Swaps kSwaps = Swaps::kEntry` or a
/// `swap_finder` (swap_finder.h); `std::vector<uint8_t> structures() const`, all of them, for
/// checks against enumeration, and `double structure_count() const`. registry/register_solver.h
/// explains how to register a solver with Torch, Python and the program.
template <class S>
concept MapSolver = requires(const S& solver, const Rows<float>& f32, const Rows<double>& f64) {
  { S::kName } -> std::convertible_to<std::string_view>;
  { S::kSense } -> std::convertible_to<Sense>;
  { solver.size() } -> std::same_as<int64_t>;
  { solver.work_ns() } -> std::same_as<double>;
  { solver.solution_size() } -> std::same_as<SolutionSize>;
  solver.validate();
  solve_rows(solver, f32);
  solve_rows(solver, f64);
};

/// Solves every row, on as many threads as are useful.
template <MapSolver S, class T>
void solve(const S& solver, const Rows<T>& rows, const Executor& executor = sequential()) {
  solver.validate();
  parallel_for(executor, rows.count, solver.work_ns(), [&](int64_t begin, int64_t end) {
    solve_rows(solver, slice(rows, solver.size(), begin, end));
  });
}

}  // namespace aimle
