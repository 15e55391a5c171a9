#include "aimle/map/assignment_avx2.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

namespace aimle::avx2 {
namespace {

constexpr double kInf = HUGE_VAL;

[[gnu::always_inline]] inline double least_of(__m256d x) {
  const __m128d half = _mm_min_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
  return _mm_cvtsd_f64(_mm_min_sd(half, _mm_unpackhi_pd(half, half)));
}

/// The two best jobs of an agent by reduced cost.
struct TwoBest {
  double first;
  double second;
  int64_t job;
  int64_t other;  // one with the second cost; only known if both costs are equal
};

[[gnu::always_inline]] inline TwoBest two_best(const AssignmentArrays& work, int64_t a) {
  const double* cost = work.cost + a * work.stride;
  __m256d first = _mm256_set1_pd(kInf), second = first;
  for (int64_t j = 0; j < work.stride; j += 4) {
    const __m256d reduced = _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work.v + j));
    second = _mm256_min_pd(second, _mm256_max_pd(first, reduced));
    first = _mm256_min_pd(first, reduced);
  }
  TwoBest best{.first = least_of(first), .second = 0, .job = -1, .other = -1};
  const __m256d is = _mm256_cmp_pd(first, _mm256_set1_pd(best.first), _CMP_EQ_OQ);
  const int lanes = _mm256_movemask_pd(is);
  if ((lanes & (lanes - 1)) != 0) {
    best.second = best.first;
  } else {  // the second of the best lane, or the first of another
    best.second = least_of(_mm256_blendv_pd(first, second, is));
  }
  const __m256d wanted = _mm256_set1_pd(best.first);
  for (int64_t j = 0; j < work.stride; j += 4) {
    const __m256d reduced = _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work.v + j));
    auto found =
        static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(reduced, wanted, _CMP_EQ_OQ)));
    if (found == 0) continue;
    if (best.job < 0) {
      best.job = j + __builtin_ctz(found);
      if (best.first != best.second) break;
      found &= found - 1;
      if (found == 0) continue;
    }
    best.other = j + __builtin_ctz(found);
    break;
  }
  return best;
}

/// Jonker and Volgenant's augmenting row reduction: agents bid for their best job what it is better
/// than the next one. How many are left without a job, in `free`.
int64_t reduce_rows(const AssignmentArrays& work) {
  int64_t waiting = work.agents;
  for (int64_t a = 0; a < work.agents; ++a) work.free[a] = static_cast<int32_t>(a);
  for (int round = 0; round < 2; ++round) {
    int64_t left = 0;
    int64_t bids = 4 * work.agents;  // prices may rise by ones for long
    for (int64_t next = 0; next < waiting;) {
      const int32_t a = work.free[next++];
      const TwoBest best = two_best(work, a);
      int64_t j = best.job;
      if (best.first == kInf) {  // has no job, as the search will say
        work.free[left++] = a;
        continue;
      }
      int32_t holder = work.agent[j];
      const bool better = best.first < best.second && best.second < kInf;
      if (better) {
        work.v[j] -= best.second - best.first;
      } else if (holder >= 0) {
        if (best.first < best.second) {  // its only job is taken, at a price that is not known
          work.free[left++] = a;
          continue;
        }
        j = best.other;
        holder = work.agent[j];
      }
      work.agent[j] = a;
      work.job[a] = static_cast<int32_t>(j);
      if (holder < 0) continue;
      work.job[holder] = -1;
      if (better && --bids > 0) {
        work.free[--next] = holder;
      } else {
        work.free[left++] = holder;
      }
    }
    waiting = left;
  }
  return waiting;
}

