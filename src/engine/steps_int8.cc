// Steps on codes: everything but convolutions (steps_conv.cc).
#include <algorithm>
#include <cmath>

#include "engine/step_reader.h"
#include "engine/steps_block.h"
#include "engine/steps_conv.h"
#include "engine/steps_product.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
using kernels::Range;

void same_image(const StepReader& r, const Buffer& a, const Buffer& b) {
  r.check(a.n() == b.n() && a.h() == b.h() && a.w() == b.w() && a.c() == b.c(), "'", a.name, "' and '", b.name,
          "' differ in shape");
}

int64_t rows_of(const Buffer& b) {
  return b.n() * b.h();
}

// A step that can make any rows of its output; `window` says which rows of its input it needs.
PreparedStep by_rows(std::function<void(const Memory&, int, Range)> run, int64_t rows, Isa isa, RowWork window = {}) {
  PreparedStep step{[run, rows](const Memory& m, int part, int parts) { run(m, part, share_of(rows, part, parts)); },
                    isa};
  window.run = std::move(run);
  step.rows = std::move(window);
  return step;
}

PreparedStep max_pool(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.codes_out();
  kernels::MaxPoolArgs base{.window = read_pool_window(r, in, out)};
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(out);
  const auto run = [=, kernel = table.max_pool](const Memory& m, int, Range some) {
    kernels::MaxPoolArgs args = base;
    args.in = m.q(x), args.out = m.q(y);
    kernel(args, some);
  };
  const kernels::PoolWindow& w = base.window;
  return by_rows(run, rows, table.max_pool.isa, {{}, w.stride_h, (w.kernel_h - 1) * w.dilation_h + 1, w.pad_top});
}

struct Limits {
  int32_t lo, hi;
};
Limits limits(const StepReader& r) {
  const int64_t lo = r.integer_or("lo", 0, 0, 255);
  return {static_cast<int32_t>(lo), static_cast<int32_t>(r.integer_or("hi", 255, lo, 255))};
}

