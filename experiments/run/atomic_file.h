// Files that are either as they were or complete, whatever happens in between: written under a
// temporary name in the same folder, flushed to the disk (fsync), then renamed.
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

/// The same for what writes to a stream itself, such as torch::save.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);

}  // namespace aimle::experiments
