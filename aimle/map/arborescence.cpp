#include "aimle/map/arborescence.h"

#include <algorithm>

#include "aimle/base/aligned.h"
#include "aimle/base/check.h"
#include "aimle/map/arborescence_search.h"
#include "aimle/map/declaration.h"
#include "aimle/map/each_row.h"
#include "aimle/map/one_thread.h"

namespace aimle {
namespace {

template <class T>
void solve_all(const Arborescence& solver, const Rows<T>& rows) {
  using detail::ArborescenceWork;
  const int64_t size = solver.size();
  AlignedVector<char> memory(static_cast<size_t>(ArborescenceWork::bytes(solver.vertices)));
  const ArborescenceWork work = ArborescenceWork::at(memory.data(), solver.vertices);
  detail::OneThread alone;
  detail::solve_each_row(rows, size, [&](const T* scores, const bool* mask, T* z, int64_t) {
    std::fill_n(z, size, T{0});
    return detail::solve_arborescence(alone, work, detail::WholeRow<T>{scores, size}, mask,
                                      solver.single_root, [z](int64_t e) { z[e] = 1; });
  });
}

}  // namespace

void Arborescence::validate() const {
  AIMLE_CHECK(1 <= vertices && vertices <= kMaxVertices,
              "[aimle::arborescence] expected 1 <= vertices <= ", kMaxVertices,
              " but got vertices=", vertices);
}

void Arborescence::declare(Declaration<Arborescence>& solver) {
  solver.summary = "the maximum spanning arborescence: a head for every vertex that is not a root";
  solver.ties = "the best z that is largest in row-major order";
  solver.setting("n", &Arborescence::vertices, {0, kMaxVertices},
                 "vertices; 0: inferred from theta");
  solver.setting("single_root", &Arborescence::single_root, {{"false", false}, {"true", true}},
                 "whether exactly one vertex is a root");
}

void Arborescence::fit(Shape instance) {
  AIMLE_CHECK(instance[0] == instance[1] && (vertices == 0 || vertices == instance[0]),
              "[aimle::arborescence] expected theta of shape [n, n]",
              vertices == 0 ? "" : " for n=", vertices == 0 ? "" : std::to_string(vertices),
              " but its last dimensions are [", instance[0], ", ", instance[1], "]");
  vertices = instance[0];
}

void solve_rows(const Arborescence& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const Arborescence& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
