// Defines the entry points of a distribution, for float and double, by the solver's own templates
// evaluate_all and sample_all.
#pragma once

#include "aimle/exact/distribution.h"

#define AIMLE_DEFINE_DISTRIBUTION_OF(Solver, T)                               \
  void evaluate_rows(const Solver& solver, const DistributionRows<T>& rows) { \
    evaluate_all(solver, rows);                                               \
  }                                                                           \
  void sample_rows(const Solver& solver, const SampleRows<T>& rows) { sample_all(solver, rows); }

#define AIMLE_DEFINE_DISTRIBUTION(Solver)     \
  AIMLE_DEFINE_DISTRIBUTION_OF(Solver, float) \
  AIMLE_DEFINE_DISTRIBUTION_OF(Solver, double)
