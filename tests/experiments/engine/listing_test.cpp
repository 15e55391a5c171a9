#include "experiments/engine/listing.h"

#include <gtest/gtest.h>

#include <sstream>

#include "experiments/process/terminal.h"

namespace aimle::experiments {
namespace {

TEST(Listing, AlignsNamesThatAreNotAscii) {
  const auto run = [](const char* folder) {
    return RunRecord{.folder = folder,
                     .config = {{"experiment", "dvae"}, {"settings", Json::object()}},
                     .metrics = {}};
  };
  std::istringstream table(to_table({run("läufe/größe"), run("runs/longer/name")}));
  std::vector<size_t> columns;
  for (std::string line; std::getline(table, line);) {
    columns.push_back(columns_of(line.substr(0, line.rfind("-"))));
  }
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[1], columns[2]);
}

}  // namespace
}  // namespace aimle::experiments
