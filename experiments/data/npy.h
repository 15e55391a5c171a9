// NumPy's .npy files, and .npz archives of them.
//
// A .npy file is the magic "\x93NUMPY", a version (1.0, 2.0 or 3.0), the length of a header, the
// header (a Python dictionary: descr, fortran_order, shape) and the values. Supported:
// little-endian b1, i1, u1, i2, u2, i4, u4, i8, u8, f2, f4, f8, converted to the requested type
// and, from Fortran order, to C order; a value that the type cannot represent (300 or 0.5 as a
// byte, NaN as an integer) is an error. See numpy.lib.format and PKZIP's APPNOTE.
//
// The file must have exactly the length given by its header, and nothing is allocated before that
// is checked, so a damaged shape cannot allocate more memory than the size of the file.
//
//   auto costs = aimle::experiments::data::read_npy<float>("train_vertex_weights.npy");
//   costs.shape == {10000, 12, 12}; costs.values.size() == 1'440'000
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aimle::experiments::data {

template <class T>
struct Array {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

/// "[2, 96, 96, 3]"
std::string to_string(std::span<const int64_t> shape);

/// T is uint8_t, float or double.
template <class T>
Array<T> read_npy(const std::filesystem::path& path);

/// The same from bytes in memory; `path` is for messages.
template <class T>
Array<T> parse_npy(const std::filesystem::path& path, std::string_view bytes);

/// Reads `NAME.npy`; if there is none, the only array of `NAME.npz`, or `NAME_part0.npy`,
/// `NAME_part1.npy`, ... joined along the first dimension. `name` is the path without its ending.
template <class T>
Array<T> read_npy_parts(const std::filesystem::path& name);

/// One array of a .npz archive (stored or deflated members; the checksum is compared).
template <class T>
Array<T> read_npz(const std::filesystem::path& archive, const std::string& name);

/// The array of that name, or the only one in the archive, whatever its name.
template <class T>
Array<T> read_npz_only(const std::filesystem::path& archive, const std::string& name);

/// Writes version 1.0, atomically.
template <class T>
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape,
               std::span<const T> values);

}  // namespace aimle::experiments::data
