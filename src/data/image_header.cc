#include "data/image_header.h"

#include <string_view>

#include "data/bmp.h"
#include "data/pnm.h"

namespace octet::data {
namespace {

class HeaderBytes {
 public:
  explicit HeaderBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(size_t offset, std::string_view text) const {
    if (bytes_.size() < offset + text.size()) return false;
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + offset, text.size()) == text;
  }
  // 0 beyond the end: a header that is cut off then has no size and is refused.
  uint32_t u8(size_t offset) const { return offset < bytes_.size() ? std::to_integer<uint32_t>(bytes_[offset]) : 0; }
  uint32_t be32(size_t o) const { return u8(o) << 24 | u8(o + 1) << 16 | u8(o + 2) << 8 | u8(o + 3); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

ImageHeader read_image_header(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const HeaderBytes b(bytes);
  ImageHeader header;
  if (b.has(0, "\xff\xd8\xff"sv)) {
    header.format = ImageFormat::kJpeg;
  } else if (b.has(0, "\x89PNG\r\n\x1a\n"sv)) {
    header.format = ImageFormat::kPng;
    if (b.has(12, "IHDR")) {
      header.width = b.be32(16);
      header.height = b.be32(20);
    }
  } else if (const auto bmp = read_bmp_size(bytes)) {
    header = {ImageFormat::kBmp, bmp->width, bmp->height};
  } else if (b.has(0, "RIFF") && b.has(8, "WEBP")) {
    header.format = ImageFormat::kWebp;
  } else if (const auto pnm = read_pnm_header(bytes)) {
    header = {ImageFormat::kPnm, pnm->width, pnm->height};
  }
  return header;
}

}  // namespace octet::data
