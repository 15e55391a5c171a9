// A custom solver: the best label sequence of a chain (Viterbi), by dynamic programming.
//
//   theta [length - 1, labels, labels]   scores of going from label a to label b
//   z     the same shape                 1 for the transitions of the best sequence
#pragma once

#include <aimle/registry/register_solver.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace chains {

struct Viterbi {
  static constexpr std::string_view kName = "viterbi";
  static constexpr aimle::Sense kSense = aimle::Sense::kMax;
  static constexpr int64_t kInstanceDims = 3;

  int64_t length = 2;
  int64_t labels = 2;

  int64_t steps() const { return length - 1; }
  int64_t size() const { return steps() * labels * labels; }
  double work_ns() const { return 3.0 * static_cast<double>(size()); }
  aimle::SolutionSize solution_size() const { return {.fixed = true, .ones = steps()}; }
  void validate() const {}

  static void declare(aimle::Declaration<Viterbi>& solver) {
    solver.summary = "the best label sequence of a chain";
    solver.ties = "the lower label wins, starting from the end of the chain";
    solver.required("length", &Viterbi::length, {.min = 2}, "positions of the chain");
    solver.required("labels", &Viterbi::labels, {.min = 1}, "labels per position");
  }
  std::vector<int64_t> shape_for(int64_t) const { return {steps(), labels, labels}; }
  void fit(aimle::Shape theta) const {
    if (theta[0] != steps() || theta[1] != labels || theta[2] != labels) {
      throw std::invalid_argument("[viterbi] expected theta [..., length - 1, labels, labels]");
    }
  }
};

void solve_rows(const Viterbi& solver, const aimle::Rows<float>& rows);
void solve_rows(const Viterbi& solver, const aimle::Rows<double>& rows);

}  // namespace chains