bool add_agent(const AssignmentArrays& work, int64_t added, int32_t* closed) {
  const int64_t stride = work.stride;
  std::memcpy(work.open_v, work.v, static_cast<size_t>(stride) * sizeof(double));
  int64_t closed_count = 0;
  int64_t scanned = added;
  double offset = 0;
  double least;
  int64_t end;
  for (;;) {
    const double* cost = work.cost + scanned * stride;
    const __m256d by = _mm256_set1_pd(offset);
    const __m256d name = _mm256_set1_pd(static_cast<double>(scanned));
    __m256d best = _mm256_set1_pd(kInf);
    if (scanned == added) {
      for (int64_t j = 0; j < stride; j += 4) {
        const __m256d through =
            _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work.open_v + j));
        _mm256_store_pd(work.distance + j, through);
        _mm256_store_pd(work.before + j, name);
        best = _mm256_min_pd(best, through);
      }
    } else {
      for (int64_t j = 0; j < stride; j += 4) {
        const __m256d reduced =
            _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work.open_v + j));
        const __m256d through = _mm256_sub_pd(reduced, by);
        const __m256d had = _mm256_load_pd(work.distance + j);
        const __m256d nearer = _mm256_cmp_pd(through, had, _CMP_LT_OQ);
        const __m256d now = _mm256_min_pd(through, had);
        _mm256_store_pd(work.distance + j, now);
        _mm256_store_pd(work.before + j,
                        _mm256_blendv_pd(_mm256_load_pd(work.before + j), name, nearer));
        best = _mm256_min_pd(best, now);
      }
    }
    least = least_of(best);
    if (least == kInf) return false;
    const __m256d wanted = _mm256_set1_pd(least);
    end = -1;
    for (int64_t j = 0; j < stride; j += 4) {
      auto found = static_cast<unsigned>(
          _mm256_movemask_pd(_mm256_cmp_pd(_mm256_load_pd(work.distance + j), wanted, _CMP_EQ_OQ)));
      if (found == 0) continue;
      end = j + __builtin_ctz(found);
      break;
    }
    if (work.agent[end] < 0) break;
    // Closed: never nearer again, and not among the open ones.
    work.before[end + stride] = least;  // of closed jobs, the distance
    work.distance[end] = kInf;
    work.open_v[end] = -kInf;
    closed[closed_count++] = static_cast<int32_t>(end);
    scanned = work.agent[end];
    offset = work.cost[scanned * stride + end] - work.v[end] - least;
  }
  for (int64_t i = 0; i < closed_count; ++i) {
    work.v[closed[i]] += work.before[closed[i] + stride] - least;
  }
  for (int64_t j = end, a = -1; a != added;) {
    a = static_cast<int64_t>(work.before[j]);
    work.agent[j] = static_cast<int32_t>(a);
    const int64_t had = work.job[a];
    work.job[a] = static_cast<int32_t>(j);
    j = had;
  }
  return true;
}

}  // namespace

float largest_size(const float* scores, int64_t n) {
  const __m256i size = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  int64_t e = 0;
  for (; e + 8 <= n; e += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scores + e));
    largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, size));
  }
  alignas(32) int32_t all[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(all), largest);
  int32_t most = 0;
  for (const int32_t one : all) most = one > most ? one : most;
  for (; e < n; ++e) {
    int32_t bits;
    std::memcpy(&bits, scores + e, sizeof bits);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  if (most >= 0x7f800000) return NAN;
  float result;
  std::memcpy(&result, &most, sizeof result);
  return result;
}

void write_costs(const AssignmentArrays& work, const float* scores, double factor) {
  const __m256d round = _mm256_set1_pd(0x1.8p+52), times = _mm256_set1_pd(factor);
  for (int64_t a = 0; a < work.agents; ++a) {
    const float* row = scores + a * work.jobs;
    double* cost = work.cost + a * work.stride;
    int64_t j = 0;
    for (; j + 4 <= work.jobs; j += 4) {
      const __m256d x = _mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(row + j)), times);
      // Rounded to whole numbers and negated: round - (x + round).
      _mm256_store_pd(cost + j, _mm256_sub_pd(round, _mm256_add_pd(x, round)));
    }
    for (; j < work.jobs; ++j) {
      const double x = static_cast<double>(row[j]) * factor;
      cost[j] = 0x1.8p+52 - (x + 0x1.8p+52);
    }
  }
}

bool match_agents(const AssignmentArrays& work) {
  for (int64_t j = 0; j < work.stride; ++j) work.v[j] = 0;
  for (int64_t j = 0; j < work.jobs; ++j) work.agent[j] = -1;
  for (int64_t a = 0; a < work.agents; ++a) work.job[a] = -1;
  const int64_t left = reduce_rows(work);
  for (int64_t i = 0; i < left; ++i) {
    if (!add_agent(work, work.free[i], work.free + work.agents)) return false;
  }
  return true;
}

bool is_only_matching(const AssignmentArrays& work) {
  if (work.jobs > 64) return false;
  uint64_t tight[64];  // the jobs of every agent but its own
  uint64_t matched = 0, unpriced = 0;
  for (int64_t a = 0; a < work.agents; ++a) {
    const double* cost = work.cost + a * work.stride;
    const int64_t own = work.job[a];
    const __m256d wanted = _mm256_set1_pd(cost[own] - work.v[own]);
    uint64_t set = 0;
    for (int64_t j = 0; j < work.stride; j += 4) {
      const __m256d reduced = _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work.v + j));
      set |= static_cast<uint64_t>(_mm256_movemask_pd(_mm256_cmp_pd(reduced, wanted, _CMP_EQ_OQ)))
             << j;
    }
    tight[a] = set & ~(uint64_t{1} << own);
    matched |= uint64_t{1} << own;
    if (work.v[own] == 0) unpriced |= uint64_t{1} << own;
  }
  // `left`: the jobs whose nodes may be on a cycle, those without an agent being one node.
  const uint64_t all = work.jobs == 64 ? ~uint64_t{0} : (uint64_t{1} << work.jobs) - 1;
  const uint64_t spare = all & ~matched;
  for (uint64_t left = all;;) {
    const uint64_t before = left;
    for (int64_t a = 0; a < work.agents; ++a) {
      if ((tight[a] & left) == 0) left &= ~(uint64_t{1} << work.job[a]);
    }
    if ((unpriced & left) == 0) left &= ~spare;
    if (left == 0) return true;
    if (left == before) return false;
  }
}

}  // namespace aimle::avx2
