#include "data/bmp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "data/luma.h"

namespace octet::data {
namespace {

constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 36;  // the last one as far as it is read
constexpr size_t kMasks = kFileHeader + 40;  // behind the first 40 bytes of the header, or within its later forms
enum Compression : uint32_t { kRgb = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3 };

class LittleEndian {
 public:
  explicit LittleEndian(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // 0 beyond the end.
  uint32_t u8(size_t offset) const { return offset < bytes_.size() ? std::to_integer<uint32_t>(bytes_[offset]) : 0; }
  uint32_t u16(size_t o) const { return u8(o) | u8(o + 1) << 8; }
  uint32_t u32(size_t o) const { return u16(o) | u16(o + 2) << 16; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

[[noreturn]] void damaged(const std::string& why) {
  throw DecodeError("its image data is damaged: " + why);
}

using PaletteColor = std::array<uint8_t, 3>;  // red, green, blue

struct BmpHeader {
  BmpSize size;
  uint32_t bits = 0;  // of a pixel
  uint32_t compression = kRgb;
  size_t pixels = 0;                          // where they begin
  std::array<PaletteColor, 256> palette{};    // black where the file names none
  std::array<uint32_t, 3> masks = {0, 0, 0};  // of red, green, blue
};

void read_palette(const LittleEndian& b, size_t at, size_t count, size_t entry_bytes, BmpHeader& header) {
  if (at + count * entry_bytes > b.size()) damaged("the file ends within the palette");
  for (size_t i = 0; i < count; ++i, at += entry_bytes)
    for (size_t c = 0; c < 3; ++c) header.palette[i][c] = static_cast<uint8_t>(b.u8(at + 2 - c));
}

void set_masks(const LittleEndian& b, BmpHeader& header) {
  using Masks = std::array<uint32_t, 3>;
  constexpr Masks k555 = {0x7c00, 0x3e0, 0x1f}, k565 = {0xf800, 0x7e0, 0x1f}, k888 = {0xff0000, 0xff00, 0xff};
  header.masks = header.bits == 16 ? k555 : k888;
  if (header.compression != kBitFields) return;
  for (size_t c = 0; c < 3; ++c) header.masks[c] = b.u32(kMasks + 4 * c);
  const auto is_byte = [](uint32_t mask) { return mask != 0 && mask >> std::countr_zero(mask) == 0xff; };
  const bool known = header.bits == 16 ? header.masks == k555 || header.masks == k565
                                       : std::all_of(header.masks.begin(), header.masks.end(), is_byte);
  if (!known)
    throw DecodeError(str("it is a BMP of ", header.bits, " bits with masks of colors that are not supported"));
}

BmpHeader read_header(std::span<const std::byte> bytes) {
  const LittleEndian b(bytes);
  const std::optional<BmpSize> size = read_bmp_size(bytes);
  if (!size) throw DecodeError("its BMP header is damaged");
  BmpHeader header{.size = *size, .pixels = b.u32(10)};
  const size_t header_bytes = b.u32(kFileHeader);
  const bool core = header_bytes == kCoreHeader;
  if (!core && (header_bytes < kInfoHeader || header_bytes > b.size())) damaged("its BMP header is of no known size");
  header.bits = b.u16(core ? 24 : 28);
  if (!core) header.compression = b.u32(30);
  const bool indexed = header.bits == 1 || header.bits == 4 || header.bits == 8;
  const bool direct = header.bits == 24 || header.bits == 32 || (header.bits == 16 && !core);
  const bool known = header.compression == kRgb    ? indexed || direct
                     : header.compression == kRle8 ? header.bits == 8
                     : header.compression == kRle4
                         ? header.bits == 4
                         : header.compression == kBitFields && (header.bits == 16 || header.bits == 32);
  if (!known)
    throw DecodeError(
        str("it is a BMP of ", header.bits, " bits with compression ", header.compression, ", which is not supported"));
  if (indexed) {
    const size_t all = size_t{1} << header.bits;
    const size_t used = core ? 0 : b.u32(46);
    if (used > 256) damaged(str("its palette has ", used, " colors, more than 256"));
    read_palette(b, kFileHeader + header_bytes, used == 0 ? all : used, core ? 3 : 4, header);
  } else {
    set_masks(b, header);
  }
  return header;
}

// The codes of the palette, rows from the first that is stored.
class RunLengths {
 public:
  RunLengths(const LittleEndian& b, const BmpHeader& header)
      : b_(b),
        at_(header.pixels),
        nibbles_(header.compression == kRle4),
        width_(header.size.width),
        height_(header.size.height),
        codes_(static_cast<size_t>(width_) * height_, 0) {}

  std::vector<uint8_t> decode() {
    while (y_ < height_ && !(y_ == height_ - 1 && x_ == width_)) {
      const uint32_t count = next(), value = next();
      if (count > 0) {
        begin_run(count);
        for (uint32_t i = 0; i < count; ++i) put(nibbles_ ? (i % 2 == 0 ? value >> 4 : value & 15) : value);
      } else if (value == 0) {
        x_ = 0, ++y_;
      } else if (value == 1) {
        break;
      } else if (value == 2) {
        x_ += next();
        y_ += next();
        if (x_ > width_) damaged("its run-length code leaves the picture");
      } else {
        begin_run(value);
        read_literal(value);
      }
    }
    return std::move(codes_);
  }

 private:
  uint32_t next() {
    if (at_ >= b_.size()) damaged("the file ends too soon");
    return b_.u8(at_++);
  }
  // Files exist that leave out the end of a row that is full.
  void begin_run(int64_t count) {
    if (x_ == width_) x_ = 0, ++y_;
    if (y_ >= height_ || x_ + count > width_) damaged("its run-length code leaves the picture");
  }
  void put(uint32_t code) { codes_[static_cast<size_t>(y_ * width_ + x_++)] = static_cast<uint8_t>(code); }
  // Filled up to a multiple of two bytes.
  void read_literal(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (!nibbles_ || i % 2 == 0) value = next();
      put(!nibbles_ ? value : i % 2 == 0 ? value >> 4 : value & 15);
    }
    const uint32_t bytes = nibbles_ ? (count + 1) / 2 : count;
    if (bytes % 2 == 1) next();
  }

  const LittleEndian& b_;
  size_t at_;
  const bool nibbles_;
  const int64_t width_, height_;
  int64_t x_ = 0, y_ = 0;
  std::vector<uint8_t> codes_;
};

// The colors of a row of pixels that are stored one by one.
class StoredRow {
 public:
  StoredRow(const LittleEndian& b, const BmpHeader& header, size_t at) : b_(b), header_(header), at_(at) {
    for (size_t c = 0; c < 3; ++c) shift_[c] = header.masks[c] == 0 ? 0 : std::countr_zero(header.masks[c]);
  }
  PaletteColor operator()(size_t x) const {
    const uint32_t bits = header_.bits;
    if (bits <= 8) {
      const uint32_t byte = b_.u8(at_ + x * bits / 8);
      return header_.palette[byte >> (8 - bits - x * bits % 8) & ((1u << bits) - 1)];
    }
    const uint32_t value = bits == 16 ? b_.u16(at_ + 2 * x) : b_.u32(at_ + x * bits / 8);
    PaletteColor color;
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t mask = header_.masks[c];
      color[c] = static_cast<uint8_t>((value & mask) >> shift_[c] << (8 - std::popcount(mask)));
    }
    return color;
  }

 private:
  const LittleEndian& b_;
  const BmpHeader& header_;
  size_t at_;
  std::array<int, 3> shift_{};
};

template <typename ColorAt>
void write_row(Image& image, const BmpHeader& header, int stored_row, const ColorAt& color_at) {
  uint8_t* out = image.row(header.size.from_top ? stored_row : image.height - 1 - stored_row);
  for (int x = 0; x < image.width; ++x, out += image.channels) {
    const PaletteColor color = color_at(static_cast<size_t>(x));
    if (image.channels == 3)
      std::copy(color.begin(), color.end(), out);
    else
      *out = bitmap_luma(color[0], color[1], color[2]);
  }
}

}  // namespace

std::optional<BmpSize> read_bmp_size(std::span<const std::byte> bytes) {
  const LittleEndian b(bytes);
  if (b.u8(0) != 'B' || b.u8(1) != 'M') return {};
  if (b.u32(kFileHeader) == kCoreHeader) return BmpSize{b.u16(18), b.u16(20), false};
  const int64_t height = static_cast<int32_t>(b.u32(22));
  return BmpSize{static_cast<int32_t>(b.u32(18)), std::abs(height), height < 0};
}

Image decode_bmp(std::span<const std::byte> bytes, int channels) {
  const LittleEndian b(bytes);
  const BmpHeader header = read_header(bytes);
  Image image{static_cast<int>(header.size.height), static_cast<int>(header.size.width), channels, {}};
  if (header.compression == kRle8 || header.compression == kRle4) {
    const std::vector<uint8_t> codes = RunLengths(b, header).decode();
    image.pixels.resize(image.size());
    for (int y = 0; y < image.height; ++y)
      write_row(image, header, y,
                [&](size_t x) { return header.palette[codes[static_cast<size_t>(y) * image.width + x]]; });
    return image;
  }
  const size_t row_bytes = (static_cast<size_t>(image.width) * header.bits + 7) / 8, pitch = (row_bytes + 3) / 4 * 4;
  const size_t needed = pitch * (image.height - 1) + row_bytes;
  const size_t there = b.size() - std::min(b.size(), header.pixels);
  if (there < needed) damaged(str(needed, " bytes of pixels are announced, ", there, " are there"));
  image.pixels.resize(image.size());
  for (int y = 0; y < image.height; ++y)
    write_row(image, header, y, StoredRow(b, header, header.pixels + static_cast<size_t>(y) * pitch));
  return image;
}

}  // namespace octet::data
