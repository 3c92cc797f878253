// Image files of every format that is read, made in memory.
#pragma once
#include <turbojpeg.h>
#include <webp/encode.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "data/image.h"

namespace octet::data {

// A smooth picture with something in every channel; `variant` makes different ones.
inline Image test_image(int height, int width, int channels, int variant = 0) {
  Image image{height, width, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((40 + 3 * x + 2 * y + 37 * c + 11 * variant) % 256));
  return image;
}

inline std::string jpeg_bytes(const Image& image) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(handle, image.pixels.data(), image.width, 0, image.height,
                                 image.channels == 1   ? TJPF_GRAY
                                 : image.channels == 3 ? TJPF_RGB
                                                       : TJPF_CMYK,
                                 &data, &size, image.channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0);
  OCTET_CHECK(status == 0, tjGetErrorStr2(handle));
  std::string out(reinterpret_cast<char*>(data), size);
  tjFree(data);
  tjDestroy(handle);
  return out;
}

inline std::string big_endian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

inline std::string png_bytes(const Image& image) {
  const auto chunk = [](const std::string& body) {  // type and data
    const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<uint32_t>(body.size() - 4)) + body + big_endian(static_cast<uint32_t>(crc));
  };
  std::string rows;
  for (int y = 0; y < image.height; ++y)
    rows += '\0' + std::string(reinterpret_cast<const char*>(image.row(y)), image.width * image.channels);
  std::string packed(::compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const std::string header = "IHDR" + big_endian(image.width) + big_endian(image.height) + '\x08' +
                             (image.channels == 1 ? '\0' : '\x02') + std::string(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk(header) + chunk("IDAT" + packed) + chunk("IEND");
}

inline std::string pnm_bytes(const Image& image) {
  return str(image.channels == 1 ? "P5" : "P6", "\n# made by a test\n", image.width, " ", image.height, "\n255\n") +
         std::string(image.pixels.begin(), image.pixels.end());
}

// Three channels, lossless.
inline std::string webp_bytes(const Image& image) {
  uint8_t* data = nullptr;
  const size_t size = WebPEncodeLosslessRGB(image.pixels.data(), image.width, image.height, image.width * 3, &data);
  OCTET_CHECK(size > 0 && image.channels == 3);
  std::string out(reinterpret_cast<char*>(data), size);
  WebPFree(data);
  return out;
}

// Three channels: B, G, R, rows from the bottom, each filled up to a multiple of four bytes.
inline std::string bmp_bytes(const Image& image) {
  OCTET_CHECK(image.channels == 3);
  const auto little_endian = [](uint32_t v) {
    const std::string big = big_endian(v);
    return std::string(big.rbegin(), big.rend());
  };
  std::string rows;
  for (int y = image.height; y-- > 0;) {
    for (int x = 0; x < image.width; ++x)
      for (int c = 3; c-- > 0;) rows += static_cast<char>(image.row(y)[x * 3 + c]);
    rows.resize((rows.size() + 3) / 4 * 4);
  }
  const uint32_t header = 14 + 40;
  return "BM" + little_endian(header + static_cast<uint32_t>(rows.size())) + little_endian(0) + little_endian(header) +
         little_endian(40) + little_endian(image.width) + little_endian(image.height) +
         std::string("\1\0\x18\0", 4) +  // one plane of 24 bits
         std::string(24, '\0') + rows;
}

}  // namespace octet::data
