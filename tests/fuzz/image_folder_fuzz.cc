// Any bytes as an image file: refused with a DecodeError, or a picture of the size and channels asked for, which the
// transforms take. Starts from small pictures of every format, which it makes itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/image.h"
#include "image_bytes.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Now and then a new picture instead of the bytes given, since no mutation of one format leads to another.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace octet::data;
  std::minstd_rand rng(seed);
  if (size < 16 || rng() % 256 == 0) {
    const Image image = test_image(1 + rng() % 12, 1 + rng() % 12, rng() % 2 ? 3 : 1, rng() % 100);
    const Image color = convert_channels(image, 3);
    const std::string files[] = {jpeg_bytes(image), png_bytes(image), pnm_bytes(image), bmp_bytes(color),
                                 webp_bytes(color)};
    const std::string& file = files[rng() % std::size(files)];
    size = std::min(file.size(), max_size);
    std::copy_n(file.begin(), size, data);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet::data;
  if (size == 0) return 0;
  const int choice = data[size - 1];
  const DecodeOptions options{.channels = choice % 2 ? 3 : 1,
                              .min_decode_side = choice / 2 % 4 * 8,
                              .exif_orientation = choice >= 128,
                              .max_pixels = 1 << 18};
  try {
    const Image image = decode_image(std::as_bytes(std::span(data, size)), options);
    if (image.channels != options.channels || image.height < 1 || image.width < 1 ||
        int64_t{image.height} * image.width > options.max_pixels || image.pixels.size() != image.size())
      std::abort();
    constexpr ResizeMode kModes[] = {ResizeMode::kStretch, ResizeMode::kCenterCrop, ResizeMode::kRandomResizedCrop};
    const Transform transform({.height = 16,
                               .width = 16,
                               .mode = kModes[choice / 8 % 3],
                               .interpolation = enum_names(Interpolation{})[size % 3].value,
                               .central_fraction = size % 2 ? 1 : 0.875,
                               .crop_padding = 2,
                               .flip = true,
                               .order = image.channels == 3 && size % 5 == 0 ? ChannelOrder::kBgr : ChannelOrder::kRgb},
                              image);
    std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), -1);
    const Geometry geometry = transform.choose(image.height, image.width, {.seed = size, .epoch = 0, .index = choice});
    transform.paint(image, geometry, out.data());
    for (float v : out)
      if (!(v >= 0 && v <= 1)) std::abort();
  } catch (const DecodeError&) {
  }
  return 0;
}
