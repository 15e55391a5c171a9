// The folder a study writes into.
#pragma once

#include <filesystem>

namespace aimle::experiments {

/// The file of a FolderLock.
inline constexpr const char* kLockFile = ".aimle.lock";

/// The folder holds nothing, or only the file of a lock.
bool is_unused(const std::filesystem::path& folder);

/// kResumeOrRefuse also throws, and its message mentions --resume.
enum class IfNotEmpty { kRefuse, kResumeOrRefuse, kKeepFiles };

/// Creates the folder and checks that it can be written to. Throws Failure, naming the path and the
/// reason, if it cannot, if it is not a folder, or if it is not empty and kKeepFiles is not given.
/// Nothing in it is ever deleted: with kKeepFiles (`--force`, `--resume`) a study replaces only the
/// files it writes.
void prepare_output_folder(const std::filesystem::path& folder, IfNotEmpty if_not_empty);

}  // namespace aimle::experiments
