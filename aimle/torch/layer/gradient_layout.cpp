#include "aimle/torch/layer/gradient_layout.h"

#include <optional>
#include <type_traits>

namespace aimle::ops {
namespace {

/// The distance between neighbours if dimensions [first, last) are treated as one.
std::optional<int64_t> joint_stride(const at::Tensor& tensor, int64_t first, int64_t last) {
  int64_t count = 1, stride = 0;
  for (int64_t d = last - 1; d >= first; --d) {
    if (tensor.size(d) == 1) continue;
    if (count == 1) stride = tensor.stride(d);
    if (tensor.stride(d) != stride * count) return std::nullopt;
    count *= tensor.size(d);
  }
  return stride;
}

struct Strides {
  int64_t example;
  int64_t sample;
};

/// None if there is a row that is not contiguous, or examples at uneven distances.
std::optional<Strides> row_strides(const at::Tensor& dy, const LayerSettings& settings) {
  const int64_t outer = dy.dim() - settings.instance_dims();
  const std::optional<int64_t> inner = joint_stride(dy, outer, dy.dim());
  const bool one_entry =
      dy.sizes().slice(outer).empty() || c10::multiply_integers(dy.sizes().slice(outer)) == 1;
  if (!inner || (*inner != 1 && !one_entry)) return std::nullopt;
  const bool sampled = !settings.mean() && !settings.flat;
  const std::optional<int64_t> batch = joint_stride(dy, 0, sampled ? outer - 1 : outer);
  if (!batch) return std::nullopt;
  if (settings.flat) return Strides{.example = *batch * settings.samples(), .sample = *batch};
  return Strides{.example = *batch, .sample = sampled ? dy.stride(outer - 1) : 0};
}

/// A copy that repeats what dy repeats outside its instances.
at::Tensor compact(const at::Tensor& dy, const LayerSettings& settings) {
  at::Tensor once = dy;
  for (int64_t d = 0; d < dy.dim() - settings.instance_dims(); ++d) {
    if (dy.stride(d) == 0 && dy.size(d) > 1) once = once.narrow(d, 0, 1);
  }
  return once.contiguous().expand(dy.sizes());
}

template <class Narrow>
void widen(const void* row, int64_t n, float* out) {
  const auto* from = static_cast<const Narrow*>(row);
  for (int64_t j = 0; j < n; ++j) out[j] = static_cast<float>(from[j]);
}

}  // namespace

GradientLayout::GradientLayout(const at::Tensor& dy, const LayerSettings& settings) : dy_(dy) {
  std::optional<Strides> strides = row_strides(dy_, settings);
  if (!strides) {
    dy_ = compact(dy, settings);
    strides = row_strides(dy_, settings);
  }
  if (!strides) {
    dy_ = dy.contiguous();
    strides = row_strides(dy_, settings);
  }
  example_stride_ = strides->example * dy_.element_size();
  sample_stride_ = strides->sample * dy_.element_size();
}

template <class T>
GradientRows<T> GradientLayout::rows() const {
  GradientRows<T> rows{.data = dy_.const_data_ptr(),
                       .example_stride = example_stride_,
                       .sample_stride = sample_stride_};
  if constexpr (std::is_same_v<T, float>) {
    if (dy_.scalar_type() == at::kHalf) rows.widen = widen<at::Half>;
    if (dy_.scalar_type() == at::kBFloat16) rows.widen = widen<at::BFloat16>;
  }
  return rows;
}

template GradientRows<float> GradientLayout::rows() const;
template GradientRows<double> GradientLayout::rows() const;

}  // namespace aimle::ops
