// The discrete VAE of the paper: an image is encoded as `rows` rows of `size` entries, of which k
// are chosen in each row, and decoded again.
//
//   encoder  pixels -> 512 -> 256 -> rows * size = theta        (ReLU between)
//   decoder  rows * size -> 256 -> 512 -> pixels, as logits
//
//   loss  BCE(x, decode(z)) summed over pixels, + KL(softmax(theta) || uniform) summed over rows
//         (losses.h)
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace aimle::experiments::dvae {

struct Shape {
  int64_t pixels = 784;
  int64_t rows = 20;
  int64_t size = 20;
};

class DvaeImpl : public torch::nn::Module {
 public:
  /// Weights: Xavier uniform with gain sqrt(2), biases 0.
  explicit DvaeImpl(Shape shape);

  /// [B, pixels] -> theta [B, rows, size]
  at::Tensor encode(const at::Tensor& x);
  /// z [B, rows, S, size] -> logits [B, S, pixels]
  at::Tensor decode(const at::Tensor& z);

  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  torch::nn::Linear encoder0_, encoder1_, encoder2_, decoder0_, decoder1_, decoder2_;
};
TORCH_MODULE(Dvae);

}  // namespace aimle::experiments::dvae
