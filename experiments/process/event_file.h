// Event files of TensorBoard with scalars, written without TensorFlow.
//
// A file is a sequence of records: the length of the message as 8 bytes, its checksum, the message,
// its checksum; all little-endian. A checksum is the CRC-32C of the bytes, rotated and shifted
// (TensorFlow's record_writer.h). A message is an `Event` of tensorflow/core/util/event.proto:
//
//   double wall_time = 1;  int64 step = 2;  string file_version = 3;  Summary summary = 5
//   Summary: repeated Value value = 1       Value: string tag = 1;  float simple_value = 2
//
// The first event has the version, every other one the scalars of a step. TensorBoard follows a
// file while it grows, so events are appended, never rewritten: at each moment the file is a valid
// one, possibly followed by an incomplete record, which readers ignore and `EventFile` removes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aimle::experiments {

uint32_t crc32c(std::string_view bytes);

/// The scalars of a step.
struct ScalarEvent {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;  // by tag
};

/// The record with which a file begins.
std::string first_record(double wall_time);
std::string record_of(const ScalarEvent& event);

class EventFile {
 public:
  /// Whether an event of the file is to be kept, by its step and its first tag.
  using Keep = std::function<bool(int64_t step, std::string_view tag)>;

  /// Continues the file, or begins it. It is cut before the first event that is not to be kept and
  /// before the first record that is damaged or incomplete. Throws Failure if it cannot be written.
  EventFile(const std::filesystem::path& file, const Keep& keep);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// The steps and first tags of the events that were kept.
  const std::vector<std::pair<int64_t, std::string>>& kept() const { return kept_; }

  /// Appends an event, with the current time.
  void add(int64_t step, std::vector<std::pair<std::string, double>> values);
  /// Waits until what was added is on disk.
  void flush();

 private:
  void append(std::string_view record);

  std::filesystem::path file_;
  int handle_ = -1;
  std::vector<std::pair<int64_t, std::string>> kept_;
};

}  // namespace aimle::experiments
