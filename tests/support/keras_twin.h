// A small network as Keras and tf2onnx write it, in NHWC with Transposes about every convolution and pool, and the same
// in NCHW, as PyTorch writes it.
#pragma once
#include <string>
#include <vector>

#include "passes/block_builder.h"

namespace octet::testing {

using ir::OpKind;

struct LayoutBuilder : passes::BlockBuilder {
  using passes::BlockBuilder::BlockBuilder;
  ir::Value* to_nhwc(ir::Value* v, const std::string& name) {
    return op(OpKind::kTranspose, name, {v}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  }
  ir::Value* to_nchw(ir::Value* v, const std::string& name) {
    return op(OpKind::kTranspose, name, {v}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  }
};

// With the same weights in both layouts.
class KerasTwin : public LayoutBuilder {
 public:
  explicit KerasTwin(bool channels_last, int64_t batch = 1)
      : LayoutBuilder(channels_last ? ir::Shape{batch, 12, 12, 4} : ir::Shape{batch, 4, 12, 12}), last(channels_last) {
    auto* y = pad(x, "pad", {0, 1, 1, 0});
    y = relu(add(convolution(y, "conv1", 8, 3), bias("bias1", 8), "bias_add1"), "relu1");
    auto* scale = op(OpKind::kReduceMean, "squeeze", {y}, {{"axes", image_axes()}});
    scale = relu(add(convolution(scale, "reduce", 4, 1), bias("bias2", 4), "bias_add2"), "relu2");
    scale = op(OpKind::kSigmoid, "gate", {convolution(scale, "expand", 8, 1)});
    y = op(OpKind::kMul, "scaled", {y, scale});
    auto* branch = convolution(y, "conv2", 8, 1);
    auto* both = op(OpKind::kConcat, "concat", {add(branch, y, "residual"), branch}, {{"axis", int64_t{last ? 3 : 1}}});
    auto* pooled = channels_first(both, "pool/t1");
    pooled = op(OpKind::kMaxPool, "pool", {pooled}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    pooled = channels_back(pooled, "pool/t2");
    auto* mean = op(OpKind::kReduceMean, "mean", {pooled}, {{"axes", image_axes()}, {"keepdims", int64_t{0}}});
    auto* fc = op(OpKind::kMatMul, "fc", {mean, parameter("fc.weight", {16, 5})});
    graph.add_output(op(OpKind::kSoftmax, "softmax", {add(fc, parameter("fc.bias", {5}), "fc_bias")}));
  }

 private:
  using Ints = std::vector<int64_t>;
  Ints image_axes() const { return last ? Ints{1, 2} : Ints{2, 3}; }
  ir::Value* bias(const std::string& name, int64_t n) {
    return parameter(name, last ? ir::Shape{n} : ir::Shape{1, n, 1, 1});
  }
  ir::Value* channels_first(ir::Value* v, const std::string& name) { return last ? to_nchw(v, name) : v; }
  ir::Value* channels_back(ir::Value* v, const std::string& name) { return last ? to_nhwc(v, name) : v; }
  ir::Value* convolution(ir::Value* v, const std::string& name, int64_t out, int64_t kernel) {
    ir::Value* in = channels_first(v, name + "/t1");
    ir::Value* w = parameter(name + ".weight", {out, channels(in), kernel, kernel});
    return channels_back(op(OpKind::kConv, name, {in, w}), name + "/t2");
  }
  ir::Value* pad(ir::Value* v, const std::string& name, const Ints& edges) {
    const Ints pads = last ? Ints{0, edges[0], edges[1], 0, 0, edges[2], edges[3], 0}
                           : Ints{0, 0, edges[0], edges[1], 0, 0, edges[2], edges[3]};
    return op(OpKind::kPad, name, {v, graph.add_constant(name + ".pads", ir::Tensor::of<int64_t>({8}, pads))});
  }
  bool last;
};

}  // namespace octet::testing
