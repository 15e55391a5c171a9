// Backward of whole examples by one block: their step sizes, the solutions of all their rows, and
// the difference of these, without going through memory in between.
//
// For rows that a thread or a warp solves, and examples with few rows; everything else uses the
// stages of passes.h one after the other.
#pragma once

#include "aimle/cuda/passes.h"

namespace aimle::cuda {

template <class T>
struct WholeExamples {
  const PassSettings& settings;
  SolutionSize size;
  RowSource<T> rows;  // lambda is not read
  AlphaSource alpha;
  const uint8_t* left = nullptr;  // [B, S, bytes_per_row(n)]: the left solutions, or null: solved
  T* dtheta = nullptr;            // [B, n], written
  uint8_t* status = nullptr;      // [rows.sides, B, S] or null
  double* reported = nullptr;     // [B], written: lambda of every example, NaN: none
  Changes* changes = nullptr;     // [kWholeBlocks], written
  unsigned* done = nullptr;       // [1], becomes zero
};

inline constexpr int64_t kWholeBlocks = 8192;

/// The number of entries of `changes` written, one per block; 0: it does not fit, nothing was done.
template <class T>
int64_t whole_examples(const Argmax& solver, const WholeExamples<T>& work, const Context& context);
template <class T>
int64_t whole_examples(const TopK& solver, const WholeExamples<T>& work, const Context& context);
template <class T>
int64_t whole_examples(const SpanningTree& solver, const WholeExamples<T>& work,
                       const Context& context);

/// Instantiates it, where it is defined.
#define AIMLE_INSTANTIATE_WHOLE(Solver)                                                        \
  template int64_t whole_examples(const Solver&, const WholeExamples<float>&, const Context&); \
  template int64_t whole_examples(const Solver&, const WholeExamples<double>&, const Context&);

}  // namespace aimle::cuda
