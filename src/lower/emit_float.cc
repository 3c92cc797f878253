#include "lower/emit_float.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/kernels/float_conv.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "lower/quant_params.h"
#include "lower/transposed_conv.h"

namespace octet::lower {
namespace {

using engine::Layout;
using engine::Step;
using ir::Node;
using ir::OpKind;
using ir::Value;

void write_bounds(Step& step, const Bounds& bounds) {
  if (std::isfinite(bounds.lo)) step.floats["float_lo"] = bounds.lo;
  if (std::isfinite(bounds.hi)) step.floats["float_hi"] = bounds.hi;
}

// --- elements

struct Operand {
  int buffer = -1;  // or a constant
  std::vector<float> values;
  std::vector<int64_t> strides;  // for each dimension of the result, in ONNX order
};

// `nhwc`: what an operand of rank 4 is wanted in.
Operand read_operand(PlanBuilder& b, const Value* v, size_t rank, bool nhwc) {
  Operand o;
  const ir::Shape& shape = shape_of(v);
  std::vector<int64_t> own;
  if (const auto constant = constant_floats(v)) {
    o.values = *constant;
    own = dense_strides(shape);
  } else {
    nhwc = nhwc && shape.size() == 4;
    o.buffer = b.real_as(v, nhwc);
    own = float_strides(shape, nhwc);
  }
  o.strides.assign(rank, 0);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) o.strides[rank - shape.size() + i] = own[i];
  return o;
}

// Neighboring dimensions that both operands walk as one become one; dimensions of one element go.
void merge_dimensions(std::vector<int64_t>& dims, std::vector<int64_t>& a, std::vector<int64_t>& b) {
  std::vector<int64_t> d, x, y;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!d.empty() && x.back() == a[i] * dims[i] && y.back() == b[i] * dims[i]) {
      d.back() *= dims[i], x.back() = a[i], y.back() = b[i];
      continue;
    }
    d.push_back(dims[i]), x.push_back(a[i]), y.push_back(b[i]);
  }
  if (d.empty()) d = {1}, x = {0}, y = {0};
  dims = d, a = x, b = y;
}

void binary_step(PlanBuilder& b, const Node& node, kernels::BinaryOp op, const Operand& left, const Operand& right,
                 const ir::Shape& shape, bool nhwc, int out) {
  std::vector<int64_t> dims = shape, a = left.strides, c = right.strides;
  if (nhwc)  // memory order of an image
    for (std::vector<int64_t>* v : {&dims, &a, &c}) *v = {(*v)[0], (*v)[2], (*v)[3], (*v)[1]};
  merge_dimensions(dims, a, c);
  std::vector<int> inputs;
  for (const Operand* o : {&left, &right})
    if (o->buffer >= 0) inputs.push_back(o->buffer);
  engine::ConstantRef constant;
  if (left.buffer < 0) constant = b.constant(left.values);
  if (right.buffer < 0) constant = b.constant(right.values);
  Step& s = b.step("binary", node, inputs, {out});
  s.ints["function"] = static_cast<int64_t>(op), s.ints["rank"] = static_cast<int64_t>(dims.size());
  s.lists["dims"] = dims, s.lists["a_strides"] = a, s.lists["b_strides"] = c;
  if (left.buffer < 0) s.constants["a"] = constant;
  if (right.buffer < 0) s.constants["b"] = constant;
}

void emit_binary(PlanBuilder& b, const Node& node, kernels::BinaryOp op) {
  const ir::Shape& shape = shape_of(node.output());
  if (node.inputs.size() == 1) return emit_unary(b, node, node.input(0), {});
  const bool nhwc = shape.size() == 4 && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                     [&](const Value* v) { return !is_constant(v) && b.is_nhwc(v); });
  const Layout layout = nhwc ? Layout::kFloatNhwc : Layout::kFloatDense;
  Operand left = read_operand(b, node.input(0), shape.size(), nhwc);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Operand right = read_operand(b, node.input(i), shape.size(), nhwc);
    require(left.buffer >= 0 || right.buffer >= 0, node.info().name, " '", node.name,
            "': both operands are constants; fold them before compiling");
    const bool last = i + 1 == node.inputs.size();
    const int out = last ? b.define_real_as(node.output(), nhwc) : b.scratch(node.name + "/partial", layout, shape);
    binary_step(b, node, op, left, right, shape, nhwc, out);
    left = {.buffer = out, .strides = float_strides(shape, nhwc)};
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] == 1) left.strides[d] = 0;
  }
}

