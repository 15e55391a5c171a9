#include <type_traits>

#include "aimle/map/topk_avx2.h"
#include "aimle/map/topk_short.h"
#include "aimle/map/transpose_avx2.h"

namespace aimle::avx2 {
namespace {

struct Machine {
  static constexpr int kVectorBytes = 32;

  template <class T, class Lanes>
  [[gnu::always_inline]] static void load_columns(const T* rows, int64_t n, Lanes* columns) {
    if constexpr (std::is_same_v<T, float>) {
      if (n >= 8) {
        for (int64_t j = 0; j + 8 <= n; j += 8) load_transposed(rows + j, n, columns + j);
        load_transposed(rows + n - 8, n, columns + n - 8);
        return;
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      Lanes column;
      for (int64_t r = 0; r < static_cast<int64_t>(sizeof(Lanes) / sizeof(T)); ++r) {
        column[r] = rows[r * n + j];
      }
      columns[j] = column;
    }
  }
};

}  // namespace

void solve_short_rows(const TopK& solver, const Rows<float>& rows) {
  aimle::solve_short_rows<Machine>(solver, rows);
}
void solve_short_rows(const TopK& solver, const Rows<double>& rows) {
  aimle::solve_short_rows<Machine>(solver, rows);
}

}  // namespace aimle::avx2
