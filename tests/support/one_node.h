// One small graph for each kind of operator, for tests that ask something of all kinds.
#pragma once
#include <functional>
#include <map>

#include "ir/infer.h"

namespace octet::testing {

using ir::Attributes;
using ir::DataType;
using ir::Graph;
using ir::kDynamic;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

// A graph with one node of the kind under test, fed by "x" float32[?, 4, 6, 6].
class OneNode {
 public:
  explicit OneNode(OpKind kind) : kind_(kind) {
    graph_.name = "one";
    x_ = graph_.add_input("x", {DataType::kFloat32, Shape{kDynamic, 4, 6, 6}});
  }
  Value* floats(Shape shape, float value = 0.5f) {
    const std::vector<float> values(static_cast<size_t>(ir::element_count(shape)), value);
    return graph_.add_constant("", Tensor::of<float>(std::move(shape), values));
  }
  Value* scalar(float value) { return graph_.add_constant("", Tensor::scalar(value)); }
  Value* ints(const std::vector<int64_t>& values) {
    return graph_.add_constant("", Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  Value* x() { return x_; }
  Value* flat() { return graph_.add(OpKind::kFlatten, "flat", {x_}); }
  Value* before(OpKind kind, std::vector<Value*> inputs) { return graph_.add(kind, "before", std::move(inputs)); }
  Value* constant(Tensor t) { return graph_.add_constant("", std::move(t)); }
  // Adds the node; all its outputs are outputs of the graph (`after`: behind another node).
  void done(std::vector<Value*> inputs, Attributes attributes = {}, size_t outputs = 1) {
    std::vector<std::string> names;
    for (size_t i = 0; i < outputs; ++i) names.push_back(i == 0 ? "y" : str("y", i));
    ir::Node* node = graph_.add_node(kind_, "node", std::move(inputs), names, std::move(attributes));
    ir::infer_node(*node);
    for (Value* v : node->outputs) graph_.add_output(v);
  }
  Graph& graph() { return graph_; }

 private:
  OpKind kind_;
  Graph graph_;
  Value* x_;
};

using Maker = std::function<void(OneNode&)>;

inline std::vector<int64_t> v(std::initializer_list<int64_t> values) {
  return values;
}

// For each kind; a new one needs a line here.
inline const std::map<OpKind, Maker>& makers() {
  static const Maker unary = [](OneNode& n) { n.done({n.x()}); };
  static const Maker binary = [](OneNode& n) { n.done({n.x(), n.floats({4, 1, 1})}); };
  static const Maker pool = [](OneNode& n) {
    n.done({n.x()},
           {{"kernel_shape", v({3, 3})}, {"strides", v({2, 2})}, {"pads", v({1, 1, 1, 1})}, {"ceil_mode", int64_t{1}}});
  };
  static const Maker reduce = [](OneNode& n) { n.done({n.x(), n.ints({2, 3})}, {{"keepdims", int64_t{0}}}); };
  static const std::map<OpKind, Maker> table = {
      {OpKind::kConv,
       [](OneNode& n) {
         n.done({n.x(), n.floats({6, 2, 3, 3}), n.floats({6})},
                {{"kernel_shape", v({3, 3})}, {"group", int64_t{2}}, {"pads", v({1, 1, 1, 1})}});
       }},
      {OpKind::kConvTranspose,
       [](OneNode& n) {
         n.done({n.x(), n.floats({4, 2, 2, 2})}, {{"strides", v({2, 2})}, {"output_padding", v({1, 1})}});
       }},
      {OpKind::kGemm,
       [](OneNode& n) {
         n.done({n.flat(), n.floats({5, 144}), n.floats({5})}, {{"transB", int64_t{1}}, {"alpha", 0.5f}});
       }},
      {OpKind::kMatMul,
       [](OneNode& n) {
         n.done({n.x(), n.floats({6, 2})});
       }},
      {OpKind::kBatchNormalization,
       [](OneNode& n) {
         n.done({n.x(), n.floats({4}), n.floats({4}), n.floats({4}), n.floats({4})}, {{"epsilon", 0.001f}});
       }},
      {OpKind::kLayerNormalization,
       [](OneNode& n) {
         n.done({n.x(), n.floats({6}, 1.5f), n.floats({6})}, {{"epsilon", 0.001f}});
       }},
      {OpKind::kLRN,
       [](OneNode& n) {
         n.done({n.x()}, {{"size", int64_t{3}}});
       }},
      {OpKind::kRelu, unary},
      {OpKind::kClip,
       [](OneNode& n) {
         n.done({n.x(), nullptr, n.scalar(6)});
       }},
      {OpKind::kLeakyRelu,
       [](OneNode& n) {
         n.done({n.x()}, {{"alpha", 0.2f}});
       }},
      {OpKind::kPRelu, binary},
      {OpKind::kElu, unary},
      {OpKind::kSigmoid, unary},
      {OpKind::kHardSigmoid, unary},
      {OpKind::kHardSwish, unary},
      {OpKind::kTanh, unary},
      {OpKind::kSoftplus, unary},
      {OpKind::kSoftmax,
       [](OneNode& n) {
         n.done({n.x()}, {{"axis", int64_t{1}}});
       }},
      {OpKind::kLogSoftmax,
       [](OneNode& n) {
         n.done({n.x()}, {{"axis", int64_t{2}}});
       }},
      {OpKind::kExp, unary},
      {OpKind::kLog, unary},
      {OpKind::kSqrt, unary},
      {OpKind::kNeg, unary},
      {OpKind::kAbs, unary},
      {OpKind::kErf, unary},
      {OpKind::kGelu, unary},
      {OpKind::kMish, unary},
      {OpKind::kFloor, unary},
      {OpKind::kAdd, binary},
      {OpKind::kSub, binary},
      {OpKind::kMul, binary},
      {OpKind::kDiv, binary},
      {OpKind::kPow, binary},
      {OpKind::kMin,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(1), n.floats({6})});
       }},
      {OpKind::kMax, binary},
      {OpKind::kMaxPool, pool},
      {OpKind::kAveragePool, pool},
      {OpKind::kGlobalAveragePool, unary},
      {OpKind::kGlobalMaxPool, unary},
      {OpKind::kReduceMean, reduce},
      {OpKind::kReduceSum, reduce},
      {OpKind::kReduceMax, reduce},
      {OpKind::kArgMax,
       [](OneNode& n) {
         n.done({n.x()}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
       }},
      {OpKind::kConcat,
       [](OneNode& n) {
         n.done({n.x(), n.x()}, {{"axis", int64_t{1}}});
       }},
      {OpKind::kSplit,
       [](OneNode& n) {
         n.done({n.x(), n.ints({1, 3})}, {{"axis", int64_t{1}}}, 2);
       }},
      {OpKind::kSlice,
       [](OneNode& n) {
         n.done({n.x(), n.ints({-1}), n.ints({-7}), n.ints({2}), n.ints({-2})});
       }},
      {OpKind::kPad,
       [](OneNode& n) {
         n.done({n.x(), n.ints({0, 0, 1, 1, 0, 0, 2, 2}), n.scalar(1)});
       }},
      {OpKind::kReshape,
       [](OneNode& n) {
         n.done({n.x(), n.ints({0, -1, 9})});
       }},
      {OpKind::kFlatten, unary},
      {OpKind::kSqueeze,
       [](OneNode& n) {
         n.done({n.before(OpKind::kGlobalAveragePool, {n.x()}), n.ints({2, 3})});
       }},
      {OpKind::kUnsqueeze,
       [](OneNode& n) {
         n.done({n.x(), n.ints({0, -1})});
       }},
      {OpKind::kTranspose,
       [](OneNode& n) {
         n.done({n.x()}, {{"perm", v({0, 2, 3, 1})}});
       }},
      {OpKind::kExpand,
       [](OneNode& n) {
         n.done({n.before(OpKind::kGlobalMaxPool, {n.x()}), n.ints({1, 4, 3, 3})});
       }},
      {OpKind::kResize,
       [](OneNode& n) {
         n.done(
             {n.x(), nullptr, n.constant(Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 1.5f}))},
             {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("pytorch_half_pixel")}});
       }},
      {OpKind::kDepthToSpace,
       [](OneNode& n) {
         n.done({n.x()}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}});
       }},
      {OpKind::kIdentity, unary},
      {OpKind::kDropout,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(0.25f)}, {}, 2);
       }},
      {OpKind::kCast,
       [](OneNode& n) {
         n.done({n.x()}, {{"to", int64_t{11}}});
       }},
      {OpKind::kQuantizeLinear,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(0.5f), n.constant(Tensor::scalar<int8_t>(3))});
       }},
      {OpKind::kDequantizeLinear,
       [](OneNode& n) {
         // A scale for each channel, where the QuantizeLinear before it has one, so that the two are no pair.
         n.done({n.before(OpKind::kQuantizeLinear, {n.x(), n.scalar(0.5f), n.constant(Tensor::scalar<uint8_t>(3))}),
                 n.constant(Tensor::of<float>({4}, {1, 2, 3, 4})), n.constant(Tensor::of<uint8_t>({4}, {3, 3, 3, 3}))});
       }},
      {OpKind::kFakeQuantize,
       [](OneNode& n) {
         n.done({n.x(), n.scalar(0.5f), n.constant(Tensor::scalar<int8_t>(0))},
                {{"qmin", int64_t{-128}}, {"qmax", int64_t{127}}, {"state", std::string("frozen")}});
       }},
  };
  return table;
}

}  // namespace octet::testing
