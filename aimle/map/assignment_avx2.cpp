#include "aimle/map/assignment_avx2.h"

#include <immintrin.h>

#include <cmath>

namespace aimle::avx2 {
namespace {

constexpr double kInf = HUGE_VAL;

[[gnu::always_inline]] inline double least_of(__m256d x) {
  const __m128d half = _mm_min_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
  return _mm_cvtsd_f64(_mm_min_sd(half, _mm_unpackhi_pd(half, half)));
}

/// The jobs of a matrix in fours: kVectors of them, a compile-time constant, up to 64 jobs; any
/// number if it is 0.
template <int kVectors>
struct Fours {
  int64_t stride;

  template <class Body>
  [[gnu::always_inline]] void for_each(const Body& body) const {
    if constexpr (kVectors > 0) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kVectors; ++i) body(4 * i);
    } else {
      for (int64_t j = 0; j < stride; j += 4) body(j);
    }
  }

  /// The first job whose bit is set in is(j), j a multiple of 4; there is one.
  template <class Is>
  [[gnu::always_inline]] int64_t first(const Is& is) const {
    if constexpr (kVectors > 0) {
      uint64_t found = 0;
      for_each([&](int64_t j) { found |= static_cast<uint64_t>(is(j)) << j; });
      return __builtin_ctzll(found);
    } else {
      for (int64_t j = 0;; j += 4) {
        const auto found = static_cast<unsigned>(is(j));
        if (found != 0) return j + __builtin_ctz(found);
      }
    }
  }
};

[[gnu::always_inline]] inline int equal(__m256d x, __m256d y) {
  return _mm256_movemask_pd(_mm256_cmp_pd(x, y, _CMP_EQ_OQ));
}

/// The best job of an agent by reduced cost, and the cost of the second.
struct TwoBest {
  double first;
  double second;
  int64_t job;
};

template <int kVectors>
class Matching {
 public:
  explicit Matching(const AssignmentArrays& work) : work_(work), fours_{work.stride} {}

  bool run() {
    if (work_.agents == work_.jobs) reduce_columns();
    const int64_t left = reduce_rows();
    for (int64_t i = 0; i < left; ++i) {
      if (!add_agent(work_.free[i], work_.free + work_.agents)) return false;
    }
    return true;
  }

 private:
  [[gnu::always_inline]] __m256d reduced(int64_t a, int64_t j) const {
    return _mm256_sub_pd(_mm256_load_pd(work_.cost + a * work_.stride + j),
                         _mm256_load_pd(work_.v + j));
  }

  [[gnu::always_inline]] TwoBest two_best(int64_t a) const {
    __m256d first = _mm256_set1_pd(kInf), second = first;
    fours_.for_each([&](int64_t j) {
      const __m256d x = reduced(a, j);
      second = _mm256_min_pd(second, _mm256_max_pd(first, x));
      first = _mm256_min_pd(first, x);
    });
    TwoBest best{.first = least_of(first), .second = 0, .job = 0};
    const __m256d wanted = _mm256_set1_pd(best.first);
    if (best.first < kInf) {
      best.job = fours_.first([&](int64_t j) { return equal(reduced(a, j), wanted); });
    }
    const __m256d is = _mm256_cmp_pd(first, wanted, _CMP_EQ_OQ);
    const int lanes = _mm256_movemask_pd(is);
    // The second of the lane that has the best, or the best of another lane.
    const double second_best = least_of(_mm256_blendv_pd(first, second, is));
    best.second = (lanes & (lanes - 1)) != 0 ? best.first : second_best;
    return best;
  }

  /// Initial prices of a square matrix: the smallest costs of the jobs.
  void reduce_columns() {
    for (int64_t a = 0; a < work_.agents; ++a) {
      fours_.for_each([&](int64_t j) {
        const __m256d cost = _mm256_load_pd(work_.cost + a * work_.stride + j);
        const __m256d least = a == 0 ? cost : _mm256_min_pd(_mm256_load_pd(work_.v + j), cost);
        _mm256_store_pd(work_.v + j, least);
      });
    }
    // The search handles a job that no agent can have.
    fours_.for_each([&](int64_t j) {
      const __m256d v = _mm256_load_pd(work_.v + j);
      const __m256d none = _mm256_cmp_pd(v, _mm256_set1_pd(kInf), _CMP_EQ_OQ);
      _mm256_store_pd(work_.v + j, _mm256_andnot_pd(none, v));
    });
  }

