#include "experiments/dvae/loss_kernel.h"

#include "aimle/cuda/launch.cuh"

namespace aimle::experiments::dvae {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <class Number>
__device__ Number sum_of_warp(Number own) {
  for (int by = 16; by > 0; by /= 2) own += __shfl_xor_sync(~0U, own, by);
  return own;
}

__device__ float largest_of_warp(float own) {
  for (int by = 16; by > 0; by /= 2) {
    const float other = __shfl_xor_sync(~0U, own, by);
    own = other > own ? other : own;
  }
  return own;
}

/// The sum over the threads of the block, which only its first thread gets.
template <class Number>
__device__ Number sum_of_block(Number own) {
  __shared__ Number of_warps[kWarps];
  own = sum_of_warp(own);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  Number sum = 0;
  if (threadIdx.x == 0) {
    for (int warp = 0; warp < kWarps; ++warp) sum += of_warps[warp];
  }
  __syncthreads();
  return sum;
}

/// What the threads of a warp know of a row theta: entry i has q = exp(theta_i - offset), and its
/// log_ratio is theta_i - offset + log_size.
struct SoftmaxRow {
  float offset, log_size, kl;

  __device__ SoftmaxRow(const float* theta, int64_t size) {
    const auto lane = static_cast<int64_t>(threadIdx.x % 32);
    float largest = theta[0];
    for (int64_t i = lane; i < size; i += 32) largest = theta[i] > largest ? theta[i] : largest;
    largest = largest_of_warp(largest);
    float sum = 0, weighted = 0;
    for (int64_t i = lane; i < size; i += 32) {
      const float distance = theta[i] - largest, q = expf(distance);
      sum += q;
      weighted += q * distance;
    }
    sum = sum_of_warp(sum);
    offset = largest + logf(sum);
    log_size = logf(static_cast<float>(size));
    kl = sum_of_warp(weighted) / sum - logf(sum) + log_size;
  }
};

__device__ float softplus(float x) { return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x))); }

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/// The blocks of samples come first, then those of examples.
__global__ void __launch_bounds__(kThreads) loss_kernel(LossInputs in, float* bce, float* kl) {
  const auto thread = static_cast<int64_t>(threadIdx.x);
  const auto block = static_cast<int64_t>(blockIdx.x);
  const int64_t all_samples = in.batch * in.samples;
  float own = 0;
  if (block < all_samples) {
    const float* const logits = in.logits + block * in.pixels;
    const float* const x = in.x + block / in.samples * in.pixels;
    for (int64_t i = thread; i < in.pixels; i += kThreads) {
      own += softplus(logits[i]) - x[i] * logits[i];
    }
  } else {
    const float* const theta = in.theta + (block - all_samples) * in.rows * in.size;
    for (int64_t row = thread / 32; row < in.rows; row += kWarps) {
      const SoftmaxRow softmax(theta + row * in.size, in.size);
      if (thread % 32 == 0) own += softmax.kl;
    }
  }
  const float sum = sum_of_block(own);
  if (thread > 0) return;
  if (block < all_samples) {
    bce[block] = sum;
  } else {
    kl[block - all_samples] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    sum_kernel(LossInputs sizes, const float* bce, const float* kl, LossWeights weights,
               LossOutputs outputs) {
  const auto thread = static_cast<int64_t>(threadIdx.x);
  double own_bce = 0, own_kl = 0;
  for (int64_t i = thread; i < sizes.batch * sizes.samples; i += kThreads) own_bce += bce[i];
  for (int64_t i = thread; i < sizes.batch; i += kThreads) own_kl += kl[i];
  const double bce_sum = sum_of_block(own_bce), kl_sum = sum_of_block(own_kl);
  if (thread > 0) return;
  const auto batch = static_cast<double>(sizes.batch), samples = static_cast<double>(sizes.samples);
  const double bce_mean = bce_sum / (batch * samples), kl_mean = kl_sum / batch;
  *outputs.objective = static_cast<float>((bce_sum + weights.kl * kl_sum) / batch * weights.share);
  outputs.means[0] = bce_mean + kl_mean / samples;
  outputs.means[1] = bce_mean;
  outputs.means[2] = kl_mean;
}

__global__ void __launch_bounds__(kThreads)
    gradient_kernel(LossInputs in, LossWeights weights, const float* upstream, float* d_logits,
                    float* d_theta) {
  const auto thread = static_cast<int64_t>(threadIdx.x);
  const auto block = static_cast<int64_t>(blockIdx.x);
  const int64_t all_samples = in.batch * in.samples;
  const double of_example = *upstream * (weights.share / static_cast<double>(in.batch));
  if (block < all_samples) {
    const auto weight = static_cast<float>(of_example);
    const float* const logits = in.logits + block * in.pixels;
    const float* const x = in.x + block / in.samples * in.pixels;
    float* const out = d_logits + block * in.pixels;
    for (int64_t i = thread; i < in.pixels; i += kThreads) {
      out[i] = (sigmoid(logits[i]) - x[i]) * weight;
    }
    return;
  }
  const auto weight = static_cast<float>(of_example * weights.kl);
  const int64_t begin = (block - all_samples) * in.rows * in.size;
  for (int64_t row = thread / 32; row < in.rows; row += kWarps) {
    const float* const theta = in.theta + begin + row * in.size;
    float* const out = d_theta + begin + row * in.size;
    const SoftmaxRow softmax(theta, in.size);
    for (int64_t i = thread % 32; i < in.size; i += 32) {
      const float log_q = theta[i] - softmax.offset;
      out[i] = expf(log_q) * (log_q + softmax.log_size - softmax.kl) * weight;
    }
  }
}

unsigned blocks_of(const LossInputs& in) {
  return static_cast<unsigned>(in.batch * in.samples + (in.theta == nullptr ? 0 : in.batch));
}

}  // namespace

bool has_loss_kernel() { return true; }

void losses_on_device(const LossInputs& inputs, float* bce, float* kl, void* stream) {
  if (blocks_of(inputs) == 0) return;
  cuda::start(loss_kernel, blocks_of(inputs), kThreads, 0, static_cast<cudaStream_t>(stream),
              inputs, bce, kl);
  cuda::check(cudaGetLastError(), "dvae");
}

void sum_losses_on_device(const LossInputs& sizes, const float* bce, const float* kl,
                          const LossWeights& weights, const LossOutputs& outputs, void* stream) {
  cuda::start(sum_kernel, 1, kThreads, 0, static_cast<cudaStream_t>(stream), sizes, bce, kl,
              weights, outputs);
  cuda::check(cudaGetLastError(), "dvae");
}

void loss_gradients_on_device(const LossInputs& inputs, const LossWeights& weights,
                              const float* upstream, float* d_logits, float* d_theta,
                              void* stream) {
  if (blocks_of(inputs) == 0) return;
  cuda::start(gradient_kernel, blocks_of(inputs), kThreads, 0, static_cast<cudaStream_t>(stream),
              inputs, weights, upstream, d_logits, d_theta);
  cuda::check(cudaGetLastError(), "dvae");
}

}  // namespace aimle::experiments::dvae
