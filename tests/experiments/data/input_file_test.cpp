#include "experiments/data/input_file.h"

#include <sys/stat.h>

#include <functional>

#include "experiments/data/gzip.h"
#include "experiments/data/idx.h"
#include "experiments/data/npy.h"
#include "experiments/data/number_table.h"
#include "experiments/data/zip.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments::data {
namespace {

TEST(InputFile, ReadsRegularFilesAndLinksToThem) {
  const TemporaryFolder folder;
  write_bytes(folder / "a", std::string("a\0b", 3));
  fs::create_symlink(folder / "a", folder / "link");
  EXPECT_EQ(read_input_file(folder / "a"), std::string("a\0b", 3));
  EXPECT_EQ(read_input_file(folder / "link"), std::string("a\0b", 3));
  EXPECT_REFUSED(read_input_file(folder / "a", 2), "a: expected at most 2 bytes but it has 3");
  write_bytes(folder / "empty", "");
  EXPECT_EQ(read_input_file(folder / "empty"), "");
}

// Opening the named pipe would wait for ever, and /dev/zero has no end.
TEST(InputFile, EveryReaderRefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe.npy";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_directory(folder / "folder.npz");
  fs::create_symlink("/dev/zero", folder / "zero.csv");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  const std::vector<std::function<void(const fs::path&)>> readers{
      [](const fs::path& path) { read_input_file(path); },
      [](const fs::path& path) { read_idx(path); },
      [](const fs::path& path) { read_npy<float>(path); },
      [](const fs::path& path) { read_npz<float>(path, "a"); },
      [](const fs::path& path) { read_number_table(path, "a"); },
      [](const fs::path& path) { LineReader reader(path); },
      [](const fs::path& path) { read_text(path); },
      [](const fs::path& path) { ZipArchive archive(path); }};
  for (const auto& read : readers) {
    EXPECT_REFUSED(read(pipe), "pipe.npy: expected a regular file but it is a named pipe");
    EXPECT_REFUSED(read(folder / "folder.npz"), "folder.npz: expected a regular file but it is a");
    EXPECT_REFUSED(read(folder / "zero.csv"), "zero.csv: expected a regular file but it is a dev");
    EXPECT_REFUSED(read(folder / "dangling"), "dangling: there is no such file");
    EXPECT_REFUSED(read(folder / "absent"), "absent: there is no such file");
    EXPECT_REFUSED(read(folder / "pipe.npy/within"), "pipe.npy/within: ");
  }
}

TEST(FileError, IsOneShortLine) {
  EXPECT_EQ(one_line("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(one_line(std::string(399, 'x')), std::string(399, 'x'));
  EXPECT_EQ(one_line(std::string(5000, 'x')), std::string(396, 'x') + " ...");
  std::string umlauts = "x";
  for (int i = 0; i < 300; ++i) umlauts += "\xc3\xa4";
  const std::string cut = one_line(umlauts);
  EXPECT_EQ(cut, umlauts.substr(0, 395) + " ...");
}

}  // namespace
}  // namespace aimle::experiments::data
