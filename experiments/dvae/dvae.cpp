#include "experiments/dvae/dvae.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <memory>

#include "aimle/torch/functions.h"
#include "experiments/dvae/data.h"
#include "experiments/dvae/evidence.h"
#include "experiments/dvae/losses.h"
#include "experiments/dvae/model.h"
#include "experiments/engine/learner.h"
#include "experiments/engine/png.h"
#include "experiments/engine/randomness.h"
#include "experiments/process/failure.h"
#include "experiments/process/interrupt.h"

namespace aimle::experiments::dvae {
namespace {

/// Images that are evaluated together: a GPU computes the small batches of a CPU as slowly as large
/// ones.
int64_t evaluation_batch(at::Device device) { return device.is_cpu() ? 500 : 2500; }

constexpr int64_t kBinarisingSeed = 20230207;  // the same binarised digits in every run

class AutoEncoder : public Learner<Data, Dvae> {
 public:
  AutoEncoder(const Settings& settings, const std::shared_ptr<const Data>& data)
      : Learner(settings, data,
                Dvae(Shape{.pixels = data->height * data->width,
                           .rows = settings.get<int64_t>("rows"),
                           .size = settings.get<int64_t>("size")})),
        k_(settings.get<int64_t>("k")),
        solver_(k_ == 1 ? argmax() : topk(k_)),
        kl_weight_(settings.get<double>("kl_weight")),
        bound_codes_(settings.get<int64_t>("bound_codes")) {
    EstimatorOptions options = chosen_estimator_options(settings);
    if (!options.noise && method_.takes("noise")) options.noise = default_noise(method_, k_);
    use(settings, solver_, options, {.lr = settings.get<double>("lr")});
    anneal_ = settings.get<bool>("anneal") && estimator_->state().contains("temperature");
    samples_ = options.nb_samples.value_or(1);
    first_temperature_ = options.temperature.value_or(1.0);

    EstimatorOptions noisy;
    noisy.nb_samples = samples_;
    noisy.noise = options.noise.value_or(default_noise(method_, k_));
    noisy.theta_noise_temperature = options.theta_noise_temperature;
    const bool noise_free = noisy.noise->kind == NoiseKind::kNone;
    code_temperature_ = noise_free ? 0.0 : options.theta_noise_temperature.value_or(1.0);
    Settings as_sampler = settings;
    as_sampler.set("method", Json("ste"), Origin::kDefault);
    sampler_ = make_estimator(as_sampler, solver_, noisy, device_);
  }

  Scalars step(const Batch& batch) {
    const at::Tensor x = to_unit(data_->train.index_select(0, batch.rows));
    const at::Tensor theta = model_->encode(x);
    const at::Tensor coded = averaging(theta, given_samples_);
    const at::Tensor z =
        with_samples((*estimator_)(coded, {.key = batch.noise_key(theta.size(1))}), coded, 2);
    const TrainingLoss loss = training_loss(batch, model_->decode(z), x, theta, kl_weight_);

    // All rows of the code share the example's losses.
    const at::Tensor losses = loss.bce.unsqueeze(1).expand({-1, theta.size(1), -1});
    descend(with_surrogate(loss.objective, batch, coded, z, losses));
    return with_stats({{"loss", loss.means[0]},
                       {"train_bce", loss.means[1]},
                       {"train_kl_softmax", loss.means[2]}});
  }

  bool schedule(int64_t step) {
    if (!anneal_) return false;
    const double temperature = anneal(step, {.start = first_temperature_});
    if (temperature == temperature_) return false;
    temperature_ = temperature;
    estimator_->set_temperature(temperature);
    return true;
  }

  Metrics evaluate(const at::Tensor& key) {
    Metrics metrics;
    measure("test", data_->test, key, metrics);
    if (data_->validation.size(0) > 0) {
      measure("val", data_->validation, subkey(key, 1), metrics);
    }
    return metrics;
  }

  std::vector<Picture> pictures(const at::Tensor& key) {
    const at::NoGradGuard no_grad;
    constexpr int64_t kColumns = 16;
    const int64_t count = std::min<int64_t>(kColumns * 3, data_->test.size(0));
    const at::Tensor x = to_unit(data_->test.narrow(0, 0, count));
    const at::Tensor again = reconstruct(model_->encode(x)).select(1, 0).sigmoid();
    // An image above its reconstruction.
    std::vector<at::Tensor> lines;
    for (int64_t first = 0; first < count; first += kColumns) {
      const int64_t line = std::min(kColumns, count - first);
      lines.push_back(x.narrow(0, first, line));
      lines.push_back(again.narrow(0, first, line));
    }
    const at::Tensor pure_noise = at::zeros({count, model_->shape().rows, model_->shape().size},
                                            at::device(device_).dtype(at::kFloat));
    const at::Tensor codes = (*sampler_)(pure_noise, {.key = key}).narrow(2, 0, 1);
    const at::Tensor drawn = model_->decode(codes).select(1, 0).sigmoid();
    const auto sheet = [&](const at::Tensor& images) {
      return contact_sheet(images.view({-1, data_->height, data_->width}), kColumns, 2);
    };
    return {{"reconstructions", sheet(at::cat(lines))}, {"samples", sheet(drawn)}};
  }

 private:
  at::Tensor reconstruct(const at::Tensor& theta) {
    const at::Tensor z = solve(solver_, theta).unsqueeze(2);
    return model_->decode(z);
  }

