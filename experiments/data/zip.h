// ZIP archives of stored or deflated members, without encryption, below 4 GiB (no ZIP64).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace aimle::experiments::data {

class ZipArchive {
 public:
  explicit ZipArchive(const std::filesystem::path& path);
  /// Of bytes in memory; `path` is for messages.
  ZipArchive(std::filesystem::path path, std::string bytes);

  const std::filesystem::path& path() const { return path_; }
  /// The names of the members, in the order of the directory.
  const std::vector<std::string>& names() const { return names_; }

  /// archive.npz/member.npy, for messages.
  std::filesystem::path path_of(const std::string& name) const;

  /// The unpacked bytes of a member; throws an error that lists the names if there is no such
  /// member, or if its length or checksum does not match the directory.
  std::vector<char> read(const std::string& name) const;

 private:
  /// A member as the directory describes it.
  struct Entry {
    uint32_t flags = 0;
    uint32_t method = 0;
    uint32_t checksum = 0;
    uint32_t packed_size = 0;
    uint32_t size = 0;
    uint32_t start = 0;
  };

  void read_directory();
  size_t find_end() const;
  std::string_view view(size_t at, size_t length) const;
  uint32_t number(size_t at, int width) const;

  std::filesystem::path path_;
  std::string bytes_;
  std::vector<std::string> names_;
  std::vector<Entry> entries_;
};

}  // namespace aimle::experiments::data
