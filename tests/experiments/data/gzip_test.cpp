#include "experiments/data/gzip.h"

#include <vector>

#include "tests/experiments/data/files.h"

namespace aimle::experiments::data {
namespace {

std::vector<std::string> lines(const fs::path& path, size_t max_line = 1 << 20) {
  LineReader reader(path, max_line);
  std::vector<std::string> out;
  std::string line;
  while (reader.next(line)) out.push_back(line);
  EXPECT_EQ(reader.number(), std::ssize(out));
  return out;
}

TEST(LineReader, ReadsPlainAndGzippedAlike) {
  const TemporaryFolder folder;
  const std::string long_line(700'000, 'x');  // longer than the buffer
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"", {}},
      {"\n", {""}},
      {"a\nb", {"a", "b"}},
      {"a\n\nb\n", {"a", "", "b"}},
      {"one\n" + long_line + "\nthree", {"one", long_line, "three"}}};
  for (const auto& [text, expected] : cases) {
    write_bytes(folder / "plain.txt", text);
    write_bytes(folder / "packed.txt.gz", gzipped(text));
    EXPECT_EQ(lines(folder / "plain.txt"), expected);
    EXPECT_EQ(lines(folder / "packed.txt.gz"), expected);
    const size_t half = text.size() / 2;
    write_bytes(folder / "members.gz", gzipped(text.substr(0, half)) + gzipped(text.substr(half)));
    EXPECT_EQ(lines(folder / "members.gz"), expected);
  }
}

TEST(LineReader, RefusesWhatIsDamaged) {
  const TemporaryFolder folder;
  const fs::path file = folder / "text.gz";
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i * 7919 % 997) + "\n";
  const std::string packed = gzipped(text);
  for (size_t length = 2; length < packed.size(); ++length) {
    write_bytes(file, packed.substr(0, length));
    EXPECT_REFUSED(lines(file), "damaged or truncated");
  }
  EXPECT_GT(count_refused(file, packed, 3000, [&] { lines(file); }), 2000);

  write_bytes(file, std::string("a\nb\0c\n", 6));
  EXPECT_REFUSED(lines(file), "text.gz:2: expected text but found a zero byte");
  write_bytes(file, "a\nbcdefgh\n");
  EXPECT_REFUSED(lines(file, 5), "text.gz:2: expected lines of at most 5 bytes");
  write_bytes(file, packed + "more");
  EXPECT_REFUSED(lines(file), "there is extra data after the compressed data");
}

TEST(PlainOrGz, TakesWhatIsThere) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt.gz", gzipped("packed\n"));
  EXPECT_EQ(read_text(plain_or_gz(folder / "a.txt")), "packed\n");
  write_bytes(folder / "a.txt", "plain\n");
  EXPECT_EQ(read_text(plain_or_gz(folder / "a.txt")), "plain\n");
  EXPECT_REFUSED(plain_or_gz(folder / "b.txt"), "nor does b.txt.gz");
  EXPECT_REFUSED(read_text(folder / "a.txt", 3), "at most 3 bytes");
}

}  // namespace
}  // namespace aimle::experiments::data
