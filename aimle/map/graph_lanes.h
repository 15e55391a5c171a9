// Rows of one graph in parallel across the lanes of vectors: the loops that all instruction sets
// share. Vertex v of row `lane` is at v * kGraphLanes<T> + lane, and so are entries.
//
// For inclusion in one source file per instruction set: everything except GraphLanes has internal
// linkage, so that no file uses code of another. `Machine` defines the length of a vector, and the
// smaller of two:
//
//   struct Machine {
//     static constexpr int kVectorBytes;
//     /// a < b ? a : b, hence b where one of them is NaN
//     template <class Vector> static Vector lesser(Vector a, Vector b);
//     /// Optional: the first entries as GraphLanes::interleave has them; how many
//     static int64_t interleave(const T* const* rows, int64_t n, T* values);
//   };
#pragma once

#include <cstdint>

namespace aimle {

/// Rows side by side.
template <class T>
inline constexpr int kGraphLanes = static_cast<int>(64 / sizeof(T));

/// The graph of detail::Graph (map/graph.h).
struct GraphArcs {
  int32_t vertices;
  int32_t source;
  int32_t target;
  const int32_t* first_in;
  const int32_t* tail;
  const int32_t* entry_in;
  const int32_t* first_out;
  const int32_t* head;
};

/// The loops of one instruction set.
template <class T>
struct GraphLanes {
  /// values = entries of the rows, n each.
  void (*interleave)(const T* const* rows, int64_t n, T* values);
  /// Converts scores or costs x to costs: -x, or x clipped at zero. Writes for every lane whether
  /// there is a NaN, and whether there is a value below zero.
  void (*negate)(T* values, int64_t n, bool* nan, bool* below);
  void (*clip)(T* values, int64_t n, bool* nan, bool* below);
  /// The distances of a graph whose arcs go from lower to higher vertices.
  void (*pass)(const GraphArcs& graph, const T* cost, T* distance);
  /// The distances in any graph with costs >= 0; those beyond the target's may be too large. False
  /// if they do not settle within about `most` updates of a vertex. `waiting` has space for every
  /// vertex.
  bool (*sweep)(const GraphArcs& graph, const T* cost, T* distance, uint8_t* waiting, int64_t most);
};

namespace avx2 {
GraphLanes<float> graph_lanes_of_floats();
GraphLanes<double> graph_lanes_of_doubles();
}  // namespace avx2

namespace {

template <class T, class Machine>
class GraphLoops {
 public:
  static constexpr int kLanes = kGraphLanes<T>;

  static void interleave(const T* const* rows, int64_t n, T* values) {
    constexpr int64_t kTile = 16;
    int64_t first = 0;
    if constexpr (requires { Machine::interleave(rows, n, values); }) {
      first = Machine::interleave(rows, n, values);
    }
    for (; first < n; first += kTile) {
      const int64_t end = first + kTile < n ? first + kTile : n;
      for (int lane = 0; lane < kLanes; ++lane) {
        const T* const row = rows[lane];
        for (int64_t j = first; j < end; ++j) values[j * kLanes + lane] = row[j];
      }
    }
  }

  template <bool kNegate>
  static void clean(T* values, int64_t n, bool* nan, bool* below) {
    Mask nans[kVectors]{}, belows[kVectors]{};
    const Vector zero{};
    for (int64_t j = 0; j < n; ++j) {
      for (int i = 0; i < kVectors; ++i) {
        Vector& x = at(values, j)[i];
        nans[i] |= x != x;
        belows[i] |= x < zero;
        x = kNegate ? -x : (x > zero ? x : zero);
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      nan[lane] = nans[lane / kWide][lane % kWide] != 0;
      below[lane] = belows[lane / kWide][lane % kWide] != 0;
    }
  }

  static void pass(const GraphArcs& graph, const T* cost, T* distance) {
    start(graph, distance);
    for (int32_t v = graph.source + 1; v < graph.vertices; ++v) update(graph, cost, distance, v);
  }

  static bool sweep(const GraphArcs& graph, const T* cost, T* distance, uint8_t* waiting,
                    int64_t most) {
    start(graph, distance);
    for (int32_t v = 0; v < graph.vertices; ++v) waiting[v] = 0;
    leave(graph, graph.source, waiting);
    bool again = true;
    for (bool upwards = false; again && most >= 0; upwards = !upwards) {
      again = false;
      most -= graph.vertices / 8;  // the cost of finding those that wait
      for (int32_t i = 0; i < graph.vertices; ++i) {
        const int32_t v = upwards ? graph.vertices - 1 - i : i;
        if (waiting[v] == 0) continue;
        waiting[v] = 0;
        --most;
        if (!update(graph, cost, distance, v)) continue;
        leave(graph, v, waiting);
        again = true;
      }
    }
    return !again;
  }

 private:
  static constexpr int kWide = Machine::kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kVectors = kLanes / kWide;
  typedef T Vector __attribute__((vector_size(Machine::kVectorBytes), may_alias));
  using Mask = decltype(Vector{} != Vector{});

  [[gnu::always_inline]] static Vector* at(T* values, int64_t index) {
    return reinterpret_cast<Vector*>(values + index * kLanes);
  }
  [[gnu::always_inline]] static const Vector* at(const T* values, int64_t index) {
    return reinterpret_cast<const Vector*>(values + index * kLanes);
  }

  static void start(const GraphArcs& graph, T* distance) {
    const int64_t count = int64_t{graph.vertices} * kLanes;
    for (int64_t i = 0; i < count; ++i) distance[i] = static_cast<T>(__builtin_huge_val());
    for (int i = 0; i < kVectors; ++i) at(distance, graph.source)[i] = Vector{};
  }

  static void leave(const GraphArcs& graph, int32_t u, uint8_t* waiting) {
    for (int32_t a = graph.first_out[u]; a < graph.first_out[u + 1]; ++a)
      waiting[graph.head[a]] = 1;
  }

  /// Whether a distance has decreased and is not beyond the target's.
  [[gnu::always_inline]] static bool update(const GraphArcs& graph, const T* cost, T* distance,
                                            int32_t v) {
    Vector before[kVectors], best[kVectors];
    for (int i = 0; i < kVectors; ++i) before[i] = best[i] = at(distance, v)[i];
    for (int32_t a = graph.first_in[v]; a < graph.first_in[v + 1]; ++a) {
      const Vector* const from = at(distance, graph.tail[a]);
      const Vector* const along = at(cost, graph.entry_in[a]);
      for (int i = 0; i < kVectors; ++i) best[i] = Machine::lesser(from[i] + along[i], best[i]);
    }
    Mask changed{};
    for (int i = 0; i < kVectors; ++i) {
      changed |= (best[i] < before[i]) & (best[i] <= at(distance, graph.target)[i]);
      at(distance, v)[i] = best[i];
    }
    bool any = false;
    for (int lane = 0; lane < kWide; ++lane) any |= changed[lane] != 0;
    return any;
  }
};

template <class T, class Machine>
constexpr GraphLanes<T> graph_lanes_by() {
  using Loops = GraphLoops<T, Machine>;
  return {.interleave = Loops::interleave,
          .negate = Loops::template clean<true>,
          .clip = Loops::template clean<false>,
          .pass = Loops::pass,
          .sweep = Loops::sweep};
}

}  // namespace
}  // namespace aimle
