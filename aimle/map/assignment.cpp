#include "aimle/map/assignment.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/assignment_search.h"
#include "aimle/map/declaration.h"

namespace aimle {
namespace {

using detail::AssignmentWork;
using detail::OneThread;

template <class T>
struct RowScores {
  const T* scores;
  int64_t size;

  template <class Body>
  void for_each(int, int, const Body& body) const {
    for (int64_t e = 0; e < size; ++e) body(e, scores[e]);
  }
};

template <class T>
void solve_all(const Assignment& solver, const Rows<T>& rows) {
  const int64_t size = solver.size();
  const int64_t jobs = std::max(solver.rows, solver.columns);
  const int64_t stride = (jobs + 3) / 4 * 4;
  AlignedVector<char> memory(
      static_cast<size_t>(AssignmentWork::bytes(solver.ones(), jobs, stride)));
  const AssignmentWork work = AssignmentWork::at(memory.data(), solver, stride);
  OneThread alone;
  for (int64_t r = 0; r < rows.count; ++r) {
    T* z = rows.z + r * size;
    std::fill_n(z, size, T{0});
    const RowScores<T> scores{rows.scores + r * size, size};
    rows.status[r] =
        detail::solve_assignment(alone, work, scores, rows.mask ? rows.mask + r * size : nullptr,
                                 [z](int64_t e) { z[e] = 1; });
    if (rows.status[r] != Status::kOk) std::fill_n(z, size, std::numeric_limits<T>::quiet_NaN());
  }
}

}  // namespace

void Assignment::validate() const {
  AIMLE_CHECK(1 <= rows && rows <= kMaxSide && 1 <= columns && columns <= kMaxSide,
              "[aimle::assignment] expected 1 to ", kMaxSide,
              " rows and columns but got theta of shape [", rows, ", ", columns, "]");
}

void Assignment::declare(Declaration<Assignment>& solver) {
  solver.summary = "the best one-to-one matching of rows and columns";
  solver.ties = "row 0 has the lowest column that it has in any best matching, then row 1, ...";
}

void Assignment::fit(Shape instance) {
  rows = instance[0];
  columns = instance[1];
}

void solve_rows(const Assignment& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Assignment& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
