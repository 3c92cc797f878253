// A model on its way out: a graph already in the forms of one opset, and its serialization.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "onnx/upgrade.h"

namespace octet::onnx {

struct OutValue {
  std::string name;
  ir::TensorType type;
  // Sizes that are not known come up in a run, each on its own. A name that two share (as "batch" is) would be a
  // promise that they are equal, by which ONNX Runtime gives several tensors the memory of one.
  bool open_sizes = false;
};

struct OutModel {
  int opset = 19;
  std::string graph_name;
  std::vector<SourceNode> nodes;  // execution order
  std::vector<std::pair<std::string, ir::Tensor>> initializers;
  std::vector<OutValue> inputs, outputs, values;
  std::map<std::string, std::string> metadata;
};

// The bytes of a ModelProto. UserError when the model passes the 2 GiB that protobuf allows.
std::string serialize(const OutModel& model);

}  // namespace octet::onnx
