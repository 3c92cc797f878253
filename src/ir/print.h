// A graph as text, for people, dumps after passes, and approved files of tests.
#pragma once
#include <string>

#include "ir/graph.h"

namespace octet::ir {

// One line for the graph and for every input, constant, node and output, in the graph's own order. Constants of up to
// eight elements are shown in full. Numbers are printed so that they read back exactly; the text does not depend on the
// machine, the locale or addresses.
//   graph resnet18, opset 19
//   input input float32[?, 3, 224, 224]
//   constant fc.bias float32[10], trainable
//   node conv1: Conv(input, conv1.weight) {kernel_shape=[7, 7]} -> conv1 float32[?, 64, 112, 112]
//   output logits float32[?, 10]
std::string to_text(const Graph& graph);

// The line of one node, without its end.
std::string to_text(const Node& node);

// An attribute's value as to_text shows it: 1, 0.5, "NOTSET", [1, 1], or the type of a tensor.
std::string attribute_text(const Attribute& attribute);

}  // namespace octet::ir
