// PPM and PGM files in binary form (P6, P5), as netpbm describes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/image.h"

namespace octet::data {

struct PnmHeader {
  int channels = 0;  // 1: P5, 3: P6
  int64_t width = 0, height = 0;
  int64_t maximum = 0;  // 1 .. 65535, of two bytes a value above 255; 0 where the header is damaged behind the sizes
  size_t pixels = 0;    // where they begin
};
// Nothing where the bytes do not begin as such a file does; sizes are 0 where they are damaged. Never throws.
std::optional<PnmHeader> read_pnm_header(std::span<const std::byte> bytes);

// `channels` is 1 or 3. Values of two bytes become their upper one; those of one byte stay as they are, whatever the
// maximum. Throws DecodeError. The caller has judged the size.
Image decode_pnm(std::span<const std::byte> bytes, int channels);

}  // namespace octet::data
