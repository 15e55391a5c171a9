#include "experiments/nri/rollout_kernels.h"

#include "experiments/nri/rollout_launch.cuh"

namespace aimle::experiments::nri {
namespace {

__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

__device__ __forceinline__ float through_relu(float gradient, float y) {
  return y <= 0.0f ? 0.0f : gradient;
}

__device__ __forceinline__ float product(float4 x, float4 y) {
  return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// A warp per graph.
__global__ void sort_kernel(RolloutShape shape, const float* __restrict__ links,
                            const float* __restrict__ sender, int64_t* __restrict__ place,
                            int64_t* __restrict__ sent, int64_t* __restrict__ ends) {
  const int64_t graph = item_of_warp();
  if (graph >= shape.graphs) return;
  const int lane = lane_of_warp();
  const int64_t n = shape.vertices, count = n * (n - 1), first = graph * count;
  const int64_t linked = 2 * (n - 1), unlinked = count - linked;
  const auto is_linked = [&](int64_t link) { return link < count && links[first + link] > 0.5f; };

  int64_t found = 0;
  for (int64_t at = lane; at - lane < count; at += 32) {
    found += __popc(__ballot_sync(kWholeWarp, is_linked(at)));
  }
  if (found != linked) __trap();  // not a tree: places would be outside of the arrays

  int64_t before = 0;  // linked ones
  for (int64_t at = lane; at - lane < count; at += 32) {
    const bool own = is_linked(at);
    const unsigned all = __ballot_sync(kWholeWarp, own);
    const int64_t rank = before + __popc(all & ((1u << lane) - 1));
    before += __popc(all);
    if (at >= count) continue;
    int64_t from = 0;
    for (int64_t s = 1; s < n; ++s) {
      if (sender[at * n + s] > 0.5f) from = s;
    }
    const int64_t to = at / (n - 1);
    const int64_t sorted =
        own ? shape.unlinked + graph * linked + rank : graph * unlinked + at - rank;
    place[first + at] = sorted;
    sent[first + from * (n - 1) + to - (to > from ? 1 : 0)] = sorted;
    ends[2 * sorted] = graph * n + from;
    ends[2 * sorted + 1] = graph * n + to;
  }
}

constexpr int kMet = 16;  // pairs of a block

/// Rows [begin, end) of `hidden` from the pairs [begin, end) of a block, a thread per column.
__device__ __forceinline__ void first_layer(const float* __restrict__ weight,
                                            const float* __restrict__ bias, const float4* met,
                                            int begin, int end, int64_t h,
                                            float* __restrict__ hidden) {
  for (int64_t j = threadIdx.x; j < h; j += kThreads) {
    const float4 factors = reinterpret_cast<const float4*>(weight)[j];
    const float offset = bias[j];
    for (int i = begin; i < end; ++i) {
      hidden[i * h + j] = relu(offset + product(factors, met[i]));
    }
  }
}

__global__ void meet_kernel(RolloutShape shape, const int64_t* __restrict__ ends,
                            const float* __restrict__ now, FirstLayers layers,
                            float* __restrict__ pairs, float* __restrict__ hidden) {
  __shared__ float4 met[kMet];
  const int64_t h = shape.hidden, first = static_cast<int64_t>(blockIdx.x) * kMet;
  const auto count = static_cast<int>(min(shape.links - first, static_cast<int64_t>(kMet)));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < count) {
    const float* const from = now + 2 * ends[2 * (first + thread)];
    const float* const to = now + 2 * ends[2 * (first + thread) + 1];
    met[thread] = make_float4(from[0], from[1], to[0], to[1]);
    reinterpret_cast<float4*>(pairs)[first + thread] = met[thread];
  }
  __syncthreads();
  const int64_t unlinked = max(shape.unlinked - first, static_cast<int64_t>(0));
  const auto split = static_cast<int>(min(unlinked, static_cast<int64_t>(count)));
  float* const rows = hidden + first * h;
  if (split > 0) first_layer(layers.weight[0], layers.bias[0], met, 0, split, h, rows);
  if (split < count) first_layer(layers.weight[1], layers.bias[1], met, split, count, h, rows);
}

// For the links [begin, begin + of_type) of every step.
__global__ void other_hidden_kernel(RolloutShape shape, int64_t steps, int64_t begin,
                                    int64_t of_type, const float* __restrict__ pairs,
                                    const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ hidden) {
  __shared__ float4 met[kMet];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kMet;
  const auto count = static_cast<int>(min(steps * of_type - first, static_cast<int64_t>(kMet)));
  if (static_cast<int>(threadIdx.x) < count) {
    const int64_t row = first + threadIdx.x, t = row / of_type;
    met[threadIdx.x] =
        reinterpret_cast<const float4*>(pairs)[t * shape.links + begin + row - t * of_type];
  }
  __syncthreads();
  first_layer(weight, bias, met, 0, count, shape.hidden, hidden + first * shape.hidden);
}

constexpr int kAhead = 10;  // messages that a thread reads before it writes the first

// A block per node, which alone reads the messages to it.
__global__ void see_kernel(RolloutShape shape, const int64_t* __restrict__ place,
                           const float* __restrict__ now, SecondBiases biases,
                           float* __restrict__ messages, float* __restrict__ seen) {
  const int64_t node = blockIdx.x, h = shape.hidden, count = shape.vertices - 1;
  const int64_t* const __restrict__ received = place + node * count;
  float* const __restrict__ row = seen + node * (kOwn + h);
  if (threadIdx.x < kOwn) {
    row[threadIdx.x] = threadIdx.x < 2 ? now[2 * node + threadIdx.x] : threadIdx.x == kOne;
  }
  for (int64_t j = threadIdx.x; j < h; j += kThreads) {
    const float unlinked = biases.of_type[0][j], linked = biases.of_type[1][j];
    float sum = 0.0f;
    for (int64_t begin = 0; begin < count; begin += kAhead) {
      float values[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (begin + i < count) values[i] = messages[received[begin + i] * h + j];
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (begin + i >= count) break;
        const int64_t sorted = received[begin + i];
        const float message = relu(values[i] + (sorted < shape.unlinked ? unlinked : linked));
        messages[sorted * h + j] = message;
        sum += message;
      }
    }
    row[kOwn + j] = sum;
  }
}

// A warp per node.
__global__ void move_kernel(RolloutShape shape, const float* __restrict__ now,
                            const float* __restrict__ second, const float* __restrict__ out2,
                            const float* __restrict__ bias, float* __restrict__ next) {
  const int64_t node = item_of_warp(), h = shape.hidden;
  if (node >= shape.nodes) return;
  const float* const __restrict__ row = second + node * h;
  const int lane = lane_of_warp();
  float x = 0.0f, y = 0.0f;
  for (int64_t j = lane; j < h; j += 32) {
    x += row[j] * out2[j];
    y += row[j] * out2[h + j];
  }
  x = sum_of_warp(x);
  y = sum_of_warp(y);
  if (lane < 2) next[2 * node + lane] = now[2 * node + lane] + bias[lane] + (lane == 0 ? x : y);
}

// A warp per node.
__global__ void move_backward_kernel(
    RolloutShape shape, const int64_t* __restrict__ place, const int64_t* __restrict__ sent,
    const float* __restrict__ d_given, NextStep next, const float* __restrict__ second,
    const float* __restrict__ out2, float* __restrict__ d_positions, float* __restrict__ d_second) {
  const int64_t node = item_of_warp(), h = shape.hidden, count = shape.vertices - 1;
  if (node >= shape.nodes) return;
  const int lane = lane_of_warp();
  float x = d_given[2 * node], y = d_given[2 * node + 1];
  if (next.d_positions != nullptr) {
    float from_x = 0.0f, from_y = 0.0f;
    for (int64_t i = lane; i < count; i += 32) {
      const float* const as_sender = next.d_pairs + 4 * sent[node * count + i];
      const float* const as_receiver = next.d_pairs + 4 * place[node * count + i];
      from_x += as_sender[0] + as_receiver[2];
      from_y += as_sender[1] + as_receiver[3];
    }
    const float* const own = next.d_seen + node * (kOwn + h);
    x += next.d_positions[2 * node] + own[0] + sum_of_warp(from_x);
    y += next.d_positions[2 * node + 1] + own[1] + sum_of_warp(from_y);
  }
  if (lane < 2) d_positions[2 * node + lane] = lane == 0 ? x : y;
  for (int64_t j = lane; j < h; j += 32) {
    d_second[node * h + j] = through_relu(x * out2[j] + y * out2[h + j], second[node * h + j]);
  }
}

// A warp per sorted link.
__global__ void see_backward_kernel(RolloutShape shape, const int64_t* __restrict__ ends,
                                    const float* __restrict__ d_seen,
                                    const float* __restrict__ messages,
                                    float* __restrict__ d_messages) {
  const int64_t link = item_of_warp(), h = shape.hidden;
  if (link >= shape.links) return;
  const float* const __restrict__ d_sum = d_seen + ends[2 * link + 1] * (kOwn + h) + kOwn;
#pragma unroll 8
  for (int64_t j = lane_of_warp(); j < h; j += 32) {
    d_messages[link * h + j] = through_relu(d_sum[j], messages[link * h + j]);
  }
}

// A warp per sorted link.
__global__ void meet_backward_kernel(RolloutShape shape, const float* __restrict__ hidden,
                                     FirstLayers layers, float* __restrict__ d_hidden,
                                     float* __restrict__ d_pairs) {
  const int64_t link = item_of_warp(), h = shape.hidden;
  if (link >= shape.links) return;
  const int lane = lane_of_warp();
  const auto* const weight =
      reinterpret_cast<const float4*>(link < shape.unlinked ? layers.weight[0] : layers.weight[1]);
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int64_t j = lane; j < h; j += 32) {
    const float d = through_relu(d_hidden[link * h + j], hidden[link * h + j]);
    d_hidden[link * h + j] = d;
    sum.x += d * weight[j].x;
    sum.y += d * weight[j].y;
    sum.z += d * weight[j].z;
    sum.w += d * weight[j].w;
  }
  sum = make_float4(sum_of_warp(sum.x), sum_of_warp(sum.y), sum_of_warp(sum.z), sum_of_warp(sum.w));
  if (lane == 0) reinterpret_cast<float4*>(d_pairs)[link] = sum;
}

}  // namespace

