#include "experiments/data/number_table.h"

#include "experiments/data/npy.h"
#include "tests/experiments/data/files.h"

namespace aimle::experiments::data {
namespace {

using Values = std::vector<double>;

TEST(NumberTable, ReadsCsvAndNpyAlike) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.csv", " 1, 2,+3\r\n\n4,5e0 ,-6\n");
  write_npy<float>(folder / "a.npy", std::vector<int64_t>{2, 3},
                   std::vector<float>{1, 2, 3, 4, 5, -6});
  for (const char* name : {"a.csv", "a.npy"}) {
    const NumberTable table = read_number_table(folder / name, "theta");
    EXPECT_EQ(table.rows, 2);
    EXPECT_EQ(table.columns, 3);
    EXPECT_EQ(table.values, (Values{1, 2, 3, 4, 5, -6}));
  }
  write_npy<uint8_t>(folder / "row.npy", std::vector<int64_t>{3}, std::vector<uint8_t>{1, 2, 3});
  EXPECT_EQ(read_number_table(folder / "row.npy", "theta").rows, 1);
}

TEST(NumberTable, RefusesByFileAndLine) {
  const TemporaryFolder folder;
  const auto csv = [](const std::string& text) { return parse_csv("a.csv", text); };
  EXPECT_REFUSED(csv(""), "a.csv: expected numbers but it contains none");
  EXPECT_REFUSED(csv("1,2\n3\n"), "a.csv:2: expected 2 numbers, as on the lines before, but got 1");
  EXPECT_REFUSED(csv("1,two\n"), "a.csv:1: expected a number but got 'two'");
  EXPECT_REFUSED(csv("1,,2\n"), "a.csv:1: expected a number but got ''");
  EXPECT_REFUSED(csv("1,nan\n"), "a.csv: expected finite numbers but entry 1 is nan");
  write_bytes(folder / "a.txt", "1,2");
  EXPECT_REFUSED(read_number_table(folder / "a.txt", "theta"), "ends in .npy, .npz or .csv");
  write_npy<float>(folder / "a.npy", std::vector<int64_t>{1, 1, 2}, std::vector<float>{1, 2});
  EXPECT_REFUSED(read_number_table(folder / "a.npy", "theta"),
                 "expected one or two dimensions but got shape [1, 1, 2]");
}

}  // namespace
}  // namespace aimle::experiments::data
