#include "engine/image_input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "numerics/quantize.h"

namespace octet::engine {
namespace {

// The codes of every byte in every channel.
using CodeTables = std::array<std::array<uint8_t, 256>, 4>;

bool reads(const Step& step, int buffer) {
  return std::find(step.inputs.begin(), step.inputs.end(), buffer) != step.inputs.end();
}

// Rows counted over n * h. Channels beyond `channels` get the zero point, as a quantizer leaves them.
void pixels_to_codes(const uint8_t* pixels, const ImageFormat& f, const CodeTables& tables, int64_t channels,
                     const kernels::QTensor& out, kernels::Range rows) {
  const auto pad = static_cast<uint8_t>(out.zero_point);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* from = pixels + r / out.h * f.image_stride + r % out.h * f.row_stride;
    uint8_t* to = out.data + r / out.h * out.image_stride + r % out.h * out.row_stride;
    if (channels == 3) {
      const int c0 = f.channel[0], c1 = f.channel[1], c2 = f.channel[2];
      for (int64_t x = 0; x < out.w; ++x, from += f.pixel_stride, to += out.c_pitch) {
        const uint8_t codes[4] = {tables[0][from[c0]], tables[1][from[c1]], tables[2][from[c2]], pad};
        std::memcpy(to, codes, 4);
      }
      continue;
    }
    for (int64_t x = 0; x < out.w; ++x, from += f.pixel_stride, to += out.c_pitch)
      for (int64_t c = 0; c < 4; ++c) to[c] = c < channels ? tables[c][from[f.channel[c]]] : pad;
  }
}

}  // namespace

ImageInput::ImageInput(const Plan& plan, int buffer, const uint8_t* image, const ImageFormat& format)
    : pixels(image), buffer_(buffer), format_(format) {
  const Buffer& b = plan.buffers[buffer];
  require(b.shape.size() == 4 && b.shape[1] <= 4, "input '", b.name,
          "' is no image of up to four channels; bind its floats instead");
  n_ = b.n(), c_ = b.c(), h_ = b.h(), w_ = b.w();
  ImageFormat& f = format_;
  for (const auto& [stride, what] :
       {std::pair(f.pixel_stride, "pixels"), std::pair(f.row_stride, "rows"), std::pair(f.image_stride, "images")})
    require(stride >= 0, "input '", b.name, "': the bytes between its ", what, " are ", stride,
            ", and cannot be negative; turn the image over first");
  if (f.pixel_stride == 0) f.pixel_stride = c_;
  if (f.row_stride == 0) f.row_stride = w_ * f.pixel_stride;
  if (f.image_stride == 0) f.image_stride = h_ * f.row_stride;
  for (int64_t c = 0; c < c_; ++c) {
    require(f.channel[c] >= 0 && f.channel[c] < std::max<int64_t>(f.pixel_stride, 1), "input '", b.name, "': channel ",
            c, " cannot be byte ", f.channel[c], " of a pixel of ", f.pixel_stride, " bytes");
    require(std::isfinite(f.scale[c]) && std::isfinite(f.offset[c]), "input '", b.name,
            "': scale or offset of channel ", c, " is not finite");
    for (int v = 0; v < 256; ++v) values_[c][v] = static_cast<float>(v) * f.scale[c] + f.offset[c];
  }
  const bool aliased = std::any_of(plan.buffers.begin(), plan.buffers.end(),
                                   [buffer](const Buffer& other) { return other.alias_of == buffer; });
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (aliased || (reads(plan.steps[i], buffer) && !replacement(plan, i))) floats_.resize(b.elements());
}

StepFunction ImageInput::replacement(const Plan& plan, size_t index) const {
  const Step& step = plan.steps[index];
  if (step.kind != "quantize" || !reads(step, buffer_)) return {};
  const int out = step.outputs[0];
  const Buffer& codes = plan.buffers[out];
  if (codes.shape != plan.buffers[buffer_].shape || kernels::channel_pitch(codes.c()) != 4) return {};
  const numerics::QuantParams params{
      .scale = codes.scale, .zero_point = codes.zero_point, .qmin = codes.code_min, .qmax = codes.code_max};
  const auto tables = std::make_shared<CodeTables>();
  for (int64_t c = 0; c < c_; ++c)
    for (int v = 0; v < 256; ++v) (*tables)[c][v] = static_cast<uint8_t>(numerics::quantize(values_[c][v], params));
  return [this, tables, out](const Memory& m, int part, int parts) {
    pixels_to_codes(pixels, format_, *tables, c_, m.q(out), share_of(n_ * h_, part, parts));
  };
}

void ImageInput::convert() {
  float* to = floats_.data();
  for (int64_t n = 0; n < n_; ++n)
    for (int64_t c = 0; c < c_; ++c)
      for (int64_t y = 0; y < h_; ++y) {
        const uint8_t* from = pixels + n * format_.image_stride + y * format_.row_stride + format_.channel[c];
        for (int64_t x = 0; x < w_; ++x, from += format_.pixel_stride) *to++ = values_[c][*from];
      }
}

}  // namespace octet::engine
