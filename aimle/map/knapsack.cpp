#include "aimle/map/knapsack.h"

#include <cmath>
#include <limits>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/knapsack_core.h"
#include "aimle/map/knapsack_items.h"
#include "aimle/map/knapsack_lines.h"

namespace aimle {
namespace {

template <class T>
using AddItem = void (*)(const T*, T*, uint8_t*, int64_t, int64_t, int64_t, T);

template <class T>
AddItem<T> line_kernel() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) return avx2::add_item;
  }
  return detail::add_item<T>;
}

template <class T>
class KnapsackSolver {
 public:
  explicit KnapsackSolver(const Knapsack& solver) : solver_(solver) {}

  Status solve(const T* x, const bool* mask, const int64_t* data, T* z) {
    bool has_nan = false;
    const Status status = items_.read(
        solver_, data, [&](int64_t j) { return (mask == nullptr || mask[j]) && x[j] > T(0); });
    for (int64_t j = 0; j < solver_.n; ++j)
      has_nan |= std::isnan(x[j]) && (mask == nullptr || mask[j]);
    if (has_nan) return Status::kNaN;
    if (status != Status::kOk) return status;
    std::fill_n(z, solver_.n, T(0));
    if (core_.solve(items_, x, z)) return Status::kOk;
    fill_table(x);
    walk_back(z);
    return Status::kOk;
  }

 private:
  /// Later steps read line j only at values of c that the items after j can leave. Beyond the total
  /// weight of the items up to j, a line is constant.
  void fill_table(const T* x) {
    const int64_t count = items_.count(), line = items_.capacity + 1, pad = (line + 7) / 8 * 8;
    line_bytes_ = pad / 8;
    taken_.resize(static_cast<size_t>(count * line_bytes_));
    for (std::vector<T>* values : {&before_, &after_}) {
      values->assign(static_cast<size_t>(2 * pad), T(0));
      std::fill_n(values->begin(), pad, -std::numeric_limits<T>::infinity());
    }
    T *before = before_.data() + pad, *after = after_.data() + pad;
    int64_t later = 0, so_far = 0;  // total weights of the items after j, and of those up to it
    for (const int64_t w : items_.weight) later += w;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t weight = items_.weight[static_cast<size_t>(i)];
      const int64_t known = std::min(so_far, items_.capacity);
      later -= weight;
      so_far += weight;
      const int64_t least = std::max<int64_t>(0, items_.capacity - later);
      const int64_t end = std::min(so_far, items_.capacity) + 1;
      std::fill(before + known + 1, before + (end + 7) / 8 * 8, before[known]);
      add_item_(before, after, taken_.data() + i * line_bytes_, std::min(least, end - 1) / 8 * 8,
                end, weight, x[items_.index[static_cast<size_t>(i)]]);
      std::swap(before, after);
    }
  }

  void walk_back(T* z) const {
    int64_t left = items_.capacity, so_far = 0;
    for (const int64_t w : items_.weight) so_far += w;
    for (int64_t i = items_.count(); i-- > 0;) {
      left = std::min(left, so_far);
      so_far -= items_.weight[static_cast<size_t>(i)];
      const uint8_t bits = taken_[static_cast<size_t>(i * line_bytes_ + left / 8)];
      if ((bits >> (left % 8) & 1) == 0) continue;
      z[items_.index[static_cast<size_t>(i)]] = T(1);
      left -= items_.weight[static_cast<size_t>(i)];
    }
  }

  const Knapsack& solver_;
  detail::KnapsackItems items_;
  detail::KnapsackCore<T> core_;
  std::vector<T> before_, after_;
  std::vector<uint8_t> taken_;
  int64_t line_bytes_ = 0;
  AddItem<T> add_item_ = line_kernel<T>();
};

template <class T>
void solve_each(const Knapsack& solver, const Rows<T>& rows) {
  KnapsackSolver<T> row(solver);
  detail::solve_each_row(rows, solver.n, [&](const T* x, const bool* mask, T* z, int64_t i) {
    return row.solve(x, mask, rows.data_of(i), z);
  });
}

}  // namespace

void Knapsack::validate() const {
  AIMLE_CHECK(n >= 0, "[aimle::knapsack] expected n >= 0 but got n=", n);
  AIMLE_CHECK(0 <= max_capacity && max_capacity < kMaxCells,
              "[aimle::knapsack] expected 0 <= max_capacity < ", kMaxCells, " but got ",
              max_capacity);
  AIMLE_CHECK(n <= kMaxCells / (max_capacity + 1),
              "[aimle::knapsack] expected n (max_capacity + 1)"
              " <= ",
              kMaxCells, " but got n=", n, ", max_capacity=", max_capacity);
  AIMLE_CHECK(data_length < 0 || data_length == n + 1,
              "[aimle::knapsack] expected as data the weights of the ", n,
              " items and the capacity, ", n + 1, " numbers, but got ", data_length);
}

void Knapsack::declare(Declaration<Knapsack>& solver) {
  solver.summary = "the best items that fit into a capacity";
  solver.setting("max_capacity", &Knapsack::max_capacity, {.min = 0, .max = kMaxCells - 1},
                 "largest capacity, divided by the common divisor of the weights");
  solver.ties = "the lower index wins, and items that add nothing are left out";
}

void Knapsack::take_data(int64_t length, const int64_t* data) {
  data_length = length;
  if (data != nullptr) known_data.assign(data, data + length);
}

void Knapsack::fit(Shape instance) { n = instance[0]; }

void solve_rows(const Knapsack& solver, const Rows<float>& rows) { solve_each(solver, rows); }
void solve_rows(const Knapsack& solver, const Rows<double>& rows) { solve_each(solver, rows); }

}  // namespace aimle
