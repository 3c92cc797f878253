// A model made node by node, and what is read of its graph, for the tests of the import.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "onnx/import.h"
#include "onnx/out_model.h"

namespace octet::onnx {

inline ir::Tensor ints(const std::vector<int64_t>& v) {
  return ir::Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v);
}
inline ir::Tensor floats(ir::Shape shape, const std::vector<float>& v) {
  return ir::Tensor::of<float>(std::move(shape), v);
}

// A model under construction; any opset, any operator.
struct Draft : OutModel {
  explicit Draft(int version, ir::Shape input = {ir::kDynamic, 3, 8, 8}) {
    opset = version;
    graph_name = "draft";
    inputs.push_back({"x", {ir::DataType::kFloat32, std::move(input)}});
    outputs.push_back({"y", {ir::DataType::kFloat32, std::nullopt}});
  }
  Draft& node(const std::string& op, std::vector<std::string> in, std::vector<std::string> out,
              ir::Attributes attributes = {}) {
    nodes.push_back({op, "n_" + (out.empty() ? "" : out[0]), std::move(in), std::move(out), std::move(attributes)});
    return *this;
  }
  Draft& constant(const std::string& name, ir::Tensor tensor) {
    initializers.emplace_back(name, std::move(tensor));
    return *this;
  }
  ir::Graph import() const { return import_bytes(serialize(*this), {}); }
  std::string error() const {
    try {
      import();
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
};

inline std::vector<std::string> op_names(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) out.push_back(node->info().name);
  return out;
}

inline std::vector<int64_t> int_input(const ir::Graph& graph, const std::string& node, size_t input) {
  return graph.find_node(node)->input(input)->constant->to_ints();
}

}  // namespace octet::onnx
