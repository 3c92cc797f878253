#include "engine/steps_weighted.h"

#include "engine/step_reader.h"
#include "engine/steps_conv.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
using kernels::Range;

struct EpilogueReader {
  kernels::FloatEpilogue epilogue;
  int residual = -1;

  EpilogueReader(const StepReader& r, int64_t channels) {
    epilogue.lo = r.real_or("float_lo", epilogue.lo), epilogue.hi = r.real_or("float_hi", epilogue.hi);
    if (r.has_constant("bias")) epilogue.bias = r.constant<float>("bias", channels).data();
    const bool has_residual = r.integer_or("residual", 0, 0, 1) == 1;
    r.arity(has_residual ? 2 : 1, 1);
    if (!has_residual) return;
    residual = r.in(1);
    r.check(r.float_in(1).layout == r.float_out().layout && r.in_buffer(1).shape == r.out_buffer().shape,
            "the residual has another shape than the output");
  }
  kernels::FloatEpilogue bind(const Memory& m) const {
    kernels::FloatEpilogue e = epilogue;
    if (residual >= 0) e.residual = m.f(residual);
    return e;
  }
};

kernels::FloatConvArgs conv_args(const StepReader& r) {
  r.arity(1, 1, true);
  const Buffer &in = r.float_in(0), &out = r.float_out();
  r.check(in.layout == Layout::kFloatNhwc && out.layout == Layout::kFloatNhwc, "input and output are NHWC images");
  return {.geometry = read_conv_geometry(r, in, out, false),
          .n = in.n(),
          .in_h = in.h(),
          .in_w = in.w(),
          .out_h = out.h(),
          .out_w = out.w()};
}

}  // namespace

PreparedStep prepare_float_conv(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  kernels::FloatConvArgs base = conv_args(r);
  const EpilogueReader epilogue(r, base.geometry.out_channels);
  base.weights = r.constant<float>("weights", kernels::float_conv_weight_floats(base.geometry)).data();
  const int64_t rows = base.n * base.out_h, blocks = kernels::float_conv_blocks(base.geometry);
  // Threads share the larger of the two counts, so that small late images still keep all of them busy.
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_conv](const Memory& m, int part, int parts) {
            kernels::FloatConvArgs args = base;
            args.in = m.f(x), args.out = m.f(y), args.epilogue = epilogue.bind(m);
            const bool by_rows = rows >= blocks;
            kernel(args, by_rows ? share_of(rows, part, parts) : Range{0, rows},
                   by_rows ? Range{0, blocks} : share_of(blocks, part, parts));
          },
          table.float_conv.isa};
}

PreparedStep prepare_float_depthwise(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  kernels::FloatConvArgs base = conv_args(r);
  const kernels::ConvGeometry& g = base.geometry;
  r.check(g.groups == g.in_channels && g.groups == g.out_channels, "a depthwise step has as many groups as channels");
  const EpilogueReader epilogue(r, g.out_channels);
  base.weights = r.constant<float>("weights", g.out_channels * g.kernel_h * g.kernel_w).data();
  const int64_t rows = base.n * base.out_h;
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_depthwise](const Memory& m, int part, int parts) {
            kernels::FloatConvArgs args = base;
            args.in = m.f(x), args.out = m.f(y), args.epilogue = epilogue.bind(m);
            kernel(args, share_of(rows, part, parts));
          },
          table.float_depthwise.isa};
}

PreparedStep prepare_float_conv_transpose(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  kernels::FloatConvArgs base = conv_args(r);
  const kernels::ConvGeometry& g = base.geometry;
  const EpilogueReader epilogue(r, g.out_channels);
  base.weights =
      r.constant<float>("weights", g.in_channels * (g.out_channels / g.groups) * g.kernel_h * g.kernel_w).data();
  const int64_t rows = base.n * base.out_h;
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_conv_transpose](const Memory& m, int part, int parts) {
            kernels::FloatConvArgs args = base;
            args.in = m.f(x), args.out = m.f(y), args.epilogue = epilogue.bind(m);
            kernel(args, share_of(rows, part, parts));
          },
          table.float_conv_transpose.isa};
}

PreparedStep prepare_float_gemm(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1, true);
  kernels::FloatGemmArgs base;
  base.k = r.integer("k", 1, 1 << 30), base.n = r.integer("n", 1, 1 << 24);
  base.m = r.float_in(0).elements() / base.k;
  r.check(r.in_buffer(0).elements() == base.m * base.k && r.float_out().elements() == base.m * base.n,
          "matrix sizes do not fit the buffers");
  const EpilogueReader epilogue(r, base.n);
  const kernels::ConvGeometry g{.in_channels = base.k, .out_channels = base.n};
  base.weights = r.constant<float>("weights", kernels::float_conv_weight_floats(g)).data();
  const int64_t blocks = kernels::float_conv_blocks(g);
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_gemm](const Memory& m, int part, int parts) {
            kernels::FloatGemmArgs args = base;
            args.a = m.f(x), args.c = m.f(y), args.epilogue = epilogue.bind(m);
            const bool by_rows = args.m >= blocks;
            kernel(args, by_rows ? share_of(args.m, part, parts) : Range{0, args.m},
                   by_rows ? Range{0, blocks} : share_of(blocks, part, parts));
          },
          table.float_gemm.isa};
}

PreparedStep prepare_float_matmul(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(2, 1);
  kernels::FloatMatMulArgs base;
  constexpr int64_t kMax = 1 << 20;
  base.batches = r.integer("batches", 1, kMax);
  base.m = r.integer("m", 1, kMax), base.n = r.integer("n", 1, kMax), base.k = r.integer("k", 1, kMax);
  base.a_batch_stride = r.integer("a_batch_stride", 0, kMaxExtent);
  base.b_batch_stride = r.integer("b_batch_stride", 0, kMaxExtent);
  r.check_walk("the first factor", {base.batches, base.m * base.k}, {base.a_batch_stride, 1}, 0,
               r.float_in(0).elements());
  r.check_walk("the second factor", {base.batches, base.k * base.n}, {base.b_batch_stride, 1}, 0,
               r.float_in(1).elements());
  r.check(static_cast<__int128>(base.batches) * base.m * base.n == r.float_out().elements(),
          "the product does not fit its buffer");
  const int a = r.in(0), b = r.in(1), y = r.out();
  return {[=, kernel = table.float_matmul](const Memory& m, int part, int parts) {
            kernels::FloatMatMulArgs args = base;
            args.a = m.f(a), args.b = m.f(b), args.c = m.f(y);
            kernel(args, share_of(args.batches * args.m, part, parts));
          },
          table.float_matmul.isa};
}

PreparedStep prepare_float_pool(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.float_in(0), &out = r.float_out();
  r.check(in.layout == Layout::kFloatNhwc && out.layout == Layout::kFloatNhwc, "input and output are NHWC images");
  const kernels::FloatPoolArgs base{
      .kind = r.integer("average", 0, 1) == 1 ? kernels::FloatPoolKind::kAverage : kernels::FloatPoolKind::kMax,
      .n = in.n(),
      .in_h = in.h(),
      .in_w = in.w(),
      .c = in.c(),
      .out_h = out.h(),
      .out_w = out.w(),
      .window = read_pool_window(r, in, out),
      .count_include_pad = r.integer_or("count_include_pad", 0, 0, 1) == 1};
  const int64_t rows = out.n() * out.h();
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_pool](const Memory& m, int part, int parts) {
            kernels::FloatPoolArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.float_pool.isa};
}

}  // namespace octet::engine
