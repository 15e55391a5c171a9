#include "experiments/process/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = value;
  }
  return table;
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xa282ead8U;
}

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value = static_cast<T>(value >> 8);
  }
  return bytes;
}

template <class T>
T from_little_endian(std::string_view bytes) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// ---- Protocol buffers: a field is its number and type, then its value ------------------------------

enum Wire : uint32_t { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint32_t field, Wire type) { return varint(field << 3 | type); }

std::string field(uint32_t number, double value) {
  return key(number, kEightBytes) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string field(uint32_t number, float value) {
  return key(number, kFourBytes) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string field(uint32_t number, int64_t value) {
  return key(number, kVarint) + varint(static_cast<uint64_t>(value));
}

std::string field(uint32_t number, std::string_view bytes) {
  return key(number, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Takes values from the front of a message; the first fault leaves it empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool is_empty() const { return left_.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    left_ = {};
    return 0;
  }

  std::string_view bytes(uint64_t count) {
    if (count > left_.size()) {
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  /// The value of a field of this type: a varint's is returned, that of the others as bytes.
  std::string_view value(uint64_t type, uint64_t& number) {
    switch (type) {
      case kVarint:
        number = varint();
        return {};
      case kEightBytes:
        return bytes(8);
      case kFourBytes:
        return bytes(4);
      case kBytes:
        return bytes(varint());
      default:
        left_ = {};
        return {};
    }
  }

 private:
  std::string_view left_;
};

/// The first field of a message with this number, as bytes; empty if there is none.
std::string_view first_bytes(std::string_view message, uint32_t wanted) {
  Reader reader(message);
  while (!reader.is_empty()) {
    const uint64_t key = reader.varint();
    uint64_t number = 0;
    const std::string_view value = reader.value(key & 7, number);
    if (key == (wanted << 3 | kBytes)) return value;
  }
  return {};
}

int64_t step_of(std::string_view event) {
  Reader reader(event);
  while (!reader.is_empty()) {
    const uint64_t key = reader.varint();
    uint64_t number = 0;
    reader.value(key & 7, number);
    if (key == (2U << 3 | kVarint)) return static_cast<int64_t>(number);
  }
  return 0;
}

// ---- Records ----------------------------------------------------------------------------------------

constexpr size_t kHead = 12, kTail = 4;  // bytes before and after a message

std::string as_record(std::string_view message) {
  const std::string length = little_endian(static_cast<uint64_t>(message.size()));
  return length + little_endian(masked_crc(length)) + std::string(message) +
         little_endian(masked_crc(message));
}

/// The message of the record with which the bytes begin; none if it is damaged or incomplete.
std::optional<std::string_view> message_at(std::string_view bytes) {
  if (bytes.size() < kHead + kTail) return std::nullopt;
  const auto length = from_little_endian<uint64_t>(bytes);
  if (from_little_endian<uint32_t>(bytes.substr(8)) != masked_crc(bytes.substr(0, 8)) ||
      length > bytes.size() - kHead - kTail) {
    return std::nullopt;
  }
  const std::string_view message = bytes.substr(kHead, length);
  const bool is_whole =
      from_little_endian<uint32_t>(bytes.substr(kHead + length)) == masked_crc(message);
  return is_whole ? std::optional(message) : std::nullopt;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw Failure("cannot write " + file.string() + ": " + std::strerror(errno));
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

std::string first_record(double wall_time) {
  return as_record(field(1, wall_time) + field(3, std::string_view("brain.Event:2")));
}

std::string record_of(const ScalarEvent& event) {
  std::string summary;
  for (const auto& [tag, value] : event.values) {
    summary += field(1, field(1, std::string_view(tag)) + field(2, static_cast<float>(value)));
  }
  return as_record(field(1, event.wall_time) + field(2, event.step) +
                   field(5, std::string_view(summary)));
}

EventFile::EventFile(const std::filesystem::path& file, const Keep& keep) : file_(file) {
  const std::string content = content_of(file);
  size_t length = 0;
  while (const auto message = message_at(std::string_view(content).substr(length))) {
    const int64_t step = step_of(*message);
    const std::string_view tag = first_bytes(first_bytes(first_bytes(*message, 5), 1), 1);
    const bool is_version = length == 0;
    if (!is_version && !keep(step, tag)) break;
    if (!is_version) kept_.emplace_back(step, tag);
    length += kHead + message->size() + kTail;
  }
  handle_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (handle_ < 0) fail(file_);
  if (length < content.size() && ::ftruncate(handle_, static_cast<off_t>(length)) != 0) {
    fail(file_);
  }
  if (length == 0) append(first_record(now()));
}

EventFile::~EventFile() {
  if (handle_ >= 0) ::close(handle_);
}

void EventFile::add(int64_t step, std::vector<std::pair<std::string, double>> values) {
  append(record_of({.wall_time = now(), .step = step, .values = std::move(values)}));
}

void EventFile::append(std::string_view record) {
  while (!record.empty()) {
    const ssize_t written = ::write(handle_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(file_);
    record.remove_prefix(static_cast<size_t>(written));
  }
}

void EventFile::flush() {
  if (::fsync(handle_) != 0) fail(file_);
}

}  // namespace aimle::experiments
