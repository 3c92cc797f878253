// The parts of onnx.proto that Octet reads, as plain structs. Byte strings are views of the parsed buffer, which must
// outlive them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::onnx::proto {

struct Tensor {
  std::string name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;  // TensorProto.DataType
  std::string_view raw_data;
  std::vector<float> float_data;
  std::vector<int32_t> int32_data;
  std::vector<int64_t> int64_data;
  std::vector<double> double_data;
  bool external = false;
  std::vector<std::pair<std::string, std::string>> external_data;  // location, offset, length, checksum
};

// AttributeProto.AttributeType
enum AttributeType {
  kNone = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8
};

struct Graph;

struct Attribute {
  std::string name;
  std::string refers_to;  // in the body of a function: the attribute of the call that gives the value
  int64_t type = kNone;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::optional<Tensor> t;
  std::shared_ptr<const Graph> g;  // a subgraph
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Dim {
  int64_t value = -1;  // negative: dynamic
  std::string parameter;
};

struct ValueInfo {
  std::string name;
  bool is_tensor = false;
  int64_t elem_type = 0;
  std::optional<std::vector<Dim>> shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  size_t sparse_initializers = 0;
};

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> defaults;  // of attributes that a call may leave out
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, int64_t>> opset_imports;
};

struct Model {
  int64_t ir_version = 0;
  std::optional<Graph> graph;
  std::vector<std::pair<std::string, int64_t>> opset_imports;  // domain, version
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
};

// UserError when the bytes are not a well-formed message, or have subgraphs in subgraphs beyond any use.
Model parse_model(std::string_view bytes);

}  // namespace octet::onnx::proto
