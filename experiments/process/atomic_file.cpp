#include "experiments/process/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* doing, int error) {
  throw Failure("cannot " + std::string(doing) + " " + path.string() + ": " + std::strerror(error));
}

constexpr std::string_view kSuffix = ".tmp";  // and the number of the process

/// The names of files that the program writes; other files are never touched.
constexpr std::string_view kExtensions[] = {".csv", ".gz",  ".json", ".jsonl",
                                            ".npy", ".png", ".pt",   ".txt"};

bool is_temporary(const fs::path& file) {
  const std::string suffix = file.extension().string();
  const std::string extension = file.stem().extension().string();
  return suffix.size() > kSuffix.size() && suffix.starts_with(kSuffix) &&
         suffix.find_first_not_of("0123456789", kSuffix.size()) == std::string::npos &&
         std::find(std::begin(kExtensions), std::end(kExtensions), extension) !=
             std::end(kExtensions);
}

void pass_moment() {
  static const char* const kChosen = std::getenv("AIMLE_TEST_KILL_AT_WRITE");
  static std::atomic<long> passed = 0;
  if (kChosen != nullptr && ++passed == std::atol(kChosen)) ::kill(::getpid(), SIGKILL);
}

/// Closes the file descriptor, and removes the file unless it was completed.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) : target_(target) {
    name_ = target.string() + std::string(kSuffix) + std::to_string(getpid());
    file_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail(target_, "write", errno);
  }
  ~Temporary() {
    if (file_ >= 0) ::close(file_);
    if (!name_.empty()) ::unlink(name_.c_str());
    if (!old_.empty()) ::unlink(old_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(file_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target_, "write", errno);
      content.remove_prefix(static_cast<size_t>(written));
    }
  }

  void commit(const fs::path& previous) {
    if (::fsync(file_) != 0) fail(target_, "write", errno);
    close();
    pass_moment();
    if (!previous.empty()) link_old(previous);
    pass_moment();
    replace();
    pass_moment();
    if (!old_.empty() && ::rename(old_.c_str(), previous.c_str()) != 0) {
      fail(previous, "replace", errno);
    }
    old_.clear();
    sync_folder();
  }

  /// Without a flush.
  void commit_for_readers() {
    close();
    replace();
  }

 private:
  void close() {
    const int file = std::exchange(file_, -1);
    if (::close(file) != 0) fail(target_, "write", errno);
  }

  void replace() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail(target_, "replace", errno);
    name_.clear();
  }

  // Gives the old file a second name until the new one is in place, so that two complete files
  // exist at any time: the newest and the one before it. If the file system has no links, the old
  // file is renamed directly.
  void link_old(const fs::path& previous) {
    std::error_code error;
    if (!fs::exists(target_, error)) return;
    old_ = previous.string() + std::string(kSuffix) + std::to_string(getpid());
    fs::remove(old_, error);
    fs::create_hard_link(target_, old_, error);
    if (!error) return;
    old_.clear();
    if (::rename(target_.c_str(), previous.c_str()) != 0) fail(previous, "replace", errno);
  }

  // The new name is on disk only once the folder is flushed.
  void sync_folder() const {
    const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return;
    ::fsync(handle);
    ::close(handle);
  }

  fs::path target_;
  std::string name_;
  std::string old_;  // the second name of the old file
  int file_ = -1;
};

}  // namespace

void write_atomically(const fs::path& path, std::string_view content, const fs::path& previous) {
  Temporary file(path);
  file.write(content.substr(0, content.size() / 2));
  pass_moment();
  file.write(content.substr(content.size() / 2));
  file.commit(previous);
}

void write_for_readers(const fs::path& path, std::string_view content) {
  Temporary file(path);
  file.write(content);
  file.commit_for_readers();
}

void remove_temporaries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && is_temporary(entry.path())) found.push_back(entry.path());
  }
  for (const fs::path& file : found) fs::remove(file, error);
}

void write_atomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::ostringstream content(std::ios::binary);
  write(content);
  write_atomically(path, std::move(content).str());
}

}  // namespace aimle::experiments
