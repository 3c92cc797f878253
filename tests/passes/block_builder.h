// Small graphs for the tests of placement and passes.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/infer.h"

namespace octet::passes {

class BlockBuilder {
 public:
  explicit BlockBuilder(ir::Shape input = {1, 4, 8, 8}) {
    graph.name = "block";
    x = graph.add_input("input", {ir::DataType::kFloat32, std::move(input)});
  }

  static int64_t channels(const ir::Value* v) { return v->type.shape->at(1); }

  std::vector<float> random(size_t n, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> d(low, high);
    std::vector<float> v(n);
    for (float& e : v) e = d(engine);
    return v;
  }
  ir::Value* parameter(const std::string& name, ir::Shape shape, float low = -1, float high = 1) {
    const size_t n = static_cast<size_t>(ir::element_count(shape));
    return graph.add_constant(name, ir::Tensor::of<float>(shape, random(n, low, high)), true);
  }
  ir::Value* op(ir::OpKind kind, const std::string& name, std::vector<ir::Value*> inputs, ir::Attributes a = {}) {
    return graph.add(kind, name, std::move(inputs), std::move(a));
  }
  ir::Value* conv(ir::Value* in, const std::string& name, int64_t out, int64_t kernel = 1, bool bias = false) {
    std::vector<ir::Value*> inputs = {in, parameter(name + ".weight", {out, channels(in), kernel, kernel})};
    if (bias) inputs.push_back(parameter(name + ".bias", {out}));
    const int64_t pad = kernel / 2;
    return op(ir::OpKind::kConv, name, inputs, {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  }
  ir::Value* bn(ir::Value* in, const std::string& name) {
    const int64_t n = channels(in);
    return op(ir::OpKind::kBatchNormalization, name,
              {in, parameter(name + ".weight", {n}), parameter(name + ".bias", {n}),
               parameter(name + ".running_mean", {n}), parameter(name + ".running_var", {n}, 0.1f, 2.0f)});
  }
  ir::Value* relu(ir::Value* in, const std::string& name) { return op(ir::OpKind::kRelu, name, {in}); }
  ir::Value* add(ir::Value* a, ir::Value* b, const std::string& name) { return op(ir::OpKind::kAdd, name, {a, b}); }
  ir::Value* gemm(ir::Value* in, const std::string& name, int64_t out) {
    ir::Value* w = parameter(name + ".weight", {out, channels(in)});
    return op(ir::OpKind::kGemm, name, {in, w, parameter(name + ".bias", {out})}, {{"transB", int64_t{1}}});
  }
  ir::Value* silu(ir::Value* in, const std::string& name) {
    return op(ir::OpKind::kMul, name, {in, op(ir::OpKind::kSigmoid, name + ".sigmoid", {in})});
  }

  ir::Graph graph;
  ir::Value* x;
  std::mt19937 engine{17};
};

}  // namespace octet::passes
