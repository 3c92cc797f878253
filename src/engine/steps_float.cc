// Steps on floats: what a graph leaves in FP32.
#include <algorithm>
#include <limits>

#include "engine/kernels/float_resample.h"
#include "engine/kernels/strided_copy.h"
#include "engine/quantized_lines.h"
#include "engine/step_reader.h"
#include "engine/steps_weighted.h"

namespace octet::engine {
namespace {

using kernels::KernelTable;
using kernels::Range;

PreparedStep unary(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const int64_t count = r.float_out().elements();
  r.check(r.float_in(0).elements() == count && r.in_buffer(0).layout == r.out_buffer().layout,
          "input and output differ in size or layout");
  kernels::UnaryArgs base{
      .op = static_cast<kernels::UnaryOp>(r.integer("function", 0, static_cast<int>(kernels::UnaryOp::kReciprocal)))};
  base.alpha = r.real_or("alpha", 0), base.beta = r.real_or("beta", 0);
  if (base.op == kernels::UnaryOp::kClip) {
    base.alpha = r.real_or("alpha", -std::numeric_limits<float>::infinity());
    base.beta = r.real_or("beta", std::numeric_limits<float>::infinity());
  }
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.unary](const Memory& m, int part, int parts) {
            kernels::UnaryArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            kernel(args, share_of(count, part, parts));
          },
          table.unary.isa};
}

kernels::Dims to_dims(const std::vector<int64_t>& values) {
  kernels::Dims dims{};
  std::copy(values.begin(), values.end(), dims.begin());
  return dims;
}

int64_t product(const StepReader& r, const std::vector<int64_t>& dims) {
  __int128 count = 1;
  for (int64_t d : dims) {
    count *= d;
    r.check(count <= kMaxExtent, "the dimensions are too large");
  }
  return static_cast<int64_t>(count);
}

// Operands are the inputs; one of them may be a constant "a" or "b" instead.
PreparedStep binary(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  const bool constant_a = r.has_constant("a"), constant_b = r.has_constant("b");
  r.check(!constant_a || !constant_b, "both operands are constants");
  r.arity(constant_a || constant_b ? 1 : 2, 1);
  const size_t rank = static_cast<size_t>(r.integer("rank", 1, kernels::kMaxRank));
  const auto dims = r.list("dims", rank, 1, kMaxExtent);
  const int64_t count = product(r, dims);
  r.check(count == r.float_out().elements(), "the dimensions do not fit the output");
  kernels::BinaryArgs base{
      .op = static_cast<kernels::BinaryOp>(r.integer("function", 0, static_cast<int>(kernels::BinaryOp::kPRelu))),
      .rank = static_cast<int>(rank),
      .dims = to_dims(dims)};
  int next = 0, id[2] = {-1, -1};
  for (int operand = 0; operand < 2; ++operand) {
    const std::string key = operand == 0 ? "a" : "b";
    const auto strides = r.list(key + "_strides", rank, 0, kMaxExtent);
    int64_t size = 0;
    if (r.has_constant(key)) {
      const auto values = plan.constant<float>(step.constants.at(key));
      (operand == 0 ? base.a : base.b) = values.data();
      size = static_cast<int64_t>(values.size());
    } else {
      size = r.float_in(next).elements();
      id[operand] = r.in(next++);
    }
    r.check_walk("operand " + key, dims, strides, 0, size);
    (operand == 0 ? base.a_strides : base.b_strides) = to_dims(strides);
  }
  const int a = id[0], b = id[1], y = r.out();
  return {[=, kernel = table.binary](const Memory& m, int part, int parts) {
            kernels::BinaryArgs args = base;
            if (a >= 0) args.a = m.f(a);
            if (b >= 0) args.b = m.f(b);
            args.out = m.f(y);
            kernel(args, share_of(count, part, parts));
          },
          table.binary.isa};
}

