#include "data/image.h"

#include <turbojpeg.h>
#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "data/bmp.h"
#include "data/exif.h"
#include "data/image_header.h"
#include "data/png.h"
#include "data/pnm.h"

namespace octet::data {
namespace {

void check_size(int64_t width, int64_t height, const DecodeOptions& options) {
  if (width <= 0 || height <= 0) throw DecodeError(str("its header says ", width, " x ", height, " pixels"));
  if (width > options.max_pixels / height)
    throw DecodeError(
        str("its header says ", width, " x ", height, " pixels, more than the limit of ", options.max_pixels));
}

struct DecompressorCloser {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Decompressor = std::unique_ptr<void, DecompressorCloser>;

// One a thread: making it costs as much as decoding a small picture.
Decompressor& thread_decompressor() {
  thread_local Decompressor decompressor;
  if (!decompressor) decompressor.reset(tjInitDecompress());
  if (!decompressor) throw DecodeError("libturbojpeg could not be initialized");
  return decompressor;
}

// After an error libturbojpeg's handle stays in the middle of the damaged file and would refuse the next, good one.
[[noreturn]] void give_up(Decompressor& decompressor, const char* what) {
  const std::string reason = tjGetErrorStr2(decompressor.get());
  decompressor.reset();
  throw DecodeError(str(what, ": ", reason));
}

// The smallest of the scales that libturbojpeg offers (n/8) which keeps both sides at or above `min_side`.
tjscalingfactor choose_scale(int width, int height, int min_side) {
  tjscalingfactor best{1, 1};
  if (min_side <= 0) return best;
  int count = 0;
  const tjscalingfactor* factors = tjGetScalingFactors(&count);
  for (int i = 0; i < count; ++i) {
    const tjscalingfactor f = factors[i];
    if (f.num >= f.denom || f.num * best.denom >= best.num * f.denom) continue;
    if (TJSCALED(width, f) >= min_side && TJSCALED(height, f) >= min_side) best = f;
  }
  return best;
}

// Adobe writes CMYK inverted (255 = no ink), which is what libturbojpeg hands on.
Image rgb_from_inverted_cmyk(const Image& cmyk) {
  Image out{cmyk.height, cmyk.width, 3, {}};
  out.pixels.resize(out.size());
  const size_t pixels = static_cast<size_t>(cmyk.height) * cmyk.width;
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* in = &cmyk.pixels[i * 4];
    for (size_t c = 0; c < 3; ++c) out.pixels[i * 3 + c] = static_cast<uint8_t>((in[c] * in[3] + 127) / 255);
  }
  return out;
}

struct JpegHeader {
  int width = 0, height = 0, colors = 0;
};

JpegHeader read_jpeg_header(Decompressor& decompressor, std::span<const std::byte> bytes) {
  JpegHeader header;
  int subsampling = 0;
  if (tjDecompressHeader3(decompressor.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                          &header.width, &header.height, &subsampling, &header.colors) != 0)
    give_up(decompressor, "its JPEG header cannot be read");
  return header;
}

WebPBitstreamFeatures read_webp_header(std::span<const std::byte> bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &features) != VP8_STATUS_OK)
    throw DecodeError("its WebP header cannot be read");
  return features;
}

Image decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options) {
  Decompressor& decompressor = thread_decompressor();
  const auto [width, height, colors] = read_jpeg_header(decompressor, bytes);
  const tjhandle handle = decompressor.get();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  check_size(width, height, options);
  const tjscalingfactor scale = choose_scale(width, height, options.min_decode_side);
  const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
  const int format = cmyk ? TJPF_CMYK : options.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  Image image{TJSCALED(height, scale), TJSCALED(width, scale), tjPixelSize[format], {}};
  image.pixels.resize(image.size());
  if (tjDecompress2(handle, data, bytes.size(), image.pixels.data(), image.width, 0, image.height, format,
                    TJFLAG_ACCURATEDCT) != 0) {
    const std::string reason = tjGetErrorStr2(handle);
    // Stray bytes between markers are common in real collections and harmless; missing data is not.
    if (tjGetErrorCode(handle) != TJERR_WARNING || reason.find("remature end") != std::string::npos)
      give_up(decompressor, "its JPEG data is damaged");
  }
  return cmyk ? convert_channels(rgb_from_inverted_cmyk(image), options.channels) : image;
}

