#include "experiments/process/output_folder.h"

#include <gtest/gtest.h>

#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

class OutputFolder : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const fs::path& path_ = folder_.path();
};

TEST_F(OutputFolder, IsMadeAndIsRefusedIfItHoldsAnything) {
  const fs::path folder = path_ / "a" / "b";
  prepare_output_folder(folder, IfNotEmpty::kRefuse);
  EXPECT_TRUE(fs::is_directory(folder));
  prepare_output_folder(folder, IfNotEmpty::kRefuse);
  write_atomically(folder / "file", "x");
  EXPECT_NE(message_of<Failure>([&] {
              prepare_output_folder(folder, IfNotEmpty::kRefuse);
            }).find("not empty"),
            std::string::npos);
  prepare_output_folder(folder, IfNotEmpty::kKeepFiles);
  EXPECT_EQ(read_bytes(folder / "file"), "x");
  EXPECT_NE(message_of<Failure>([&] {
              prepare_output_folder(folder / "file", IfNotEmpty::kRefuse);
            }).find("it is a file"),
            std::string::npos);
}

}  // namespace
}  // namespace aimle::experiments
