#include "experiments/process/atomic_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "experiments/process/failure.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

class AtomicFile : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const fs::path& path_ = folder_.path();
};

TEST_F(AtomicFile, ReplacesTheWholeFileAndLeavesNothingElse) {
  const fs::path file = path_ / "results.jsonl";
  write_atomically(file, std::string(100'000, 'a'));
  write_atomically(file, "b\n");
  EXPECT_EQ(read_bytes(file), "b\n");
  write_atomically(file, [](std::ostream& out) { out << "c" << 3; });
  EXPECT_EQ(read_bytes(file), "c3");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(AtomicFile, AFileForReadersIsReplacedWholeToo) {
  const fs::path file = path_ / "progress.json";
  write_for_readers(file, "{1}");
  write_for_readers(file, "{}");
  EXPECT_EQ(read_bytes(file), "{}");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
  EXPECT_EQ(message_of<Failure>([&] { write_for_readers(path_ / "no" / "file", "x"); }),
            "cannot write " + (path_ / "no" / "file").string() + ": No such file or directory");
}

TEST_F(AtomicFile, AFailureKeepsTheOldFileAndNamesPathAndReason) {
  EXPECT_EQ(message_of<Failure>([&] { write_atomically(path_ / "no" / "file", "x"); }),
            "cannot write " + (path_ / "no" / "file").string() + ": No such file or directory");
  const fs::path file = path_ / "kept";
  write_atomically(file, "old");
  EXPECT_THROW(write_atomically(file, [](std::ostream&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(read_bytes(file), "old");
}

TEST_F(AtomicFile, TemporariesOfKilledProcessesAreRemovedAndNothingElse) {
  const std::vector<std::string> abandoned = {"checkpoint.pt.tmp18079", "a.b.json.tmp1",
                                              "metrics.jsonl.tmp2"};
  const std::vector<std::string> kept = {"checkpoint.pt", "notes.tmp7",     "notes.tmp",
                                         "a.json.tmp",    "a.json.tmp12.x", "a.json.tmp1a",
                                         ".json.tmp3"};
  for (const auto& names : {abandoned, kept}) {
    for (const std::string& name : names) std::ofstream(path_ / name) << "x";
  }
  fs::create_directory(path_ / "folder.json.tmp5");
  remove_temporaries(path_);
  for (const std::string& name : abandoned) EXPECT_FALSE(fs::exists(path_ / name)) << name;
  for (const std::string& name : kept) EXPECT_TRUE(fs::exists(path_ / name)) << name;
  EXPECT_TRUE(fs::exists(path_ / "folder.json.tmp5"));
  remove_temporaries(path_ / "none");
}

}  // namespace
}  // namespace aimle::experiments