Image decode_webp(std::span<const std::byte> bytes, const DecodeOptions& options) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const WebPBitstreamFeatures features = read_webp_header(bytes);
  if (features.has_animation) throw DecodeError("it is an animated WebP; only still pictures are taken");
  check_size(features.width, features.height, options);
  Image image{features.height, features.width, 3, {}};
  image.pixels.resize(image.size());
  if (WebPDecodeRGBInto(data, bytes.size(), image.pixels.data(), image.pixels.size(), image.width * 3) == nullptr)
    throw DecodeError("its WebP data is damaged");
  return convert_channels(std::move(image), options.channels);
}

constexpr const char* kNoImage = "its first bytes are not those of a JPEG, PNG, BMP, WebP, PPM or PGM image";

ImageSize size_as_stored(std::span<const std::byte> bytes) {
  const ImageHeader header = read_image_header(bytes);
  if (header.format == ImageFormat::kUnknown) throw DecodeError(kNoImage);
  if (header.format == ImageFormat::kJpeg) {
    const JpegHeader jpeg = read_jpeg_header(thread_decompressor(), bytes);
    return {jpeg.width, jpeg.height};
  }
  if (header.format == ImageFormat::kWebp) {
    const WebPBitstreamFeatures webp = read_webp_header(bytes);
    return {webp.width, webp.height};
  }
  check_size(header.width, header.height, {});
  return {static_cast<int>(header.width), static_cast<int>(header.height)};
}

Image decode_as_stored(std::span<const std::byte> bytes, const DecodeOptions& options) {
  const ImageHeader header = read_image_header(bytes);
  switch (header.format) {
    case ImageFormat::kJpeg:
      return decode_jpeg(bytes, options);
    case ImageFormat::kWebp:
      return decode_webp(bytes, options);
    case ImageFormat::kPng:
      check_size(header.width, header.height, options);
      return decode_png(bytes, options.channels);
    case ImageFormat::kBmp:
      check_size(header.width, header.height, options);
      return decode_bmp(bytes, options.channels);
    case ImageFormat::kPnm:
      check_size(header.width, header.height, options);
      return decode_pnm(bytes, options.channels);
    case ImageFormat::kUnknown:
      break;
  }
  throw DecodeError(kNoImage);
}

}  // namespace

ImageSize image_size(std::span<const std::byte> bytes, bool exif) {
  if (bytes.empty()) throw DecodeError("the file is empty");
  const ImageSize size = size_as_stored(bytes);
  return exif && exif_orientation(bytes) >= 5 ? ImageSize{size.height, size.width} : size;
}

Image decode_image(std::span<const std::byte> bytes, const DecodeOptions& options) {
  OCTET_CHECK(options.channels == 1 || options.channels == 3, options.channels);
  if (bytes.empty()) throw DecodeError("the file is empty");
  Image image = decode_as_stored(bytes, options);
  return options.exif_orientation ? oriented(std::move(image), exif_orientation(bytes)) : image;
}

Image convert_channels(Image image, int channels) {
  if (image.channels == channels) return image;
  OCTET_CHECK((image.channels == 1 && channels == 3) || (image.channels == 3 && channels == 1), image.channels, " to ",
              channels);
  Image out{image.height, image.width, channels, {}};
  out.pixels.resize(out.size());
  const size_t pixels = static_cast<size_t>(image.height) * image.width;
  for (size_t i = 0; i < pixels; ++i) {
    if (channels == 3) {
      std::fill_n(&out.pixels[i * 3], 3, image.pixels[i]);
    } else {
      const uint8_t* rgb = &image.pixels[i * 3];
      out.pixels[i] = static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
    }
  }
  return out;
}

}  // namespace octet::data
