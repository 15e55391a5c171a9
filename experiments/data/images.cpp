#include "experiments/data/images.h"

#include <zlib.h>

#include "experiments/data/idx.h"
#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

fs::path find(const fs::path& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    if (fs::path file = folder / (name + suffix); fs::exists(file)) return file;
  }
  throw Failure("there is no file " + (folder / name).string() + ", plain or .gz");
}

void expect_dimensions(const Idx& idx, size_t dimensions, const fs::path& file,
                       const std::string& what) {
  if (idx.shape.size() == dimensions) return;
  throw Failure(file.string() + " does not contain " + what + ": it has " +
                std::to_string(idx.shape.size()) + " dimensions, expected " +
                std::to_string(dimensions));
}

Images read_images(const fs::path& folder, const std::string& split) {
  const fs::path image_file = find(folder, split + "-images-idx3-ubyte");
  const fs::path label_file = find(folder, split + "-labels-idx1-ubyte");
  Idx images = read_idx(image_file);
  expect_dimensions(images, 3, image_file, "images");
  Idx labels = read_idx(label_file);
  expect_dimensions(labels, 1, label_file, "labels");
  if (images.shape[0] == 0 || images.shape[1] == 0 || images.shape[2] == 0) {
    throw Failure(image_file.string() + " is empty");
  }
  if (images.shape[0] != labels.shape[0]) {
    throw Failure(image_file.string() + " has " + std::to_string(images.shape[0]) + " images but " +
                  label_file.string() + " has " + std::to_string(labels.shape[0]) + " labels");
  }
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] >= kClasses) {
      throw Failure(label_file.string() + ": label " + std::to_string(i) + " is " +
                    std::to_string(labels.values[i]) + ", expected 0 to 9");
    }
  }
  return {.count = images.shape[0],
          .height = images.shape[1],
          .width = images.shape[2],
          .pixels = std::move(images.values),
          .labels = std::move(labels.values)};
}

std::string gzip(const std::string& bytes) {
  z_stream stream = {};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Failure("zlib failed to initialise");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

ImageSets read_image_sets(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw Failure("there is no folder " + folder.string());
  ImageSets sets = {.train = read_images(folder, "train"), .test = read_images(folder, "t10k")};
  if (sets.train.height != sets.test.height || sets.train.width != sets.test.width) {
    throw Failure(folder.string() + ": the images of train and t10k differ in size");
  }
  return sets;
}

void write_image_sets(const ImageSets& sets, const fs::path& folder) {
  for (const auto& [split, images] :
       {std::pair("train", &sets.train), std::pair("t10k", &sets.test)}) {
    const std::string name = split;
    write_atomically(folder / (name + "-images-idx3-ubyte.gz"),
                     gzip(encode_idx({.shape = {images->count, images->height, images->width},
                                      .values = images->pixels})));
    write_atomically(folder / (name + "-labels-idx1-ubyte.gz"),
                     gzip(encode_idx({.shape = {images->count}, .values = images->labels})));
  }
}

}  // namespace aimle::experiments
