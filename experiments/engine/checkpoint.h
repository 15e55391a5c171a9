// checkpoint.pt and best.pt: tensors by name in groups, and a few numbers and texts, in the format
// of torch.save, so that `torch.load(path, weights_only=True)` reads them:
//
//   {"model": {"encoder.0.weight": tensor, ...}, "optimizer": {...}, "epoch": 3, "config": "{...}"}
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace aimle::experiments {

struct Checkpoint {
  std::map<std::string, std::map<std::string, at::Tensor>> groups;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

/// Written atomically; a Failure leaves the file that was there.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// Tensors come back on the CPU. A Failure says what is wrong with the file.
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// Copies the group's tensors into these, in place. A Failure names a tensor that is missing, is
/// not known, or has another shape or type.
void restore(const std::map<std::string, at::Tensor>& into, const Checkpoint& from,
             const std::string& group);

}  // namespace aimle::experiments
