// The folder a study writes into.
#pragma once

#include <filesystem>

namespace aimle::experiments {

/// The file of a FolderLock.
inline constexpr const char* kLockFile = ".aimle.lock";

/// The folder holds nothing, or only the file of a lock.
bool is_unused(const std::filesystem::path& folder);

/// kResumeOrRefuse refuses as well, and names --resume among the ways out.
enum class IfNotEmpty { kRefuse, kResumeOrRefuse, kKeepFiles };

/// Makes the folder and sees that it can be written to. Throws Failure, naming the path and the
/// reason, if it cannot, if it is no folder, or if it holds anything and kKeepFiles is not asked
/// for. Nothing in it is ever deleted: with kKeepFiles (`--force`, `--resume`) a study replaces the
/// files it writes itself.
void prepare_output_folder(const std::filesystem::path& folder, IfNotEmpty if_not_empty);

}  // namespace aimle::experiments
