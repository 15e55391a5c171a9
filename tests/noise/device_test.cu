// The noise headers on the device give the bits of the host.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "aimle/noise/gumbel.h"
#include "aimle/noise/logistic.h"
#include "aimle/noise/noise.h"
#include "aimle/noise/normal.h"
#include "aimle/noise/quantile_table.h"
#include "aimle/noise/sum_of_gamma.h"

namespace aimle {
namespace {

constexpr Key kKey{.seed = 0x0123456789abcdef, .stream = 42};
constexpr int64_t kRows = 4096, kSamples = 8, kN = 1023;  // b = row / samples, s = row % samples

__device__ float quantile(NoiseKind kind, const float* table, uint32_t word) {
  switch (kind) {
    case NoiseKind::kGumbel:
      return gumbel(word);
    case NoiseKind::kNormal:
      return normal(word);
    case NoiseKind::kLogistic:
      return logistic(word);
    case NoiseKind::kSumOfGamma:
      return look_up_quantile(table, word);
    case NoiseKind::kNone:
      break;
  }
  return 0.0f;
}

__global__ void fill_on_device(NoiseKind kind, const float* table, Key key, float* out) {
  const uint32_t row = blockIdx.x;
  for (uint32_t j = threadIdx.x; j < kN; j += blockDim.x) {
    const PhiloxWords words = noise_words(key, row / kSamples, row % kSamples, j >> 2);
    out[row * kN + j] = quantile(kind, table, words.w[j & 3]);
  }
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    EXPECT_EQ(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() { return data_; }
  std::vector<T> to_host() const {
    std::vector<T> host(size_);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return host;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

class NoiseOnDevice : public testing::TestWithParam<NoiseKind> {};

TEST_P(NoiseOnDevice, HasTheBitsOfTheHost) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";

  const auto table = quantile_table({.k = 10, .iterations = 10});
  DeviceArray<float> device_table(*table);
  DeviceArray<float> device_out(kRows * kN);
  fill_on_device<<<kRows, 128>>>(GetParam(), device_table.data(), kKey, device_out.data());
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
  const std::vector<float> on_device = device_out.to_host();

  std::vector<float> on_host(on_device.size());
  fill_rows({.kind = GetParam(), .table = table->data()}, kKey,
            {.first = 0, .count = kRows, .samples = kSamples, .n = kN}, on_host.data());

  for (size_t i = 0; i < on_host.size(); ++i) {
    ASSERT_EQ(float_bits(on_device[i]), float_bits(on_host[i]))
        << "row " << i / kN << ", element " << i % kN << ": " << on_device[i] << " on the device, "
        << on_host[i] << " on the host";
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, NoiseOnDevice,
                         testing::Values(NoiseKind::kGumbel, NoiseKind::kNormal,
                                         NoiseKind::kLogistic, NoiseKind::kSumOfGamma),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace aimle
