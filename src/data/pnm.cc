#include "data/pnm.h"

#include <algorithm>

#include "base/error.h"
#include "data/luma.h"

namespace octet::data {
namespace {

class Text {
 public:
  explicit Text(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // 0 beyond the end.
  int at(size_t offset) const { return offset < bytes_.size() ? std::to_integer<int>(bytes_[offset]) : 0; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

bool is_space(int c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

// A number behind white space and comments to the end of the line; 0 where there is none. `at` is then behind it.
int64_t read_number(const Text& text, size_t& at) {
  for (;; ++at) {
    if (text.at(at) == '#')
      while (at < text.size() && text.at(at) != '\n' && text.at(at) != '\r') ++at;
    if (!is_space(text.at(at))) break;
  }
  int64_t number = 0;
  for (; is_digit(text.at(at)); ++at) {
    number = number * 10 + (text.at(at) - '0');
    if (number > INT32_MAX) return 0;
  }
  return number;
}

}  // namespace

std::optional<PnmHeader> read_pnm_header(std::span<const std::byte> bytes) {
  const Text text(bytes);
  if (text.at(0) != 'P' || (text.at(1) != '5' && text.at(1) != '6') || !is_space(text.at(2))) return {};
  PnmHeader header{.channels = text.at(1) == '5' ? 1 : 3};
  size_t at = 2;
  header.width = read_number(text, at);
  if (header.width > 0) header.height = read_number(text, at);
  if (header.height == 0) return header;
  const int64_t maximum = read_number(text, at);
  if (maximum <= 65535 && is_space(text.at(at))) header.maximum = maximum;
  header.pixels = at + 1;  // behind a single white space
  return header;
}

Image decode_pnm(std::span<const std::byte> bytes, int channels) {
  const std::optional<PnmHeader> header = read_pnm_header(bytes);
  if (!header) throw DecodeError("its PPM or PGM header is damaged");
  if (header->maximum == 0)
    throw DecodeError("its image data is damaged: the header of a PPM or PGM file names no maximum from 1 to 65535");
  const size_t value_bytes = header->maximum > 255 ? 2 : 1;
  Image image{static_cast<int>(header->height), static_cast<int>(header->width), channels, {}};
  const size_t pixels = static_cast<size_t>(header->width) * header->height;
  const size_t needed = pixels * header->channels * value_bytes;
  const size_t there = bytes.size() - std::min(bytes.size(), header->pixels);
  if (there < needed)
    throw DecodeError(
        str("its image data is damaged: ", needed, " bytes of pixels are announced, ", there, " are there"));
  image.pixels.resize(image.size());
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data()) + header->pixels;
  const auto value = [&](size_t i) { return in[i * value_bytes]; };  // the upper byte comes first
  for (size_t i = 0; i < pixels; ++i) {
    uint8_t* out = &image.pixels[i * channels];
    if (header->channels == channels) {
      for (int c = 0; c < channels; ++c) out[c] = value(i * channels + c);
    } else if (channels == 1) {
      out[0] = bitmap_luma(value(i * 3), value(i * 3 + 1), value(i * 3 + 2));
    } else {
      out[0] = out[1] = out[2] = value(i);
    }
  }
  return image;
}

}  // namespace octet::data
