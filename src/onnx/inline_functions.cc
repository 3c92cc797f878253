#include "onnx/inline_functions.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "onnx/node_order.h"
#include "onnx/subgraphs.h"

namespace octet::onnx {
namespace {

using Key = std::array<std::string, 3>;

constexpr size_t kMostDeep = 64, kMostNodes = 1 << 16;

class Inliner {
 public:
  Inliner(const proto::Model& model, int opset) : opset_(opset) {
    for (const proto::Function& function : model.functions)
      functions_.emplace(Key{function.domain, function.name, function.overload}, &function);
    for (const proto::Tensor& tensor : model.graph->initializers) names_.insert(tensor.name);
    for (const proto::ValueInfo& input : model.graph->inputs) names_.insert(input.name);
    for (const proto::Node& node : model.graph->nodes) {
      names_.insert(node.name);
      names_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  std::vector<proto::Node> inlined(std::vector<proto::Node> nodes) {
    std::vector<proto::Node> out;
    for (proto::Node& node : nodes) add(std::move(node), 0, out);
    return out;
  }

 private:
  const proto::Function* called_by(const proto::Node& node) const {
    const auto it = functions_.find(Key{node.domain, node.op_type, node.overload});
    return it == functions_.end() ? nullptr : it->second;
  }

  void add(proto::Node node, size_t depth, std::vector<proto::Node>& out) {
    for (proto::Attribute& attribute : node.attributes) {
      if (!attribute.g) continue;
      proto::Graph graph = *attribute.g;
      std::vector<proto::Node> inside;
      for (proto::Node& inner : graph.nodes) add(std::move(inner), depth + 1, inside);
      graph.nodes = std::move(inside);
      attribute.g = std::make_shared<const proto::Graph>(std::move(graph));
    }
    const proto::Function* function = called_by(node);
    if (depth > 0 && ++count_ > kMostNodes) fail("its functions and subgraphs make more than ", kMostNodes, " nodes");
    if (!function) {
      out.push_back(std::move(node));
      return;
    }
    if (depth >= kMostDeep)
      fail(text_of(node), ": calls functions that call functions, ", kMostDeep, " deep; one of them calls itself");
    for (const auto& [domain, version] : function->opset_imports)
      if ((domain.empty() || domain == "ai.onnx") && version != opset_)
        fail(text_of(node), ": the function is made for opset ", version, " and the model for ", opset_,
             "; inline it with onnx.inliner, which converts it");
    for (proto::Node& inner : body(node, *function)) add(std::move(inner), depth + 1, out);
  }

  std::vector<proto::Node> body(const proto::Node& call, const proto::Function& function) {
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size())
      fail(text_of(call), ": the function has ", function.inputs.size(), " inputs and ", function.outputs.size(),
           " outputs, the call ", call.inputs.size(), " and ", call.outputs.size());
    const std::string place =
        (call.name.empty() ? call.outputs.empty() ? call.op_type : call.outputs[0] : call.name) + "/";
    std::unordered_map<std::string, std::string> names;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    std::vector<proto::Node> made;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const std::string &inner = function.outputs[i], &outer = call.outputs[i];
      if (outer.empty()) continue;
      if (!names.emplace(inner, outer).second) {  // an input that is handed on, or an output that is one twice
        proto::Node copy;
        copy.op_type = "Identity", copy.inputs = {inner}, copy.outputs = {outer};
        made.push_back(std::move(copy));
      }
    }
    std::vector<proto::Node> nodes = function.nodes;
    nodes.insert(nodes.end(), made.begin(), made.end());
    for (const proto::Node& node : function.nodes)
      for (const std::string& output : node.outputs)
        if (!output.empty() && !names.count(output)) names[output] = fresh_name(place + output);
    for (size_t i = 0; i < nodes.size(); ++i) {
      proto::Node& node = nodes[i];
      const bool handed_on = i >= function.nodes.size();
      const std::vector<std::string> outputs = node.outputs;
      rename_values(node, names);
      if (handed_on) node.outputs = outputs;
      if (!node.name.empty()) node.name = fresh_name(place + node.name);
      resolve_attributes(node, call, function);
    }
    return nodes;
  }

  // Attributes that stand for one of the call get its value, or the default; without either they are left out.
  static void resolve_attributes(proto::Node& node, const proto::Node& call, const proto::Function& function) {
    const auto find = [](const std::vector<proto::Attribute>& list, const std::string& name) {
      const auto it = std::find_if(list.begin(), list.end(), [&](const proto::Attribute& a) { return a.name == name; });
      return it == list.end() ? nullptr : &*it;
    };
    std::vector<proto::Attribute> resolved;
    for (proto::Attribute& attribute : node.attributes) {
      if (attribute.g) {
        proto::Graph graph = *attribute.g;
        for (proto::Node& inner : graph.nodes) resolve_attributes(inner, call, function);
        attribute.g = std::make_shared<const proto::Graph>(std::move(graph));
      }
      if (attribute.refers_to.empty()) {
        resolved.push_back(std::move(attribute));
        continue;
      }
      const proto::Attribute* given = find(call.attributes, attribute.refers_to);
      if (!given) given = find(function.defaults, attribute.refers_to);
      if (!given) continue;
      resolved.push_back(*given);
      resolved.back().name = attribute.name;
    }
    node.attributes = std::move(resolved);
  }

  std::string fresh_name(const std::string& hint) {
    std::string name = hint;
    for (int i = 1; !names_.insert(name).second; ++i) name = hint + "_" + std::to_string(i);
    return name;
  }

  const int opset_;
  std::map<Key, const proto::Function*> functions_;
  std::unordered_set<std::string> names_;
  size_t count_ = 0;
};

}  // namespace

void inline_functions(proto::Model& model, int opset) {
  if (model.functions.empty()) return;
  model.graph->nodes = Inliner(model, opset).inlined(std::move(model.graph->nodes));
}

}  // namespace octet::onnx
