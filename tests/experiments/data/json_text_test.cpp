#include "experiments/data/json_text.h"

#include "tests/experiments/data/files.h"

namespace aimle::experiments::data {
namespace {

TEST(JsonText, NamesTheLineThatIsWrong) {
  EXPECT_EQ(parse_json("a.json", R"({"a": [1]})")["a"][0], 1);
  EXPECT_REFUSED(parse_json("a.json", "{\n\"a\": tru,\n\"b\": 1}"), "a.json:2: expected JSON");
  EXPECT_REFUSED(parse_json("a.json", "{\"a\": 1,"), "a.json:1: the JSON text is truncated");
  EXPECT_REFUSED(parse_json("a.json", ""), "a.json:1: the JSON text is truncated");
  EXPECT_REFUSED(parse_json("a.json", "[1e999]", 7), "a.json:7: a number of the JSON text is out");
}

TEST(JsonText, IsNestedAtMostSoDeep) {
  const auto nested = [](int depth) {
    return std::string(1, '\n').append(depth, '[').append(depth, ']');
  };
  EXPECT_TRUE(parse_json("a.json", nested(kMaxJsonDepth)).is_array());
  EXPECT_REFUSED(parse_json("a.json", nested(kMaxJsonDepth + 1)), "a.json:2: expected JSON nested");
  EXPECT_REFUSED(parse_json("a.json", nested(10'000'000)), "nested at most 64 deep");
  const std::string text = "\"" + std::string(100, '[') + "\\\"" + std::string(100, '[') + "\"";
  EXPECT_TRUE(parse_json("a.json", text).is_string()) << "brackets within a text do not count";
}

TEST(JsonLines, LeavesOutALastLineThatBreaksOff) {
  const std::string whole = "{\"a\": 1}\n{\"a\": 2}\n";
  for (size_t length = 0; length <= whole.size(); ++length) {
    const auto [lines, is_torn] = parse_json_lines("a.jsonl", whole.substr(0, length));
    const bool between = length == 0 || length == 8 || length == 9 || length >= 17;
    EXPECT_EQ(std::ssize(lines), (length >= 8) + (length >= 17)) << "length " << length;
    EXPECT_EQ(is_torn, !between) << "length " << length;
  }
  EXPECT_REFUSED(parse_json_lines("a.jsonl", "{\"a\": 1}\n{\"a\":\n{\"a\": 3}\n"),
                 "a.jsonl:2: the JSON text is truncated");
  EXPECT_REFUSED(parse_json_lines("a.jsonl", "{\"a\": 1}\n17\n"), "a.jsonl:2: expected a JSON obj");
}

}  // namespace
}  // namespace aimle::experiments::data
