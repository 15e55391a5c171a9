// One process at a time writes into a folder:
//
//   const FolderLock lock(folder);  // for as long as the work lasts
//
// It is a lock of the kernel (flock) on the file .aimle.lock in the folder, so it ends with the
// process, however that ends; a file that a killed process left behind locks nothing. Processes
// that this one starts do not inherit it. On NFS, Linux turns it into a lock of the server, which
// holds between machines within the limits that docs/training.md names. Where a file system has no
// locks, a warning says so.
#pragma once

#include <filesystem>
#include <string>

namespace aimle::experiments {

/// What the destructors of all locks would remove, for a handler of signals that ends the process.
void remove_lock_files() noexcept;

class FolderLock {
 public:
  /// Makes the folder if there is none. A Failure names the process that has the lock, or says why
  /// the folder cannot be written to.
  explicit FolderLock(const std::filesystem::path& folder);
  /// Removes the lock's file, and folders that the constructor made and that are still empty.
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  bool try_to_lock();

  std::filesystem::path folder_;
  std::filesystem::path made_;  // the topmost folder that was made; empty if none was
  std::filesystem::path file_;
  int handle_ = -1;
  int place_ = -1;  // among the locks that remove_lock_files knows
};

}  // namespace aimle::experiments
