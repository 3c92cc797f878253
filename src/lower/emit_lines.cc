// Float steps over matrices and over lines along axes.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/axes.h"
#include "ir/query.h"
#include "lower/emit_float.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using engine::Layout;
using engine::Step;
using ir::Node;
using ir::OpKind;
using ir::Value;

void emit_matmul(PlanBuilder& b, const Node& node) {
  const ir::Shape &x = shape_of(node.input(0)), &w = shape_of(node.input(1)), &y = shape_of(node.output());
  if (x.size() < 2 || w.size() < 2) unsupported(node, "a vector operand");
  const int64_t m = x[x.size() - 2], k = x.back(), n = w.back();
  int64_t x_batches = 1, w_batches = 1;
  for (size_t i = 0; i + 2 < x.size(); ++i) x_batches *= x[i];
  for (size_t i = 0; i + 2 < w.size(); ++i) w_batches *= w[i];
  const int64_t batches = ir::element_count(y) / (m * n);
  const bool simple = (x_batches == batches || x_batches == 1) && (w_batches == batches || w_batches == 1);
  if (!simple) unsupported(node, str("broadcasting ", ir::shape_string(x), " by ", ir::shape_string(w)));
  const int a = b.dense(node.input(0)), c = b.dense(node.input(1)), out = b.define_dense(node.output());
  Step& s = b.step("float_matmul", node, {a, c}, {out});
  s.ints = {{"batches", batches},
            {"m", m},
            {"n", n},
            {"k", k},
            {"a_batch_stride", x_batches == 1 ? 0 : m * k},
            {"b_batch_stride", w_batches == 1 ? 0 : k * n}};
}

void emit_general_gemm(PlanBuilder& b, const Node& node) {
  if (node.get_int("transA") != 0 || node.get_int("transB") != 0 || node.get_float("alpha", 1) != 1 ||
      node.has_input(2))
    unsupported(node, "a product of two computed matrices with a transposition, a factor or a bias");
  emit_matmul(b, node);
}

// --- lines along one axis

struct AxisView {
  int64_t outer = 1, axis = 1, inner = 1;
};
// An image is seen in its memory order N, H, W, C; anything else row-major.
AxisView view_axis(const ir::Shape& shape, int64_t axis, bool nhwc) {
  std::vector<int64_t> order = shape;
  if (nhwc) {
    order = {shape[0], shape[2], shape[3], shape[1]};
    axis = axis == 0 ? 0 : axis == 1 ? 3 : axis - 1;
  }
  AxisView v{.axis = order[axis]};
  for (int64_t i = 0; i < static_cast<int64_t>(order.size()); ++i)
    (i < axis ? v.outer : v.inner) *= i == axis ? 1 : order[i];
  return v;
}

int64_t axis_of(const Node& node, const ir::Shape& shape) {
  return static_cast<int64_t>(ir::normal_axis(node, node.get_int("axis"), shape.size()));
}

void write_axis(Step& s, const AxisView& v) {
  s.ints["outer"] = v.outer, s.ints["axis"] = v.axis, s.ints["inner"] = v.inner;
}

void emit_softmax(PlanBuilder& b, const Node& node) {
  const ir::Shape& shape = shape_of(node.input(0));
  // Neighbors in memory are taken faster than lines side by side.
  const int64_t axis = axis_of(node, shape);
  const bool nhwc = b.is_nhwc(node.input(0)) && axis + 1 != static_cast<int64_t>(shape.size());
  const AxisView v = view_axis(shape, axis, nhwc);
  const int in = b.real_as(node.input(0), nhwc), out = b.define_real_as(node.output(), nhwc);
  Step& s = b.step("softmax", node, {in}, {out});
  write_axis(s, v);
  s.ints["logarithm"] = node.kind == OpKind::kLogSoftmax;
}

}  // namespace

void emit_softmax_rows(PlanBuilder& b, const Node& node, int codes) {
  const ir::Shape& shape = shape_of(node.input(0));
  const int in = b.dense(node.input(0));
  Step& s = b.step("softmax", node, {in}, {codes});
  write_axis(s, view_axis(shape, static_cast<int64_t>(shape.size()) - 1, false));
  s.ints["logarithm"] = 0;
}

// The normalized axes are the last: lines of neighboring elements where the tensor is row-major.
void emit_layer_norm(PlanBuilder& b, const Node& node, const std::function<int()>& define_output) {
  const Value *scale = node.input(1), *shift = node.has_input(2) ? node.input(2) : nullptr;
  const int64_t length = ir::element_count(shape_of(scale));
  std::vector<int> inputs = {b.dense(node.input(0))};
  std::map<std::string, engine::ConstantRef> constants;
  const auto parameter = [&](const char* key, const Value* value) {
    if (value == nullptr) {
      constants[key] = b.constant(std::vector<float>(static_cast<size_t>(length), 0.0f));
    } else if (is_constant(value)) {
      constants[key] = b.constant(finite_weights(node, value));
    } else {
      inputs.push_back(b.dense(value));
    }
  };
  parameter("scale", scale);
  parameter("shift", shift);
  std::vector<int> outputs = {define_output()};
  if (node.outputs.size() > 1 && (node.output(1) != nullptr || node.output(2) != nullptr))
    for (size_t i = 1; i < 3; ++i)
      outputs.push_back(node.output(i) != nullptr ? b.define_dense(node.output(i))
                                                  : b.scratch(node.name + "/unused", Layout::kFloatDense,
                                                              {ir::element_count(shape_of(node.input(0))) / length}));
  Step& s = b.step("layer_norm", node, inputs, outputs);
  s.ints["length"] = length, s.floats["epsilon"] = node.get_float("epsilon");
  for (const auto& [key, ref] : constants) s.constants[key] = ref;
}

