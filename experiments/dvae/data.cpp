#include "experiments/dvae/data.h"

#include <ATen/Functions.h>

#include "experiments/data/digits.h"
#include "experiments/process/failure.h"

namespace aimle::experiments::dvae {
namespace {

constexpr int64_t kDrawingSeed = 20230207;

at::Tensor to_tensor(const Images& images, at::Device device) {
  auto* bytes = const_cast<uint8_t*>(images.pixels.data());
  const at::Tensor copy =
      at::from_blob(bytes, {images.count, images.height * images.width}, at::kByte)
          .to(device, at::kByte, /*non_blocking=*/false, /*copy=*/true);
  return device.is_cpu() ? copy : to_unit(copy);
}

ImageSets load(const Settings& settings) {
  const auto folder = settings.get<std::string>("data");
  if (!folder.empty()) return read_image_sets(folder);
  const auto train = settings.get<int64_t>("examples");
  const auto test = settings.get<int64_t>("test_examples");
  return {.train = draw_digits(kDrawingSeed, 0, train),
          .test = draw_digits(kDrawingSeed + 1, 0, test)};
}

}  // namespace

std::vector<Option> data_options() {
  return in_data_group(
      {{.name = "examples",
        .value = 12000,
        .help = "Digits to draw for training, without --data",
        .low = 2,
        .high = 1e7},
       {.name = "test_examples",
        .value = 2000,
        .help = "Digits to draw for testing, without --data",
        .low = 1,
        .high = 1e7},
       {.name = "validation",
        .value = 2000,
        .help = "Training images held out for choosing settings, at most half of them; 0: none",
        .low = 0,
        .high = 1e7}});
}

Data load_data(const Settings& settings) {
  const at::Device device(settings.get<std::string>("device"));
  const ImageSets sets = load(settings);
  const auto validation = std::min(settings.get<int64_t>("validation"), sets.train.count / 2);
  const at::Tensor all = to_tensor(sets.train, device);
  return {.train = all.narrow(0, 0, sets.train.count - validation),
          .validation = all.narrow(0, sets.train.count - validation, validation),
          .test = to_tensor(sets.test, device),
          .height = sets.train.height,
          .width = sets.train.width};
}

at::Tensor to_unit(const at::Tensor& images) {
  return images.scalar_type() == at::kByte ? images * (1.0 / 255.0) : images;
}

}  // namespace aimle::experiments::dvae
