#include "aimle/cuda/launch.cuh"

namespace aimle::cuda {

void require_kernels() {}

bool is_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "cuda");
  return status != cudaStreamCaptureStatusNone;
}

int64_t shared_memory_limit() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "cuda");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cuda");
  return bytes - 2048;  // space for the static shared memory of kernels
}

}  // namespace aimle::cuda