namespace {

void emit_arg_max(PlanBuilder& b, const Node& node) {
  const ir::Shape& shape = shape_of(node.input(0));
  const AxisView v = view_axis(shape, axis_of(node, shape), false);
  const int in = b.dense(node.input(0)), out = b.define_index(node.output());
  Step& s = b.step("arg_max", node, {in}, {out});
  write_axis(s, v);
  s.ints["select_last"] = node.get_int("select_last_index");
}

void emit_reduce(PlanBuilder& b, const Node& node) {
  const ir::Shape& shape = shape_of(node.input(0));
  std::vector<int64_t> axes = node.get_ints("axes");
  if (node.has_input(1)) {
    require(node.input(1)->is_constant(), node.info().name, " '", node.name, "': its axes are not constant");
    axes = node.input(1)->constant->to_ints();
  }
  if (axes.empty() && node.get_int("noop_with_empty_axes") != 0) return emit_unary(b, node, node.input(0), {});
  std::set<int64_t> reduced;
  for (const size_t a : ir::normal_axes(node, axes, shape.size())) reduced.insert(static_cast<int64_t>(a));
  if (axes.empty())
    for (size_t i = 0; i < shape.size(); ++i) reduced.insert(static_cast<int64_t>(i));
  // The reduced axes go to the end, so that each result is one line; an image keeps its channels innermost, because
  // that order needs no copy for a mean over the image.
  bool image = false;  // in that order
  int in = b.any_real(node.input(0), &image);
  const std::vector<int64_t> order = image ? std::vector<int64_t>{0, 2, 3, 1} : [&] {
    std::vector<int64_t> o(shape.size());
    for (size_t i = 0; i < o.size(); ++i) o[i] = static_cast<int64_t>(i);
    return o;
  }();
  AxisView v;
  bool contiguous = true, begun = false, ended = false;
  for (int64_t axis : order) {
    if (reduced.count(axis)) {
      contiguous = contiguous && !ended;
      begun = true, v.axis *= shape[axis];
    } else {
      ended = begun;
      (begun ? v.inner : v.outer) *= shape[axis];
    }
  }
  const bool over_image = image && reduced == std::set<int64_t>{2, 3};
  if (image && !over_image) {
    // Results in the order of the remaining axes of N, C, H, W.
    contiguous = false;
  }
  const auto function = node.kind == OpKind::kReduceMean  ? kernels::ReduceOp::kMean
                        : node.kind == OpKind::kReduceSum ? kernels::ReduceOp::kSum
                                                          : kernels::ReduceOp::kMax;
  if (!contiguous) {
    std::vector<int64_t> dims, strides, last_dims, last_strides;
    const auto own = image ? nhwc_strides(shape) : dense_strides(shape);
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool last = reduced.count(static_cast<int64_t>(i)) > 0;
      (last ? last_dims : dims).push_back(shape[i]);
      (last ? last_strides : strides).push_back(own[i]);
    }
    v = {};
    for (int64_t d : dims) v.outer *= d;
    for (int64_t d : last_dims) v.axis *= d;
    dims.insert(dims.end(), last_dims.begin(), last_dims.end());
    strides.insert(strides.end(), last_strides.begin(), last_strides.end());
    const int moved = b.scratch(node.name + "/partial", Layout::kFloatDense, dims);
    b.copy(node, in, moved, {.dims = dims, .in_strides = strides, .out_strides = dense_strides(dims)});
    in = moved;
  }
  // The mean over an image leaves N x C in order; so does every other case with its remaining axes.
  const int out = b.define_dense(node.output());
  Step& s = b.step("reduce", node, {in}, {out});
  write_axis(s, v);
  s.ints["function"] = static_cast<int64_t>(function);
}

}  // namespace

bool emit_float_lines(PlanBuilder& b, const Node& node) {
  switch (node.kind) {
    case OpKind::kMatMul:
      emit_matmul(b, node);
      return true;
    case OpKind::kGemm:
      emit_general_gemm(b, node);
      return true;
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      emit_softmax(b, node);
      return true;
    case OpKind::kLayerNormalization:
      emit_layer_norm(b, node, [&] { return b.define_dense(node.output()); });
      return true;
    case OpKind::kArgMax:
      emit_arg_max(b, node);
      return true;
    case OpKind::kReduceMean:
    case OpKind::kReduceSum:
    case OpKind::kReduceMax:
      emit_reduce(b, node);
      return true;
    default:
      return false;
  }
}

}  // namespace octet::lower