PreparedStep average_pool(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.codes_out();
  const auto [lo, hi] = limits(r);
  kernels::AveragePoolArgs base{.window = read_pool_window(r, in, out),
                                .count_include_pad = r.integer_or("count_include_pad", 0, 0, 1) == 1,
                                .scale_in = in.scale,
                                .scale_out = out.scale,
                                .lo = lo,
                                .hi = hi};
  r.check(base.window.kernel_h * base.window.kernel_w <= 1 << 22, "the window is too large for an exact sum");
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(out);
  return {[=, kernel = table.average_pool](const Memory& m, int part, int parts) {
            kernels::AveragePoolArgs args = base;
            args.in = m.q(x), args.out = m.q(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.average_pool.isa};
}

PreparedStep global_average(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.out_buffer();
  const auto [lo, hi] = limits(r);
  r.check(out.n() == in.n() && out.elements() == in.n() * in.c(), "the output is not one value per channel");
  r.check(in.h() * in.w() <= 1 << 22, "the image is too large for an exact sum");
  const bool to_float = out.layout != Layout::kCodes;
  if (to_float) r.float_out();
  kernels::GlobalAverageArgs base{.scale_in = in.scale, .scale_out = to_float ? 1.0f : out.scale, .lo = lo, .hi = hi};
  const int x = r.in(0), y = r.out();
  const int64_t blocks = in.n() * (kernels::padded_channels(in.c()) / kernels::kChannelBlock);
  return {[=, kernel = table.global_average](const Memory& m, int part, int parts) {
            kernels::GlobalAverageArgs args = base;
            args.in = m.q(x);
            if (to_float)
              args.float_out = m.f(y);
            else
              args.out = m.q(y);
            kernel(args, share_of(blocks, part, parts));
          },
          table.global_average.isa};
}

// `b` has the shape of `a`, or one pixel, or one image.
void check_broadcast(const StepReader& r, const Buffer& a, const Buffer& b) {
  r.check(b.c() == a.c() && (b.n() == a.n() || b.n() == 1) &&
              ((b.h() == a.h() && b.w() == a.w()) || (b.h() == 1 && b.w() == 1)),
          "'", b.name, "' cannot be broadcast to '", a.name, "'");
}

PreparedStep add(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(2, 1);
  same_image(r, r.codes_in(0), r.codes_out());
  check_broadcast(r, r.codes_in(0), r.codes_in(1));
  const auto [lo, hi] = limits(r);
  kernels::AddArgs base{
      .a_multiplier = r.real("a_multiplier"), .b_multiplier = r.real("b_multiplier"), .lo = lo, .hi = hi};
  if (r.has_constant("table")) base.table = r.constant<uint8_t>("table", 256).data();
  const int a = r.in(0), b = r.in(1), y = r.out();
  const int64_t rows = rows_of(r.out_buffer());
  return {[=, kernel = table.add](const Memory& m, int part, int parts) {
            kernels::AddArgs args = base;
            args.a = m.q(a), args.b = m.q(b), args.out = m.q(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.add.isa};
}

PreparedStep mul(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(2, 1);
  same_image(r, r.codes_in(0), r.codes_out());
  check_broadcast(r, r.codes_in(0), r.codes_in(1));
  const auto [lo, hi] = limits(r);
  const kernels::MulArgs base{.multiplier = r.real("multiplier"), .lo = lo, .hi = hi};
  const int a = r.in(0), b = r.in(1), y = r.out();
  const int64_t rows = rows_of(r.out_buffer());
  return {[=, kernel = table.mul](const Memory& m, int part, int parts) {
            kernels::MulArgs args = base;
            args.a = m.q(a), args.b = m.q(b), args.out = m.q(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.mul.isa};
}

// A window of n x h x w x c codes is copied from (in_h, in_w, in_c) to (out_h, out_w, out_c), there to every
// (step_h)th row and (step_w)th column; "fill" first sets the whole output to the zero point.
PreparedStep copy(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.codes_out();
  kernels::CopyArgs base;
  if (r.has_constant("table")) base.table = r.constant<uint8_t>("table", 256).data();
  struct Window {
    int64_t n, h, w, c;
  };
  const Window size{r.integer_or("size_n", in.n(), 1, in.n()), r.integer_or("size_h", in.h(), 1, in.h()),
                    r.integer_or("size_w", in.w(), 1, in.w()), r.integer_or("size_c", in.c(), 1, in.c())};
  const auto start = [&](const char* key, int64_t whole, int64_t part, int64_t step = 1) {
    r.check(part <= (whole - 1) / step + 1, "the window is larger than a buffer");
    return r.integer_or(key, 0, 0, whole - 1 - (part - 1) * step);
  };
  const int64_t step_h = r.integer_or("step_h", 1, 1, out.h()), step_w = r.integer_or("step_w", 1, 1, out.w());
  const Window from{start("in_n", in.n(), size.n), start("in_h", in.h(), size.h), start("in_w", in.w(), size.w),
                    start("in_c", in.c(), size.c)};
  const Window to{start("out_n", out.n(), size.n), start("out_h", out.h(), size.h, step_h),
                  start("out_w", out.w(), size.w, step_w), start("out_c", out.c(), size.c)};
  const int x = r.in(0), y = r.out();
  const auto window = [size](kernels::QTensor t, const Window& at) {
    t.data += at.n * t.image_stride + at.h * t.row_stride + at.w * t.c_pitch + at.c;
    t.n = size.n, t.h = size.h, t.w = size.w, t.c = size.c;
    return t;
  };
  return {[=, kernel = table.copy](const Memory& m, int part, int parts) {
            kernels::CopyArgs args = base;
            args.in = window(m.q(x), from), args.out = window(m.q(y), to);
            args.out.row_stride *= step_h, args.out.c_pitch *= step_w;
            kernel(args, share_of(size.n * size.h, part, parts));
          },
          table.copy.isa};
}

// Every channel has a table of its own: constant "tables" [c][256].
PreparedStep channel_tables(const Plan& plan, const Step& step, const KernelTable&) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  same_image(r, r.codes_in(0), r.codes_out());
  const uint8_t* tables = r.constant<uint8_t>("tables", r.in_buffer(0).c() * 256).data();
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(r.out_buffer());
  return {[=](const Memory& m, int part, int parts) {
            const kernels::QTensor &in = m.q(x), &out = m.q(y);
            const Range share = share_of(rows, part, parts);
            for (int64_t row = share.begin; row < share.end; ++row) {
              const uint8_t* from = in.data + row / in.h * in.image_stride + row % in.h * in.row_stride;
              uint8_t* to = out.data + row / out.h * out.image_stride + row % out.h * out.row_stride;
              for (int64_t w = 0; w < in.w; ++w, from += in.c_pitch, to += out.c_pitch)
                for (int64_t c = 0; c < in.c; ++c) to[c] = tables[c * 256 + from[c]];
            }
          },
          Isa::kScalar};
}

// A line through the codes for each channel.
PreparedStep scale_shift_codes(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer& out = r.codes_out();
  same_image(r, r.codes_in(0), out);
  const auto multiplier = r.constant<float>("multiplier", out.c()), offset = r.constant<float>("offset", out.c());
  for (size_t c = 0; c < multiplier.size(); ++c)
    r.check(std::fabs(multiplier[c]) * 255 + std::fabs(offset[c]) < kernels::kMostOfALine, "channel ", c,
            " has the line ", multiplier[c], " * code + ", offset[c], ", which leaves the numbers that can be rounded");
  const kernels::ScaleShiftCodesArgs base{.multiplier = multiplier.data(),
                                          .offset = offset.data(),
                                          .lo = static_cast<int32_t>(r.integer("lo", 0, 255)),
                                          .hi = static_cast<int32_t>(r.integer("hi", 0, 255))};
  r.check(base.lo <= base.hi, "its codes are from ", base.lo, " to ", base.hi);
  const int x = r.in(0), y = r.out();
  const auto run = [=, kernel = table.scale_shift_codes](const Memory& m, int, Range some) {
    kernels::ScaleShiftCodesArgs args = base;
    args.in = m.q(x), args.out = m.q(y);
    kernel(args, some);
  };
  return by_rows(run, rows_of(out), table.scale_shift_codes.isa);
}

// The zero point everywhere (a border that a following copy leaves, as in Pad).
PreparedStep fill(const Plan& plan, const Step& step, const KernelTable&) {
  const StepReader r(plan, step);
  r.arity(0, 1);
  r.codes_out();
  const int y = r.out();
  const int64_t rows = rows_of(r.out_buffer());
  return {[=](const Memory& m, int part, int parts) {
            const kernels::QTensor& out = m.q(y);
            const Range share = share_of(rows, part, parts);
            for (int64_t row = share.begin; row < share.end; ++row) {
              uint8_t* to = out.data + row / out.h * out.image_stride + row % out.h * out.row_stride;
              std::fill(to, to + out.w * out.c_pitch, static_cast<uint8_t>(out.zero_point));
            }
          },
          Isa::kScalar};
}

PreparedStep resize_nearest(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.codes_out();
  r.check(in.n() == out.n() && in.c() == out.c(), "a resize changes the batch or the channels");
  const auto index = [&](const char* key, int64_t size, int64_t source) {
    const auto values = r.constant<int32_t>(key, size);
    for (int32_t v : values) r.check(v >= 0 && v < source, key, " holds ", v, ", outside the image");
    return values.data();
  };
  const kernels::ResizeNearestArgs base{.y_index = index("y_index", out.h(), in.h()),
                                        .x_index = index("x_index", out.w(), in.w())};
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(out);
  return {[=, kernel = table.resize_nearest](const Memory& m, int part, int parts) {
            kernels::ResizeNearestArgs args = base;
            args.in = m.q(x), args.out = m.q(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.resize_nearest.isa};
}

PreparedStep channel_shuffle(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.codes_out();
  same_image(r, in, out);
  const kernels::ChannelShuffleArgs base{.groups = r.integer("groups", 1, std::max<int64_t>(out.c(), 1))};
  r.check(out.c() % base.groups == 0, base.groups, " groups do not divide ", out.c(), " channels");
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(out);
  const auto run = [=, kernel = table.channel_shuffle](const Memory& m, int, Range some) {
    kernels::ChannelShuffleArgs args = base;
    args.in = m.q(x), args.out = m.q(y);
    kernel(args, some);
  };
  return by_rows(run, rows, table.channel_shuffle.isa);
}

kernels::FloatStrides strides_of(const Buffer& b, int64_t h, int64_t w, int64_t c) {
  return b.layout == Layout::kFloatNhwc ? kernels::nhwc_strides(h, w, c) : kernels::nchw_strides(h, w, c);
}

PreparedStep quantize(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.float_in(0), &out = r.codes_out();
  r.check(in.elements() == out.elements(), "'", in.name, "' and '", out.name, "' differ in size");
  const kernels::QuantizeArgs base{
      .in_strides = strides_of(in, out.h(), out.w(), out.c()),
      .params = {.scale = out.scale, .zero_point = out.zero_point, .qmin = out.code_min, .qmax = out.code_max}};
  r.check(out.code_min <= out.zero_point && out.zero_point <= out.code_max, "the zero point is outside the codes");
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(out);
  const auto run = [=, kernel = table.quantize](const Memory& m, int, Range some) {
    kernels::QuantizeArgs args = base;
    args.in = m.f(x), args.out = m.q(y);
    kernel(args, some);
  };
  return by_rows(run, rows, table.quantize.isa);
}

PreparedStep dequantize(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.codes_in(0), &out = r.float_out();
  r.check(in.elements() == out.elements(), "'", in.name, "' and '", out.name, "' differ in size");
  const kernels::DequantizeArgs base{.out_strides = strides_of(out, in.h(), in.w(), in.c()), .scale = in.scale};
  const int x = r.in(0), y = r.out();
  const int64_t rows = rows_of(in);
  return {[=, kernel = table.dequantize](const Memory& m, int part, int parts) {
            kernels::DequantizeArgs args = base;
            args.in = m.q(x), args.out = m.f(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.dequantize.isa};
}

constexpr StepKind kInt8Kinds[] = {
    {"conv", prepare_conv},
    {"depthwise", prepare_depthwise},
    {"max_pool", max_pool},
    {"average_pool", average_pool},
    {"global_average", global_average},
    {"row_sums", prepare_row_sums},
    {"squeeze_excite", prepare_squeeze_excite},
    {"add", add},
    {"mul", mul},
    {"copy", copy},
    {"channel_tables", channel_tables},
    {"scale_shift_codes", scale_shift_codes},
    {"fill", fill},
    {"resize_nearest", resize_nearest},
    {"channel_shuffle", channel_shuffle},
    {"quantize", quantize},
    {"dequantize", dequantize},
    {"quantize_rows", prepare_quantize_rows},
    {"int8_matmul", prepare_int8_matmul},
};

}  // namespace

std::span<const StepKind> int8_step_kinds() {
  return kInt8Kinds;
}

}  // namespace octet::engine
