#include "experiments/data/idx.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>

#include "experiments/data/images.h"
#include "experiments/process/failure.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string complaint(const std::string& file) {
  return message_of<Failure>([&] { parse_idx(bytes_of(file), "x.idx"); });
}

Idx some() { return {.shape = {3, 2, 2}, .values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}}; }

TEST(Idx, ReadsWhatItWritesPlainAndZipped) {
  const std::string plain = encode_idx(some());
  EXPECT_EQ(plain.substr(0, 8), std::string("\0\0\x08\x03\0\0\0\x03", 8));
  for (const std::string& file : {plain, gzipped(plain)}) {
    const Idx idx = parse_idx(bytes_of(file), "x.idx");
    EXPECT_EQ(idx.shape, some().shape);
    EXPECT_EQ(idx.values, some().values);
  }
}

TEST(Idx, SaysWhatIsWrong) {
  const std::string good = encode_idx(some());
  EXPECT_NE(complaint("").find("only 0 bytes"), std::string::npos);
  EXPECT_NE(complaint("\x89PNG....").find("begins with 0x89504e47"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, 10)).find("within its header"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, 20)).find("declares 12 values but 4 follow"),
            std::string::npos);
  EXPECT_NE(complaint(good + "x").find("declares 12 values but 13 follow"), std::string::npos);
  std::string floats = good;
  floats[2] = 0x0d;
  EXPECT_NE(complaint(floats).find("begins with 0x00000d03"), std::string::npos);
  std::string huge = good;
  for (size_t i = 4; i < 16; ++i) huge[i] = '\xff';
  EXPECT_NE(complaint(huge).find("declares more than"), std::string::npos);
}

TEST(Idx, SaysWhatIsWrongWithCompressedData) {
  const std::string packed = gzipped(encode_idx(some()));
  EXPECT_NE(complaint(packed.substr(0, packed.size() - 5)).find("ends early"), std::string::npos);
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(damaged[packed.size() - 6] ^ 0x55);
  EXPECT_NE(complaint(damaged).find("damaged"), std::string::npos);
  EXPECT_NE(complaint(packed + "more").find("extra data after"), std::string::npos);
}

TEST(Idx, UnpacksNoMoreThanTheLimit) {
  const Idx large = {.shape = {1 << 20}, .values = std::vector<uint8_t>(1 << 20)};
  const std::string bomb = gzipped(encode_idx(large));
  ASSERT_LT(bomb.size(), 4096U);
  EXPECT_THROW(parse_idx(bytes_of(bomb), "x.idx", 1000), Failure);
}

// Any bytes give the file's content or a Failure: nothing else, no crash, no huge allocation.
TEST(Idx, SurvivesAnything) {
  const std::string plain = encode_idx(some());
  const std::string packed = gzipped(plain);
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    std::string file = seed % 2 == 0 ? plain : packed;
    file = damaged(file, random);
    try {
      const Idx idx = parse_idx(bytes_of(file), "x.idx", 1 << 16);
      int64_t count = 1;
      for (const int64_t size : idx.shape) count *= size;
      ASSERT_EQ(count, static_cast<int64_t>(idx.values.size())) << "seed " << seed;
    } catch (const Failure& failure) {
      ASSERT_NE(std::string(failure.what()).find("x.idx"), std::string::npos) << "seed " << seed;
    }
  }
}

class ImageFolder : public testing::Test {
 protected:
  void SetUp() override {
    const Images images = {.count = 2,
                           .height = 2,
                           .width = 3,
                           .pixels = std::vector<uint8_t>(12, 7),
                           .labels = {3, 9}};
    write_image_sets({.train = images, .test = images}, folder_.path());
  }
  std::string complaint() const {
    return message_of<Failure>([&] { read_image_sets(folder_.path()); });
  }
  void replace(const std::string& name, const Idx& idx) const {
    std::filesystem::remove(folder_.path() / (name + ".gz"));
    std::ofstream(folder_.path() / name, std::ios::binary) << encode_idx(idx);
  }
  TemporaryFolder folder_;
};

TEST_F(ImageFolder, ReadsWhatItWrites) {
  const ImageSets sets = read_image_sets(folder_.path());
  EXPECT_EQ(sets.train.count, 2);
  EXPECT_EQ(sets.test.labels, (std::vector<uint8_t>{3, 9}));
  EXPECT_EQ(sets.train.pixels, std::vector<uint8_t>(12, 7));
}

TEST_F(ImageFolder, NamesTheFileThatIsWrong) {
  replace("train-labels-idx1-ubyte", {.shape = {3}, .values = {1, 2, 3}});
  EXPECT_NE(complaint().find("has 2 images but"), std::string::npos);
  replace("train-labels-idx1-ubyte", {.shape = {2}, .values = {1, 11}});
  EXPECT_NE(complaint().find("label 1 is 11, expected 0 to 9"), std::string::npos);
  replace("train-labels-idx1-ubyte", {.shape = {2, 1}, .values = {1, 1}});
  EXPECT_NE(complaint().find("does not contain labels"), std::string::npos);
  replace("train-labels-idx1-ubyte", {.shape = {2}, .values = {1, 1}});
  replace("t10k-images-idx3-ubyte", {.shape = {2, 1, 1}, .values = {1, 1}});
  EXPECT_NE(complaint().find("differ in size"), std::string::npos);
  std::filesystem::remove(folder_.path() / "t10k-images-idx3-ubyte");
  EXPECT_NE(complaint().find("no file"), std::string::npos);
}

}  // namespace
}  // namespace aimle::experiments
