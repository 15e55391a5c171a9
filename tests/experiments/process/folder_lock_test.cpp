#include "experiments/process/folder_lock.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "experiments/process/atomic_file.h"
#include "experiments/process/failure.h"
#include "experiments/process/output_folder.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

class LockedFolder : public testing::Test {
 protected:
  TemporaryFolder folder_;
  const fs::path& path_ = folder_.path();
};

TEST_F(LockedFolder, HasOneOwnerWhoIsNamed) {
  const fs::path folder = path_ / "a" / "b";
  {
    const FolderLock lock(folder);
    EXPECT_TRUE(is_unused(folder));
    const std::string message = message_of<Failure>([&] { const FolderLock second(folder); });
    EXPECT_NE(message.find(folder.string() + " is in use by process " + std::to_string(getpid())),
              std::string::npos)
        << message;
    write_atomically(folder / "file", "x");
  }
  EXPECT_FALSE(fs::exists(folder / kLockFile));
  EXPECT_FALSE(is_unused(folder));
  // What a killed process leaves behind locks nothing.
  write_atomically(folder / kLockFile, "process 1 on nowhere\n");
  const FolderLock again(folder);
  EXPECT_NE(
      message_of<Failure>([&] { const FolderLock second(folder); }).find(std::to_string(getpid())),
      std::string::npos);
}

TEST_F(LockedFolder, AFolderThatWasMadeForNothingIsRemoved) {
  { const FolderLock lock(path_ / "a" / "b"); }
  EXPECT_FALSE(fs::exists(path_ / "a"));
  fs::create_directory(path_ / "a");
  { const FolderLock lock(path_ / "a" / "b" / "c"); }
  EXPECT_TRUE(fs::is_empty(path_ / "a"));
  { const FolderLock lock(path_ / "a"); }
  EXPECT_TRUE(fs::exists(path_ / "a"));
}

TEST_F(LockedFolder, ThereMayBeMoreThanTheUsualLimitOfFiles) {
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(message_of<Failure>([&] {
              std::vector<FolderLock> locks;
              for (int i = 0; i < 100; ++i) locks.emplace_back(path_ / std::to_string(i));
            }),
            "");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(LockedFolder, AProcessThatWasStartedDoesNotKeepTheLock) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = 0;
  {
    const FolderLock lock(path_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::string name = "cat";  // until its input ends
    char* arguments[] = {name.data(), nullptr};
    ASSERT_EQ(posix_spawnp(&child, "cat", &actions, nullptr, arguments, nullptr), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  EXPECT_EQ(message_of<Failure>([&] { const FolderLock again(path_); }), "");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace aimle::experiments
