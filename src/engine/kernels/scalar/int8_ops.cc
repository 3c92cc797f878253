#include <algorithm>
#include <cstring>

#include "engine/kernels/scalar/scalar_kernels.h"
#include "numerics/quantize.h"

namespace octet::kernels {

FloatStrides nchw_strides(int64_t h, int64_t w, int64_t c) {
  return {c * h * w, w, 1, h * w};
}
FloatStrides nhwc_strides(int64_t h, int64_t w, int64_t c) {
  return {c * h * w, w * c, c, 1};
}

namespace {

// Row r (over n * h) of a tensor.
uint8_t* row_of(const QTensor& t, int64_t r) {
  return t.data + r / t.h * t.image_stride + r % t.h * t.row_stride;
}

// The part of the window at output position `out` that lies inside [low, high): taps [first, last).
Range taps_inside(int64_t out, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel, int64_t low,
                  int64_t high) {
  const int64_t start = out * stride - pad;
  Range taps{0, kernel};
  while (taps.begin < taps.end && start + taps.begin * dilation < low) ++taps.begin;
  while (taps.end > taps.begin && start + (taps.end - 1) * dilation >= high) --taps.end;
  return taps;
}

void max_pool(const MaxPoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t n = r / a.out.h, y = r % a.out.h;
    const Range ky = taps_inside(y, p.stride_h, p.pad_top, p.dilation_h, p.kernel_h, 0, a.in.h);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const Range kx = taps_inside(x, p.stride_w, p.pad_left, p.dilation_w, p.kernel_w, 0, a.in.w);
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      for (int64_t c = 0; c < a.out.c; ++c) {
        uint8_t best = 0;
        for (int64_t i = ky.begin; i < ky.end; ++i)
          for (int64_t j = kx.begin; j < kx.end; ++j)
            best = std::max(
                best,
                a.in.data[n * a.in.image_stride + (y * p.stride_h - p.pad_top + i * p.dilation_h) * a.in.row_stride +
                          (x * p.stride_w - p.pad_left + j * p.dilation_w) * a.in.c_pitch + c]);
        out[c] = best;
      }
    }
  }
}

void average_pool(const AveragePoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t n = r / a.out.h, y = r % a.out.h;
    const Range ky = taps_inside(y, p.stride_h, p.pad_top, p.dilation_h, p.kernel_h, 0, a.in.h);
    const Range all_y =
        taps_inside(y, p.stride_h, p.pad_top, p.dilation_h, p.kernel_h, -p.pad_top, a.in.h + p.pad_bottom);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const Range kx = taps_inside(x, p.stride_w, p.pad_left, p.dilation_w, p.kernel_w, 0, a.in.w);
      const Range all_x =
          taps_inside(x, p.stride_w, p.pad_left, p.dilation_w, p.kernel_w, -p.pad_left, a.in.w + p.pad_right);
      const int64_t inside = (ky.end - ky.begin) * (kx.end - kx.begin);
      const int64_t count = a.count_include_pad ? (all_y.end - all_y.begin) * (all_x.end - all_x.begin) : inside;
      const float m =
          numerics::average_multiplier(a.scale_in, static_cast<int32_t>(std::max<int64_t>(count, 1)), a.scale_out);
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      for (int64_t c = 0; c < a.out.c; ++c) {
        int32_t sum = 0;
        for (int64_t i = ky.begin; i < ky.end; ++i)
          for (int64_t j = kx.begin; j < kx.end; ++j)
            sum += a.in.data[n * a.in.image_stride + (y * p.stride_h - p.pad_top + i * p.dilation_h) * a.in.row_stride +
                             (x * p.stride_w - p.pad_left + j * p.dilation_w) * a.in.c_pitch + c] -
                   a.in.zero_point;
        out[c] = static_cast<uint8_t>(numerics::requantize(sum, m, a.out.zero_point, a.lo, a.hi));
      }
    }
  }
}

void global_average(const GlobalAverageArgs& a, Range blocks) {
  const int64_t per_image = padded_channels(a.in.c) / kChannelBlock;
  const int32_t count = static_cast<int32_t>(a.in.h * a.in.w);
  const float m = numerics::average_multiplier(a.scale_in, count, a.out.data ? a.scale_out : 1.0f);
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const int64_t n = b / per_image, c0 = b % per_image * kChannelBlock;
    for (int64_t c = c0; c < std::min(c0 + kChannelBlock, a.in.c); ++c) {
      int32_t sum = 0;
      for (int64_t y = 0; y < a.in.h; ++y)
        for (int64_t x = 0; x < a.in.w; ++x)
          sum += a.in.data[n * a.in.image_stride + y * a.in.row_stride + x * a.in.c_pitch + c] - a.in.zero_point;
      if (a.out.data) {
        a.out.data[n * a.out.image_stride + c] =
            static_cast<uint8_t>(numerics::requantize(sum, m, a.out.zero_point, a.lo, a.hi));
      } else {
        a.float_out[n * a.in.c + c] = static_cast<float>(sum) * m;
      }
    }
  }
}

