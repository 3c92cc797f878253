#include "data/exif.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace octet::data {
namespace {

// ExifBytes that are read within their bounds: beyond them there are zeros.
class ExifBytes {
 public:
  ExifBytes(std::span<const std::byte> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  size_t size() const { return bytes_.size(); }
  uint32_t number(size_t at, size_t width) const {
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      const size_t from = big_endian_ ? at + i : at + width - 1 - i;
      value = value << 8 | (from < bytes_.size() ? static_cast<uint32_t>(bytes_[from]) : 0);
    }
    return value;
  }
  bool begins_with(std::string_view text, size_t at = 0) const {
    return at <= bytes_.size() && text.size() <= bytes_.size() - at &&
           std::equal(text.begin(), text.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
  }
  // What of [at, at + length) there is.
  std::span<const std::byte> part(size_t at, size_t length) const {
    if (at >= bytes_.size()) return {};
    return bytes_.subspan(at, std::min(length, bytes_.size() - at));
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

using namespace std::string_view_literals;

// The TIFF structure that EXIF is: a header, and the first directory of 12-byte entries.
int orientation_of_tiff(std::span<const std::byte> tiff) {
  const bool big_endian = ExifBytes(tiff, true).begins_with("MM"sv);
  const ExifBytes bytes(tiff, big_endian);
  if ((!big_endian && !bytes.begins_with("II"sv)) || bytes.number(2, 2) != 42) return 1;
  const size_t directory = bytes.number(4, 4);
  const size_t count = bytes.number(directory, 2);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > bytes.size()) return 1;
    if (bytes.number(entry, 2) != 0x0112) continue;
    const uint32_t type = bytes.number(entry + 2, 2), values = bytes.number(entry + 4, 4);
    if (values != 1 || (type != 3 && type != 4)) return 1;  // one SHORT or LONG
    const uint32_t orientation = bytes.number(entry + 8, type == 3 ? 2 : 4);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

// Segments before the picture: FF, a kind, a length that counts itself.
std::span<const std::byte> exif_of_jpeg(const ExifBytes& file) {
  for (size_t at = 2; at + 4 <= file.size();) {
    if (file.number(at, 1) != 0xFF) return {};
    const uint32_t kind = file.number(at + 1, 1), length = file.number(at + 2, 2);
    if (kind == 0xFF) {  // filling
      ++at;
      continue;
    }
    if (kind == 0xDA || kind == 0xD9) return {};           // the picture, or the end
    if (kind == 0x01 || (kind >= 0xD0 && kind <= 0xD8)) {  // without a length
      at += 2;
      continue;
    }
    if (length < 2) return {};
    if (kind == 0xE1 && file.begins_with("Exif\0\0"sv, at + 4)) return file.part(at + 10, length < 8 ? 0 : length - 8);
    at += 2 + length;
  }
  return {};
}

// Chunks: length, kind, data, checksum.
std::span<const std::byte> exif_of_png(const ExifBytes& file) {
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t length = file.number(at, 4);
    if (file.begins_with("eXIf"sv, at + 4)) return file.part(at + 8, length);
    if (length > file.size()) return {};
    at += 12 + length;
  }
  return {};
}

// Chunks: kind, length, data, a byte of filling where the length is odd. Some writers put JPEG's mark before the TIFF.
std::span<const std::byte> exif_of_webp(const ExifBytes& file) {
  for (size_t at = 12; at + 8 <= file.size();) {
    const size_t length = file.number(at + 4, 4);
    if (file.begins_with("EXIF"sv, at)) {
      const size_t mark = file.begins_with("Exif\0\0"sv, at + 8) ? 6 : 0;
      return file.part(at + 8 + mark, length < mark ? 0 : length - mark);
    }
    if (length > file.size()) return {};
    at += 8 + length + length % 2;
  }
  return {};
}

}  // namespace

int exif_orientation(std::span<const std::byte> file) {
  const ExifBytes big(file, true), little(file, false);
  if (big.begins_with("\xFF\xD8"sv)) return orientation_of_tiff(exif_of_jpeg(big));
  if (big.begins_with("\x89PNG\r\n\x1a\n"sv)) return orientation_of_tiff(exif_of_png(big));
  if (big.begins_with("RIFF"sv) && big.begins_with("WEBP"sv, 8)) return orientation_of_tiff(exif_of_webp(little));
  return 1;
}

Image oriented(Image image, int orientation) {
  if (orientation == 1) return image;
  OCTET_CHECK(orientation >= 2 && orientation <= 8, orientation);
  const bool turned = orientation >= 5;
  Image out{turned ? image.width : image.height, turned ? image.height : image.width, image.channels, {}};
  out.pixels.resize(out.size());
  // Where the first, second ... row comes from: which side of the source counts up along a row, and from which end.
  const bool last_row_first = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool last_column_first = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const auto channels = static_cast<size_t>(image.channels);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const int row = turned ? x : y, column = turned ? y : x;
      const int from_row = last_row_first ? image.height - 1 - row : row;
      const int from_column = last_column_first ? image.width - 1 - column : column;
      std::copy_n(image.row(from_row) + static_cast<size_t>(from_column) * channels, channels,
                  out.row(y) + static_cast<size_t>(x) * channels);
    }
  return out;
}

}  // namespace octet::data
