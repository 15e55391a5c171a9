#include "aimle/map/chain.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/base/join.h"
#include "aimle/map/chain_avx2.h"
#include "aimle/map/chain_steps.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"

namespace aimle {
namespace {

template <class T>
inline constexpr T kNever = -std::numeric_limits<T>::infinity();

/// 16-byte vectors, available on every x86-64 and ARM64.
struct Machine {
  static constexpr int kVectorBytes = 16;

  template <class Lanes>
  [[gnu::always_inline]] static Lanes larger(Lanes a, Lanes b) {
    return a > b ? a : b;
  }
};

/// ChainSteps::step for fewer labels than a vector has lanes.
template <class T>
bool step_of_few(int64_t labels, const T* before, const T* x, T* after) {
  bool nan = false;
  std::fill_n(after, labels, kNever<T>);
  for (int64_t i = 0; i < labels; ++i) {
    for (int64_t j = 0; j < labels; ++j) {
      const T score = x[i * labels + j];
      const T sum = before[i] + score;
      after[j] = sum > after[j] ? sum : after[j];
      nan |= score != score;
    }
  }
  return nan;
}

/// The best implementation of a step for this many labels.
template <class T>
auto step_for(int64_t labels) -> bool (*)(int64_t, const T*, const T*, T*) {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2 && labels >= 32 / static_cast<int64_t>(sizeof(T))) {
      return avx2::chain_step;
    }
  }
  using Steps = ChainSteps<T, Machine>;
  return labels >= Steps::kLanes ? Steps::step : step_of_few<T>;
}

template <class T>
class RowSolver {
 public:
  explicit RowSolver(const Chain& solver)
      : labels_(solver.labels),
        edges_(solver.edges_per_step()),
        steps_(solver.steps()),
        step_(step_for<T>(solver.labels)),
        sums_(static_cast<size_t>(solver.length * solver.labels)) {}

  /// z initially is zero.
  Status solve(const T* x, const bool* mask, T* z) {
    const int64_t steps = chain_steps(steps_, edges_, mask);
    if (mask != nullptr) x = unmasked(x, mask, steps * edges_);
    bool nan = false;
    for (int64_t t = 0; t < steps; ++t) nan |= step_(labels_, sums(t), x + t * edges_, sums(t + 1));
    if (nan) return Status::kNaN;
    const T* last = sums(steps);
    int64_t label = std::max_element(last, last + labels_) - last;
    if (last[label] == kNever<T>) return Status::kDisconnected;
    for (int64_t t = steps - 1; t >= 0; --t) {
      const int64_t before = predecessor(sums(t), x + t * edges_ + label, sums(t + 1)[label]);
      z[t * edges_ + before * labels_ + label] = T(1);
      label = before;
    }
    return Status::kOk;
  }

 private:
  /// d_t [labels]; d_0 remains zero.
  T* sums(int64_t t) { return sums_.data() + t * labels_; }

  const T* unmasked(const T* x, const bool* mask, int64_t entries) {
    row_.resize(static_cast<size_t>(entries));
    for (int64_t j = 0; j < entries; ++j) row_[static_cast<size_t>(j)] = mask[j] ? x[j] : kNever<T>;
    return row_.data();
  }

  /// The lowest label from which the sum was reached; there is one.
  int64_t predecessor(const T* before, const T* column, T sum) const {
    int64_t i = 0;
    while (before[i] + column[i * labels_] != sum) ++i;
    return i;
  }

  int64_t labels_;
  int64_t edges_;
  int64_t steps_;
  bool (*step_)(int64_t, const T*, const T*, T*);
  std::vector<T> sums_;
  std::vector<T> row_;
};

template <class T>
void solve_all(const Chain& solver, const Rows<T>& rows) {
  const int64_t size = solver.size();
  RowSolver<T> row_solver(solver);
  detail::solve_each_row(rows, size, [&](const T* x, const bool* mask, T* z, int64_t) {
    std::fill_n(z, size, T{0});
    return row_solver.solve(x, mask, z);
  });
}

}  // namespace

void Chain::validate() const {
  AIMLE_CHECK(1 <= length && length <= kMaxLength,
              "[aimle::chain] expected 1 <= length <= ", kMaxLength, " but got length=", length);
  AIMLE_CHECK(1 <= labels && labels <= kMaxLabels,
              "[aimle::chain] expected 1 <= labels <= ", kMaxLabels, " but got labels=", labels);
}

void Chain::declare(Declaration<Chain>& solver) {
  solver.summary = "the best label sequence of a chain";
  solver.ties = "the lower label wins, starting from the end of the chain";
  solver.setting("length", &Chain::length, {0, kMaxLength},
                 "positions of the chain; 0: inferred from theta");
  solver.setting("labels", &Chain::labels, {0, kMaxLabels},
                 "labels per position; 0: inferred from theta");
}

void Chain::fit(Shape instance) {
  const int64_t steps = instance[0], rows = instance[1], columns = instance[2];
  const auto agree = [](int64_t setting, int64_t found) {
    return setting == 0 || setting == found;
  };
  if (!agree(length, steps + 1) || !agree(labels, rows) || rows != columns || rows < 1) {
    std::vector<std::string> given;
    if (length > 0) given.push_back("length=" + std::to_string(length));
    if (labels > 0) given.push_back("labels=" + std::to_string(labels));
    detail::throw_invalid_argument(
        "[aimle::chain] expected scores [..., length - 1, labels, labels]",
        given.empty() ? "" : " for " + join(given), " but the last dimensions are ", steps, ", ",
        rows, ", ", columns,
        ": aimle.chain_scores makes them from scores of labels and of transitions");
  }
  length = steps + 1;
  labels = rows;
}

void solve_rows(const Chain& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Chain& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
