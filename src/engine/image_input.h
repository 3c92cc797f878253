// Inputs given as 8-bit pixels. A pixel's byte has only 256 values, so what a quantizer makes of it is a table; where
// another step reads the input, the pixels become floats first.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/plan.h"
#include "engine/step_kinds.h"

namespace octet::engine {

// N x H x W x C pixels; channel c of the tensor is float(byte at channel[c]) * scale[c] + offset[c], rounded after each
// operation. Strides are in bytes; 0 stands for no gaps.
struct ImageFormat {
  int64_t pixel_stride = 0, row_stride = 0, image_stride = 0;
  int channel[4] = {0, 1, 2, 3};
  float scale[4] = {1, 1, 1, 1}, offset[4] = {0, 0, 0, 0};
};

class ImageInput {
 public:
  // For the input `buffer` of the plan. UserError when it is no image of up to four channels or the format is
  // impossible.
  ImageInput(const Plan& plan, int buffer, const uint8_t* pixels, const ImageFormat& format);

  const uint8_t* pixels;  // may be changed between runs
  // What runs instead of step `index` of the plan, or an empty function: that step does not read this input, or needs
  // floats. It refers to this object.
  StepFunction replacement(const Plan& plan, size_t index) const;
  // The image as floats where a step needs them, otherwise nullptr.
  float* floats() { return floats_.empty() ? nullptr : floats_.data(); }
  // Fills floats().
  void convert();

 private:
  int buffer_;
  int64_t n_, c_, h_, w_;
  ImageFormat format_;
  float values_[4][256];  // of every byte
  std::vector<float> floats_;
};

}  // namespace octet::engine
