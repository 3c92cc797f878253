// Any bytes behind the first ones of a BMP, PPM or PGM file: refused with a DecodeError, or a picture of the size that
// the header announces.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "data/bmp.h"
#include "data/image.h"
#include "data/image_header.h"
#include "data/pnm.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet::data;
  if (size < 2) return 0;
  const int choice = data[0];
  const std::string file = (choice & 1   ? "BM"
                            : choice & 2 ? "P5 "
                                         : "P6 ") +
                           std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto bytes = std::as_bytes(std::span(file));
  const ImageHeader header = read_image_header(bytes);
  if (header.width < 1 || header.height < 1 || header.width > (1 << 16) / header.height) return 0;
  const int channels = choice & 4 ? 3 : 1;
  try {
    const Image image = choice & 1 ? decode_bmp(bytes, channels) : decode_pnm(bytes, channels);
    if (image.channels != channels || image.width != header.width || image.height != header.height ||
        image.pixels.size() != image.size())
      std::abort();
  } catch (const DecodeError&) {
  }
  return 0;
}