void emit_batch_norm(PlanBuilder& b, const Node& node) {
  const ir::Shape& shape = shape_of(node.input(0));
  if (shape.size() != 4 && shape.size() != 2) unsupported(node, str("rank ", shape.size()));
  const auto parameter = [&](size_t i) {
    require(is_constant(node.input(i)), "BatchNormalization '", node.name, "': its parameters are not constants");
    return finite_weights(node, node.input(i));
  };
  const auto gamma = parameter(1), beta = parameter(2), mean = parameter(3), variance = parameter(4);
  std::vector<float> scale, shift;
  for (size_t c = 0; c < gamma.size(); ++c) {
    const double m = gamma[c] / std::sqrt(static_cast<double>(variance[c]) + node.get_float("epsilon"));
    scale.push_back(static_cast<float>(m));
    shift.push_back(static_cast<float>(beta[c] - mean[c] * m));
  }
  const int in = b.real(node.input(0)), out = b.define_real(node.output());
  const auto scale_ref = b.constant(scale), shift_ref = b.constant(shift);
  Step& s = b.step("scale_shift", node, {in}, {out});
  s.ints["channels"] = shape[1];
  s.constants["scale"] = scale_ref, s.constants["shift"] = shift_ref;
}

void emit_lrn(PlanBuilder& b, const Node& node) {
  if (shape_of(node.input(0)).size() != 4) unsupported(node, "a tensor that is no image");
  const int in = b.nhwc(node.input(0)), out = b.define_real(node.output());
  Step& s = b.step("lrn", node, {in}, {out});
  s.ints["channels"] = shape_of(node.input(0))[1], s.ints["size"] = node.get_int("size");
  s.floats["alpha"] = node.get_float("alpha"), s.floats["beta"] = node.get_float("beta");
  s.floats["bias"] = node.get_float("bias");
}

// --- windows

void emit_pool(PlanBuilder& b, const Node& node) {
  if (shape_of(node.input(0)).size() != 4) unsupported(node, "a tensor that is no image");
  if (node.outputs.size() > 1 && node.output(1) != nullptr) unsupported(node, "an output of indices");
  const int in = b.nhwc(node.input(0)), out = b.define_real(node.output());
  Step& s = b.step("float_pool", node, {in}, {out});
  s.ints["average"] = node.kind == OpKind::kAveragePool || node.kind == OpKind::kGlobalAveragePool;
  write_window(s, node);
}

void emit_conv_transpose(PlanBuilder& b, const Node& node) {
  const Weighted w = read_conv_transpose(node);
  const auto weight_ref = b.constant(finite_weights(node, node.input(1)));
  engine::ConstantRef bias_ref;
  if (node.has_input(2)) bias_ref = b.constant(finite_weights(node, node.input(2)));
  const int x = b.nhwc(node.input(0)), y = b.define_real(node.output());
  Step& s = b.step("float_conv_transpose", node, {x}, {y});
  write_geometry(s, w.geometry);
  s.constants["weights"] = weight_ref;
  if (node.has_input(2)) s.constants["bias"] = bias_ref;
}

void emit_cubic_resize(PlanBuilder& b, const Node& node) {
  const CubicAxis y = cubic_axis(node, 2), x = cubic_axis(node, 3);
  const int in = b.nhwc(node.input(0)), out = b.define_real(node.output());
  const std::pair<const char*, engine::ConstantRef> constants[] = {{"y_index", b.constant(y.index)},
                                                                   {"x_index", b.constant(x.index)},
                                                                   {"y_weight", b.constant(y.weight)},
                                                                   {"x_weight", b.constant(x.weight)}};
  Step& s = b.step("float_resample", node, {in}, {out});
  s.ints["y_taps"] = s.ints["x_taps"] = kCubicTaps;
  for (const auto& [key, ref] : constants) s.constants[key] = ref;
}

void emit_resize(PlanBuilder& b, const Node& node) {
  check_resize(node);
  if (node.get_string("mode") == "cubic") return emit_cubic_resize(b, node);
  const ResizeAxis y = resize_axis(node, 2), x = resize_axis(node, 3);
  const int in = b.nhwc(node.input(0)), out = b.define_real(node.output());
  const std::pair<const char*, engine::ConstantRef> constants[] = {
      {"y_low", b.constant(y.low)},   {"y_high", b.constant(y.high)},     {"x_low", b.constant(x.low)},
      {"x_high", b.constant(x.high)}, {"y_weight", b.constant(y.weight)}, {"x_weight", b.constant(x.weight)},
  };
  Step& s = b.step("float_resize", node, {in}, {out});
  for (const auto& [key, ref] : constants) s.constants[key] = ref;
}

using Emitter = void (*)(PlanBuilder&, const Node&);
Emitter emitter_of(OpKind kind) {
  switch (kind) {
    case OpKind::kBatchNormalization:
      return emit_batch_norm;
    case OpKind::kLRN:
      return emit_lrn;
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
      return emit_pool;
    case OpKind::kConvTranspose:
      return emit_conv_transpose;
    case OpKind::kResize:
      return emit_resize;
    default:
      return nullptr;
  }
}

}  // namespace

void unsupported(const Node& node, const std::string& what) {
  fail(node.info().name, " '", node.name, "': ", what, " is not supported by the engine");
}

void write_geometry(Step& s, const kernels::ConvGeometry& g) {
  const std::pair<const char*, int64_t> numbers[] = {
      {"groups", g.groups},         {"kernel_h", g.kernel_h}, {"kernel_w", g.kernel_w},
      {"stride_h", g.stride_h},     {"stride_w", g.stride_w}, {"dilation_h", g.dilation_h},
      {"dilation_w", g.dilation_w}, {"pad_top", g.pad_top},   {"pad_left", g.pad_left}};
  for (const auto& [key, value] : numbers) s.ints[key] = value;
}

