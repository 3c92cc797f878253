// Any bytes as an image file: refused with a DecodeError, or a picture of the size and channels asked for, which the
// transforms take.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "data/augment.h"
#include "data/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet::data;
  if (size == 0) return 0;
  const int choice = data[size - 1];
  const DecodeOptions options{
      .channels = choice % 2 ? 3 : 1, .min_decode_side = choice / 2 % 4 * 8, .max_pixels = 1 << 18};
  try {
    const Image image = decode_image(std::as_bytes(std::span(data, size)), options);
    if (image.channels != options.channels || image.height < 1 || image.width < 1 ||
        int64_t{image.height} * image.width > options.max_pixels || image.pixels.size() != image.size())
      std::abort();
    constexpr ResizeMode kModes[] = {ResizeMode::kStretch, ResizeMode::kCenterCrop, ResizeMode::kRandomResizedCrop};
    const Transform transform(
        {.height = 16, .width = 16, .resize = kModes[choice / 8 % 3], .crop_padding = 2, .random_flip = true}, image);
    std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), -1);
    transform.apply(image, {.seed = size, .epoch = 0, .index = choice}, out.data());
    for (float v : out)
      if (!(v >= 0 && v <= 1)) std::abort();
  } catch (const DecodeError&) {
  }
  return 0;
}
