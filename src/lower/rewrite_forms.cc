#include "lower/rewrite_forms.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "lower/products.h"
#include "lower/quant_params.h"
#include "lower/weighted.h"

namespace octet::lower {
namespace {

using ir::Attributes;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

bool reshapes(const Node* node) {
  return node != nullptr && node->info().has(ir::trait::kReshapes);
}

bool has_layout(const Shape& shape) {
  return shape.size() == 2 || shape.size() == 4;
}

Value* int_constant(Graph& graph, const std::string& name, const std::vector<int64_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return graph.add_constant(graph.unique_name(name), Tensor::of<int64_t>({count}, values));
}

// What verification looks for (app/model_cut.cc): the rows of a tensor NAME are called NAME/rows, the codes of a
// quantizer's rows NAME/rows or NAME/quantized.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  int run() {
    for (Node* node : node_list(graph_)) {
      node_ = node;
      switch (node->kind) {
        case OpKind::kGemm:
          gemm();
          break;
        case OpKind::kMatMul:
          matmul();
          break;
        case OpKind::kConv:
        case OpKind::kConvTranspose:
        case OpKind::kMaxPool:
        case OpKind::kAveragePool:
        case OpKind::kGlobalMaxPool:
        case OpKind::kGlobalAveragePool:
          if (shape_of(node->input(0)).size() == 3) window();
          break;
        case OpKind::kBatchNormalization:
          if (const size_t rank = shape_of(node->input(0)).size(); rank == 3 || rank > 4) batch_norm();
          break;
        case OpKind::kMish:
          mish();
          break;
        case OpKind::kDropout:
          dropout();
          break;
        default:
          break;
      }
    }
    return rewritten_;
  }

 private:
  // --- new nodes in front of the one that is rewritten

  Value* add(OpKind kind, const char* what, std::vector<Value*> inputs, Attributes attributes = {}) {
    const std::string name = graph_.unique_name(node_->name + "/" + what);
    return graph_.add(kind, name, std::move(inputs), std::move(attributes), node_);
  }
  Value* scalar(const char* what, float value) {
    return graph_.add_constant(graph_.unique_name(node_->name + "/" + what), Tensor::scalar(value));
  }
  Value* reshape(Value* x, const Shape& shape) {
    if (shape_of(x) == shape) return x;
    return add(OpKind::kReshape, "reshape", {x, int_constant(graph_, node_->name + "/shape", shape)});
  }
  // The same for the input of a product: its quantizer moves behind the Reshape, where its codes have a layout.
  Value* reshape_operand(Value* x, const Shape& shape) {
    const Node* q = x->producer;
    const bool movable =
        is_quantizer(q) && !is_constant(x) && q->input(1)->is_constant() && q->input(1)->constant->size() == 1;
    if (!movable) return reshape(x, shape);
    Value*& known = reshaped_[{x, shape}];
    if (!known) {
      // Right behind the quantizer, for all who read it in this shape.
      Node* here = node_;
      node_ = graph_.next(q);
      Value* rows = reshape(q->input(0), shape);
      known = graph_.add(OpKind::kFakeQuantize, graph_.unique_name(q->output()->name + "/rows"),
                         {rows, q->input(1), q->input(2)}, q->attributes, node_);
      node_ = here;
    }
    return known;
  }
  // The node hands `result` on under its own name, in its own shape.
  void become_reshape(Node* node, Value* result) {
    ++rewritten_;
    Value* shape = int_constant(graph_, node->name + "/shape", shape_of(node->output()));
    while (node->inputs.size() > 2) {
      graph_.set_input(node, node->inputs.size() - 1, nullptr);
      node->inputs.pop_back();
    }
    node->inputs.resize(2, nullptr);
    graph_.set_input(node, 0, result);
    graph_.set_input(node, 1, shape);
    node->kind = OpKind::kReshape;
    node->attributes.clear();
    ir::infer_node(*node);
  }

  // --- products

  Value* scaled(const char* what, Value* x, float factor) {
    if (factor == 1) return x;
    if (!x->is_constant()) return add(OpKind::kMul, what, {x, scalar("factor", factor)});
    std::vector<float> values = x->constant->to_floats();
    for (float& v : values) v *= factor;
    return graph_.add_constant(graph_.unique_name(node_->name + "/" + what), Tensor::of<float>(shape_of(x), values));
  }

