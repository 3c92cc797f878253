#include "data/network_input.h"

#include <algorithm>

#include "base/error.h"

namespace octet::data {
namespace {

std::string list(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  return out + "]";
}

bool image_depth(int64_t channels) {
  return channels == 1 || channels == 3;
}

}  // namespace

std::vector<int64_t> NetworkInput::shape(int64_t images, int64_t c, int64_t h, int64_t w) const {
  std::vector<int64_t> out = nhwc ? std::vector<int64_t>{images, h, w, c} : std::vector<int64_t>{images, c, h, w};
  if (single) out.erase(out.begin());
  return out;
}

NetworkInput read_network_input(const std::string& name, const std::vector<int64_t>& given) {
  if (given.size() != 4 && given.size() != 3)
    fail_usage("input '", name, "' is ", list(given),
               "; images are fed to inputs of the form [N, C, H, W] or [N, H, W, C]");
  const bool single = given.size() == 3;
  std::vector<int64_t> shape = given;
  if (single) shape.insert(shape.begin(), 1);
  NetworkInput in{.name = name, .batch = std::max<int64_t>(shape[0], 0), .single = single};
  in.nhwc = !image_depth(shape[1]) && image_depth(shape[3]);
  in.channels = shape[in.nhwc ? 3 : 1];
  in.height = shape[in.nhwc ? 1 : 2];
  in.width = shape[in.nhwc ? 2 : 3];
  if (in.channels >= 0 && !image_depth(in.channels))
    fail_usage("input '", name, "' is ", list(given),
               ", which is no image of 1 or 3 channels, neither as [N, C, H, W] nor as "
               "[N, H, W, C]; images have no others");
  return in;
}

void require_fit(const NetworkInput& input, int64_t channels, int64_t height, int64_t width) {
  const auto differs = [](int64_t wanted, int64_t has) { return wanted >= 0 && wanted != has; };
  if (!differs(input.channels, channels) && !differs(input.height, height) && !differs(input.width, width)) return;
  fail_usage("input '", input.name, "' takes images of ", list({input.channels, input.height, input.width}),
             " (channels, height, width), model.input of the spec makes them ", list({channels, height, width}),
             "; set model.input to fit the network");
}

void arrange(const Batch& batch, const NetworkInput& input, std::span<float> out) {
  const size_t pixels = static_cast<size_t>(batch.height) * static_cast<size_t>(batch.width);
  const auto channels = static_cast<size_t>(batch.channels);
  const size_t each = pixels * channels;
  OCTET_CHECK(batch.images.size() <= out.size() && each > 0 && out.size() % each == 0);
  if (!input.nhwc) {
    std::copy(batch.images.data(), batch.images.data() + batch.images.size(), out.begin());
  } else {
    for (size_t image = 0; image < static_cast<size_t>(batch.size); ++image) {
      const float* from = batch.images.data() + image * each;
      float* to = out.data() + image * each;
      for (size_t p = 0; p < pixels; ++p)
        for (size_t c = 0; c < channels; ++c) to[p * channels + c] = from[c * pixels + p];
    }
  }
  for (size_t at = batch.images.size(); at < out.size(); at += each)
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(at - each), each,
                out.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace octet::data
