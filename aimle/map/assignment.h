// Assignment: the best one-to-one matching of rows and columns.
//
//   z = argmax over z in {0,1}^(n x m), rows and columns with at most one 1, min(n, m) ones,
//       of <x, z>
//
// An instance is an n x m matrix of scores, in row-major order, square or not: every row gets a
// column if n <= m, every column a row if m <= n.
//
// Scores are rounded once to whole numbers (whole_scores.h): with r = min(n, m), to 2^-b of the
// largest |score| of the matrix, b = 50 - ceil(log2 r), which is 46 for 16 x 16. Float32 scores
// above 2^(24 - b) of the largest are not changed. After that all arithmetic is exact, and the
// solution does not depend on the algorithm. Ties: of all best matchings, the one whose z is the
// largest in row-major order: row 0 gets the lowest column that it has in any of them, then row 1
// the lowest of the remaining ones, and so on; having no column comes last.
//
// Masked entries and scores of -inf are never chosen; if they leave no matching of min(n, m)
// entries the row is kTooFewEntries. +inf is larger than every sum of finite scores: as many of
// them as possible are chosen, then the rest, rounded to 2^-(b - 2 - ceil(log2 r)). NaN in an
// unmasked entry is kNaN, which takes precedence.
//
// Shortest augmenting paths (Jonker, Volgenant, "A shortest augmenting path algorithm for dense and
// sparse linear assignment problems", Computing 1987), O(r^2 max(n, m)); with AVX2 four columns at
// a time, and only what row reduction leaves unassigned is searched for.
//
// There is no exact distribution: its partition function is a permanent, for which no efficient
// algorithm is known beyond some 20 rows. Small instances are listed (`structures`), and
// `aimle.sinkhorn` is the usual relaxation.
//
//   aimle::solve(aimle::Assignment{.rows = 16, .columns = 16}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct Assignment {
  static constexpr std::string_view kName = "assignment";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr int64_t kInstanceDims = 2;
  static constexpr int64_t kMaxSide = 16'384;

  int64_t rows = 0;
  int64_t columns = 0;

  int64_t size() const { return rows * columns; }
  int64_t ones() const { return rows < columns ? rows : columns; }
  double work_ns() const { return 100.0 + 4.0 * static_cast<double>(size()); }
  SolutionSize solution_size() const { return {.fixed = true, .ones = size() > 0 ? ones() : -1}; }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const;

  static void declare(Declaration<Assignment>& solver);
  void fit(Shape instance);
  std::vector<int64_t> shape_for(int64_t n) const { return {n, n}; }
};

void solve_rows(const Assignment& solver, const Rows<float>& rows);
void solve_rows(const Assignment& solver, const Rows<double>& rows);

}  // namespace aimle
