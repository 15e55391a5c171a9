#include "experiments/engine/png.h"

#include <ATen/Functions.h>
#include <zlib.h>

#include <cstdint>
#include <string_view>

namespace aimle::experiments {
namespace {

void append_big_endian(std::string& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift));
}

void append_chunk(std::string& png, std::string_view type, std::string_view data) {
  append_big_endian(png, static_cast<uint32_t>(data.size()));
  const std::string body = std::string(type) + std::string(data);
  png += body;
  const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
  append_big_endian(png, static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(body.size()))));
}

}  // namespace

std::string encode_png(const at::Tensor& given) {
  const bool colour = given.dim() == 3 && given.size(2) == 3;
  TORCH_CHECK((given.dim() == 2 || colour) && given.scalar_type() == at::kByte && given.numel() > 0,
              "[encode_png] expected uint8 [H, W] or [H, W, 3] but got ", given.scalar_type(), " ",
              given.sizes());
  const at::Tensor pixels = given.cpu().contiguous();
  const int64_t width = pixels.size(1) * (colour ? 3 : 1);

  std::string header;
  append_big_endian(header, static_cast<uint32_t>(pixels.size(1)));
  append_big_endian(header, static_cast<uint32_t>(pixels.size(0)));
  header += {8, static_cast<char>(colour ? 2 : 0), 0, 0, 0};

  std::string rows;
  const auto* data = reinterpret_cast<const char*>(pixels.const_data_ptr<uint8_t>());
  for (int64_t y = 0; y < pixels.size(0); ++y) {
    rows.push_back(0);  // no filter
    rows.append(data + y * width, static_cast<size_t>(width));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()));
  packed.resize(size);

  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", {});
  return png;
}

at::Tensor contact_sheet(const at::Tensor& images, int64_t columns, int64_t zoom) {
  const int64_t count = images.size(0), height = images.size(1), width = images.size(2);
  const int64_t rows = (count + columns - 1) / columns;
  at::Tensor sheet = at::full({rows * (height + 1) - 1, columns * (width + 1) - 1}, 96, at::kByte);
  const at::Tensor bytes = images.detach().cpu().clamp(0, 1).mul(255).round().to(at::kByte);
  for (int64_t i = 0; i < count; ++i) {
    sheet.narrow(0, i / columns * (height + 1), height)
        .narrow(1, i % columns * (width + 1), width)
        .copy_(bytes[i]);
  }
  return sheet.repeat_interleave(zoom, 0).repeat_interleave(zoom, 1);
}

}  // namespace aimle::experiments
