#include "engine/kernels/float_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/float_limits.h"
#include "engine/kernels/scalar/scalar_kernels.h"

namespace octet::kernels {

namespace {

// Calls visit(f) with the operation as a function object, so that the loop over the elements is compiled for each.
template <typename Visit>
void visit_binary(BinaryOp op, Visit&& visit) {
  switch (op) {
    case BinaryOp::kAdd:
      return visit([](float a, float b) { return a + b; });
    case BinaryOp::kSub:
      return visit([](float a, float b) { return a - b; });
    case BinaryOp::kMul:
      return visit([](float a, float b) { return a * b; });
    case BinaryOp::kDiv:
      return visit([](float a, float b) { return a / b; });
    case BinaryOp::kMin:
      return visit([](float a, float b) { return lesser_or_nan(a, b); });
    case BinaryOp::kMax:
      return visit([](float a, float b) { return larger_or_nan(a, b); });
    case BinaryOp::kPow:
      return visit([](float a, float b) { return std::pow(a, b); });
    case BinaryOp::kPRelu:
      return visit([](float a, float b) { return a < 0 ? a * b : a; });
  }
}

// Rows of the innermost dimension, cut to the elements asked for.
void binary(const BinaryArgs& a, Range elements) {
  const int64_t inner = a.dims[a.rank - 1], left_step = a.a_strides[a.rank - 1], right_step = a.b_strides[a.rank - 1];
  visit_binary(a.op, [&](auto&& f) {
    for (int64_t i = elements.begin; i < elements.end;) {
      int64_t rest = i, left = 0, right = 0;
      for (int d = a.rank - 1; d >= 0; --d) {
        left += rest % a.dims[d] * a.a_strides[d];
        right += rest % a.dims[d] * a.b_strides[d];
        rest /= a.dims[d];
      }
      const int64_t count = std::min(inner - i % inner, elements.end - i);
      const float *x = a.a + left, *y = a.b + right;
      float* out = a.out + i;
      if (left_step == 1 && right_step == 1) {
        for (int64_t k = 0; k < count; ++k) out[k] = f(x[k], y[k]);
      } else {
        for (int64_t k = 0; k < count; ++k) out[k] = f(x[k * left_step], y[k * right_step]);
      }
      i += count;
    }
  });
}

void reduce(const ReduceArgs& args, Range outer) {
  const AxisArgs& a = args.shape;
  for (int64_t o = outer.begin; o < outer.end; ++o) {
    float* out = a.out + o * a.inner;
    const float* in = a.in + o * a.axis * a.inner;
    std::fill(out, out + a.inner, args.op == ReduceOp::kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (int64_t k = 0; k < a.axis; ++k)
      for (int64_t i = 0; i < a.inner; ++i) {
        const float x = in[k * a.inner + i];
        out[i] = args.op == ReduceOp::kMax ? larger_or_nan(out[i], x) : out[i] + x;
      }
    if (args.op == ReduceOp::kMean)
      for (int64_t i = 0; i < a.inner; ++i) out[i] /= static_cast<float>(a.axis);
  }
}

void arg_max(const ArgMaxArgs& a, Range outer) {
  for (int64_t o = outer.begin; o < outer.end; ++o)
    for (int64_t i = 0; i < a.inner; ++i) {
      const float* in = a.in + o * a.axis * a.inner + i;
      int64_t best = 0;
      for (int64_t k = 1; k < a.axis; ++k) {
        const float x = in[k * a.inner], top = in[best * a.inner];
        if (x > top || (a.select_last && x == top)) best = k;
      }
      a.out[o * a.inner + i] = best;
    }
}

void scale_shift(const ScaleShiftArgs& a, Range pixels) {
  for (int64_t p = pixels.begin; p < pixels.end; ++p)
    for (int64_t c = 0; c < a.c; ++c) a.out[p * a.c + c] = a.in[p * a.c + c] * a.scale[c] + a.shift[c];
}

// Taps of a window that lie in [low, high).
Range taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t low, int64_t high) {
  Range taps{0, kernel};
  while (taps.begin < taps.end && start + taps.begin * dilation < low) ++taps.begin;
  while (taps.end > taps.begin && start + (taps.end - 1) * dilation >= high) --taps.end;
  return taps;
}

void pool(const FloatPoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  const bool max = a.kind == FloatPoolKind::kMax;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out_w; ++x) {
      const int64_t y0 = r % a.out_h * p.stride_h - p.pad_top, x0 = x * p.stride_w - p.pad_left;
      const Range ky = taps_inside(y0, p.dilation_h, p.kernel_h, 0, a.in_h);
      const Range kx = taps_inside(x0, p.dilation_w, p.kernel_w, 0, a.in_w);
      const Range all_y = taps_inside(y0, p.dilation_h, p.kernel_h, -p.pad_top, a.in_h + p.pad_bottom);
      const Range all_x = taps_inside(x0, p.dilation_w, p.kernel_w, -p.pad_left, a.in_w + p.pad_right);
      float* out = a.out + (r * a.out_w + x) * a.c;
      std::fill(out, out + a.c, max ? -std::numeric_limits<float>::infinity() : 0.0f);
      for (int64_t i = ky.begin; i < ky.end; ++i)
        for (int64_t j = kx.begin; j < kx.end; ++j) {
          const float* in =
              a.in + ((r / a.out_h * a.in_h + y0 + i * p.dilation_h) * a.in_w + x0 + j * p.dilation_w) * a.c;
          for (int64_t c = 0; c < a.c; ++c) out[c] = max ? larger_or_nan(out[c], in[c]) : out[c] + in[c];
        }
      if (max) continue;
      const int64_t count = a.count_include_pad ? (all_y.end - all_y.begin) * (all_x.end - all_x.begin)
                                                : (ky.end - ky.begin) * (kx.end - kx.begin);
      for (int64_t c = 0; c < a.c; ++c) out[c] /= static_cast<float>(std::max<int64_t>(count, 1));
    }
}

// What has no weight does not count, be it infinite.
float mix(float a, float b, float weight) {
  return weight == 0 ? a : a * (1 - weight) + b * weight;
}

void resize(const FloatResizeArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y = r % a.out_h;
    const float* image = a.in + r / a.out_h * a.in_h * a.in_w * a.c;
    const float* low = image + a.y_low[y] * a.in_w * a.c;
    const float* high = image + a.y_high[y] * a.in_w * a.c;
    const float wy = a.y_weight[y];
    for (int64_t x = 0; x < a.out_w; ++x) {
      const int64_t x0 = a.x_low[x] * a.c, x1 = a.x_high[x] * a.c;
      const float wx = a.x_weight[x];
      float* out = a.out + (r * a.out_w + x) * a.c;
      for (int64_t c = 0; c < a.c; ++c) {
        const float top = mix(low[x0 + c], low[x1 + c], wx);
        const float bottom = mix(high[x0 + c], high[x1 + c], wx);
        out[c] = mix(top, bottom, wy);
      }
    }
  }
}

void lrn(const LrnArgs& a, Range pixels) {
  for (int64_t p = pixels.begin; p < pixels.end; ++p) {
    const float* in = a.in + p * a.c;
    for (int64_t c = 0; c < a.c; ++c) {
      // ONNX: channels c - floor((size - 1) / 2) to c + ceil((size - 1) / 2).
      const int64_t first = std::max<int64_t>(0, c - (a.size - 1) / 2);
      const int64_t last = std::min(a.c - 1, c + a.size / 2);
      float sum = 0;
      for (int64_t k = first; k <= last; ++k) sum += in[k] * in[k];
      a.out[p * a.c + c] = in[c] / std::pow(a.bias + a.alpha / static_cast<float>(a.size) * sum, a.beta);
    }
  }
}

}  // namespace

void add_scalar_float_ops(KernelTable& table) {
  table.float_pool = {pool};
  table.binary = {binary};
  table.reduce = {reduce};
  table.arg_max = {arg_max};
  table.scale_shift = {scale_shift};
  table.float_resize = {resize};
  table.lrn = {lrn};
}

}  // namespace octet::kernels
