// An 8-bit picture in memory and its decoding from the bytes of a file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace octet::data {

// 8 bits a channel, rows from the top, channels interleaved (HWC): 1 channel is gray, 3 are R, G, B.
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // height * width * channels

  size_t size() const { return static_cast<size_t>(height) * width * channels; }
  const uint8_t* row(int y) const { return pixels.data() + static_cast<size_t>(y) * width * channels; }
  uint8_t* row(int y) { return pixels.data() + static_cast<size_t>(y) * width * channels; }
};

// The bytes are no image that can be decoded; what() says why, without the file's name.
class DecodeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DecodeOptions {
  int channels = 3;               // 1 or 3: colors are converted, transparency is dropped, 16 bits become 8
  int min_decode_side = 0;        // a JPEG may come out smaller, but with both sides at least this; 0: full size
  bool exif_orientation = false;  // turn the picture as its EXIF data say (data/exif.h)
  int64_t max_pixels = int64_t{1} << 27;  // larger pictures are refused before anything is allocated for them
};

struct ImageSize {
  int width = 0, height = 0;
};
// Of the picture in the file, from its first bytes, turned with `exif_orientation`. Throws DecodeError where they are
// those of no image, or too few.
ImageSize image_size(std::span<const std::byte> bytes, bool exif_orientation = false);

// JPEG by libturbojpeg, WebP by libwebp, PNG by libpng, BMP, PPM and PGM by bmp.h and pnm.h. A truncated file is an
// error, as in Pillow; EXIF orientation is ignored unless it is asked for, as by Pillow and torchvision. Throws
// DecodeError.
Image decode_image(std::span<const std::byte> bytes, const DecodeOptions& options = {});

// Gray to RGB repeats the value; RGB to gray is the luma of ITU-R 601: (19595 R + 38470 G + 7471 B + 32768) >> 16.
Image convert_channels(Image image, int channels);

}  // namespace octet::data
