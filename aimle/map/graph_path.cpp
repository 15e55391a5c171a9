#include "aimle/map/graph_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "aimle/base/check.h"
#include "aimle/base/isa.h"
#include "aimle/map/declaration.h"
#include "aimle/map/distance_queue.h"
#include "aimle/map/graph.h"
#include "aimle/map/graph_lanes.h"
#include "aimle/map/graph_walk.h"

namespace aimle {
namespace {

using detail::Graph;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

struct PortableMachine {
  static constexpr int kVectorBytes = 16;

  template <class Vector>
  [[gnu::always_inline]] static Vector lesser(Vector a, Vector b) {
    return a < b ? a : b;
  }
};

template <class T>
GraphLanes<T> lanes_of_this_machine() {
  if constexpr (kBuiltWithAvx2) {
    if (isa() >= Isa::kAvx2) {
      if constexpr (sizeof(T) == 4) {
        return avx2::graph_lanes_of_floats();
      } else {
        return avx2::graph_lanes_of_doubles();
      }
    }
  }
  return graph_lanes_by<T, PortableMachine>();
}

/// Memory for vectors, which grows on demand.
template <class T>
class LaneArray {
 public:
  T* room(int64_t count) {
    const auto bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > bytes_) {
      data_.reset(static_cast<T*>(::operator new(bytes, kAlignment)));
      bytes_ = bytes;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  size_t bytes_ = 0;
};

/// The error of a row's numbers, given a valid graph.
struct Faults {
  bool nan = false;
  bool below_zero = false;
};

template <class S, class T>
class GraphSolver {
 public:
  explicit GraphSolver(const S& solver) : solver_(solver) {}

  /// Rows of one graph.
  void solve(const Rows<T>& rows, const int64_t* data) {
    graph_ = &graphs_.read(solver_, data, state_);
    if (state_ == Status::kOk && graph_->target < 0) state_ = Status::kDisconnected;
    if (state_ != Status::kOk) return solve_each(rows);
    constexpr int64_t kFew = S::kAcyclic ? 2 : 4;  // fewer rows would leave most lanes idle
    for (int64_t i = 0; i < rows.count; i += kLanes) {
      const auto group = slice(rows, solver_.size(), i, std::min(i + kLanes, rows.count));
      group.count <= kFew ? solve_each(group) : solve_lanes(group);
    }
  }

 private:
  static constexpr int kLanes = kGraphLanes<T>;

  Status judge(Faults faults) const {
    if (faults.nan) return Status::kNaN;
    if (state_ == Status::kBadData) return state_;
    const bool refuse = !S::kAcyclic && solver_.negative == S::Negative::kError;
    return faults.below_zero && refuse ? Status::kNegativeCost : state_;
  }

  /// Writes the result of row i: its status and, if that is kOk, its path.
  void finish(const Rows<T>& rows, int64_t i, Status status, const T* distance, const T* cost,
              int64_t stride) {
    if (status == Status::kOk && !(distance[graph_->target * stride] < kInfinity<T>)) {
      status = Status::kDisconnected;
    }
    T* z = rows.z + i * solver_.size();
    rows.status[i] = status;
    const bool good = status == Status::kOk;
    std::fill_n(z, solver_.size(), good ? T(0) : std::numeric_limits<T>::quiet_NaN());
    if (good) walk_.write_path(*graph_, distance, cost, stride, z);
  }

  void solve_each(const Rows<T>& rows) {
    const int64_t n = solver_.size();
    T* cost = cost_.room(n);
    T* distance = distance_.room(solver_.vertices);
    for (int64_t i = 0; i < rows.count; ++i) {
      const Status status =
          judge(read_row(rows.scores + i * n, rows.mask ? rows.mask + i * n : nullptr, cost));
      if (status == Status::kOk) fill_distances(cost, distance);
      finish(rows, i, status, distance, cost, 1);
    }
  }

