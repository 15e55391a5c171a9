#include "experiments/warcraft/pictures.h"

#include <ATen/Functions.h>

#include "experiments/warcraft/maps.h"

namespace aimle::experiments::warcraft {
namespace {

constexpr int64_t kGap = 4;

at::Tensor enlarge(const at::Tensor& grid, int64_t zoom) {
  return grid.repeat_interleave(zoom, 1).repeat_interleave(zoom, 2);
}

/// 1 in the middle of the cells on the path, [N, 8K, 8K, 1].
at::Tensor marks(const at::Tensor& path) {
  at::Tensor cell = at::zeros({kTile, kTile});
  cell.narrow(0, 2, kTile - 4).narrow(1, 2, kTile - 4).fill_(1);
  const int64_t cells = path.size(1);
  return (enlarge(path, kTile) * cell.repeat({cells, cells})).unsqueeze(3);
}

at::Tensor with_path(const at::Tensor& images, const at::Tensor& path, at::ArrayRef<float> colour) {
  const at::Tensor share = 0.8 * marks(path);
  return images * (1 - share) + at::tensor(colour) * share;
}

/// Black, red, yellow, white.
at::Tensor heat(const at::Tensor& costs) {
  const at::Tensor low = costs.amin({1, 2}, true);
  const at::Tensor range = (costs.amax({1, 2}, true) - low).clamp_min(1e-12);
  const at::Tensor v = enlarge(3 * (costs - low) / range, kTile);
  return 255 * at::stack({v, v - 1, v - 2}, 3).clamp(0, 1);
}

}  // namespace

at::Tensor draw_paths(const at::Tensor& images, const at::Tensor& truth,
                      const at::Tensor& predicted, const at::Tensor& costs, int64_t zoom) {
  const auto cpu = [](const at::Tensor& t) { return t.detach().cpu().to(at::kFloat); };
  const at::Tensor bright = (cpu(images) * 1.4).clamp(0, 255);
  const at::Tensor gap = at::full({images.size(0), images.size(1), kGap, 3}, 255.0);
  const at::Tensor lines =
      at::cat({with_path(bright, cpu(truth), {255, 255, 255}), gap,
               with_path(bright, cpu(predicted), {255, 225, 60}), gap, heat(cpu(costs))},
              2);
  const at::Tensor spaced = at::constant_pad_nd(lines, {0, 0, 0, 0, 0, kGap}, 255);
  const at::Tensor sheet = spaced.flatten(0, 1).to(at::kByte);
  return sheet.repeat_interleave(zoom, 0).repeat_interleave(zoom, 1).contiguous();
}

}  // namespace aimle::experiments::warcraft
