#include "experiments/process/folder_lock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "experiments/process/failure.h"
#include "experiments/process/output_folder.h"
#include "experiments/process/progress.h"

namespace aimle::experiments {
namespace {

namespace fs = std::filesystem;

fs::path topmost_missing(const fs::path& folder) {
  fs::path missing;
  std::error_code error;
  for (fs::path place = fs::absolute(folder, error); !place.empty() && !fs::exists(place, error);
       place = place.parent_path()) {
    missing = place;
  }
  return missing;
}

/// A campaign holds a lock for every run, possibly more than the default limit of open files.
bool raise_limit_of_files() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int open_file(const fs::path& file, int how) {
  const int handle = ::open(file.c_str(), how | O_CLOEXEC, 0666);
  if (handle >= 0 || errno != EMFILE || !raise_limit_of_files()) return handle;
  return ::open(file.c_str(), how | O_CLOEXEC, 0666);
}

std::string host() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

bool is_on_nfs(int handle) {
  struct statfs about = {};
  return ::fstatfs(handle, &about) == 0 && about.f_type == NFS_SUPER_MAGIC;
}

/// Written for the message of another process.
void write_owner(int handle) {
  const std::string text = "process " + std::to_string(::getpid()) + " on " + host() + "\n";
  if (::ftruncate(handle, 0) != 0 || ::pwrite(handle, text.data(), text.size(), 0) < 0) return;
  if (is_on_nfs(handle)) ::fsync(handle);  // otherwise other machines see it only after a delay
}

std::string owner(const fs::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  return text.starts_with("process ") ? text : "another process";
}

/// The process that held the lock may have removed the file before this one locked it. The file is
/// opened again because NFS answers `open` from the server, but `stat` of a name from its cache.
bool is_still_there(int handle, const fs::path& file) {
  struct stat locked = {}, named = {};
  const int again = open_file(file, O_RDONLY);
  const bool is_found =
      again >= 0 ? ::fstat(again, &named) == 0 : ::stat(file.c_str(), &named) == 0;
  if (again >= 0) ::close(again);  // closing another descriptor keeps the flock of `handle`
  return is_found && ::fstat(handle, &locked) == 0 && locked.st_dev == named.st_dev &&
         locked.st_ino == named.st_ino;
}

/// What a lock has created: its file, and folders that are removed if they are empty.
struct Traces {
  std::string file;
  std::vector<std::string> folders;  // the innermost first
};

/// The locks of this process, for the signal handler. Any further locks leave their files behind,
/// which lock nothing.
std::array<std::atomic<const Traces*>, 64> held;

/// Never freed: a handler may be reading it.
const Traces* lasting(Traces traces) {
  static std::mutex mutex;
  static std::deque<Traces> all;
  const std::lock_guard guard(mutex);
  return &all.emplace_back(std::move(traces));
}

int remember(const Traces* traces) {
  for (size_t i = 0; i < held.size(); ++i) {
    const Traces* empty = nullptr;
    if (held[i].compare_exchange_strong(empty, traces)) return static_cast<int>(i);
  }
  return -1;
}

Traces traces_of(const fs::path& folder, const fs::path& made, const fs::path& file) {
  Traces traces{.file = file.string(), .folders = {}};
  std::error_code error;
  fs::path place = made.empty() ? fs::path() : fs::absolute(folder, error);
  for (; !place.empty(); place = place.parent_path()) {
    traces.folders.push_back(place.string());
    if (place == made) break;
  }
  return traces;
}

void remove_traces(const Traces& traces) noexcept {
  ::unlink(traces.file.c_str());  // while it is locked: see is_still_there
  for (const std::string& folder : traces.folders) {
    if (::rmdir(folder.c_str()) != 0) return;
  }
}

}  // namespace

void remove_lock_files() noexcept {
  for (const std::atomic<const Traces*>& each : held) {
    if (const Traces* traces = each.load()) remove_traces(*traces);
  }
}

FolderLock::FolderLock(const fs::path& folder)
    : folder_(folder), made_(topmost_missing(folder)), file_(folder / kLockFile) {
  while (!try_to_lock()) {
  }
}

/// False if the file or the folder has disappeared in the meantime.
bool FolderLock::try_to_lock() {
  prepare_output_folder(folder_, IfNotEmpty::kKeepFiles);
  const int handle = open_file(file_, O_RDWR | O_CREAT);
  if (handle < 0 && errno == ENOENT) return false;
  if (handle < 0) throw Failure("cannot write " + file_.string() + ": " + std::strerror(errno));
  int result = 0;
  do {
    result = ::flock(handle, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  const int error = result == 0 ? 0 : errno;
  if (error == EWOULDBLOCK) {
    const std::string who = owner(file_);
    ::close(handle);
    throw Failure(folder_.string() + " is in use by " + who +
                  ": wait until it ends, or choose another folder with --out");
  }
  if (error != 0) {
    warn(folder_.string() + " cannot be locked (" + std::strerror(error) +
         "): do not start a second process in it");
  } else if (!is_still_there(handle, file_)) {
    ::close(handle);
    return false;
  }
  write_owner(handle);
  handle_ = handle;
  place_ = remember(lasting(traces_of(folder_, made_, file_)));
  return true;
}

FolderLock::~FolderLock() {
  if (handle_ < 0) return;
  if (place_ >= 0) held[static_cast<size_t>(place_)] = nullptr;
  remove_traces(traces_of(folder_, made_, file_));
  ::close(handle_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : folder_(std::move(other.folder_)),
      made_(std::move(other.made_)),
      file_(std::move(other.file_)),
      handle_(std::exchange(other.handle_, -1)),
      place_(std::exchange(other.place_, -1)) {}

}  // namespace aimle::experiments
