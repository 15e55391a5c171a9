// A row as the group algorithms read it: every thread its own share.
#pragma once

#include <cstdint>

namespace aimle::conformance {

template <class T>
struct RowInMemory {
  const T* scores;
  int64_t n;

  template <class Body>
  void for_each(int rank, int threads, const Body& body) const {
    for_range(0, n, rank, threads, body);
  }
  template <class Body>
  void for_word(int64_t word, const Body& body) const {
    for (int64_t j = 32 * word; j < 32 * word + 32 && j < n; ++j) body(j, scores[j]);
  }
  template <class Body>
  void for_range(int64_t begin, int64_t end, int rank, int threads, const Body& body) const {
    for (int64_t j = begin + rank; j < end; j += threads) body(j, scores[j]);
  }
};

}  // namespace aimle::conformance