// in[in_offset + ...] -> out[out_offset + ...]; the source may be a constant "value" (Pad fills with it).
PreparedStep strided_copy(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  const bool from_constant = r.has_constant("value");
  r.arity(from_constant ? 0 : 1, 1);
  const size_t rank = static_cast<size_t>(r.integer("rank", 1, kernels::kMaxRank));
  const auto dims = r.list("dims", rank, 1, kMaxExtent);
  const auto in_strides = r.list("in_strides", rank, -kMaxExtent, kMaxExtent);
  const auto out_strides = r.list("out_strides", rank, -kMaxExtent, kMaxExtent);
  const int64_t in_offset = r.integer_or("in_offset", 0, 0, kMaxExtent);
  const int64_t out_offset = r.integer_or("out_offset", 0, 0, kMaxExtent);
  const float* value = nullptr;
  int64_t in_size = 0;
  if (from_constant) {
    const auto values = plan.constant<float>(step.constants.at("value"));
    value = values.data(), in_size = static_cast<int64_t>(values.size());
  } else {
    in_size = r.float_in(0).elements();
  }
  r.check_walk("the source", dims, in_strides, in_offset, in_size);
  r.check_walk("the target", dims, out_strides, out_offset, r.float_out().elements());
  product(r, dims);  // which must be a number of elements
  const kernels::StridedCopyArgs base = kernels::simplified({.rank = static_cast<int>(rank),
                                                             .dims = to_dims(dims),
                                                             .in_strides = to_dims(in_strides),
                                                             .out_strides = to_dims(out_strides)});
  const int64_t rows = kernels::row_count(base);
  const int x = from_constant ? -1 : r.in(0), y = r.out();
  return {[=, kernel = table.strided_copy](const Memory& m, int part, int parts) {
            kernels::StridedCopyArgs args = base;
            args.in = (x < 0 ? value : m.f(x)) + in_offset, args.out = m.f(y) + out_offset;
            kernel(args, share_of(rows, part, parts));
          },
          table.strided_copy.isa};
}

// [outer][axis][inner]
kernels::AxisArgs axis_args(const StepReader& r) {
  const kernels::AxisArgs shape{.outer = r.integer("outer", 1, kMaxExtent),
                                .axis = r.integer("axis", 1, kMaxExtent),
                                .inner = r.integer("inner", 1, kMaxExtent)};
  r.check(product(r, {shape.outer, shape.axis, shape.inner}) == r.float_in(0).elements(),
          "the axes do not fit the input");
  return shape;
}

PreparedStep softmax(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const kernels::SoftmaxArgs base{.shape = axis_args(r), .logarithm = r.integer_or("logarithm", 0, 0, 1) == 1};
  const int x = r.in(0), y = r.out();
  if (holds_codes(r.out_buffer().layout)) {
    r.check(base.shape.inner == 1, "lines of codes are neighbors");
    return quantized_lines(r, table, table.softmax.isa, base.shape.outer, base.shape.axis,
                           [=, kernel = table.softmax](const Memory& m, Range lines, float* out) {
                             kernels::SoftmaxArgs args = base;
                             args.shape.in = m.f(x) + lines.begin * base.shape.axis, args.shape.out = out;
                             kernel(args, Range{0, lines.end - lines.begin});
                           });
  }
  r.check(r.float_out().elements() == r.in_buffer(0).elements(), "the output has another size");
  return {[=, kernel = table.softmax](const Memory& m, int part, int parts) {
            kernels::SoftmaxArgs args = base;
            args.shape.in = m.f(x), args.shape.out = m.f(y);
            kernel(args, share_of(args.shape.outer, part, parts));
          },
          table.softmax.isa};
}

// Scale and shift are constants, or inputs behind the first, in this order.
PreparedStep layer_norm(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  const bool statistics = step.outputs.size() > 1, reads_scale = !step.constants.count("scale"),
             reads_shift = !step.constants.count("shift");
  r.arity(1 + size_t{reads_scale} + size_t{reads_shift}, statistics ? 3 : 1);
  const int64_t length = r.integer("length", 1, kMaxExtent), count = r.float_in(0).elements();
  const bool codes = holds_codes(r.out_buffer().layout);
  r.check(count % length == 0 && (codes || r.float_out().elements() == count) && !(codes && statistics),
          "sizes do not fit");
  for (size_t i = 1; i < step.inputs.size(); ++i)
    r.check(r.float_in(i).elements() == length, "scale or shift have another size");
  for (size_t i = 1; i < step.outputs.size(); ++i)
    r.check(plan.buffers[step.outputs[i]].layout == Layout::kFloatDense &&
                plan.buffers[step.outputs[i]].elements() == count / length,
            "statistics are no float for each line");
  kernels::LayerNormArgs base{.length = length, .epsilon = static_cast<float>(r.real("epsilon"))};
  if (!reads_scale) base.scale = r.constant<float>("scale", length).data();
  if (!reads_shift) base.shift = r.constant<float>("shift", length).data();
  const int x = r.in(0), scale = reads_scale ? r.in(1) : -1, shift = reads_shift ? r.in(step.inputs.size() - 1) : -1,
            y = r.out(), means = statistics ? step.outputs[1] : -1, inverses = statistics ? step.outputs[2] : -1;
  if (codes)
    return quantized_lines(r, table, table.layer_norm.isa, count / length, length,
                           [=, kernel = table.layer_norm](const Memory& m, Range lines, float* out) {
                             kernels::LayerNormArgs args = base;
                             args.in = m.f(x) + lines.begin * length, args.out = out;
                             if (scale >= 0) args.scale = m.f(scale);
                             if (shift >= 0) args.shift = m.f(shift);
                             kernel(args, Range{0, lines.end - lines.begin});
                           });
  return {[=, kernel = table.layer_norm](const Memory& m, int part, int parts) {
            kernels::LayerNormArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            if (scale >= 0) args.scale = m.f(scale);
            if (shift >= 0) args.shift = m.f(shift);
            if (means >= 0) args.means = m.f(means), args.inverses = m.f(inverses);
            kernel(args, share_of(count / length, part, parts));
          },
          table.layer_norm.isa};
}

