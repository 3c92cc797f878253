#include "data/image_header.h"

#include <cstdlib>
#include <string_view>

namespace octet::data {
namespace {

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool has(size_t offset, std::string_view text) const {
    if (bytes_.size() < offset + text.size()) return false;
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + offset, text.size()) == text;
  }
  // 0 beyond the end: a header that is cut off then has no size and is refused.
  uint32_t u8(size_t offset) const { return offset < bytes_.size() ? std::to_integer<uint32_t>(bytes_[offset]) : 0; }
  uint32_t le16(size_t o) const { return u8(o) | u8(o + 1) << 8; }
  uint32_t le32(size_t o) const { return le16(o) | le16(o + 2) << 16; }
  uint32_t be32(size_t o) const { return u8(o) << 24 | u8(o + 1) << 16 | u8(o + 2) << 8 | u8(o + 3); }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

void read_bmp(const Bytes& b, ImageHeader& header) {
  if (b.le32(14) == 12) {  // OS/2
    header.width = b.le16(18);
    header.height = b.le16(20);
  } else {
    header.width = static_cast<int32_t>(b.le32(18));
    header.height = std::abs(static_cast<int64_t>(static_cast<int32_t>(b.le32(22))));  // negative: rows from the top
  }
}

bool is_space(uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// "P6 <width> <height> <maximum>" with any white space and comments to the end of the line.
void read_pnm(const Bytes& b, ImageHeader& header) {
  int64_t numbers[2] = {0, 0};
  size_t at = 2;
  for (int64_t& number : numbers) {
    for (;; ++at) {
      if (b.u8(at) == '#')
        while (at < b.size() && b.u8(at) != '\n') ++at;
      if (!is_space(b.u8(at))) break;
    }
    for (; b.u8(at) >= '0' && b.u8(at) <= '9'; ++at) {
      number = number * 10 + (b.u8(at) - '0');
      if (number > INT32_MAX) return;
    }
    if (number == 0) return;
  }
  header.width = numbers[0];
  header.height = numbers[1];
}

}  // namespace

ImageHeader read_image_header(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  const Bytes b(bytes);
  ImageHeader header;
  if (b.has(0, "\xff\xd8\xff"sv)) {
    header.format = ImageFormat::kJpeg;
  } else if (b.has(0, "\x89PNG\r\n\x1a\n"sv)) {
    header.format = ImageFormat::kPng;
    if (b.has(12, "IHDR")) {
      header.width = b.be32(16);
      header.height = b.be32(20);
    }
  } else if (b.has(0, "BM")) {
    header.format = ImageFormat::kBmp;
    read_bmp(b, header);
  } else if (b.has(0, "RIFF") && b.has(8, "WEBP")) {
    header.format = ImageFormat::kWebp;
  } else if ((b.has(0, "P5") || b.has(0, "P6")) && is_space(b.u8(2))) {
    header.format = ImageFormat::kPnm;
    read_pnm(b, header);
  }
  return header;
}

}  // namespace octet::data
