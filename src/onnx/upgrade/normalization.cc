#include <limits>

#include "ir/axes.h"
#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Shape;

std::vector<int64_t> axes_from(size_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = first; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// One element a channel, the shape that broadcasts over tensors of this rank.
std::vector<int64_t> per_channel(size_t rank) {
  std::vector<int64_t> target(rank - 1, 1);
  target[0] = -1;
  return target;
}

// x - mean(x), and the root of the mean of its squares plus epsilon.
struct Moments {
  std::string centered, deviation;
};

Moments moments(Formula& f, const std::string& x, const std::vector<int64_t>& axes, float epsilon) {
  const std::string centered = f("Sub", {x, f.reduce("ReduceMean", x, axes)});
  const std::string variance = f.reduce("ReduceMean", f("Mul", {centered, centered}), axes);
  return {centered, f("Sqrt", {f("Add", {variance, f.number("epsilon", epsilon)})})};
}

void require_inputs(const SourceNode& node, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!node.has_input(i)) fail("has ", node.inputs.size(), " inputs, expected ", count);
}

Nodes instance_normalization(SourceNode node, int, UpgradeContext& context) {
  require_inputs(node, 3);
  const std::string x = node.inputs[0];
  const size_t rank = known_shape(x, context).size();
  if (rank < 3) fail("its input has ", rank, " axes, expected images, channels and sizes");
  const float epsilon = take<float>(node, "epsilon").value_or(1e-5f);
  require_no_attributes(node);
  Formula f(node, context);
  const Moments m = moments(f, x, axes_from(2, rank), epsilon);
  const std::string scale = f.parameter(node.inputs[1], per_channel(rank)),
                    shift = f.parameter(node.inputs[2], per_channel(rank));
  f("Add", {f("Mul", {f("Div", {m.centered, m.deviation}), scale}), shift});
  return f.nodes();
}

// Groups of channels become lines. Scale and shift are those of a channel since opset 21, before those of a group.
Nodes group_normalization(SourceNode node, int opset, UpgradeContext& context) {
  require_inputs(node, 3);
  const std::string x = node.inputs[0];
  const Shape shape = known_shape(x, context);
  const auto groups = take<int64_t>(node, "num_groups");
  const float epsilon = take<float>(node, "epsilon").value_or(1e-5f);
  take<int64_t>(node, "stash_type");  // in what it is computed: float32
  require_no_attributes(node);
  if (!groups || *groups < 1) fail("num_groups should be a positive number");
  if (shape.size() < 3) fail("its input has ", shape.size(), " axes, expected images, channels and sizes");
  if (shape[1] != ir::kDynamic && shape[1] % *groups != 0)
    fail("num_groups is ", *groups, ", which does not divide the ", shape[1], " channels");
  Formula f(node, context);
  const std::vector<int64_t> back = reshape_target(shape, 1);
  const Moments m = moments(f, f.reshape(x, {0, *groups, -1}), {2}, epsilon);
  std::string y = f("Div", {m.centered, m.deviation});
  const auto affine = [&](const std::vector<int64_t>& target) {
    y = f("Mul", {y, f.parameter(node.inputs[1], target)});
    y = f("Add", {y, f.parameter(node.inputs[2], target)});
  };
  if (opset < 21) affine({-1, 1});
  y = f.reshape(y, back);
  if (opset >= 21) affine(per_channel(shape.size()));
  return f.nodes();
}

// x / sqrt(mean(x^2) + epsilon) * scale.
Nodes rms_normalization(SourceNode node, int, UpgradeContext& context) {
  require_inputs(node, 2);
  const std::string x = node.inputs[0];
  const size_t rank = known_shape(x, context).size();
  const size_t axis = ir::normal_axis(take<int64_t>(node, "axis").value_or(-1), rank);
  const float epsilon = take<float>(node, "epsilon").value_or(1e-5f);
  take<int64_t>(node, "stash_type");
  require_no_attributes(node);
  const auto scale_shape = context.shape(node.inputs[1]);
  Formula f(node, context);
  const std::string square = f.reduce("ReduceMean", f("Mul", {x, x}), axes_from(axis, rank));
  const std::string root = f("Sqrt", {f("Add", {square, f.number("epsilon", epsilon)})});
  const std::string scale = scale_shape ? f.parameter(node.inputs[1], *scale_shape) : node.inputs[1];
  f("Mul", {f("Div", {x, root}), scale});
  return f.nodes();
}

Nodes mean_variance_normalization(SourceNode node, int, UpgradeContext& context) {
  const std::vector<int64_t> axes = take<std::vector<int64_t>>(node, "axes").value_or(std::vector<int64_t>{0, 2, 3});
  require_no_attributes(node);
  Formula f(node, context);
  const Moments m = moments(f, node.inputs[0], axes, 0);
  f("Div", {m.centered, f("Add", {m.deviation, f.number("least", 1e-9f)})});
  return f.nodes();
}

// x / the norm of its line; a line of zeros stays one.
Nodes lp_normalization(SourceNode node, int, UpgradeContext& context) {
  const std::string x = node.inputs[0];
  const int64_t axis = take<int64_t>(node, "axis").value_or(-1), p = take<int64_t>(node, "p").value_or(2);
  require_no_attributes(node);
  if (p != 1 && p != 2) fail("p is ", p, ", expected 1 or 2");
  Formula f(node, context);
  std::string norm = f.reduce("ReduceSum", p == 1 ? f("Abs", {x}) : f("Mul", {x, x}), {axis});
  if (p == 2) norm = f("Sqrt", {norm});
  f("Div", {x, f("Max", {norm, f.number("least", std::numeric_limits<float>::min())})});
  return f.nodes();
}

}  // namespace

std::vector<UpgradeRow> normalization_rules() {
  return {{"InstanceNormalization", instance_normalization},
          {"GroupNormalization", group_normalization},
          {"RMSNormalization", rms_normalization},
          {"MeanVarianceNormalization", mean_variance_normalization},
          {"LpNormalization", lp_normalization}};
}

}  // namespace octet::onnx
