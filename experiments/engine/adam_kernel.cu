#include "experiments/engine/adam_kernel.h"

#include <algorithm>

#include "aimle/cuda/launch.cuh"

namespace aimle::experiments {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kEntries = 2048;  // of a block
constexpr int kTensors = 64;        // of a launch

/// Tensor i has the blocks from first_block[i] to first_block[i + 1].
struct AdamTensors {
  AdamTensor tensors[kTensors];
  int64_t first_block[kTensors + 1];
};

__global__ void adam_kernel(const __grid_constant__ AdamTensors task, AdamRates rates,
                            const float* steps) {
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

  int own = 0;
  while (static_cast<int64_t>(blockIdx.x) >= task.first_block[own + 1]) ++own;
  const AdamTensor& tensor = task.tensors[own];
  float* const __restrict__ parameter = tensor.parameter;
  const float* const __restrict__ gradient = tensor.gradient;
  float* const __restrict__ first = tensor.first;
  float* const __restrict__ second = tensor.second;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) - task.first_block[own]) * kEntries;
  const int64_t end = begin + kEntries < tensor.size ? begin + kEntries : tensor.size;
  for (int64_t i = begin + static_cast<int64_t>(threadIdx.x); i < end; i += kThreads) {
    const float p = parameter[i];
    const float g = gradient[i] + decay * p;
    const float m = beta1 * first[i] + rest1 * g;
    const float v = beta2 * second[i] + rest2 * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] = p - step_size * m / (sqrtf(v) / root + eps);
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
