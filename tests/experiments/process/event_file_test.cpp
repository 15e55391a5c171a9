#include "experiments/process/event_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "experiments/process/failure.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

/// Bytes as hexadecimal digits.
std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(Crc32c, AgreesWithThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

// Serialised by the protobuf classes and the RecordWriter of the package tensorboard 2.21.
TEST(EventRecord, HasTheBytesOfTensorBoard) {
  EXPECT_EQ(hex(first_record(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(hex(record_of({.wall_time = 1.5, .step = 300, .values = {{"a", 0.25}, {"b/c", -2}}})),
            "2400000000000000422b804d09000000000000f83f10ac022a160a080a0161150000803e0a0a0a03622f63"
            "15000000c0b5880e1d");
}

class EventFileTest : public testing::Test {
 protected:
  std::vector<std::pair<int64_t, std::string>> kept(
      const EventFile::Keep& keep = [](int64_t, std::string_view) { return true; }) {
    return EventFile(file_, keep).kept();
  }

  TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "events.out.tfevents.aimle";
};

using Kept = std::vector<std::pair<int64_t, std::string>>;

TEST_F(EventFileTest, AppendsToWhatIsThere) {
  {
    EventFile file(file_, [](int64_t, std::string_view) { return true; });
    file.add(1, {{"step/loss", 0.5}});
    file.flush();
  }
  {
    EventFile file(file_, [](int64_t, std::string_view) { return true; });
    file.add(300, {{"epoch/loss", 0.25}, {"epoch/alpha", 1}});
  }
  EXPECT_EQ(kept(), (Kept{{1, "step/loss"}, {300, "epoch/loss"}}));
}

TEST_F(EventFileTest, IsCutBeforeTheFirstEventThatIsNotKept) {
  EventFile(file_, {}).add(1, {{"a", 1}});
  for (const int64_t step : {2, 3, 4}) {
    EventFile(file_, [](int64_t, std::string_view) { return true; }).add(step, {{"a", 1}});
  }
  EXPECT_EQ(kept([](int64_t step, std::string_view) { return step != 3; }),
            (Kept{{1, "a"}, {2, "a"}}));
  EXPECT_EQ(kept(), (Kept{{1, "a"}, {2, "a"}}));
}

TEST_F(EventFileTest, ARecordCutAtAnyByteIsRemoved) {
  EventFile(file_, {}).add(1, {{"a", 1}});
  const std::string whole = read_bytes(file_);
  EventFile(file_, [](int64_t, std::string_view) { return true; }).add(2, {{"b", 1}});
  const std::string longer = read_bytes(file_);
  for (size_t length = whole.size(); length < longer.size(); ++length) {
    std::ofstream(file_, std::ios::binary) << longer.substr(0, length);
    EXPECT_EQ(kept(), (Kept{{1, "a"}})) << length;
    EXPECT_EQ(read_bytes(file_), whole) << length;
  }
}

TEST_F(EventFileTest, ADamagedByteEndsWhatIsKept) {
  EventFile(file_, {}).add(1, {{"a", 1}});
  const size_t first = read_bytes(file_).size();
  EventFile(file_, [](int64_t, std::string_view) { return true; }).add(2, {{"b", 1}});
  const std::string whole = read_bytes(file_);
  for (size_t i = first; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::ofstream(file_, std::ios::binary) << damaged;
    EXPECT_EQ(kept(), (Kept{{1, "a"}})) << i;
  }
  std::ofstream(file_, std::ios::binary) << "something else";
  EXPECT_EQ(kept(), Kept{});
}

TEST_F(EventFileTest, AFolderThatIsNotThereIsNamed) {
  const fs::path file = folder_.path() / "no" / "events";
  EXPECT_EQ(message_of<Failure>([&] { EventFile(file, {}); }),
            "cannot write " + file.string() + ": No such file or directory");
}

}  // namespace
}  // namespace aimle::experiments
