// Arborescence: the maximum spanning arborescence, a directed tree from heads to dependents.
//
//   z = argmax over z in {0,1}^(n x n), one 1 in every column, without cycles, of <x, z>
//
// Entry (h, d) of the n x n matrix of scores, in row-major order, is the score of head h for
// dependent d; entry (v, v) is the score of v as a root. Every vertex has one head or is a root, so
// z has n ones; following heads leads from every vertex to a root. There is at least one root; with
// `single_root` exactly one. These are the unlabelled parses of a sentence of n words.
//
// Scores are rounded once to whole numbers (whole_scores.h), to 2^-b of the largest |score| of the
// matrix, b = 50 - ceil(log2 n), which is 45 for 20 vertices. Float32 scores above 2^(24 - b) of
// the largest are not changed. After that all arithmetic is exact, and the solution does not depend
// on the algorithm. Ties: of all best arborescences, the one whose z is the largest in row-major
// order: entry (0, 0) is 1 if it is in any of them, then (0, 1) is 1 if it is in any of the
// remaining ones, and so on.
//
// Masked entries and scores of -inf are never chosen; if they leave no arborescence (with
// `single_root`: none with one root) the row is kDisconnected. +inf is larger than every sum of
// finite scores: as many of them as possible are chosen, then the rest, rounded to
// 2^-(b - 2 - ceil(log2 n)). NaN in an unmasked entry is kNaN, which takes precedence.
//
// Chu, Liu and Edmonds' algorithm, with a path that grows against the arcs and contracts the cycles
// that it closes (Gabow, Galil, Spencer, Tarjan, Combinatorica 1986), O(n^2).
//
//   aimle::solve(aimle::Arborescence{.vertices = 20}, rows);
#pragma once

#include "aimle/map/map.h"

namespace aimle {

struct Arborescence {
  static constexpr std::string_view kName = "arborescence";
  static constexpr Sense kSense = Sense::kMax;
  static constexpr int64_t kInstanceDims = 2;
  static constexpr int64_t kMaxVertices = 4096;

  int64_t vertices = 0;
  bool single_root = false;

  int64_t size() const { return vertices * vertices; }
  double work_ns() const { return 200.0 + 8.0 * static_cast<double>(size()); }
  SolutionSize solution_size() const {
    return {.fixed = true, .ones = vertices > 0 ? vertices : -1};
  }
  void validate() const;
  std::vector<uint8_t> structures() const;
  double structure_count() const;

  static void declare(Declaration<Arborescence>& solver);
  void fit(Shape instance);
  std::vector<int64_t> shape_for(int64_t n) const { return {n, n}; }
};

void solve_rows(const Arborescence& solver, const Rows<float>& rows);
void solve_rows(const Arborescence& solver, const Rows<double>& rows);

}  // namespace aimle