  void gemm() {
    if (is_constant_gemm(*node_)) return;
    Node& node = *node_;
    const float alpha = node.get_float("alpha", 1), beta = node.get_float("beta", 1);
    const Attributes turned{{"perm", std::vector<int64_t>{1, 0}}};
    Value *a = node.input(0), *b = node.input(1), *c = node.input(2);
    if (node.get_int("transA") != 0) a = add(OpKind::kTranspose, "a", {a}, turned);
    const bool constant = is_constant(b);
    if (b->is_constant()) b = scaled("b", b, alpha);
    Value* row = nullptr;  // a bias that the product takes
    if (c != nullptr) {
      c = scaled("c", c, beta);
      const Shape& s = shape_of(c);
      if (constant && is_constant(c) && (s.empty() || ir::element_count(s) == s.back()) &&
          (alpha == 1 || node.input(1)->is_constant()))
        std::swap(row, c);
    }
    Value* y = nullptr;
    if (constant) {
      std::vector<Value*> inputs{a, b};
      if (row != nullptr) inputs.push_back(row);
      y = add(OpKind::kGemm, "product", inputs, {{"transB", node.get_int("transB")}});
    } else {
      if (node.get_int("transB") != 0) b = add(OpKind::kTranspose, "b", {b}, turned);
      y = add(OpKind::kMatMul, "product", {a, b});
    }
    if (alpha != 1 && !node.input(1)->is_constant()) y = add(OpKind::kMul, "scaled", {y, scalar("alpha", alpha)});
    if (c != nullptr) y = add(OpKind::kAdd, "sum", {y, c});
    become_reshape(&node, y);
  }

  void matmul() {
    Node& node = *node_;
    Value *a = node.input(0), *b = node.input(1);
    Shape x = shape_of(a), w = shape_of(b);
    if (x.size() == 1) x.insert(x.begin(), 1);
    if (w.size() == 1) w.push_back(1);
    const int64_t k = x.back(), n = w.back();
    if (w.size() == 2 && x.size() != 2 && is_constant(b) && shape_of(b).size() == 2) return rows_by_matrix(k, n);
    Shape batch = shape_of(node.output());
    batch.resize(std::max(x.size(), w.size()) - 2);
    const auto full = [&](const Shape& own) {
      Shape out = batch;
      out.insert(out.end(), own.end() - 2, own.end());
      return out;
    };
    const auto single = [](const Shape& own) {
      return std::all_of(own.begin(), own.end() - 2, [](int64_t d) { return d == 1; });
    };
    const bool simple = (single(x) || ir::element_count(x) == ir::element_count(full(x))) &&
                        (single(w) || ir::element_count(w) == ir::element_count(full(w)));
    if (simple && x == shape_of(a) && w == shape_of(b)) return;
    const auto operand = [&](Value* v, const Shape& own) {
      v = reshape(v, own);
      if (single(own) || own == full(own)) return v;
      return add(OpKind::kExpand, "expand", {v, int_constant(graph_, node.name + "/expanded", full(own))});
    };
    Value* left = operand(a, x);
    become_reshape(&node, add(OpKind::kMatMul, "product", {left, operand(b, w)}));
  }

  // x[..., k] by a constant [k, n]: one product over all rows.
  void rows_by_matrix(int64_t k, int64_t n) {
    Node* last = node_;
    Value *x = node_->input(0), *w = node_->input(1), *bias = nullptr;
    const int64_t rows = ir::element_count(shape_of(x)) / std::max<int64_t>(k, 1);
    if (single_use(graph_, node_->output()) && node_->output()->users[0]->kind == OpKind::kAdd) {
      Node* sum = node_->output()->users[0];
      Value* other = sum->input(0) == node_->output() ? sum->input(1) : sum->input(0);
      const Shape& shape = shape_of(other);
      const bool row = other->is_constant() && other->constant->size() == n && !shape.empty() && shape.back() == n;
      if (row && shape_of(sum->output()) == shape_of(node_->output())) last = sum, bias = other;
    }
    Value* y = add(OpKind::kMatMul, "rows", {reshape_operand(x, {rows, k}), w});
    if (bias != nullptr) {
      Value* row = graph_.add_constant(graph_.unique_name(last->name + "/bias"),
                                       Tensor::of<float>({n}, bias->constant->to_floats()));
      y = add(OpKind::kAdd, "biased", {y, row});
    }
    graph_.rename(y, graph_.unique_name(last->output()->name + "/rows"));
    become_reshape(last, y);
  }

  // --- windows over one axis

  void window() {
    Node& node = *node_;
    const auto image = [](Shape s) {
      s.insert(s.begin() + 2, 1);
      return s;
    };
    std::vector<Value*> inputs = node.inputs;
    const bool weighted = node.kind == OpKind::kConv || node.kind == OpKind::kConvTranspose;
    if (weighted) {
      if (!is_constant(inputs[1])) return;  // refused where convolutions are read
      inputs[1] = image_weights(inputs[1], image(shape_of(inputs[1])));
    }
    inputs[0] = reshape_operand(inputs[0], image(shape_of(inputs[0])));
    Attributes attributes = node.attributes;
    const auto widen = [&](const char* key, int64_t first) {
      const auto it = attributes.find(key);
      if (it == attributes.end()) return;
      auto& values = std::get<std::vector<int64_t>>(it->second);
      if (values.size() == 1) values.insert(values.begin(), first);
      if (values.size() == 2 && std::string(key) == "pads") values = {0, values[0], 0, values[1]};
    };
    for (const char* key : {"kernel_shape", "strides", "dilations", "output_shape"}) widen(key, 1);
    for (const char* key : {"output_padding", "pads"}) widen(key, 0);
    become_reshape(&node, add(node.kind, "image", inputs, attributes));
  }

