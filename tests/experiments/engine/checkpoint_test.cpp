// Checkpoints are restored exactly, and a damaged one is never read.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "experiments/engine/checkpoint.h"
#include "experiments/process/failure.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

Checkpoint small_checkpoint() {
  return {.groups = {{"model", {{"w", at::arange(12, at::kFloat).view({3, 4})}}},
                     {"state", {{"steps", at::tensor(7)}}}},
          .integers = {{"epoch", 3}, {"step", 5}},
          .numbers = {{"seconds", 0.25}},
          .texts = {{"settings", R"({"lr": 0.001})"}}};
}

TEST(CheckpointTest, ComesBackAndRestoresInPlace) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.pt";
  const at::Tensor base = at::arange(12, at::kFloat).view({3, 4});
  save_checkpoint(file, {.groups = {{"model", {{"w", base.t()}, {"n", at::tensor(7)}}}},
                         .integers = {{"epoch", 3}},
                         .numbers = {{"seconds", 0.25}},
                         .texts = {{"settings", "{}"}}});
  const Checkpoint back = load_checkpoint(file);
  EXPECT_EQ(back.integers.at("epoch"), 3);
  EXPECT_EQ(back.numbers.at("seconds"), 0.25);
  EXPECT_EQ(back.texts.at("settings"), "{}");
  at::Tensor w = at::zeros({4, 3}), n = at::tensor(0);
  const void* place = w.data_ptr();
  restore({{"w", w}, {"n", n}}, back, "model");
  EXPECT_TRUE(w.equal(base.t()));
  EXPECT_EQ(w.data_ptr(), place);
  EXPECT_EQ(n.item<int64_t>(), 7);

  EXPECT_NE(message_of<Failure>([&] {
              restore({{"w", w}}, back, "model");
            }).find("has no tensor n"),
            std::string::npos);
  EXPECT_NE(message_of<Failure>([&] {
              restore({{"w", w}, {"n", n}, {"b", n}}, back, "model");
            }).find("lacks the tensor b"),
            std::string::npos);
  EXPECT_NE(message_of<Failure>([&] {
              restore({{"w", at::zeros({3, 4})}, {"n", n}}, back, "model");
            }).find("model.w is [4, 3] Float, expected [3, 4] Float"),
            std::string::npos);
}

TEST(CheckpointTest, ADamagedFileIsAFailure) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.pt";
  save_checkpoint(file, {.groups = {{"model", {{"w", at::ones({100})}}}}});
  const auto size = std::filesystem::file_size(file);
  for (const uintmax_t kept : {uintmax_t{0}, size / 2, size - 10}) {
    std::filesystem::resize_file(file, kept);
    EXPECT_NE(message_of<Failure>([&] { load_checkpoint(file); }).find("has no checksum"),
              std::string::npos);
    save_checkpoint(file, {.groups = {{"model", {{"w", at::ones({100})}}}}});
  }
  EXPECT_NE(message_of<Failure>([&] { load_checkpoint(folder.path() / "none"); }), "");
}

/// One to eight bits flipped, or the end cut off.
std::string with_flips_or_cut(std::string bytes, std::mt19937& random) {
  if (random() % 10 == 0) return bytes.substr(0, random() % bytes.size());
  const std::string whole = bytes;
  for (size_t flips = random() % 2 == 0 ? 1 : 2 + random() % 7; flips > 0; --flips) {
    const size_t bit = random() % (8 * bytes.size());
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  if (bytes == whole) bytes[0] ^= 1;  // flips that undid each other
  return bytes;
}

TEST(CheckpointTest, NoDamageIsSilent) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "checkpoint.pt";
  save_checkpoint(file, small_checkpoint());
  const std::string whole = read_bytes(file);
  std::mt19937 random(20230207);
  int silent = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    write_bytes(file, with_flips_or_cut(whole, random));
    const std::string message = message_of<Failure>([&] { load_checkpoint(file); });
    if (message.find(file.string()) == std::string::npos) ++silent;
  }
  EXPECT_EQ(silent, 0);
  write_bytes(file, whole);
  EXPECT_EQ(load_checkpoint(file).integers.at("step"), 5);
}

TEST(CheckpointTest, ThePreviousOneIsUsedIfTheNewestIsDamaged) {
  const TemporaryFolder folder;
  const std::filesystem::path newest = folder / "checkpoint.pt", previous = folder / "previous.pt";
  const auto save = [&](int64_t epoch) {
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.integers["epoch"] = epoch;
    save_checkpoint(newest, checkpoint, previous);
  };
  EXPECT_FALSE(find_checkpoint(newest, previous));
  save(1);
  EXPECT_FALSE(std::filesystem::exists(previous));
  save(2);
  save(3);
  EXPECT_EQ(find_checkpoint(newest, previous)->checkpoint.integers.at("epoch"), 3);
  EXPECT_EQ(find_checkpoint(newest, previous)->fault, "");

  const auto flip = [](const std::filesystem::path& file) {
    std::string bytes = read_bytes(file);
    bytes[bytes.size() / 3] ^= 4;
    write_bytes(file, bytes);
  };
  flip(newest);
  const auto found = find_checkpoint(newest, previous);
  EXPECT_EQ(found->checkpoint.integers.at("epoch"), 2);
  EXPECT_EQ(found->fault,
            newest.string() + " is damaged: its checksum does not match its contents");
  flip(previous);
  const std::string message = message_of<Failure>([&] { find_checkpoint(newest, previous); });
  for (const std::string& part : {newest.string(), previous.string(), std::string("--force")}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  std::filesystem::remove(newest);
  save(4);
  std::filesystem::remove(previous);
  flip(newest);
  EXPECT_NE(message_of<Failure>([&] {
              find_checkpoint(newest, previous);
            }).find("there is no " + previous.string()),
            std::string::npos);
}

}  // namespace
}  // namespace aimle::experiments
