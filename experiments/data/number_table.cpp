#include "experiments/data/number_table.h"

#include <algorithm>
#include <cmath>

#include "aimle/base/numbers.h"
#include "experiments/data/file_error.h"
#include "experiments/data/input_file.h"
#include "experiments/data/npy.h"

namespace aimle::experiments::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{1} << 30;

NumberTable to_table(const fs::path& path, Array<double> array) {
  const std::vector<int64_t>& shape = array.shape;
  if (shape.empty() || shape.size() > 2) {
    fail(path, "expected one or two dimensions but got shape ", to_string(shape));
  }
  return {.rows = shape.size() == 2 ? shape[0] : 1,
          .columns = shape.back(),
          .values = std::move(array.values)};
}

NumberTable read_rows(const fs::path& path, std::string_view content) {
  NumberTable table{.rows = 0};
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    int64_t columns = 0;
    for (bool more = true; more; ++columns) {
      const size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      std::string_view field = line.substr(0, comma);
      line.remove_prefix(more ? comma + 1 : line.size());
      const size_t first = std::min(field.find_first_not_of(" \t\r+"), field.size());
      field = field.substr(first, field.find_last_not_of(" \t\r") + 1 - first);
      const auto value = parse_number<double>(field);
      if (!value) {
        fail_line(path, number, "expected a number but got '", field.substr(0, 40), "'");
      }
      table.values.push_back(*value);
    }
    if (table.rows > 0 && columns != table.columns) {
      fail_line(path, number, "expected ", table.columns,
                " numbers, as on the lines before, but got ", columns);
    }
    table.columns = columns;
    ++table.rows;
  }
  return table;
}

NumberTable checked(const fs::path& path, NumberTable table) {
  if (table.values.empty()) fail(path, "expected numbers but it contains none");
  const auto bad =
      std::ranges::find_if(table.values, [](double value) { return !std::isfinite(value); });
  if (bad != table.values.end()) {
    fail(path, "expected finite numbers but entry ", bad - table.values.begin(), " is ", *bad);
  }
  return table;
}

}  // namespace

NumberTable parse_csv(const fs::path& path, std::string_view text) {
  return checked(path, read_rows(path, text));
}

NumberTable read_number_table(const fs::path& path, const std::string& name) {
  check_input_file(path);
  const fs::path ending = path.extension();
  if (ending == ".csv") return parse_csv(path, read_input_file(path, kMaxBytes));
  if (ending == ".npy") return checked(path, to_table(path, read_npy<double>(path)));
  if (ending == ".npz") return checked(path, to_table(path, read_npz_only<double>(path, name)));
  fail(path, "expected a file that ends in .npy, .npz or .csv");
}

}  // namespace aimle::experiments::data