  // A batch norm of a tensor that is neither an image nor a row is one of an image of one row.
  void batch_norm() {
    std::vector<Value*> inputs = node_->inputs;
    const Shape& shape = shape_of(inputs[0]);
    const int64_t images = shape[0] * shape[1];
    if (images == 0) return;
    inputs[0] = reshape_operand(inputs[0], {shape[0], shape[1], 1, ir::element_count(shape) / images});
    become_reshape(node_, add(node_->kind, "image", inputs, node_->attributes));
  }

  Value* image_weights(Value* w, const Shape& shape) {
    const std::string name = graph_.unique_name(w->name + "/image");
    if (w->is_constant()) return graph_.add_constant(name, w->constant->with_shape(shape));
    const Node& q = *w->producer;
    Value* floats =
        graph_.add_constant(graph_.unique_name(q.input(0)->name + "/image"), q.input(0)->constant->with_shape(shape));
    return add(OpKind::kFakeQuantize, "weights", {floats, q.input(1), q.input(2)}, q.attributes);
  }

  // --- functions

  // x * tanh(softplus(x)); behind a quantizer it is a table as others are.
  void mish() {
    Value* gate = add(OpKind::kTanh, "gate", {add(OpKind::kSoftplus, "softplus", {node_->input(0)})});
    node_->kind = OpKind::kMul;
    graph_.set_input(node_, 1, gate);
    ++rewritten_;
  }

  // --- refusals

  void dropout() {
    const Node& node = *node_;
    if (node.output(1) != nullptr && (!node.output(1)->users.empty() || graph_.is_output(node.output(1))))
      fail("Dropout '", node.name, "': its mask '", node.output(1)->name,
           "' is used; an engine only infers, where Dropout does nothing and has no mask");
    const Value *ratio = node.input(1), *training = node.input(2);
    if (training == nullptr) return;
    const bool certain = training->is_constant() && (ratio == nullptr || ratio->is_constant());
    if (certain && training->constant->bytes()[0] == std::byte{0}) return;
    if (certain && ratio != nullptr && ratio->constant->to_floats().at(0) == 0) return;
    fail("Dropout '", node.name, "' is in training mode; export the model in inference form");
  }

  Graph& graph_;
  Node* node_ = nullptr;
  int rewritten_ = 0;
  std::map<std::pair<const Value*, Shape>, Value*> reshaped_;
};

}  // namespace

int rewrite_forms(Graph& graph) {
  return Rewriter(graph).run();
}

int flatten_quantizers(Graph& graph) {
  std::vector<Node*> quantizers;
  for (const auto& node : graph.nodes())
    if (is_quantizer(node.get()) && !is_constant(node->output()) && !has_layout(shape_of(node->output())) &&
        !(feeds_products(*node) && !graph.is_output(node->output())))
      quantizers.push_back(node.get());
  for (Node* node : quantizers) {
    quantizer_params(*node);  // refuses one scale for each channel
    const Shape shape = shape_of(node->output());
    const int64_t count = ir::element_count(shape), last = shape.empty() ? 1 : shape.back();
    Value* to_rows = int_constant(graph, node->name + "/rows_shape", {count / last, last});
    Value* back = int_constant(graph, node->name + "/shape", shape);
    Value* rows =
        graph.add(OpKind::kReshape, graph.unique_name(node->name + "/rows"), {node->input(0), to_rows}, {}, node);
    Value* quantized = graph.add(OpKind::kFakeQuantize, graph.unique_name(node->output()->name + "/quantized"),
                                 {rows, node->input(1), node->input(2)}, node->attributes, node);
    graph.set_input(node, 2, nullptr);
    node->inputs.pop_back();
    graph.set_input(node, 0, quantized);
    graph.set_input(node, 1, back);
    node->kind = OpKind::kReshape;
    node->attributes.clear();
    ir::infer_node(*node);
  }
  return static_cast<int>(quantizers.size());
}

int collapse_reshapes(Graph& graph) {
  int collapsed = 0;
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (reshapes(node.get())) nodes.push_back(node.get());
  for (Node* node : nodes) {
    Value* source = node->input(0);
    while (reshapes(source->producer)) source = source->producer->input(0);
    const Shape shape = shape_of(node->output());
    if (source != node->input(0) && shape_of(source) != shape) {
      Value* target = int_constant(graph, node->name + "/shape", shape);
      while (node->inputs.size() > 1) {
        graph.set_input(node, node->inputs.size() - 1, nullptr);
        node->inputs.pop_back();
      }
      node->inputs.push_back(nullptr);
      graph.set_input(node, 0, source);
      graph.set_input(node, 1, target);
      node->kind = OpKind::kReshape;
      node->attributes.clear();
      ir::infer_node(*node);
      ++collapsed;
    } else if (shape_of(source) == shape && !graph.is_output(node->output()) && !source->is_constant()) {
      graph.replace_uses(node->output(), source);
      ++collapsed;
    }
  }
  graph.remove_dead();
  return collapsed;
}

}  // namespace octet::lower
