#include "tests/fuzz/samples.h"

#include <zlib.h>

#include "experiments/data/idx.h"

namespace aimle::fuzz {
namespace {

/// window: of deflateInit2, MAX_WBITS + 16 for gzip, -MAX_WBITS for a member of an archive.
std::string deflated(const std::string& bytes, int window) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string npy(const std::string& dictionary, const std::string& content, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0', static_cast<char>(dictionary.size()), '\0'};
  if (version > 1) file += {'\0', '\0'};
  return file + dictionary + content;
}

std::string little_endian(size_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> 8 * i & 255);
  return bytes;
}

struct Member {
  std::string name;
  std::string content;
  bool packed = false;
};

std::string zip(const std::vector<Member>& members) {
  std::string out;
  std::string directory;
  for (const Member& member : members) {
    const std::string body = member.packed ? deflated(member.content, -MAX_WBITS) : member.content;
    const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                                static_cast<uInt>(member.content.size()));
    const std::string common = little_endian(20, 2) + little_endian(0, 2) +
                               little_endian(member.packed ? 8 : 0, 2) + little_endian(0, 4) +
                               little_endian(checksum, 4) + little_endian(body.size(), 4) +
                               little_endian(member.content.size(), 4) +
                               little_endian(member.name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 8) +
                 little_endian(0, 2) + little_endian(out.size(), 4) + member.name;
    out += "PK\x03\x04" + common + member.name + body;
  }
  const std::string end = "PK\x05\x06" + little_endian(0, 4) + little_endian(members.size(), 2) +
                          little_endian(members.size(), 2) + little_endian(directory.size(), 4) +
                          little_endian(out.size(), 4) + little_endian(0, 2);
  return out + directory + end;
}

}  // namespace

std::vector<std::string> sample_idx() {
  const std::string plain =
      experiments::encode_idx({.shape = {2, 2, 3}, .values = std::vector<uint8_t>(12, 7)});
  const std::string labels = experiments::encode_idx({.shape = {3}, .values = {1, 2, 3}});
  return {plain, labels, deflated(plain, MAX_WBITS + 16)};
}

std::vector<std::string> sample_texts() {
  const std::string text = "one\ntwo\n\nfour";
  return {text, deflated(text, MAX_WBITS + 16),
          deflated("a\n", MAX_WBITS + 16) + deflated("b\n", MAX_WBITS + 16)};
}

std::vector<std::string> sample_npy() {
  const std::string content(24, '\x01');
  return {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", content),
          npy("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 1), }\n", content),
          npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }\n", content, 2),
          npy("{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }\n", content, 3),
          npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", content.substr(16))};
}

std::vector<std::string> sample_npz() {
  const std::string member = sample_npy()[0];
  return {zip({{"maps.npy", member, false}}),
          zip({{"a.npy", member, true}, {"b.npy", sample_npy()[1], false}}), zip({})};
}

}  // namespace aimle::fuzz
