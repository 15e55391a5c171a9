#include "experiments/engine/adam_kernel.h"

#include <algorithm>

#include "aimle/cuda/launch.cuh"

namespace aimle::experiments {
namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 8;  // entries of a thread, all of which it reads before it computes
constexpr int64_t kEntries = kLoads * kThreads;  // of a block
constexpr int kTensors = 64;                     // of a launch

/// Tensor i has the blocks from first_block[i] to first_block[i + 1].
struct AdamTensors {
  AdamTensor tensors[kTensors];
  int64_t first_block[kTensors + 1];
};

__global__ void __launch_bounds__(kThreads)
    adam_kernel(const __grid_constant__ AdamTensors task, AdamRates rates, const float* steps) {
  int own = 0;
  while (static_cast<int64_t>(blockIdx.x) >= task.first_block[own + 1]) ++own;
  const AdamTensor& tensor = task.tensors[own];
  float* const __restrict__ parameter = tensor.parameter;
  const float* const __restrict__ gradient = tensor.gradient;
  float* const __restrict__ first = tensor.first;
  float* const __restrict__ second = tensor.second;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) - task.first_block[own]) * kEntries +
                        static_cast<int64_t>(threadIdx.x);
  float p[kLoads], g[kLoads], m[kLoads], v[kLoads];
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int64_t i = begin + j * kThreads;
    if (i >= tensor.size) break;
    p[j] = parameter[i];
    g[j] = gradient[i];
    m[j] = first[i];
    v[j] = second[i];
  }

  __shared__ double corrections[2];
  if (threadIdx.x < 2) {
    const double beta = threadIdx.x == 0 ? rates.beta1 : rates.beta2;
    corrections[threadIdx.x] = 1.0 - pow(beta, static_cast<double>(*steps));
  }
  __syncthreads();
  const auto step_size = static_cast<float>(rates.lr / corrections[0]);
  const auto root = static_cast<float>(sqrt(corrections[1]));
  const auto decay = static_cast<float>(rates.weight_decay);
  const auto beta1 = static_cast<float>(rates.beta1), rest1 = static_cast<float>(1 - rates.beta1);
  const auto beta2 = static_cast<float>(rates.beta2), rest2 = static_cast<float>(1 - rates.beta2);
  const auto eps = static_cast<float>(rates.eps);
#pragma unroll
  for (int j = 0; j < kLoads; ++j) {
    const int64_t i = begin + j * kThreads;
    if (i >= tensor.size) break;
    const float slope = g[j] + decay * p[j];
    m[j] = beta1 * m[j] + rest1 * slope;
    v[j] = beta2 * v[j] + rest2 * slope * slope;
    first[i] = m[j];
    second[i] = v[j];
    parameter[i] = p[j] - step_size * m[j] / (sqrtf(v[j]) / root + eps);
  }
}

}  // namespace

bool has_adam_kernel() { return true; }

void step_on_device(const std::vector<AdamTensor>& tensors, const AdamRates& rates,
                    const float* steps, void* stream) {
  for (size_t done = 0; done < tensors.size(); done += kTensors) {
    const size_t count = std::min<size_t>(kTensors, tensors.size() - done);
    AdamTensors task = {};
    for (size_t i = 0; i < count; ++i) {
      task.tensors[i] = tensors[done + i];
      task.first_block[i + 1] =
          task.first_block[i] + (task.tensors[i].size + kEntries - 1) / kEntries;
    }
    const auto blocks = static_cast<unsigned>(task.first_block[count]);
    if (blocks == 0) continue;
    cuda::start(adam_kernel, blocks, kThreads, 0, static_cast<cudaStream_t>(stream), task, rates,
                steps);
    cuda::check(cudaGetLastError(), "adam");
  }
}

}  // namespace aimle::experiments