  void measure(const std::string& split, const at::Tensor& images, const at::Tensor& key,
               Metrics& metrics) {
    const at::NoGradGuard no_grad;
    const at::Tensor binarising =
        noise_keys(kBinarisingSeed, Purpose::kData, split == "test" ? 0 : 1, 1, device_)[0];
    at::Tensor sums = at::zeros({6}, at::device(device_).dtype(at::kDouble));
    const int64_t batch_size = evaluation_batch(device_);
    for (int64_t first = 0; first < images.size(0); first += batch_size) {
      stop_if_interrupted();
      const int64_t count = std::min(batch_size, images.size(0) - first);
      const at::Tensor x = to_unit(images.narrow(0, first, count));
      const at::Tensor theta = model_->encode(x);
      // Noise belongs to an image, not to its batch.
      const auto key_of = [&](const at::Tensor& own, int64_t instances) {
        return Batch{.key = own, .first = first}.noise_key(instances);
      };
      const at::Tensor z = (*sampler_)(theta, {.key = key_of(subkey(key, 2), theta.size(1))});
      const at::Tensor noisy = reconstruction_loss(model_->decode(z), x).mean(1).sum();
      const at::Tensor best = reconstruction_loss(reconstruct(theta), x).sum();
      const at::Tensor authors = at::stack({noisy, best, softmax_kl(theta).sum()});
      const at::Tensor b = binarise(x, key_of(binarising, 1));
      const at::Tensor bound_key = key_of(subkey(key, 4), theta.size(1));
      sums += at::cat({authors.to(at::kDouble), bounds(theta, x, b, bound_key)});
    }
    const at::Tensor means = (sums / images.size(0)).cpu();
    const auto mean = [&](int64_t i) { return means[i].item<double>(); };
    const double bce = mean(0), bce_map = mean(1), kl_softmax = mean(2);
    metrics.emplace_back(split + "_loss", bce + kl_softmax / static_cast<double>(samples_));
    metrics.emplace_back(split + "_nelbo", mean(3));
    metrics.emplace_back(split + "_iw" + std::to_string(bound_codes_), mean(5));
    metrics.emplace_back(split + "_code_kl", mean(4));
    metrics.emplace_back(split + "_bce", bce);
    metrics.emplace_back(split + "_kl_softmax", kl_softmax);
    metrics.emplace_back(split + "_bce_kl_softmax", bce + kl_softmax);
    metrics.emplace_back(split + "_bce_kl_softmax_map", bce_map + kl_softmax);
  }

  /// Sums over the images x of NELBO, KL and, for their binarised versions b, the
  /// importance-weighted bound: [3].
  at::Tensor bounds(const at::Tensor& theta, const at::Tensor& x, const at::Tensor& b,
                    const at::Tensor& key) {
    const CodeDistribution q(theta, k_, code_temperature_);
    const at::Tensor z = q.draw(key, bound_codes_), logits = model_->decode(z), kl = q.kl();
    const at::Tensor nelbo = reconstruction_loss(logits, x).to(at::kDouble).mean(1) + kl;
    const at::Tensor log_likelihood = -reconstruction_loss(logits, b).to(at::kDouble);
    const at::Tensor weighted = importance_weighted_bound(log_likelihood + q.log_ratio(z));
    return at::stack({nelbo.sum(), kl.sum(), weighted.sum()});
  }

  int64_t k_;
  SolverSpec solver_;
  double kl_weight_;
  int64_t bound_codes_;
  double code_temperature_ = 1.0;  // of the distribution of codes (evidence.h)
  bool anneal_ = false;
  int64_t samples_ = 1;  // in an evaluation
  double first_temperature_ = 1.0;
  double temperature_ = 0.0;  // as set last
  std::unique_ptr<Estimator> sampler_;
};

Training begin(const Settings& settings, const std::shared_ptr<const Data>& data) {
  const auto k = settings.get<int64_t>("k"), size = settings.get<int64_t>("size");
  if (k > size) {
    throw Misuse("expected --k of at most the --size of a row but got k=" + std::to_string(k) +
                 ", size=" + std::to_string(size));
  }
  return training_of(std::make_shared<AutoEncoder>(settings, data), data->train.size(0));
}

}  // namespace

Experiment experiment() {
  const std::vector<Option> of_model = {
      {.name = "k", .value = 10, .help = "Entries chosen in each row", .low = 1, .high = 1000},
      {.name = "rows", .value = 20, .help = "Rows of a code", .low = 1, .high = 1000},
      {.name = "size", .value = 20, .help = "Entries per row", .low = 2, .high = 1000}};
  const std::vector<Option> of_training =
      in_group("Training",
               {{.name = "kl_weight",
                 .value = 1.0,
                 .help = "Weight of the KL for the encoder; reported losses do not include it",
                 .low = 0},
                {.name = "anneal",
                 .value = true,
                 .help = "Relaxations: decrease the temperature by exp(-3e-5 step), down to 0.5"},
                {.name = "bound_codes",
                 .value = 10,
                 .help = "Codes per image for nelbo and the importance-weighted bound iw",
                 .low = 1,
                 .high = 1e5}});
  return {
      .name = "dvae",
      .summary = "Discrete variational auto-encoder of digits",
      .options = combined({of_model, of_training, data_options()}),
      .presets =
          {{.name = "paper",
            .help = "the paper's settings",
            .values = with_paper_target({{"epochs", 100}, {"nb_samples", "10"}})},
           {.name = "reference",
            .help = "the authors' code: one lambda per batch, no validation",
            .values = with_reference_target(
                {{"epochs", 100}, {"target_norm", "10"}, {"nb_samples", "10"}, {"validation", 0}})},
           {.name = "quick",
            .help = "small, for a CPU: less than a minute",
            .values = {{"epochs", 5}}}},
      .defaults = {{"nb_samples", "10"}},
      .load = loading(load_data, begin),
  };
}

}  // namespace aimle::experiments::dvae
