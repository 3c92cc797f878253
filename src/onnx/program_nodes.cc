#include "onnx/program_nodes.h"

#include <algorithm>
#include <unordered_set>

#include "ir/data_type_codes.h"
#include "ir/program_types.h"

namespace octet::onnx {
namespace {

void name_as_before_opset_20(ir::Attributes& grid_sample) {
  const auto it = grid_sample.find("mode");
  if (it == grid_sample.end()) return;
  std::string* mode = std::get_if<std::string>(&it->second);
  if (mode && (*mode == "linear" || *mode == "cubic")) *mode = "bi" + *mode;
}

class Writer {
 public:
  Writer(const ir::Graph& graph, const dense::Program& program, int opset,
         const std::function<std::string(const std::string& hint)>& fresh_name)
      : program_(program),
        opset_(opset),
        fresh_name_(fresh_name),
        names_(program.values.size()),
        types_(value_types(program)) {
    for (size_t i = 0; i < program.inputs.size(); ++i) name_of(program.inputs[i].value) = graph.outputs()[i]->name;
    for (const dense::Output& output : program.outputs) {
      std::string& name = name_of(output.value);
      if (name.empty()) name = fresh_name(program.values[static_cast<size_t>(output.value)]);
    }
  }

  ProgramNodes run() {
    for (const auto& [value, tensor] : program_.constants) {
      ir::Tensor made(ir::data_type_of(tensor.type()), tensor.shape(), {tensor.bytes().begin(), tensor.bytes().end()});
      out_.constants.emplace_back(made_name(value), std::move(made));
    }
    out_.nodes = nodes(program_.operations);
    const std::vector<ir::ProgramOutput> outputs = ir::program_outputs(program_);
    for (size_t i = 0; i < outputs.size(); ++i)
      out_.outputs.push_back({name_of(program_.outputs[i].value), outputs[i].type, true});
    return std::move(out_);
  }

 private:
  std::string& name_of(int value) { return names_[static_cast<size_t>(value)]; }

  const std::string& made_name(int value) {
    std::string& name = name_of(value);
    if (name.empty()) name = fresh_name_(program_.values[static_cast<size_t>(value)]);
    return name;
  }

  std::vector<std::string> list(const std::vector<int>& values) {
    std::vector<std::string> out;
    for (const int v : values) out.push_back(v < 0 ? std::string() : made_name(v));
    return out;
  }

  std::vector<SourceNode> nodes(const std::vector<dense::Operation>& operations) {
    std::vector<SourceNode> out;
    for (const dense::Operation& operation : operations) {
      SourceNode& node = out.emplace_back();
      node.op = operation.op, node.name = fresh_name_(operation.name);
      node.inputs = list(operation.inputs), node.outputs = list(operation.outputs);
      node.attributes = attributes(operation);
      for (size_t i = 0; i < operation.branches.size(); ++i)
        node.branches.push_back(branch(operation.branches[i], operation.op == "Loop" ? "body"
                                                              : i == 0               ? "then_branch"
                                                                                     : "else_branch"));
    }
    return out;
  }

  // What a branch puts out must be made in it.
  SourceBranch branch(const dense::Block& block, const char* key) {
    SourceBranch out{key, {}, nodes(block.operations), {}};
    for (const int v : block.inputs) out.inputs.emplace_back(made_name(v), type_of(v));
    // ONNX Runtime asks for the shapes of a number of an iteration and of a condition.
    for (size_t i = 0; i < std::min<size_t>(out.inputs.size(), 2); ++i) out.inputs[i].second.shape = ir::Shape{};
    std::unordered_set<int> made;
    for (const dense::Operation& operation : block.operations)
      made.insert(operation.outputs.begin(), operation.outputs.end());
    for (const int v : block.outputs) {
      std::string name = made_name(v);
      if (made.erase(v) == 0) {
        SourceNode& copy = out.nodes.emplace_back();
        copy.op = "Identity", copy.inputs = {name};
        copy.name = fresh_name_(name + "_copy");
        copy.outputs = {name = fresh_name_(name + "_of_branch")};
      }
      out.outputs.emplace_back(name, type_of(v));
    }
    return out;
  }

  ir::TensorType type_of(int value) const {
    return {ir::data_type_of(types_[static_cast<size_t>(value)]), std::nullopt};
  }

  ir::Attributes attributes(const dense::Operation& operation) const {
    ir::Attributes out;
    for (const auto& [key, value] : operation.attributes)
      std::visit([&, &name = key](const auto& v) { out[name] = v; }, value);
    if (operation.op == "GridSample" && opset_ < 20) name_as_before_opset_20(out);
    if (operation.op != "ConstantOfShape" || operation.attributes.count("value_type") == 0) return out;
    const auto* type = std::get_if<int64_t>(&operation.attributes.at("value_type"));
    const auto* whole = std::get_if<int64_t>(&operation.attributes.at("value_int"));
    const auto* real = std::get_if<float>(&operation.attributes.at("value_float"));
    OCTET_CHECK(type && whole && real);
    ir::Tensor element;
    switch (ir::data_type_from_onnx(*type)) {
      case ir::DataType::kInt64:
        element = ir::Tensor::of<int64_t>({1}, std::vector{*whole});
        break;
      case ir::DataType::kInt32:
        element = ir::Tensor::of<int32_t>({1}, std::vector{static_cast<int32_t>(*whole)});
        break;
      case ir::DataType::kBool:
        element = ir::Tensor(ir::DataType::kBool, {1}, {static_cast<std::byte>(*whole != 0)});
        break;
      default:
        element = ir::Tensor::of<float>({1}, std::vector{*real});
    }
    return {{"value", element}};
  }

  const dense::Program& program_;
  int opset_;
  const std::function<std::string(const std::string& hint)>& fresh_name_;
  std::vector<std::string> names_;
  std::vector<dense::Type> types_;
  ProgramNodes out_;
};

}  // namespace

ProgramNodes program_nodes(const ir::Graph& graph, const dense::Program& program, int opset,
                           const std::function<std::string(const std::string& hint)>& fresh_name) {
  return Writer(graph, program, opset, fresh_name).run();
}

}  // namespace octet::onnx
