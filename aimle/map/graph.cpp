#include "aimle/map/graph.h"

#include <algorithm>

namespace aimle::detail {
namespace {

/// Whether data are valid according to graph_path.h.
template <bool kAcyclic>
bool is_graph(const PathOverGraph<kAcyclic>& solver, const int64_t* data) {
  const int64_t vertices = solver.vertices, arcs = solver.arc_count();
  const int64_t* offsets = data + 2;
  const int64_t* tails = offsets + vertices + 1;
  const int64_t* entries = tails + arcs;
  const auto below = [](int64_t number, int64_t limit) {
    return static_cast<uint64_t>(number) < static_cast<uint64_t>(limit);
  };
  bool good = below(data[0], vertices) && below(data[1], vertices) && offsets[0] == 0 &&
              offsets[vertices] == arcs;
  for (int64_t v = 0; v < vertices; ++v) good &= offsets[v] <= offsets[v + 1];
  for (int64_t a = 0; a < arcs; ++a) {
    good &= below(tails[a], vertices);
    good &= below(entries[a], solver.edges);
  }
  if (!good || !kAcyclic) return good;
  for (int64_t v = 0; v < vertices; ++v) {
    for (int64_t a = offsets[v]; a < offsets[v + 1]; ++a) good &= tails[a] < v;
  }
  return good;
}

}  // namespace

template <bool kAcyclic>
Status Graph::read(const PathOverGraph<kAcyclic>& solver, const int64_t* data) {
  if (!is_graph(solver, data)) return Status::kBadData;
  const int64_t arcs = solver.arc_count();
  const int64_t* offsets = data + 2;
  const int64_t* tails = offsets + solver.vertices + 1;
  vertices = static_cast<int32_t>(solver.vertices);
  source = static_cast<int32_t>(data[0]);
  target = static_cast<int32_t>(data[1]);
  first_in.assign(offsets, offsets + vertices + 1);
  tail.assign(tails, tails + arcs);
  entry_in.assign(tails + arcs, tails + 2 * arcs);
  head_of_.resize(static_cast<size_t>(arcs));
  for (int32_t v = 0; v < vertices; ++v) {
    std::fill(head_of_.begin() + first_in[v], head_of_.begin() + first_in[v + 1], v);
  }
  sort_by_tails();
  if (!kAcyclic) number_in_breadth();
  return Status::kOk;
}

/// Fills first_out, head and entry_out.
void Graph::sort_by_tails() {
  first_out.assign(static_cast<size_t>(vertices) + 2, 0);
  for (const int32_t u : tail) ++first_out[u + 2];
  for (int32_t v = 1; v <= vertices; ++v) first_out[v + 1] += first_out[v];
  head.resize(tail.size());
  entry_out.resize(tail.size());
  for (size_t a = 0; a < tail.size(); ++a) {
    const int32_t at = first_out[tail[a] + 1]++;
    head[at] = head_of_[a];
    entry_out[at] = entry_in[a];
  }
}

void Graph::number_in_breadth() {
  number_.assign(static_cast<size_t>(vertices), -1);
  order_.clear();
  order_.push_back(source);
  number_[source] = 0;
  for (size_t next = 0; next < order_.size(); ++next) {
    const int32_t u = order_[next];
    for (int32_t a = first_out[u]; a < first_out[u + 1]; ++a) {
      if (number_[head[a]] >= 0) continue;
      number_[head[a]] = static_cast<int32_t>(order_.size());
      order_.push_back(head[a]);
    }
  }
  vertices = static_cast<int32_t>(order_.size());
  source = 0;
  target = number_[target];
  std::vector<int32_t> first{0}, tails, entries, heads;
  tails.reserve(tail.size());
  entries.reserve(tail.size());
  heads.reserve(tail.size());
  for (int32_t v = 0; v < vertices; ++v) {
    for (int32_t a = first_in[order_[v]]; a < first_in[order_[v] + 1]; ++a) {
      if (number_[tail[a]] < 0) continue;
      tails.push_back(number_[tail[a]]);
      entries.push_back(entry_in[a]);
      heads.push_back(v);
    }
    first.push_back(static_cast<int32_t>(tails.size()));
  }
  first_in.swap(first);
  tail.swap(tails);
  entry_in.swap(entries);
  head_of_.swap(heads);
  sort_by_tails();
}

template Status Graph::read(const GraphPath&, const int64_t*);
template Status Graph::read(const DagPath&, const int64_t*);

}  // namespace aimle::detail
