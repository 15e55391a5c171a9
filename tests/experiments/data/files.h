// Files that are damaged on purpose.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "experiments/data/file_error.h"
#include "tests/experiments/temporary_folder.h"
#include "tests/message_of.h"

namespace aimle::experiments {

inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// One to four random edits: a bit, a byte, an extreme, a cut, a hole, a repetition, noise, the
/// end.
inline std::string damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const size_t at = below(bytes.size() + 1);
    const size_t length = below(std::min<size_t>(bytes.size() - at, 16) + 1);
    switch (below(8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 2:
        if (at < bytes.size()) bytes[at] = below(2) ? '\xff' : '9';
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 6:
        for (size_t i = 0; i < length; ++i) bytes.insert(at, 1, static_cast<char>(random()));
        break;
      default:
        bytes += std::string(below(9), static_cast<char>(random()));
    }
  }
  return bytes;
}

/// Calls `read` on `count` damaged copies of `bytes`: each is refused by a FileError that names the
/// file, or happens to be readable. Returns how many were refused.
template <class Read>
int count_refused(const fs::path& path, const std::string& bytes, int count, const Read& read) {
  int refused = 0;
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937 random(seed);
    write_bytes(path, damaged(bytes, random));
    try {
      read();
    } catch (const data::FileError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find(path.filename().string()), std::string::npos)
          << "seed " << seed << ": " << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": not a FileError: " << error.what();
    }
  }
  write_bytes(path, bytes);
  return refused;
}

/// The message with which `read` refuses a file; empty if it does not.
template <class Read>
std::string refusal(const Read& read) {
  return message_of<data::FileError>(read);
}

#define EXPECT_REFUSED(expression, text)                                                     \
  do {                                                                                       \
    const std::string message = ::aimle::experiments::refusal([&] { (void)(expression); });  \
    EXPECT_NE(message.find(text), std::string::npos) << "refused with: '" << message << "'"; \
  } while (false)

/// Where data sets are looked for: AIMLE_DATA, or shared/data beside the checkout.
inline fs::path data_folder() {
  if (const char* folder = std::getenv("AIMLE_DATA")) return folder;
  return fs::path(AIMLE_SOURCE_DIR).parent_path() / "shared" / "data";
}

}  // namespace aimle::experiments
