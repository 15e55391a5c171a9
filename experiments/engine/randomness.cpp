#include "experiments/engine/randomness.h"

#include <ATen/Functions.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "aimle/noise/philox.h"
#include "aimle/torch/functions.h"

namespace aimle::experiments {
namespace {

uint64_t wide_word(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

PhiloxWords words(uint64_t seed, Purpose purpose, uint64_t number) {
  return philox4x32(static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32),
                    static_cast<uint32_t>(purpose), 0x61696d6c, static_cast<uint32_t>(seed),
                    static_cast<uint32_t>(seed >> 32));
}

at::Tensor to_tensor(std::vector<int64_t>& values, at::Device device) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kLong)
      .to(device, at::kLong, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

uint64_t random_bits(uint64_t seed, Purpose purpose, uint64_t number) {
  const PhiloxWords random = words(seed, purpose, number);
  return wide_word(random.w[0], random.w[1]);
}

at::Tensor noise_keys(int64_t seed, Purpose purpose, int64_t first, int64_t count,
                      at::Device device) {
  std::vector<int64_t> values;
  for (int64_t i = first; i < first + count; ++i) {
    values.push_back(static_cast<int64_t>(
        random_bits(static_cast<uint64_t>(seed), purpose, static_cast<uint64_t>(i))));
    values.push_back(i);
  }
  return to_tensor(values, device).view({count, 2});
}

at::Tensor subkey(const at::Tensor& key, int64_t number) {
  const at::Tensor moved = key.add(number * 0x1e3779b97f4a7c15);
  if (key.size(0) == 2) return moved;
  return at::cat({moved.narrow(0, 0, 2), key.narrow(0, 2, 1)});  // the first instance stays
}

at::Tensor epoch_order(int64_t seed, int64_t epoch, int64_t examples, at::Device device) {
  std::vector<int64_t> order(static_cast<size_t>(examples));
  std::iota(order.begin(), order.end(), int64_t{0});
  const uint64_t stream =
      random_bits(static_cast<uint64_t>(seed), Purpose::kOrder, static_cast<uint64_t>(epoch));
  for (uint64_t i = order.size(); i-- > 1;) {
    const PhiloxWords random = words(stream, Purpose::kOrder, i);
    const auto wide = static_cast<unsigned __int128>(wide_word(random.w[0], random.w[1])) * (i + 1);
    std::swap(order[i], order[static_cast<uint64_t>(wide >> 64)]);
  }
  return to_tensor(order, device);
}

// A Gumbel variable is below -log(-log(1 - share)) with probability 1 - share.
double dropout_bound(double share) { return -std::log(-std::log1p(-share)); }

at::Tensor keyed_dropout(const at::Tensor& x, double share, const at::Tensor& key) {
  if (share <= 0.0) return x;
  const at::IntArrayRef sizes = x.sizes();
  const at::Tensor noise =
      sample_noise({.kind = NoiseKind::kGumbel}, key, sizes.slice(0, 1), 1, sizes.slice(1));
  const at::Tensor keep = noise.squeeze(1).lt(dropout_bound(share));
  return x * keep * (1.0 / (1.0 - share));
}

}  // namespace aimle::experiments
