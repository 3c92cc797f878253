// Windows that slide over images of any number of axes: of convolutions and pools.
#pragma once
#include <span>

#include "dense/operators.h"

namespace octet::dense {

// Where windows lie. The window at place i of an axis has its taps at i * stride - before + tap * dilation.
struct Window {
  Shape kernel, strides, dilations, before, after;  // for each axis; before and after: padding
  Shape out;                                        // how many places there are
};

// The attributes of an operation for an image and a kernel of these sizes, as ONNX defines them: kernel_shape, strides,
// dilations, pads, auto_pad and, where `may_ceil`, ceil_mode. UserError where they do not fit the image.
Window window_of(const AttributeReader& attributes, std::span<const int64_t> image, std::span<const int64_t> kernel,
                 bool may_ceil = false);

// The attributes of a ConvTranspose, whose windows lie in the output: `out` has its sizes, of which the places are
// `image`.
Window transposed_window_of(const AttributeReader& attributes, std::span<const int64_t> image,
                            std::span<const int64_t> kernel);

// Of a window whose first tap lies at `start`: the first tap on the image, and the end of those.
struct Taps {
  int64_t first = 0, end = 0;
};
Taps taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t image);

}  // namespace octet::dense
