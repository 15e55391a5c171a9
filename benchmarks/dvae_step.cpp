// One training step of the discrete VAE (k = 10, S = 10, batch 100) with five layers, in one run:
//
//   aimle      the library's layer
//   constant   a z that costs nothing; the decoder need not even compute its gradient
//   free       the same z, whose gradient is computed and discarded
//   plain      AIMLE in plain PyTorch (the noise as ten Gamma draws)
//   plain topk the same on precomputed noise: the cost without the noise
//
// Steps of the five alternate, and medians are compared: the machine may be busy.
//
//   build/release/benchmarks/dvae_step [threads] [rounds]
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>

#include "aimle/torch/estimator.h"
#include "experiments/data/digits.h"
#include "experiments/dvae/data.h"
#include "experiments/dvae/losses.h"
#include "experiments/dvae/model.h"
#include "experiments/engine/adam.h"
#include "experiments/engine/randomness.h"

namespace aimle::experiments {
namespace {

constexpr int64_t kBatch = 100, kRows = 20, kSize = 20, kSamples = 10, kChosen = 10;

using Layer = std::function<at::Tensor(const at::Tensor& theta, const at::Tensor& key)>;

at::Tensor hard_topk(const at::Tensor& x) {
  return at::zeros_like(x).scatter_(-1, std::get<1>(x.topk(kChosen)), 1.0);
}

at::Tensor gamma_noise(at::IntArrayRef sizes) {
  at::Tensor sum = at::zeros(sizes);
  for (int i = 1; i <= 10; ++i) {
    sum += at::_standard_gamma(at::full(sizes, 1.0 / kChosen)) * (static_cast<double>(kChosen) / i);
  }
  return (sum - std::log(10.0)) / static_cast<double>(kChosen);
}

/// AIMLE with lambda per row, the mathematics of the library's layer.
struct PlainLayer : torch::autograd::Function<PlainLayer> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& theta,
                            const at::Tensor& noise) {
    context->save_for_backward({theta, noise});
    return hard_topk(theta.unsqueeze(2) + noise);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list dy) {
    static double alpha = 0, gbar = 1;
    const auto saved = context->get_saved_variables();
    const at::Tensor& theta = saved[0];
    const at::Tensor ratio = theta.norm(2, {-1}).unsqueeze(-1) / dy[0].norm(2, {-1});
    const at::Tensor lambda = (alpha * ratio.mean(-1)).unsqueeze(-1).unsqueeze(-1);
    const at::Tensor centre = theta.unsqueeze(2) + saved[1];
    const at::Tensor difference =
        hard_topk(centre + lambda * dy[0]) - hard_topk(centre - lambda * dy[0]);
    const double count = difference.ne(0).sum().item<double>() /
                         static_cast<double>(theta.size(0) * kRows * kSamples);
    gbar = 0.9 * gbar + 0.1 * count;
    alpha = std::max(0.0, alpha + (gbar <= kChosen ? 1e-3 : -1e-3));
    const at::Tensor scale = 2 * lambda.squeeze(-1);
    return {at::where(scale > 0, difference.sum(2) / scale, 0.0), at::Tensor()};
  }
};

/// A constant z without a gradient: the lower bound of a layer's cost.
struct FreeLayer : torch::autograd::Function<FreeLayer> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor&,
                            const at::Tensor& z) {
    return z.view_as(z);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list) {
    return {at::Tensor(), at::Tensor()};
  }
};

/// A separate model for each layer, and the times of its steps.
struct Contestant {
  Layer layer;
  dvae::Dvae model{dvae::Shape{}};
  std::unique_ptr<Adam> adam;
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  double loss = 0;

  explicit Contestant(Layer layer) : layer(std::move(layer)) {
    std::map<std::string, at::Tensor> parameters;
    for (const auto& entry : model->named_parameters()) parameters[entry.key()] = entry.value();
    adam = std::make_unique<Adam>(parameters, AdamOptions{});
  }

