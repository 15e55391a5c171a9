#include "experiments/data/npy.h"

#include <cmath>
#include <cstring>

#include "tests/experiments/data/files.h"

namespace aimle::experiments::data {
namespace {

/// A .npy file by hand: any dictionary, any version, any content.
std::string npy(const std::string& dictionary, const std::string& content, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0'};
  const size_t length = dictionary.size();
  file += {static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  if (version > 1) file += {'\0', '\0'};
  return file + dictionary + content;
}

template <class T>
std::string array(const std::string& descr, const std::vector<T>& values, char version = 1) {
  std::string content(values.size() * sizeof(T), '\0');
  std::memcpy(content.data(), values.data(), content.size());
  return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
                 std::to_string(values.size()) + ",), }\n",
             content, version);
}

TEST(Npy, WritesAndReadsBack) {
  const TemporaryFolder folder;
  const std::vector<int64_t> shape{2, 3};
  const std::vector<double> values{0, -1.5, 2.25, 1e300, 5e-324, 6};
  write_npy<double>(folder / "a.npy", shape, values);
  const auto back = read_npy<double>(folder / "a.npy");
  EXPECT_EQ(back.shape, shape);
  EXPECT_EQ(back.values, values);
  EXPECT_EQ(read_bytes(folder / "a.npy").size() % 64, 48u) << "the header is a multiple of 64";
  EXPECT_REFUSED(write_npy<double>(folder / "b.npy", std::vector<int64_t>{7}, values),
                 "expected 7 values");
  EXPECT_FALSE(fs::exists(folder / "b.npy"));

  const std::vector<int64_t> empty{0, 96, 96, 3};
  write_npy<uint8_t>(folder / "empty.npy", empty, std::vector<uint8_t>{});
  EXPECT_EQ(read_npy<uint8_t>(folder / "empty.npy").shape, empty);
}

TEST(Npy, ConvertsEveryTypeItReads) {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.npy";
  const auto floats = [&](const std::string& bytes) {
    write_bytes(file, bytes);
    return read_npy<float>(file).values;
  };
  const std::vector<float> expected{0, 1, 250};
  EXPECT_EQ(floats(array<uint8_t>("|u1", {0, 1, 250})), expected);
  EXPECT_EQ(floats(array<int16_t>("<i2", {0, 1, 250}, 2)), expected);
  EXPECT_EQ(floats(array<uint16_t>("<u2", {0, 1, 250}, 3)), expected);
  EXPECT_EQ(floats(array<int32_t>("<i4", {0, 1, 250})), expected);
  EXPECT_EQ(floats(array<int64_t>("<i8", {0, 1, 250})), expected);
  EXPECT_EQ(floats(array<uint64_t>("<u8", {0, 1, 250})), expected);
  EXPECT_EQ(floats(array<double>("<f8", {0, 1, 250})), expected);
  EXPECT_EQ(floats(array<int8_t>("|i1", {-128, 127})), (std::vector<float>{-128, 127}));
  EXPECT_EQ(floats(array<uint8_t>("|b1", {0, 1})), (std::vector<float>{0, 1}));
  // Halves: 0.8 as stored, 1, the least subnormal, the largest, -2, infinity.
  EXPECT_EQ(floats(array<uint16_t>("<f2", {0x3a66, 0x3c00, 1, 0x7bff, 0xc000, 0x7c00})),
            (std::vector<float>{0.7998046875f, 1, 0x1p-24f, 65504, -2, INFINITY}));

  write_bytes(file, array<double>("<f8", {0, 255}));
  EXPECT_EQ(read_npy<uint8_t>(file).values, (std::vector<uint8_t>{0, 255}));
  for (const double bad : {0.5, 256.0, -1.0, static_cast<double>(NAN)}) {
    write_bytes(file, array<double>("<f8", {7, bad}));
    EXPECT_REFUSED(read_npy<uint8_t>(file), "a whole number in [0, 255] but entry 1 is");
  }
  write_bytes(file, array<double>("<f8", {1e300}));
  EXPECT_REFUSED(read_npy<float>(file), "entry 0 is 1e+300");
}

TEST(Npy, ReadsFortranOrder) {
  // Entry [i, j, k] is 100 i + 10 j + k; in the file i runs fastest.
  std::string stored;
  std::vector<uint8_t> expected;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) stored += static_cast<char>(100 * i + 10 * j + k);
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) expected.push_back(static_cast<uint8_t>(100 * i + 10 * j + k));
    }
  }
  const auto read = [&](const std::string& shape, const std::string& content) {
    return parse_npy<uint8_t>(
        "a.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': " + shape + "}", content));
  };
  EXPECT_EQ(read("(2, 3, 4)", stored).values, expected);
  EXPECT_EQ(read("(2, 3, 4)", stored).shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(read("(3,)", "abc").values, (std::vector<uint8_t>{'a', 'b', 'c'}));
  EXPECT_EQ(read("()", "a").values, (std::vector<uint8_t>{'a'}));
  EXPECT_EQ(read("(0, 3)", "").shape, (std::vector<int64_t>{0, 3}));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.npy";
  const std::string content(24, '\1');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "only 0 bytes"},
      {"GIF89a............", "does not start with"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", content, 7),
       "version 1 to 3"},
      {npy("{'descr': '>f8', 'fortran_order': False, 'shape': (3,)}", content), "'>f8'"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", content), "'|O'"},
      {npy("{'descr': '<f8', 'fortran_order': 1, 'shape': (3,)}", content),
       "fortran_order False or True but got '1, 'shap'"},
      {npy("{'descr': '<f8', 'shape': (3,)}", content), "expected the keys"},
      {npy("{'descr': '<f8', 'descr': '<f8', 'shape': (3,)}", content),
       "once each but got 'descr'"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}", content), "'-3,)}'"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4,)}", content), "needs more"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", content),
       "expected 16 bytes"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999)}",
           content),
       "needs more"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999999999,)}", content),
       "18 digits"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}", content),
       "expected 0 bytes"},
      {npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x", content), "header to end"},
      {npy("{'descr': '<f8", content), "does not end"},
      {"\x93NUMPY\x01" + std::string(1, '\0') + "\xff\xff" + content, "at most 10000"}};
  for (const auto& [bytes, text] : cases) {
    write_bytes(file, bytes);
    EXPECT_REFUSED(read_npy<double>(file), text);
  }

  const std::string good = array<double>("<f8", {1, 2, 3});
  for (size_t length = 0; length < good.size(); ++length) {
    write_bytes(file, good.substr(0, length));
    EXPECT_NE(refusal([&] { read_npy<double>(file); }), "") << "length " << length;
  }
  EXPECT_GT(count_refused(file, good, 4000, [&] { read_npy<float>(file); }), 2000);
}

