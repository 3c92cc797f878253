// The Epilogue of int8_conv.h for blocks of 16 channels.
#pragma once
#include "engine/kernels/float_limits.h"
#include "engine/kernels/generic/vector.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

// The epilogue of one convolution, made once for each call of a kernel. A residual may be the output itself: a pixel is
// read before it is written.
class Finish {
 public:
  explicit Finish(const Epilogue& e)
      : limits_(e.lo, e.hi, e.out.zero_point), mid_(e.mid_lo, e.mid_hi, e.mid_zero_point), e_(e) {}

  // acc: of 16 channels from `channel` on, of pixel (n, y, x).
  void operator()(const Ints (&acc)[4], int64_t channel, int64_t n, int64_t y, int64_t x) const {
    Floats v[4];
    for (int i = 0; i < 4; ++i) v[i] = floats(acc[i]) * load<Floats>(e_.multiplier + channel + 4 * i);
    if (e_.out.data == nullptr) return write_floats(v, channel, (n * e_.out.h + y) * e_.out.w + x);
    if (e_.residual.data) add_residual(v, at(e_.residual, channel, n, y, x));
    if (e_.function.has_tails())
      for (Floats& f : v) f = draw_in(f, e_.function.tails);
    const Ints rounded[4] = {limits_(v[0]), limits_(v[1]), limits_(v[2]), limits_(v[3])};
    Codes codes;
    if (e_.function) {
      codes = apply(e_.function, rounded);
    } else {
      codes = narrow(rounded[0], rounded[1], rounded[2], rounded[3]);
      look_up(codes, e_.table);
    }
    store_codes(at(e_.out, channel, n, y, x), codes, e_.out.c_pitch);
  }

 private:
  static Floats draw_in(Floats v, float tails) {
    const Floats inner = all(static_cast<float>(kInnerSteps)), near = clamp(v, -inner, inner);
    return near + (v - near) * all(tails);
  }
  static Codes apply(const CodeFunction& f, const Ints (&steps)[4]) {
    Codes codes;
    if (f.lines) {
      for (int i = 0; i < 16; ++i) {
        const int32_t step = steps[i / 4][i % 4];
        const uint8_t* line = f.lines + ((step >> 10) & (kLineCells - 1));
        const auto place = static_cast<uint8_t>((step >> 3) + line[2 * kLineCells]);
        codes[i] = static_cast<uint8_t>(line[0] + (static_cast<int8_t>(line[kLineCells]) * place >> f.line_shift));
      }
      return codes;
    }
    for (int i = 0; i < 16; ++i) {
      const int32_t step = steps[i / 4][i % 4], cell = step >> 8;
      const uint8_t* column = f.rows + (cell & 255);
      const int32_t place = cell < f.turn ? 255 - (step & 255) : step & 255;
      int32_t code = column[0];
      for (int32_t r = 1; r <= f.rises; ++r) code += place > column[r * 256];
      codes[i] = static_cast<uint8_t>(code);
    }
    return codes;
  }
  static uint8_t* at(const QTensor& t, int64_t channel, int64_t n, int64_t y, int64_t x) {
    return t.data + n * t.image_stride + y * t.row_stride + x * t.c_pitch + channel;
  }

  void add_residual(Floats (&v)[4], const uint8_t* residual) const {
    const Words first = words(residual), second = words(residual + 8);
    const Ints codes[4] = {low(first), high(first), low(second), high(second)};
    for (int i = 0; i < 4; ++i) {
      if (e_.rounds_twice) v[i] = floats(mid_(v[i]) - mid_.zero_point) * all(e_.mid_multiplier);
      v[i] = v[i] + floats(codes[i] - all(e_.residual.zero_point)) * all(e_.residual_multiplier);
    }
  }

  // `index`: of the pixel in dense float tensors.
  void write_floats(const Floats (&v)[4], int64_t channel, int64_t index) const {
    const int64_t begin = index * e_.out.c + channel, left = e_.out.c - channel;
    for (int64_t i = 0; i < (left < kChannelBlock ? left : kChannelBlock); ++i) {
      float f = v[i / 4][i % 4];
      if (e_.float_residual) f = f + e_.float_residual[begin + i];
      e_.float_out[begin + i] = limited(f, e_.float_lo, e_.float_hi);
    }
  }

  const Limits limits_, mid_;
  const Epilogue& e_;
};

}  // namespace
}  // namespace octet::kernels
