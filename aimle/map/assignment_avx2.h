// The AVX2 kernels of Assignment: four jobs at a time (assignment_search.h has the terminology).
//
// They take plain numbers so that their file, compiled for AVX2, instantiates nothing that the
// portable files use as well.
#pragma once

#include <cstdint>

namespace aimle::avx2 {

struct AssignmentArrays {
  int64_t agents = 0;
  int64_t jobs = 0;            // agents <= jobs
  int64_t stride = 0;          // jobs, rounded up to a multiple of 4
  double* cost = nullptr;      // [agents, stride], aligned to 32 bytes; +inf from `jobs` on
  double* v = nullptr;         // [stride], aligned
  double* distance = nullptr;  // [stride], aligned
  double* open_v = nullptr;    // [stride], aligned
  double* before = nullptr;    // [stride], aligned: agents as numbers
  int32_t* agent = nullptr;    // [jobs]
  int32_t* job = nullptr;      // [agents]
  int32_t* free = nullptr;     // [agents + jobs]
};

/// The largest |score| of a row of n, or NaN if a score is not finite.
float largest_size(const float* scores, int64_t n);
/// Costs of a matrix that is not transposed: -round(score * factor); no score is infinite.
void write_costs(const AssignmentArrays& work, const float* scores, double factor);

/// A best matching and its prices; false if there is no matching.
bool match_agents(const AssignmentArrays& work);

/// Whether this is the only best matching, for jobs <= 64; false if that is not known.
bool is_only_matching(const AssignmentArrays& work);

}  // namespace aimle::avx2
