#include "experiments/nri/rollout_kernels.h"
#include "experiments/nri/rollout_launch.cuh"

namespace aimle::experiments::nri {
namespace {

// Sums over rows: first over those of each part, then over parts.

// A block per 32 columns; each of its warps sums every kWarps-th part.
__global__ void sum_parts_kernel(const float* __restrict__ parts, int64_t count, int64_t columns,
                                 float* __restrict__ sums) {
  __shared__ float of_warps[kWarps][32];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = lane_of_warp();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (int64_t part = warp; part < count; part += kWarps) sum += parts[part * columns + column];
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int other = 1; other < kWarps; ++other) sum += of_warps[other][lane];
  sums[column] = sum;
}

/// Parts of the links of one type in one step.
constexpr int64_t kLinks = 64;  // rows of a part
int64_t parts_of(int64_t links) { return (links + kLinks - 1) / kLinks; }

// A block per part, a thread per column of d_hidden. First the parts of unlinked pairs, `unlinked`
// of every step, then the others.
__global__ void parts_of_links_kernel(RolloutShape shape, int64_t steps, int64_t unlinked,
                                      int64_t linked, const float* __restrict__ pairs,
                                      const float* __restrict__ d_hidden,
                                      const float* __restrict__ d_messages,
                                      float* __restrict__ parts) {
  const int64_t h = shape.hidden, block = blockIdx.x;
  const bool is_linked = block >= steps * unlinked;
  const int64_t part = is_linked ? block - steps * unlinked : block;
  const int64_t of_step = is_linked ? linked : unlinked, t = part / of_step;
  const int64_t begin = (part - t * of_step) * kLinks + (is_linked ? shape.unlinked : 0);
  const int64_t end = is_linked ? shape.links : shape.unlinked, first = t * shape.links + begin;
  const auto count = static_cast<int>(min(end - begin, kLinks));
  const float4* const __restrict__ pair = reinterpret_cast<const float4*>(pairs) + first;
  float* const __restrict__ out = parts + block * 6 * h;
  for (int64_t j = threadIdx.x; j < h; j += kThreads) {
    float x = 0.0f, y = 0.0f, z = 0.0f, w = 0.0f, bias0 = 0.0f, bias1 = 0.0f;
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      const float d = d_hidden[(first + i) * h + j];
      x += d * pair[i].x;
      y += d * pair[i].y;
      z += d * pair[i].z;
      w += d * pair[i].w;
      bias0 += d;
      bias1 += d_messages[(first + i) * h + j];
    }
    out[4 * j] = x;
    out[4 * j + 1] = y;
    out[4 * j + 2] = z;
    out[4 * j + 3] = w;
    out[4 * h + j] = bias0;
    out[5 * h + j] = bias1;
  }
}

constexpr int64_t kNodes = 32;  // rows of a part

// A block per part, a thread per column of second.
__global__ void parts_of_nodes_kernel(int64_t rows, int64_t h,
                                      const float* __restrict__ d_positions,
                                      const float* __restrict__ second,
                                      const float* __restrict__ d_second,
                                      float* __restrict__ parts) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kNodes;
  const auto count = static_cast<int>(min(rows - first, kNodes));
  const float* const __restrict__ position = d_positions + 2 * first;
  float* const __restrict__ out = parts + static_cast<int64_t>(blockIdx.x) * (3 * h + 2);
  for (int64_t j = threadIdx.x; j < h; j += kThreads) {
    float x = 0.0f, y = 0.0f, bias1 = 0.0f;
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const float value = second[(first + i) * h + j];
      x += position[2 * i] * value;
      y += position[2 * i + 1] * value;
      bias1 += d_second[(first + i) * h + j];
    }
    out[j] = x;
    out[h + j] = y;
    out[2 * h + 2 + j] = bias1;
  }
  if (threadIdx.x < 2) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += position[2 * i + threadIdx.x];
    out[2 * h + threadIdx.x] = sum;
  }
}

// A warp per link.
__global__ void gain_kernel(RolloutShape shape, int64_t steps, const int64_t* __restrict__ place,
                            const float* __restrict__ d_seen, const float* __restrict__ messages,
                            const float* __restrict__ other_of_unlinked,
                            const float* __restrict__ other_of_linked, float* __restrict__ gain) {
  const int64_t link = item_of_warp(), h = shape.hidden;
  if (link >= shape.links) return;
  const int64_t sorted = place[link], receiver = link / (shape.vertices - 1);
  const bool linked = sorted >= shape.unlinked;
  const int64_t of_type = linked ? shape.links - shape.unlinked : shape.unlinked;
  const int64_t row = linked ? sorted - shape.unlinked : sorted;
  const float* const __restrict__ others = linked ? other_of_linked : other_of_unlinked;
  const int lane = lane_of_warp();
  float sum = 0.0f;
  for (int64_t t = 0; t < steps; ++t) {
    const float* const d_sum = d_seen + (t * shape.nodes + receiver) * (kOwn + h) + kOwn;
    const float* const own = messages + (t * shape.links + sorted) * h;
    const float* const other = others + (t * of_type + row) * h;
#pragma unroll 8
    for (int64_t j = lane; j < h; j += 32) sum += d_sum[j] * (other[j] - own[j]);
  }
  sum = sum_of_warp(sum);
  if (lane == 0) gain[link] = linked ? -sum : sum;
}

}  // namespace

int64_t sums_of_links_scratch(const RolloutShape& shape, int64_t steps) {
  const int64_t parts = parts_of(shape.unlinked) + parts_of(shape.links - shape.unlinked);
  return steps * parts * 6 * shape.hidden;
}

void sums_of_links_on_device(const RolloutShape& shape, int64_t steps, const float* pairs,
                             const float* d_hidden, const float* d_messages, float* parts,
                             float* of_unlinked, float* of_linked, void* stream) {
  const int64_t unlinked = parts_of(shape.unlinked);
  const int64_t linked = parts_of(shape.links - shape.unlinked), columns = 6 * shape.hidden;
  launch("sums_of_links", parts_of_links_kernel, steps * (unlinked + linked), 1, stream, shape,
         steps, unlinked, linked, pairs, d_hidden, d_messages, parts);
  launch("sums_of_links", sum_parts_kernel, columns, 32, stream, parts, steps * unlinked, columns,
         of_unlinked);
  launch("sums_of_links", sum_parts_kernel, columns, 32, stream, parts + steps * unlinked * columns,
         steps * linked, columns, of_linked);
}

int64_t sums_of_nodes_scratch(int64_t rows, int64_t hidden) {
  return (rows + kNodes - 1) / kNodes * (3 * hidden + 2);
}

void sums_of_nodes_on_device(int64_t rows, int64_t hidden, const float* d_positions,
                             const float* second, const float* d_second, float* parts, float* sums,
                             void* stream) {
  const int64_t columns = 3 * hidden + 2;
  launch("sums_of_nodes", parts_of_nodes_kernel, rows, kNodes, stream, rows, hidden, d_positions,
         second, d_second, parts);
  launch("sums_of_nodes", sum_parts_kernel, columns, 32, stream, parts,
         (rows + kNodes - 1) / kNodes, columns, sums);
}

void gain_of_links_on_device(const RolloutShape& shape, int64_t steps, const int64_t* place,
                             const float* d_seen, const float* messages,
                             const float* other_of_unlinked, const float* other_of_linked,
                             float* gain, void* stream) {
  launch("gain_of_links", gain_kernel, shape.links, kWarps, stream, shape, steps, place, d_seen,
         messages, other_of_unlinked, other_of_linked, gain);
}

}  // namespace aimle::experiments::nri
