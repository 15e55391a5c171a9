// A table of numbers from a file: `.npy` (see npy.h; one or two dimensions), `.npz` or `.csv` (one
// row per line; no header).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace aimle::experiments::data {

struct NumberTable {
  int64_t rows = 1;
  int64_t columns = 0;
  std::vector<double> values;  // [rows, columns]
};

/// A one-dimensional array is one row. `name` is the array to read from a .npz with several. Throws
/// FileError naming the file and the reason: missing, malformed, empty, ragged, not finite.
NumberTable read_number_table(const std::filesystem::path& path, const std::string& name);

/// The same for the text of a .csv; `path` is for messages.
NumberTable parse_csv(const std::filesystem::path& path, std::string_view text);

}  // namespace aimle::experiments::data
