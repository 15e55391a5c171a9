// checkpoint.pt and best.pt: named tensors in groups, and some numbers and texts, in the format of
// torch.save, so that `torch.load(path, weights_only=True)` reads them:
//
//   {"model": {"encoder.0.weight": tensor, ...}, "optimizer": {...}, "epoch": 3, "config": "{...}"}
//
// Every file has two checksums: one of the contents, and one of all bytes, in the comment of the
// ZIP archive. A file in which any bit has changed is rejected.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace aimle::experiments {

struct Checkpoint {
  std::map<std::string, std::map<std::string, at::Tensor>> groups;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

/// Written atomically; on Failure the old file is unchanged. With `previous`, the old file is kept
/// under this name.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const std::filesystem::path& previous = {});

/// Tensors are on the CPU. The Failure names the file and the reason: any changed bit, or no
/// checksums, as in files of earlier versions.
Checkpoint load_checkpoint(const std::filesystem::path& path);

struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::string fault;  // of the newest one, if this is the previous one
};
/// The newest checkpoint, or the previous one if the newest is damaged or missing; nothing if there
/// is neither. Throws Failure if none of the existing ones can be read.
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& newest,
                                               const std::filesystem::path& previous);

/// Copies the group's tensors into these, in place. Throws Failure naming a tensor that is missing,
/// unknown, or of another shape or type.
void restore(const std::map<std::string, at::Tensor>& into, const Checkpoint& from,
             const std::string& group);

}  // namespace aimle::experiments