  /// Jonker and Volgenant's augmenting row reduction: agents bid for their best job its advantage
  /// over the next one. Returns the number of agents left without a job, in `free`.
  int64_t reduce_rows() {
    for (int64_t a = 0; a < work_.agents; ++a) work_.free[a] = static_cast<int32_t>(a);
    int64_t left = 0;
    int64_t bids = work_.agents / 4;  // that displace an agent: beyond them the search is faster
    for (int64_t next = 0; next < work_.agents;) {
      const int32_t a = work_.free[next++];
      const TwoBest best = two_best(a);
      const int32_t holder = best.first < kInf ? work_.agent[best.job] : a;
      const bool better = best.first < best.second && best.second < kInf;
      if (holder >= 0 && !better) {  // a tie, no second job, or none at all: left to the search
        work_.free[left++] = a;
        continue;
      }
      if (better) work_.v[best.job] -= best.second - best.first;
      work_.agent[best.job] = a;
      work_.job[a] = static_cast<int32_t>(best.job);
      if (holder < 0) continue;
      work_.job[holder] = -1;
      if (--bids > 0) {
        work_.free[--next] = holder;
      } else {
        work_.free[left++] = holder;
      }
    }
    return left;
  }

  bool add_agent(int64_t added, int32_t* closed) {
    const int64_t stride = work_.stride;
    fours_.for_each([&](int64_t j) {
      _mm256_store_pd(work_.open_v + j, _mm256_load_pd(work_.v + j));
      _mm256_store_pd(work_.distance + j, _mm256_set1_pd(kInf));
    });
    int64_t closed_count = 0;
    int64_t scanned = added;
    double offset = 0;
    double least;
    int64_t end;
    for (;;) {
      const double* cost = work_.cost + scanned * stride;
      const __m256d by = _mm256_set1_pd(offset);
      const __m256d name = _mm256_set1_pd(static_cast<double>(scanned));
      __m256d best = _mm256_set1_pd(kInf);
      fours_.for_each([&](int64_t j) {
        const __m256d through = _mm256_sub_pd(
            _mm256_sub_pd(_mm256_load_pd(cost + j), _mm256_load_pd(work_.open_v + j)), by);
        const __m256d had = _mm256_load_pd(work_.distance + j);
        const __m256d nearer = _mm256_cmp_pd(through, had, _CMP_LT_OQ);
        const __m256d now = _mm256_min_pd(through, had);
        _mm256_store_pd(work_.distance + j, now);
        _mm256_store_pd(work_.before + j,
                        _mm256_blendv_pd(_mm256_load_pd(work_.before + j), name, nearer));
        best = _mm256_min_pd(best, now);
      });
      least = least_of(best);
      if (least == kInf) return false;
      const __m256d wanted = _mm256_set1_pd(least);
      end = fours_.first(
          [&](int64_t j) { return equal(_mm256_load_pd(work_.distance + j), wanted); });
      if (work_.agent[end] < 0) break;
      // Closed: no longer considered.
      work_.before[end + stride] = least;
      work_.distance[end] = kInf;
      work_.open_v[end] = -kInf;
      closed[closed_count++] = static_cast<int32_t>(end);
      scanned = work_.agent[end];
      offset = work_.cost[scanned * stride + end] - work_.v[end] - least;
    }
    for (int64_t i = 0; i < closed_count; ++i) {
      work_.v[closed[i]] += work_.before[closed[i] + stride] - least;
    }
    for (int64_t j = end, a = -1; a != added;) {
      a = static_cast<int64_t>(work_.before[j]);
      work_.agent[j] = static_cast<int32_t>(a);
      const int64_t had = work_.job[a];
      work_.job[a] = static_cast<int32_t>(j);
      j = had;
    }
    return true;
  }

  const AssignmentArrays& work_;
  Fours<kVectors> fours_;
};

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
    const int32_t bits = __builtin_bit_cast(int32_t, scores[e]) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  if (most >= 0x7f800000) return NAN;
  return __builtin_bit_cast(float, most);
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
  switch (work.stride / 4) {
    case 1:
      return Matching<1>(work).run();
    case 2:
      return Matching<2>(work).run();
    case 3:
      return Matching<3>(work).run();
    case 4:
      return Matching<4>(work).run();
    case 8:
      return Matching<8>(work).run();
    default:
      return Matching<0>(work).run();
  }
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
  // `left`: the jobs whose nodes may be on a cycle; those without an agent are one node.
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
