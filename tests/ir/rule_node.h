// One node to try a shape rule on.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/infer.h"
#include "ir/test_graph.h"

namespace octet::ir {

// One node "n" on inputs i0, i1 ...; an input with a tensor is a constant, one without a type is absent.
class Rule {
 public:
  explicit Rule(OpKind kind, Attributes attributes = {}) : kind_(kind), attributes_(std::move(attributes)) {}
  Rule& in(Shape shape, DataType type = DataType::kFloat32) {
    return push(graph_->add_input(next(), {type, std::move(shape)}));
  }
  Rule& unknown() { return push(graph_->add_input(next(), {DataType::kFloat32, std::nullopt})); }
  Rule& constant(Tensor t) { return push(graph_->add_constant(next(), std::move(t))); }
  Rule& absent() { return push(nullptr); }
  std::vector<TensorType> types(size_t outputs = 1) {
    std::vector<std::string> names;
    for (size_t i = 0; i < outputs; ++i) names.push_back("o" + std::to_string(i));
    Node* node = graph_->add_node(kind_, "n", inputs_, names, attributes_);
    infer_node(*node);
    std::vector<TensorType> out;
    for (const Value* v : node->outputs) out.push_back(v->type);
    return out;
  }
  std::string shape() { return type_string(types()[0]); }
  std::string error() {
    return error_of([&] { types(); });
  }

 private:
  std::string next() { return "i" + std::to_string(inputs_.size()); }
  Rule& push(Value* v) {
    inputs_.push_back(v);
    return *this;
  }
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();  // a Rule is copied while it is written down
  OpKind kind_;
  Attributes attributes_;
  std::vector<Value*> inputs_;
};

}  // namespace octet::ir
