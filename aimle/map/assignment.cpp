#include "aimle/map/assignment.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/assignment_avx2.h"
#include "aimle/map/assignment_search.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

using detail::AssignmentWork;
using detail::OneThread;

/// Solves matrices of one size, one after the other.
template <class T>
class RowSolver {
 public:
  explicit RowSolver(const Assignment& solver) : size_(solver.size()), agents_(solver.ones()) {
    const int64_t jobs = std::max(solver.rows, solver.columns);
    const int64_t stride = (jobs + 3) / 4 * 4;
    memory_.resize(static_cast<size_t>(AssignmentWork::bytes(agents_, jobs, stride)));
    work_ = AssignmentWork::at(memory_.data(), solver, stride);
    if (isa() < Isa::kAvx2) return;
    more_.resize(static_cast<size_t>(3 * stride));
    free_.resize(static_cast<size_t>(agents_ + jobs));
    for (int64_t a = 0; a < agents_; ++a) {
      for (int64_t j = jobs; j < stride; ++j) work_.cost[a * stride + j] = HUGE_VAL;
    }
    arrays_ = {.agents = agents_,
               .jobs = jobs,
               .stride = stride,
               .cost = work_.cost,
               .v = work_.v,
               .distance = work_.distance,
               .open_v = more_.data(),
               .before = more_.data() + stride,
               .agent = work_.agent,
               .job = work_.job,
               .free = free_.data()};
  }

  Status solve(const T* scores, const bool* mask, T* z) {
    std::fill_n(z, size_, T{0});
    const Status status = match(scores, mask);
    for (int32_t a = 0; status == Status::kOk && a < work_.agents; ++a) z[work_.entry(a)] = 1;
    return status;
  }

 private:
  Status match(const T* scores, const bool* mask) {
    OneThread alone;
    if (!load_finite(scores, mask) &&
        !detail::load_costs(alone, work_, detail::WholeRow<T>{scores, size_}, mask)) {
      return Status::kNaN;
    }
    if constexpr (kBuiltWithAvx2) {
      if (isa() >= Isa::kAvx2) {
        if (!avx2::match_agents(arrays_)) return Status::kTooFewEntries;
        if (!avx2::is_only_matching(arrays_)) detail::settle_ties(alone, work_);
        return Status::kOk;
      }
    }
    if (!detail::match_agents(alone, work_)) return Status::kTooFewEntries;
    detail::settle_ties(alone, work_);
    return Status::kOk;
  }

  /// The costs of a row without a mask and without infinities; false if it has any, or there is no
  /// kernel.
  bool load_finite(const T* scores, const bool* mask) {
    if constexpr (kBuiltWithAvx2 && sizeof(T) == 4) {
      if (isa() < Isa::kAvx2 || mask != nullptr || work_.transposed) return false;
      const float largest = avx2::largest_size(scores, size_);
      if (largest != largest) return false;
      const auto scale =
          detail::WholeScale::of(double{largest}, detail::assignment_bits(work_.agents));
      avx2::write_costs(arrays_, scores, scale.first * scale.second);
      return true;
    }
    return false;
  }

  int64_t size_;
  int64_t agents_;
  AlignedVector<char> memory_;
  AlignedVector<double> more_;
  std::vector<int32_t> free_;
  AssignmentWork work_;
  avx2::AssignmentArrays arrays_;
};

template <class T>
void solve_all(const Assignment& solver, const Rows<T>& rows) {
  RowSolver<T> one(solver);
  detail::solve_each_row(
      rows, solver.size(),
      [&](const T* scores, const bool* mask, T* z, int64_t) { return one.solve(scores, mask, z); });
}

}  // namespace

void Assignment::validate() const {
  AIMLE_CHECK(1 <= rows && rows <= kMaxSide && 1 <= columns && columns <= kMaxSide,
              "[aimle::assignment] expected 1 to ", kMaxSide,
              " rows and columns but got theta of shape [", rows, ", ", columns, "]");
}

void Assignment::declare(Declaration<Assignment>& solver) {
  solver.summary = "the best one-to-one matching of rows and columns";
  solver.ties = "row 0 gets the lowest column that it has in any best matching, then row 1, ...";
}

void Assignment::fit(Shape instance) {
  rows = instance[0];
  columns = instance[1];
}

void solve_rows(const Assignment& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Assignment& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
