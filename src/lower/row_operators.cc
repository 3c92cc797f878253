#include "lower/row_operators.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "ir/traits.h"
#include "lower/plan_builder.h"
#include "lower/products.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;

// A Reshape of rows that leaves the last axis alone.
bool is_of_rows(const Value* v) {
  const Node* p = v->producer;
  if (p == nullptr || !p->info().has(ir::trait::kReshapes)) return false;
  const Shape &rows = shape_of(p->input(0)), &shape = shape_of(v);
  return rows.size() == 2 && shape.size() > 2 && rows.back() == shape.back();
}

// Read, quantized or not, over N, C, H, W.
bool is_image(const Value* v) {
  return shape_of(v).size() == 4 && std::any_of(v->users.begin(), v->users.end(), [](const Node* user) {
           return reads_image(*user) || (ir::is_quantizer(user) && is_image(user->output()));
         });
}

// Row-major already: of rank 4, what is no image.
bool lies_in_rows(const Value* v) {
  if (is_of_rows(v) || shape_of(v).size() != 4) return true;
  const Node* p = v->producer;
  return p != nullptr && (p->kind == OpKind::kTranspose || p->kind == OpKind::kLayerNormalization ||
                          p->info().has(ir::trait::kReshapes));
}

class RowOperators {
 public:
  explicit RowOperators(Graph& graph) : graph_(graph) {}

  int run() {
    int moved = 0;
    for (Node* node : node_list(graph_)) moved += works_on_rows(*node) && move(*node);
    return moved;
  }

 private:
  bool works_on_rows(const Node& node) const {
    const Value* out = node.output();
    if (out->type.data_type != ir::DataType::kFloat32 || shape_of(out).size() < 3 || is_constant(out)) return false;
    if (graph_.is_output(out)) return false;  // it is written where the caller wants it
    if (is_image(out)) return false;
    if (node.kind == OpKind::kLayerNormalization)
      return node.outputs.size() == 1 && shape_of(node.input(1)).size() == 1 &&
             ir::normal_axis(node, node.get_int("axis"), shape_of(out).size()) + 1 == shape_of(out).size();
    if (is_quantizer(&node)) {
      if (feeds_products(node)) return false;
      if (!node.input(1)->is_constant() || node.input(1)->constant->size() != 1) return false;
    } else if (!node.info().has(ir::trait::kElementwise)) {
      return false;
    }
    const auto inputs = node.inputs.begin();
    return std::any_of(inputs, inputs + static_cast<int64_t>(ir::data_inputs(node)),
                       [](const Value* v) { return v != nullptr && is_of_rows(v); });
  }

  // The shape of a constant operand for rows [count, width] of the result; nothing where it has none.
  static std::optional<Shape> constant_shape(const Value* v, const Shape& result, const Shape& rows) {
    const Shape& shape = shape_of(v);
    if (!v->is_constant()) return std::nullopt;  // behind a quantizer: nobody adds such to tokens
    if (shape == result) return rows;
    if (!shape.empty() && ir::element_count(shape) == rows[1] && shape.back() == rows[1]) return Shape{rows[1]};
    if (ir::element_count(shape) != 1) return std::nullopt;
    return shape.size() <= 2 ? shape : Shape{};
  }

  static bool has_rows(const Value* v, const Shape& result, const Shape& rows) {
    if (v == nullptr) return true;
    if (is_constant(v)) return constant_shape(v, result, rows).has_value();
    return shape_of(v) == result;
  }

  Value* rows_of(Value* v, const Shape& result, const Shape& rows, Node* before) {
    if (v == nullptr) return v;
    if (is_constant(v)) {
      const Shape shape = *constant_shape(v, result, rows);
      if (shape == shape_of(v)) return v;
      return graph_.add_constant(graph_.unique_name(v->name + "/rows"), v->constant->with_shape(shape));
    }
    if (is_of_rows(v)) return v->producer->input(0);
    return graph_.add(OpKind::kReshape, graph_.unique_name(v->name + "/rows"),
                      {v, shape_constant(v->name + "/rows_shape", rows)}, {}, before);
  }

  Value* shape_constant(const std::string& name, const Shape& shape) {
    const auto rank = static_cast<int64_t>(shape.size());
    return graph_.add_constant(graph_.unique_name(name), ir::Tensor::of<int64_t>({rank}, shape));
  }

  bool move(Node& node) {
    Value* out = node.output();
    const Shape shape = shape_of(out);
    const int64_t width = shape.back();
    const Shape rows = {ir::element_count(shape) / std::max<int64_t>(width, 1), width};
    // Scales, bounds, and the parameters of a normalization are no rows.
    const size_t operands = node.kind == OpKind::kPRelu ? 2 : ir::data_inputs(node);
    for (size_t i = 0; i < operands; ++i)
      if (!has_rows(node.input(i), shape, rows)) return false;
    // A normalization of lines reads them row-major whatever there is.
    if (node.kind != OpKind::kLayerNormalization)
      for (size_t i = 0; i < operands; ++i)
        if (node.has_input(i) && !is_constant(node.input(i)) && !lies_in_rows(node.input(i))) return false;
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(i < operands ? rows_of(node.input(i), shape, rows, &node) : node.input(i));
    ir::Attributes attributes = node.attributes;
    if (node.kind == OpKind::kLayerNormalization) attributes["axis"] = int64_t{1};
    Value* made = graph_.add(node.kind, graph_.unique_name(out->name + "/rows"), inputs, attributes, &node);
    while (node.inputs.size() > 2) {
      graph_.set_input(&node, node.inputs.size() - 1, nullptr);
      node.inputs.pop_back();
    }
    node.inputs.resize(2, nullptr);
    graph_.set_input(&node, 0, made);
    graph_.set_input(&node, 1, shape_constant(node.name + "/shape", shape));
    node.kind = OpKind::kReshape;
    node.attributes.clear();
    ir::infer_node(node);
    return true;
  }

  Graph& graph_;
};

}  // namespace

int compute_on_rows(Graph& graph) {
  return RowOperators(graph).run();
}

}  // namespace octet::lower
