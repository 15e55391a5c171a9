// One member of a ZIP archive: stored or deflated, without encryption, below 4 GiB (no ZIP64).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace aimle::experiments::data {

/// The unpacked bytes of the member; an error if there is none of that name, or if its length or
/// checksum is not what the directory says.
std::vector<char> read_zip_member(const std::filesystem::path& archive, const std::string& name);

}  // namespace aimle::experiments::data
