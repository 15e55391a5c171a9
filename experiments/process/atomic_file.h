// Files that are either as they were or complete, whatever happens in between: written under a
// temporary name in the same folder, flushed to the disk (fsync), then renamed.
//
// For tests of what a killed process leaves behind, AIMLE_TEST_KILL_AT_WRITE=n in the environment
// kills the process at the n-th of the moments that matter, four for every file: half written,
// written, the old file linked, the new one renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string_view>

namespace aimle::experiments {

/// Throws Failure naming the path and the reason (disk full, no permission); the old file, if
/// there was one, is then untouched and the temporary one is removed. With `previous`, the old file
/// is kept under this name.
void write_atomically(const std::filesystem::path& path, std::string_view content,
                      const std::filesystem::path& previous = {});

/// Removes the temporary files in this folder (not below it) that processes left behind when they
/// were killed. No other process may be writing there: hold a FolderLock.
void remove_temporaries(const std::filesystem::path& folder);

/// The same for what writes to a stream itself, such as torch::save.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);

}  // namespace aimle::experiments
