#include "onnx/narrow.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/data_type_codes.h"
#include "ir/half.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Tensor;

Tensor narrowed(const Tensor& tensor, const std::string& name) {
  const std::vector<float> values = tensor.to_floats();
  std::vector<uint16_t> halves(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    halves[i] = ir::float_to_half(values[i]);
    if (std::isfinite(values[i]) && !std::isfinite(ir::half_to_float(halves[i])))
      fail("constant '", name, "' has ", values[i], ", and the largest float16 is ", ir::kLargestHalf,
           "; export in fp32");
  }
  const auto bytes = std::as_bytes(std::span(halves));
  return Tensor(DataType::kFloat16, tensor.shape(), {bytes.begin(), bytes.end()});
}

// The inputs that ONNX takes in float32 alone.
bool takes_float32(const SourceNode& node, size_t input) {
  return node.op == "Resize" && input == 2;
}

class Narrower {
 public:
  explicit Narrower(OutModel& model) : model_(model) {
    for (const auto& [name, tensor] : model.initializers) names_.insert(name);
    for (const SourceNode& node : model.nodes) {
      OCTET_CHECK(node.op != "QuantizeLinear" && node.op != "DequantizeLinear", node.name);
      names_.insert(node.name);
      names_.insert(node.outputs.begin(), node.outputs.end());
      made_.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const OutValue& input : model.inputs) names_.insert(input.name);
  }

  void run() {
    constants();
    // Everything between the inputs and the outputs goes by other names, which are free for float16.
    std::vector<SourceNode> before, behind;
    for (const OutValue& input : model_.inputs)
      if (input.type.data_type == DataType::kFloat32)
        before.push_back(cast(input.name, half_name(input.name), DataType::kFloat16));
    for (const OutValue& output : model_.outputs)
      if (output.type.data_type == DataType::kFloat32 && made_.count(output.name))
        behind.push_back(cast(half_name(output.name), output.name, DataType::kFloat32));
    for (SourceNode& node : model_.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) rename(node.inputs[i], takes_float32(node, i));
      for (std::string& name : node.outputs) rename(name, false);
      if (node.op != "Cast") continue;
      int64_t& to = std::get<int64_t>(node.attributes.at("to"));
      if (ir::data_type_from_onnx(to) == DataType::kFloat32) to = ir::data_type_to_onnx(DataType::kFloat16);
    }
    for (OutValue& value : model_.values)
      if (value.type.data_type == DataType::kFloat32) value.type.data_type = DataType::kFloat16;
    model_.nodes.insert(model_.nodes.begin(), before.begin(), before.end());
    model_.nodes.insert(model_.nodes.end(), behind.begin(), behind.end());
  }

 private:
  // Those in float32 become float16; where one has to stay float32 as well, there is a second one.
  void constants() {
    std::set<std::string> kept, read;
    for (const SourceNode& node : model_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) (takes_float32(node, i) ? kept : read).insert(node.inputs[i]);
    for (const OutValue& output : model_.outputs) kept.insert(output.name);
    std::vector<std::pair<std::string, Tensor>> copies;
    for (auto& [name, tensor] : model_.initializers) {
      if (tensor.data_type() != DataType::kFloat32) continue;
      if (kept.count(name) && !read.count(name)) continue;
      if (kept.count(name))
        copies.emplace_back(half_name(name), narrowed(tensor, name));
      else
        tensor = narrowed(tensor, name);
    }
    model_.initializers.insert(model_.initializers.end(), copies.begin(), copies.end());
  }

  void rename(std::string& name, bool stays_float32) const {
    if (const auto it = half_name_.find(name); it != half_name_.end() && !stays_float32) name = it->second;
  }

  const std::string& half_name(const std::string& name) {
    std::string& half = half_name_[name];
    if (half.empty()) half = fresh(name + "_float16");
    return half;
  }

  SourceNode cast(const std::string& from, const std::string& to, DataType type) {
    return {"Cast", fresh(to + "_Cast"), {from}, {to}, {{"to", int64_t{ir::data_type_to_onnx(type)}}}};
  }

  std::string fresh(const std::string& hint) {
    std::string name = hint;
    for (int i = 1; !names_.insert(name).second; ++i) name = str(hint, "_", i);
    return name;
  }

  OutModel& model_;
  std::set<std::string> names_;
  std::set<std::string> made_;  // by nodes; an output may also be a constant or an input, which stays as it is
  std::map<std::string, std::string> half_name_;
};

}  // namespace

void narrow(OutModel& model) {
  Narrower(model).run();
}

}  // namespace octet::onnx