void write_window(Step& s, const Node& node) {
  const ir::Shape& in = shape_of(node.input(0));
  if (node.kind != OpKind::kMaxPool && node.kind != OpKind::kAveragePool) {
    s.ints["kernel_h"] = in[2], s.ints["kernel_w"] = in[3];
    return;
  }
  const auto kernel = node.get_ints("kernel_shape");
  const ir::WindowGeometry g = ir::window_geometry(node, {in[2], in[3]}, kernel);
  const std::pair<const char*, int64_t> numbers[] = {{"kernel_h", g.kernel[0]},      {"kernel_w", g.kernel[1]},
                                                     {"stride_h", g.strides[0]},     {"stride_w", g.strides[1]},
                                                     {"dilation_h", g.dilations[0]}, {"dilation_w", g.dilations[1]},
                                                     {"pad_top", g.pads[0]},         {"pad_left", g.pads[1]},
                                                     {"pad_bottom", g.pads[2]},      {"pad_right", g.pads[3]}};
  for (const auto& [key, value] : numbers) s.ints[key] = value;
  if (node.kind == OpKind::kAveragePool) s.ints["count_include_pad"] = node.get_int("count_include_pad");
}

void emit_unary(PlanBuilder& b, const Node& node, const Value* x, const UnaryFunction& f) {
  bool nhwc = false;
  const int in = b.any_real(x, &nhwc);
  const int out = b.define_real_as(node.output(), nhwc);
  Step& s = b.step("unary", node, {in}, {out});
  s.ints["function"] = static_cast<int64_t>(f.op);
  if (std::isfinite(f.alpha)) s.floats["alpha"] = f.alpha;
  if (std::isfinite(f.beta)) s.floats["beta"] = f.beta;
}

void emit_float_chain(PlanBuilder& b, const Chain& chain, const Value* value) {
  const Node& node = *chain.weighted;
  const bool conv = node.kind == OpKind::kConv;
  const Weighted w = conv ? read_conv(node) : read_gemm(node, false);
  const kernels::ConvGeometry& g = w.geometry;
  std::vector<float> weights = finite_weights(node, node.input(1)), packed;
  if (w.transpose_weights) {
    std::vector<float> turned(weights.size());
    for (int64_t i = 0; i < g.in_channels; ++i)
      for (int64_t o = 0; o < g.out_channels; ++o) turned[o * g.in_channels + i] = weights[i * g.out_channels + o];
    weights = std::move(turned);
  }
  const bool depthwise = conv && w.depthwise();
  if (depthwise) {
    packed.resize(weights.size());
    kernels::pack_float_depthwise_weights(g, weights, packed);
  } else {
    packed.resize(static_cast<size_t>(kernels::float_conv_weight_floats(g)));
    kernels::pack_float_conv_weights(g, weights, packed);
  }
  std::vector<int> inputs{conv ? b.nhwc(w.x) : b.dense(w.x)};
  if (chain.residual != nullptr) inputs.push_back(b.real(chain.residual));
  const int out = b.define_real(value);
  const auto weight_ref = b.constant(packed);
  engine::ConstantRef bias_ref;
  if (node.has_input(2)) {
    std::vector<float> bias = finite_weights(node, node.input(2));
    if (bias.size() == 1) bias.assign(static_cast<size_t>(g.out_channels), bias[0]);
    bias_ref = b.constant(bias);
  }
  Step& s = b.step(!conv       ? "float_gemm"
                   : depthwise ? "float_depthwise"
                               : "float_conv",
                   *value->producer, inputs, {out});
  if (conv)
    write_geometry(s, g);
  else
    s.ints["k"] = g.in_channels, s.ints["n"] = g.out_channels;
  s.constants["weights"] = weight_ref;
  if (node.has_input(2)) s.constants["bias"] = bias_ref;
  if (chain.residual != nullptr) s.ints["residual"] = 1;
  write_bounds(s, chain.bounds);
}

void emit_float(PlanBuilder& b, const Node& node) {
  if (const auto unary = unary_function(node)) return emit_unary(b, node, node.input(0), *unary);
  if (const auto binary = binary_function(node)) return emit_binary(b, node, *binary);
  if (node.kind == OpKind::kIdentity || node.kind == OpKind::kDropout) return emit_unary(b, node, node.input(0), {});
  if (node.kind == OpKind::kCast) {
    if (node.output()->type.data_type != ir::DataType::kFloat32 ||
        node.input(0)->type.data_type != ir::DataType::kInt64)
      unsupported(node, str("a conversion from ", data_type_name(node.input(0)->type.data_type), " to ",
                            data_type_name(node.output()->type.data_type)));
    b.same_dense(node.output(), b.dense(node.input(0)));
    return;
  }
  if (emit_float_move(b, node) || emit_float_lines(b, node)) return;
  const Emitter emitter = emitter_of(node.kind);
  if (emitter == nullptr) unsupported(node, "this operator");
  emitter(b, node);
}

}  // namespace octet::lower