PreparedStep reduce(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const kernels::ReduceArgs base{.shape = axis_args(r),
                                 .op = static_cast<kernels::ReduceOp>(r.integer("function", 0, 2))};
  r.check(r.float_out().elements() == base.shape.outer * base.shape.inner, "the output has another size");
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.reduce](const Memory& m, int part, int parts) {
            kernels::ReduceArgs args = base;
            args.shape.in = m.f(x), args.shape.out = m.f(y);
            kernel(args, share_of(args.shape.outer, part, parts));
          },
          table.reduce.isa};
}

PreparedStep arg_max(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const kernels::AxisArgs shape = axis_args(r);
  r.check(r.out_buffer().layout == Layout::kIndexDense && r.out_buffer().elements() == shape.outer * shape.inner,
          "the output does not hold one index per line");
  const bool last = r.integer_or("select_last", 0, 0, 1) == 1;
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.arg_max](const Memory& m, int part, int parts) {
            const kernels::ArgMaxArgs args{.in = m.f(x),
                                           .out = static_cast<int64_t*>(m.data[y]),
                                           .outer = shape.outer,
                                           .axis = shape.axis,
                                           .inner = shape.inner,
                                           .select_last = last};
            kernel(args, share_of(shape.outer, part, parts));
          },
          table.arg_max.isa};
}

// Indices as numbers: every output of an engine is float.
PreparedStep index_to_float(const Plan& plan, const Step& step, const KernelTable&) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const int64_t count = r.float_out().elements();
  r.check(r.in_buffer(0).layout == Layout::kIndexDense && r.in_buffer(0).elements() == count, "sizes differ");
  const int x = r.in(0), y = r.out();
  return {[=](const Memory& m, int part, int parts) {
            const Range share = share_of(count, part, parts);
            const int64_t* in = static_cast<const int64_t*>(m.data[x]);
            for (int64_t i = share.begin; i < share.end; ++i) m.f(y)[i] = static_cast<float>(in[i]);
          },
          Isa::kScalar};
}

PreparedStep scale_shift(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const int64_t c = r.integer("channels", 1, kMaxExtent), count = r.float_in(0).elements();
  r.check(count % c == 0 && r.float_out().elements() == count, "sizes do not fit");
  const kernels::ScaleShiftArgs base{
      .scale = r.constant<float>("scale", c).data(), .shift = r.constant<float>("shift", c).data(), .c = c};
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.scale_shift](const Memory& m, int part, int parts) {
            kernels::ScaleShiftArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            kernel(args, share_of(count / c, part, parts));
          },
          table.scale_shift.isa};
}

PreparedStep float_resize(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.float_in(0), &out = r.float_out();
  r.check(in.layout == Layout::kFloatNhwc && out.layout == Layout::kFloatNhwc && in.n() == out.n() && in.c() == out.c(),
          "input and output are not images of the same batch and channels");
  const auto index = [&](const char* key, int64_t size, int64_t source) {
    const auto values = r.constant<int32_t>(key, size);
    for (int32_t v : values) r.check(v >= 0 && v < source, key, " holds ", v, ", outside the image");
    return values.data();
  };
  const kernels::FloatResizeArgs base{.n = in.n(),
                                      .in_h = in.h(),
                                      .in_w = in.w(),
                                      .out_h = out.h(),
                                      .out_w = out.w(),
                                      .c = in.c(),
                                      .y_low = index("y_low", out.h(), in.h()),
                                      .y_high = index("y_high", out.h(), in.h()),
                                      .x_low = index("x_low", out.w(), in.w()),
                                      .x_high = index("x_high", out.w(), in.w()),
                                      .y_weight = r.finite_constant("y_weight", out.h()).data(),
                                      .x_weight = r.finite_constant("x_weight", out.w()).data()};
  const int64_t rows = out.n() * out.h();
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.float_resize](const Memory& m, int part, int parts) {
            kernels::FloatResizeArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            kernel(args, share_of(rows, part, parts));
          },
          table.float_resize.isa};
}