TEST(NpyParts, AreJoinedAlongTheFirstDimension) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, std::vector<int64_t> shape, float first) {
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]));
    for (float& value : values) value = first++;
    write_npy<float>(folder / name, shape, values);
  };
  write("a_part0.npy", {2, 2}, 0);
  write("a_part1.npy", {1, 2}, 4);
  const auto joined = read_npy_parts<float>(folder / "a");
  EXPECT_EQ(joined.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(joined.values, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  write("a_part1.npy", {1, 3}, 4);
  EXPECT_REFUSED(read_npy_parts<float>(folder / "a"), "expected a shape like [1, 2]");
  write("a.npy", {1, 1}, 9);
  EXPECT_EQ(read_npy_parts<float>(folder / "a").values, std::vector<float>{9});
  EXPECT_REFUSED(read_npy_parts<float>(folder / "b"), "nor does b_part0.npy");
}

/// An archive of one member, as numpy.savez (method 0) or savez_compressed (8) would write it.
std::string zip(const std::string& name, const std::string& content, bool packed) {
  std::string body = content;
  if (packed) {
    const std::string gz = gzipped(content);
    body = gz.substr(10, gz.size() - 18);  // without gzip's own header and trailer
  }
  std::string out;
  const auto number = [&](uint32_t value, int width) {
    for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i & 255);
  };
  const auto common = [&] {
    number(20, 2), number(0, 2), number(packed ? 8 : 0, 2), number(0, 4);
    number(crc32(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4);
    number(body.size(), 4), number(content.size(), 4), number(name.size(), 2), number(0, 2);
  };
  number(0x04034b50, 4), common();
  out += name + body;
  const size_t directory = out.size();
  number(0x02014b50, 4), number(20, 2), common(), number(0, 2), number(0, 2), number(0, 2);
  number(0, 4), number(0, 4);
  out += name;
  const size_t length = out.size() - directory;
  number(0x06054b50, 4), number(0, 4), number(1, 2), number(1, 2), number(length, 4);
  number(directory, 4), number(0, 2);
  return out;
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.npz";
  std::vector<float> values(50);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  const std::string member = array<float>("<f4", values);
  for (const bool packed : {false, true}) {
    const std::string good = zip("maps.npy", member, packed);
    write_bytes(file, good);
    EXPECT_EQ(read_npz<float>(file, "maps").values, values);
    EXPECT_EQ(read_npz_only<float>(file, "costs").values, values) << "the only array";
    EXPECT_EQ(read_npy_parts<float>(folder / "a").values, values) << "where no a.npy is";
    EXPECT_REFUSED(read_npz<float>(file, "costs"),
                   "a.npz: expected a member costs.npy but the archive holds maps.npy");
    for (size_t length = 0; length < good.size(); ++length) {
      write_bytes(file, good.substr(0, length));
      EXPECT_NE(refusal([&] { read_npz<float>(file, "maps"); }), "") << "length " << length;
    }
    EXPECT_GT(count_refused(file, good, 3000, [&] { read_npz<float>(file, "maps"); }), 1500);
    std::string wrong = good;
    wrong[30 + 8 + 3] ^= 1;
    write_bytes(file, wrong);
    EXPECT_NE(refusal([&] { read_npz<float>(file, "maps"); }), "");
  }
}

}  // namespace
}  // namespace aimle::experiments::data
