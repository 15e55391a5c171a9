// Files that are always either the old or the complete new version: written under a temporary name
// in the same folder, flushed to disk (fsync), then renamed.
//
// For tests of killed processes, AIMLE_TEST_KILL_AT_WRITE=n in the environment kills the process at
// the n-th critical moment. There are four for every file: half written, written, the old file
// linked, the new one renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string_view>

namespace aimle::experiments {

/// Throws Failure naming the path and the reason (disk full, no permission); the old file, if any,
/// is then unchanged and the temporary one is removed. With `previous`, the old file is kept under
/// this name.
void write_atomically(const std::filesystem::path& path, std::string_view content,
                      const std::filesystem::path& previous = {});

/// The same for a file that only tells readers what is going on: it is not flushed to disk, so a
/// crash of the machine may lose it, and it is no critical moment.
void write_for_readers(const std::filesystem::path& path, std::string_view content);

/// Removes the temporary files that killed processes left in this folder (not in subfolders). No
/// other process may be writing there: hold a FolderLock.
void remove_temporaries(const std::filesystem::path& folder);

/// The same for functions that write to a stream themselves, such as torch::save.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);

}  // namespace aimle::experiments