// Second operands may have one pixel for a whole image and one image for a whole batch.
const uint8_t* broadcast_pixel(const QTensor& b, int64_t n, int64_t y, int64_t x) {
  const uint8_t* image = b.data + (b.n == 1 ? 0 : n) * b.image_stride;
  return b.h == 1 && b.w == 1 ? image : image + y * b.row_stride + x * b.c_pitch;
}

void add(const AddArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out.w; ++x) {
      const uint8_t* left = row_of(a.a, r) + x * a.a.c_pitch;
      const uint8_t* right = broadcast_pixel(a.b, r / a.out.h, r % a.out.h, x);
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      for (int64_t c = 0; c < a.out.c; ++c) {
        const int32_t q = numerics::add_quantized(left[c] - a.a.zero_point, a.a_multiplier, right[c] - a.b.zero_point,
                                                  a.b_multiplier, a.out.zero_point, a.lo, a.hi);
        out[c] = a.table ? a.table[q] : static_cast<uint8_t>(q);
      }
    }
}

void mul(const MulArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out.w; ++x) {
      const uint8_t* left = row_of(a.a, r) + x * a.a.c_pitch;
      const uint8_t* right = broadcast_pixel(a.b, r / a.out.h, r % a.out.h, x);
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      for (int64_t c = 0; c < a.out.c; ++c) {
        const int32_t product = (left[c] - a.a.zero_point) * (right[c] - a.b.zero_point);
        out[c] = static_cast<uint8_t>(numerics::requantize(product, a.multiplier, a.out.zero_point, a.lo, a.hi));
      }
    }
}

void copy(const CopyArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out.w; ++x) {
      const uint8_t* in = row_of(a.in, r) + x * a.in.c_pitch;
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      if (a.table == nullptr) {
        std::memcpy(out, in, static_cast<size_t>(a.out.c));
      } else {
        for (int64_t c = 0; c < a.out.c; ++c) out[c] = a.table[in[c]];
      }
    }
}

void scale_shift_codes(const ScaleShiftCodesArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out.w; ++x) {
      const uint8_t* in = row_of(a.in, r) + x * a.in.c_pitch;
      uint8_t* out = row_of(a.out, r) + x * a.out.c_pitch;
      for (int64_t c = 0; c < a.out.c; ++c)
        out[c] = static_cast<uint8_t>(
            numerics::round_to_int(static_cast<float>(in[c]) * a.multiplier[c] + a.offset[c], a.lo, a.hi, a.lo));
    }
}

void resize_nearest(const ResizeNearestArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = a.in.data + r / a.out.h * a.in.image_stride + a.y_index[r % a.out.h] * a.in.row_stride;
    uint8_t* out = row_of(a.out, r);
    for (int64_t x = 0; x < a.out.w; ++x)
      std::memcpy(out + x * a.out.c_pitch, in + a.x_index[x] * a.in.c_pitch, static_cast<size_t>(a.out.c));
  }
}

void channel_shuffle(const ChannelShuffleArgs& a, Range rows) {
  const int64_t each = a.in.c / a.groups;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    uint8_t* out = row_of(a.out, r);
    for (int64_t x = 0; x < a.out.w; ++x)
      for (int64_t i = 0; i < each; ++i)
        for (int64_t g = 0; g < a.groups; ++g)
          out[x * a.out.c_pitch + i * a.groups + g] = in[x * a.in.c_pitch + g * each + i];
  }
}

void quantize(const QuantizeArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = a.in + r / a.out.h * a.in_strides.n + r % a.out.h * a.in_strides.h;
    uint8_t* out = row_of(a.out, r);
    const int64_t written = a.out.c_pitch == 4 ? 4 : a.out.c;
    for (int64_t x = 0; x < a.out.w; ++x)
      for (int64_t c = 0; c < written; ++c)
        out[x * a.out.c_pitch + c] =
            c < a.out.c
                ? static_cast<uint8_t>(numerics::quantize(in[x * a.in_strides.w + c * a.in_strides.c], a.params))
                : static_cast<uint8_t>(a.params.zero_point);
  }
}

void dequantize(const DequantizeArgs& a, Range rows) {
  const numerics::QuantParams params{a.scale, a.in.zero_point, 0, 255};
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    float* out = a.out + r / a.in.h * a.out_strides.n + r % a.in.h * a.out_strides.h;
    for (int64_t x = 0; x < a.in.w; ++x)
      for (int64_t c = 0; c < a.in.c; ++c)
        out[x * a.out_strides.w + c * a.out_strides.c] = numerics::dequantize(in[x * a.in.c_pitch + c], params);
  }
}

}  // namespace

void add_scalar_int8_ops(KernelTable& table) {
  table.max_pool = {max_pool};
  table.average_pool = {average_pool};
  table.global_average = {global_average};
  table.add = {add};
  table.mul = {mul};
  table.copy = {copy};
  table.scale_shift_codes = {scale_shift_codes};
  table.resize_nearest = {resize_nearest};
  table.channel_shuffle = {channel_shuffle};
  table.quantize = {quantize};
  table.dequantize = {dequantize};
}

}  // namespace octet::kernels
