// Small quantized graphs for tests, and random tensors that are the same on every machine.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/infer.h"
#include "support/evaluate_graph.h"

namespace octet::testing {

// A small generator with a fixed definition (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(bits() >> 40) / static_cast<float>(1 << 24);
  }
  int64_t integer(int64_t low, int64_t high) { return low + static_cast<int64_t>(bits() % (high - low + 1)); }
  std::vector<float> values(int64_t count, float low, float high) {
    std::vector<float> out(count);
    for (float& v : out) v = uniform(low, high);
    return out;
  }

 private:
  uint64_t state_;
};

// Adds nodes to a graph with random weights and quantizers.
class QuantNet {
 public:
  explicit QuantNet(uint64_t seed) : random(seed) {}

  ir::Graph graph;
  Random random;

  ir::Value* input(ir::Shape shape, const std::string& name = "x") {
    return graph.add_input(name, {ir::DataType::kFloat32, std::move(shape)});
  }
  ir::Value* constant(ir::Shape shape, float low, float high) {
    const int64_t count = ir::element_count(shape);
    return graph.add_constant(graph.unique_name("c"),
                              ir::Tensor::of<float>(std::move(shape), random.values(count, low, high)));
  }
  ir::Value* ints(std::vector<int64_t> values) {
    const int64_t count = static_cast<int64_t>(values.size());
    return graph.add_constant(graph.unique_name("i"), ir::Tensor::of<int64_t>({count}, values));
  }
  ir::Value* scalar(float v) { return graph.add_constant(graph.unique_name("s"), ir::Tensor::scalar<float>(v)); }

  // Symmetric s8 by default; `zero_point` >= 0 with `is_unsigned` for u8.
  ir::Value* fq(ir::Value* x, float scale, bool is_unsigned = false, int zero_point = 0) {
    const std::string name = graph.unique_name(x->name + "/fq");
    ir::Value* z = graph.add_constant(name + "/zero_point",
                                      is_unsigned ? ir::Tensor::scalar<uint8_t>(static_cast<uint8_t>(zero_point))
                                                  : ir::Tensor::scalar<int8_t>(static_cast<int8_t>(zero_point)));
    ir::Value* s = graph.add_constant(name + "/scale", ir::Tensor::scalar<float>(scale));
    return graph.add(ir::OpKind::kFakeQuantize, name, {x, s, z},
                     {{"qmin", int64_t{is_unsigned ? 0 : -128}}, {"qmax", int64_t{is_unsigned ? 255 : 127}}});
  }
  // Weights with one scale for each channel of `axis`.
  ir::Value* weights(ir::Shape shape, int64_t axis, float amax = 1) {
    ir::Value* w = constant(shape, -amax, amax);
    const int64_t channels = shape[axis];
    std::vector<float> scales = random.values(channels, 0.5f * amax / 127, 1.2f * amax / 127);
    const std::string name = graph.unique_name(w->name + "/fq");
    ir::Value* s = graph.add_constant(name + "/scale", ir::Tensor::of<float>({channels}, scales));
    ir::Value* z =
        graph.add_constant(name + "/zero_point", ir::Tensor::of<int8_t>({channels}, std::vector<int8_t>(channels, 0)));
    return graph.add(ir::OpKind::kFakeQuantize, name, {w, s, z},
                     {{"qmin", int64_t{-127}}, {"qmax", int64_t{127}}, {"axis", axis}});
  }
  struct ConvOptions {
    int64_t stride = 1, pad = 0, groups = 1, dilation = 1;
    bool quantized = true, bias = true;
  };
  ir::Value* conv(ir::Value* x, int64_t in, int64_t out, int64_t kernel) { return conv(x, in, out, kernel, {}); }
  ir::Value* conv(ir::Value* x, int64_t in, int64_t out, int64_t kernel, const ConvOptions& o) {
    const ir::Shape shape{out, in / o.groups, kernel, kernel};
    // Results of order 1 for inputs of order 1.
    const float amax = 2.0f / std::sqrt(static_cast<float>(in / o.groups * kernel * kernel));
    ir::Value* w = o.quantized ? weights(shape, 0, amax) : constant(shape, -amax, amax);
    std::vector<ir::Value*> inputs{x, w};
    if (o.bias) inputs.push_back(constant({out}, -0.5f, 0.5f));
    return graph.add(ir::OpKind::kConv, graph.unique_name("conv"), inputs,
                     {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                      {"strides", std::vector<int64_t>{o.stride, o.stride}},
                      {"dilations", std::vector<int64_t>{o.dilation, o.dilation}},
                      {"pads", std::vector<int64_t>(4, o.pad)},
                      {"group", o.groups}});
  }
  ir::Value* gemm(ir::Value* x, int64_t in, int64_t out, bool transpose = true) {
    const float amax = 2.0f / std::sqrt(static_cast<float>(in));
    ir::Value* w = transpose ? weights({out, in}, 0, amax) : weights({in, out}, 1, amax);
    return graph.add(ir::OpKind::kGemm, graph.unique_name("gemm"), {x, w, constant({out}, -0.5f, 0.5f)},
                     {{"transB", int64_t{transpose}}});
  }
  ir::Value* op(ir::OpKind kind, std::vector<ir::Value*> inputs, ir::Attributes attributes = {}) {
    return graph.add(kind, graph.unique_name(ir::op_info(kind).name), std::move(inputs), std::move(attributes));
  }
  // Along the channels.
  std::vector<ir::Value*> split(ir::Value* x, const std::vector<int64_t>& sizes) {
    const std::string name = graph.unique_name("split");
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes.size(); ++i) names.push_back(graph.unique_name(name + "/" + std::to_string(i)));
    return graph.add_node(ir::OpKind::kSplit, name, {x, ints(sizes)}, names, {{"axis", int64_t{1}}})->outputs;
  }
  ir::Value* relu(ir::Value* x) { return op(ir::OpKind::kRelu, {x}); }
  ir::Value* relu6(ir::Value* x) { return op(ir::OpKind::kClip, {x, scalar(0), scalar(6)}); }

  void finish(std::vector<ir::Value*> outputs) {
    for (ir::Value* v : outputs) graph.add_output(v);
    ir::infer_shapes(graph);
  }
  std::map<std::string, Array> random_inputs(float low = -1, float high = 1) {
    std::map<std::string, Array> out;
    for (const ir::Value* v : graph.inputs())
      out[v->name] = {*v->type.shape, random.values(ir::element_count(*v->type.shape), low, high)};
    return out;
  }
};

}  // namespace octet::testing