  Faults read_row(const T* scores, const bool* mask, T* cost) const {
    Faults faults;
    for (int64_t j = 0; j < solver_.size(); ++j) {
      const bool wall = mask != nullptr && !mask[j];
      const T x = wall ? (S::kAcyclic ? -kInfinity<T> : kInfinity<T>) : scores[j];
      faults.nan |= std::isnan(x);
      faults.below_zero |= x < 0;
      cost[j] = S::kAcyclic ? -x : (x > 0 ? x : T(0));
    }
    return faults;
  }

  void fill_distances(const T* cost, T* distance) {
    std::fill_n(distance, graph_->vertices, kInfinity<T>);
    distance[graph_->source] = 0;
    if constexpr (S::kAcyclic) {
      for (int32_t v = graph_->source + 1; v < graph_->vertices; ++v) {
        T best = kInfinity<T>;
        for (int32_t a = graph_->first_in[v]; a < graph_->first_in[v + 1]; ++a) {
          const T through = distance[graph_->tail[a]] + cost[graph_->entry_in[a]];
          if (through < best) best = through;
        }
        distance[v] = best;
      }
    } else {
      dijkstra(cost, distance);
    }
  }

  /// Distances beyond the target's may be left too large.
  void dijkstra(const T* cost, T* distance) {
    if (!queue_) {
      queue_ = std::make_unique<detail::DistanceQueue<T>>(solver_.arc_count() + 1);
    }
    queue_->push(T(0), graph_->source);
    while (!queue_->empty()) {
      const auto [nearest, u] = queue_->pop();
      if (nearest > distance[u]) continue;
      if (nearest > distance[graph_->target]) break;
      for (int32_t a = graph_->first_out[u]; a < graph_->first_out[u + 1]; ++a) {
        const T through = nearest + cost[graph_->entry_out[a]];
        const int32_t v = graph_->head[a];
        if (!(through < distance[v])) continue;
        distance[v] = through;
        queue_->push(through, v);
      }
    }
    queue_->clear();
  }

  /// Up to kLanes rows in parallel.
  void solve_lanes(const Rows<T>& rows) {
    const int64_t n = solver_.size();
    T* cost = lane_cost_.room(n * kLanes);
    T* distance = lane_distance_.room(int64_t{graph_->vertices} * kLanes);
    std::array<bool, kLanes> nan, below_zero;
    read_lanes(rows, cost, nan.data(), below_zero.data());
    if constexpr (S::kAcyclic) {
      lanes_.pass(arcs(), cost, distance);
    } else {
      constexpr int64_t kSweeps = 48;
      waiting_.resize(static_cast<size_t>(graph_->vertices));
      const int64_t most = kSweeps * graph_->vertices;
      if (!lanes_.sweep(arcs(), cost, distance, waiting_.data(), most)) return solve_each(rows);
    }
    for (int64_t i = 0; i < rows.count; ++i) {
      const auto lane = static_cast<size_t>(i);
      const Status status = judge({.nan = nan[lane], .below_zero = below_zero[lane]});
      finish(rows, i, status, distance + i, cost + i, kLanes);
    }
  }

  /// Lanes without a row repeat the last one.
  void read_lanes(const Rows<T>& rows, T* cost, bool* nan, bool* below_zero) {
    const int64_t n = solver_.size();
    std::array<const T*, kLanes> scores;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      scores[static_cast<size_t>(lane)] = rows.scores + std::min(lane, rows.count - 1) * n;
    }
    lanes_.interleave(scores.data(), n, cost);
    for (int64_t lane = 0; rows.mask != nullptr && lane < kLanes; ++lane) {
      const bool* mask = rows.mask + std::min(lane, rows.count - 1) * n;
      for (int64_t j = 0; j < n; ++j) {
        if (!mask[j]) cost[j * kLanes + lane] = S::kAcyclic ? -kInfinity<T> : kInfinity<T>;
      }
    }
    (S::kAcyclic ? lanes_.negate : lanes_.clip)(cost, n, nan, below_zero);
  }

