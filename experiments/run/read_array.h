// Numbers from a file: `.npy` (float32 or float64, one or two dimensions, C order, little-endian)
// or `.csv` (one row per line; no header).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace aimle::experiments {

struct Array {
  int64_t rows = 1;
  int64_t columns = 0;
  std::vector<double> values;  // [rows, columns]
};

/// A one-dimensional .npy is one row. Throws Failure naming the file and what is wrong with it:
/// missing, malformed, empty, ragged, not finite.
Array read_array(const std::filesystem::path& path);

}  // namespace aimle::experiments
