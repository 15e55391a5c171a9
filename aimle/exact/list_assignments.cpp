#include <vector>

#include "aimle/base/check.h"
#include "aimle/exact/enumerate.h"
#include "aimle/map/assignment.h"

namespace aimle {
namespace {

class Matchings {
 public:
  explicit Matchings(const Assignment& solver)
      : solver_(solver),
        z_(static_cast<size_t>(solver.size())),
        taken_(static_cast<size_t>(solver.columns)) {}

  std::vector<uint8_t> all() {
    add_row(0, solver_.ones());
    return std::move(found_);
  }

 private:
  /// Rows from `row` on, of which `ones` have a column.
  void add_row(int64_t row, int64_t ones) {
    if (row == solver_.rows) {
      found_.insert(found_.end(), z_.begin(), z_.end());
      return;
    }
    for (int64_t column = 0; ones > 0 && column < solver_.columns; ++column) {
      if (taken_[static_cast<size_t>(column)]) continue;
      uint8_t& entry = z_[static_cast<size_t>(row * solver_.columns + column)];
      taken_[static_cast<size_t>(column)] = true;
      entry = 1;
      add_row(row + 1, ones - 1);
      entry = 0;
      taken_[static_cast<size_t>(column)] = false;
    }
    if (solver_.rows - row > ones) add_row(row + 1, ones);
  }

  const Assignment& solver_;
  std::vector<uint8_t> z_;
  std::vector<bool> taken_;
  std::vector<uint8_t> found_;
};

}  // namespace

double Assignment::structure_count() const {
  double count = 1;
  const int64_t most = rows < columns ? columns : rows;
  for (int64_t i = 0; i < ones(); ++i) count *= static_cast<double>(most - i);
  return count;
}

std::vector<uint8_t> Assignment::structures() const {
  validate();
  check_structure_count(structure_count(), "of ", rows, " rows and ", columns, " columns");
  return Matchings(*this).all();
}

}  // namespace aimle