  GraphArcs arcs() const {
    return {.vertices = graph_->vertices,
            .source = graph_->source,
            .target = graph_->target,
            .first_in = graph_->first_in.data(),
            .tail = graph_->tail.data(),
            .entry_in = graph_->entry_in.data(),
            .first_out = graph_->first_out.data(),
            .head = graph_->head.data()};
  }

  const S& solver_;
  detail::LastGraph& graphs_ = detail::last_graph<S>();
  const Graph* graph_ = nullptr;
  Status state_ = Status::kOk;  // of the graph
  detail::GraphWalk<T> walk_;
  std::unique_ptr<detail::DistanceQueue<T>> queue_;
  LaneArray<T> cost_, distance_, lane_cost_, lane_distance_;
  std::vector<uint8_t> waiting_;
  GraphLanes<T> lanes_ = lanes_of_this_machine<T>();
};

/// Consecutive rows with the same data share their graph.
template <class S, class T>
void solve_all(const S& solver, const Rows<T>& rows) {
  GraphSolver<S, T> graph(solver);
  for (int64_t begin = 0, end = 0; begin < rows.count; begin = end) {
    const int64_t* data = rows.data_of(begin);
    while (end < rows.count && rows.data_of(end) == data) ++end;
    graph.solve(slice(rows, solver.size(), begin, end), data);
  }
  detail::last_graph<S>().forget_if_large();
}

}  // namespace

template <bool kAcyclic>
void PathOverGraph<kAcyclic>::validate() const {
  AIMLE_CHECK(1 <= vertices && vertices <= kMaxSize, "[aimle::", kName,
              "] expected 1 <= vertices <= ", kMaxSize, " but got vertices=", vertices);
  AIMLE_CHECK(0 <= edges && edges <= kMaxSize, "[aimle::", kName,
              "] expected 0 <= edges <= ", kMaxSize, " but got edges=", edges);
  AIMLE_CHECK(arcs <= kMaxSize, "[aimle::", kName, "] expected arcs <= ", kMaxSize,
              " but got arcs=", arcs);
  AIMLE_CHECK(data_length < 0 || (data_length >= vertices + 3 && data_length == numbers()),
              "[aimle::", kName, "] expected as data the source, the target, ", vertices + 1,
              " offsets, and the tails and the entries of the arcs, ", vertices + 3,
              " + 2 arcs numbers for vertices=", vertices, ", but got ", data_length);
}

template <bool kAcyclic>
void PathOverGraph<kAcyclic>::declare(Declaration<PathOverGraph>& solver) {
  solver.summary = kAcyclic ? "the best path over the edges of an acyclic graph"
                            : "the cheapest path over the edges of a graph with costs";
  solver.ties = "fewest edges, then the lower index";
  solver.required("vertices", &PathOverGraph::vertices, {.min = 1, .max = kMaxSize},
                  "number of vertices of the graph");
  if constexpr (!kAcyclic) {
    solver.setting("negative", &PathOverGraph::negative,
                   {{"clip", Negative::kClip}, {"error", Negative::kError}},
                   "whether costs below zero are clipped to zero or an error");
  }
}

template <bool kAcyclic>
void PathOverGraph<kAcyclic>::take_data(int64_t length, const int64_t* data) {
  data_length = length;
  arcs = std::max<int64_t>((length - vertices - 3) / 2, 0);
  if (data != nullptr) known_data.assign(data, data + length);
}

template <bool kAcyclic>
void PathOverGraph<kAcyclic>::fit(Shape instance) {
  edges = instance[0];
}

template struct PathOverGraph<false>;
template struct PathOverGraph<true>;

void solve_rows(const GraphPath& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const GraphPath& solver, const Rows<double>& rows) { solve_all(solver, rows); }
void solve_rows(const DagPath& solver, const Rows<float>& rows) { solve_all(solver, rows); }
void solve_rows(const DagPath& solver, const Rows<double>& rows) { solve_all(solver, rows); }

}  // namespace aimle
