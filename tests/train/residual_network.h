// A small residual network with its labels, and a step of training.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "ir/infer.h"
#include "train/executor.h"
#include "train/op_cases.h"

namespace octet::train::testing {

// Two convolutions with batch norm, a projected shortcut, a classifier with dropout.
inline ir::Graph residual_network(double dropout = 0) {
  ir::Graph g;
  const auto weight = [&](const std::string& name, const ir::Shape& shape) {
    return g.add_constant(name, random_constant(shape, name.size() + shape.size(), -0.4, 0.4), true);
  };
  const auto conv_norm = [&](const std::string& name, ir::Value* x, int64_t in, int64_t out, int64_t kernel) {
    ir::Value* y = g.add(ir::OpKind::kConv, name, {x, weight(name + ".weight", {out, in, kernel, kernel})},
                         {{"pads", std::vector<int64_t>(4, kernel / 2)}});
    return g.add(ir::OpKind::kBatchNormalization, name + "_bn",
                 {y, g.add_constant(name + ".gamma", random_constant({out}, 3, 0.5, 1.5), true),
                  g.add_constant(name + ".beta", random_constant({out}, 4, -0.5, 0.5), true),
                  g.add_constant(name + ".mean", random_constant({out}, 5, -0.1, 0.1)),
                  g.add_constant(name + ".variance", random_constant({out}, 6, 0.5, 1.5))});
  };
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 3, 8, 8}});
  ir::Value* a = g.add(ir::OpKind::kRelu, "relu1", {conv_norm("conv1", x, 3, 16, 3)});
  ir::Value* b = conv_norm("conv2", a, 16, 16, 3);
  ir::Value* sum = g.add(ir::OpKind::kAdd, "add", {b, conv_norm("shortcut", a, 16, 16, 1)});
  ir::Value* y = g.add(ir::OpKind::kRelu, "relu2", {sum});
  y = g.add(ir::OpKind::kFlatten, "flatten", {g.add(ir::OpKind::kGlobalAveragePool, "pool", {y})});
  if (dropout > 0)
    y = g.add(ir::OpKind::kDropout, "dropout",
              {y, g.add_constant("", ir::Tensor::scalar(static_cast<float>(dropout)))});
  g.add_output(g.add(ir::OpKind::kGemm, "logits", {y, weight("fc.weight", {10, 16}), weight("fc.bias", {10})},
                     {{"transB", int64_t{1}}}));
  ir::infer_shapes(g);
  return g;
}

inline at::Tensor loss_of(Executor& e, const at::Tensor& x, const at::Tensor& labels) {
  return at::cross_entropy_loss(e.forward({x}, Mode::kTrain)[0], labels);
}

inline std::vector<at::Tensor> gradient_leaves_of(const Executor& e) {
  std::vector<at::Tensor> out;
  for (const auto& [name, tensor] : e.named_parameters()) out.push_back(tensor);
  return out;
}

inline void gradient_step(Executor& e, const at::Tensor& x, const at::Tensor& labels, double rate) {
  const auto parameters = gradient_leaves_of(e);
  const auto gradients = torch::autograd::grad({loss_of(e, x, labels)}, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].detach().sub_(gradients[i], rate);
}

inline const at::Tensor kLabels = at::tensor(std::vector<int64_t>{1, 3, 5, 7, 9, 0, 2, 4});

}  // namespace octet::train::testing