bool has_rollout_kernels() { return true; }

void sort_links_on_device(const RolloutShape& shape, const float* links, const float* sender,
                          int64_t* place, int64_t* sent, int64_t* ends, void* stream) {
  launch("sort_links", sort_kernel, shape.graphs, kWarps, stream, shape, links, sender, place, sent,
         ends);
}

void meet_on_device(const RolloutShape& shape, const int64_t* ends, const float* now,
                    const FirstLayers& layers, float* pairs, float* hidden, void* stream) {
  launch("meet", meet_kernel, shape.links, kMet, stream, shape, ends, now, layers, pairs, hidden);
}

void see_on_device(const RolloutShape& shape, const int64_t* place, const float* now,
                   const SecondBiases& biases, float* messages, float* seen, void* stream) {
  launch("see", see_kernel, shape.nodes, 1, stream, shape, place, now, biases, messages, seen);
}

void move_on_device(const RolloutShape& shape, const float* now, const float* second,
                    const float* out2, const float* bias, float* next, void* stream) {
  launch("move", move_kernel, shape.nodes, kWarps, stream, shape, now, second, out2, bias, next);
}

void move_backward_on_device(const RolloutShape& shape, const int64_t* place, const int64_t* sent,
                             const float* d_given, const NextStep& next, const float* second,
                             const float* out2, float* d_positions, float* d_second, void* stream) {
  launch("move_backward", move_backward_kernel, shape.nodes, kWarps, stream, shape, place, sent,
         d_given, next, second, out2, d_positions, d_second);
}

void see_backward_on_device(const RolloutShape& shape, const int64_t* ends, const float* d_seen,
                            const float* messages, float* d_messages, void* stream) {
  launch("see_backward", see_backward_kernel, shape.links, kWarps, stream, shape, ends, d_seen,
         messages, d_messages);
}

void meet_backward_on_device(const RolloutShape& shape, const float* hidden,
                             const FirstLayers& layers, float* d_hidden, float* d_pairs,
                             void* stream) {
  launch("meet_backward", meet_backward_kernel, shape.links, kWarps, stream, shape, hidden, layers,
         d_hidden, d_pairs);
}

void other_hidden_on_device(const RolloutShape& shape, int64_t steps, int type, const float* pairs,
                            const FirstLayers& layers, float* hidden, void* stream) {
  const int64_t begin = type == 0 ? 0 : shape.unlinked;
  const int64_t of_type = type == 0 ? shape.unlinked : shape.links - shape.unlinked;
  launch("other_hidden", other_hidden_kernel, steps * of_type, kMet, stream, shape, steps, begin,
         of_type, pairs, layers.weight[1 - type], layers.bias[1 - type], hidden);
}

}  // namespace aimle::experiments::nri
