#include "onnx/lift_codes.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/infer.h"
#include "ir/query.h"
#include "ir/traits.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

bool is_code_type(DataType type) {
  return type == DataType::kUInt8 || type == DataType::kInt8;
}

bool same_constant(const Value* a, const Value* b) {
  if (a == b) return true;
  if (!a || !b || a->constant->data_type() != b->constant->data_type()) return false;
  return std::equal(a->constant->bytes().begin(), a->constant->bytes().end(), b->constant->bytes().begin(),
                    b->constant->bytes().end());
}

class Lifter {
 public:
  explicit Lifter(Graph& graph) : graph_(graph) {}

  void run() {
    for (Node* node : node_list(graph_))
      if (fits(*node)) lift(node);
  }

 private:
  // The QuantizeLinear that made these codes, with one constant scale.
  static const Node* quantizer_of(const Value* v) {
    if (!v || v->is_constant() || !is_code_type(v->type.data_type)) return nullptr;
    const Node* q = v->producer;
    if (!q || q->kind != OpKind::kQuantizeLinear || !q->input(1)->is_constant()) return nullptr;
    if (q->input(1)->constant->size() != 1 || (q->has_input(2) && !q->input(2)->is_constant())) return nullptr;
    return q;
  }

  static int64_t zero_point(const Node& q) { return q.has_input(2) ? q.input(2)->constant->to_ints().at(0) : 0; }

  static bool fits(const Node& node) {
    const Node* first = node.inputs.empty() ? nullptr : quantizer_of(node.inputs[0]);
    if (!first) return false;
    switch (node.kind) {
      case OpKind::kMaxPool:  // its indices are no codes
        return node.outputs.size() == 1;
      case OpKind::kRelu:  // on codes it compares with code 0
        return zero_point(*first) == 0;
      case OpKind::kPad:  // its fill is a code, so it survives (lift_fill)
        return node.get_string("mode", "constant") != "constant" || !node.has_input(2) || node.input(2)->is_constant();
      case OpKind::kConcat:
        return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* in) {
          const Node* q = quantizer_of(in);
          return q && same_constant(q->input(1), first->input(1)) && same_constant(q->input(2), first->input(2));
        });
      case OpKind::kArgMax:  // codes have the order of their numbers
        return true;
      case OpKind::kDropout:  // ONNX has it on floats only
        return false;
      default:
        return commutes_with_quantizer(node);
    }
  }

  static std::vector<Value*> parameters(Value* codes, const Node& q) {
    std::vector<Value*> out{codes, q.input(1)};
    if (q.has_input(2)) out.push_back(q.input(2));
    return out;
  }

  Value* real(Value* codes, Node* before) {
    Value*& known = real_[codes];
    if (!known) {
      const std::string name = graph_.unique_name(codes->name + "_real");
      known = graph_.add(OpKind::kDequantizeLinear, name, parameters(codes, *quantizer_of(codes)), {}, before);
    }
    return known;
  }

  // A Pad on codes fills with a code, and with code 0 where it names none.
  void lift_fill(Node* node, const Node& q) {
    if (node->kind != OpKind::kPad || node->get_string("mode", "constant") != "constant") return;
    const int64_t code = node->has_input(2) ? node->input(2)->constant->to_ints().at(0) : 0;
    const float scale = q.input(1)->constant->to_floats().at(0);
    const float fill = static_cast<float>(code - zero_point(q)) * scale;
    Value* value = graph_.add_constant(graph_.unique_name(node->name + "_fill"), Tensor::scalar(fill));
    while (node->inputs.size() < 3) node->inputs.push_back(nullptr);
    graph_.set_input(node, 2, value);
  }

  void lift(Node* node) {
    const Node& q = *quantizer_of(node->input(0));
    lift_fill(node, q);
    for (size_t i = 0; i < ir::data_inputs(*node); ++i) graph_.set_input(node, i, real(node->input(i), node));
    ir::infer_node(*node);
    Node* behind = graph_.next(node);
    for (Value* out : node->outputs) {
      if (!out || out->type.data_type != DataType::kFloat32) continue;
      const std::string name = graph_.unique_name(out->name + "_codes");
      Value* codes = graph_.add(OpKind::kQuantizeLinear, name, parameters(out, q), {}, behind);
      const bool output = graph_.is_output(out);
      graph_.replace_uses(out, codes, false, codes->producer);
      if (!output) continue;
      // The graph's output keeps its name and its type.
      const std::string wanted = out->name;
      graph_.rename(out, graph_.unique_name(wanted + "_real"));
      graph_.rename(codes, wanted);
    }
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> real_;
};

}  // namespace

void lift_codes(Graph& graph) {
  Lifter(graph).run();
}

}  // namespace octet::onnx
