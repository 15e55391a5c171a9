// Ensures that only one process at a time writes into a folder:
//
//   const FolderLock lock(folder);  // for as long as the work lasts
//
// It is a kernel lock (flock) on the file .aimle.lock in the folder, so it ends with the process in
// any case; a file left by a killed process locks nothing. Child processes do not inherit it. On
// NFS, Linux turns it into a lock of the server, which works between machines within the limits
// given in docs/program/training.md. If a file system has no locks, a warning is printed.
#pragma once

#include <filesystem>

namespace aimle::experiments {

/// Removes what the destructors of all locks would, for a signal handler that ends the process.
void remove_lock_files() noexcept;

class FolderLock {
 public:
  /// Creates the folder if it does not exist. The Failure names the process that holds the lock, or
  /// the reason why the folder cannot be written to.
  explicit FolderLock(const std::filesystem::path& folder);
  /// Removes the lock's file, and folders that the constructor created and that are still empty.
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  bool try_to_lock();

  std::filesystem::path folder_;
  std::filesystem::path made_;  // the topmost folder that was created; empty if none was
  std::filesystem::path file_;
  int handle_ = -1;
  int place_ = -1;  // index among the locks known to remove_lock_files
};

}  // namespace aimle::experiments
