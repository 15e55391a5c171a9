#include "experiments/nri/meeting_kernel.h"

#include "aimle/cuda/launch.cuh"

namespace aimle::experiments::nri {
namespace {

constexpr int kColumns = 32;  // of a block, which processes one graph
constexpr int kMaxThreads = kColumns * static_cast<int>(kMostMeetingVertices);

__device__ int64_t nodes_of(const MeetingSizes& sizes) { return sizes.graphs * sizes.vertices; }

/// Every warp has a receiver and every lane a column.
struct Place {
  int64_t graph, column;
  int lane, receiver;

  __device__ explicit Place(const MeetingSizes& sizes) {
    const auto block = static_cast<int64_t>(blockIdx.x);
    const int64_t strips = (sizes.columns + kColumns - 1) / kColumns;
    lane = static_cast<int>(threadIdx.x) % kColumns;
    receiver = static_cast<int>(threadIdx.x) / kColumns;
    graph = block / strips;
    column = block % strips * kColumns + lane;
  }
};

/// Links are listed receiver by receiver, senders ascending (SpanningTree::arc).
__device__ int sender_of(int link, int receiver) { return link < receiver ? link : link + 1; }
__device__ int link_from(int sender, int receiver) {
  return sender < receiver ? sender : sender - 1;
}

__global__ void __launch_bounds__(kMaxThreads)
    meet_kernel(MeetingSizes sizes, MeetingInputs in, float* y) {
  const Place place(sizes);
  if (place.column >= sizes.columns) return;
  const float* const __restrict__ of_nodes = in.of_nodes;
  const float* const __restrict__ of_links = in.of_links;
  float* const __restrict__ out = y;
  const int links = static_cast<int>(sizes.vertices) - 1;
  const int64_t first_node = place.graph * sizes.vertices, node = first_node + place.receiver;
  const float own =
      of_nodes[(nodes_of(sizes) + node) * sizes.columns + place.column] + in.bias[place.column];
#pragma unroll 3
  for (int link = 0; link < links; ++link) {
    const int64_t i = (node * links + link) * sizes.columns + place.column;
    const int64_t sender = first_node + sender_of(link, place.receiver);
    float x = of_nodes[sender * sizes.columns + place.column] + own;
    if (of_links != nullptr) x += of_links[i];
    out[i] = x > 0 ? x : expm1f(x);
  }
}

__global__ void __launch_bounds__(kMaxThreads)
    meet_backward_kernel(MeetingSizes sizes, const float* dy, const float* y,
                         MeetingGradients out) {
  auto* const of_graph = cuda::dynamic_shared<float>();  // [receiver, link, lane]
  const Place place(sizes);
  const bool inside = place.column < sizes.columns;
  const float* const __restrict__ given = dy;
  const float* const __restrict__ output = y;
  float* const __restrict__ d_links = out.of_links;
  const int vertices = static_cast<int>(sizes.vertices), links = vertices - 1;
  const int64_t first_node = place.graph * sizes.vertices, node = first_node + place.receiver;
  float as_receiver = 0;
#pragma unroll 3
  for (int link = 0; link < links; ++link) {
    const int64_t i = (node * links + link) * sizes.columns + place.column;
    float gradient = 0;
    if (inside) {
      gradient = output[i] <= 0 ? given[i] * (output[i] + 1) : given[i];
      if (d_links != nullptr) d_links[i] = gradient;
    }
    of_graph[(place.receiver * links + link) * kColumns + place.lane] = gradient;
    as_receiver += gradient;
  }
  __syncthreads();
  if (!inside) return;
  float as_sender = 0;
  const int sender = place.receiver;  // the same node
  for (int receiver = 0; receiver < vertices; ++receiver) {
    if (receiver == sender) continue;
    as_sender += of_graph[(receiver * links + link_from(sender, receiver)) * kColumns + place.lane];
  }
  out.of_nodes[node * sizes.columns + place.column] = as_sender;
  out.of_nodes[(nodes_of(sizes) + node) * sizes.columns + place.column] = as_receiver;
}

unsigned blocks_of(const MeetingSizes& sizes) {
  return static_cast<unsigned>(sizes.graphs * ((sizes.columns + kColumns - 1) / kColumns));
}

unsigned threads_of(const MeetingSizes& sizes) {
  return static_cast<unsigned>(sizes.vertices) * kColumns;
}

}  // namespace

bool has_meeting_kernel() { return true; }

void meet_on_device(const MeetingSizes& sizes, const MeetingInputs& inputs, float* y,
                    void* stream) {
  if (blocks_of(sizes) == 0) return;
  cuda::start(meet_kernel, blocks_of(sizes), threads_of(sizes), 0,
              static_cast<cudaStream_t>(stream), sizes, inputs, y);
  cuda::check(cudaGetLastError(), "nri");
}

void meet_backward_on_device(const MeetingSizes& sizes, const float* dy, const float* y,
                             const MeetingGradients& gradients, void* stream) {
  if (blocks_of(sizes) == 0) return;
  const auto links = static_cast<size_t>(sizes.vertices * (sizes.vertices - 1));
  cuda::start(meet_backward_kernel, blocks_of(sizes), threads_of(sizes),
              links * kColumns * sizeof(float), static_cast<cudaStream_t>(stream), sizes, dy, y,
              gradients);
  cuda::check(cudaGetLastError(), "nri");
}

}  // namespace aimle::experiments::nri