  void step(const at::Tensor& images, const at::Tensor& rows, const at::Tensor& key) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    const at::Tensor x = dvae::to_unit(images.index_select(0, rows));
    const at::Tensor theta = model->encode(x);
    const at::Tensor bce = dvae::reconstruction_loss(model->decode(layer(theta, key)), x);
    const at::Tensor objective = (bce.sum(1) + dvae::softmax_kl(theta)).mean();
    adam->zero_grad();
    objective.backward();
    adam->step();
    loss = bce.mean().item<double>();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    seconds.push_back(passed.count());
    cpu_seconds.push_back(static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC);
  }

  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  }
};

int run(int threads, int rounds) {
  at::set_num_threads(threads);
  Images digits = draw_digits(0, 0, 5000);
  const at::Tensor images =
      at::from_blob(digits.pixels.data(), {digits.count, 784}, at::kByte).clone();
  EstimatorOptions options;
  options.nb_samples = kSamples;
  options.noise = NoiseSpec{.kind = NoiseKind::kSumOfGamma, .k = kChosen};
  options.target_norm = kChosen;
  const auto fused = estimator("aimle", topk(kChosen), options);
  const at::Tensor constant = hard_topk(at::rand({kBatch, kRows, kSamples, kSize}));
  const at::Tensor ready = gamma_noise({kBatch, kRows, kSamples, kSize});

  std::vector<std::pair<const char*, std::unique_ptr<Contestant>>> all;
  const auto add = [&](const char* name, Layer layer) {
    torch::manual_seed(0);
    all.emplace_back(name, std::make_unique<Contestant>(std::move(layer)));
  };
  add("aimle", [&](const at::Tensor& theta, const at::Tensor& key) {
    return (*fused)(theta, {.key = key});
  });
  add("constant", [&](const at::Tensor&, const at::Tensor&) { return constant; });
  add("free", [&](const at::Tensor& theta, const at::Tensor&) {
    return FreeLayer::apply(theta, constant);
  });
  add("plain topk",
      [&](const at::Tensor& theta, const at::Tensor&) { return PlainLayer::apply(theta, ready); });
  add("plain", [&](const at::Tensor& theta, const at::Tensor&) {
    return PlainLayer::apply(theta, gamma_noise({kBatch, kRows, kSamples, kSize}));
  });

  for (int round = 0; round < rounds; ++round) {
    const at::Tensor rows = epoch_order(0, round, digits.count, at::kCPU).narrow(0, 0, kBatch);
    const at::Tensor key = noise_keys(0, Purpose::kTrain, round, 1, at::kCPU)[0];
    for (auto& [name, contestant] : all) contestant->step(images, rows, key);
  }
  std::printf("one step, batch %lld, S = %lld, k = %lld, %d thread%s, medians of %d\n",
              static_cast<long long>(kBatch), static_cast<long long>(kSamples),
              static_cast<long long>(kChosen), threads, threads == 1 ? "" : "s", rounds);
  const auto table = [&](const char* clock, std::vector<double> Contestant::*times) {
    const auto median = [&](size_t i) { return Contestant::median(all[i].second.get()->*times); };
    std::printf("%s\n", clock);
    for (size_t i = 0; i < all.size(); ++i) {
      std::printf("  %-10s %8.2f ms  %5.2f x constant  %5.2f x free   (loss %.1f)\n", all[i].first,
                  1e3 * median(i), median(i) / median(1), median(i) / median(2),
                  all[i].second->loss);
    }
    std::printf("  plain / aimle: %.2f\n", median(4) / median(0));
  };
  table("wall-clock time", &Contestant::seconds);
  // Useful on a busy machine; with several threads it also counts their waiting.
  if (threads == 1) table("CPU time", &Contestant::cpu_seconds);
  return 0;
}

}  // namespace
}  // namespace aimle::experiments

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 60;
  return aimle::experiments::run(threads, rounds);
}
