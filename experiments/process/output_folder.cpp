#include "experiments/process/output_folder.h"

#include <unistd.h>

#include <algorithm>

#include "experiments/process/failure.h"

namespace aimle::experiments {

namespace fs = std::filesystem;

bool is_unused(const fs::path& folder) {
  const fs::directory_iterator entries(folder);
  return std::all_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().filename() == kLockFile;
  });
}

void prepare_output_folder(const fs::path& folder, IfNotEmpty if_not_empty) {
  if (folder.empty()) throw Failure("the output folder has no name: set one with --out");
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw Failure("cannot write into " + folder.string() + ": it is a file, not a folder");
  }
  fs::create_directories(folder, error);
  if (error) throw Failure("cannot create the folder " + folder.string() + ": " + error.message());
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    throw Failure("cannot write into " + folder.string() + ": permission denied");
  }
  if (if_not_empty != IfNotEmpty::kKeepFiles && !is_unused(folder)) {
    const bool resumes = if_not_empty == IfNotEmpty::kResumeOrRefuse;
    throw Failure(folder.string() + " is not empty: choose another folder with --out, " +
                  (resumes ? "--resume to continue what is in it, " : "") +
                  "or --force to replace the files of this study in it");
  }
}

}  // namespace aimle::experiments
