// Sets of small grey images with labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace aimle::experiments {

struct Images {
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // [count, height, width]
  std::vector<uint8_t> labels;  // [count]
};

struct ImageSets {
  Images train;
  Images test;
};

/// The four IDX files of MNIST or Fashion-MNIST, plain or `.gz`, with their published names. The
/// Failure names the file that is missing or wrong.
ImageSets read_image_sets(const std::filesystem::path& folder);

/// Writes them as `.gz`.
void write_image_sets(const ImageSets& sets, const std::filesystem::path& folder);

}  // namespace aimle::experiments
