// Shape rules of nodes that work element by element, per channel, or change only the data type.
#include <algorithm>

#include "ir/data_type_codes.h"
#include "ir/shape_rule_util.h"
#include "ir/shape_rules.h"

namespace octet::ir {
namespace {

std::optional<Shape> optional_shape(const Node& node, size_t index) {
  const Shape* shape = input_shape(node, index);
  return shape ? std::optional<Shape>(*shape) : std::nullopt;
}

// A scale (input `index`) or zero point is a scalar, or has one element per element of the axis.
void check_per_axis(const Node& node, size_t index) {
  const Shape *x = input_shape(node, 0), *p = input_shape(node, index);
  if (!p) return;
  require_rank(node, index, 0, 1);
  if (p->empty() || (*p)[0] == 1 || (*p)[0] == kDynamic || !x) return;
  const int64_t axis = node.get_int("axis", 1);
  const int64_t channels = (*x)[normal_axis(node, axis, x->size())];
  if (channels != kDynamic && channels != (*p)[0])
    misfit(node, input_text(node, index), " should be a scalar or have ", channels,
           " elements, one for each along axis ", axis, " of ", input_text(node, 0));
}

void check_scale_and_zero_point(const Node& node) {
  if (node.get_int("block_size") != 0)
    misfit(node, "block_size is ", node.get_int("block_size"), "; only per-tensor and per-axis scales are supported");
  check_per_axis(node, 1);
  check_per_axis(node, 2);
  const Shape *scale = input_shape(node, 1), *zero = input_shape(node, 2);
  if (scale && zero && is_static(*scale) && is_static(*zero) && element_count(*scale) != element_count(*zero))
    misfit(node, input_text(node, 1), " and ", input_text(node, 2), " should have the same number of elements");
}

}  // namespace

void infer_same(Node& node) {
  set_output(node, 0, input_data_type(node, 0), optional_shape(node, 0));
}

void infer_broadcast(Node& node) {
  std::optional<Shape> shape = optional_shape(node, 0);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.kind != OpKind::kPow) require_same_data_type(node, 0, i);  // Pow may have an integer exponent
    const Shape* next = input_shape(node, i);
    if (!next) shape.reset();
    if (shape) shape = broadcast(node, *shape, *next);
  }
  set_output(node, 0, input_data_type(node, 0), std::move(shape));
}

void infer_batch_norm(Node& node) {
  require_rank(node, 0, 2, 5);
  if (node.get_int("training_mode") != 0)
    misfit(node,
           "training_mode is set; export the model in inference form (the trainer normalizes by the batch itself)");
  int64_t channels = input_shape(node, 0) ? (*input_shape(node, 0))[1] : kDynamic;
  for (size_t i = 1; i < 5; ++i) {
    require_shape(node, i, {channels}, "one element a channel");
    const Shape* p = input_shape(node, i);
    if (p && channels == kDynamic) channels = p->front();
  }
  infer_same(node);
}

// Scale and shift have the shape of what is normalized together; statistics keep its axes, with one element.
void infer_layer_norm(Node& node) {
  const DataType type = input_data_type(node, 0);
  for (size_t i = 1; i < 3; ++i)
    if (has_value(node, i)) require_same_data_type(node, 0, i);
  const Shape* x = input_shape(node, 0);
  std::optional<Shape> statistics;
  if (x) {
    const auto axis = static_cast<std::ptrdiff_t>(normal_axis(node, node.get_int("axis"), x->size()));
    for (size_t i = 1; i < 3; ++i)
      require_shape(node, i, {x->begin() + axis, x->end()}, "one element for each that is normalized");
    statistics = *x;
    std::fill(statistics->begin() + axis, statistics->end(), 1);
  }
  set_output(node, 0, type, optional_shape(node, 0));
  for (size_t i = 1; i < 3; ++i) set_output(node, i, DataType::kFloat32, statistics);
}

void infer_clip(Node& node) {
  for (size_t i = 1; i < 3; ++i) {
    const Shape* bound = input_shape(node, i);
    // Not by element_count(), which refuses shapes that are too large to count without a word of the node.
    const bool several = bound && is_static(*bound) && std::count(bound->begin(), bound->end(), 0) == 0 &&
                         std::any_of(bound->begin(), bound->end(), [](int64_t d) { return d > 1; });
    if (several) misfit(node, input_text(node, i), " should be a scalar");
    if (has_value(node, i)) require_same_data_type(node, 0, i);
  }
  infer_same(node);
}

void infer_prelu(Node& node) {
  const Shape *x = input_shape(node, 0), *slope = input_shape(node, 1);
  require_same_data_type(node, 0, 1);
  if (x && slope && broadcast(node, *x, *slope).size() != x->size())
    misfit(node, input_text(node, 1), " has more dimensions than ", input_text(node, 0));
  infer_same(node);
}

void infer_softmax(Node& node) {
  if (const Shape* x = input_shape(node, 0)) normal_axis(node, node.get_int("axis", -1), x->size());
  infer_same(node);
}

void infer_dropout(Node& node) {
  infer_same(node);
  set_output(node, 1, DataType::kBool, optional_shape(node, 0));
}

void infer_cast(Node& node) {
  const int64_t code = node.get_int("to");
  const DataType type = data_type_from_onnx(code);
  if (type == DataType::kUndefined) misfit(node, "'to' is the ONNX data type ", code, ", which is not supported");
  set_output(node, 0, type, optional_shape(node, 0));
}

void infer_quantize(Node& node) {
  check_scale_and_zero_point(node);
  DataType type = DataType::kUInt8;
  if (const int64_t code = node.get_int("output_dtype")) {
    type = data_type_from_onnx(code);
    if (node.input(2) && input_data_type(node, 2) != type)
      misfit(node, "output_dtype ", data_type_name(type), " does not agree with ", input_text(node, 2));
  }
  if (node.input(2)) type = input_data_type(node, 2);
  if (type != DataType::kInt8 && type != DataType::kUInt8)
    misfit(node, "quantizes to ", data_type_name(type), "; only int8 and uint8 are supported");
  set_output(node, 0, type, optional_shape(node, 0));
}

void infer_dequantize(Node& node) {
  check_scale_and_zero_point(node);
  const DataType type = input_data_type(node, 0);
  if (type != DataType::kInt8 && type != DataType::kUInt8 && type != DataType::kInt32 && type != DataType::kUndefined)
    misfit(node, input_text(node, 0), " should be int8, uint8 or int32");
  if (has_value(node, 2)) require_same_data_type(node, 0, 2);
  set_output(node, 0, input_data_type(node, 1), optional_shape(node, 0));
}

void infer_fake_quantize(Node& node) {
  check_scale_and_zero_point(node);
  infer_same(node);
}

}  // namespace octet::ir
