#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "aimle/base/shown_value.h"
#include "experiments/run/atomic_file.h"
#include "experiments/run/bytes_in_json.h"
#include "experiments/run/digest.h"
#include "experiments/run/failure.h"
#include "experiments/run/folder_lock.h"
#include "experiments/run/interrupt.h"
#include "experiments/run/output_folder.h"
#include "experiments/run/progress.h"
#include "experiments/run/random_state.h"
#include "experiments/run/statistics.h"
#include "experiments/run/terminal.h"
#include "experiments/run/workers.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aimle_run_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { fs::remove_all(path_); }

  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static std::string failure(const std::function<void()>& act) {
    try {
      act();
    } catch (const Failure& found) {
      return found.what();
    }
    return "";
  }

  fs::path path_;
};

using AtomicFile = Folder;
using OutputFolder = Folder;
using LockedFolder = Folder;

TEST_F(AtomicFile, ReplacesTheWholeFileAndLeavesNothingElse) {
  const fs::path file = path_ / "results.jsonl";
  write_atomically(file, std::string(100'000, 'a'));
  write_atomically(file, "b\n");
  EXPECT_EQ(read(file), "b\n");
  write_atomically(file, [](std::ostream& out) { out << "c" << 3; });
  EXPECT_EQ(read(file), "c3");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(AtomicFile, AFailureKeepsTheOldFileAndNamesPathAndReason) {
  EXPECT_EQ(failure([&] { write_atomically(path_ / "no" / "file", "x"); }),
            "cannot write " + (path_ / "no" / "file").string() + ": No such file or directory");
  const fs::path file = path_ / "kept";
  write_atomically(file, "old");
  EXPECT_THROW(write_atomically(file, [](std::ostream&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(read(file), "old");
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

TEST_F(OutputFolder, IsMadeAndIsRefusedIfItHoldsAnything) {
  const fs::path folder = path_ / "a" / "b";
  prepare_output_folder(folder, IfNotEmpty::kRefuse);
  EXPECT_TRUE(fs::is_directory(folder));
  prepare_output_folder(folder, IfNotEmpty::kRefuse);
  write_atomically(folder / "file", "x");
  EXPECT_NE(failure([&] { prepare_output_folder(folder, IfNotEmpty::kRefuse); }).find("not empty"),
            std::string::npos);
  prepare_output_folder(folder, IfNotEmpty::kKeepFiles);
  EXPECT_EQ(read(folder / "file"), "x");
  EXPECT_NE(failure([&] {
              prepare_output_folder(folder / "file", IfNotEmpty::kRefuse);
            }).find("it is a file"),
            std::string::npos);
}

TEST_F(LockedFolder, HasOneOwnerWhoIsNamed) {
  const fs::path folder = path_ / "a" / "b";
  {
    const FolderLock lock(folder);
    EXPECT_TRUE(is_unused(folder));
    const std::string message = failure([&] { const FolderLock second(folder); });
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
  EXPECT_NE(failure([&] { const FolderLock second(folder); }).find(std::to_string(getpid())),
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
  EXPECT_EQ(failure([&] {
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
  EXPECT_EQ(failure([&] { const FolderLock again(path_); }), "");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(Interrupt, IsAFlagWhileTheHandlerLives) {
  const InterruptHandler handler;
  EXPECT_EQ(interrupt_signal(), 0);
  std::raise(SIGTERM);
  EXPECT_EQ(interrupt_signal(), SIGTERM);
}

TEST(Interrupt, NestedHandlersKeepTheFlag) {
  const InterruptHandler outer;
  std::raise(SIGINT);
  {
    const InterruptHandler inner;
    EXPECT_EQ(interrupt_signal(), SIGINT);
    EXPECT_THROW(stop_if_interrupted(), Interrupted);
  }
  EXPECT_EQ(interrupt_signal(), SIGINT);
}

// Death tests run in a process of their own.
TEST(InterruptDeathTest, EndsWorkThatReachesNoSafePoint) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        handler.set_late_message("stopped late");
        std::raise(SIGINT);
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "^aimle: stopped late\n$");
}

TEST(InterruptDeathTest, EndsLoadingAtOnce) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        const StopsAtOnce loading(handler, "stopped while loading");
        std::raise(SIGTERM);
        std::_Exit(0);  // not reached
      },
      testing::ExitedWithCode(143), "^aimle: stopped while loading\n$");
}

TEST(InterruptDeathTest, WaitsUntilResultsAreSaved) {
  EXPECT_EXIT(
      {
        const InterruptHandler handler;
        std::raise(SIGINT);
        const auto start = std::chrono::steady_clock::now();
        const std::chrono::duration<double> longer(kSecondsToStop + 0.2);
        {
          const KeepAlive saving;
          while (std::chrono::steady_clock::now() - start < longer) std::this_thread::yield();
          std::fputs("saved\n", stderr);
        }
        for (;;) std::this_thread::yield();
      },
      testing::ExitedWithCode(130), "^saved\naimle: stopped\n$");
}

TEST(Workers, SaveAfterAnInterruptWithoutWaiting) {
  const InterruptHandler handler;
  std::atomic<bool> saved = false;
  std::atomic<int> ended = 0;
  run_tasks(
      2, 2,
      [&](int64_t i) {
        if (i == 0) std::raise(SIGINT);
        while (!saved) std::this_thread::yield();
        ++ended;
        stop_if_interrupted();
      },
      [&] {
        EXPECT_EQ(ended, 0);
        saved = true;
      });
  EXPECT_TRUE(saved);
}

TEST(Workers, DoEveryTaskOnceAndRethrow) {
  const InterruptHandler handler;  // clears the flag
  std::vector<std::atomic<int>> done(200);
  run_tasks(200, 3, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& count : done) EXPECT_EQ(count, 1);
  std::atomic<int> begun = 0;
  EXPECT_THROW(run_tasks(200, 2,
                         [&](int64_t) {
                           ++begun;
                           throw std::invalid_argument("task");
                         }),
               std::invalid_argument);
  EXPECT_LE(begun, 2);
}

TEST(Workers, BeginNothingAfterAnInterrupt) {
  const InterruptHandler handler;
  std::atomic<int> begun = 0;
  run_tasks(200, 2, [&](int64_t) {
    // Only one task raises the signal: a second one would find the default action and end the
    // process. The other task waits, so that it cannot begin a third task before the signal.
    if (begun++ == 0) std::raise(SIGINT);
    while (interrupt_signal() == 0) std::this_thread::yield();
  });
  EXPECT_LE(begun, 2);
}

TEST(Moments, AreThoseOfTheNumbers) {
  Moments moments;
  for (const double value : {1.0, 2.0, 4.0}) moments.add(value);
  EXPECT_DOUBLE_EQ(moments.mean(), 7.0 / 3.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 7.0 / 3.0);
  EXPECT_DOUBLE_EQ(moments.standard_error(), std::sqrt(7.0) / 3.0);
}

TEST(SpellSeconds, InTheUnitsOfAReader) {
  EXPECT_EQ(spell_seconds(0.4), "0 s");
  EXPECT_EQ(spell_seconds(75), "1 min 15 s");
  EXPECT_EQ(spell_seconds(7260), "2 h 1 min");
}

// Golden values of the package xxhash 3.
TEST(Digest, IsXxh64) {
  const std::map<size_t, std::string> expected = {
      {0, "ef46db3751d8e999"},   {1, "f592c0c7639c4cb6"},  {3, "22c08528601d4f27"},
      {4, "fb1e5cf2f1ae4d95"},   {8, "57cb2b7521f3e21a"},  {31, "e4a0e629e519a4ae"},
      {32, "cc6b8aaada790b2d"},  {63, "bf9f0ba3cf95b28a"}, {100, "4826e367566ea023"},
      {199, "c2f64bc669817a94"},
  };
  std::string bytes;
  for (int i = 0; i < 199; ++i) bytes.push_back(static_cast<char>(37 * i + 11));
  for (const auto& [size, digest] : expected) {
    EXPECT_EQ(xxh64_hex(std::string_view(bytes).substr(0, size)), digest) << size;
  }
}

TEST(TimeLeft, LeavesOutWhatCameBeforeTheFirstReport) {
  TimeLeft left(1000);
  const TimeLeft::Clock::time_point loaded = {};
  EXPECT_EQ(left.seconds(1, loaded), std::nullopt);  // however long it took
  EXPECT_DOUBLE_EQ(left.seconds(11, loaded + std::chrono::seconds(5)).value(), 0.5 * 989);
  EXPECT_DOUBLE_EQ(left.seconds(1000, loaded + std::chrono::seconds(500)).value(), 0.0);
}

TEST(ProgressLine, FitsEveryTerminal) {
  const ProgressLine line = {.title = "train warcraft",
                             .share = 0.25,
                             .left = "1 h 5 min left",
                             .note = "lambda=10 seed 3, epoch 12, loss 0.1234, alpha 0.5"};
  EXPECT_EQ(fit_progress_line(line, 200),
            "train warcraft     ███████░░░░░░░░░░░░░░░░░░░░░  25 %  1 h 5 min left  lambda=10 "
            "seed 3, epoch 12, loss 0.1234, alpha 0.5");
  EXPECT_EQ(fit_progress_line(line, 79),
            "train warcraft     ██░░░░░░  25 %  1 h 5 min left  lambda=10 seed 3, epoch 12,…");
  EXPECT_EQ(fit_progress_line(line, 40), "train warcraft  25 %  1 h 5 min left  l…");
  for (size_t columns = 1; columns < 150; ++columns) {
    EXPECT_LE(columns_of(fit_progress_line(line, columns)), columns);
  }
}

TEST(Terminal, WrapsAtSpaces) {
  EXPECT_EQ(wrap("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 9, 2, 4), "one\n  two\n  three");
  EXPECT_EQ(wrap("unbreakable x", 4), "unbreakable\nx");
  EXPECT_EQ(wrap("a\nb", 80, 1), "a\n b");
  EXPECT_EQ(cut_to("ÄÖÜ", 3), "ÄÖÜ");
  EXPECT_EQ(cut_to("ÄÖÜß", 3), "ÄÖ…");
}

TEST(JsonText, HoldsAnyBytes) {
  EXPECT_EQ(to_json_text("café\\ü"), "café\\ü");
  EXPECT_EQ(to_json_text("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(to_json_text("\\xe9"), "\\x5cxe9");
  std::mt19937 random(20230207);
  const std::string alphabet = "\\x5ce9\xe2\x82\xac\xed\xa0\x80\xf4\xff";
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string bytes;
    for (size_t i = random() % 9; i > 0; --i) bytes += alphabet[random() % alphabet.size()];
    const std::string text = to_json_text(bytes);
    const auto read = nlohmann::json::parse(nlohmann::json(text).dump()).get<std::string>();
    EXPECT_EQ(from_json_text(read), bytes);
  }
}

TEST(ShownValue, IsShortAndOnOneLine) {
  EXPECT_EQ(shown_value("0.5"), "0.5");
  EXPECT_EQ(shown_value("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(shown_value(std::string(5000, '9')), std::string(60, '9') + "… (5000 characters)");
  EXPECT_EQ(shown_value(std::string(59, '9') + "€€"), std::string(59, '9') + "… (65 characters)");
}

// Golden values printed by NumPy 2.4.
TEST(RandomState, IsNumpys) {
  const std::vector<double> normal = RandomState(0).randn(3);
  EXPECT_EQ(normal,
            (std::vector<double>{1.764052345967664, 0.4001572083672233, 0.9787379841057392}));
  EXPECT_EQ(RandomState(0).permutation(10), (std::vector<int64_t>{2, 8, 4, 9, 1, 6, 7, 3, 0, 5}));
  RandomState random(123);
  EXPECT_EQ(random.rand(), 0.6964691855978616);
  EXPECT_EQ(random.randn(), -0.9520972068613222);
  EXPECT_EQ(random.randn(), -0.7454410594826583);
}

}  // namespace
}  // namespace aimle::experiments
