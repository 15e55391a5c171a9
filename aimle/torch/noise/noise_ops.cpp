#include "aimle/torch/noise/noise_ops.h"

#include <ATen/ops/empty.h>

#include "aimle/noise/quantile_table.h"
#include "aimle/noise/sum_of_gamma.h"
#include "aimle/torch/tensor/dtype.h"
#include "aimle/torch/tensor/value_error.h"

namespace aimle::ops {
namespace {

// Philox counts instances and samples in 32 bits, and elements in blocks of four.
constexpr int64_t kMaxInstances = int64_t{1} << 32;
constexpr int64_t kMaxSamples = int64_t{1} << 32;
constexpr int64_t kMaxElements = int64_t{1} << 34;

c10::SymInt product(c10::SymIntArrayRef sizes) {
  c10::SymInt result = 1;
  for (const c10::SymInt& size : sizes) result *= size;
  return result;
}

void check_sizes(std::string_view op, std::string_view name, c10::SymIntArrayRef sizes,
                 int64_t limit) {
  for (const c10::SymInt& size : sizes) {
    TORCH_CHECK_VALUE(size >= 0, "[aimle::", op, "] expected ", name, " of sizes >= 0 but got ",
                      sizes);
  }
  TORCH_CHECK_VALUE(product(sizes) <= limit, "[aimle::", op, "] expected ", name, " of at most ",
                    limit, " in all but got ", sizes);
}

}  // namespace

at::Tensor NoiseShape::empty(const at::Tensor& like) const {
  c10::SymDimVector sizes(batch.begin(), batch.end());
  if (samples != -1) sizes.push_back(samples);
  sizes.append(instance.begin(), instance.end());
  return at::empty_symint(sizes, like.options().dtype(at::kFloat));
}

NoiseRows NoiseShape::rows() const {
  const int64_t instances = product(batch).expect_int();
  const int64_t draws = samples == -1 ? 1 : samples.expect_int();
  return {.count = instances * draws, .samples = draws, .n = product(instance).expect_int()};
}

void check_noise(NoiseKind kind, const at::Tensor& key, const NoiseShape& shape,
                 const std::optional<at::Tensor>& table) {
  const std::string_view op = name(kind);
  TORCH_CHECK_TYPE(key.scalar_type() == at::kLong, "[aimle::", op,
                   "] expected a key of int64 but got ", dtype_name(key));
  TORCH_CHECK_VALUE(has_shape_of_key(key), "[aimle::", op,
                    "] expected a key of shape [2] or [3] but got ", key.sym_sizes());
  TORCH_CHECK_VALUE(shape.samples == -1 || shape.samples >= 1, "[aimle::", op,
                    "] expected samples >= 1, or -1 for none, but got ", shape.samples);
  TORCH_CHECK_VALUE(shape.samples <= kMaxSamples, "[aimle::", op, "] expected at most ",
                    kMaxSamples, " samples but got ", shape.samples);
  check_sizes(op, "batch", shape.batch, kMaxInstances);
  check_sizes(op, "instance", shape.instance, kMaxElements);
  if (!table) return;
  TORCH_CHECK_TYPE(table->scalar_type() == at::kFloat, "[aimle::", op,
                   "] expected a table of float32 but got ", dtype_name(*table));
  TORCH_CHECK_VALUE(table->dim() == 1 && table->sym_size(0) == kQuantileTableSize, "[aimle::", op,
                    "] expected a table of shape [", kQuantileTableSize,
                    "] (sum_of_gamma_table makes it) but got ", table->sym_sizes());
  TORCH_CHECK_VALUE(table->device() == key.device(), "[aimle::", op,
                    "] expected a table on the device of key, ", key.device(), ", but it is on ",
                    table->device());
}

namespace {

SumOfGamma sum_of_gamma_settings(int64_t k, int64_t iterations) {
  const SumOfGamma settings{.k = k, .iterations = iterations};
  with_value_errors([&] { settings.validate(); });
  return settings;
}

at::Tensor sum_of_gamma_table(int64_t k, int64_t iterations, std::optional<at::Device> device) {
  const auto values = quantile_table(sum_of_gamma_settings(k, iterations));
  at::Tensor table = at::empty({kQuantileTableSize}, at::kFloat);
  std::copy(values->begin(), values->end(), table.mutable_data_ptr<float>());
  return device ? table.to(*device) : table;
}

at::Tensor sum_of_gamma_table_meta(int64_t k, int64_t iterations, std::optional<at::Device>) {
  sum_of_gamma_settings(k, iterations);
  return at::empty({kQuantileTableSize}, at::TensorOptions(at::kMeta).dtype(at::kFloat));
}

struct Meta {
  static at::Tensor fill(NoiseKind, const at::Tensor& key, const NoiseShape& shape,
                         const std::optional<at::Tensor>&) {
    return shape.empty(key);
  }
};

TORCH_LIBRARY_IMPL(aimle, CompositeExplicitAutograd, library) {
  library.impl("sum_of_gamma_table", sum_of_gamma_table);
}

TORCH_LIBRARY_IMPL(aimle, Meta, library) {
  library.impl("sum_of_gamma_table", sum_of_gamma_table_meta);
  register_noise<Meta>(library);
}

}  // namespace
}  // namespace aimle::ops