// Constants x_index, x_weight, y_index and y_weight: as many for each column and row of the output as x_taps and y_taps
// say.
PreparedStep float_resample(const Plan& plan, const Step& step, const KernelTable&) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const Buffer &in = r.float_in(0), &out = r.float_out();
  r.check(in.layout == Layout::kFloatNhwc && out.layout == Layout::kFloatNhwc && in.n() == out.n() && in.c() == out.c(),
          "input and output are not images of the same batch and channels");
  const auto axis = [&](const std::string& name, int64_t size, int64_t source) {
    constexpr int64_t kMostTaps = 1 << 16;
    kernels::ResampledAxis made{.taps = r.integer(name + "_taps", 1, kMostTaps)};
    const auto index = r.constant<int32_t>((name + "_index").c_str(), size * made.taps);
    for (const int32_t v : index) r.check(v >= 0 && v < source, name, "_index holds ", v, ", outside the image");
    made.index = index.data();
    made.weight = r.finite_constant((name + "_weight").c_str(), size * made.taps).data();
    return made;
  };
  const kernels::FloatResampleArgs base{.n = in.n(),
                                        .in_h = in.h(),
                                        .in_w = in.w(),
                                        .out_h = out.h(),
                                        .out_w = out.w(),
                                        .c = in.c(),
                                        .y = axis("y", out.h(), in.h()),
                                        .x = axis("x", out.w(), in.w())};
  const int64_t rows = out.n() * out.h();
  const int x = r.in(0), y = r.out();
  PreparedStep made{[=](const Memory& m, int part, int parts) {
                      kernels::FloatResampleArgs args = base;
                      args.in = m.f(x), args.out = m.f(y);
                      args.row = reinterpret_cast<float*>(m.scratch_of(part));
                      kernels::float_resample(args, share_of(rows, part, parts));
                    },
                    Isa::kScalar};
  made.scratch_bytes = in.w() * in.c() * static_cast<int64_t>(sizeof(float));
  return made;
}

PreparedStep lrn(const Plan& plan, const Step& step, const KernelTable& table) {
  const StepReader r(plan, step);
  r.arity(1, 1);
  const int64_t count = r.float_in(0).elements();
  const kernels::LrnArgs base{.c = r.integer("channels", 1, kMaxExtent),
                              .size = r.integer("size", 1, 1 << 16),
                              .alpha = r.real("alpha"),
                              .beta = r.real("beta"),
                              .bias = r.real("bias")};
  r.check(count % base.c == 0 && r.float_out().elements() == count, "sizes do not fit");
  const int x = r.in(0), y = r.out();
  return {[=, kernel = table.lrn](const Memory& m, int part, int parts) {
            kernels::LrnArgs args = base;
            args.in = m.f(x), args.out = m.f(y);
            kernel(args, share_of(count / base.c, part, parts));
          },
          table.lrn.isa};
}

constexpr StepKind kFloatKinds[] = {
    {"float_conv", prepare_float_conv},
    {"float_depthwise", prepare_float_depthwise},
    {"float_conv_transpose", prepare_float_conv_transpose},
    {"float_gemm", prepare_float_gemm},
    {"float_matmul", prepare_float_matmul},
    {"float_pool", prepare_float_pool},
    {"unary", unary},
    {"binary", binary},
    {"strided_copy", strided_copy},
    {"softmax", softmax},
    {"layer_norm", layer_norm},
    {"reduce", reduce},
    {"arg_max", arg_max},
    {"index_to_float", index_to_float},
    {"scale_shift", scale_shift},
    {"float_resize", float_resize},
    {"float_resample", float_resample},
    {"lrn", lrn},
};

}  // namespace

std::span<const StepKind> float_step_kinds() {
  return kFloatKinds;
}

}  // namespace octet::engine
